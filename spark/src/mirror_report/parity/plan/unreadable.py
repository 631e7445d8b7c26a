"""Records that Spark cannot read: where they are, and how they count.

Spark keeps timestamps in microseconds, and a record whose milliseconds do not fit fails the whole
read. Such records are left out (:class:`spark.records.Reader`) and kept in the manifest.

What cannot be read cannot be paired either. A mirror keeps timestamps, so the same record is
unreadable on both sides and counts once: of each lane (a partition, or the topic where the mirror
keeps no partitions) the larger number of both sides counts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeVar

from mirror_report.model import Sample, another_topic
from mirror_report.parity import PARTITION, WHOLE, grouped
from mirror_report.parity.plan.ranges import Range, joined
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.state import SIDES, Removal, Side, TopicKey, Unreadable, fed_by

# Unreadable records of one side of a topic; with more of them the topic is unknown.
MOST = 20
# Timestamps further from 1970 do not fit into microseconds.
LIMIT_MS = (2**63 - 1) // 1000

T = TypeVar("T", Range, Removal)


@dataclass(frozen=True)
class Unread:
    """Records that could not be read.

    :param records: those that are known by now.
    :param topics: those with too many of them, and why each is unknown.
    """

    records: tuple[Unreadable, ...] = ()
    topics: Mapping[TopicKey, str] = field(default_factory=dict)


def timestamp(milliseconds: int) -> int:
    """A timestamp as Kafka keeps it, in 64 bits; kafka-python adds up deltas without that bound."""
    return (milliseconds + 2**63) % 2**64 - 2**63


def fits(milliseconds: int) -> bool:
    """Whether Spark can hold a timestamp."""
    return abs(timestamp(milliseconds)) <= LIMIT_MS


def in_topic(records: Iterable[Unreadable], topic: TopicKey) -> list[Unreadable]:
    """Unreadable records of one topic."""
    return [record for record in records if (record.flow, record.topic) == topic]


def spared(parts: Iterable[Range], records: Iterable[Unreadable]) -> list[Range]:
    """Ranges without the records that cannot be read; those of one partition do not overlap."""
    of_logs = grouped(records, attrgetter(*PARTITION))
    return [
        part
        for whole in joined(parts)
        for part in _around(whole, of_logs.get((*whole.key, whole.partition), ()))
    ]


def digested(removal: Removal, records: Iterable[Unreadable]) -> list[Removal]:
    """Parts of what left the target that had been read there."""
    log = (removal.flow, "target", removal.topic, removal.partition)
    return _around(
        removal,
        [
            record
            for record in records
            if (record.flow, record.side, record.topic, record.partition) == log
        ],
    )


def _around(whole: T, records: Iterable[Unreadable]) -> list[T]:
    """Offsets ``start`` to ``end`` (exclusive) without those of some records."""
    offsets = sorted(record.offset for record in records)
    left: list[int] = [offset for offset in offsets if whole.start <= offset < whole.end]
    bounds = zip((whole.start, *(offset + 1 for offset in left)), (*left, whole.end), strict=True)
    return [replace(whole, start=start, end=end) for start, end in bounds if start < end]


def by_side(records: Iterable[Unreadable]) -> dict[Side, int]:
    """How many there are on each side."""
    counts = Counter(record.side for record in records)
    return {side: counts[side] for side in SIDES}


def by_lane(records: Iterable[Unreadable], *, keeps_partitions: bool) -> dict[str, int]:
    """Records of one topic that count as unverifiable, by lane: the larger number of both sides.

    :returns: partition (``*`` for a topic as a whole) -> records.
    """
    lanes = grouped(records, lambda record: str(record.partition) if keeps_partitions else WHOLE)
    return {lane: max(by_side(records).values()) for lane, records in lanes.items()}


def too_many(records: Iterable[Unreadable]) -> dict[TopicKey, str]:
    """Topics with more than :data:`MOST` on one side, and the message for each."""
    return {
        topic: f"Spark cannot read more than {MOST} of its records, {first_of(its_records)}. Make "
        "the producer write milliseconds, then delete these records or wait until they expire"
        for topic, its_records in grouped(records, attrgetter("flow", "topic")).items()
        if max(by_side(its_records).values()) > MOST
    }


def first_of(records: Collection[Unreadable]) -> str:
    """The first of some, for a message."""
    first = min(records, key=lambda each: (each.side, each.origin, each.partition, each.offset))
    _, name = fed_by(first.flow, first.origin)
    return (
        f"the first in partition {first.partition} of {name} on the {first.side} at offset "
        f"{first.offset}: its timestamp {first.timestamp_ms} is beyond what Spark can hold"
    )


def reason(records: Collection[Unreadable]) -> str:
    """Why records of a topic are not compared."""
    where = " and ".join(
        f"{count} of the {side}" for side, count in by_side(records).items() if count
    )
    return f"Spark cannot read {where}, {first_of(records)}"


def samples(records: Iterable[Unreadable]) -> list[Sample]:
    """Where they are; of what they hold nothing is known."""
    return [
        Sample(
            record.side, record.partition, record.offset, record.timestamp_ms, "", "", None, None
        )
        for record in sorted(
            records, key=lambda record: (record.side, record.partition, record.offset)
        )
    ]


def still_there(
    records: Iterable[Unreadable], snapshots: FlowSnapshots, drops: Collection[Drop]
) -> tuple[Unreadable, ...]:
    """Unreadable records that are still in their logs, as far as these were observed.

    :param drops: what is read again, and what no longer counts.
    """
    dropped = {(drop.flow, drop.side, drop.origin) for drop in drops}
    return tuple(
        record
        for record in records
        if not dropped & {(record.flow, None, None), (record.flow, record.side, record.origin)}
        and _is_there(record, snapshots)
    )


def _is_there(record: Unreadable, snapshots: FlowSnapshots) -> bool:
    via, name = fed_by(record.flow, record.origin)
    if via not in snapshots or name in snapshots[via].side(record.side).errors:
        return True
    topic = find(snapshots, record.flow, record.side, record.origin)
    if topic is None or another_topic(record.topic_id, topic.topic_id):
        return False
    log = topic.partitions.get(record.partition)
    return log is not None and log.log_start <= record.offset < log.end


def one_sided(labels: Mapping[Unreadable, int]) -> set[tuple[str, str, int, int, Side]]:
    """Buckets of one side that lack more unreadable records than the other side's.

    Their partners can be read where the target replaces timestamps: it is unknown which of the
    other side's records they are.

    :param labels: records, and the bucket each is in, of topics that are cut by offsets.
    :returns: flow, topic, partition, bucket, side.
    """
    counts: Counter[tuple[str, str, int, int, Side]] = Counter(
        (record.flow, record.topic, record.partition, label, record.side)
        for record, label in labels.items()
    )
    other: Mapping[Side, Side] = {"source": "target", "target": "source"}
    return {key for key, count in counts.items() if count > counts[(*key[:4], other[key[4]])]}
