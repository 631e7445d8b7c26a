"""What one side of one topic needs: what is new, what is gone, what has to be read anew.

No Spark, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mirror_report.model.cluster import TopicSnapshot
from mirror_report.parity.plan.ranges import RECORD_BYTES, Range, Side
from mirror_report.parity.state.manifest import (
    NEVER,
    STARTS,
    Gap,
    Memory,
    Origin,
    Removal,
    SideMemory,
    offsets,
)


@dataclass(frozen=True)
class Reopened:
    """A side of a topic whose digests no longer describe what is there.

    :param kind: ``topic_reset`` (another topic of that name) or ``rewind`` (the log got shorter).
    """

    kind: Literal["topic_reset", "rewind"]
    flow: str
    side: Side
    topic: str
    origin: str
    partition: int | None
    detail: str


@dataclass(frozen=True)
class Drop:
    """Digest rows to leave out: a whole flow, or one side of one topic."""

    flow: str
    side: Side | None = None
    origin: str | None = None


@dataclass
class Wanted:
    """What is needed of some sides in this run.

    :param begin: how far each side of each topic had been read before, ids as they are now.
    :param removals: what the target no longer holds of what was read there.
    """

    ranges: list[Range] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    reopened: list[Reopened] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    begin: dict[Origin, SideMemory] = field(default_factory=dict)
    removals: list[Removal] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A topic on one side of a flow; ``topic`` is its name on the target."""

    flow: str
    side: Side
    origin: str
    topic: str
    isolation: str


@dataclass(frozen=True)
class SideNow:
    """One side of a topic: where it is, what it is now, and what the baseline says of it."""

    place: Place
    snapshot: TopicSnapshot
    taken_at_ms: int
    recorded: Mapping[str, Any] | None
    based: bool

    @property
    def key(self) -> Origin:
        """What it is remembered by."""
        return self.place.flow, self.place.side, self.place.origin

    @property
    def floor(self) -> dict[int, int]:
        """Where the baseline begins."""
        return offsets((self.recorded or {}).get(self.place.side) or {})


def changed(one: SideNow, memory: Memory) -> str | list[int]:
    """The former id of a topic made anew, or partitions whose log got shorter; else nothing."""
    remembered = memory.sides.get(one.key)
    known_id = (
        remembered.topic_id if remembered else (one.recorded or {}).get(f"{one.place.side}_id")
    )
    if known_id and known_id != one.snapshot.topic_id:
        return str(known_id)
    read = remembered.next if remembered else one.floor
    logs = one.snapshot.partitions
    return sorted(p for p, offset in read.items() if p in logs and logs[p].end < offset)


def plan_side(done: Wanted, one: SideNow, memory: Memory, *, anew: bool, recreated: bool) -> None:
    """Add to ``done`` what one side needs.

    :param anew: the whole log has to be read again, because the other side was made anew.
    :param recreated: a log of either side is another one than before.
    """
    place, snapshot = one.place, one.snapshot
    remembered = memory.sides.get(one.key)
    floor = one.floor
    change = changed(one, memory)
    reset = isinstance(change, str)
    if isinstance(change, str):
        done.reopened.append(
            Reopened("topic_reset", *_where(place), None, f"{change} → {snapshot.topic_id}")
        )
    else:
        for partition in change:
            read = (remembered.next if remembered else floor)[partition]
            end = snapshot.partitions[partition].end
            done.reopened.append(Reopened("rewind", *_where(place), partition, f"{read} → {end}"))
    if change:
        done.drops.append(Drop(place.flow, place.side, place.origin))
        if place.side == "source" and (reset or remembered is not None):
            # What the old log held may be on the target and can no longer be read here.
            done.gaps.append(Gap(*_where(place), -1, 0, 0, one.taken_at_ms))
        remembered = None
        if reset:
            floor = {}
    elif anew and remembered is not None:
        done.drops.append(Drop(place.flow, place.side, place.origin))
        floor, remembered = remembered.first, None
    first: dict[int, int] = {}
    following: dict[int, int] = {}
    for partition, log in sorted(snapshot.partitions.items()):
        # Without a baseline, history begins with what is there at the first look.
        begin = floor.get(partition, 0 if one.based and not reset else log.log_start)
        wanted = remembered.next.get(partition, begin) if remembered else min(begin, log.end)
        if log.log_start > wanted:
            done.gaps.append(Gap(*_where(place), partition, wanted, log.log_start, one.taken_at_ms))
        read = max(wanted, log.log_start)
        first[partition] = remembered.first.get(partition, read) if remembered else read
        following[partition] = read
        end = log.end_for(place.isolation)
        if end > read:
            done.ranges.append(
                Range(
                    place.flow, place.side, place.origin, place.topic, partition, read, end,
                    record_bytes(snapshot),
                )
            )  # fmt: skip
    starts = _starts(one, memory.sides.get(one.key), change, recreated=recreated)
    now = replace(SideMemory(snapshot.topic_id, first, following), **starts)
    if place.side == "target":
        now = _watched(now, one, remembered)
        if remembered is not None:
            done.removals += _removals(one, remembered, now)
    done.begin[one.key] = now


