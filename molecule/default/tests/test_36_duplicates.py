"""Duplicates of the kills, and of another client, in the report on all faults."""

from __future__ import annotations

from labkit.answers import classes, parity


def test_every_duplicate_is_counted_and_warned_of(lab, damaged, measured):
    known = lab.compare("killed")["duplicated"]
    document = damaged.answer[1]
    row = parity(document, "killed", "orders")
    measured(known=known, duplicates=row["counts"]["duplicate"])
    assert known >= 2
    assert row["counts"]["duplicate"] == known
    assert set(classes(row)) <= {"duplicate"}, row
    found = [each for each in document["findings"] if each["flow"] == "orders"]
    assert {each["severity"] for each in found if each["kind"] == "duplicate"} == {"warning"}
    assert {each["severity"] for each in found} <= {"warning", "ok"}, found
