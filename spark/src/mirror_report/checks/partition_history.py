"""Log ends and positions of a flow's partitions over time, and what follows from them: no I/O.

A line of the history is ``{"at": ms, "seen": {topic: [partition, end, position, through, ...]}}``,
four numbers for each partition in which something changed since the line before: one at rest takes
no room. ``end`` is where the log ends for the mirror; ``position`` is null before the first commit;
``through`` is null unless nothing but transaction markers lies between the position and it: they
are never mirrored.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

from mirror_report.model import ClusterSnapshot, Place, Positions

# Rates are over at least so long, if there were observations before.
RATE_SECONDS = 300.0
# Older observations are made fewer: they stay about a quarter of their age apart, or less.
SPACING = 4
# Numbers of one partition in a line.
WIDTH = 4


@dataclass
class PartitionHistory:
    """One partition over time, oldest first, an entry where something changed.

    :param ends: (time in ms, log end); they grow: a shorter log begins a new history.
    :param positions: (time in ms, committed position, end of the transaction markers behind it).
    """

    ends: list[tuple[int, int]] = field(default_factory=list)
    positions: list[tuple[int, int | None, int | None]] = field(default_factory=list)

    def next_offset(self, position: int) -> int:
        """Next offset a mirror with this position has to copy: markers are behind it."""
        if not self.positions or self.positions[-1][1] != position:
            return position
        return max(position, self.positions[-1][2] or 0)

    def first_seen(self, offset: int) -> int | None:
        """When this offset was first seen in the log (ms); ``None``: it never was."""
        at = bisect_right(self.ends, offset, key=itemgetter(1))
        return self.ends[at][0] if at < len(self.ends) else None

    def unmoved_since(self, position: int) -> int | None:
        """Since when the position has been this one (ms); ``None``: it was never seen."""
        since = None
        for at_ms, earlier, _ in reversed(self.positions):
            # Before the first commit there is no position; the mirror is at its start.
            if earlier is not None and earlier != position:
                break
            since = at_ms
        return since

    def moved_at(self, position: int) -> int | None:
        """When this position was first seen after another one (ms); ``None``: not known."""
        since = self.unmoved_since(position)
        return None if since is None or since == self.positions[0][0] else since

    def highest(self, since_ms: int) -> int:
        """Highest position seen at a time or after it; 0 if there was none."""
        return max(
            (p for at_ms, p, _ in self.positions if p is not None and at_ms >= since_ms), default=0
        )

    def end_at(self, at_ms: int) -> int | None:
        """Log end at a time; ``None``: not known."""
        at = bisect_right(self.ends, at_ms, key=itemgetter(0))
        return self.ends[at - 1][1] if at else None

    def first_change(self, after_ms: int) -> int | None:
        """When end or position was first seen changed after a time (ms); ``None``: never."""
        later = (
            entries[at][0]
            for entries in (self.ends, self.positions)
            if (at := bisect_right(entries, after_ms, key=itemgetter(0))) < len(entries)
        )
        return min(later, default=None)

    def next_offset_at(self, at_ms: int) -> int | None:
        """Next offset the mirror had to copy at a time; ``None``: not known."""
        at = bisect_right(self.positions, at_ms, key=itemgetter(0))
        if not at:
            return None
        _, position, through = self.positions[at - 1]
        return None if position is None else max(position, through or 0)


@dataclass
class FlowHistory:
    """Earlier observations of one flow.

    :param observed_at: when they were made (ms), oldest first.
    """

    observed_at: list[int] = field(default_factory=list)
    partitions: dict[Place, PartitionHistory] = field(default_factory=dict)

    def at(self, place: Place) -> PartitionHistory:
        """History of a partition, empty if it is new."""
        return self.partitions.get(place) or PartitionHistory()

    def observation_before(self, at_ms: int) -> int | None:
        """Newest observation before a time (ms)."""
        at = bisect_left(self.observed_at, at_ms)
        return self.observed_at[at - 1] if at else None

    def base(self, now_ms: int) -> int | None:
        """When rates start: at the newest observation old enough, else at the oldest there is."""
        at = bisect_right(self.observed_at, now_ms - int(RATE_SECONDS * 1000))
        if at:
            return self.observed_at[at - 1]
        return self.observed_at[0] if self.observed_at and self.observed_at[0] < now_ms else None

    def flowed_since(self, place: Place, now_ms: int) -> int | None:
        """:meth:`base`, or the newest observation until which nothing had moved since."""
        base = self.base(now_ms)
        if base is None:
            return None
        first = self.at(place).first_change(base)
        return max(base, self.observation_before(now_ms if first is None else first) or base)


def of_lines(lines: Iterable[Mapping[str, Any]], until_ms: int = 2**62) -> FlowHistory:
    """A flow's history from its lines; a line that is not of its format is passed over.

    :param until_ms: lines of later times are passed over: a clock went back since.
    """
    observed_at: list[int] = []
    partitions: dict[Place, PartitionHistory] = {}
    for line in lines:
        if not _is_line(line) or not (observed_at[-1:] or [0])[0] <= line["at"] <= until_ms:
            continue
        at_ms = line["at"]
        observed_at.append(at_ms)
        for name, numbers in line["seen"].items():
            each = iter(numbers)
            for number, end, position, through in zip(each, each, each, each, strict=True):
                past = partitions.get((name, number))
                if past is None or end < past.ends[-1][1]:
                    past = partitions[name, number] = PartitionHistory()
                if not past.ends or end != past.ends[-1][1]:
                    past.ends.append((at_ms, end))
                if not past.positions or past.positions[-1][1:] != (position, through):
                    past.positions.append((at_ms, position, through))
    return FlowHistory(observed_at, partitions)


def _is_line(line: Mapping[str, Any]) -> bool:
    topics = line.get("seen")
    return (
        isinstance(line.get("at"), int)
        and isinstance(topics, dict)
        and all(
            isinstance(numbers, list)
            and len(numbers) % WIDTH == 0
            and set(map(type, numbers)) <= {int, type(None)}
            and None not in numbers[0::WIDTH]
            and None not in numbers[1::WIDTH]
            for numbers in topics.values()
        )
    )


def ends_of_markers(
    history: FlowHistory,
    source: ClusterSnapshot,
    positions: Positions,
    drained: Mapping[Place, int],
) -> dict[Place, int]:
    """Offsets up to which nothing but transaction markers lies behind the position.

    What one observation has shown holds as long as the position stays.

    :param drained: log end of the partitions that this observation shows to hold nothing else.
    """
    ends: dict[Place, int] = {}
    for place, log in source.logs():
        position = positions.get(place[0], {}).get(place[1])
        if position is None:
            continue
        following = history.at(place).next_offset(position)
        # Where the log begins behind the position, records went that were never mirrored.
        if place in drained and log.log_start <= position:
            following = drained[place]
        if following > position:
            ends[place] = following
    return ends


def new_line(
    history: FlowHistory,
    source: ClusterSnapshot,
    positions: Positions,
    through: Mapping[Place, int],
    isolation: str,
) -> dict[str, Any]:
    """What this observation adds to the history.

    :param isolation: how the mirror reads: it decides where a log ends for it.
    """
    changed: dict[str, list[int | None]] = {}
    for (name, number), log in source.logs():
        now = (positions.get(name, {}).get(number), through.get((name, number)))
        past = history.partitions.get((name, number))
        end = log.end_for(isolation)
        if past is None or past.ends[-1][1] != end or past.positions[-1][1:] != now:
            changed.setdefault(name, []).extend((number, end, *now))
    return {"at": source.taken_at_ms, "seen": changed}


def fewer_lines(
    lines: Iterable[Mapping[str, Any]], topics: Collection[str], now_ms: int, days: int
) -> list[dict[str, Any]]:
    """A shorter history of the same time, less precise the older it is.

    :param topics: the others are forgotten.
    :param days: what is older is forgotten, and so is what comes after ``now_ms``.
    """
    whole = [line for line in lines if _is_line(line) and line["at"] <= now_ms]
    recent = sorted({line["at"] for line in whole if line["at"] >= now_ms - days * 86_400_000})
    slots: dict[tuple[int, int], int] = {}
    for at_ms in recent:
        # Slots are powers of two: one holds two smaller ones, so the first of each stays.
        width = 1 << max(0, int((now_ms - at_ms) / SPACING).bit_length() - 1)
        slots.setdefault((width, at_ms // width), at_ms)
    kept = set(slots.values())
    shorter: list[dict[str, Any]] = []
    pending: dict[str, dict[int, list[int | None]]] = {}
    for line in whole:
        for name, numbers in line["seen"].items():
            if name in topics:
                partitions = pending.setdefault(name, {})
                for at in range(0, len(numbers), WIDTH):
                    partitions[numbers[at]] = numbers[at : at + WIDTH]
        if line["at"] in kept:
            last = {name: [*chain.from_iterable(each.values())] for name, each in pending.items()}
            shorter.append({"at": line["at"], "seen": last})
            pending = {}
    return shorter
