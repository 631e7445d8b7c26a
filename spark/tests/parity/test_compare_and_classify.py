"""What differs is found, named and counted; what does not differ is left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from parity_records import KEPT, MINUTE, Content, Record, classes, equal, placed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from test_digest import BATCH

from mirror_report.model import CLASSES
from mirror_report.parity import ACCOUNTABLE, BUCKET, LASTING, STATUSES
from mirror_report.parity.frames import classify, compare, digest, reach, status, totals
from mirror_report.parity.frames.leftovers import leftovers
from mirror_report.parity.frames.sql import table
from mirror_report.parity.results import summaries

CLASSES = tuple(name for name in CLASSES if name != "unverifiable")
NOTHING = dict.fromkeys((*CLASSES, "in_flight"), 0)

KEYS = (None, b"", b"a", b"b")
VALUES = (None, b"", b"1", b"2")
TIMES = (-1, 0, 1, MINUTE - 1, MINUTE, 2 * MINUTE)
HEADERS: tuple[Any, ...] = (None, (("h", b"1"),), (("h", None),))
FAULTS = (
    *("none",) * 12, "lose", "copy", "value", "headers", "both", "time", "minute", "move",
    "late", "invent",
)  # fmt: skip
CASES = 120
TARGET_PARTITIONS = 4
FIRST = 1000
"""First offset of the target that counts, where records were mirrored before the baseline."""
OLDER = 500
"""End of the target when the source was first observed, where it had lost its beginning."""

Log = list[tuple[int, Content]]
"""Partition and content, in the order of writing."""


def a_mirror(random: Random) -> tuple[Log, Log, dict[int, int]]:
    """A source log, what a bad mirror made of it, and the position it claims."""

    def content() -> Content:
        return tuple(map(random.choice, (KEYS, VALUES, TIMES, HEADERS)))  # type: ignore[return-value]

    source = [(random.randrange(2), content()) for _ in range(random.randrange(24))]
    target: Log = []
    waiting: Log = []
    for partition, original in source:
        fault = random.choice(FAULTS)
        key, value, timestamp, extra = original
        changed: dict[str, Content] = {
            "value": (key, (value or b"") + b"!", timestamp, extra),
            "headers": (key, value, timestamp, (*(extra or ()), ("new", b""))),
            "both": (key, b"?", timestamp, (("new", b""),)),
            "time": (key, value, timestamp + 1, extra),
            "minute": (key, value, timestamp + MINUTE, extra),
        }
        copied = (1 - partition if fault == "move" else partition, changed.get(fault, original))
        if fault == "late":
            waiting.append(copied)
        elif fault != "lose":
            target.append(copied)
        if fault == "copy":
            target.append(copied)
        if fault == "invent":
            target.append((partition, content()))
        if random.random() < 0.3:
            target += waiting
            waiting = []
    return source, target + waiting, {p: random.choice([0, 3, 24, 24]) for p in (0, 1)}


def log(flow: str, source: Log, target: Log) -> list[Record]:
    """Both logs; a mirror that keeps no partitions sends a record where its key leads."""
    records = []
    for side, some in (("source", source), ("target", target)):
        ends = Counter[int]({0: 7 * (side == "target")})
        for written, content in some:
            partition = written
            if side == "target" and not keeps(flow):
                partition = len(content[1] or b"") % 3 if content[0] is None else len(content[0])
            records.append(Record(flow, side, partition, ends[partition], content))
            ends[partition] += 1
    return records


def with_lanes(rows: DataFrame, records: list[Record]) -> DataFrame:
    return compare.with_lanes(
        rows, sorted({record.flow for record in records if keeps(record.flow)})
    )


def flow_of(number: int) -> str:
    """Every other case is of a mirror that keeps partitions."""
    return f"{KEPT if number % 2 else 'f'}{number}"


def positions(spark: SparkSession, values: dict[tuple[str, int], int]) -> DataFrame:
    return table(
        spark,
        compare.POSITIONS_SCHEMA,
        [
            {"flow": flow, "side": "source", "origin": "t", "partition": partition,
             "position": position}
            for (flow, partition), position in values.items()
        ],
    )  # fmt: skip


def once(spark: SparkSession) -> DataFrame:
    """Everything was seen at one look."""
    return table(spark, reach.LOOKS_SCHEMA, [])


def looks_of(spark: SparkSession, steps: Mapping[str, Step]) -> DataFrame:
    """Rows of :data:`reach.LOOKS_SCHEMA`."""
    rows = []
    for flow, step in steps.items():
        if step.looks:
            positions, ends, following = zip(*step.looks, strict=True)
            log = {"flow": flow, "origin": "t", "partition": 0}
            rows += [
                {**log, "side": "source", "looks": positions, "following": following, "ends": ends},
                {**log, "side": "target", "looks": ends},
            ]
    return table(spark, reach.LOOKS_SCHEMA, rows)


def offsets(steps: Mapping[str, Step]) -> list[dict[str, Any]]:
    """Rows of :data:`compare.POSITIONS_SCHEMA`."""
    source = [
        {"flow": flow, "side": "source", "origin": "t", "partition": partition,
         "position": position, "boundary": 0 if step.topic.get("unread") else None,
         "required": step.required.get(partition)}
        for flow, step in steps.items()
        for partition, position in step.mirrored.items()
    ]  # fmt: skip
    target = [
        {"flow": flow, "side": "target", "origin": "t", "partition": partition,
         "first": step.first, "older": step.older}
        for flow, step in steps.items()
        for partition in range(TARGET_PARTITIONS)
    ]  # fmt: skip
    return [*source, *target]


def topics(spark: SparkSession, flows: set[str], of_topics: dict[str, dict[str, Any]]) -> DataFrame:
    return table(
        spark,
        status.TOPICS_SCHEMA,
        [
            {"flow": flow, "topic": "t", "unread": False, **of_topics.get(flow, {})}
            for flow in flows
        ],
    )


@BATCH
@given(seed=st.integers(0, 2**32))
def test_what_is_found_is_what_multisets_and_sequences_say(
    spark: SparkSession, dialect: str, seed: int
) -> None:
    random = Random(seed)  # noqa: S311
    cases = {flow_of(number): a_mirror(random) for number in range(CASES)}
    records = [record for flow, case in cases.items() for record in log(flow, *case[:2])]
    mirrored = {
        (flow, partition): position
        for flow, case in cases.items()
        for partition, position in case[2].items()
    }
    expected = classes(records, mirrored)
    names = [name for name in NOTHING if name not in ("deleted_early", "expired")]
    assume(all(any(counted[name] for counted in expected.values()) for name in names))
    read = with_lanes(placed(spark, records), records).persist()
    at = positions(spark, mirrored)
    everywhere = table(
        spark,
        classify.CANDIDATES_SCHEMA,
        [
            {
                "flow": flow, "topic": "t", "lane": lane, "bucket": bucket, "pair": "p",
                "n_source": 0, "n_target": 0, "disordered": False,
                "source_gap": False, "target_gap": False,
                "source_gone": False, "target_gone": False,
            }
            for flow, lane, bucket in expected
        ],
    )  # fmt: skip
    left = leftovers(read, everywhere, at, once(spark)).groupBy(*BUCKET).agg(
        *(F.sum(name).alias(name) for name in names)
    )  # fmt: skip
    assert {
        (row["flow"], row["lane"], row["bucket"]): {name: row[name] for name in names}
        for row in left.collect()
    } == expected, dialect
    digests = compare.with_lanes(digest.digest(read), sorted(filter(keeps, cases)))
    assert {
        (row.flow, row.lane, row.bucket): (row.equal, row.mirrored, row.n_source, row.n_target)
        for row in compare.by_bucket(digests, at).collect()
    } == compared_by_hand(records, mirrored), dialect
    read.unpersist()


def keeps(flow: str) -> bool:
    return flow.startswith(KEPT)


def compared_by_hand(
    records: list[Record], mirrored: dict[tuple[str, int], int]
) -> dict[tuple[str, int, int], tuple[bool, bool, int, int]]:
    """Bucket -> whether its sides are equal, whether it is mirrored, and the records of each."""
    sides: dict[tuple[str, int, int], tuple[list[Record], list[Record]]] = {}
    behind = set()
    for record in records:
        sides.setdefault(record.where, ([], []))[record.side == "target"].append(record)
        if record.side == "source" and record.offset >= mirrored[record.flow, record.partition]:
            behind.add(record.where)
    return {
        where: (equal(*both), where not in behind, len(both[0]), len(both[1]))
        for where, both in sides.items()
    }


def whole(count: int = 30) -> tuple[list[Record], list[Record], dict[int, int]]:
    """A source of ``count`` records in three buckets, its faithful copy, and its positions."""
    content: list[Content] = [
        (b"k%d" % (i % 7), b"v%d" % i, (i % 3) * MINUTE + i, None) for i in range(count)
    ]
    source = [Record("f", "source", i % 2, i // 2, values) for i, values in enumerate(content)]
    target = [Record("f", "target", i % 4, i // 4, values) for i, values in enumerate(content)]
    return source, target, {0: count, 1: count}


def altered(record: Record, **content: Any) -> Record:
    names = ("key", "value", "timestamp", "headers")
    values = dict(zip(names, record.content, strict=True)) | content
    return replace(record, content=tuple(values[name] for name in names))  # type: ignore[arg-type]


def later(record: Record, milliseconds: int) -> Record:
    return altered(record, timestamp=record.content[2] + milliseconds)


Damage = Callable[[list[Record]], list[Record]]
FAULTS_BY_NAME: dict[str, tuple[Damage, dict[str, int]]] = {
    "nothing": (lambda t: t, {}),
    "missing": (lambda t: t[5:], {"missing": 5}),
    "duplicate": (lambda t: [*t, *t[:4]], {"duplicate": 4}),
    "twice over": (lambda t: [*t, t[0], t[0]], {"duplicate": 2}),
    "value": (
        lambda t: [*(altered(record, value=b"?") for record in t[:3]), *t[3:]],
        {"corrupt_value": 3},
    ),
    "value to null": (lambda t: [altered(t[0], value=None), *t[1:]], {"corrupt_value": 1}),
    "headers": (lambda t: [altered(t[0], headers=(("h", b""),)), *t[1:]], {"corrupt_headers": 1}),
    "value and headers": (
        lambda t: [altered(t[0], value=b"?", headers=(("h", b""),)), *t[1:]],
        {"corrupt_value": 1},
    ),
    "foreign": (lambda t: [*t, *(altered(record, key=b"alien") for record in t[:6])], {"extra": 6}),
    "key": (lambda t: [altered(t[0], key=None), *t[1:]], {"missing": 1, "extra": 1}),
    "time": (lambda t: [altered(t[0], timestamp=1), *t[1:]], {"altered_timestamp": 1}),
    "minute": (
        lambda t: [altered(t[0], timestamp=2 * MINUTE + 1), *t[1:]],
        {"altered_timestamp": 1},
    ),
    "a millisecond": (lambda t: [later(record, 1) for record in t], {"altered_timestamp": 30}),
    "a key by the distance of its neighbours": (
        lambda t: [later(record, 21) if record.content[0] == b"k0" else record for record in t],
        {"altered_timestamp": 5},
    ),
    "time and value": (
        lambda t: [altered(t[0], timestamp=1, value=b"?"), *t[1:]],
        {"missing": 1, "extra": 1},
    ),
    "one lost, one double": (lambda t: [*t[1:], t[3]], {"missing": 1, "duplicate": 1}),
    "two lost, one thrice": (
        lambda t: [*(record for record in t if record not in (t[0], t[3])), t[6], t[6]],
        {"missing": 2, "duplicate": 2},
    ),
    "values swapped": (
        lambda t: [
            altered(t[0], value=t[3].content[1]),
            *t[1:3],
            altered(t[3], value=t[0].content[1]),
            *t[4:],
        ],
        {"corrupt_value": 2},
    ),
    "a whole minute twice": (
        lambda t: [*t, *(record for record in t if record.bucket == MINUTE)],
        {"duplicate": 10},
    ),
}
"""What is done to a faithful copy, and what has to be found. The last four keep every count, but
for a minute that comes twice."""


def in_line(*written: int, lane: str = "source") -> list[Record]:
    """Records of three minutes side by side in one partition, in the order of their numbers."""
    content: list[Content] = [
        (b"k%d" % (i % 7), b"v%d" % i, i // 10 * MINUTE + i, None) for i in range(30)
    ]
    return [Record("f", lane, 0, at, content[i]) for at, i in enumerate(written or range(30))]


ORDERS: dict[str, tuple[list[int], dict[str, int], dict[str, int]]] = {
    f"{KEPT}-two swapped": ([1, 0, *range(2, 30)], {"reordered": 1}, {"reordered": 1}),
    f"{KEPT}-first last": ([*range(1, 10), 0, *range(10, 30)], {"reordered": 1}, {"reordered": 1}),
    f"{KEPT}-last first": (
        [9, *range(9), *range(10, 30)], {"reordered": 9}, {"reordered": 9},
    ),
    f"{KEPT}-lost and swapped": (
        [1, 0, *range(3, 30)], {"reordered": 1, "missing": 1}, {"reordered": 1, "missing": 1},
    ),
    f"{KEPT}-again from five on": ([*range(10), *range(5, 30)], {"duplicate": 5}, {}),
    f"{KEPT}-one early and in its place": ([5, *range(30)], {"duplicate": 1}, {}),
    "two of a key swapped": ([7, *range(1, 7), 0, *range(8, 30)], {"reordered": 1}, {}),
    "two of other keys swapped": ([1, 0, *range(2, 30)], {}, {}),
}  # fmt: skip
"""Numbers of the records as the target has them, what is found, and what the next run says."""


def beats(side: str, at: int, *seconds: int) -> list[Record]:
    """Records of partition 0 that only differ in their times.

    :param at: first offset; ``seconds``: of each, when.
    """
    return [
        Record("f", side, 0, offset, (b"beat", b"", 1000 * second, None))
        for offset, second in enumerate(seconds, at)
    ]


BEATS: dict[str, tuple[Step, dict[str, int]]] = {}
"""Logs of heartbeats, and what is found. They are filled in below :class:`Step`."""


@dataclass(frozen=True)
class Step:
    """One comparison of one mirror.

    :param records: what both logs hold.
    :param mirrored: source partition -> next offset to mirror.
    :param topic: what is known of the topic, as in :data:`status.TOPICS_SCHEMA`.
    :param seen: what classification reads, if it is something else.
    :param required: source partition -> below it records may have been copied before the baseline;
        ``first``, ``older``: offsets of the target, in every partition.
    :param looks: committed position, end of the target and then of the source, of partition 0, at
        each look; none: there was one.
    :param untold: numbers of the steps whose report was not written.
    :param hidden: what it cannot read, and ``allowed_from_ms`` why, as in
        :data:`classify.CANDIDATES_SCHEMA`; ``left``: how much of each bucket, by its columns there.
    """

    records: list[Record]
    mirrored: Mapping[int, int]
    topic: Mapping[str, Any] = field(default_factory=dict)
    seen: list[Record] | None = None
    hidden: tuple[str, ...] = ()
    allowed_from_ms: int | None = None
    left: Mapping[str, int] = field(default_factory=dict)
    required: Mapping[int, int] = field(default_factory=dict)
    first: int | None = None
    older: int | None = None
    looks: tuple[tuple[int, int, int], ...] = ()
    untold: tuple[str, ...] = ()


for _kind in ("beats", f"{KEPT}-beats"):
    BEATS |= {
        f"{_kind} after the look that misses them": (
            Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 9, 9)], {0: 3},
                 looks=((3, 1, 3), (3, 3, 3))),
            {"missing": 2, "extra": 2},
        ),
        f"{_kind} before that look": (
            Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 9, 10)], {0: 3},
                 looks=((3, 3, 3),)),
            {"altered_timestamp": 2},
        ),
        f"{_kind} before there was a source of them": (
            Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 9, 1)], {0: 3},
                 looks=((0, 1, 0), (3, 2, 3))),
            {"missing": 2, "extra": 1},
        ),
        f"{_kind} that are as many as two looks miss": (
            Step([*beats("source", 0, *range(1, 6)), *beats("target", 0, *range(30, 35))], {0: 5},
                 looks=((2, 0, 2), (5, 5, 5))),
            {"missing": 2, "extra": 2, "altered_timestamp": 3},
        ),
        f"{_kind} of one time, of which the first were lost": (
            Step([*beats("source", 0, 1, 1, 1, 1), *beats("target", 0, 1, 1, 1, 9)], {0: 4},
                 looks=((2, 1, 2), (4, 4, 4))),
            {"missing": 1, "extra": 1},
        ),
        f"{_kind} of one time, of which the last were lost": (
            Step([*beats("source", 0, 1, 1, 1, 1), *beats("target", 0, 1, 1, 1, 9)], {0: 4},
                 looks=((2, 2, 2), (4, 4, 4))),
            {"altered_timestamp": 1},
        ),
        f"{_kind} of which there are more before than beside them": (
            Step([*beats("source", 0, 1, 2, 3, 4), *beats("target", 0, 30, 31, 1, 32)], {0: 4},
                 looks=((1, 3, 1), (4, 4, 4))),
            {"missing": 2, "extra": 2, "altered_timestamp": 1},
        ),
        f"{_kind} that arrive late and unaltered": (
            Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 2, 3)], {0: 3},
                 looks=((3, 1, 3), (3, 3, 3))),
            {},
        ),
    }  # fmt: skip
BEATS |= {
    f"{KEPT}-beats past the copy of the next": (
        Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 3, 9)], {0: 3}),
        {"missing": 1, "extra": 1},
    ),
    f"{KEPT}-beats ahead of the copy of the one before": (
        Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 9, 1, 3)], {0: 3}),
        {"missing": 1, "extra": 1},
    ),
    f"{KEPT}-beats of which one is in their place": (
        Step([*beats("source", 0, 1, 2, 3, 4, 5), *beats("target", 0, 20, 1, 21, 5)], {0: 5}),
        {"missing": 2, "extra": 1, "altered_timestamp": 1},
    ),
    f"{KEPT}-beats in their place": (
        Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 9, 3)], {0: 3}),
        {"altered_timestamp": 1},
    ),
    f"{KEPT}-beats of a mirror that was set back": (
        Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 3, 9)], {0: 3},
             looks=((1, 2, 3), (1, 2, 3), (3, 3, 3))),
        {"altered_timestamp": 1},
    ),
    f"{KEPT}-beats after one that was repaired": (
        Step([*beats("source", 0, 1, 2, 3), *beats("target", 0, 1, 9, 2)], {0: 3},
             looks=((3, 2, 3), (3, 3, 3))),
        {"altered_timestamp": 1},
    ),
    "beats that the source may have outlived": (
        Step([*beats("source", 5, 1, 2, 3), *beats("target", 0, 0, 1)], {0: 8}, older=1,
             looks=((8, 2, 8),)),
        {"unverifiable": 1, "missing": 1},
    ),
    f"{KEPT}-beats that the source has outlived": (
        Step([*beats("source", 5, 1, 2, 3), *beats("target", 0, 0, 1)], {0: 8}, older=1,
             looks=((8, 2, 8),)),
        {"missing": 2},
    ),
    "beats that are younger than what the source has outlived": (
        Step([*beats("source", 5, 1, 2, 3), *beats("target", 0, 0, 1)], {0: 8}, older=1,
             looks=((6, 2, 6), (8, 2, 8))),
        {"missing": 2},
    ),
}  # fmt: skip


@dataclass
class Outcome:
    """What one step said of one mirror: before classification, by it, after it, and later.

    ``later``: as a second run finds it, if nothing has changed and nothing is classified again.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    later: dict[str, Any]
    classified: list[dict[str, Any]]
    samples: list[dict[str, Any]]

    def found(self) -> list[dict[str, int]]:
        """What classification found, bucket by bucket."""
        return [{name: row[name] for name in CLASSES} for row in self.classified]


