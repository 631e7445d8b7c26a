"""What earlier looks at a flow saw of each partition, and what that tells: no I/O.

A line of the history is ``{"at": ms, "seen": {topic: [partition, end, position, through, ...]}}``,
four numbers for each partition in which something changed since the line before: one at rest takes
no room. ``end`` is where the log ends for the mirror; ``position`` is null before the first commit;
``through`` is null unless nothing but transaction markers lies between the position and it: they
are never mirrored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

from mirror_report.model.cluster import ClusterSnapshot, Place, Positions

Line = dict[str, Any]

RATE_SECONDS = 300.0
"""Rates are over at least so long, if there were looks before."""
SPACING = 4
"""Older looks are made fewer: they stay about a quarter of their age apart, or less."""
WIDTH = 4
"""Numbers of one partition in a line."""


@dataclass
class Trail:
    """One partition over time, oldest first, an entry where something changed.

    :param ends: (time of the look in ms, log end); they grow: a shorter log begins a new trail.
    :param positions: (time of the look in ms, committed position, where the mirror stands by it).
    """

    ends: list[tuple[int, int]] = field(default_factory=list)
    positions: list[tuple[int, int | None, int | None]] = field(default_factory=list)

    def stands(self, position: int) -> int:
        """Next offset a mirror with this position has to copy: markers are behind it."""
        if not self.positions or self.positions[-1][1] != position:
            return position
        return max(position, self.positions[-1][2] or 0)

    def first_seen(self, offset: int) -> int | None:
        """When a look first saw this offset in the log (ms); ``None``: none has."""
        at = bisect_right(self.ends, offset, key=itemgetter(1))
        return self.ends[at][0] if at < len(self.ends) else None

    def unmoved_since(self, position: int) -> int | None:
        """Since when the position has been this one (ms); ``None``: no look has seen it."""
        since = None
        for at_ms, earlier, _ in reversed(self.positions):
            # Before the first commit there is no position; then it stands at its start.
            if earlier is not None and earlier != position:
                break
            since = at_ms
        return since

    def moved_at(self, position: int) -> int | None:
        """When a look first saw this position after another one (ms); ``None``: not known."""
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

    def stood_at(self, at_ms: int) -> int | None:
        """Where the mirror stood at a time; ``None``: not known."""
        at = bisect_right(self.positions, at_ms, key=itemgetter(0))
        if not at:
            return None
        _, position, through = self.positions[at - 1]
        return None if position is None else max(position, through or 0)


@dataclass
class Trails:
    """Earlier looks at one flow.

    :param looks: when they were taken (ms), oldest first.
    """

    looks: list[int] = field(default_factory=list)
    places: dict[Place, Trail] = field(default_factory=dict)

    def at(self, place: Place) -> Trail:
        """Trail of a partition, empty if it is new."""
        return self.places.get(place) or Trail()

    def look_before(self, at_ms: int) -> int | None:
        """Newest look before a time (ms)."""
        at = bisect_left(self.looks, at_ms)
        return self.looks[at - 1] if at else None

    def base(self, now_ms: int) -> int | None:
        """The look that rates start from: the newest old enough, else the oldest there is."""
        at = bisect_right(self.looks, now_ms - int(RATE_SECONDS * 1000))
        if at:
            return self.looks[at - 1]
        return self.looks[0] if self.looks and self.looks[0] < now_ms else None


def read(lines: Iterable[Mapping[str, Any]]) -> Trails:
    """Trails of a history; a line that is not of its format is passed over."""
    looks: list[int] = []
    found: dict[str, dict[int, Trail]] = {}
    for line in lines:
        if not _is_line(line) or (looks and line["at"] < looks[-1]):
            continue
        at_ms = line["at"]
        looks.append(at_ms)
        for name, numbers in line["seen"].items():
            topic = found.setdefault(name, {})
            each = iter(numbers)
            for partition, end, position, through in zip(each, each, each, each, strict=True):
                trail = topic.get(partition)
                if trail is None or end < trail.ends[-1][1]:
                    topic[partition] = Trail([(at_ms, end)], [(at_ms, position, through)])
                    continue
                if end != trail.ends[-1][1]:
                    trail.ends.append((at_ms, end))
                last = trail.positions[-1]
                if last[1] != position or last[2] != through:
                    trail.positions.append((at_ms, position, through))
    return Trails(
        looks,
        {(name, number): one for name, some in found.items() for number, one in some.items()},
    )


def _is_line(line: Mapping[str, Any]) -> bool:
    at_ms, seen = line.get("at"), line.get("seen")
    return (
        isinstance(at_ms, int)
        and isinstance(seen, dict)
        and all(
            isinstance(numbers, list)
            and len(numbers) % WIDTH == 0
            and set(map(type, numbers)) <= {int, type(None)}
            and None not in numbers[0::WIDTH]
            and None not in numbers[1::WIDTH]
            for numbers in seen.values()
        )
    )


def through(
    trails: Trails, source: ClusterSnapshot, positions: Positions, drained: Mapping[Place, int]
) -> dict[Place, int]:
    """Offsets up to which nothing but transaction markers lies behind the position.

    What a look has found out holds as long as the position stays.

    :param drained: log end of partitions of which this look has found it out.
    """
    found: dict[Place, int] = {}
    for name, topic in source.topics.items():
        for number in topic.partitions:
            position = positions.get(name, {}).get(number)
            if position is not None:
                stands = drained.get((name, number)) or trails.at((name, number)).stands(position)
                if stands > position:
                    found[name, number] = stands
    return found


def line(
    trails: Trails,
    source: ClusterSnapshot,
    positions: Positions,
    through: Mapping[Place, int],
    isolation: str,
) -> Line:
    """What this look adds to the history.

    :param isolation: how the mirror reads, which says where a log ends for it.
    """
    seen: dict[str, list[int | None]] = {}
    for name, topic in source.topics.items():
        committed = positions.get(name, {})
        for number, one in topic.partitions.items():
            place = (name, number)
            now = (committed.get(number), through.get(place))
            trail = trails.places.get(place)
            end = one.end_for(isolation)
            if trail is None or trail.ends[-1][1] != end or trail.positions[-1][1:] != now:
                seen.setdefault(name, []).extend((number, end, *now))
    return {"at": source.taken_at_ms, "seen": seen}


def thinned(
    lines: Iterable[Mapping[str, Any]], topics: Collection[str], now_ms: int, days: int
) -> list[Line]:
    """A shorter history that says the same, less precisely the older it is.

    :param topics: the others are forgotten.
    :param days: what is older is forgotten.
    """
    whole = [one for one in lines if _is_line(one)]
    recent = sorted({one["at"] for one in whole if one["at"] >= now_ms - days * 86_400_000})
    kept: set[int] = set()
    slots: set[tuple[int, int]] = set()
    for at_ms in recent:
        # Slots are powers of two: one holds two smaller ones, so the first look of each stays.
        width = 1 << max(0, int((now_ms - at_ms) / SPACING).bit_length() - 1)
        slot = (width, at_ms // width)
        if slot not in slots:
            slots.add(slot)
            kept.add(at_ms)
    shorter: list[Line] = []
    pending: dict[str, dict[int, list[int | None]]] = {}
    for one in whole:
        for name, numbers in one["seen"].items():
            if name in topics:
                some = pending.setdefault(name, {})
                for at in range(0, len(numbers), WIDTH):
                    some[numbers[at]] = numbers[at : at + WIDTH]
        if one["at"] in kept:
            seen = {name: [*chain.from_iterable(some.values())] for name, some in pending.items()}
            shorter.append({"at": one["at"], "seen": seen})
            pending = {}
    return shorter
