"""Topics without ids are told apart by what was seen of them before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_report.checks import topic_identity
from mirror_report.kafka.metadata import _topic_id
from mirror_report.model import PartitionSnapshot, TopicSnapshot, another_topic


def topic(start: int = 5, end: int = 10, epoch: int | None = 2) -> TopicSnapshot:
    return TopicSnapshot("t", "", {0: PartitionSnapshot(start, end, end, epoch)}, {}, None)


REAL = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
PLACE = ("t", 0)
FIRST = topic_identity.marked({"t": topic()}, {}, {}, {PLACE: "ninth"}, 1_000)


def again(now: TopicSnapshot, record: str | None = "ninth") -> bool:
    """Whether a later observation takes a topic for another one."""
    before = {} if record is None else {PLACE: record}
    found = topic_identity.marked({"t": now}, FIRST, before, {}, 2_000)
    return another_topic(FIRST["t"]["mark"], found["t"]["mark"])


def test_a_topic_seen_first_gets_a_mark_and_remembers_its_last_record() -> None:
    assert topic_identity.last_records({"t": topic()}) == {PLACE: 9}
    assert FIRST["t"] == {
        "mark": "since-1000", "at_ms": 1_000,
        "partitions": {"0": [5, 10, 2]}, "probe": [0, 9, "ninth"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "now", [topic(), topic(7, 90), topic(epoch=3), topic(epoch=None), topic(4, 8, epoch=3)]
)
def test_one_that_goes_on_keeps_its_mark(now: TopicSnapshot) -> None:
    assert not again(now)


@pytest.mark.parametrize("now", [topic(0, 90), topic(5, 9), topic(epoch=0), topic(5, 9, None)])
def test_offsets_or_epochs_that_went_back_are_another_topic(now: TopicSnapshot) -> None:
    assert again(now)


def test_another_record_where_one_was_seen_is_another_topic() -> None:
    assert topic_identity.probes({"t": topic(0, 90)}, FIRST) == {PLACE: 9}
    assert again(topic(5, 90), "something else")


def test_an_observation_that_began_before_another_was_whole_is_not_held_to_it() -> None:
    assert topic_identity.newly_observed({"t": topic()}, FIRST, 999) == {}
    assert set(topic_identity.newly_observed({"t": topic(), "new": topic()}, FIRST, 999)) == {"new"}
    assert set(topic_identity.newly_observed({"t": topic()}, FIRST, 1_000)) == {"t"}


def test_a_record_that_is_gone_or_could_not_be_read_tells_nothing() -> None:
    assert topic_identity.probes({"t": topic(10, 90)}, FIRST) == {}
    assert not again(topic(5, 90), None)


def test_fewer_partitions_are_another_topic() -> None:
    assert again(replace(topic(), partitions={}))


def test_the_mark_stands_for_an_id_only_where_there_is_none() -> None:
    assert another_topic("since-1", "since-2")
    assert another_topic("a", "b")
    assert not another_topic("since-1", "a")
    assert not another_topic("", "a")
    assert not another_topic("a", "")
    assert not another_topic(None, "a")


@pytest.mark.parametrize(
    ("described", "known"),
    [
        ({}, ""),
        ({"topic_id": None}, ""),
        ({"topic_id": "00000000-0000-0000-0000-000000000000"}, ""),
        ({"topic_id": REAL}, REAL),
    ],
)
def test_an_id_that_is_absent_or_all_zero_is_not_known(
    described: dict[str, str | None], known: str
) -> None:
    assert _topic_id(described) == known
