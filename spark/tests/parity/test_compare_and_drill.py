"""What differs is found, named and counted; what does not differ is left alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parity_records import KEPT, MINUTE, Content, Record, classes, frame
from pyspark.sql import DataFrame, SparkSession
from test_digest import BATCH

from mirror_report.parity import compare, digest, drill
from mirror_report.parity.session import table

CLASSES = ("missing", "duplicate", "corrupt", "extra")
NOTHING = dict.fromkeys((*CLASSES, "in_flight"), 0)

keys = st.sampled_from([None, b"", b"a", b"b"])
values = st.sampled_from([None, b"", b"1", b"2"])
times = st.sampled_from([-1, 0, 1, MINUTE - 1, MINUTE, 2 * MINUTE])
headers = st.sampled_from([None, (("h", b"1"),), (("h", None),)])
contents = st.tuples(keys, values, times, headers)
FAULTS = ("none", "none", "none", "lose", "copy", "alter", "retime", "invent")


@st.composite
def mirrors(draw: st.DrawFn) -> tuple[list[tuple[int, Content]], list[Content], dict[int, int]]:
    """A source log, what a bad mirror made of it, and the position it claims."""
    source = draw(st.lists(st.tuples(st.integers(0, 1), contents), max_size=20))
    target: list[Content] = []
    for _, content in source:
        fault = draw(st.sampled_from(FAULTS))
        if fault != "lose":
            key, value, timestamp, extra = content
            altered = (key, (value or b"") + b"!", timestamp, extra)
            retimed = (key, value, timestamp + 1, extra)
            target.append({"alter": altered, "retime": retimed}.get(fault, content))
        if fault == "copy":
            target.append(content)
        if fault == "invent":
            target.append(draw(contents))
    return source, target, {0: draw(st.integers(0, 20)), 1: draw(st.integers(0, 20))}


def log(flow: str, source: list[tuple[int, Content]], target: list[Content]) -> list[Record]:
    ends = Counter[int]()
    records = []
    for partition, content in source:
        records.append(Record(flow, "source", partition, ends[partition], content))
        ends[partition] += 1
    shuffled = random.Random(1).sample(target, len(target))  # noqa: S311
    records += [Record(flow, "target", i % 3, i, one) for i, one in enumerate(shuffled)]
    return records


def with_lanes(rows: DataFrame, records: list[Record]) -> DataFrame:
    return compare.with_lanes(
        rows, sorted({one.flow for one in records if one.flow.startswith(KEPT)})
    )


def flow_of(number: int) -> str:
    """Every other case is of a mirror that keeps partitions."""
    return f"{KEPT if number % 2 else 'f'}{number}"


def positions(spark: SparkSession, values: dict[tuple[str, int], int]) -> DataFrame:
    return table(
        spark,
        compare.POSITIONS_SCHEMA,
        [
            {"flow": flow, "origin": "t", "partition": partition, "position": position}
            for (flow, partition), position in values.items()
        ],
    )


def topics(spark: SparkSession, flows: set[str], of_topics: dict[str, dict[str, Any]]) -> DataFrame:
    return table(
        spark,
        compare.TOPICS_SCHEMA,
        [
            {"flow": flow, "topic": "t", "unread": False, **of_topics.get(flow, {})}
            for flow in flows
        ],
    )


def candidates(spark: SparkSession, judged: DataFrame, **flags: bool) -> DataFrame:
    given = {
        name: flags.get(name, False)
        for name in ("source_gap", "target_gap", "source_gone", "target_gone")
    }
    return table(
        spark,
        drill.CANDIDATES_SCHEMA,
        [
            {
                **{name: row[name] for name in (*compare.BUCKET, "pair", "n_source", "n_target")},
                **given,
                "known_duplicate": row["duplicate"],
                "known_extra": row["extra"],
            }
            for row in judged.filter("candidate").collect()
        ],
    )


class Case:
    """One comparison of records, as the engine makes it, without Kafka."""

    def __init__(
        self,
        spark: SparkSession,
        records: list[Record],
        mirrored: dict[tuple[str, int], int],
        *,
        earlier: list[dict[str, Any]] | None = None,
        run_id: str = "run",
        of_topics: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.spark = spark
        self.run_id = run_id
        self.records = with_lanes(frame(spark, records), records)
        self.positions = positions(spark, mirrored)
        self.topics = topics(spark, {one.flow for one in records}, of_topics or {})
        digests = with_lanes(digest.digest(self.records, MINUTE), records)
        self.buckets = compare.by_bucket(digests, self.positions).persist()
        self.results = table(spark, compare.RESULTS_SCHEMA, earlier or [])
        self.judged = self.judge(self.results)

    def judge(self, results: DataFrame) -> DataFrame:
        """What is known of each bucket, given results."""
        return compare.judge(self.buckets, self.topics, results, self.run_id)

    def drill(self, records: list[Record] | None = None, **flags: bool) -> list[dict[str, Any]]:
        """Results of the candidates; ``records`` if the drill sees other ones."""
        chosen = candidates(self.spark, self.judged, **flags)
        seen = self.records if records is None else with_lanes(frame(self.spark, records), records)
        left = drill.leftovers(seen, chosen, self.positions, MINUTE)
        return [row.asDict() for row in drill.outcome(left, chosen, self.run_id).collect()]

    def summary(self, results: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """The one topic's numbers, given results."""
        (only,) = self.summaries(results).values()
        return only

    def summaries(self, results: list[dict[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
        """Flow -> its one topic's numbers, given results."""
        known = (
            self.results if results is None else table(self.spark, compare.RESULTS_SCHEMA, results)
        )
        rows = compare.summarise(self.judge(known), MINUTE).collect()
        return {row["flow"]: row.asDict() for row in rows}


@BATCH
@given(cases=st.lists(mirrors(), min_size=40, max_size=60))
def test_classes_are_what_multisets_say(spark: SparkSession, ansi: str, cases: Any) -> None:
    records = [
        one
        for number, (source, target, _) in enumerate(cases)
        for one in log(flow_of(number), source, target)
    ]
    mirrored = {
        (flow_of(number), partition): position
        for number, (_, _, claimed) in enumerate(cases)
        for partition, position in claimed.items()
    }
    expected = classes(records, mirrored)
    everywhere = table(
        spark,
        drill.CANDIDATES_SCHEMA,
        [
            {
                "flow": flow, "topic": "t", "lane": lane, "bucket": bucket, "pair": "p",
                "n_source": 0, "n_target": 0, "known_duplicate": 0, "known_extra": 0,
                "source_gap": False, "target_gap": False,
                "source_gone": False, "target_gone": False,
            }
            for flow, lane, bucket in expected
        ],
    )  # fmt: skip
    read = with_lanes(frame(spark, records), records)
    left = drill.leftovers(read, everywhere, positions(spark, mirrored), MINUTE)
    found = {
        (row["flow"], row["lane"], row["bucket"]): {
            name: sum(one[name] for one in left_rows) for name in NOTHING
        }
        for left_rows in _grouped(left)
        for row in left_rows[:1]
    }
    assert found == expected, ansi


def _grouped(left: DataFrame) -> list[list[Any]]:
    groups: dict[tuple[str, int, int], list[Any]] = {}
    for row in left.collect():
        groups.setdefault((row["flow"], row["lane"], row["bucket"]), []).append(row)
    return list(groups.values())


@BATCH
@given(cases=st.lists(mirrors(), min_size=40, max_size=60))
def test_digests_are_equal_exactly_when_the_multisets_are(
    spark: SparkSession, ansi: str, cases: Any
) -> None:
    records = [
        one
        for number, (source, target, _) in enumerate(cases)
        for one in log(flow_of(number), source, target)
    ]
    claimed = {
        (flow_of(number), partition): position
        for number, (_, _, of_case) in enumerate(cases)
        for partition, position in of_case.items()
    }
    sides: dict[tuple[str, int, int], dict[str, Counter[Content]]] = {}
    behind: set[tuple[str, int, int]] = set()
    for one in records:
        both = sides.setdefault(one.where, {"source": Counter(), "target": Counter()})
        both[one.side][one.content] += 1
        if one.side == "source" and one.offset >= claimed[one.flow, one.partition]:
            behind.add(one.where)
    found = compare.by_bucket(
        with_lanes(digest.digest(frame(spark, records), MINUTE), records),
        positions(spark, claimed),
    ).collect()
    assert {
        (row.flow, row.lane, row.bucket): (row.equal, row.mirrored, row.n_source, row.n_target)
        for row in found
    } == {
        where: (
            both["source"] == both["target"],
            where not in behind,
            both["source"].total(),
            both["target"].total(),
        )
        for where, both in sides.items()
    }, ansi


def whole(count: int = 30) -> tuple[list[Record], list[Record], dict[tuple[str, int], int]]:
    """A source of ``count`` records in three buckets, its faithful copy, and its position."""
    content: list[Content] = [
        (b"k%d" % (i % 7), b"v%d" % i, (i % 3) * MINUTE + i, None) for i in range(count)
    ]
    source = [Record("f", "source", i % 2, i // 2, one) for i, one in enumerate(content)]
    target = [Record("f", "target", i % 4, i // 4, one) for i, one in enumerate(content)]
    return source, target, {("f", 0): count, ("f", 1): count}


def altered(record: Record, **content: Any) -> Record:
    names = ("key", "value", "timestamp", "headers")
    values = dict(zip(names, record.content, strict=True)) | content
    return replace(record, content=tuple(values[name] for name in names))  # type: ignore[arg-type]


Damage = Callable[[list[Record]], list[Record]]
FAULTS_BY_NAME: dict[str, tuple[Damage, dict[str, int]]] = {
    "nothing": (lambda t: t, {}),
    "missing": (lambda t: t[5:], {"missing": 5}),
    "duplicate": (lambda t: [*t, *t[:4]], {"duplicate": 4}),
    "twice over": (lambda t: [*t, t[0], t[0]], {"duplicate": 2}),
    "value": (lambda t: [*(altered(one, value=b"?") for one in t[:3]), *t[3:]], {"corrupt": 3}),
    "value to null": (lambda t: [altered(t[0], value=None), *t[1:]], {"corrupt": 1}),
    "headers": (lambda t: [altered(t[0], headers=(("h", b""),)), *t[1:]], {"corrupt": 1}),
    "foreign": (lambda t: [*t, *(altered(one, key=b"alien") for one in t[:6])], {"extra": 6}),
    "key": (lambda t: [altered(t[0], key=None), *t[1:]], {"missing": 1, "extra": 1}),
    "time": (lambda t: [altered(t[0], timestamp=1), *t[1:]], {"missing": 1, "extra": 1}),
    "one lost, one double": (lambda t: [*t[1:], t[3]], {"missing": 1, "duplicate": 1}),
    "two lost, one thrice": (
        lambda t: [*(one for one in t if one not in (t[0], t[3])), t[6], t[6]],
        {"missing": 2, "duplicate": 2},
    ),
}
"""What is done to a faithful copy, and what has to be found. The last two keep every count."""


@pytest.fixture(scope="module")
def damaged(spark: SparkSession) -> dict[str, dict[str, Any]]:
    """Fault -> the topic's numbers; all faults at once, each in a flow of its own."""
    records: list[Record] = []
    mirrored: dict[tuple[str, int], int] = {}
    for kind, (damage, _) in FAULTS_BY_NAME.items():
        source, target, position = whole()
        records += [replace(one, flow=kind) for one in (*source, *damage(target))]
        mirrored |= {(kind, partition): at for (_, partition), at in position.items()}
    case = Case(spark, records, mirrored)
    return case.summaries(case.drill())


@pytest.mark.parametrize("kind", FAULTS_BY_NAME)
def test_each_fault_is_found_and_nothing_else(
    damaged: dict[str, dict[str, Any]], kind: str
) -> None:
    expected = FAULTS_BY_NAME[kind][1]
    summary = damaged[kind]
    found = {name: summary[name] for name in (*CLASSES, "unverifiable")}
    assert found == {**dict.fromkeys(found, 0), **expected}
    assert summary["source_records"] == 30
    assert summary["candidates"] == 0
    wrong = expected.get("missing", 0) + expected.get("corrupt", 0)
    assert summary["verified_records"] == 30 - wrong
    assert (summary["buckets_mismatch"] == 0) == (kind == "nothing")
    assert (summary["verified_through_ms"] == 3 * MINUTE) == (kind == "nothing")
    assert summary["newest_due_ms"] == 2 * MINUTE + 29


def test_a_record_on_another_partition_is_found_where_partitions_are_kept(
    spark: SparkSession,
) -> None:
    source, _, _ = whole()
    target = [replace(one, side="target") for one in source]
    moved = [replace(target[0], partition=1, offset=99), *target[1:]]
    flows = {"spread": moved, f"{KEPT}-whole": target, f"{KEPT}-moved": moved}
    case = Case(
        spark,
        [replace(one, flow=flow) for flow, some in flows.items() for one in (*source, *some)],
        {(flow, partition): 30 for flow in flows for partition in (0, 1)},
    )
    drilled = case.drill()
    assert {
        (row["flow"], row["lane"]): {name: row[name] for name in CLASSES if row[name]}
        for row in drilled
    } == {(f"{KEPT}-moved", 0): {"missing": 1}, (f"{KEPT}-moved", 1): {"extra": 1}}
    summaries = case.summaries(drilled)
    verified = {flow: one["buckets_verified"] for flow, one in summaries.items()}
    assert verified == {"spread": 3, f"{KEPT}-whole": 6, f"{KEPT}-moved": 4}
    assert summaries[f"{KEPT}-moved"]["verified_records"] == 29
    assert summaries[f"{KEPT}-moved"]["verified_through_ms"] is None, "of all partitions"
    assert {one["source_records"] for one in summaries.values()} == {30}


def test_one_partition_that_lags_does_not_keep_the_others_from_being_due(
    spark: SparkSession,
) -> None:
    source, _, _ = whole()
    target = [replace(one, side="target") for one in source if one.partition]
    records = [replace(one, flow=flow) for flow in ("f", KEPT) for one in (*source, *target)]
    mirrored = {(flow, partition): 30 * partition for flow in ("f", KEPT) for partition in (0, 1)}
    summaries = Case(spark, records, mirrored).summaries()
    assert [summaries[flow]["buckets_in_flight"] for flow in ("f", KEPT)] == [3, 3]
    assert [summaries[flow]["buckets_verified"] for flow in ("f", KEPT)] == [0, 3]
    assert summaries[KEPT]["in_flight_records"] == summaries[KEPT]["verified_records"] == 15


def test_a_fault_of_one_minute_leaves_the_others_verified(spark: SparkSession) -> None:
    source, target, mirrored = whole()
    lost = next(one for one in target if one.bucket == MINUTE)
    case = Case(spark, [*source, *(one for one in target if one is not lost)], mirrored)
    summary = case.summary(case.drill())
    assert (summary["buckets_verified"], summary["buckets_mismatch"]) == (2, 1)
    assert summary["verified_through_ms"] == MINUTE


@pytest.fixture(scope="module")
def undecided(spark: SparkSession) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Results of the drill, and the numbers of mirrors of which nothing can be said yet."""
    source, target, mirrored = whole()
    # Offsets 12 and up of both source partitions have not been mirrored: 6 records.
    kept = {one.content for one in source if one.offset < 12}
    flows: dict[str, tuple[list[Record], int | None, dict[str, Any]]] = {
        "past the position": ([*source, *(t for t in target if t.content in kept)], 12, {}),
        "no position": (source, None, {}),
        "unread": ([*source, *target[1:]], 30, {"unread": True}),
        "straddling": (
            [*(one for one in source if one.bucket or one.offset > 2), *target],
            30,
            {"skip_through": 29},
        ),
    }
    case = Case(
        spark,
        [replace(one, flow=flow) for flow, (some, _, _) in flows.items() for one in some],
        {
            (flow, partition): position
            for flow, (_, position, _) in flows.items()
            for _, partition in mirrored
            if position is not None
        },
        of_topics={flow: values for flow, (_, _, values) in flows.items()},
    )
    return case.drill(), case.summaries()


@pytest.mark.parametrize("flow", ["past the position", "no position", "unread"])
def test_what_is_not_due_is_in_flight_and_not_missing(undecided: Any, flow: str) -> None:
    drilled, summaries = undecided
    assert drilled == []
    summary = summaries[flow]
    assert (summary["buckets_in_flight"], summary["in_flight_records"]) == (3, 30)
    assert [summary[name] for name in CLASSES] == [0, 0, 0, 0]
    assert summary["newest_due_ms"] is None


def test_buckets_that_straddle_the_baseline_are_skipped_and_counted(undecided: Any) -> None:
    summary = undecided[1]["straddling"]
    assert (summary["buckets_skipped"], summary["skipped_records"]) == (1, 8)
    assert (summary["buckets_verified"], summary["verified_records"]) == (2, 20)
    assert summary["verified_through_ms"] == 3 * MINUTE


def test_a_copy_seen_only_by_the_drill_is_no_difference(spark: SparkSession) -> None:
    """The target ran ahead of the source snapshot; fresh snapshots of both agree."""
    source, target, mirrored = whole()
    case = Case(spark, [*source[:-1], *target], mirrored)
    results = case.drill([*source, *target])
    assert [{name: row[name] for name in CLASSES} for row in results] == [dict.fromkeys(CLASSES, 0)]
    summary = case.summary(results)
    assert (summary["buckets_verified"], summary["buckets_in_flight"]) == (2, 1)
    assert summary["verified_through_ms"] == 2 * MINUTE
    again = Case(spark, [*source[:-1], *target], mirrored, earlier=results, run_id="the next one")
    assert again.summary()["candidates"] == 1, "undecided buckets are looked at again"


def test_duplicates_are_news_once_and_accounted_afterwards(spark: SparkSession) -> None:
    source, target, mirrored = whole()
    records = [*source, *target, *target[:4]]
    first = Case(spark, records, mirrored, run_id="1")
    found = first.drill()
    summary = first.summary(found)
    assert (summary["duplicate"], summary["accounted_duplicate"]) == (4, 0)
    assert summary["buckets_accountable"] == summary["buckets_mismatch"] == 3
    assert summary["verified_through_next_ms"] == 3 * MINUTE
    second = Case(spark, records, mirrored, run_id="2", earlier=found)
    assert second.drill() == [], "an unchanged bucket is not drilled again"
    summary = second.summary()
    assert (summary["duplicate"], summary["accounted_duplicate"]) == (0, 4)
    assert (summary["buckets_verified"], summary["verified_through_ms"]) == (3, 3 * MINUTE)
    third = Case(spark, [*records, *target[:1]], mirrored, run_id="3", earlier=found)
    new = third.drill()
    assert [(row["duplicate"], row["new_duplicate"]) for row in new] == [(3, 1)]
    kept = [row for row in found if row["bucket"] != new[0]["bucket"]]
    summary = third.summary([*kept, *new])
    assert (summary["duplicate"], summary["accounted_duplicate"]) == (1, 4)


def test_missing_records_stay_missing_until_they_arrive(spark: SparkSession) -> None:
    source, target, mirrored = whole()
    found = Case(spark, [*source, *target[2:]], mirrored, run_id="1").drill()
    later = Case(spark, [*source, *target[2:]], mirrored, run_id="2", earlier=found)
    assert later.drill() == []
    assert later.summary()["missing"] == 2
    late = Record("f", "source", 0, 99, (b"k", b"late", 3, None))
    undue = Case(spark, [*source, late, *target[2:]], mirrored, run_id="3", earlier=found)
    assert undue.drill() == [], "a record not mirrored yet keeps its bucket from being due"
    assert undue.summary()["missing"] == 2
    arrived = Case(spark, [*source, *target], mirrored, run_id="4", earlier=found)
    assert arrived.drill() == []
    assert (arrived.summary()["missing"], arrived.summary()["buckets_verified"]) == (0, 3)


def test_what_expired_before_it_was_read_is_unverifiable(spark: SparkSession) -> None:
    source, target, mirrored = whole()
    unread_source = Case(
        spark, [*source[6:], *target], mirrored, of_topics={"f": {"source_gap": 5 * MINUTE}}
    )
    results = unread_source.drill(source_gap=True)
    assert sum(row["extra"] for row in results) == 0
    assert sum(row["unverifiable"] for row in results) == 6
    unread_target = Case(
        spark, [*source, *target[6:]], mirrored, of_topics={"f": {"target_gap": 5 * MINUTE}}
    )
    results = unread_target.drill(target_gap=True)
    assert sum(row["missing"] for row in results) == 0
    assert sum(row["unverifiable"] for row in results) == 6
    summary = unread_target.summary(results)
    assert (summary["buckets_unverifiable"], summary["unverifiable"]) == (3, 6)
    nothing_left = Case(spark, target, mirrored, of_topics={"f": {"source_gap": 5 * MINUTE}})
    assert nothing_left.drill() == [], "there is nothing to compare with"
    assert nothing_left.summary()["unverifiable"] == 30


def test_a_difference_that_can_no_longer_be_read_is_suspected(spark: SparkSession) -> None:
    source, target, mirrored = whole()
    case = Case(spark, [*source, *target[4:]], mirrored)
    gone = case.drill([*source[10:], *target[4:]], source_gone=True)
    assert sum(row["missing"] for row in gone) == 0
    assert sum(row["unverifiable"] for row in gone) == 4
    changed = [altered(target[0], value=b"?"), *target[1:]]
    silent = Case(spark, [*source, *changed], mirrored)
    gone = silent.drill([one for one in changed if one.bucket], source_gone=True)
    assert [row["unverifiable"] for row in gone] == [1], "equal counts are no proof"


def test_samples_name_records_and_are_few(spark: SparkSession) -> None:
    source, target, mirrored = whole(120)
    damaged = [altered(target[0], value=b"?"), *target[41:], *target[100:102]]
    case = Case(spark, [*source, *damaged], mirrored)
    chosen = candidates(spark, case.judged)
    left = drill.leftovers(case.records, chosen, case.positions, MINUTE)
    found = drill.samples(left).collect()
    by_class = Counter((row["class"], row["side"]) for row in found)
    assert by_class == {
        ("missing", "source"): 20,
        ("duplicate", "target"): 2,
        ("corrupt", "source"): 1,
        ("corrupt", "target"): 1,
    }
    lost = next(row for row in found if row["class"] == "corrupt" and row["side"] == "source")
    assert (lost["partition"], lost["offset"], lost["timestamp_ms"]) == (0, 0, 0)
    assert (lost["key_bytes"], lost["value_bytes"]) == (2, 2)
    assert (len(lost["key_hash"]), len(lost["record_hash"])) == (16, 32)
