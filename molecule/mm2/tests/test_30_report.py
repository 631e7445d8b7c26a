"""Findings on MirrorMaker 2 in the report on all faults."""

from __future__ import annotations

from labkit.answers import classes, complete, parity


def test_a_source_topic_created_again_and_grown_past_the_position_is_found(
    lab, faulty, damaged, measured
):
    topic = faulty.topic("recreated")
    for _, document in (damaged.stopped, damaged.answer):
        assert "reset" in {each["kind"] for each in document["findings"] if each["topic"] == topic}
    lost = lab.compare(topic, prefix="east.")
    row = parity(damaged.answer[1], topic, "orders")
    measured(lost=lost["lost"], classes=classes(row))
    assert lost["lost"] == row["counts"]["missing"] > 0


def test_every_duplicate_of_the_kills_is_counted_and_nothing_else(lab, damaged, measured):
    known = lab.compare("killed", prefix="east.")
    row = parity(damaged.answer[1], "killed", "orders")
    measured(known=known["duplicated"], duplicates=row["counts"]["duplicate"])
    assert complete(known) == {}
    assert classes(row) == {"duplicate": known["duplicated"]}


def test_the_other_flow_is_not_accused(damaged):
    status, document = damaged.answer
    assert status == 2
    assert [each for each in document["findings"] if each["flow"] == "orders-north"] == []
