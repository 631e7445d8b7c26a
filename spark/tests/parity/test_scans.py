"""When a compacted topic is scanned, and what is reported of its last scan."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from mirror_report.config import Flow
from mirror_report.model import CLASSES, PartitionSnapshot, TopicParity, TopicSnapshot
from mirror_report.parity.plan import CompactedTopic, Scan, scans
from mirror_report.parity.results import scans as results

FLOW = Flow(name="f", source="a", target="b", include="t", group_id="g")
HOUR = 3_600_000
EMPTY = TopicParity(
    flow="f", source_topic="t", topic="t", status="unknown", source_records=0, target_records=0,
    verified_records=0, in_flight_records=0, skipped_records=0, counts=dict.fromkeys(CLASSES),
    accounted={}, buckets={}, verified_through_ms=None, newest_due_ms=None, reason="", samples={},
    strategy="latest_by_key",
)  # fmt: skip


def topic(end: int = 100, ident: str = "id", log_start: int = 0, **configs: str) -> TopicSnapshot:
    logs = {0: PartitionSnapshot(log_start, end, end)}
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    return TopicSnapshot("t", ident, logs, {"cleanup.policy": "compact"} | settings, 1000)


def subject(**changes: Any) -> CompactedTopic:
    compacted = CompactedTopic(FLOW, "t", (topic(),), topic(90), {"t": {0: 95}}, 1000 * HOUR, {})
    return replace(compacted, **changes)


def scan(**keys: int) -> Scan:
    found = {name: {"-1": number} for name, number in keys.items()}
    return Scan("run", 1000 * HOUR, subject().state(), found, 10, 9, 5)


def test_a_topic_is_scanned_once_and_again_when_it_moved_and_a_day_has_passed() -> None:
    day = 24 * HOUR
    last = scan(verified=9)
    later = subject(taken_at_ms=1000 * HOUR + day)
    assert scans.due(None, subject(), day)
    assert not scans.due(last, later, day), "nothing is new"
    for moved in (
        replace(later, sources=(topic(101),)),
        replace(later, target=topic(91)),
        replace(later, target=topic(90, ident="other")),
        replace(later, target=None),
    ):
        assert scans.due(last, moved, day)
        assert not scans.due(last, replace(moved, taken_at_ms=later.taken_at_ms - 1), day)
    assert scans.due(scan(verified=9, in_flight=1), later, day), "what was in flight is decided"


def test_a_budget_lets_through_what_fits_into_it() -> None:
    compacted = subject()  # 2000 bytes on both sides
    assert scans.affordable([compacted, compacted], None) == [compacted, compacted]
    assert scans.affordable([compacted, compacted], 3999) == [compacted]
    assert scans.affordable([compacted], 1999) == []
    assert scans.affordable([compacted, compacted], None, 379) == [compacted], "190 offsets each"


def test_a_scan_reads_both_logs_and_judges_from_the_baseline_on() -> None:
    recorded = {"t": {"source": {"0": 5}, "target": {"0": 7}}}
    compacted = subject(recorded=recorded, sources=(topic(log_start=3),))
    assert [(each.side, each.start, each.end) for each in compacted.ranges()] == [
        ("source", 3, 100), ("target", 0, 90),
    ]  # fmt: skip
    assert [(row["side"], row["floor"], row["position"]) for row in compacted.places()] == [
        ("source", 5, 95), ("target", 7, None),
    ]  # fmt: skip
    (never,) = [row for row in subject(positions={}).places() if row["side"] == "source"]
    assert never["position"] == 0, "nothing was committed, so nothing is due"


@pytest.mark.parametrize(
    ("configs", "until"),
    [
        ({}, None),
        ({"cleanup_policy": "compact,delete"}, None),
        ({"cleanup_policy": "compact,delete", "retention_ms": "-1"}, None),
        ({"cleanup_policy": "delete", "retention_ms": str(10 * HOUR)}, 991 * HOUR),
        ({"cleanup_policy": "delete", "retention_bytes": "5", "log_start": 4}, 1000 * HOUR),
        ({"cleanup_policy": "delete", "retention_bytes": "5"}, None),
    ],
)
def test_what_retention_may_have_removed_is_no_difference(
    configs: dict[str, Any], until: int | None
) -> None:
    row = subject(target=topic(**configs)).expiry()
    assert (row.get("target_expired_ms"), row.get("source_expired_ms")) == (until, None)


def result(last: Scan | None, unreported: tuple[str, ...] = (), **keys: int) -> Scan:
    rows = [
        {"class": name, "lane": -1, "keys": number, "source_keys": 1, "target_keys": 1,
         "newest_ms": 7}
        for name, number in keys.items()
    ]  # fmt: skip
    return results.result(subject(), "next", rows, [], last, unreported)


def test_what_was_found_is_remembered_as_plain_data() -> None:
    found = result(None, verified=3, extra=2)
    assert scans.last_of({"f": {"t": asdict(found)}}, "f", "t") == found
    assert scans.last_of({}, "f", "t") is None
    assert (found.source_keys, found.target_keys, found.newest_ms) == (2, 2, 7)


def test_foreign_keys_are_new_once_and_missing_ones_until_they_are_mended() -> None:
    def shown(last: Scan, *unreported: str) -> tuple[str, Any, Any, Any]:
        row = results.reported(EMPTY, last, unreported, "compacted")
        return row.status, row.counts["extra"], row.accounted.get("extra"), row.counts["missing"]

    first = result(None, verified=3, extra=2, missing=1)
    assert shown(first, "next") == ("mismatch", 2, 0, 1)
    assert shown(first) == ("mismatch", 0, 2, 1)
    second = result(first, verified=4, extra=3)
    assert shown(second, "next") == ("mismatch", 1, 2, 0)
    assert shown(second) == ("verified", 0, 3, 0)
    again = result(first, ("next",), verified=4, extra=3)
    assert shown(again, "next") == ("mismatch", 3, 0, 0), (
        "the report on the first was never written"
    )


def test_a_topic_without_a_scan_waits_and_says_so() -> None:
    found = results.reported(EMPTY, None, (), "compacted on the source")
    assert (found.status, found.counts) == ("in_flight", dict.fromkeys(CLASSES))
    assert "first scan waits" in found.reason


def test_a_scan_tells_how_far_and_in_which_partitions() -> None:
    whole = results.reported(EMPTY, scan(verified=9), (), "compacted")
    assert (whole.status, whole.verified_records, whole.source_records) == ("verified", 9, 10)
    assert (whole.verified_through_ms, whole.newest_due_ms) == (1000 * HOUR, 5)
    assert (whole.partitions, whole.counts["missing"]) == ({}, 0)
    moving = results.reported(EMPTY, scan(verified=9, in_flight=1), (), "compacted")
    assert (moving.status, moving.in_flight_records, moving.verified_through_ms) == (
        "verified", 1, None,
    )  # fmt: skip
    assert results.reported(EMPTY, scan(in_flight=1), (), "").status == "in_flight"
    assert results.reported(EMPTY, scan(unverifiable=1), (), "").status == "unverifiable"
    kept = replace(scan(), keys={"missing": {"0": 1, "2": 3}, "verified": {"0": 5}})
    found = results.reported(EMPTY, kept, (), "compacted")
    assert found.partitions == {"missing": {"0": 1, "2": 3}}
    assert found.counts["missing"] == 4
    foreign = replace(scan(), keys={"extra": {"0": 1, "2": 3}})
    assert results.reported(EMPTY, foreign, ("run",), "").partitions == {"extra": {"0": 1, "2": 3}}
    partly_known = results.reported(EMPTY, replace(foreign, accounted={"extra": 1}), ("run",), "")
    assert (partly_known.counts["extra"], partly_known.partitions) == (3, {})