def scenarios() -> dict[str, list[Step]]:
    """Mirrors and what happens to them; all are compared at once, each in a flow of its own."""
    source, target, at = whole()
    same = [replace(record, side="target") for record in source]
    moved = [replace(same[0], partition=1, offset=99), *same[1:]]
    half = [record for record in same if record.partition]
    lost = next(record for record in target if record.bucket == MINUTE)
    twice = Step([*source, *target, *target[:4]], at)
    two_missing = Step([*source, *target[2:]], at)
    late = Record("f", "source", 0, 99, (b"k", b"late", 3, None))
    twice_once = Step([*source, *target, target[0], target[3]], at)
    unmirrored = Step([late, *twice_once.records], at, untold=("0",))
    gap = 5 * MINUTE
    altered_one = [altered(target[0], value=b"?"), *target[1:]]
    many, copies, _ = whole(120)
    # Its copy is where records are not mirrored yet: in the last minute.
    retimed = [altered(target[0], timestamp=2 * MINUTE + 5), *target[1:]]
    far_off = [altered(target[0], timestamp=300 * MINUTE), *target[1:]]
    joins = Record("f", "source", 0, 99, (b"k", b"joins", 300 * MINUTE + 1, None))
    # Offsets 12 and up of both source partitions have not been mirrored: 6 records.
    kept = {record.content for record in source if record.offset < 12}
    ahead = Step([*source[:-1], *target], at, seen=[*source, *target])
    # The first three source offsets of each partition may have been copied before the baseline.
    optional = {0: 3, 1: 3}
    open_ = {record.content for record in source if record.offset < optional[record.partition]}
    before = [record for record in target if record.content in open_]
    lost_before = {record.content for record in before[:2]}
    above = [
        replace(record, offset=record.offset + FIRST) for record in target if record not in before
    ]
    others = [
        replace(record, content=(b"k", b"other %d" % n, minute, None))
        for n, (record, minute) in enumerate(zip(target[:4], (5, 5, 9 * MINUTE, 9 * MINUTE),
                                              strict=True))
    ]  # fmt: skip
    of_second = [record for record in target if record.bucket == MINUTE]
    lost_first = [
        Record("f", "source", 0, 80 + n, (b"k", b"lost %d" % n, 60 + n, None)) for n in range(3)
    ]
    swapped = Step([*in_line(), *in_line(1, 0, *range(2, 30), lane="target")], {0: 99})
    # A late record of each minute comes when the source has removed the first ten of all.
    lates = [
        Record("f", side, 0, 90 + minute, (b"k", b"late %d" % minute, minute * MINUTE + 50, None))
        for side in ("source", "target") for minute in range(3)
    ]  # fmt: skip
    rest = [record for record in source if record.offset >= 5]

    def gone_since(*damaged: Record) -> list[Step]:
        return [
            Step([*source, *damaged], {0: 99, 1: 99}),
            Step([*source, *damaged, *lates], {0: 99, 1: 99}, seen=[*rest, *damaged, *lates],
                 hidden=("source_gone",)),
        ]  # fmt: skip

    return {
        "lost and then gone": gone_since(*target[5:]),
        f"{KEPT}-lost and then gone": gone_since(*same[5:]),
        "corrupt and then gone": gone_since(
            altered(target[0], value=b"?"), altered(target[1], headers=(("h", b""),)), *target[2:]
        ),
        f"{KEPT}-moved and then gone": gone_since(*moved),
        f"{KEPT}-swapped, and others since": [
            swapped, replace(swapped, records=[*swapped.records, *lates])
        ],
        f"{KEPT}-swapped and then gone": [
            swapped,
            replace(swapped, records=[*swapped.records, *lates],
                    seen=[*swapped.records[5:], *lates], hidden=("source_gone",)),
        ],
        "lost, gone, and some of it written again": [
            *gone_since(*target[5:]),
            Step([*source, *target[2:], *lates], {0: 99, 1: 99},
                 seen=[*rest, *target[2:], *lates], hidden=("source_gone",)),
        ],
        "lost, mended and then gone": [
            *gone_since(*target[5:])[:1],
            Step([*source, *target, *lates], {0: 99, 1: 99}, seen=[*rest, *target, *lates],
                 hidden=("source_gone",)),
        ],
        "corrupt and then gone on the target": [
            Step([*source, altered(target[0], value=b"?"), *target[1:]], {0: 99, 1: 99}),
            Step([*source, altered(target[0], value=b"?"), *target[1:], *lates[:-1]],
                 {0: 99, 1: 99}, seen=[*source, *target[10:], *lates[:-1]],
                 hidden=("target_gone",), left={"target_most": 0, "target_own": 10},
                 allowed_from_ms=gap),
        ],
        "left between others": [
            Step([*source, *target[4:]], at, seen=[*source, *target[5:]], hidden=("target_gone",),
                 left={"target_most": 0, "target_own": 5}, allowed_from_ms=gap)
        ],
        "left since, before it was read": [
            Step([*source, *target[6:]], at, hidden=("target_gone",),
                 left={"target_most": 0, "target_own": 0, "target_unread": 3}, allowed_from_ms=gap)
        ],
        "left of a minute that was classified before": [
            Step([*source, *(r for r in target if r not in of_second[:3])], at,
                 {"target_gap": gap, "target_left": '{"-1": 3}'}, hidden=("target_gap",),
                 allowed_from_ms=gap),
            Step([*source, *lost_first, *(r for r in target if r not in of_second[:3])],
                 {0: 99, 1: 99}, {"target_gap": gap, "target_left": '{"-1": 3}'},
                 hidden=("target_gap",), allowed_from_ms=gap),
        ],
        **{kind: [Step([*source, *damage(target)], at)]
           for kind, (damage, _) in FAULTS_BY_NAME.items()},
        **{name: [Step([*in_line(), *in_line(*written, lane="target")], {0: 30})] * 2
           for name, (written, _, _) in ORDERS.items()},
        **{name: [step] for name, (step, _) in BEATS.items()},
        "spread": [Step([*source, *moved], at)],
        f"{KEPT}-whole": [Step([*source, *same], at)],
        f"{KEPT}-moved": [Step([*source, *moved], at)],
        "one behind": [Step([*source, *half], {0: 0, 1: 30})],
        f"{KEPT}-one behind": [Step([*source, *half], {0: 0, 1: 30})],
        "one minute": [Step([*source, *(record for record in target if record is not lost)], at)],
        "past the position": [
            Step([*source, *(t for t in target if t.content in kept)], {0: 12, 1: 12})
        ],
        "no position": [Step(source, {})],
        "unread": [Step([*source, *target[1:]], at, {"unread": True})],
        "copied before": [
            Step([*source, *above], at, required=optional, first=FIRST, seen=[*source, *above,
                 *(record for record in before if record.content not in lost_before)])
        ],
        "lost after": [
            Step([*source, *above[2:]], at, required=optional, first=FIRST,
                 seen=[*source, *above[2:], *before, replace(above[0], offset=9)])
        ],
        "altered around": [
            Step([*source, *above, altered(above[0], key=before[0].content[0],
                  value=b"?", timestamp=before[0].content[2])], at, required=optional, first=FIRST)
        ],
        "older than the source": [
            Step([*source, *others, *target, target[3]], at, older=OLDER)
        ],
        "newer than the first observation": [
            Step([*source, *target, *(replace(record, offset=OLDER + 1) for record in others)], at,
                 older=OLDER)
        ],
        "ahead": [ahead, ahead],
        "twice": [twice, twice, Step([*twice.records, target[0]], at)],
        "two missing": [
            two_missing, two_missing, Step([*source, late, *target[2:]], at),
            Step([*source, *target], at),
        ],
        "two copies that nobody was told of, then not due": [twice_once, unmirrored],
        "source expired": [
            Step([*source[6:], *target], at, {"source_gap": gap}, hidden=("source_gap",))
        ],
        "target expired": [
            Step([*source, *target[6:]], at, {"target_gap": gap}, hidden=("target_gap",))
        ],
        f"{KEPT}-moved before due": [
            Step([*source, *moved], {0: 30, 1: 0}), Step([*source, *moved], at),
        ],
        "altered before due": [
            Step([*source, *retimed], {0: 13, 1: 14}), Step([*source, *retimed], at),
        ],
        "altered and then touched": [
            Step([*source, *retimed], at), Step([*source, *retimed, target[3]], at),
        ],
        "altered by hours and then joined": [
            Step([*source, *far_off], at),
            Step([*source, joins, *far_off, replace(joins, side="target")], {0: 100, 1: 100}),
        ],
        "early and late": [
            Step([*source, *target[6:]], at, {"target_gap": gap}, hidden=("target_gap",),
                 allowed_from_ms=MINUTE)
        ],
        "more than left": [
            Step([*source, *target[6:]], at, {"target_gap": gap, "target_left": '{"-1": 4}'},
                 hidden=("target_gap",), allowed_from_ms=gap)
        ],
        "a minute later than what left": [
            Step([*source, *(r for r in target if r.bucket == MINUTE)], at,
                 {"target_gap": gap, "target_left": '{"-1": 10}'}, hidden=("target_gap",),
                 allowed_from_ms=gap)
        ],
        "known before some left": [
            Step([*source, *(r for r in target if r.bucket != 2 * MINUTE)], at),
            Step([*source, *(r for r in target if r.bucket != 2 * MINUTE)][:-3], at,
                 {"target_gap": gap, "target_left": '{"-1": 3}'}, hidden=("target_gap",),
                 allowed_from_ms=gap),
        ],
        f"{KEPT}-left elsewhere": [
            Step([*source, *same[6:]], at, {"target_gap": gap, "target_left": '{"0": 9}'},
                 hidden=("target_gap",), allowed_from_ms=gap)
        ],
        "all expired": [Step(target, at, {"source_gap": gap})],
        "source gone": [
            Step([*source, *target[4:]], at, seen=[*source[10:], *target[4:]],
                 hidden=("source_gone",))
        ],
        "twice and gone": [
            Step([*source, *twice_once.records[30:]], at,
                 seen=[*source[10:], *twice_once.records[30:]], hidden=("source_gone",))
        ],
        "altered and gone": [
            Step([*source, *altered_one], at,
                 seen=[record for record in altered_one if record.bucket],
                 hidden=("source_gone",))
        ],
        "many": [
            Step([*many, altered(copies[0], value=b"?"), *copies[41:], *copies[100:102]],
                 {0: 120, 1: 120})
        ],
    }  # fmt: skip


