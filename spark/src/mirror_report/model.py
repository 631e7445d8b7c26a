"""What crosses a boundary: frozen records, the same ones the JSON report is made of.

Offsets are Kafka offsets, ``*_ms`` are milliseconds since 1970, ``None`` means unknown (never 0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["ok", "warning", "critical", "unknown"]
LagState = Literal[
    "OK",
    "IDLE",
    "LAGGING",
    "STALLED",
    "STOPPED",
    "REWOUND",
    "TRUNCATED",
    "RESET",
    "UNKNOWN",
]
ParityStatus = Literal["verified", "in_flight", "mismatch", "unverifiable", "skipped", "unknown"]
Strategy = Literal["timestamp", "offset_syncs", "hash", "latest_by_key", "none"]
"""How the content of a topic is compared: by minute of the records' timestamps, between two offset
syncs, by hash of the record (a topic at rest), by the latest value of each key (if compacted)."""

CLASSES = (
    "missing",
    "duplicate",
    "corrupt_value",
    "corrupt_headers",
    "altered_timestamp",
    "moved",
    "reordered",
    "extra",
    "deleted_early",
    "expired",
    "unverifiable",
)
"""What a record that does not match can be; ``docs/report/content.md`` says what each means."""

PositionSource = Literal["group_commit", "connect_offsets", "baseline", "log_start"]

Positions = dict[str, dict[int, int]]
"""Source topic -> partition -> next offset to mirror (committed); absent = never committed."""


Place = tuple[str, int]
"""Topic and partition."""


class ReportError(Exception):
    """Something an operator can act on; its text is the whole message, with the cure."""


def sentence(error: BaseException) -> str:
    """First line of an unexpected error; some of them cannot even say what they are."""
    try:
        first = str(error).strip().partition("\n")[0][:300]
    except Exception:  # a Java error asks a JVM that may be gone
        first = "no more is known"
    return f"{type(error).__name__}: {first}"


@dataclass(frozen=True)
class Finding:
    """One thing the report has to say.

    :param kind: a key of the verdict table (:mod:`mirror_report.checks.verdict`).
    :param count: records or partitions concerned, if countable.
    :param action: what to do next, with the exact command where there is one.
    :param accounted: already reported by an earlier run; no longer raises the verdict.
    """

    severity: Severity
    kind: str
    flow: str | None
    topic: str | None
    partition: int | None
    count: int | None
    message: str
    action: str
    accounted: bool = False


@dataclass(frozen=True)
class PartitionSnapshot:
    """Log start and end of one partition.

    :param log_end: last stable offset; a reader of committed records gets this far.
    :param high_watermark: end for readers of uncommitted records, which MirrorMaker 1 is.
    """

    log_start: int
    log_end: int
    high_watermark: int | None = None

    @property
    def end(self) -> int:
        """End of what a mirror copies: it does not wait for transactions to commit."""
        return max(self.log_end, self.high_watermark or 0)

    def end_for(self, isolation: str) -> int:
        """End of what a reader gets, by Kafka's word for what it waits for."""
        return self.log_end if isolation == "read_committed" else self.end


@dataclass(frozen=True)
class TopicSnapshot:
    """One topic of one cluster at one moment.

    :param configs: effective settings; empty if they may not be read.
    :param bytes: size of the leaders' logs on disk; ``None`` if it may not be asked for.
    :param operations: what our identity may do with the topic; ``None`` if the broker does not say.
    :param config_sources: setting -> where its value is from, in Kafka's words
        (DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG, ...).
    """

    name: str
    topic_id: str
    partitions: dict[int, PartitionSnapshot]
    configs: dict[str, str]
    bytes: int | None
    operations: tuple[str, ...] | None = None
    config_sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterSnapshot:
    """The topics of one cluster at one moment.

    :param errors: topic name -> why it could not be read; such a topic is unknown, not absent.
    :param refused: those of ``errors`` for which our identity lacks a permission.
    """

    alias: str
    cluster_id: str
    taken_at_ms: int
    topics: dict[str, TopicSnapshot]
    errors: dict[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GroupMember:
    """A live member of a consumer group and the partitions it owns."""

    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GroupSnapshot:
    """A consumer group.

    :param state: Kafka's own word (Stable, Empty, Dead, PreparingRebalance, ...).
    """

    group_id: str
    state: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True)
class OffsetSync:
    """MirrorMaker 2's word that a source offset became a target offset.

    :param timestamp_ms: when it said so.
    """

    upstream: int
    downstream: int
    timestamp_ms: int


