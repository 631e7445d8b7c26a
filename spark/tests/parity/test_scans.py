"""When a compacted topic is scanned, and what is reported of its last scan."""

from __future__ import annotations

from dataclasses import asdict, replace
from operator import attrgetter
from typing import Any

import pytest

from mirror_report.config import Budget, Flow
from mirror_report.engines import MM1, MM2, Engine
from mirror_report.model import (
    CLASSES,
    PartitionSnapshot,
    SideBaseline,
    TopicBaseline,
    TopicParity,
    TopicSnapshot,
)
from mirror_report.parity.plan import CompactedTopic, ComparedTopic, Scan, moments, scans
from mirror_report.parity.plan.moments import MOST, Moment
from mirror_report.parity.plan.ranges import Spent
from mirror_report.parity.results import scans as results
from mirror_report.parity.state import BEHIND_ALL

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
    ):
        assert scans.due(last, moved, day)
        assert not scans.due(last, replace(moved, taken_at_ms=later.taken_at_ms - 1), day)
    for other in (
        replace(later, target=topic(90, ident="other")),
        replace(later, target=topic(89)),
        replace(later, target=None),
    ):
        assert scans.due(last, replace(other, taken_at_ms=1000 * HOUR + 1), day), "at once"
    assert scans.due(scan(verified=9, in_flight=1), later, day), "what was in flight is decided"


def test_a_budget_lets_through_what_fits_into_it() -> None:
    compacted = subject()  # 2000 bytes on both sides
    twice = [compacted, compacted]

    def affordable(topics: list[CompactedTopic], **bounds: int | None) -> list[CompactedTopic]:
        return scans.affordable(topics, Spent(1, 1), Budget(**bounds))

    assert affordable(twice, max_bytes=None) == twice
    assert affordable(twice, max_bytes=4000) == [compacted]
    assert affordable(twice, max_bytes=4001) == twice
    assert affordable([compacted], max_bytes=2000) == []
    assert affordable(twice, max_records=380) == [compacted], "190 offsets each"


def test_a_scan_reads_both_logs_and_judges_from_the_baseline_on() -> None:
    begun = TopicBaseline(source=SideBaseline(start={0: 5}), target=SideBaseline(start={0: 7}))
    compacted = subject(recorded={"t": begun}, sources=(topic(log_start=3),))
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
        ({"log_start": 4}, None),
        ({"cleanup_policy": "compact,delete", "log_start": 4}, None),
        ({"cleanup_policy": "compact,delete", "retention_ms": "-1", "log_start": 4}, None),
        ({"cleanup_policy": "delete", "retention_ms": str(10 * HOUR), "log_start": 4}, 991 * HOUR),
        ({"cleanup_policy": "delete", "retention_bytes": "5", "log_start": 4}, 1000 * HOUR),
        ({"cleanup_policy": "delete", "retention_ms": str(10 * HOUR)}, None),
        ({"cleanup_policy": "delete", "retention_bytes": "5"}, None),
    ],
)
def test_only_where_a_log_begins_later_can_retention_have_removed_something(
    configs: dict[str, Any], until: int | None
) -> None:
    for changed, side in (
        ({"target": topic(**configs)}, "source"), ({"sources": (topic(**configs),)}, "target"),
    ):  # fmt: skip
        rows = subject(**changed).retained({})
        assert [row["expired_ms"] for row in rows] == ([] if until is None else [until])
        assert [row["side"] for row in rows] == [side] * len(rows), "which lacks its partner"


LIMITED = {"cleanup.policy": "compact,delete", "retention.bytes": "5"}


def kept(*log_starts: int, known: tuple[Moment, ...] = (), engine: Engine = MM2) -> dict[int, Any]:
    """Partition of the source -> which of its records lacks the target for what reason."""
    logs = {p: PartitionSnapshot(start, 90, 90) for p, start in enumerate(log_starts)}
    ours = replace(topic(), partitions={p: PartitionSnapshot(0, 100, 100) for p in logs})
    compacted = subject(
        flow=replace(FLOW, engine=engine), sources=(ours,), positions={"t": {0: 95, 1: 95}},
        target=TopicSnapshot("t", "id", logs, LIMITED, None), moments=known,
    )  # fmt: skip
    return {row["partition"]: (row["gone"], row["kept"]) for row in compacted.retained({})}


