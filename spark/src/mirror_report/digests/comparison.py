"""Two bundles of digests compared; no cluster is asked."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirror_report.checks import content, digests
from mirror_report.checks.verdict import verdict, worst_first
from mirror_report.config import Spark
from mirror_report.model import BucketDifference, CompareDocument, CompareTopic, Finding, Progress
from mirror_report.parity import without_spark
from mirror_report.parity.plan import unreadable
from mirror_report.parity.spark import class_archive
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.state import Bundle, Unreadable
from mirror_report.parity.state import bundle as bundles
from mirror_report.render import SCHEMA_VERSION

# Differing buckets that are named; all of them are counted.
DIFFERENCES = 1000


def compare_bundles(spark: Spark, first: Path, second: Path, progress: Progress) -> CompareDocument:
    """Compare two bundles; no cluster is asked.

    :raises ReportError: one cannot be read, or they do not belong together.
    """
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = []
        for number, path in enumerate((first, second)):
            directory = Path(scratch) / str(number)
            directory.mkdir()
            unpacked.append(bundles.unpack(path, directory))
        source, target = bundles.both_sides(unpacked[0][0], unpacked[1][0])
        sums, differing = _compare(
            spark, source, target, [file for _, files in unpacked for file in files], progress
        )
    names = sorted({topic.topic for side in (source, target) for topic in side.topics.values()})
    topics = [_topic(name, sums.get(name), source, target) for name in names]
    findings = worst_first(
        [finding for topic in topics for finding in _findings(topic, source, target)]
        + digests.nothing_compared(source.flow, topics)
    )
    return CompareDocument(
        schema_version=SCHEMA_VERSION,
        flow=source.flow,
        source_cluster_id=source.cluster_id,
        target_cluster_id=target.cluster_id,
        source_taken_at_ms=source.taken_at_ms,
        target_taken_at_ms=target.taken_at_ms,
        verdict=verdict(findings),
        topics=topics,
        differences=differing,
        differing_buckets=sum(topic.buckets["mismatch"] for topic in topics),
        findings=findings,
    )


def _compare(
    spark: Spark,
    source: Bundle,
    target: Bundle,
    files: Sequence[Path],
    progress: Progress,
) -> tuple[dict[str, Mapping[str, Any]], list[BucketDifference]]:
    """Sums by topic of the target, and the first of the buckets that differ."""
    if not files:
        return {}, []
    try:
        # Every other step works without Spark.
        from mirror_report.parity.spark import session  # noqa: PLC0415
        from mirror_report.parity.steps import bundle  # noqa: PLC0415
    except ImportError as error:
        raise without_spark(error) from error
    if (hint := class_archive.hint(spark)) is not None:
        progress(hint)
    progress("comparing digests")
    expected = sum(file.stat().st_size for file in files)
    with session.open_session(spark, expected) as opened, spark_errors():
        rows, differing = bundle.compare_rows(opened, files, source, target, DIFFERENCES)
    return {row["topic"]: row for row in rows}, [
        BucketDifference(
            topic=row["topic"],
            partition=row["lane"] if row["lane"] >= 0 else None,
            bucket_ms=row["bucket"],
            source_records=row["n_source"],
            target_records=row["n_target"],
        )
        for row in differing
    ]


def _topic(
    name: str, sums: Mapping[str, Any] | None, source: Bundle, target: Bundle
) -> CompareTopic:
    ours = {origin: topic for origin, topic in source.topics.items() if topic.topic == name}
    theirs = [topic for topic in target.topics.values() if topic.topic == name]
    both = [*ours.values(), *theirs]
    status, reason = digests.topic_outcome(
        sums,
        on_source=bool(ours),
        on_target=bool(theirs),
        unknown=[topic.unknown for topic in both if topic.unknown is not None],
        skips=[topic.skip for topic in both if topic.skip is not None],
    )
    sums, beyond = sums or {}, _beyond(name, source, target)
    unread = unreadable.by_side(beyond)
    replaced = sums.get("replaced", 0)
    if status in ("verified", "in_flight") and (beyond or replaced):
        status = "unverifiable"
        reason = unreadable.reason(beyond) if beyond else content.REPLACED
    return CompareTopic(
        topic=name,
        source_topics=sorted(ours),
        status=status,
        reason=reason,
        source_records=sums.get("n_source", 0) + unread["source"],
        target_records=sums.get("n_target", 0) + unread["target"],
        verified_records=sums.get("records_verified", 0) - replaced,
        replaced_records=replaced,
        in_flight_records=sums.get("records_in_flight", 0),
        skipped_records=sums.get("records_skipped", 0),
        fewer=sums.get("fewer", 0),
        more=sums.get("more", 0),
        buckets_same_number=sums.get("buckets_same_number", 0),
        buckets={
            bucket: sums.get(f"buckets_{bucket}", 0)
            for bucket in ("verified", "in_flight", "mismatch", "skipped")
        },
    )


def _beyond(topic: str, source: Bundle, target: Bundle) -> list[Unreadable]:
    return [*bundles.beyond(source, topic), *bundles.beyond(target, topic)]


def _findings(topic: CompareTopic, source: Bundle, target: Bundle) -> list[Finding]:
    findings = digests.findings(source.flow, topic)
    beyond = _beyond(topic.topic, source, target)
    if beyond and topic.status != "unknown":
        lanes = unreadable.by_lane(beyond, keeps_partitions=source.keeps_partitions)
        count, reason = sum(lanes.values()), unreadable.reason(beyond)
        findings.append(digests.unverifiable(source.flow, topic.topic, count, reason))
    if topic.replaced_records:
        findings.append(digests.replaced(source.flow, topic.topic, topic.replaced_records))
    return findings
