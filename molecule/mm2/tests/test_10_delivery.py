"""Every acknowledged record arrives byte for byte on its own partition."""

from __future__ import annotations

import pytest
from labkit.answers import complete, parity
from labkit.controller import wait
from labkit.hosts import Unit
from labkit.site import words

GROUP = "billing"


@pytest.fixture(scope="module")
def delivered(lab):
    """Records on both sources, mirrored by one process; how many were acknowledged."""
    counts = {"east": 10000, "north": 6000}
    for cluster, count in counts.items():
        lab.produce("orders", count=count, cluster=cluster)
    lab.wait_mirrored("orders", ["orders"])
    lab.produce("connected", count=2000, cluster="north")
    lab.wait_mirrored("orders-north", ["orders"])
    lab.wait_mirrored("connected", ["connected"])
    return counts


@pytest.mark.parametrize("source", ["east", "north"])
def test_every_record_arrives_byte_for_byte_once_and_on_its_partition(
    lab, delivered, measured, source
):
    found = lab.compare("orders", source, prefix=f"{source}.")
    measured(source=source, acknowledged=found["acknowledged"], found=found["found"])
    assert found["acknowledged"] == delivered[source]
    assert complete(found) == {}
    assert (found["duplicated"], found["moved"]) == (0, 0)


@pytest.mark.usefixtures("delivered")
def test_a_worker_of_kafka_connect_delivers_beside_the_mirror(lab, mirror, measured):
    """Once here; scenario connect has all the rest."""
    found = lab.compare("connected", "north", prefix="north.")
    measured(acknowledged=found["acknowledged"], found=found["found"])
    assert found["acknowledged"] == 2000
    assert complete(found) == {}
    assert (found["duplicated"], found["moved"]) == (0, 0)
    worker = Unit(lab.mirror, "connect-west.service")
    assert len({0, worker.pid, mirror.pid}) == 3


def test_a_topic_created_later_arrives_from_its_first_record(lab, measured):
    step = {"do": "create", "cluster": "east", "topics": {"late.one": {"num_partitions": 2}}}
    lab.probe(step)
    lab.produce("late.one", count=2000)
    lab.wait_mirrored("orders", ["late.one"])
    found = lab.compare("late.one", prefix="east.")
    measured(acknowledged=found["acknowledged"], found=found["found"])
    assert found["acknowledged"] == 2000
    assert complete(found) == {}
    assert (found["duplicated"], found["moved"]) == (0, 0)


def test_partitions_added_later_arrive_from_their_first_record(lab, measured):
    lab.probe({"do": "grow", "cluster": "east", "topic": "late.one", "partitions": 4})
    lab.produce("late.one", count=2000)
    lab.wait_mirrored("orders", ["late.one"])
    there = lab.probe({"do": "ends", "cluster": "west", "topics": ["east.late.one"]})[0]
    found = lab.compare("late.one", prefix="east.")
    measured(acknowledged=found["acknowledged"], per_partition=there["east.late.one"])
    assert found["acknowledged"] == 4000
    assert complete(found) == {}
    assert (found["duplicated"], found["moved"]) == (0, 0)
    assert len([end for end in there["east.late.one"].values() if end]) == 4


def test_a_consumer_group_can_go_on_at_the_target(lab, delivered, measured):
    assert delivered
    ends = lab.probe({"do": "ends", "cluster": "east", "topics": ["orders"]})[0]["orders"]
    move = {"do": "move", "cluster": "east", "group": GROUP, "offsets": {"orders": ends}}
    assert set(lab.probe(move)[0].values()) == {"NoError"}
    step = {"do": "positions", "cluster": "west", "group": GROUP}
    synced = wait("the group on the target", lambda: lab.probe(step)[0].get("east.orders"))
    measured(source=ends, target=synced)
    assert set(synced) == set(ends)
    for partition, offset in synced.items():
        assert 0 < offset <= ends[partition], "again rather than never"


def test_the_workers_configuration_on_the_target_holds_no_secret(lab):
    secrets = [
        words(password) for identities in lab.passwords.values() for password in identities.values()
    ]
    for source in ("east", "north"):
        topic = f"mm2-configs.{source}.internal"
        step = {"do": "search", "cluster": "west", "topic": topic}
        (names, found) = lab.probe(
            {**step, "words": ["MirrorSourceConnector"]}, {**step, "words": secrets}
        )
        assert names["hits"] > 0, "the search finds what is there"
        assert found == {"records": names["records"], "hits": 0}


def test_nothing_is_written_to_a_source(lab, faulty):
    damaged = {faulty.topic(fault) for fault in faulty.faults}
    known = {"orders", "killed", "stopped", "late.one"}
    for source, topics, groups in (
        ("east", known | damaged, [GROUP]),
        ("north", {"orders", "connected"}, []),
    ):
        found = lab.probe({"do": "topics", "cluster": source}, {"do": "groups", "cluster": source})
        assert (set(found[0]), found[1]) == (topics, groups)


def test_the_report_calls_a_whole_mirror_whole(delivered, whole, measured):
    status, document = whole
    measured(coverage=document["coverage"], seconds=document["duration_seconds"])
    assert status == 0, (document["verdict"], document["findings"])
    counts = {
        ("orders", "orders"): delivered["east"],
        ("orders", "late.one"): 4000,
        ("orders-north", "orders"): delivered["north"],
        ("connected", "connected"): 2000,
    }
    for (flow, topic), count in counts.items():
        row = parity(document, topic, flow)
        assert (row["source_records"], row["verified_records"]) == (count, count)