EARLY = Moment(1, {"t": {0: 10, 1: 10}}, {0: 8, 1: 8}, {"t": {0: 12, 1: 12}})
LATE = Moment(2, {"t": {0: 50, 1: 50}}, {0: 40, 1: 40}, {"t": {0: 60, 1: 60}})


def test_a_copy_has_expired_if_it_lay_below_the_log_start_at_an_earlier_look() -> None:
    assert kept(0, 5) == {1: (0, BEHIND_ALL)}, "only one partition, and nobody looked before"
    known = (EARLY, LATE)
    assert kept(0, 5, known=known) == {1: (0, 12)}
    assert kept(8, 9, known=known) == {0: (10, 12), 1: (10, 60)}
    assert kept(90, 40, known=known) == {0: (95, BEHIND_ALL), 1: (50, 60)}
    # Where partitions are not kept, copies may be in any.
    assert kept(0, 5, known=known, engine=MM1) == {0: (0, 12), 1: (0, 12)}
    assert kept(8, 41, known=known, engine=MM1) == {0: (10, BEHIND_ALL), 1: (10, BEHIND_ALL)}
    assert kept(0, 0, known=known, engine=MM1) == {}


def test_what_follows_a_verified_key_of_its_partition_was_not_removed() -> None:
    target = replace(topic(90, log_start=5), configs=LIMITED)
    compacted = subject(flow=replace(FLOW, engine=MM2), target=target)
    (row,) = compacted.retained({0: (7, 6)})
    assert (row["gone"], row["kept"]) == (0, 7)
    (row,) = replace(compacted, flow=FLOW).retained({-1: (7, 6)})
    assert row["kept"] == BEHIND_ALL


def result(last: Scan | None, unreported: tuple[str, ...] = (), **keys: int) -> Scan:
    rows = [
        {"class": name, "lane": -1, "keys": number, "source_keys": 1, "target_keys": 1,
         "newest_ms": 7}
        for name, number in keys.items()
    ]  # fmt: skip
    return results.after_scan(ComparedTopic(subject(), rows), "next", last, unreported)


def test_what_was_found_is_remembered_as_plain_data() -> None:
    found = result(None, verified=3, extra=2)
    assert scans.last_of({"f": {"t": asdict(found)}}, ("f", "t")) == found
    assert scans.last_of({}, ("f", "t")) is None
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


def test_a_look_reads_what_is_new_and_where_its_copies_are() -> None:
    known = [EARLY, LATE, Moment(3, {"t": {0: 70}}, {0: 62}, {"t": {0: 71}})]
    assert moments.start(known, {"t": {0: 70}}, 0, keeps_partitions=True) == (40, 2)
    assert moments.start(known, {"t": {0: 71}}, 0, keeps_partitions=True) == (62, 3)
    assert moments.start(known, {"t": {0: 70, 1: 20}}, 0, keeps_partitions=True) == (40, 2)
    assert moments.start(known, {"t": {0: 70, 1: 20}}, 0, keeps_partitions=False) == (8, 1), (
        "what came from the other partition may have been copied earlier"
    )
    assert moments.start(known, {"t": {0: 11, 1: 11}}, 0, keeps_partitions=True) == (0, None)
    known[-1] = replace(known[-1], positions={"t": {0: 70, 1: 60}})
    last = replace(scan(verified=9), moments=[moment.dump() for moment in known])
    now = subject().after(last)
    assert [(each.side, each.start, each.end) for each in now.new_ranges()] == [
        ("source", 70, 100), ("target", 40, 90),
    ]  # fmt: skip
    assert (now.has_news(), now.unlooked()) == (True, 25)
    idle = replace(now, positions={"t": {0: 70}})
    assert (idle.has_news(), idle.unlooked()) == (False, 0), "the rest is in flight"
    assert replace(idle, last=replace(last, wrong=[{}])).has_news(), "it may have been mended"