def compared(
    spark: SparkSession, steps: dict[str, Step], earlier: list[dict[str, Any]], run_id: str
) -> dict[str, Outcome]:
    """One comparison of several mirrors, as the engine makes it, without Kafka."""

    def rows(of: Callable[[Step], list[Record]]) -> DataFrame:
        all_of_them = [replace(r, flow=flow) for flow, step in steps.items() for r in of(step)]
        return with_lanes(placed(spark, all_of_them), all_of_them)

    mirrored = table(spark, compare.POSITIONS_SCHEMA, offsets(steps))
    known = topics(spark, set(steps), {flow: dict(step.topic) for flow, step in steps.items()})
    records = rows(lambda step: step.records)
    kept = sorted(flow for flow in steps if keeps(flow))
    digests = compare.with_lanes(digest.digest(records), kept)
    buckets = compare.by_bucket(digests, mirrored).persist()

    def judged(results: list[dict[str, Any]], told: bool = False) -> DataFrame:
        old = table(spark, status.RESULTS_SCHEMA, results)
        if told:
            return status.statuses(buckets, known, old, f"after {run_id}")
        untold = {flow: step.untold for flow, step in steps.items()}
        return status.statuses(buckets, known, old, run_id, untold)

    def summary(results: list[dict[str, Any]], told: bool = False) -> dict[str, dict[str, Any]]:
        found = summaries.by_topic(totals.summarise(judged(results, told), MINUTE).collect())
        return {row["flow"]: row for row in found}

    chosen = table(
        spark,
        classify.CANDIDATES_SCHEMA,
        [
            {
                **classify.candidate(row),
                **{
                    name: name in steps[row["flow"]].hidden
                    for name in ("source_gap", "target_gap", "source_gone", "target_gone")
                },
                "allowed_from_ms": steps[row["flow"]].allowed_from_ms,
                **steps[row["flow"]].left,
            }
            for row in judged(earlier).filter("candidate").collect()
        ],
    )
    seen = rows(lambda step: step.records if step.seen is None else step.seen)
    left = leftovers(seen, chosen, mirrored, looks_of(spark, steps)).persist()
    classified = [row.asDict() for row in classify.outcome(left, chosen, run_id).collect()]
    samples = [row.asDict() for row in classify.samples(left).collect()]
    results = {tuple(row[name] for name in BUCKET): row for row in [*earlier, *classified]}
    before, after = summary(earlier), summary(list(results.values()))
    earlier[:] = results.values()
    later = summary(earlier, told=True)
    return {
        flow: Outcome(
            before[flow], after[flow], later[flow],
            sorted((row for row in classified if row["flow"] == flow),
                   key=lambda row: row["bucket"]),
            [row for row in samples if row["flow"] == flow],
        )
        for flow in steps
    }  # fmt: skip


