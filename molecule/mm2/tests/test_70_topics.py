"""Topics that are not compared minute by minute: stamped by the target, and compacted."""

from __future__ import annotations

import pytest
from labkit.answers import classes, parity
from labkit.controller import wait
from labkit.kills import kill_rounds

pytestmark = pytest.mark.long
STAMPED, COMPACTED = "late.stamped", "late.compacted"
KEYS = 50
ONE_ALTERED = {"count": 1, "how": "altered"}


@pytest.fixture(scope="module")
def stamped(lab, mirror):
    """Duplicates of kills, in a topic of which the target replaces timestamps."""
    create = {"do": "create", "topics": {STAMPED: {"num_partitions": 2}}}
    stamps = {"num_partitions": 2, "configs": {"message.timestamp.type": "LogAppendTime"}}
    copy = {"do": "create", "topics": {f"east.{STAMPED}": stamps}}
    lab.probe({**copy, "cluster": "west"}, {**create, "cluster": "east"})
    kill_rounds(lab, mirror, "orders", STAMPED, rounds=2)
    return lab.compare(STAMPED, prefix="east.")


@pytest.fixture(scope="module")
def compacted(lab):
    """How many records a source has left of a topic, whose copy holds a wrong value."""
    # Only closed segments are compacted. A second process writes later than this, which closes
    # what the first one wrote.
    settings = {"cleanup.policy": "compact", "segment.ms": "10"}
    settings |= {"min.cleanable.dirty.ratio": "0.01"}
    spec = {"num_partitions": 1, "configs": settings}
    lab.probe({"do": "create", "cluster": "east", "topics": {COMPACTED: spec}})
    for count in (2000, 100):
        lab.produce(COMPACTED, count=count, keys=KEYS)
    lab.wait_mirrored("orders", [COMPACTED])
    step = {"do": "search", "cluster": "east", "topic": COMPACTED, "words": []}
    left = wait(
        "compaction", lambda: (n := lab.probe(step)[0]["records"]) < 1000 and n, seconds=180
    )
    copy = {"topic": COMPACTED, "target": f"east.{COMPACTED}", "partition": 0, "begin": 2099}
    lab.probe({"do": "tamper", "cluster": "east", "into": "west", "copies": [copy | ONE_ALTERED]})
    return left


@pytest.fixture(scope="module")
def answer(lab, stamped, compacted):
    """The report on both."""
    assert stamped
    assert compacted
    return lab.report("run", "--flow", "orders")[1]


def test_what_a_kill_repeated_is_counted_where_the_target_replaces_timestamps(
    answer, stamped, measured
):
    row = parity(answer, STAMPED)
    measured(acknowledged=stamped["acknowledged"], classes=classes(row))
    assert row["strategy"] == "offset_syncs"
    # To the verifier no record is the same with another timestamp, and every second one foreign.
    assert (stamped["lost"], stamped["altered"]) == (0, stamped["acknowledged"])
    assert classes(row) == {"duplicate": stamped["foreign"]}
    assert row["verified_records"] == stamped["acknowledged"]


def test_the_latest_value_of_each_key_is_compared_after_compaction(answer, compacted, measured):
    row = parity(answer, COMPACTED)
    measured(left=compacted, classes=classes(row), verified=row["verified_records"])
    assert row["strategy"] == "latest_by_key"
    assert classes(row) == {"corrupt_value": 1}
    assert row["source_records"] == row["verified_records"] + 1
    assert KEYS // 2 < row["source_records"] <= KEYS
