"""Whether the records of a topic are on the target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mirror_report.model.findings import Finding

ParityStatus = Literal["verified", "in_flight", "mismatch", "unverifiable", "skipped", "unknown"]


# How the content of a topic is compared: by minute of the records' timestamps, between two offset
# syncs, by hash of the record (a topic at rest), by the latest value of each key (if compacted).
Strategy = Literal["timestamp", "offset_syncs", "hash", "latest_by_key", "none"]


# What a record that does not match can be; ``docs/report/content.md`` says what each means.
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
    """The content of one mirrored topic, as far as it is known.

    :param counts: class of :data:`CLASSES` -> records of it; ``None``: not known, never 0.
    :param accounted: class -> records an earlier run has reported.
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
    :param replaced_records: of what is unverifiable, records with header keys that are no UTF-8:
        Java's clients, of mirrors as well, read and write U+FFFD for such bytes.
    :param open_records: records below the committed position in minutes that have been open for
        longer than ``open_minutes``, at most: their losses are reported, the rest when their
        minute closes.
    :param open_since_ms: since when the first of these minutes is open.
    :param open_unjudged: of these records, those that were not compared for losses, at most: they
        count as due, and as not verified.
    :param breach_seconds: until retention removes the oldest record not verified yet; negative: it
        has begun to; ``None``: nothing waits, or retention has no bound.
    :param scanned_at_ms: when a compacted topic was last compared as a whole; ``None``: it was
        not yet, or it is not compacted.
    :param uncompared_records: records of a compacted topic that were mirrored since, and were not
        compared.
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
    replaced_records: int = 0
    scanned_at_ms: int | None = None
    uncompared_records: int = 0
    open_records: int = 0
    open_since_ms: int | None = None
    open_unjudged: int = 0
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
