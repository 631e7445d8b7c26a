"""Whether topics at rest are whole on both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mirror_report.checks import content, remedies
from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.config import Cluster, ConfigError, Credentials, Flow, Settings
from mirror_report.kafka import guarded
from mirror_report.kafka.records import WAITING_SECONDS, oldest_waiting
from mirror_report.model import (
    CLASSES,
    Baseline,
    ClusterSnapshot,
    Finding,
    ParityStatus,
    Place,
    Progress,
    ProofDocument,
    ReportError,
    Sample,
    TopicBaseline,
    TopicParity,
    TopicSnapshot,
)
from mirror_report.observe import Snapshots
from mirror_report.parity import classes, without_spark
from mirror_report.parity.plan import (
    FlowSnapshot,
    Range,
    TopicAtRest,
    strategies,
    total_bytes,
    total_records,
    unreadable,
)
from mirror_report.parity.plan.snapshots import of_present_topics
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.state import Side
from mirror_report.render import SCHEMA_VERSION
from mirror_report.state import baselines
from mirror_report.state.store import Store

if TYPE_CHECKING:
    from mirror_report.parity.steps.prove import Proved


def prove_topics(
    settings: Settings,
    flow_name: str,
    topic: str | None,
    progress: Progress,
    snapshots: Snapshots | None = None,
    *,
    sha256: bool = False,
) -> ProofDocument:
    """Compare everything both sides of topics at rest hold, whatever their timestamps.

    :param topic: on the source or on the target; ``None``: all the flow mirrors.
    :param snapshots: of the clusters.
    :param sha256: compare record by record, by hashes that nobody can forge.
    :raises ReportError: a cluster cannot be read, Spark fails, or the topic is not the flow's.
    """
    flow = settings.flow(flow_name)
    snapshots = snapshots or Snapshots(settings)
    recorded = baselines.load(Store(settings.state_directory)).get(flow.name, Baseline())
    before = _observe(snapshots, flow)
    feeds = _feeds(flow, before.source, topic)
    waiting = _waiting(settings.clusters[flow.source], settings.credentials, before, feeds)
    rows: dict[str, TopicParity] = {}
    subjects: list[TopicAtRest] = []
    for name, origins in feeds.items():
        chosen = strategies.choose(
            flow,
            [before.source.topics[origin] for origin in origins],
            before.target.topics.get(name),
        )
        if name in before.target.errors:
            rows[name] = _empty(flow, name, origins, "unknown", before.target.errors[name])
        elif chosen.strategy == "latest_by_key":
            reason = f"{chosen.reason}: mirror-report run compares the latest record of each key"
            rows[name] = _empty(flow, name, origins, "skipped", reason)
        elif waiting.keys() & set(origins):
            reason = f"{sum(waiting.get(origin, 0) for origin in origins)} records wait"
            rows[name] = _empty(flow, name, origins, "in_flight", reason)
        else:
            subjects.append(_subject(flow, name, origins, before, recorded))
    if subjects:
        total = sum(total_bytes(subject.ranges) for subject in subjects)
        progress(f"proving {len(subjects)} topic(s): about {total / 1e6:.0f} MB to read")
        proved = _compare(settings, flow, subjects, progress, sha256=sha256)
        after = _observe(snapshots, flow)
        for subject in subjects:
            name, origins = subject.topic, feeds[subject.topic]
            if _state(before, origins, name) != _state(after, origins, name):
                reason = "the topic moved while it was read"
                rows[name] = _empty(flow, name, origins, "in_flight", reason)
            else:
                row = _empty(flow, name, origins, "verified", _reason(subject, sha256=sha256))
                rows[name] = _compared(row, proved[name])
    topics = [rows[name] for name in feeds]
    findings = worst_first(
        each for row in topics for each in _findings(row, flow, settings.clusters)
    )
    return ProofDocument(SCHEMA_VERSION, verdict(findings), topics, findings)


def _observe(snapshots: Snapshots, flow: Flow) -> FlowSnapshot:
    """Both sides of a flow at one moment, in the order source, positions, target."""
    source = snapshots.source(flow)
    return FlowSnapshot(
        flow, of_present_topics(snapshots.positions(flow), source), source, snapshots.target(flow)
    )


def _feeds(flow: Flow, source: ClusterSnapshot, only: str | None) -> dict[str, tuple[str, ...]]:
    """Topics of the target to prove, and the topics of the source that feed each.

    :param only: one of them, on the source or on the target; ``None``: all.
    """
    hidden = [f"{name}: {why}" for name, why in source.errors.items() if only in {None, name}]
    if hidden:
        raise ReportError("; ".join(hidden))
    feeds: dict[str, tuple[str, ...]] = {}
    for name in sorted(source.topics):
        topic = flow.target_topic(name)
        feeds[topic] = (*feeds.get(topic, ()), name)
    chosen = {topic: names for topic, names in feeds.items() if only in {None, topic, *names}}
    if only is not None and not chosen:
        raise ConfigError(
            f"flow {flow.name} mirrors no topic {only!r} that is on {flow.source}",
            "mirror-report show names those it does",
        )
    return chosen


def _waiting(
    source: Cluster,
    credentials: Credentials,
    snapshot: FlowSnapshot,
    feeds: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """Topic of the source -> offsets the mirror has not committed, unless they hold no records."""
    behind: dict[Place, tuple[int, int]] = {}
    for name in (name for origins in feeds.values() for name in origins):
        for partition, log in snapshot.source.topics[name].partitions.items():
            position = max(log.log_start, snapshot.positions.get(name, {}).get(partition, 0))
            if position < log.end:
                behind[name, partition] = (position, log.end)
    ages = guarded.each(
        lambda ranges: oldest_waiting(source, credentials, ranges), behind, WAITING_SECONDS
    ).answers
    waiting: dict[str, int] = {}
    for place, (position, end) in behind.items():
        if place not in ages or ages[place] is not None:
            waiting[place[0]] = waiting.get(place[0], 0) + end - position
    return waiting


def _subject(
    flow: Flow, topic: str, origins: Sequence[str], snapshot: FlowSnapshot, recorded: Baseline
) -> TopicAtRest:
    # A baseline taken while the mirror ran is not exact on the target.
    exact = {} if recorded.group_existed else recorded.topics
    begun = next(
        (exact[origin] for origin in reversed(origins) if origin in exact), TopicBaseline()
    )
    on_target = snapshot.target.topics.get(topic)
    sides: list[tuple[Side, str, TopicSnapshot | None, TopicBaseline]] = [
        *(
            ("source", origin, snapshot.source.topics[origin], exact.get(origin, TopicBaseline()))
            for origin in origins
        ),
        ("target", topic, on_target, begun),
    ]
    ranges: list[Range] = []
    gaps = {"source": False, "target": False}
    for side, name, of_side, baseline in sides:
        floor = baseline.side(side).start
        for partition, log in (of_side.partitions if of_side else {}).items():
            first = max(log.log_start, floor.get(partition, 0))
            gaps[side] |= log.log_start > floor.get(partition, 0)
            if first < (end := log.end_for(flow.isolation(side))):
                ranges.append(Range(flow.name, side, name, topic, partition, first, end))
    return TopicAtRest(
        flow.name,
        topic,
        tuple(ranges),
        on_target is None or strategies.keeps_time(on_target),
        source_gap=gaps["source"],
        target_gap=gaps["target"],
    )


def _compare(
    settings: Settings,
    flow: Flow,
    subjects: Sequence[TopicAtRest],
    progress: Progress,
    *,
    sha256: bool,
) -> dict[str, "Proved"]:
    try:
        # Spark is only needed here; most commands work without it.
        from mirror_report.parity.spark import session as sessions  # noqa: PLC0415
        from mirror_report.parity.spark import source  # noqa: PLC0415
        from mirror_report.parity.steps import prove  # noqa: PLC0415
    except ImportError as error:
        raise without_spark(error) from error
    ranges = [part for subject in subjects for part in subject.ranges]
    expected, records = total_bytes(ranges), total_records(ranges)
    clusters = settings.clusters_of([flow.name])
    how = source.for_distance(settings.spark, expected, clusters)
    with sessions.open_session(how, expected, records, clusters) as session, spark_errors():
        of_flow = replace(settings, flows=(flow,))
        return prove.prove(session, of_flow, subjects, progress, sha256=sha256)


def _state(snapshot: FlowSnapshot, origins: Sequence[str], topic: str) -> list[Any]:
    """Ids and bounds of all logs: equal at two moments if nothing moved in between."""
    source, target = snapshot.source.topics, snapshot.target.topics
    topics = [*(source.get(origin) for origin in origins), target.get(topic)]
    return [(each.topic_id, each.partitions) if each else None for each in topics]


def _reason(subject: TopicAtRest, *, sha256: bool) -> str:
    reasons = {
        "compared record by record by SHA-256": sha256,
        "timestamps are not compared: the target replaces them": not subject.keeps_time,
        "the logs no longer hold everything since the baseline": subject.source_gap
        or subject.target_gap,
    }
    return "; ".join(text for text, holds in reasons.items() if holds)


def _empty(
    flow: Flow, topic: str, origins: Sequence[str], status: ParityStatus, reason: str
) -> TopicParity:
    return TopicParity(
        flow=flow.name, source_topic=origins[0], topic=topic, status=status,
        source_records=0, target_records=0, verified_records=0, in_flight_records=0,
        skipped_records=0, counts=dict.fromkeys(CLASSES),
        accounted=dict.fromkeys(classes.ACCOUNTABLE, 0),
        buckets=dict.fromkeys(classes.STATUSES, 0),
        verified_through_ms=None, newest_due_ms=None, reason=reason, samples={}, strategy="hash",
    )  # fmt: skip


def _compared(row: TopicParity, proved: "Proved") -> TopicParity:
    if proved.unknown is not None:
        return replace(row, status="unknown", reason=proved.unknown)
    counts = {name: sum(proved.counts.get(name, {}).values()) for name in CLASSES}
    status: ParityStatus = "unverifiable" if counts["unverifiable"] else row.status
    if any(counts[name] for name in CLASSES if name not in classes.HARMLESS):
        status = "mismatch"
    wrong = sum(counts[name] for name in CLASSES if name not in ("extra", "duplicate"))
    beyond = unreadable.reason(proved.beyond) if proved.beyond else ""
    partitions = {
        name: {str(lane): count for lane, count in sorted(lanes.items()) if lane >= 0}
        for name, lanes in proved.counts.items()
    }
    return replace(
        row,
        status=status,
        reason="; ".join(filter(None, (row.reason, beyond))),
        source_records=proved.source_records,
        target_records=proved.target_records,
        replaced_records=proved.replaced_records,
        verified_records=max(0, proved.source_records - wrong),
        counts=counts,
        partitions={name: lanes for name, lanes in partitions.items() if lanes},
        samples={
            name: [Sample(**sample) for sample in samples]
            for name, samples in proved.samples.items()
            if counts.get(name)
        },
    )


def _findings(topic: TopicParity, flow: Flow, clusters: Mapping[str, Cluster]) -> list[Finding]:
    if topic.status != "in_flight":
        return content.findings(topic, flow, clusters)
    return [
        finding(
            "not_proved",
            f"{topic.flow}/{topic.topic}: not at rest, so nothing is proved: {topic.reason}",
            f"Stop the producers, wait until mirror-report lag --flow {topic.flow} shows no lag, "
            f"then {remedies.prove_topic(topic.flow, topic.topic)}",
            flow=topic.flow,
            topic=topic.topic,
        )
    ]