def test_a_record_beyond_a_cut_by_offsets_is_out_of_order_and_not_moved(
    spark: SparkSession,
) -> None:
    """The fourth of twenty comes sixteenth, and pushes the eleventh to this side of the cut."""
    flow = f"{KEPT}-cut"
    source = [Record(flow, "source", 0, i, (b"k", b"%d" % i, -1, None)) for i in range(20)]
    order = [*range(3), *range(4, 16), 3, *range(16, 20)]
    target = [Record(flow, "target", 0, at, source[i].content) for at, i in enumerate(order)]
    cut = placed(spark, [*source, *target]).withColumns(
        {"bucket": F.expr("offset div 10"), "compared_ms": F.lit(None).cast("bigint")}
    )
    clear = dict.fromkeys(("source_gap", "target_gap", "source_gone", "target_gone"), False)
    both = [
        {"flow": flow, "topic": "t", "lane": 0, "bucket": bucket, "pair": "p", "n_source": 10,
         "n_target": 10, "disordered": False, **clear}
        for bucket in (0, 1)
    ]  # fmt: skip
    candidates = table(spark, classify.CANDIDATES_SCHEMA, both)
    at = positions(spark, {(flow, 0): 20})
    left = leftovers(compare.with_lanes(cut, [flow]), candidates, at, once(spark))
    found = classify.outcome(left, candidates, "run").orderBy("bucket").collect()
    assert [wrong(row.asDict()) for row in found] == [{"reordered": 1}, {"reordered": 1}]


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, list[Outcome]]:
    """What is said of every scenario, step by step."""
    found: dict[str, list[Outcome]] = {name: [] for name in scenarios()}
    results: list[dict[str, Any]] = []
    for number in range(max(map(len, scenarios().values()))):
        steps = {name: some[number] for name, some in scenarios().items() if number < len(some)}
        for name, outcome in compared(spark, steps, results, str(number)).items():
            found[name].append(outcome)
    return found


