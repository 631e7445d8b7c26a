"""Probable positions ahead of the committed ones, from offset syncs: no I/O, and no decision."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, MirrorStatus, Place


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
