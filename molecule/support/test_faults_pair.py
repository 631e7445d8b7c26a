"""Two classes of fault after everything before was left out: the baseline is recorded again."""

from __future__ import annotations

import time

import pytest
from faults import FAULTS
from labkit.answers import classes
from labkit.controller import wait

pytestmark = pytest.mark.long


def test_a_pair_of_classes_alone_is_told_apart(lab, faulty, damaged):
    """The result does not depend on faults of other topics."""
    del damaged
    lab.desk.run("mirror-report", "baseline", "--flow", faulty.flow, "--renew")
    # Where a mirror keeps no partitions, a baseline leaves out the whole minute of its time.
    minute = time.time() // 60
    wait("the next minute", lambda: time.time() // 60 > minute)
    faulty.fill(["missing", "duplicated"])
    faulty.damage(["missing", "duplicated"])
    _, document = lab.report("run", "--flow", faulty.flow)
    found = {row["source_topic"]: classes(row) for row in document["parity"] if classes(row)}
    assert found == {
        faulty.topic(fault): dict(FAULTS[fault].expected) for fault in ("missing", "duplicated")
    }
