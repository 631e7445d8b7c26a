"""When the report says that records that were missing have arrived; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_report.config import Flow
from mirror_report.model import TopicSnapshot
from mirror_report.parity.plan import CompactedTopic, ComparedTopic, TopicPlan
from mirror_report.parity.results import findings
from mirror_report.parity.state import Manifest, Summary

TOPIC = TopicPlan("f", "t", ("t",))


def known(**numbers: int) -> Manifest:
    """What a comparison left."""
    return replace(Manifest(60_000), summaries={"f": {"t": Summary("1", numbers, numbers)}})


def test_what_is_missing_no_more_has_arrived() -> None:
    (said,) = findings.repaired(known(missing=10), known(missing=4, duplicate=1), [TOPIC])
    assert (said.kind, said.severity, said.topic, said.count) == ("repaired", "ok", "t", 6)


@pytest.mark.parametrize("name", ["reordered", "moved", "altered_timestamp", "unverifiable"])
def test_what_is_called_by_another_name_has_not_arrived(name: str) -> None:
    assert not findings.repaired(known(missing=10), known(**{name: 10}), [TOPIC])
    was_there = {f"accounted_{name}": 10}
    (said,) = findings.repaired(known(missing=10, **was_there), known(**was_there), [TOPIC])
    assert said.count == 10


def test_it_says_equal_to_the_timestamp_only_where_timestamps_are_compared() -> None:
    def said(topic: TopicPlan) -> str:
        (found,) = findings.repaired(known(missing=3), known(), [topic])
        return found.message

    assert said(TOPIC).endswith("3 records that were missing are on the target by now, "
                                "equal to the timestamp")  # fmt: skip
    assert said(replace(TOPIC, strategy="offset_syncs")).endswith(
        "by now, equal but for their timestamps, which are not compared"
    )


@pytest.mark.parametrize("kept", ["CreateTime", "LogAppendTime"])
def test_keys_of_a_compacted_topic_are_repaired_by_their_own_records(kept: str) -> None:
    target = TopicSnapshot("t", "id", {}, {"message.timestamp.type": kept}, None)
    flow = Flow(name="f", source="a", target="b", include="t", group_id="g")
    topic = CompactedTopic(flow, "t", (target,), target, {}, 0, {})
    rows = [{"class": "verified", "repaired": 2}, {"class": "missing", "repaired": 0}]
    (said,) = findings.repaired_keys([ComparedTopic(topic, rows), ComparedTopic(topic, rows[1:])])
    assert (said.kind, said.severity, said.flow, said.topic, said.count) == (
        "repaired", "ok", "f", "t", 2,
    )  # fmt: skip
    assert said.message.startswith("f/t: 2 keys whose latest record was missing have it")
    assert said.message.endswith("equal to the timestamp") == (kept == "CreateTime")


def test_of_a_topic_that_begins_again_nothing_has_arrived() -> None:
    assert not findings.repaired(Manifest(60_000), known(missing=0), [TOPIC])
