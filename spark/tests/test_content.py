"""What is said of a topic's content: how bad it is, where, and the command that comes next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mirror_report.checks.content import TEXTS, findings
from mirror_report.checks.verdict import verdict
from mirror_report.config import Cluster, Flow
from mirror_report.engines import MM2
from mirror_report.model import CLASSES, Finding, Sample, TopicParity
from mirror_report.parity import classes
from mirror_report.parity.results import summaries

FLOW = Flow("orders", "east", "west", "t", group_id="g", hosts=("mirror1",))
KEPT = replace(FLOW, engine=MM2)
CLUSTERS = {alias: Cluster(alias, (f"{alias}1:9092",)) for alias in ("east", "west")}
EMPTY = TopicParity(
    flow="orders", source_topic="t", topic="t", status="mismatch", source_records=0,
    target_records=0, verified_records=0, in_flight_records=0, skipped_records=0,
    counts=dict.fromkeys(CLASSES, 0), accounted={}, buckets={}, verified_through_ms=None,
    newest_due_ms=None, reason="", samples={},
)  # fmt: skip


def sample(side: Any, partition: int, offset: int) -> Sample:
    return Sample(side, partition, offset, 0, "k", "r", None, None)


def reported(flow: Flow = FLOW, **changes: Any) -> list[Finding]:
    counts = {**EMPTY.counts, **changes.pop("counts", {})}
    return findings(replace(EMPTY, counts=counts, **changes), flow, CLUSTERS)


STATUS = {
    "expired": 0,
    **dict.fromkeys(("duplicate", "altered_timestamp", "extra", "unverifiable"), 1),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_each_class_has_its_finding_with_what_to_do(kind: str) -> None:
    (finding,) = reported(KEPT, counts={kind: 3}, partitions={kind: {"4": 3}})
    assert (finding.kind, finding.count, finding.partition, finding.accounted) == (
        kind,
        3,
        4,
        False,
    )
    assert finding.message == f"orders/t: 3 {TEXTS[kind]}, partition 4"
    assert finding.action
    assert verdict([finding]).exit_code == STATUS.get(kind, 2)


def test_a_topic_that_is_whole_has_none() -> None:
    assert reported() == []
    assert reported(counts=dict.fromkeys(CLASSES)) == [], "unknown is no finding of a class"


def test_order_without_partitions_is_a_warning() -> None:
    assert [finding.severity for finding in reported(counts={"reordered": 1})] == ["warning"]


def test_many_partitions_are_named_the_worst_first() -> None:
    counts = {str(partition): partition + 1 for partition in range(11)}
    (finding,) = reported(KEPT, counts={"missing": 66}, partitions={"missing": counts})
    assert finding.partition is None
    assert finding.message.endswith(
        ", partitions 10 (11), 9 (10), 8 (9), 7 (8), 6 (7), 5 (6), 4 (5), 3 (4) and 3 more"
    )


def test_missing_records_can_be_mirrored_again_by_moving_the_group() -> None:
    samples = {"missing": [sample("source", 2, 40), sample("source", 1, 7)]}
    (finding,) = reported(counts={"missing": 2}, samples=samples)
    assert (
        "systemctl stop mirrormaker.service, then kafka-consumer-groups.sh --bootstrap-server "
        "east1:9092 --group g --topic t:1 --reset-offsets --to-offset 7 --execute, then systemctl "
        "start mirrormaker.service"
    ) in finding.action
    (finding,) = reported(KEPT, counts={"missing": 2}, samples=samples)
    assert "--group" not in finding.action, "MirrorMaker 2 has none"
    assert "kafka-console-consumer.sh --bootstrap-server east1:9092" in finding.action


def test_an_altered_record_can_be_seen_on_both_sides() -> None:
    samples = {"corrupt_value": [sample("source", 0, 5), sample("target", 0, 9)]}
    (finding,) = reported(counts={"corrupt_value": 1}, samples=samples)
    for alias, offset in (("east", 5), ("west", 9)):
        assert (
            f"kafka-console-consumer.sh --bootstrap-server {alias}1:9092 --topic t --partition 0 "
            f"--offset {offset} --max-messages 1"
        ) in finding.action


def test_what_an_earlier_report_said_is_accounted() -> None:
    accounted = dict.fromkeys(classes.ACCOUNTABLE, 2)
    found = reported(accounted=accounted)
    assert {finding.kind for finding in found} == set(classes.ACCOUNTABLE)
    assert all(finding.accounted and finding.message.endswith("(known)") for finding in found)
    assert verdict(found).exit_code == 0


def test_a_topic_that_was_not_compared_says_why() -> None:
    for status, kind in (("skipped", "skipped"), ("unknown", "parity_unavailable")):
        (finding,) = reported(status=status, reason="because")
        assert (finding.kind, finding.message) == (kind, "orders/t: not compared: because")


def test_a_topic_that_nothing_compares_names_the_proof() -> None:
    (finding,) = reported(counts={"unverifiable": 5}, strategy="none", reason="no timestamps")
    assert "cannot be compared while they move: no timestamps" in finding.message
    assert "mirror-report prove --flow orders --topic t" in finding.action


def lane(number: int, **changes: Any) -> dict[str, Any]:
    zero = dict.fromkeys((*classes.ADDED, *CLASSES), 0) | dict.fromkeys(
        (*classes.NEWEST, *classes.OLDEST)
    )
    return {"flow": "f", "topic": "t", "lane": number, "hours": [], **zero, **changes}


def test_lanes_add_up_to_their_topic() -> None:
    hours = [(0, 4, 0), (3_600_000, 0, 0)]
    (row,) = summaries.by_topic(
        [
            lane(0, missing=2, verified_through_ms=9, source_records=5),
            lane(10, duplicate=1, missing=1, verified_through_ms=None, source_records=6,
                 hours=hours, buckets_mismatch=1, next_buckets_verified=1),
            lane(2, verified_through_ms=7),
        ]
    )  # fmt: skip
    assert (row["missing"], row["source_records"], row["verified_through_ms"]) == (3, 11, 9)
    now = summaries.filled(EMPTY, row, {})
    assert now.partitions == {"missing": {"0": 2, "10": 1}, "duplicate": {"10": 1}}
    assert now.strip == {"10": [(0, "mismatch"), (3_600_000, "verified")]}
    later = summaries.filled(EMPTY, summaries.as_next(row), {})
    assert later.partitions == {"missing": {"0": 2, "10": 1}}
    assert later.accounted["duplicate"] == 1
    assert later.strip == {"10": [(0, "verified"), (3_600_000, "verified")]}
    assert later.buckets["verified"] == 1


def test_order_is_reported_once_where_partitions_are_not_kept() -> None:
    for number, left in ((-1, 0), (0, 3)):
        (row,) = summaries.by_topic([lane(number, reordered=3)])
        later = summaries.filled(EMPTY, summaries.as_next(row), {})
        assert later.counts["reordered"] == left
        assert later.accounted["reordered"] == 3 - left


def test_what_expired_by_retention_is_no_difference() -> None:
    topic = replace(
        EMPTY, counts={**EMPTY.counts, "expired": 3}, buckets={"verified": 1, "in_flight": 0}
    )
    assert summaries.status(topic, 0, 0)["status"] == "verified"


def test_what_stays_open_and_was_not_judged_is_a_warning() -> None:
    (finding,) = reported(status="in_flight", open_records=50, open_unjudged=40)
    assert (finding.kind, finding.severity, finding.count) == ("not_judged", "warning", 40)
    assert "mirror-report prove" in finding.action
    assert reported(status="in_flight", open_records=50) == []