def test_a_look_goes_on_from_nothing_but_the_same_logs() -> None:
    last = replace(scan(verified=9), moments=[LATE.dump()])
    assert subject().after(last).has_news()
    for other in (
        subject(target=None), subject(target=topic(89)), subject(target=topic(90, "new")),
        subject(sources=(topic(ident="new"),)), subject(sources=(topic(99),)),
    ):  # fmt: skip
        now = replace(other, taken_at_ms=1001 * HOUR).after(last)
        assert not now.has_news()
        assert now.unlooked() == 95, "all of it was not compared"
    assert subject(target=topic(89)).after(last).unlooked() == 45, "of the run that made the scan"
    assert not subject().after(None).has_news()
    earlier = subject(sources=(topic(120),), positions={"t": {0: 115}}).after(scan(verified=9))
    assert (earlier.has_news(), earlier.unlooked()) == (False, 15), "of an earlier release"


def test_a_mirror_at_work_commits_beyond_what_was_read() -> None:
    now = subject(positions={"t": {0: 120}}).after(replace(scan(verified=9), moments=[LATE.dump()]))
    assert (now.unlooked(), now.moment().positions) == (50, {"t": {0: 100}})
    later = replace(now, sources=(topic(130),), moments=moments.noted(now.moments, now.moment()))
    assert later.unlooked() == 20
    assert [each.start for each in later.new_ranges() if each.side == "source"] == [100]


def test_what_expired_before_a_look_is_counted_until_the_next_scan() -> None:
    known = [replace(EARLY, positions={"t": {0: 10}}).dump()]
    now = subject(sources=(topic(log_start=60),), positions={"t": {0: 60}}).after(
        replace(scan(verified=9), moments=known)
    )
    assert (now.has_news(), now.unlooked(), now.unlooked(attrgetter("log_start"))) == (True, 50, 50)
    found = results.after_look(ComparedTopic(now), "next", replace(scan(verified=9), uncompared=3))
    assert found.uncompared == 53


def test_moments_are_followed_by_later_ends_and_thinned_out() -> None:
    found: list[Moment] = []
    for number in range(1, 3 * MOST):
        now = Moment(number, {"t": {0: 10 * number}}, {0: number})
        found = moments.noted(moments.followed(found, {"t": {0: 10 * number}}), now)
    assert len(found) <= MOST
    assert [moment.at_ms for moment in found[-3:]] == [93, 94, 95]
    assert found[-2].following == {"t": {0: 950}}
    assert found[-1].following == {}
    back = moments.noted(found, Moment(99, {"t": {0: 5, 1: 7}}, {0: 99}))[-1]
    assert back.positions == {"t": {0: 950, 1: 7}}, "what was looked at stays so"
    assert Moment.load(back.dump()) == back


def test_tombstones_count_while_none_can_have_been_removed() -> None:
    day = 24 * HOUR
    last = replace(
        scan(verified=9),
        moments=[Moment(999 * HOUR, {"t": {0: 60}}, {0: 40}, {"t": {0: 60}}).dump()],
    )

    def kept(**configs: str) -> bool:
        return subject(target=topic(90, **configs)).after(last).keeps_tombstones()

    assert kept(delete_retention_ms=str(day))
    assert not kept(delete_retention_ms=str(2 * HOUR)), "an hour has passed, and one is a margin"
    assert not kept(), "not known"
    assert kept(cleanup_policy="delete"), "no cleaner"


def lost(name: str, number: int) -> dict[str, Any]:
    return {"class": name, "lane": -1, "k1": number, "k2": 0, "source": {}, "target": None}


def look(last: Scan, kept: list[dict[str, Any]], **keys: int) -> Scan:
    rows = [
        {"class": name, "lane": -1, "keys": number, "newest_ms": 9} for name, number in keys.items()
    ]
    now = subject(taken_at_ms=1001 * HOUR, last=last)
    return results.after_look(ComparedTopic(now, rows, (), kept), "next", last)


