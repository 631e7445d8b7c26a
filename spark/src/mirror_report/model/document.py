"""The documents that commands print and keep; ``render/report.schema.json`` describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_report.model.content import ParityStatus, TopicParity
from mirror_report.model.findings import Finding, Verdict
from mirror_report.model.groups import GroupParity
from mirror_report.model.lag import LagPoint, PartitionLag
from mirror_report.model.topics import TopicStatus


@dataclass(frozen=True)
class FlowStatus:
    """One line per flow: where it comes from, where it goes, how it is.

    :param group_id: the group of the mirror's processes.
    :param target_brokers: how many brokers the target has; ``source_brokers``: the source.
    :param heartbeat_age_seconds: age of the newest heartbeat the mirror brought along: that the
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
    source_brokers: int | None = None


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
class CompareTopic:
    """One target topic by two digest bundles.

    :param fewer: records that the target lacks at least, summed over the buckets where it has
        fewer; ``more``: records it has too many, likewise.
    :param buckets_same_number: buckets with as many records on both sides, but others.
    :param buckets: status -> buckets.
    :param replaced_records: as in :class:`TopicParity`; they do not count as verified.
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
    replaced_records: int = 0


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
class CompareDocument:
    """What ``compare`` says of two digest bundles of one flow.

    :param differences: the first of the buckets that differ; ``differing_buckets`` counts all.
    """

    schema_version: str
    flow: str
    source_cluster_id: str
    target_cluster_id: str
    source_taken_at_ms: int
    target_taken_at_ms: int
    verdict: Verdict
    topics: list[CompareTopic]
    differences: list[BucketDifference]
    differing_buckets: int
    findings: list[Finding]


@dataclass(frozen=True)
class Confirmation:
    """Whether a mirror took up its work.

    :param flowing: the position moved while it was watched; ``None``: no record was waiting.
    """

    flow: str
    ok: bool
    flowing: bool | None
    text: str


@dataclass(frozen=True)
class ConfirmDocument:
    """What ``confirm --json`` prints, for the role that starts mirrors."""

    ok: bool
    flows: list[Confirmation]


@dataclass(frozen=True)
class Lines:
    """What a command says that only did something."""

    lines: tuple[str, ...]


DocumentWithVerdict = (
    Report | LagDocument | CheckDocument | GroupsDocument | ProofDocument | CompareDocument
)
"""Documents with findings, and a verdict that is the exit status."""
Document = DocumentWithVerdict | ConfirmDocument
