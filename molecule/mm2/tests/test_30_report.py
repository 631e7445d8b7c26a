"""The report names what really happened to MirrorMaker 2: class, topic and exact number."""

from __future__ import annotations

import pytest
from labkit import classes, complete, parity

LOST = 11


@pytest.fixture(scope="module")
def harmed(lab, mirror):
    """Drop records of one source topic and create another anew while the mirror is stopped."""
    topics = ["truncated", "recreated"]
    mirror.control("stop")
    lab.produce("truncated", count=400)
    position = lab.probe(lab.positions("orders"))[0]
    step = {"do": "truncate", "cluster": "east"}
    lab.probe({**step, "offsets": {"truncated": {"0": position["truncated"]["0"] + LOST}}})
    lab.probe({"do": "delete", "cluster": "east", "topics": ["recreated"]})
    spec = {"recreated": {"num_partitions": 2}}
    lab.probe({"do": "create", "cluster": "east", "topics": spec})
    lab.produce("recreated", count=2000)
    ends = lab.probe({"do": "ends", "cluster": "east", "topics": ["recreated"]})[0]["recreated"]
    assert all(end > position["recreated"][p] for p, end in ends.items()), "grown past it"
    stopped = lab.report("lag")
    mirror.control("start")
    lab.wait_mirrored("orders", topics)
    return {
        "skipped": sum(position["recreated"].values()),
        "stopped": stopped,
        "answer": lab.report("run"),
    }


def kinds(document, topic):
    return {each["kind"]: each["count"] for each in document["findings"] if each["topic"] == topic}


def test_a_source_truncated_past_the_position_is_lost_with_the_number(harmed):
    status, document = harmed["stopped"]
    assert status == 2
    assert kinds(document, "truncated")["truncated"] == LOST


def test_records_that_nobody_can_read_again_are_not_called_verified(harmed):
    row = parity(harmed["answer"][1], "truncated", "orders")
    assert classes(row) == {"unverifiable": LOST}


def test_a_source_topic_created_again_and_grown_past_the_position_is_found(lab, harmed, measured):
    for _, document in (harmed["stopped"], harmed["answer"]):
        assert "reset" in kinds(document, "recreated")
    # MirrorMaker 2 goes on at the old offset of the new topic.
    lost = lab.compare("recreated", prefix="east.")
    row = parity(harmed["answer"][1], "recreated", "orders")
    measured(skipped=harmed["skipped"], missing=row["counts"]["missing"], classes=classes(row))
    assert lost["lost"] == row["counts"]["missing"] == harmed["skipped"] > 0


def test_every_duplicate_of_the_kills_is_counted_and_nothing_else(lab, harmed, measured):
    known = lab.compare("killed", prefix="east.")
    row = parity(harmed["answer"][1], "killed", "orders")
    measured(known=known["duplicated"], duplicates=row["counts"]["duplicate"])
    assert complete(known) == {}
    assert classes(row) == {"duplicate": known["duplicated"]}


def test_the_other_flow_is_not_accused(harmed):
    status, document = harmed["answer"]
    assert status == 2
    assert [each for each in document["findings"] if each["flow"] == "orders-north"] == []