def wrong(found: Mapping[str, Any]) -> dict[str, int]:
    """Classes of which there are records."""
    return {name: found[name] for name in CLASSES if found[name]}


@pytest.mark.parametrize("kind", FAULTS_BY_NAME)
def test_each_fault_is_found_and_nothing_else(
    outcomes: dict[str, list[Outcome]], kind: str
) -> None:
    expected = FAULTS_BY_NAME[kind][1]
    after = outcomes[kind][0].after
    assert wrong(after) == expected
    assert after["source_records"] == 30
    assert after["candidates"] == 0
    lasting = sum(expected.get(name, 0) for name in LASTING)
    assert after["verified_records"] == 30 - lasting
    assert (after["buckets_mismatch"] == 0) == (kind == "nothing")
    assert (after["verified_through_ms"] == 3 * MINUTE) == (kind == "nothing")
    assert after["newest_due_ms"] == 2 * MINUTE + 29


@pytest.mark.parametrize("kind", BEATS)
def test_of_equal_content_only_what_lies_where_a_copy_may_lie_is_one(
    outcomes: dict[str, list[Outcome]], kind: str
) -> None:
    (outcome,) = outcomes[kind]
    assert {n: outcome.after[n] for n in ("unverifiable", *CLASSES) if outcome.after[n]} == (
        BEATS[kind][1]
    )


