"""Records that Spark cannot read: where they are, and how they count. No Spark, no I/O.

Spark keeps timestamps in microseconds, and a record whose milliseconds do not fit fails the whole
read. Such records are left out (:class:`steps.read.Around`) and remembered.

What cannot be read cannot be paired either. A mirror keeps timestamps, so the same record is
unreadable on both sides and counts once: of each lane (a partition, or the topic where the mirror
keeps no partitions) the larger number of both sides counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mirror_report.model.content import Sample
from mirror_report.parity.plan import ranges
from mirror_report.parity.plan.cofed import Look
from mirror_report.parity.plan.ranges import SIDES, Range, Side, feeder
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.results.summaries import WHOLE
from mirror_report.parity.state.manifest import Removal, Unreadable

MOST = 20
"""Unreadable records of one side of a topic; with more of them the topic is unknown."""
LIMIT_MS = (2**63 - 1) // 1000
"""Timestamps further from 1970 do not fit into microseconds."""

T = TypeVar("T", Range, Removal)
Topic = tuple[str, str]
"""Flow, and name on the target."""


def timestamp(milliseconds: int) -> int:
    """A timestamp as Kafka keeps it, in 64 bits; kafka-python adds up deltas without that bound."""
    return (milliseconds + 2**63) % 2**64 - 2**63


def fits(milliseconds: int) -> bool:
    """Whether Spark can hold a timestamp."""
    return abs(timestamp(milliseconds)) <= LIMIT_MS


def spared(wanted: Iterable[Range], known: Iterable[Unreadable]) -> list[Range]:
    """Ranges without the records that cannot be read; those of one partition do not overlap."""
    places: dict[tuple[str, Side, str, int], list[int]] = {}
    for one in known:
        places.setdefault((one.flow, one.side, one.origin, one.partition), []).append(one.offset)
    return [
        part
        for group in ranges.join(wanted)
        for each in group
        for part in _around(
            each, places.get((each.flow, each.side, each.origin, each.partition), ())
        )
    ]


def digested(gone: Removal, known: Iterable[Unreadable]) -> list[Removal]:
    """Parts of what left the target that had been read there."""
    place = (gone.flow, "target", gone.topic, gone.partition)
    offsets = [one.offset for one in known
               if (one.flow, one.side, one.topic, one.partition) == place]  # fmt: skip
    return _around(gone, offsets)


def _around(whole: T, offsets: Iterable[int]) -> list[T]:
    """Offsets ``start`` to ``end`` (exclusive) without some of them."""
    left: list[int] = [one for one in sorted(offsets) if whole.start <= one < whole.end]
    bounds = zip((whole.start, *(one + 1 for one in left)), (*left, whole.end), strict=True)
    return [replace(whole, start=start, end=end) for start, end in bounds if start < end]


def by_side(known: Iterable[Unreadable]) -> dict[Side, int]:
    """How many there are on each side."""
    found = Counter(one.side for one in known)
    return {side: found[side] for side in SIDES}


def by_lane(known: Iterable[Unreadable], *, keeps_partitions: bool) -> dict[str, int]:
    """Records of one topic that count as unverifiable, by lane: the larger number of both sides.

    :returns: partition (``*`` for a topic as a whole) -> records.
    """
    lanes: dict[str, list[Unreadable]] = {}
    for one in known:
        lanes.setdefault(str(one.partition) if keeps_partitions else WHOLE, []).append(one)
    return {lane: max(by_side(some).values()) for lane, some in lanes.items()}


def full(known: Iterable[Unreadable]) -> dict[Topic, str]:
    """Topics with more than :data:`MOST` on one side, and what is said of them."""
    topics: dict[Topic, list[Unreadable]] = {}
    for one in known:
        topics.setdefault((one.flow, one.topic), []).append(one)
    return {
        topic: f"Spark cannot read more than {MOST} of its records, {first_of(some)}. Make the "
        "producer write milliseconds, then delete these records or wait until they expire"
        for topic, some in topics.items()
        if max(by_side(some).values()) > MOST
    }


def first_of(known: Collection[Unreadable]) -> str:
    """The first of some, for a message."""
    one = min(known, key=lambda each: (each.side, each.origin, each.partition, each.offset))
    _, name = feeder(one.flow, one.origin)
    return (
        f"the first in partition {one.partition} of {name} on the {one.side} at offset "
        f"{one.offset}: its timestamp {one.timestamp_ms} is beyond what Spark can hold"
    )


def reason(known: Collection[Unreadable]) -> str:
    """Why records of a topic are not compared."""
    there = " and ".join(
        f"{count} of the {side}" for side, count in by_side(known).items() if count
    )
    return f"Spark cannot read {there}, {first_of(known)}"


def samples(known: Iterable[Unreadable]) -> list[Sample]:
    """Where they are; of what they hold nothing is known."""
    chosen = sorted(known, key=lambda one: (one.side, one.partition, one.offset))
    return [
        Sample(one.side, one.partition, one.offset, one.timestamp_ms, "", "", None, None)
        for one in chosen
    ]


def still_there(
    known: Iterable[Unreadable], looks: Sequence[Look], drops: Collection[Drop]
) -> list[Unreadable]:
    """Those that are still in their logs, as far as these were looked at.

    :param drops: what is read anew, and what no longer counts.
    """
    dropped = {(one.flow, one.side, one.origin) for one in drops}
    of_flow = {look.flow.name: look for look in looks}
    found = []
    for one in known:
        if dropped & {(one.flow, None, None), (one.flow, one.side, one.origin)}:
            continue
        via, name = feeder(one.flow, one.origin)
        look = of_flow.get(via)
        if look is not None:
            cluster = look.source if one.side == "source" else look.target
            topic = cluster.topics.get(name)
            log = topic.partitions.get(one.partition) if topic else None
            there = topic is not None and topic.topic_id == one.topic_id and log is not None
            within = log is not None and log.log_start <= one.offset < log.end
            if not (there and within) and name not in cluster.errors:
                continue
        found.append(one)
    return found


def one_sided(labels: Mapping[Unreadable, int]) -> set[tuple[str, str, int, int, Side]]:
    """Buckets of one side that lack more unreadable records than the other side's.

    Their partners can be read where the target replaces timestamps: nobody can say which of the
    other side's records they are.

    :param labels: records, and the bucket each is in, of topics that are cut by offsets.
    :returns: flow, topic, partition, bucket, side.
    """
    found: Counter[tuple[str, str, int, int, Side]] = Counter(
        (one.flow, one.topic, one.partition, label, one.side) for one, label in labels.items()
    )
    other: Mapping[Side, Side] = {"source": "target", "target": "source"}
    return {one for one, count in found.items() if count > found[(*one[:4], other[one[4]])]}
