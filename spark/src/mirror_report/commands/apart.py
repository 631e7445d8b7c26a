"""``digest`` near each cluster, and ``compare`` of what it made, anywhere.

Between two data centres go kilobytes then, instead of the records of one of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.commands.flows import Progress
from mirror_report.config.errors import ConfigError
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Settings
from mirror_report.model.cluster import ClusterSnapshot
from mirror_report.model.content import ParityStatus
from mirror_report.model.document import ApartDocument, ApartTopic, BucketDifference
from mirror_report.model.findings import Finding
from mirror_report.observe import Snapshots
from mirror_report.parity.errors import without_spark
from mirror_report.parity.plan import unreadable
from mirror_report.parity.plan.bundle import describe, to_read
from mirror_report.parity.spark import class_archive
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.state import bundle as bundles
from mirror_report.parity.state.bundle import Bundle, BundleTopic
from mirror_report.parity.state.records import Side
from mirror_report.render.json import SCHEMA_VERSION
from mirror_report.state.store import Store

NOT_THERE = "not among the topics of the target"
DIFFERENCES = 1000
"""Differing buckets that are named; all of them are counted."""


def digest(
    settings: Settings,
    flow_name: str | None,
    side: Side,
    open_output: Callable[[Bundle], AbstractContextManager[BinaryIO]],
    progress: Progress,
) -> Bundle:
    """Digest one side of a flow, asking the cluster of that side alone.

    :param open_output: where the bundle goes.
    :raises ReportError: the cluster cannot be read.
    """
    flow = _one(settings, flow_name)
    take = Snapshots(settings)
    holds_positions = flow.engine.positions_side == side
    # What is below a position must be on the target: it is looked at last.
    if side == "source":
        snapshot = take.source(flow)
        positions = take.positions(flow) if holds_positions else None
    else:
        positions = take.positions(flow) if holds_positions else None
        snapshot = take.target(flow)
    made = describe(
        flow, side, snapshot, positions, _floors(settings, flow, side, snapshot),
        settings.bucket_seconds * 1000,
    )  # fmt: skip
    ranges = to_read(made)
    progress(f"digesting {sum(one.records for one in ranges)} records of the {side}")
    with tempfile.TemporaryDirectory() as scratch:
        rows = Path(scratch) / "rows" if ranges else None
        if rows is not None:
            steps, sessions = _spark()
            expected = sum(one.bytes for one in ranges)
            with sessions.open_session(settings.spark, expected) as session, spark_errors():
                unread = steps.write_rows(session, settings, ranges, rows, progress)
            made = bundles.with_unreadable(made, unread.records, unread.topics)
        with open_output(made) as out:
            bundles.pack(made, rows, out)
    return made


def compare(settings: Settings, one: Path, other: Path, progress: Progress) -> ApartDocument:
    """Hold two bundles against each other; no cluster is asked.

    :raises ReportError: one cannot be read, or they do not belong together.
    """
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = []
        for number, path in enumerate((one, other)):
            place = Path(scratch) / str(number)
            place.mkdir()
            unpacked.append(bundles.unpack(path, place))
        source, target = bundles.pair(unpacked[0][0], unpacked[1][0])
        files = [file for _, some in unpacked for file in some]
        rows: Sequence[Mapping[str, Any]] = []
        differing: Sequence[Mapping[str, Any]] = []
        if files:
            steps, sessions = _spark()
            hint = class_archive.hint(settings.spark)
            if hint is not None:
                progress(hint)
            progress("comparing digests")
            expected = sum(file.stat().st_size for file in files)
            with sessions.open_session(settings.spark, expected) as session, spark_errors():
                rows, differing = steps.compare_rows(session, files, source, target, DIFFERENCES)
    summaries = {row["topic"]: row for row in rows}
    told = [_topic(name, summaries.get(name), source, target) for name in _names(source, target)]
    findings = worst_first(
        [one for topic in told for one in _findings(source.flow, topic)]
        + [
            one
            for topic in told
            if topic.status != "unknown"
            for one in _beyond(topic.topic, source, target)
        ]
        + _nothing(source, told)
    )
    return ApartDocument(
        schema_version=SCHEMA_VERSION,
        flow=source.flow,
        source_cluster_id=source.cluster_id,
        target_cluster_id=target.cluster_id,
        source_taken_at_ms=source.taken_at_ms,
        target_taken_at_ms=target.taken_at_ms,
        verdict=verdict(findings),
        topics=told,
        differences=[_difference(row) for row in differing],
        differing_buckets=sum(one.buckets["mismatch"] for one in told),
        findings=findings,
    )


def _one(settings: Settings, name: str | None) -> Flow:
    if name is not None:
        return settings.flow(name)
    if len(settings.flows) == 1:
        return settings.flows[0]
    names = ", ".join(one.name for one in settings.flows)
    raise ConfigError(f"a digest is of one flow: choose with --flow one of {names or 'none'}")


def _floors(
    settings: Settings, flow: Flow, side: Side, snapshot: ClusterSnapshot
) -> dict[str, dict[str, int]]:
    """Where verification begins, if this host knows the flow's baseline."""
    recorded = Store(settings.state_directory).load("baseline").get(flow.name, {}).get("topics", {})
    found = {}
    for name in snapshot.topics:
        origin = name if side == "source" else flow.source_topic(name)
        # What may have been copied before the baseline cannot be told apart by digests.
        where = "required" if side == "source" else "target"
        found[name] = dict(recorded.get(origin, {}).get(where) or {})
    return found


def _spark() -> tuple[Any, Any]:
    try:
        # Every other step works without Spark.
        from mirror_report.parity.spark import session  # noqa: PLC0415
        from mirror_report.parity.steps import bundle  # noqa: PLC0415
    except ImportError as error:
        raise without_spark(error) from error
    return bundle, session


