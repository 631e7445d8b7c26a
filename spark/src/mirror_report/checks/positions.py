"""Where a mirror is in each partition, probably and for certain, and what waits there: no I/O."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from mirror_report.checks.partition_history import FlowHistory
from mirror_report.config import Flow
from mirror_report.engines import PositionStore
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    MirrorStatus,
    Place,
    Positions,
    PositionSource,
    TopicSnapshot,
)

# Where a committed position is from.
COMMITTED: Mapping[PositionStore, PositionSource] = {
    PositionStore.SOURCE_GROUP: "group_commit",
    PositionStore.CONNECT_OFFSETS: "connect_offsets",
}


@dataclass(frozen=True)
class Position:
    """Where a mirror is in one partition.

    :param offset: the committed position, or where it begins before the first commit.
    :param next_offset: next one to copy: past transaction markers behind the position.
    :param source: what the offset is from.
    """

    offset: int
    next_offset: int
    source: PositionSource


def mirror_positions(
    flow: Flow,
    source: ClusterSnapshot,
    committed: Positions,
    baseline: Baseline,
    history: FlowHistory | None = None,
) -> dict[Place, Position]:
    """Where the mirror is in each partition, before its first commit where it begins, if known."""
    positions: dict[Place, Position] = {}
    for (name, number), _ in source.logs():
        offset = committed.get(name, {}).get(number)
        if offset is not None:
            following = (history or FlowHistory()).at((name, number)).next_offset(offset)
            positions[name, number] = Position(offset, following, COMMITTED[flow.engine.positions])
        elif begun := begin(flow, source.topics[name], number, baseline):
            positions[name, number] = Position(begun[0], begun[0], begun[1])
    return positions


def begin(
    flow: Flow, topic: TopicSnapshot, partition: int, baseline: Baseline
) -> tuple[int, PositionSource] | None:
    """Where a mirror begins that has not committed anything yet, if that is known."""
    recorded = baseline.topics.get(topic.name)
    if recorded is not None:
        return recorded.source.start.get(partition, 0), "baseline"
    if flow.start != "earliest":
        return None
    # A topic younger than the baseline belongs to the mirror as a whole.
    return (0 if baseline.exists else topic.partitions[partition].log_start), "log_start"


def waiting_ranges(
    flow: Flow, source: ClusterSnapshot, positions: Mapping[Place, Position]
) -> dict[Place, tuple[int, int]]:
    """Partitions with lag: topic and partition -> first readable position and log end."""
    ranges: dict[Place, tuple[int, int]] = {}
    for (name, number), position in positions.items():
        log = source.topics[name].partitions[number]
        end = log.end_for(flow.source_isolation)
        if position.next_offset < end:
            ranges[name, number] = (max(position.next_offset, log.log_start), end)
    return ranges


def drained(
    waiting: Mapping[Place, tuple[int, int]], ages: Mapping[Place, int | None]
) -> dict[Place, int]:
    """Log end of partitions in which nothing but transaction markers is left to mirror.

    :param waiting: the :func:`waiting_ranges`; ``ages``: timestamp (ms) of the oldest record.
    """
    return {at: end for at, (_, end) in waiting.items() if at in ages and ages[at] is None}


def oldest_first(
    waiting: Mapping[Place, tuple[int, int]], history: FlowHistory, limit: int
) -> dict[Place, tuple[int, int]]:
    """Those of the partitions with lag that have had it longest, and of these the largest lags."""

    def order(place: Place) -> tuple[float, int]:
        begin, end = waiting[place]
        return history.at(place).first_seen(begin) or float("inf"), begin - end

    chosen = sorted(waiting, key=order)[:limit] if len(waiting) > limit else waiting
    return {place: waiting[place] for place in chosen}


@dataclass(frozen=True)
class Estimate:
    """A probable position.

    :param basis: what it rests on; ``at_ms``: when that was written.
    """

    position: int
    basis: Literal["offset_syncs", "connect_offsets"]
    at_ms: int


def estimates(
    flow: Flow,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    mirror: MirrorStatus,
    reset_topics: Collection[str],
) -> dict[Place, Estimate]:
    """Probable positions of the partitions that have an offset sync.

    Every record on the target past the one of a sync was copied after it: that many offsets
    further the mirror is. A sync older than the committed position never takes it back.

    :param reset_topics: source topics recreated on either side, whose syncs mean nothing.
    """
    probable: dict[Place, Estimate] = {}
    for (name, partition), sync in mirror.syncs.items():
        log, copy = source.log(name, partition), target.log(flow.target_topic(name), partition)
        if log is None or copy is None or sync.downstream >= copy.end or name in reset_topics:
            continue
        # The source was asked first: under load the sync may be ahead of that.
        position = min(log.end, sync.upstream + copy.end - sync.downstream)
        committed = mirror.positions.get(name, {}).get(partition)
        committed_at_ms = mirror.committed_at_ms.get((name, partition), 0)
        if committed is not None and sync.timestamp_ms < committed_at_ms and committed > position:
            probable[name, partition] = Estimate(committed, "connect_offsets", committed_at_ms)
        else:
            probable[name, partition] = Estimate(position, "offset_syncs", sync.timestamp_ms)
    return probable
