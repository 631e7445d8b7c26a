"""A producer on the source cannot write, by the name of a topic, what steers a mirror."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from labkit.forgery import Forgery
from labkit.lab import Lab
from labkit.rest import Rest

# Keeps names, so a topic of the source could have the name of one of the workers.
KEPT = {
    "name": "kept",
    "engine": "mm2-connect",
    "connect": "connect-west",
    "source": "east",
    "target": "west",
    "topics": ["connect-west-.*"],
    "replication_policy": "identity",
    "properties": {"refresh.topics.interval.seconds": 5},
}


@pytest.fixture
def kept(lab: Lab, rest: Rest) -> Iterator[str]:
    """A second flow by the same workers."""
    former = set(connectors(rest))
    lab.playbook("site.yml", lab.changed(lambda v: v["mirror_flows"].append(KEPT)))
    yield str(KEPT["name"])
    for name in set(connectors(rest)) - former:
        assert rest.ask(f"/connectors/{name}", method="DELETE")[0] == 204
    lab.playbook("report.yml")


def connectors(rest: Rest) -> list[str]:
    status, names = rest.ask("/connectors")
    assert status == 200
    return list(names)


def test_no_record_of_a_producer_steers_a_mirror(lab):
    forgery = Forgery(lab, "orders", "checkpoints.internal", "checkpoints.sound", "east.")
    report = forgery.commit()
    forgery.proves(report)


def test_no_record_of_a_producer_steers_the_workers(lab, kept):
    forgery = Forgery(lab, kept, "connect-west-config", "connect-west-sound")
    report = forgery.commit()
    forgery.proves(report)
