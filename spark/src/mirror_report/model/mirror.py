"""What a mirror keeps of itself in the clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_report.model.cluster import ClusterSnapshot, GroupSnapshot, Place, Positions
from mirror_report.model.errors import ReportError


@dataclass(frozen=True)
class OffsetSync:
    """A mirror's record that a source offset became a target offset.

    :param timestamp_ms: when it was written.
    :param begins: a side went back before it, so no older one holds for what follows.
    """

    upstream: int
    downstream: int
    timestamp_ms: int
    begins: bool = False


@dataclass(frozen=True)
class WorkerState:
    """State of a connector or of one of its tasks, as Kafka Connect keeps it.

    :param task: number of the task; ``None``: the connector itself.
    :param state: Connect's own word (RUNNING, FAILED, UNASSIGNED, PAUSED, STOPPED, RESTARTING).
    :param error: why it failed: the first line of its trace, and its first cause.
    """

    connector: str
    task: int | None
    state: str
    error: str | None


@dataclass(frozen=True)
class ForeignRecords:
    """Records of a topic in which a mirror keeps its state that nothing of the mirror writes.

    :param offset: of the last one, and ``why``: what is wrong with it.
    :param read_at_ms: when that was read.
    """

    topic: str
    partition: int
    count: int
    offset: int
    why: str
    read_at_ms: int


@dataclass(frozen=True)
class MirrorStatus:
    """What a mirror has committed, and what else it keeps of itself.

    :param positions: the committed positions; nothing else decides.
    :param committed_at_ms: when each was committed, if known.
    :param problems: what could not be read beside the positions, and why.
    :param foreign: records of other writers where it keeps its state.
    """

    positions: Positions
    committed_at_ms: Mapping[Place, int] = field(default_factory=dict)
    syncs: Mapping[Place, OffsetSync] = field(default_factory=dict)
    workers: tuple[WorkerState, ...] = ()
    problems: tuple[ReportError, ...] = ()
    foreign: tuple[ForeignRecords, ...] = ()


@dataclass(frozen=True)
class Observed:
    """One observation of a flow.

    :param auto_creation: whether the target creates topics by itself; ``None``: not known.
    :param target_error: why the target could not be asked; all of its topics are unknown then.
    """

    source: ClusterSnapshot
    mirror: MirrorStatus
    group: GroupSnapshot
    target: ClusterSnapshot
    auto_creation: bool | None
    target_error: ReportError | None = None

    @property
    def positions(self) -> Positions:
        """Committed positions."""
        return self.mirror.positions
