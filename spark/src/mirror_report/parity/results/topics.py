"""Topics as they are reported, also by a run that found nothing new."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mirror_report.model import CLASSES, ParityStatus, TopicParity
from mirror_report.parity import ACCOUNTABLE, SAMPLES, STATUSES, WHOLE, grouped
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan import (
    CompactedTopic,
    RunPlan,
    TopicPlan,
    buckets,
    offset_syncs,
    open_buckets,
    snapshots,
    spread,
    total_records,
    unreadable,
)
from mirror_report.parity.plan.scans import last_of
from mirror_report.parity.results import retention, scans, summaries
from mirror_report.parity.state import Manifest, Unreadable, topic_value


def report_topic(
    context: RunContext, manifest: Manifest, plan: RunPlan, topic: TopicPlan
) -> TopicParity:
    """One topic as the report shows it."""
    empty = TopicParity(
        flow=topic.flow, source_topic=topic.origins[0], topic=topic.topic, status="unknown",
        source_records=0, target_records=0, verified_records=0, in_flight_records=0,
        skipped_records=0, counts=dict.fromkeys(CLASSES),
        accounted=dict.fromkeys((*ACCOUNTABLE, "unverifiable"), 0),
        buckets=dict.fromkeys(STATUSES, 0),
        verified_through_ms=None, newest_due_ms=None, reason="", samples={},
        strategy=topic.strategy,
    )  # fmt: skip
    if topic.unknown is not None:
        return replace(empty, reason=topic.unknown)
    if topic.skip is not None:
        return replace(empty, status="skipped", reason=topic.skip)
    if topic.strategy == "latest_by_key":
        return _by_key(context, manifest, plan, topic, empty)
    if not topic.compared:
        return _with_coverage(_not_compared(context, plan, topic, empty), 0)
    return _by_bucket(context, manifest, plan, topic, empty)


def _by_key(
    context: RunContext, manifest: Manifest, plan: RunPlan, topic: TopicPlan, empty: TopicParity
) -> TopicParity:
    last = last_of(manifest.scans, topic.key)
    reported = scans.reported(empty, last, manifest.unreported.get(topic.flow, ()), topic.why)
    now = CompactedTopic.of_snapshot(
        plan.snapshots[topic.flow], topic.topic, topic.origins,
        context.baseline(topic.flow).topics,
    )  # fmt: skip
    reported = scans.with_new_records(reported, last, now and now.after(last))
    beyond = unreadable.in_topic(manifest.unreadable, topic.key)
    return _with_coverage(_with_unreadable(reported, beyond), reported.uncompared_records)


def _by_bucket(
    context: RunContext, manifest: Manifest, plan: RunPlan, topic: TopicPlan, empty: TopicParity
) -> TopicParity:
    keeps = context.settings.flow(topic.flow).engine.keeps_partitions
    beyond = unreadable.in_topic(manifest.unreadable, topic.key)
    backlog = [waiting for waiting in plan.backlog if waiting.topic_key == topic.key]
    unread = total_records(backlog)
    gone = _expired_unread(manifest, topic, keeps_partitions=keeps)
    # What is on the source and was not compared, by lane.
    uncompared = gone + Counter(unreadable.by_lane(beyond, keeps_partitions=keeps))
    summary = topic_value(manifest.summaries, topic.key, None)
    if summary is None:
        reason = f"{unread} offsets not read yet" if unread else "no record since the baseline"
        status: ParityStatus = "unverifiable" if uncompared else "in_flight"
        reported = _more(replace(empty, status=status, reason=reason), "unverifiable", uncompared)
        reported = _with_unreadable(reported, beyond)
    else:
        unreported = manifest.is_unreported(topic.flow, summary.run_id)
        numbers = summary.now if unreported else summary.next
        reported = summaries.filled(empty, numbers, summary.samples)
        reported = _with_sealed(reported, manifest.totals.get(topic.flow, {}).get(topic.topic))
        # Copies of what expired unread are on the target still: each record counts once.
        reported = _more(reported, "unverifiable", uncompared - _unmatched(numbers, uncompared))
        since = numbers.get("in_flight_since_ms")
        reported = _with_retention(context, manifest, plan, topic, reported, since)
        if unread and since is not None and reported.verified_through_ms is not None:
            # What waits is not older than what was read last, but for records that come late.
            reported = replace(
                reported, verified_through_ms=min(reported.verified_through_ms, since)
            )
        reported = replace(reported, **summaries.status(
            reported, unread, gone.total(), numbers.get("below_records", 0)
        ))  # fmt: skip
        reported = _with_unreadable(
            reported, beyond, f"{reported.reason}; " if gone.total() else ""
        )
    below = retention.unread_below(
        backlog, {name: snapshot.positions for name, snapshot in plan.snapshots.items()}
    )
    reported = _outside_buckets(context, manifest, plan, topic, reported)
    long = open_buckets.open_for_long(
        open_buckets.of_topic(manifest, topic.key), context.now_ms,
        context.settings.budget.open_minutes,
    )  # fmt: skip
    reported = replace(
        reported,
        open_records=sum(bucket.below for bucket in long),
        open_since_ms=min((bucket.since_ms for bucket in long), default=None),
        open_unjudged=sum(bucket.unjudged for bucket in long),
        reason="; ".join(filter(None, (reported.reason, spread.reason(manifest, topic)))),
    )  # fmt: skip
    return _with_coverage(reported, gone.total() + below + reported.open_unjudged)


def _expired_unread(
    manifest: Manifest, topic: TopicPlan, *, keeps_partitions: bool
) -> Counter[str]:
    """Records of the source that expired before they were read, by lane."""
    gaps = (
        gap for gap in manifest.gaps if (gap.flow, gap.topic, gap.side) == (*topic.key, "source")
    )
    lanes = grouped(gaps, lambda gap: str(gap.partition) if keeps_partitions else WHOLE)
    return Counter(
        {lane: sum(gap.end - gap.start for gap in of_lane) for lane, of_lane in lanes.items()}
    )


def _unmatched(numbers: Mapping[str, Any], uncompared: Counter[str]) -> Counter[str]:
    """Of what was not compared, that of which undecided buckets hold copies on the target."""
    return Counter(
        {
            lane: min(
                uncompared[lane],
                of_lane.get("unmatched", numbers["unmatched_records"] if lane == WHOLE else 0),
            )
            for lane, of_lane in numbers["lanes"].items()
        }
    )


def _outside_buckets(
    context: RunContext, manifest: Manifest, plan: RunPlan, topic: TopicPlan, reported: TopicParity
) -> TopicParity:
    """Add what lies in no bucket of a topic that is cut by offsets."""
    if topic.strategy != offset_syncs.STRATEGY:
        return reported
    outside = buckets.outside(
        manifest, topic, context.baseline(topic.flow), plan.snapshots[topic.flow].source
    )
    harmless = reported.status in ("verified", "in_flight", "skipped")
    unaligned = f"{outside.unaligned} records were mirrored before anything aligned them"
    return replace(
        _more(reported, "unverifiable", outside.partitions),
        source_records=reported.source_records
        + outside.straddling + outside.unaligned + outside.open,
        skipped_records=reported.skipped_records + outside.straddling,
        in_flight_records=reported.in_flight_records + outside.open,
        status="unverifiable" if harmless and outside.unaligned else reported.status,
        reason=unaligned if harmless and outside.unaligned else reported.reason or topic.why,
    )  # fmt: skip


def _more(topic: TopicParity, kind: str, lanes: Mapping[str, int]) -> TopicParity:
    """A topic with more records of a class.

    :param lanes: partition (``*`` for a topic as a whole) -> records.
    """
    partitions = topic.partitions.get(kind, {})
    added = {lane: partitions.get(lane, 0) + n for lane, n in lanes.items() if lane != WHOLE}
    merged = dict(sorted({**partitions, **added}.items(), key=lambda lane: int(lane[0])))
    return replace(
        topic,
        counts={**topic.counts, kind: (topic.counts[kind] or 0) + sum(lanes.values())},
        partitions={**topic.partitions, **({kind: merged} if merged else {})},
    )


def _with_unreadable(
    topic: TopicParity, beyond: Collection[Unreadable], also: str = ""
) -> TopicParity:
    """Add the records that cannot be read: samples, and their numbers on both sides.

    :param also: what its reason begins with.
    """
    if not beyond:
        return topic
    samples = [*unreadable.samples(beyond), *topic.samples.get("unverifiable", [])]
    counted, counts = topic.strategy != "latest_by_key", unreadable.by_side(beyond)
    reason = f"{also}{unreadable.reason(beyond)}"
    return replace(
        topic,
        source_records=topic.source_records + counted * counts["source"],
        target_records=topic.target_records + counted * counts["target"],
        samples={**topic.samples, "unverifiable": samples[:SAMPLES]},
        reason=reason if topic.status == "unverifiable" else topic.reason,
    )


def _with_coverage(topic: TopicParity, uncompared: int) -> TopicParity:
    """Add how much of what is due is verified.

    :param uncompared: what is due and was never compared: expired, or not read yet.
    """
    settled = topic.source_records - topic.in_flight_records - topic.skipped_records
    due = max(topic.verified_records, settled) + uncompared
    return replace(topic, due_records=due, coverage=topic.verified_records / due if due else None)


def _with_sealed(topic: TopicParity, total: Mapping[str, int] | None) -> TopicParity:
    """Add what was sealed to what is compared in every run."""
    if not total:
        return topic
    through, newest = (
        max(value for value in pair if value is not None)
        for pair in (
            (topic.verified_through_ms, total["through_ms"]),
            (topic.newest_due_ms, total["newest_ms"]),
        )
    )
    return replace(
        topic,
        source_records=topic.source_records + total["source_records"],
        target_records=topic.target_records + total["target_records"],
        verified_records=topic.verified_records + total["verified_records"],
        buckets={
            **topic.buckets,
            "verified": topic.buckets["verified"] + total["buckets_verified"],
        },
        verified_through_ms=through,
        newest_due_ms=newest,
    )


def _with_retention(
    context: RunContext,
    manifest: Manifest,
    plan: RunPlan,
    topic: TopicPlan,
    reported: TopicParity,
    oldest: int | None,
) -> TopicParity:
    """Add what became of verified records, and the time that is left for the others.

    :param oldest: of what is not verified yet, in milliseconds.
    """
    left = [gone for gone in manifest.gone if (gone.flow, gone.topic) == topic.key]
    early, _ = retention.gone((gone for gone in left if gone.certain), context.now_ms)
    _, expired = retention.gone(left, context.now_ms)
    keeps = context.settings.flow(topic.flow).engine.keeps_partitions
    if early:
        by_partition = {str(partition): count for partition, count in early.items()}
        reported = _more(
            reported, "deleted_early", by_partition if keeps else {WHOLE: early.total()}
        )
    sources = (
        snapshots.find(plan.snapshots, topic.flow, "source", origin) for origin in topic.origins
    )
    seconds = retention.breach_seconds(
        oldest,
        [source for source in sources if source is not None],
        snapshots.find(plan.snapshots, topic.flow, "target", topic.topic),
        context.now_ms,
    )
    return replace(reported, breach_seconds=seconds, expired_records=expired.total())


def _not_compared(
    context: RunContext, plan: RunPlan, topic: TopicPlan, empty: TopicParity
) -> TopicParity:
    """A topic that no strategy compares: all that was mirrored since the baseline is unverifiable.

    Numbers are numbers of offsets, at most so many records.
    """
    snapshot = plan.snapshots[topic.flow]
    present = mirrored = 0
    for name in (name for via, name in topic.feeds if via == topic.flow):
        begun = context.baseline(topic.flow).topic(name).source.start
        for partition, log in snapshot.source.topics[name].partitions.items():
            start = max(log.log_start, begun.get(partition, 0))
            position = snapshot.positions.get(name, {}).get(partition, start)
            present += max(0, log.end - start)
            mirrored += max(0, min(position, log.end) - start)
    return replace(
        empty,
        status="unverifiable" if mirrored else "in_flight",
        reason=topic.why,
        source_records=present,
        in_flight_records=present - mirrored,
        counts={**empty.counts, "unverifiable": mirrored},
    )
