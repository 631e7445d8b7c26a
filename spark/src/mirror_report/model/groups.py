"""What consumer groups would meet on the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mirror_report.model.cluster import Place, Positions
from mirror_report.model.errors import ReportError
from mirror_report.model.mirror import ForeignRecords, OffsetSync

# Group, topic of the source, and partition.
GroupPlace = tuple[str, str, int]


@dataclass(frozen=True)
class Translation:
    """What a mirror keeps to find a group's position on the target.

    :param syncs: offset syncs of a source partition, oldest first, thinned out with age; ``None``:
        they could not be read to their end, so a newer one may contradict them.
    :param checkpoints: newest checkpoint of a group's position: offset on the source and on the
        target, and when it was written; ``None``: they could not be read to their end.
    :param problems: what could not be read, and why.
    :param foreign: records of other writers there.
    """

    syncs: Mapping[Place, Sequence[OffsetSync]] | None = field(default_factory=dict)
    checkpoints: Mapping[GroupPlace, OffsetSync] | None = field(default_factory=dict)
    problems: tuple[ReportError, ...] = ()
    foreign: tuple[ForeignRecords, ...] = ()


@dataclass(frozen=True)
class GroupOffsets:
    """What a consumer group has committed on both sides of a flow.

    :param source: on the source; ``target``: on the target, by the names there.
    :param target_state: Kafka's word for the group on the target; ``None``: there is none.
    """

    group: str
    source: Positions
    target: Positions
    target_state: str | None


GroupState = Literal[
    "ready",
    "reread",
    "skip",
    "unmapped",
    "stale",
    "active_on_target",
    "not_synced",
    "unknown",
]


@dataclass(frozen=True)
class GroupPartition:
    """What a consumer group would meet in one partition if it moved to the target now.

    :param topic: name on the source; ``target_topic``: on the target.
    :param source_offset: what the group has committed on the source.
    :param image: offset on the target of the record it would read next on the source; ``None``: no
        offset sync leads there.
    :param image_exact: otherwise ``image`` is a lower bound.
    :param checkpoint: (offset on the source, on the target) of the newest checkpoint.
    :param target_offset: what is committed on the target.
    :param reread: records it would read again, at least; ``skip``: records it would never read, at
        least.
    :param image_estimate: where the record probably is, if ``image`` is a bound; it decides
        nothing.
    :param reread_at_most: the same number where ``reread`` is exact; ``skip_at_most``: the same of
        ``skip``.
    """

    topic: str
    target_topic: str
    partition: int
    state: GroupState
    source_offset: int | None
    image: int | None
    image_exact: bool
    checkpoint: tuple[int, int] | None
    checkpoint_age_seconds: float | None
    target_offset: int | None
    reread: int | None
    skip: int | None
    image_estimate: int | None = None
    reread_at_most: int | None = None
    skip_at_most: int | None = None


@dataclass(frozen=True)
class GroupParity:
    """Readiness of one consumer group for a failover.

    :param readiness: share of its partitions that lose nothing and re-read no more than
        ``warn.reread_records``; ``None``: not known.
    :param reread: sum over its partitions, of what is known; ``skip`` alike, not known if it would
        be 0 and a partition is not.
    :param reread_at_most: ``None``: of a partition no bound is known; the same number where
        ``reread`` is exact. ``skip_at_most``: the same of ``skip``.
    """

    flow: str
    group: str
    state: GroupState
    readiness: float | None
    reread: int | None
    skip: int | None
    partitions: tuple[GroupPartition, ...]
    reread_at_most: int | None = None
    skip_at_most: int | None = None