GroupPlace = tuple[str, str, int]
"""Group, topic of the source, and partition."""


@dataclass(frozen=True)
class Translation:
    """What MirrorMaker 2 keeps to find a group's position on the target.

    :param syncs: offset syncs of a source partition, oldest first, thinned out with age.
    :param checkpoints: newest checkpoint of a group's position: offset on the source and on the
        target, and when it was written; ``None``: they could not be read to their end.
    :param problems: what could not be read, and why.
    """

    syncs: Mapping[Place, tuple[OffsetSync, ...]] = field(default_factory=dict)
    checkpoints: Mapping[GroupPlace, OffsetSync] | None = field(default_factory=dict)
    problems: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class OpenTransaction:
    """The oldest open transaction of one partition.

    :param start_offset: where it begins in the partition.
    :param seconds: for how long it has been open; at least so long if ``at_least``, because our
        identity may not ask for more.
    :param transactional_id: whose it is; ``None``: not known.
    """

    start_offset: int
    seconds: float
    at_least: bool
    transactional_id: str | None


@dataclass(frozen=True)
class WorkerState:
    """State of a connector or of one of its tasks, as Kafka Connect keeps it.

    :param task: number of the task; ``None``: the connector itself.
    :param state: Connect's own word (RUNNING, FAILED, UNASSIGNED, PAUSED, STOPPED, RESTARTING).
    :param error: first line of the trace of a failed one.
    """

    connector: str
    task: int | None
    state: str
    error: str | None


@dataclass(frozen=True)
class Standing:
    """Where a mirror stands: what it has committed, and what else it says of itself.

    :param positions: the committed positions; nothing else decides.
    :param committed_at_ms: when each was committed, if known.
    :param problems: what could not be read beside the positions, and why.
    """

    positions: Positions
    committed_at_ms: Mapping[Place, int] = field(default_factory=dict)
    syncs: Mapping[Place, OffsetSync] = field(default_factory=dict)
    workers: tuple[WorkerState, ...] = ()
    problems: tuple[str, ...] = ()


Resource = tuple[str, str]
"""Kind of a resource (topic, group, cluster, transactional-id) and its name."""


@dataclass(frozen=True)
class Access:
    """What a cluster says our identity may do with one resource.

    :param exists: ``None``: it is hidden from us, or was not asked about.
    :param operations: Kafka's word -> whether it is allowed; what is left out could not be asked.
    """

    exists: bool | None = None
    operations: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """One certificate a connection to a cluster rests on.

    :param role: who shows it: ``broker``, ``authority`` or ``client``.
    :param holder: which one of its role, such as ``broker 1 (east1:9094)``.
    :param subject: whom it names; empty if it was not read.
    :param ends_at_ms: end of its validity.
    :param problem: why it could not be examined.
    :param expired: so much is known even if it could not be examined.
    """

    alias: str
    role: Literal["broker", "authority", "client"]
    holder: str
    subject: str = ""
    ends_at_ms: int | None = None
    problem: str = ""
    expired: bool = False


@dataclass(frozen=True)
class PartitionLag:
    """How far the mirror is behind on one source partition.

    :param position: next offset to mirror, as committed.
    :param lag_seconds: age of the oldest record not yet mirrored, by its timestamp.
    :param lost: offsets the source certainly dropped before they were mirrored, since the baseline.
    :param lost_at_most: upper bound where it cannot be told how many; ``None``: ``lost`` is exact.
    :param lag_bytes: size of the records that wait, estimated from the size of the log on disk.
    :param waiting_seconds: for how long the oldest offset not yet mirrored has been there: its
        record's age, held to what earlier looks saw of the log's end; at least so long if
        ``waiting_at_least``, because no look goes back far enough.
    :param produce_rate: offsets per second the source grew by over the last five minutes, or since
        the look before if that is longer ago; ``mirror_rate``: by which the position did.
    :param eta_seconds: until the mirror has caught up at these rates; ``catches_up``: false if it
        never will, ``None`` if not known.
    :param position_source: where the position is from; ``position_age_seconds``: age of that word.
    :param open_transaction_seconds: age of the oldest transaction that holds back readers of
        committed records in this partition.
    :param estimate: where the mirror probably stands now, ahead of what it has committed; it
        decides nothing.
    :param estimate_source: what the estimate rests on.
    :param estimate_age_seconds: age of that.
    """

    flow: str
    topic: str
    partition: int
    state: LagState
    log_start: int | None
    log_end: int | None
    position: int | None
    lag_records: int | None
    lag_seconds: float | None
    lost: int = 0
    estimate: int | None = None
    estimate_source: Literal["offset_syncs", "connect_offsets"] | None = None
    estimate_age_seconds: float | None = None
    lost_at_most: int | None = None
    lag_bytes: int | None = None
    waiting_seconds: float | None = None
    waiting_at_least: bool = False
    produce_rate: float | None = None
    mirror_rate: float | None = None
    eta_seconds: float | None = None
    catches_up: bool | None = None
    position_source: PositionSource | None = None
    position_age_seconds: float | None = None
    open_transaction_seconds: float | None = None


