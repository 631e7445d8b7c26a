"""A topic that the target cannot create is left out by the next run, and stops nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from labkit.answers import changed, complete

pytestmark = pytest.mark.long

IN_THE_WAY, COLLIDING, SOUND = "payments.col_lides", "payments.col.lides", "payments.beside"
PROPERTIES = "/etc/sysconfig/mirrormaker-payments"


@pytest.fixture
def colliding(lab) -> Iterator[Callable[[], None]]:
    """Topics of which the target can have one alone; a call removes them."""
    there = {"west": [IN_THE_WAY], "east": [COLLIDING]}
    for cluster, names in there.items():
        topics = {name: {"num_partitions": 1} for name in names}
        lab.probe({"do": "create", "cluster": cluster, "topics": topics})

    def remove() -> None:
        while there:
            cluster, names = there.popitem()
            lab.probe({"do": "delete", "cluster": cluster, "topics": names})

    yield remove
    remove()


def test_a_colliding_topic_is_left_out_while_it_is_there(lab, payments, outputs, colliding):
    before = lab.mirror.read(PROPERTIES)
    done = lab.playbook("mirrormaker.yml")
    outputs.append(done.text)
    assert f"{COLLIDING}: west cannot create" in done.text
    left_out = lab.mirror.read(PROPERTIES)
    assert left_out != before
    assert "col" in left_out
    again = lab.playbook("mirrormaker.yml")
    outputs.append(again.text)
    assert changed(again.stdout)[lab.mirror.name] == []
    lab.probe(
        {"do": "create", "cluster": "east", "topics": {SOUND: {"num_partitions": 1}}},
        {"do": "create", "cluster": "west", "topics": {SOUND: {"num_partitions": 1}}},
    )
    lab.produce(COLLIDING, SOUND, count=200)
    lab.wait_mirrored("payments", [SOUND])
    assert complete(lab.compare(SOUND)) == {}
    colliding()
    outputs.append(lab.playbook("mirrormaker.yml").text)
    assert lab.mirror.read(PROPERTIES) == before
    assert payments.active
