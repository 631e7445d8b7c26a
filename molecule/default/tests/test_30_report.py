"""What a stopped mirror and a source truncated under it look like, in numbers."""

from __future__ import annotations

import pytest
from labkit import classes, parity

COUNT, LOST = 400, 11
TOPIC = "payments.truncated"


@pytest.fixture(scope="module")
def harmed(lab, payments):
    """Drop records of the source before they are mirrored, while the mirror is stopped."""
    lab.wait_mirrored("payments", [TOPIC])
    payments.control("stop")
    lab.produce(TOPIC, count=COUNT)
    at = int(lab.probe(lab.positions("payments"))[0][TOPIC]["0"])
    lag = lab.report("lag", "--flow", "payments")[1]["lag"]
    lab.probe({"do": "truncate", "cluster": "east", "offsets": {TOPIC: {"0": at + LOST}}})
    truncated = lab.report("lag", "--flow", "payments")
    payments.control("start")
    lab.wait_mirrored("payments", [TOPIC])
    return {"lag": lag, "truncated": truncated, "answer": lab.report("run")}


def test_lag_of_a_stopped_mirror_is_what_was_produced(harmed):
    rows = [row for row in harmed["lag"] if row["topic"] == TOPIC]
    assert sum(row["lag_records"] for row in rows) == COUNT


def test_a_source_truncated_past_the_position_is_lost_with_the_number(harmed):
    status, document = harmed["truncated"]
    lost = {row["topic"]: row["lost"] for row in document["lag"] if row["lost"]}
    assert lost == {TOPIC: LOST}
    kinds = {(each["topic"], each["kind"], each["count"]) for each in document["findings"]}
    assert (TOPIC, "truncated", LOST) in kinds
    assert status == 2


def test_records_that_nobody_can_read_again_are_not_called_verified(harmed):
    row = parity(harmed["answer"][1], TOPIC)
    assert classes(row) == {"unverifiable": LOST}
    assert row["verified_records"] == row["source_records"] == 2 * COUNT - LOST


def test_a_certain_loss_stays_critical_after_the_mirror_went_on(harmed):
    status, document = harmed["answer"]
    assert status == 2
    assert TOPIC in {each["topic"] for each in document["findings"] if each["kind"] == "truncated"}