def _starts(
    one: SideNow, before: SideMemory | None, change: str | list[int], *, recreated: bool
) -> dict[str, Any]:
    """What a baseline recorded while the mirror ran leaves open: fields of :class:`SideMemory`."""
    source = one.place.side == "source"
    if recreated or (change and source):
        # Offsets below which a log was copied say nothing of what was written there since.
        return {"older": before.older} if before is not None and not change else {}
    if before is not None:
        return {name: getattr(before, name) for name in STARTS}
    recorded = one.recorded or {}
    names = STARTS[:2] if source else STARTS[2:]
    return {name: offsets(recorded.get(name) or {}) for name in names}


def _watched(now: SideMemory, one: SideNow, before: SideMemory | None) -> SideMemory:
    """What has to be remembered of the target to tell whether records went too early.

    Between two looks the shorter retention of both may have been in force; what it allowed to go
    stays allowed when the retention grows.
    """
    configs = one.snapshot.configs
    size = configs.get("retention.bytes")
    retention = int(configs["retention.ms"]) if "retention.ms" in configs else None
    if size is None or int(size) >= 0:
        retention = None
    known = [retention] if before is None else [retention, before.retention_ms]
    if None in known:
        kept_from = one.taken_at_ms
    else:
        kept_from = max(
            (one.taken_at_ms - each for each in known if each is not None and each >= 0),
            default=NEVER,
        )
    return replace(
        now,
        log_start={p: log.log_start for p, log in one.snapshot.partitions.items()},
        retention_ms=retention,
        kept_from_ms=max(kept_from, before.kept_from_ms if before else NEVER),
    )


def _removals(one: SideNow, before: SideMemory, now: SideMemory) -> list[Removal]:
    """What went since the last look."""
    found = []
    for partition, start in sorted(now.log_start.items()):
        end = min(start, before.next.get(partition, 0))
        begin = before.log_start.get(partition, end)
        if begin < end:
            lasting = now.retention_ms is None or now.retention_ms < 0
            found.append(
                Removal(
                    one.place.flow, one.place.topic, partition, begin, end, now.kept_from_ms,
                    None if lasting else now.retention_ms,
                )
            )  # fmt: skip
    return found


def record_bytes(snapshot: TopicSnapshot) -> float:
    """Expected size of one record of a topic, by the size of its logs."""
    records = sum(log.end - log.log_start for log in snapshot.partitions.values())
    if not snapshot.bytes or records <= 0:
        return RECORD_BYTES
    return max(1.0, snapshot.bytes / records)


def _where(place: Place) -> tuple[str, Side, str, str]:
    return place.flow, place.side, place.topic, place.origin
