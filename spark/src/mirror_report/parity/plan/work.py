"""The work of a run: what fits into its budget, and whether it needs Spark."""

from dataclasses import replace

from mirror_report.model import Positions
from mirror_report.parity import HOUR_MS
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan import boundaries, open_buckets
from mirror_report.parity.plan.ranges import Spent
from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.scans import CompactedTopic, affordable, last_of, waiting
from mirror_report.parity.plan.snapshots import FlowSnapshot
from mirror_report.parity.state import Manifest, Removal, topic_value

# Nothing new for so long: Spark is started all the same, to read again what was verified.
VERIFY_AGAIN_IDLE_MS = 86_400_000
# Statuses that may change once a position is past them: a minute that differs may have records in
# flight as well.
OPEN = ("in_flight", "unverifiable", "mismatch")


def spark_is_needed(context: RunContext, manifest: Manifest, plan: RunPlan) -> bool:
    """Whether there is something to read or to compare."""
    idle_ms = context.now_ms - manifest.verified_again_at_ms
    verified = context.settings.budget.scrub_bytes and manifest.digests
    return (
        bool(plan.ranges or plan.scans or plan.news or plan.drops or manifest.open_work)
        or any(_may_differ(manifest, plan, snapshot) for snapshot in plan.snapshots.values())
        or open_buckets.waits(manifest, plan, context.now_ms, context.settings.budget.open_minutes)
        or any(_may_be_early(manifest, removal) for removal in manifest.removals)
        or (bool(verified) and idle_ms > VERIFY_AGAIN_IDLE_MS)
    )


def within_limits(
    context: RunContext, manifest: Manifest, plan: RunPlan
) -> tuple[RunPlan, list[CompactedTopic]]:
    """Leave for a later run what the budget does not allow, or a mirror is too far behind for.

    :returns: with compacted topics that are due and too large for the rest of the budget.
    """
    budget, deferred = context.settings.budget, plan.deferred_topics
    held = [part for part in plan.ranges if part.topic_key in deferred]
    free = [part for part in plan.ranges if part.topic_key not in deferred]
    kept = {
        key: topic_value(manifest.boundaries, key, ()) for key in {part.topic_key for part in free}
    }
    now, later = boundaries.within_budget(free, budget, kept)
    spent = Spent().plus(now)
    compacted = compacted_topics(context, manifest, plan)
    every_ms = budget.compacted_hours * HOUR_MS
    due = waiting(compacted, every_ms)
    chosen = affordable(due, spent, budget)
    spent = spent.plus([part for topic in chosen for part in topic.ranges()])
    new = [topic for topic in compacted if topic not in chosen and topic.has_news()]
    news = affordable(new, spent, budget, CompactedTopic.new_ranges)
    return (
        replace(
            plan, ranges=tuple(now), backlog=(*later, *held), scans=tuple(chosen),
            news=tuple(news),
        ),
        [topic for topic in due if topic not in chosen],
    )  # fmt: skip


def compacted_topics(
    context: RunContext, manifest: Manifest, plan: RunPlan
) -> list[CompactedTopic]:
    """Topics that are compared by the latest record of each key, with what is known of them."""
    observed = (
        CompactedTopic.of_snapshot(
            plan.snapshots[topic.flow], topic.topic, topic.origins,
            context.baseline(topic.flow).topics,
        )
        for topic in plan.topics
        if topic.strategy == "latest_by_key" and not (topic.skip or topic.unknown)
        and topic.flow not in plan.deferred
    )  # fmt: skip
    return [
        topic.after(last_of(manifest.scans, topic.key)) for topic in observed if topic is not None
    ]


def relevant_positions(manifest: Manifest, plan: RunPlan, snapshot: FlowSnapshot) -> Positions:
    """Positions to keep of a flow: the present ones of what is compared and not deferred."""
    flow, deferred = snapshot.flow.name, plan.deferred_topics
    compared = (topic for topic in plan.compared if topic.key not in deferred)
    mine = [name for topic in compared for via, name in topic.feeds if via == flow]
    before = {
        name: parts
        for name, parts in manifest.positions.get(flow, {}).items()
        if name in snapshot.source.topics
    }
    return before | {name: dict(snapshot.positions.get(name, {})) for name in mine}


def _may_differ(manifest: Manifest, plan: RunPlan, snapshot: FlowSnapshot) -> bool:
    """Whether the same digests may have another result by now."""
    flow = snapshot.flow.name
    if manifest.summaries.get(flow) and flow in plan.expired:
        return True
    moved = manifest.positions.get(flow, {}) != relevant_positions(manifest, plan, snapshot)
    return moved and any(
        topic.now.get(f"buckets_{status}")
        for name in plan.snapshots
        for topic in manifest.summaries.get(name, {}).values()
        for status in OPEN
    )


def _may_be_early(manifest: Manifest, removal: Removal) -> bool:
    """Whether something was removed before its retention, as far as is known by now."""
    newest = manifest.numbers((removal.flow, removal.topic)).get("newest_due_ms")
    return newest is None or newest > removal.kept_from_ms
