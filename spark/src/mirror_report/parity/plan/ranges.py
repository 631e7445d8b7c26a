"""Offsets to read: how many at once, in which pieces, in which reads. No Spark, no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
RECORD_BYTES = 1024.0
"""Assumed size of a record where the cluster does not tell how large a topic is."""


def guest(flow: str, origin: str) -> str:
    """How a source topic is called that another flow brings to a topic of the flow judging it."""
    return f"{flow}/{origin}"


def feeder(flow: str, origin: str) -> tuple[str, str]:
    """The flow that mirrors a source topic, and the topic's own name.

    :param origin: its name, or what :func:`guest` made of it; no topic has a slash in its name.
    """
    via, slash, name = origin.rpartition("/")
    return (via if slash else flow), name


@dataclass(frozen=True)
class Range:
    """Offsets ``start`` to ``end`` (exclusive) of one partition, not read yet.

    :param origin: topic name on this side, or a :func:`guest`; ``topic`` is the name on the target.
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
    def records(self) -> int:
        """Offsets in the range: an upper bound of its records."""
        return self.end - self.start

    @property
    def bytes(self) -> float:
        """Expected size."""
        return self.records * self.record_bytes


READING_SHARE = 0.9
"""The rest of a budget that does not suffice is for a closer look at what differs."""


def within_budget(
    ranges: Sequence[Range], max_bytes: float | None, max_records: int | None = None
) -> tuple[list[Range], list[Range]]:
    """What to read now and what has to wait, oldest records of every partition first.

    Both sides shrink by the same share, so they stay comparable.

    :returns: (now, backlog); at least one record per range is read, so every run gets on.
    """
    shares = [1.0]
    for bound, total in (
        (max_bytes, sum(one.bytes for one in ranges)),
        (max_records, sum(one.records for one in ranges)),
    ):
        if bound is not None and total > bound:
            shares.append(READING_SHARE * bound / total)
    share = min(shares)
    return (list(ranges), []) if share == 1.0 else _split(ranges, share)


def chunks(ranges: Sequence[Range], chunk_bytes: float) -> list[list[Range]]:
    """Pieces of about ``chunk_bytes``, each with the next part of every partition."""
    left = list(ranges)
    pieces: list[list[Range]] = []
    while left:
        count = math.ceil(sum(one.bytes for one in left) / chunk_bytes)
        now, left = _split(left, 1 / count) if count > 1 else (left, [])
        pieces.append(now)
    return pieces


def _split(ranges: Iterable[Range], share: float) -> tuple[list[Range], list[Range]]:
    now: list[Range] = []
    later: list[Range] = []
    for one in ranges:
        cut = min(one.end, one.start + max(1, math.floor(one.records * share)))
        now.append(replace(one, end=cut))
        if cut < one.end:
            later.append(replace(one, start=cut))
    return now, later


def join(ranges: Iterable[Range]) -> list[list[Range]]:
    """Groups of ranges that one read can serve: a partition occurs once in each.

    Ranges of one partition that touch or overlap are read as one.
    """
    merged: dict[tuple[str, Side, str, int], list[Range]] = {}
    for one in sorted(ranges, key=lambda r: r.start):
        if one.records <= 0:
            continue
        same = merged.setdefault((one.flow, one.side, one.origin, one.partition), [])
        if same and one.start <= same[-1].end:
            same[-1] = replace(same[-1], end=max(same[-1].end, one.end))
        else:
            same.append(one)
    groups: dict[tuple[str, str, Side, int], list[Range]] = {}
    for (flow, side, origin, _partition), same in merged.items():
        for rank, one in enumerate(same):
            groups.setdefault((flow, feeder(flow, origin)[0], side, rank), []).append(one)
    return list(groups.values())
