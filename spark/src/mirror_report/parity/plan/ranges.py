"""Offsets to read: how many at once, in which pieces, in which reads."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mirror_report.config import Budget
from mirror_report.model import TopicSnapshot
from mirror_report.parity.state import Origin, Side, TopicKey, fed_by

# Assumed size of a record where the cluster does not tell how large a topic is.
RECORD_BYTES = 1024.0
# About as much is read in one job.
CHUNK_BYTES = 1024**3


@dataclass(frozen=True)
class Range:
    """Offsets ``start`` to ``end`` (exclusive) of one partition, not read yet.

    :param origin: topic name on this side, or a co-fed one; ``topic`` is the name on the target.
    :param record_bytes: expected size of one record.
    """

    flow: str
    side: Side
    origin: str
    topic: str
    partition: int
    start: int
    end: int
    record_bytes: float = RECORD_BYTES

    @property
    def key(self) -> Origin:
        """The side of the topic it is of."""
        return self.flow, self.side, self.origin

    @property
    def topic_key(self) -> TopicKey:
        """The topic it is of."""
        return self.flow, self.topic

    @property
    def records(self) -> int:
        """Offsets in the range: an upper bound of its records."""
        return self.end - self.start

    @property
    def bytes(self) -> float:
        """Expected size."""
        return self.records * self.record_bytes


@dataclass(frozen=True)
class TopicAtRest:
    """A topic at rest, which can be proved whole.

    :param ranges: everything both sides hold.
    :param keeps_time: whether timestamps have to be the same.
    :param source_gap: records of the source had expired; ``target_gap``: of the target.
    """

    flow: str
    topic: str
    ranges: tuple[Range, ...]
    keeps_time: bool = True
    source_gap: bool = False
    target_gap: bool = False

    @property
    def key(self) -> TopicKey:
        """Its flow and name."""
        return self.flow, self.topic


@dataclass(frozen=True)
class Spent:
    """Bytes and records that a run has read of its budget."""

    bytes: float = 0.0
    records: int = 0

    def plus(self, ranges: Sequence[Range]) -> Self:
        """With some ranges read as well."""
        return type(self)(self.bytes + total_bytes(ranges), self.records + total_records(ranges))

    def share_of(self, budget: Budget, ranges: Sequence[Range]) -> float:
        """The share of some ranges that may be read besides: 1 at most; not above 0: nothing."""
        sizes = (
            (budget.max_bytes, self.bytes, total_bytes(ranges)),
            (budget.max_records, self.records, total_records(ranges)),
        )
        bounds = (
            (bound - spent) / total
            for bound, spent, total in sizes
            if bound is not None and total > 0
        )
        return min([1.0, *bounds])

    def allows(self, budget: Budget, ranges: Sequence[Range]) -> bool:
        """Whether some ranges may be read besides."""
        return self.share_of(budget, ranges) == 1


def total_bytes(ranges: Iterable[Range]) -> float:
    """Expected size of some ranges."""
    return sum(part.bytes for part in ranges)


def total_records(ranges: Iterable[Range]) -> int:
    """Offsets in some ranges."""
    return sum(part.records for part in ranges)


def record_bytes(topic: TopicSnapshot | None, least: float = 1.0) -> float:
    """Expected size of one record of a topic, by the size of its logs."""
    records = sum(log.end - log.log_start for log in topic.partitions.values()) if topic else 0
    if topic is None or not topic.bytes or records <= 0:
        return RECORD_BYTES
    return max(least, topic.bytes / records)


def chunks(ranges: Sequence[Range], chunk_bytes: float) -> list[list[Range]]:
    """Pieces of about ``chunk_bytes``, each with the next part of every partition."""
    left = list(ranges)
    pieces: list[list[Range]] = []
    while left:
        count = math.ceil(total_bytes(left) / chunk_bytes)
        now, left = split(left, 1 / count) if count > 1 else (left, [])
        pieces.append(now)
    return pieces


def split(ranges: Iterable[Range], share: float) -> tuple[list[Range], list[Range]]:
    """A share of each range (at least one record), and what is left of it."""
    now: list[Range] = []
    later: list[Range] = []
    for whole in ranges:
        cut = min(whole.end, whole.start + max(1, math.floor(whole.records * share)))
        now.append(replace(whole, end=cut))
        if cut < whole.end:
            later.append(replace(whole, start=cut))
    return now, later


def join(ranges: Iterable[Range]) -> list[list[Range]]:
    """Groups of ranges that one read can serve: a partition occurs once in each.

    Ranges of one partition that touch or overlap are read as one.
    """
    merged: dict[tuple[str, Side, str, int], list[Range]] = {}
    filled = (part for part in ranges if part.records > 0)
    for part in sorted(filled, key=lambda each: each.start):
        same = merged.setdefault((*part.key, part.partition), [])
        if same and part.start <= same[-1].end:
            same[-1] = replace(same[-1], end=max(same[-1].end, part.end))
        else:
            same.append(part)
    groups: dict[tuple[str, str, Side, int], list[Range]] = {}
    for (flow, side, origin, _partition), same in merged.items():
        for rank, part in enumerate(same):
            groups.setdefault((flow, fed_by(flow, origin)[0], side, rank), []).append(part)
    return list(groups.values())


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges of which those of one partition that touch or overlap are one."""
    return [part for group in join(ranges) for part in group]