LASTS = {
    "lost and then gone": {"missing": 5},
    f"{KEPT}-lost and then gone": {"missing": 5},
    "corrupt and then gone": {"corrupt_value": 1, "corrupt_headers": 1},
    f"{KEPT}-moved and then gone": {"moved": 1, "unverifiable": 1},
    f"{KEPT}-swapped, and others since": {"reordered": 1},
    f"{KEPT}-swapped and then gone": {"reordered": 1},
    "lost, gone, and some of it written again": {"missing": 2, "unverifiable": 2},
    "lost, mended and then gone": {},
    "corrupt and then gone on the target": {
        "corrupt_value": 1,
        "missing": 1,
        "expired": 7,
        "unverifiable": 6,
    },
    "left between others": {"missing": 4, "expired": 1, "unverifiable": 1},
    "left since, before it was read": {"missing": 3, "expired": 3},
    "left of a minute that was classified before": {"missing": 3, "expired": 3},
}
"""What is said in the end of what was known to be lost, or left the target."""


@pytest.mark.parametrize("name", LASTS)
def test_what_was_lost_stays_and_no_more_expires_than_left(
    outcomes: dict[str, list[Outcome]], name: str
) -> None:
    last = outcomes[name][-1].after
    assert {n: last[n] for n in ("unverifiable", *CLASSES) if last[n]} == LASTS[name]


def test_what_the_next_run_would_say_is_foretold(outcomes: dict[str, list[Outcome]]) -> None:
    foretold = ("source_records", "verified_records", "in_flight_records", "skipped_records",
                "verified_through_ms", *CLASSES, *(f"accounted_{name}" for name in ACCOUNTABLE),
                *(f"buckets_{name}" for name in STATUSES))  # fmt: skip
    for name, steps in outcomes.items():
        for step in steps:
            then = summaries.as_next(step.after)
            assert {n: then[n] for n in foretold} == {n: step.later[n] for n in foretold}, name
            hours = {lane: [hour[:2] for hour in known["hours"]]
                     for lane, known in then["lanes"].items()}  # fmt: skip
            assert hours == {lane: [hour[:2] for hour in known["hours"]]
                             for lane, known in step.later["lanes"].items()}, name  # fmt: skip


def test_a_copy_of_what_is_not_due_is_accounted_and_in_flight_afterwards(
    outcomes: dict[str, list[Outcome]],
) -> None:
    untold, undue = outcomes["two copies that nobody was told of, then not due"]
    assert (untold.after["duplicate"], untold.after["next_buckets_verified"]) == (2, 3)
    assert (undue.after["duplicate"], undue.after["buckets_mismatch"]) == (2, 1)
    then = summaries.as_next(undue.after)
    assert (then["duplicate"], then["accounted_duplicate"]) == (0, 2)
    assert (then["buckets_verified"], then["buckets_in_flight"]) == (2, 1)
    assert then["in_flight_records"] == 11