def _names(source: Bundle, target: Bundle) -> list[str]:
    return sorted({one.topic for side in (source, target) for one in side.topics.values()})


def _topic(name: str, row: Mapping[str, Any] | None, source: Bundle, target: Bundle) -> ApartTopic:
    ours = [one for one in source.topics.values() if one.topic == name]
    theirs = [one for one in target.topics.values() if one.topic == name]
    status, reason = _status(row, ours, theirs)
    known = row or {}
    beyond = [one for side in (source, target) for one in bundles.beyond(side, name)]
    there = unreadable.by_side(beyond)
    if beyond and status in ("verified", "in_flight"):
        status, reason = "unverifiable", unreadable.reason(beyond)
    return ApartTopic(
        topic=name,
        source_topics=sorted(origin for origin, one in source.topics.items() if one.topic == name),
        status=status,
        reason=reason,
        source_records=known.get("n_source", 0) + there["source"],
        target_records=known.get("n_target", 0) + there["target"],
        verified_records=known.get("records_verified", 0),
        in_flight_records=known.get("records_in_flight", 0),
        skipped_records=known.get("records_skipped", 0),
        fewer=known.get("fewer", 0),
        more=known.get("more", 0),
        buckets_same_number=known.get("buckets_same_number", 0),
        buckets={
            one: known.get(f"buckets_{one}", 0)
            for one in ("verified", "in_flight", "mismatch", "skipped")
        },
    )


def _status(
    row: Mapping[str, Any] | None, ours: Sequence[BundleTopic], theirs: Sequence[BundleTopic]
) -> tuple[ParityStatus, str]:
    both = (*ours, *theirs)
    unknown = [one.unknown for one in both if one.unknown is not None]
    skips = [one.skip for one in both if one.skip is not None]
    known = row or {}
    cases: Sequence[tuple[Any, ParityStatus, str]] = (
        (unknown, "unknown", unknown[0] if unknown else ""),
        (skips, "skipped", skips[0] if skips else ""),
        (not ours, "skipped", "not among the topics of the source"),
        (not theirs, "mismatch", NOT_THERE),
        (row is None, "in_flight", "no record on either side"),
        (known.get("buckets_mismatch"), "mismatch", ""),
        (known.get("buckets_verified"), "verified", ""),
        (known.get("buckets_in_flight"), "in_flight", "nothing is below the committed position"),
    )
    for applies, status, reason in cases:
        if applies:
            return status, reason
    return "skipped", "all of it reaches back to where a log begins"


def _findings(flow: str, topic: ApartTopic) -> list[Finding]:
    where = f"{flow}/{topic.topic}"
    again = f"Run mirror-report run --flow {flow} where both clusters can be read: it tells which"
    found = []
    if topic.reason == NOT_THERE:
        return [
            finding(
                "topic_missing", f"{where}: the target has no such topic",
                f"mirror-report check --flow {flow} tells what the mirror needs",
                flow=flow, topic=topic.topic,
            )
        ]  # fmt: skip
    if topic.status == "unknown":
        found.append(
            finding(
                "parity_unavailable", f"{where}: not compared: {topic.reason}",
                f"mirror-report digest --flow {flow} again", flow=flow, topic=topic.topic,
            )
        )  # fmt: skip
    if topic.status == "skipped":
        found.append(
            finding(
                "skipped", f"{where}: not compared: {topic.reason}", again,
                flow=flow, topic=topic.topic,
            )
        )  # fmt: skip
    if topic.fewer:
        found.append(
            finding(
                "missing", f"{where}: at least {topic.fewer} records of the source are not on the "
                "target", again, flow=flow, topic=topic.topic, count=topic.fewer,
            )
        )  # fmt: skip
    if topic.buckets_same_number:
        found.append(
            finding(
                "differs", f"{where}: {topic.buckets_same_number} buckets hold as many records on "
                "both sides, and others", again,
                flow=flow, topic=topic.topic, count=topic.buckets_same_number,
            )
        )  # fmt: skip
    if topic.more:
        found.append(
            finding(
                "differs", f"{where}: the target holds {topic.more} records more: duplicates, "
                "foreign ones, or some that reached the source after its bundle", again,
                flow=flow, topic=topic.topic, count=topic.more, severity="warning",
            )
        )  # fmt: skip
    return found


def _beyond(topic: str, source: Bundle, target: Bundle) -> list[Finding]:
    """What is said of records that no digest holds."""
    beyond = [one for side in (source, target) for one in bundles.beyond(side, topic)]
    if not beyond:
        return []
    lanes = unreadable.by_lane(beyond, keeps_partitions=source.keeps_partitions)
    count = sum(lanes.values())
    return [
        finding(
            "unverifiable",
            f"{source.flow}/{topic}: {count} records cannot be compared: "
            f"{unreadable.reason(beyond)}",
            "Make the producer of these records write timestamps in milliseconds",
            flow=source.flow, topic=topic, count=count,
        )
    ]  # fmt: skip


def _nothing(source: Bundle, topics: Sequence[ApartTopic]) -> list[Finding]:
    if any(one.buckets["verified"] or one.buckets["mismatch"] for one in topics):
        return []
    return [
        finding(
            "nothing_seen", f"{source.flow}: no record could be compared, so nothing is proved",
            "Make both bundles when records have been mirrored, the source's first",
            flow=source.flow,
        )
    ]  # fmt: skip


def _difference(row: Mapping[str, Any]) -> BucketDifference:
    return BucketDifference(
        topic=row["topic"],
        partition=row["lane"] if row["lane"] >= 0 else None,
        bucket_ms=row["bucket"],
        source_records=row["n_source"],
        target_records=row["n_target"],
    )