@dataclass(frozen=True)
class Sample:
    """One record that did not match; never its content."""

    side: Literal["source", "target"]
    partition: int
    offset: int
    timestamp_ms: int
    key_hash: str
    record_hash: str
    key_bytes: int | None
    value_bytes: int | None


@dataclass(frozen=True)
class TopicParity:
    """What is known of one mirrored topic's content.

    :param counts: class of :data:`CLASSES` -> records found; ``None``: not known, never 0.
    :param accounted: class -> records an earlier run has told of.
    :param partitions: class -> source partition (as text) -> records; empty where the engine keeps
        no partitions.
    :param buckets: number of buckets by status.
    :param verified_through_ms: everything up to here is verified.
    :param newest_due_ms: timestamp of the newest record that should be verified by now.
    :param samples: class -> at most 20 samples.
    :param strategy: how the content is compared.
    :param due_records: records that should be verified by now, those never compared among them.
    :param coverage: share of them that is; ``None``: nothing is due, or it is not known.
    :param expired_records: records that were read on the target and left it since, as its retention
        allows.
    :param breach_seconds: until retention removes the oldest record not verified yet; negative: it
        has begun to; ``None``: nothing waits, or retention has no bound.
    :param strip: partition (as text; ``*`` where the engine keeps none) -> status of each of the
        newest hours, as ``[hour start in ms, worst status]``.
    """

    flow: str
    source_topic: str
    topic: str
    status: ParityStatus
    source_records: int
    target_records: int
    verified_records: int
    in_flight_records: int
    skipped_records: int
    counts: Mapping[str, int | None]
    accounted: Mapping[str, int]
    buckets: Mapping[str, int]
    verified_through_ms: int | None
    newest_due_ms: int | None
    reason: str
    samples: Mapping[str, list[Sample]]
    partitions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    strategy: Strategy = "timestamp"
    breach_seconds: float | None = None
    due_records: int | None = None
    coverage: float | None = None
    expired_records: int | None = None
    strip: Mapping[str, list[tuple[int, ParityStatus]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ParityResult:
    """The parity part of one run."""

    topics: list[TopicParity]
    findings: list[Finding]
    backlog_records: int
    backlog_bytes: int | None
    spark_started: bool
    seconds: float


@dataclass(frozen=True)
class ConfigDifference:
    """A setting of a topic that differs between the sides.

    :param kind: ``synced``: MirrorMaker 2 would set it on the target; ``risk``: nothing syncs it,
        and it endangers the mirror.
    """

    name: str
    source: str | None
    target: str | None
    kind: Literal["synced", "risk"]


@dataclass(frozen=True)
class TopicStatus:
    """One topic of the source, or one of the target that nothing on the source feeds any more.

    :param topic: name on the source; ``target_topic``: on the target.
    :param selected: whether the flow mirrors it; ``reason``: why not, or what is wrong with it.
    :param source_partitions: ``None``: the topic is not there, or hidden.
    """

    flow: str
    topic: str
    target_topic: str
    selected: bool
    reason: str
    source_partitions: int | None
    target_partitions: int | None
    differences: tuple[ConfigDifference, ...] = ()


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
    :param reread: records it would read again; ``skip``: records it would never read.
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


@dataclass(frozen=True)
class GroupParity:
    """Readiness of one consumer group for a failover.

    :param readiness: share of its partitions that lose nothing and re-read no more than
        ``warn.reread_records``; ``None``: not known.
    """

    flow: str
    group: str
    state: GroupState
    readiness: float | None
    reread: int | None
    skip: int | None
    partitions: tuple[GroupPartition, ...]


@dataclass(frozen=True)
class LagPoint:
    """Lag of one topic over a stretch of time, for a line over time.

    :param at_ms: when the last look of the stretch was.
    :param lag_records: what that look saw; ``None``: not known then.
    :param since_ms: when the first look of the stretch was.
    :param lowest: lag at least, and ``highest`` at most, of the looks that knew it; ``None``: none
        did.
    """

    flow: str
    topic: str
    at_ms: int
    lag_records: int | None
    since_ms: int | None = None
    lowest: int | None = None
    highest: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The worst finding, as an exit status and a sentence."""

    exit_code: int
    severity: Severity
    text: str


@dataclass(frozen=True)
class FlowStatus:
    """One line per flow: where it comes from, where it goes, how it is.

    :param group_id: the group of the mirror's processes.
    :param target_brokers: how many brokers the target has.
    :param heartbeat_age_seconds: age of the newest heartbeat MirrorMaker 2 brought along: that the
        pipe works, and no more; ``None``: there is none, or it may not be read.
    :param coverage: verified share of the flow's records that are due; ``None``: nothing is due.
    """

    name: str
    engine: str
    source: str
    target: str
    source_cluster_id: str | None
    target_cluster_id: str | None
    group_id: str
    group_state: str | None
    target_brokers: int | None
    topics: tuple[str, ...]
    heartbeat_age_seconds: float | None = None
    coverage: float | None = None


@dataclass(frozen=True)
class Report:
    """The whole document of one run; ``render/report.schema.json`` describes it.

    :param coverage: verified share of the records that are due; ``None`` if nothing is due.
    :param backlog_records: records due and left for the next run; ``None``: not known.
    :param errors: what could not be found out.
    :param history: lag over time.
    :param valid_until: until when the report holds: three intervals of its timer after it was
        written; from then on the mirror is unknown, whatever the report says.
    :param age_seconds: age of the report when a command printed it; ``None`` in the file.
    """

    schema_version: str
    tool: Mapping[str, str]
    run_id: str
    generated_at: str
    duration_seconds: float
    verdict: Verdict
    coverage: float | None
    flows: list[FlowStatus]
    lag: list[PartitionLag]
    parity: list[TopicParity]
    backlog_records: int | None
    backlog_bytes: int | None
    spark_started: bool
    findings: list[Finding]
    errors: list[str]
    topics: list[TopicStatus] = field(default_factory=list)
    groups: list[GroupParity] = field(default_factory=list)
    history: list[LagPoint] = field(default_factory=list)
    valid_until: str | None = None
    age_seconds: float | None = None


@dataclass(frozen=True)
class LagDocument:
    """What ``lag --json`` prints."""

    schema_version: str
    verdict: Verdict
    flows: list[FlowStatus]
    lag: list[PartitionLag]
    findings: list[Finding]


@dataclass(frozen=True)
class CheckDocument:
    """What ``check --json`` prints."""

    schema_version: str
    verdict: Verdict
    flows: list[FlowStatus]
    findings: list[Finding]


@dataclass(frozen=True)
class GroupsDocument:
    """What ``groups --json`` prints."""

    schema_version: str
    verdict: Verdict
    groups: list[GroupParity]
    findings: list[Finding]


@dataclass(frozen=True)
class ProofDocument:
    """What ``prove --json`` prints."""

    schema_version: str
    verdict: Verdict
    parity: list[TopicParity]
    findings: list[Finding]


@dataclass(frozen=True)
class ApartTopic:
    """One target topic as two digest bundles tell it.

    :param fewer: records that the target lacks at least, summed over the buckets where it has
        fewer; ``more``: records it has too many, likewise.
    :param buckets_same_number: buckets with as many records on both sides, but others.
    :param buckets: status -> buckets.
    """

    topic: str
    source_topics: list[str]
    status: ParityStatus
    reason: str
    source_records: int
    target_records: int
    verified_records: int
    in_flight_records: int
    skipped_records: int
    fewer: int
    more: int
    buckets_same_number: int
    buckets: Mapping[str, int]


@dataclass(frozen=True)
class BucketDifference:
    """One bucket that differs between two bundles.

    :param partition: ``None``: the mirror keeps no partitions.
    :param bucket_ms: where it begins.
    """

    topic: str
    partition: int | None
    bucket_ms: int
    source_records: int
    target_records: int


@dataclass(frozen=True)
class ApartDocument:
    """What ``compare`` tells of two digest bundles of one flow.

    :param differences: the first of the buckets that differ; ``differing_buckets`` counts all.
    """

    schema_version: str
    flow: str
    source_cluster_id: str
    target_cluster_id: str
    source_taken_at_ms: int
    target_taken_at_ms: int
    verdict: Verdict
    topics: list[ApartTopic]
    differences: list[BucketDifference]
    differing_buckets: int
    findings: list[Finding]
