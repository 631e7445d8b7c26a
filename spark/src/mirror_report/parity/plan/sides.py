"""The plan of one side of a topic: what is new, what is gone, what has to be read again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from mirror_report.model import PartitionSnapshot, TopicBaseline, TopicSnapshot, another_topic
from mirror_report.parity.plan.lost_tails import LastLook, kept, last_look, last_scan, lost_from
from mirror_report.parity.plan.ranges import Range, record_bytes
from mirror_report.parity.state import (
    BASELINE_OFFSETS,
    NEVER,
    Gap,
    Manifest,
    Origin,
    Removal,
    Side,
    SideState,
    TopicKey,
)


@dataclass(frozen=True)
class Reopened:
    """A side of a topic whose digests no longer describe what is there.

    :param kind: ``topic_reset`` (another topic of that name) or ``rewind`` (the log lost its newest
        records).
    :param regrown: the log is not shorter than it was.
    """

    kind: Literal["topic_reset", "rewind"]
    flow: str
    side: Side
    topic: str
    origin: str
    partition: int | None
    detail: str
    regrown: bool = False

    @property
    def key(self) -> TopicKey:
        """Its flow and name on the target."""
        return self.flow, self.topic


@dataclass(frozen=True)
class Drop:
    """Digest rows to leave out: a whole flow, or one side of one topic."""

    flow: str
    side: Side | None = None
    origin: str | None = None


@dataclass(frozen=True)
class SideNow:
    """One side of a topic: what it is now, and its baseline.

    :param topic: its name on the target.
    :param recorded: the topic's baseline; ``based``: whether its flow has one.
    """

    flow: str
    side: Side
    origin: str
    topic: str
    isolation: str
    snapshot: TopicSnapshot
    taken_at_ms: int
    recorded: TopicBaseline | None
    based: bool

    @property
    def key(self) -> Origin:
        """Its key in the manifest."""
        return self.flow, self.side, self.origin

    @property
    def where(self) -> tuple[str, Side, str, str]:
        """Its key and its name on the target, as a :class:`Gap` has them."""
        return self.flow, self.side, self.topic, self.origin

    @property
    def floor(self) -> Mapping[int, int]:
        """Where the baseline begins."""
        return self.recorded.side(self.side).start if self.recorded else {}


@dataclass(frozen=True)
class SidePlan:
    """The plan of some sides of topics in this run.

    :param begin: how far each side of each topic had been read before, ids as they are now.
    :param removals: what the target no longer holds of what was read there.
    """

    ranges: tuple[Range, ...] = ()
    gaps: tuple[Gap, ...] = ()
    reopened: tuple[Reopened, ...] = ()
    drops: tuple[Drop, ...] = ()
    begin: Mapping[Origin, SideState] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()

    def plus(self, others: "Iterable[SidePlan]") -> Self:
        """With what other sides need."""
        every: list[SidePlan] = [self, *others]
        return replace(
            self,
            begin={key: state for each in every for key, state in each.begin.items()},
            **{
                name: tuple(one for each in every for one in getattr(each, name))
                for name in ("ranges", "gaps", "reopened", "drops", "removals")
            },
        )


# The former id of a topic that was created again; else partition -> offset from which on records
# are gone that were read.
Change = str | Mapping[int, int]


def changed(now: SideNow, manifest: Manifest) -> Change:
    """The change of a topic since it was read; empty: none."""
    return _since(now, last_look(now.side, manifest.sides.get(now.key), now.recorded))


def changed_since_scan(now: SideNow, manifest: Manifest) -> list[Reopened]:
    """The changes of one side of a compacted topic since it was compared, if it was."""
    scan = manifest.scans.get(now.flow, {}).get(now.topic, {})
    look = last_scan(now.side, now.origin, scan.get("logs", ()))
    return _reopened(now, look.read, _since(now, look))


def _since(now: SideNow, look: LastLook) -> Change:
    if another_topic(look.topic_id, now.snapshot.topic_id):
        return look.topic_id
    return {
        number: at
        for number, log in sorted(now.snapshot.partitions.items())
        if (at := lost_from(look, number, log)) is not None
    }


def plan_side(
    now: SideNow,
    manifest: Manifest,
    *,
    rebuild: bool,
    recreated: bool,
    lost: bool = False,
) -> SidePlan:
    """The plan of one side.

    :param rebuild: the whole log has to be read again, because the other side was recreated.
    :param recreated: a log of either side is another one than before.
    :param lost: records have left the source unread since the last run.
    """
    before, change = manifest.sides.get(now.key), changed(now, manifest)
    reset = isinstance(change, str)
    continued, floor = before, now.floor
    if change:
        continued, floor = (
            None,
            {} if isinstance(change, str) else {**floor, **_least(floor, change)},
        )
    elif rebuild and before is not None:
        continued, floor = None, dict(before.first)
    reading = _to_read(now, continued, floor, reset=reset)
    state = reading.begin[now.key]
    look = LastLook() if change else last_look(now.side, before, now.recorded)
    state = replace(
        state,
        **_baseline_offsets(now, before, change, recreated=recreated),
        **_logs(now, look, state),
    )
    if now.side == "target":
        state = _with_retention(state, now, continued)
        if lost:
            # Those that are dated ahead of the clock are known by nothing else.
            state = replace(state, gap={p: log.end for p, log in now.snapshot.partitions.items()})
        elif before is not None and not change:
            state = replace(state, gap=before.gap)
    gaps = reading.gaps
    if change and now.side == "source" and (reset or before is not None):
        # What the old log held may be on the target and can no longer be read here.
        gaps = (Gap(*now.where, -1, 0, 0, now.taken_at_ms), *gaps)
    return SidePlan(
        reading.ranges,
        gaps,
        tuple(_reopened(now, before.next if before else now.floor, change)),
        (Drop(*now.key),) if change or (rebuild and before is not None) else (),
        {now.key: state},
        () if continued is None else tuple(_removals(now, continued, state)),
    )


def _reopened(now: SideNow, read: Mapping[int, int], change: Change) -> list[Reopened]:
    if isinstance(change, str):
        return [Reopened("topic_reset", *now.where, None, f"{change} → {now.snapshot.topic_id}")]
    logs = now.snapshot.partitions
    return [
        Reopened(
            "rewind", *now.where, partition, f"{read[partition]} → {at}",
            regrown=logs[partition].end >= read[partition],
        )
        for partition, at in change.items()
    ]  # fmt: skip


def _least(values: Mapping[int, int], others: Mapping[int, int]) -> dict[int, int]:
    """The lesser one of two offsets of each partition that both name."""
    return {p: min(values[p], others[p]) for p in values.keys() & others.keys()}


def _logs(now: SideNow, look: LastLook, state: SideState) -> dict[str, Any]:
    """The identity of the logs, for the next run: fields of :class:`SideState`."""
    kept_of = {
        number: kept(look, number, log, state.next[number])
        for number, log in now.snapshot.partitions.items()
    }
    epochs, contents = ({p: pair[n] for p, pair in kept_of.items() if pair[n]} for n in (0, 1))
    return {"leader_epochs": epochs, "last_records": contents}


def _to_read(
    now: SideNow, continued: SideState | None, floor: Mapping[int, int], *, reset: bool
) -> SidePlan:
    """How far each partition was read, what is new there, and what expired unread."""
    ranges: list[Range] = []
    gaps: list[Gap] = []
    first: dict[int, int] = {}
    following: dict[int, int] = {}
    for partition, log in sorted(now.snapshot.partitions.items()):
        # Without a baseline, history begins with what is there in the first run.
        begin = floor.get(partition, 0 if now.based and not reset else log.log_start)
        expected = continued.next.get(partition, begin) if continued else min(begin, log.end)
        if log.log_start > expected:
            gaps.append(Gap(*now.where, partition, expected, log.log_start, now.taken_at_ms))
        read = max(expected, log.log_start)
        first[partition] = continued.first.get(partition, read) if continued else read
        following[partition] = read
        if (end := log.end_for(now.isolation)) > read:
            ranges.append(
                Range(
                    now.flow, now.side, now.origin, now.topic, partition, read, end,
                    record_bytes(now.snapshot),
                )
            )  # fmt: skip
    topic_id = now.snapshot.topic_id or (continued.topic_id if continued else "")
    state = SideState(topic_id, first, following)
    return SidePlan(tuple(ranges), tuple(gaps), begin={now.key: state})


def _baseline_offsets(
    now: SideNow, before: SideState | None, change: Change, *, recreated: bool
) -> dict[str, Any]:
    """Offsets of a baseline recorded while the mirror ran: fields of :class:`SideState`."""
    source = now.side == "source"
    if recreated:
        # Offsets below which a log was copied say nothing of what was written there since.
        return {"older": before.older} if before is not None and not change else {}
    if before is not None:
        offsets = {name: getattr(before, name) for name in BASELINE_OFFSETS}
    else:
        offsets = {
            name: getattr(now.recorded or TopicBaseline(), name)
            for name in (BASELINE_OFFSETS[:2] if source else BASELINE_OFFSETS[2:])
        }
    if isinstance(change, str) or not source:
        return offsets
    return {name: _still(now, values, change) for name, values in offsets.items()}


def _still(now: SideNow, values: Mapping[int, int], lost: Mapping[int, int]) -> dict[int, int]:
    """Of a baseline's offsets, those that are of records which are still there.

    Without epochs it is unknown from which offset on another record is at each.
    """
    logs = now.snapshot.partitions
    return {p: at for p, at in values.items() if p not in lost} | {
        p: at for p, at in _least(values, lost).items() if logs[p].epochs
    }


def _with_retention(state: SideState, now: SideNow, before: SideState | None) -> SideState:
    """The target's retention, which decides later whether records were removed too early.

    Between two runs the shorter retention of both may have been in force; what it allowed to remove
    stays allowed when the retention grows.
    """
    configs = now.snapshot.configs
    # Without the settings anything may have been removed.
    retention = int(configs["retention.ms"]) if "retention.ms" in configs else None
    retentions = [retention] if before is None else [retention, before.retention_ms]
    bounds = (now.taken_at_ms - ms for ms in retentions if ms is not None and ms >= 0)
    kept_from = now.taken_at_ms if None in retentions else max(bounds, default=NEVER)
    size = int(configs.get("retention.bytes", -1))
    sizes = [size] if before is None else [size, before.retention_bytes]
    allowed = min((each for each in sizes if each >= 0), default=-1)
    removes = {
        p: _removes_by_size(now.snapshot, log, allowed)
        for p, log in now.snapshot.partitions.items()
    }
    return replace(
        state,
        log_start={p: log.log_start for p, log in now.snapshot.partitions.items()},
        retention_ms=retention,
        retention_bytes=size,
        kept_from_ms=max(kept_from, before.kept_from_ms if before else NEVER),
        sized=(dict(before.sized) if before else {})
        | {p: now.taken_at_ms for p, may in removes.items() if may},
        doubted=(dict(before.doubted) if before else {})
        | {p: now.taken_at_ms for p, may in removes.items() if may is None},
    )


def _removes_by_size(topic: TopicSnapshot, log: PartitionSnapshot, allowed: int) -> bool | None:
    """Whether records may have left a log because it was too large; ``None``: unknown.

    Kafka stops while the rest is at least as large as allowed (UnifiedLog,
    deleteRetentionSizeBreachedSegments), so a log that is smaller lost nothing that way.

    :param allowed: bytes; -1: no bound.
    """
    if allowed < 0:
        return False
    if log.bytes is None or topic.configs.get("remote.storage.enable") == "true":
        return None
    return log.bytes >= allowed


def _removals(now: SideNow, before: SideState, state: SideState) -> list[Removal]:
    kept_ms = state.retention_ms
    retention_ms = None if kept_ms is None or kept_ms < 0 else kept_ms
    removals = []
    for partition, start in sorted(state.log_start.items()):
        end = min(start, before.next.get(partition, 0))
        begin = before.log_start.get(partition, end)
        if begin < end:
            removals.append(
                Removal(
                    now.flow, now.topic, partition, begin, end,
                    max(state.kept_from_ms, state.sized.get(partition, NEVER)), retention_ms,
                    certain=state.doubted.get(partition) != now.taken_at_ms,
                )
            )  # fmt: skip
    return removals