@pytest.mark.parametrize("kind", ORDERS)
def test_order_is_that_of_a_partition_or_else_of_a_key(
    outcomes: dict[str, list[Outcome]], kind: str
) -> None:
    _, expected, later = ORDERS[kind]
    first, again = (outcome.after for outcome in outcomes[kind])
    assert (wrong(first), wrong(again)) == (expected, later)
    (name,) = first["lanes"]
    assert name == ("0" if keeps(kind) else "*")
    assert first["lanes"][name]["counts"] == expected
    accounted = {name: again[f"accounted_{name}"] for name in ACCOUNTABLE}
    assert accounted == {name: expected.get(name, 0) - later.get(name, 0) for name in accounted}
    assert outcomes[kind][1].classified == [], "settled"
    assert wrong(summaries.as_next(first)) == later, "as predicted"
    assert again["buckets_verified"] == (2 if later else 3)
    assert again["verified_records"] == 30 - sum(later.values())


def test_a_record_on_another_partition_is_found_where_partitions_are_kept(
    outcomes: dict[str, list[Outcome]],
) -> None:
    flows = ("spread", f"{KEPT}-whole", f"{KEPT}-moved")
    assert {
        (row["flow"], row["lane"]): {name: row[name] for name in CLASSES if row[name]}
        for flow in flows
        for row in outcomes[flow][0].classified
    } == {(f"{KEPT}-moved", 0): {"moved": 1}, (f"{KEPT}-moved", 1): {}}
    summary = {flow: outcomes[flow][0].after for flow in flows}
    verified = {flow: row["buckets_verified"] for flow, row in summary.items()}
    assert verified == {"spread": 3, f"{KEPT}-whole": 6, f"{KEPT}-moved": 5}
    assert summary[f"{KEPT}-moved"]["verified_records"] == 29
    assert summary[f"{KEPT}-moved"]["verified_through_ms"] is None, "of all partitions"
    assert {row["source_records"] for row in summary.values()} == {30}


def test_one_partition_that_lags_does_not_keep_the_others_from_being_due(
    outcomes: dict[str, list[Outcome]],
) -> None:
    spread, kept = (outcomes[flow][0].after for flow in ("one behind", f"{KEPT}-one behind"))
    assert [row["buckets_in_flight"] for row in (spread, kept)] == [3, 3]
    assert [row["buckets_verified"] for row in (spread, kept)] == [0, 3]
    assert kept["in_flight_records"] == kept["verified_records"] == 15


def test_a_fault_of_one_minute_leaves_the_others_verified(
    outcomes: dict[str, list[Outcome]],
) -> None:
    summary = outcomes["one minute"][0].after
    assert (summary["buckets_verified"], summary["buckets_mismatch"]) == (2, 1)
    assert summary["verified_through_ms"] == MINUTE


@pytest.mark.parametrize("flow", ["past the position", "no position"])
def test_what_is_not_due_is_in_flight_and_not_missing(
    outcomes: dict[str, list[Outcome]], flow: str
) -> None:
    (outcome,) = outcomes[flow]
    assert outcome.classified == []
    assert (outcome.after["buckets_in_flight"], outcome.after["in_flight_records"]) == (3, 30)
    assert wrong(outcome.after) == {}
    assert outcome.after["newest_due_ms"] is None