def test_looks_add_what_is_lost_until_it_is_mended() -> None:
    whole = scan(verified=9, in_flight=1)
    one = look(whole, [lost("missing", 1)], missing=1, verified=4)
    assert (one.total("missing"), one.total("verified"), one.total("in_flight")) == (1, 9, 0)
    two = look(one, [lost("missing", 1), lost("corrupt_value", 2)], missing=1, corrupt_value=1)
    assert (two.total("missing"), two.total("corrupt_value"), two.total("verified")) == (1, 1, 8)
    three = look(two, [lost("corrupt_value", 2)], verified=1, corrupt_value=1, in_flight=2)
    assert (three.total("missing"), three.total("corrupt_value")) == (0, 1)
    assert (three.total("verified"), three.total("in_flight")) == (7, 2)
    four = look(three, [], verified=30)
    assert (four.total("corrupt_value"), four.total("verified")) == (0, 30)
    assert (four.source_keys, four.at_ms, four.looked_at_ms) == (30, 1000 * HOUR, 1001 * HOUR)


def test_a_comparison_knows_of_earlier_ends_and_of_what_was_lost() -> None:
    def wrong(name: str, offset: int, **more: bool) -> dict[str, Any]:
        return {**lost(name, offset), **more, "source": {
            "origin": "t", "partition": 0, "offset": offset,
        }}  # fmt: skip

    keys = [
        wrong("missing", 1), wrong("corrupt_value", 2), wrong("altered_timestamp", 3),
        wrong("in_flight", 4), wrong("in_flight", 5, lost=True),
    ]  # fmt: skip
    last = replace(scan(verified=9), wrong=keys, moments=[EARLY.dump(), LATE.dump()])
    now = replace(subject().after(last), moments=[EARLY, LATE, Moment(3, {}, {0: 70})])
    assert [(row["side"], row["ends"]) for row in now.ends_seen()] == [
        ("source", [12, 60]), ("target", [8, 40]),
    ], "the source's of the newest are not known yet"  # fmt: skip
    assert [(row["k1"], row["lost_offset"]) for row in now.lost()] == [(1, 1), (2, 2), (5, 5)]
    assert subject().after(None).lost() == []


def test_what_is_not_kept_one_by_one_stays_until_the_next_scan() -> None:
    many = scan(verified=9, missing=5000, extra=2)
    assert look(many, [], verified=3).total("missing") == 5000
    mended = look(replace(many, wrong=[lost("missing", n) for n in range(10)]), [], verified=10)
    assert (mended.total("missing"), mended.total("extra")) == (4990, 2)


def test_what_a_look_cannot_compare_is_counted() -> None:
    found = look(scan(verified=9), [], not_compared=2, unverifiable=1, verified=3)
    assert (found.uncompared, found.total("unverifiable")) == (3, 0)
    now = subject(positions={"t": {0: 60}}).after(replace(found, moments=[LATE.dump()]))
    shown = results.with_new_records(results.reported(EMPTY, found, (), ""), found, now)
    assert (shown.status, shown.uncompared_records) == ("in_flight", 13)
    assert (shown.scanned_at_ms, shown.verified_through_ms) == (1000 * HOUR, None)
    assert "13 records since were not compared" in shown.reason


def test_a_scan_that_found_all_replaced_or_nothing_has_verified_nothing() -> None:
    replaced = replace(scan(), keys={}, replaced=True, newer=7)
    assert scans.due(replaced, subject(), 24 * HOUR), "at once"
    found = results.reported(EMPTY, replaced, (), "compacted")
    assert (found.status, found.in_flight_records) == ("in_flight", 7)
    assert "reads it again" in found.reason
    empty = results.reported(EMPTY, replace(scan(), keys={}), (), "compacted")
    assert (empty.status, empty.verified_records) == ("in_flight", 0)
