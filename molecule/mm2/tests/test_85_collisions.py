"""A topic whose copy the target cannot create is left out by the next run, and stops no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from labkit.answers import changed, complete

pytestmark = pytest.mark.long

IN_THE_WAY, COLLIDING, SOUND = "east.late.col_lides", "late.col.lides", "late.beside"


@pytest.fixture
def colliding(lab) -> Iterator[str]:
    """A topic of the source of which the target has another with the same name for its metrics."""
    topics = {"west": IN_THE_WAY, "east": COLLIDING}
    for cluster, name in topics.items():
        spec = {name: {"num_partitions": 1}}
        lab.probe({"do": "create", "cluster": cluster, "topics": spec})
    yield COLLIDING
    for cluster, name in topics.items():
        lab.probe({"do": "delete", "cluster": cluster, "topics": [name]})


def test_a_colliding_topic_is_left_out_and_the_others_go_on(lab, mirror, outputs, colliding):
    first, second = (lab.playbook("mirrormaker.yml") for _ in range(2))
    outputs.extend([first.text, second.text])
    assert f"{colliding}: west cannot create" in first.text
    assert changed(second.stdout)[lab.mirror.name] == []
    lab.probe({"do": "create", "cluster": "east", "topics": {SOUND: {"num_partitions": 1}}})
    lab.produce(colliding, SOUND, count=200)
    lab.wait_mirrored("orders", [SOUND])
    assert complete(lab.compare(SOUND, prefix="east.")) == {}
    assert mirror.active