def test_while_records_are_unread_what_agrees_holds_and_what_differs_is_in_flight(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["unread"]
    assert outcome.classified == []
    assert (outcome.after["buckets_in_flight"], outcome.after["in_flight_records"]) == (1, 10)
    assert (outcome.after["buckets_verified"], outcome.after["verified_records"]) == (2, 20)
    assert wrong(outcome.after) == {}


def test_what_was_copied_before_the_baseline_is_found_there_or_skipped(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["copied before"]
    assert wrong(outcome.after) == {}
    assert (outcome.after["skipped_records"], outcome.after["verified_records"]) == (2, 28)
    assert (outcome.after["buckets_verified"], outcome.after["candidates"]) == (3, 0)
    assert outcome.after["verified_through_ms"] == 3 * MINUTE


def test_what_has_to_come_after_the_baseline_is_missing_if_it_is_nowhere(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["lost after"]
    assert wrong(outcome.after) == {"missing": 1}, "of two one lies below the first offset"
    assert (outcome.after["skipped_records"], outcome.after["verified_records"]) == (0, 29)


def test_an_altered_copy_of_an_optional_record_is_reported(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["altered around"]
    assert wrong(outcome.after) == {"corrupt_value": 1}
    assert outcome.after["skipped_records"] == 5


def test_copies_of_what_the_source_had_lost_at_the_first_observation_are_no_alarm(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["older than the source"]
    assert wrong(outcome.after) == {}
    assert (outcome.after["older_records"], outcome.after["verified_records"]) == (5, 30)
    assert outcome.after["buckets_skipped"] == 1, "a minute of which the source holds nothing"
    (later,) = outcomes["newer than the first observation"]
    assert wrong(later.after) == {"extra": 4}
    assert later.after["older_records"] == 0


def test_a_copy_seen_only_by_classification_is_no_difference(
    outcomes: dict[str, list[Outcome]],
) -> None:
    """The target ran ahead of the source snapshot; fresh snapshots of both agree."""
    first, again = outcomes["ahead"]
    assert first.found() == [dict.fromkeys(CLASSES, 0)]
    assert (first.after["buckets_verified"], first.after["buckets_in_flight"]) == (2, 1)
    assert first.after["verified_through_ms"] == 2 * MINUTE
    assert again.before["candidates"] == 1, "undecided buckets are compared again"


@pytest.mark.parametrize("boundary", [None, 30, 20])
@pytest.mark.parametrize("prefix", ["", "sliced-"])
def test_what_was_met_and_is_not_committed_is_not_verified(
    spark: SparkSession, prefix: str, boundary: int | None
) -> None:
    """What slices found holds until the bucket is due, and settles nothing then."""
    contents: list[Content] = [(b"k", b"%d" % i, i, None) for i in range(30)]
    target = [*contents[:28], (b"k", b"!", 28, None)]
    logs = {"source": contents, "target": target}
    records = [Record("f", side, 0, offset, content) for side, some in logs.items()
               for offset, content in enumerate(some)]  # fmt: skip
    digests = compare.with_lanes(digest.digest(placed(spark, records)), [])
    position = {"flow": "f", "side": "source", "origin": "t", "partition": 0,
                "position": 30, "boundary": boundary}  # fmt: skip
    buckets = compare.by_bucket(digests, table(spark, compare.POSITIONS_SCHEMA, [position]))
    (bucket,) = buckets.select(*BUCKET, "pair").collect()
    none = dict.fromkeys((*CLASSES, "unverifiable", *status.BESIDE), 0)
    found = {**bucket.asDict(), **none, "pair": prefix + bucket["pair"], "run_id": "run",
             "corrupt_value": 1, "in_flight": 4,
             **{f"new_{name}": 0 for name in ACCOUNTABLE}}  # fmt: skip
    known = topics(spark, {"f"}, {"f": {"unread": boundary is not None}})
    judged = status.statuses(buckets, known, table(spark, status.RESULTS_SCHEMA, [found]), "run")
    (row,) = summaries.by_topic(totals.summarise(judged, MINUTE).collect())
    waits = bool(prefix) and boundary != 20
    numbers = (row["verified_records"], row["in_flight_records"], row["candidates"])
    assert numbers == ((0, 29, 1) if waits else (25, 4, 0))


def test_duplicates_are_new_once_and_accounted_afterwards(
    outcomes: dict[str, list[Outcome]],
) -> None:
    first, second, third = outcomes["twice"]
    assert (first.after["duplicate"], first.after["accounted_duplicate"]) == (4, 0)
    assert first.after["buckets_mismatch"] == first.after["next_buckets_verified"] == 3
    assert first.after["next_verified_through_ms"] == 3 * MINUTE
    assert second.classified == [], "an unchanged bucket is not classified again"
    assert (second.after["duplicate"], second.after["accounted_duplicate"]) == (0, 4)
    assert second.after["buckets_verified"] == 3
    assert second.after["verified_through_ms"] == 3 * MINUTE
    assert [(row["duplicate"], row["new_duplicate"]) for row in third.classified] == [(3, 1)]
    assert (third.after["duplicate"], third.after["accounted_duplicate"]) == (1, 4)


def test_missing_records_stay_missing_until_they_arrive(outcomes: dict[str, list[Outcome]]) -> None:
    _, later, undue, arrived = outcomes["two missing"]
    assert later.classified == []
    assert later.after["missing"] == 2
    assert undue.classified == [], "a record not mirrored yet keeps its bucket from being due"
    assert undue.after["missing"] == 2
    assert arrived.classified == []
    assert (arrived.after["missing"], arrived.after["buckets_verified"]) == (0, 3)


@pytest.mark.parametrize(("side", "found"), [("source", "extra"), ("target", "missing")])
def test_what_expired_before_it_was_read_is_unverifiable(
    outcomes: dict[str, list[Outcome]], side: str, found: str
) -> None:
    (outcome,) = outcomes[f"{side} expired"]
    assert sum(row[found] for row in outcome.classified) == 0
    assert sum(row["unverifiable"] for row in outcome.classified) == 6
    assert (outcome.after["buckets_unverifiable"], outcome.after["unverifiable"]) == (3, 6)


def test_what_the_target_removed_is_classified_by_what_its_retention_allows(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["early and late"]
    assert wrong(outcome.after) == {"expired": 2, "deleted_early": 4}
    assert (outcome.after["buckets_verified"], outcome.after["verified_records"]) == (1, 24)


@pytest.mark.parametrize(
    ("flow", "found"),
    [
        ("more than left", {"expired": 4, "missing": 2}),
        # A minute that left whole is counted by its offsets alone.
        ("a minute later than what left", {"missing": 10}),
        # Three of six were in the partition of which some left.
        (f"{KEPT}-left elsewhere", {"expired": 3, "missing": 3}),
    ],
)
def test_no_more_records_expired_unread_than_offsets_left(
    outcomes: dict[str, list[Outcome]], flow: str, found: dict[str, int]
) -> None:
    (outcome,) = outcomes[flow]
    assert wrong(outcome.after) == found


def test_a_loss_that_was_known_before_others_left_unread_stays_one(
    outcomes: dict[str, list[Outcome]],
) -> None:
    first, then = outcomes["known before some left"]
    assert wrong(first.after) == {"missing": 10}
    assert wrong(then.after) == {"missing": 10, "expired": 3}


@pytest.mark.parametrize(
    ("flow", "found"),
    [(f"{KEPT}-moved before due", "moved"), ("altered before due", "altered_timestamp")],
)
def test_halves_of_a_pair_find_each_other_whenever_they_come_due(
    outcomes: dict[str, list[Outcome]], flow: str, found: str
) -> None:
    first, then = outcomes[flow]
    assert (wrong(first.after), wrong(then.after)) == ({"missing": 1}, {found: 1})


def test_a_pair_across_buckets_is_compared_again_with_both_of_them(
    outcomes: dict[str, list[Outcome]],
) -> None:
    first, then = outcomes["altered and then touched"]
    assert wrong(first.after) == {"altered_timestamp": 1}
    assert len(then.classified) == 2, "one of them holds nothing new"
    assert wrong(then.after) == {"duplicate": 1}
    assert then.after["accounted_altered_timestamp"] == 1


def test_a_copy_with_another_hour_is_no_extra_one_when_its_minute_gets_more(
    outcomes: dict[str, list[Outcome]],
) -> None:
    first, then = outcomes["altered by hours and then joined"]
    assert wrong(first.after) == {"altered_timestamp": 1}
    assert wrong(then.after) == {}
    assert then.after["accounted_altered_timestamp"] == 1
    assert then.after["verified_records"] == 31


def test_what_expired_as_a_whole_is_compared_with_nothing(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (outcome,) = outcomes["all expired"]
    assert outcome.classified == []
    assert outcome.after["unverifiable"] == 30


def test_a_difference_that_can_no_longer_be_read_is_suspected(
    outcomes: dict[str, list[Outcome]],
) -> None:
    (gone,), (silent,) = outcomes["source gone"], outcomes["altered and gone"]
    assert sum(row["missing"] for row in gone.classified) == 0
    assert sum(row["unverifiable"] for row in gone.classified) == 4
    assert [row["unverifiable"] for row in silent.classified] == [1], "equal counts are no proof"


def test_samples_name_records_and_are_few(outcomes: dict[str, list[Outcome]]) -> None:
    found = outcomes["many"][0].samples
    by_class = Counter((row["class"], row["side"]) for row in found)
    assert by_class == {
        ("missing", "source"): 20,
        ("duplicate", "target"): 2,
        ("corrupt_value", "source"): 1,
        ("corrupt_value", "target"): 1,
    }
    lost = next(row for row in found if row["class"] == "corrupt_value" and row["side"] == "source")
    assert (lost["partition"], lost["offset"], lost["timestamp_ms"]) == (0, 0, 0)
    assert (lost["key_bytes"], lost["value_bytes"]) == (2, 2)
    assert (len(lost["key_hash"]), len(lost["record_hash"])) == (16, 32)
