"""The plan of a flow, from what was read before and what the clusters hold now."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mirror_report.config import Flow
from mirror_report.model import Baseline, ClusterSnapshot, Positions, Strategy, TopicBaseline
from mirror_report.parity import grouped
from mirror_report.parity.plan import strategies
from mirror_report.parity.plan.co_fed_topics import NOTHING_SHARED, CoFed
from mirror_report.parity.plan.sides import (
    Drop,
    Reopened,
    SideNow,
    SidePlan,
    changed,
    changed_since_scan,
    plan_side,
)
from mirror_report.parity.plan.snapshots import FlowSnapshot
from mirror_report.parity.state import Manifest, Side, TopicKey, co_fed, fed_by


@dataclass(frozen=True)
class TopicPlan:
    """One target topic and the source topics that feed it.

    :param strategy: how its content is compared; ``why``: if it is not the default, the reason.
    :param skip: why its content is not compared.
    :param unknown: why its status is unknown now.
    """

    flow: str
    topic: str
    origins: tuple[str, ...]
    strategy: Strategy = "timestamp"
    why: str = ""
    skip: str | None = None
    unknown: str | None = None

    @property
    def key(self) -> TopicKey:
        """Its flow and name."""
        return self.flow, self.topic

    @property
    def sides(self) -> list[tuple[Side, str]]:
        """Both sides of it, and the names of its topics there."""
        return [*(("source", origin) for origin in self.origins), ("target", self.topic)]

    @property
    def compared(self) -> bool:
        """Whether digests are compared, bucket by bucket."""
        return self.skip is None and self.unknown is None and self.strategy in strategies.BY_BUCKET

    @property
    def feeds(self) -> list[tuple[str, str]]:
        """Flows and their source topics that feed it."""
        return [fed_by(self.flow, origin) for origin in self.origins]


@dataclass(frozen=True)
class FlowPlan(SidePlan):
    """The plan of one flow.

    :param departed: topics that are no longer on the source, with what fed them.
    """

    topics: tuple[TopicPlan, ...] = ()
    departed: tuple[TopicPlan, ...] = ()


def plan_flow(
    snapshot: FlowSnapshot,
    manifest: Manifest,
    baselines: Mapping[str, Baseline],
    shared: CoFed = NOTHING_SHARED,
) -> FlowPlan:
    """Ranges to read for one flow.

    :param snapshot: the source was taken first, the target after it and after the positions.
    :param baselines: of all flows that have one.
    :param shared: topics that other flows feed too.
    """
    flow, source = snapshot.flow, snapshot.source
    mirrored = sorted(filter(flow.matches, source.topics))
    feeds = grouped(
        (_feed(snapshot, name, baselines) for name in mirrored), lambda feed: feed.topic
    )
    topics: list[TopicPlan] = []
    for name in sorted(filter(flow.matches, source.errors.keys() - source.topics.keys())):
        topic, unknown = flow.target_topic(name), f"source: {source.errors[name]}"
        topics.append(TopicPlan(flow.name, topic, (name,), unknown=unknown))
        feeds.pop(topic, None)
    sides: list[SidePlan] = []
    for topic, own in feeds.items():
        if topic in shared.doubtful:
            origins = tuple(feed.origin for feed in own)
            topics.append(TopicPlan(flow.name, topic, origins, unknown=shared.doubtful[topic]))
        elif topic not in shared.elsewhere:
            others = [
                replace(_feed(other, name, baselines), origin=co_fed(other.flow.name, name))
                for other, name in shared.here.get(topic, ())
            ]
            plan, needed = _plan_topic(flow, topic, [*own, *others], manifest, snapshot.target)
            topics.append(plan)
            sides.append(needed)
    departed = _departed(flow, {*shared.elsewhere, *(plan.topic for plan in topics)}, manifest)
    drops = tuple(Drop(flow.name, *side) for plan in departed for side in plan.sides)
    return FlowPlan(topics=tuple(topics), departed=departed, drops=drops).plus(sides)


def _departed(flow: Flow, planned: Collection[str], manifest: Manifest) -> tuple[TopicPlan, ...]:
    origins = (
        origin
        for owner, side, origin in sorted(manifest.sides)
        if (owner, side) == (flow.name, "source") and fed_by(owner, origin)[0] == owner
    )
    return tuple(
        TopicPlan(flow.name, topic, tuple(names))
        for topic, names in grouped(origins, flow.target_topic).items()
        if topic not in planned
    )


def _feed(snapshot: FlowSnapshot, name: str, baselines: Mapping[str, Baseline]) -> SideNow:
    """One source topic of a flow."""
    flow, source = snapshot.flow, snapshot.source
    baseline = baselines.get(flow.name, Baseline())
    return SideNow(
        flow.name, "source", name, flow.target_topic(name), flow.source_isolation,
        source.topics[name], source.taken_at_ms, baseline.topics.get(name), baseline.exists,
    )  # fmt: skip


def _plan_topic(
    flow: Flow,
    topic: str,
    feeds: Sequence[SideNow],
    manifest: Manifest,
    target: ClusterSnapshot,
) -> tuple[TopicPlan, SidePlan]:
    on_target = target.topics.get(topic)
    plan = TopicPlan(flow.name, topic, tuple(feed.origin for feed in feeds))
    if topic in target.errors and on_target is None:
        return replace(plan, unknown=f"target: {target.errors[topic]}"), SidePlan()
    chosen = strategies.choose(
        flow, [feed.snapshot for feed in feeds], on_target,
        untimed=manifest.untimed(flow.name, topic),
    )  # fmt: skip
    plan = replace(plan, strategy=chosen.strategy, why=chosen.reason)
    if not plan.compared and len({via for via, _ in plan.feeds}) > 1:
        plan = replace(plan, skip=f"{plan.why}, and several flows feed it")
    sides = _sides(flow, topic, feeds, manifest, target)
    if plan.compared:
        return plan, _plan_sides(sides, plan, manifest)
    if plan.strategy == "latest_by_key" and plan.skip is None:
        reopened = (change for side in sides for change in changed_since_scan(side, manifest))
        return plan, SidePlan(reopened=tuple(reopened))
    return plan, SidePlan()


def _sides(
    flow: Flow,
    topic: str,
    feeds: Sequence[SideNow],
    manifest: Manifest,
    target: ClusterSnapshot,
) -> list[SideNow]:
    """Both sides of a topic, by the flow that compares it; the target's only if it exists."""
    sides = [replace(feed, flow=flow.name) for feed in feeds]
    on_target = target.topics.get(topic)
    if on_target is None:
        return sides
    start = next((feed.recorded for feed in reversed(feeds) if feed.recorded is not None), None)
    newer_part = any(
        log.log_start > 0 for side in sides for log in side.snapshot.partitions.values()
    )
    if start is None and newer_part and all(side.key not in manifest.sides for side in sides):
        # It is read for the first time, and the source has lost its beginning.
        start = TopicBaseline(older={p: log.end for p, log in on_target.partitions.items()})
    return [
        *sides,
        SideNow(
            flow.name, "target", topic, topic, flow.target_isolation,
            on_target, target.taken_at_ms, start, any(feed.based for feed in feeds),
        ),
    ]  # fmt: skip


def _plan_sides(sides: Sequence[SideNow], plan: TopicPlan, manifest: Manifest) -> SidePlan:
    flow, topic = plan.key
    on_target = any(side.side == "target" for side in sides)
    deleted = not on_target and (flow, "target", topic) in manifest.sides
    done = SidePlan()
    if deleted:
        reset = Reopened("topic_reset", flow, "target", topic, topic, None, "deleted")
        done = SidePlan(reopened=(reset,), drops=(Drop(flow, "target", topic),))
    # Sealed rows of one side cannot be held against a new log of the other.
    sealed = bool(manifest.totals.get(flow, {}).get(topic))
    changes = [changed(side, manifest) for side in sides]
    rebuild = sealed and (deleted or any(changes))
    # What may have been copied before the baseline is in logs that are no longer there.
    recreated = deleted or any(isinstance(change, str) for change in changes)
    # The source first: what it lost unread may have copies on the target.
    for side in sorted(sides, key=lambda side: side.side):
        lost = side.side == "target" and bool(done.gaps)
        needed = plan_side(side, manifest, rebuild=rebuild, recreated=recreated, lost=lost)
        done = done.plus([needed])
    return done


def behind(flow: Flow, baseline: Baseline, positions: Positions, source: ClusterSnapshot) -> int:
    """Source offsets the mirror has not copied yet; without a commit all since the baseline."""
    total = 0
    for name in filter(flow.matches, source.topics):
        begun = baseline.topic(name).source.start
        for partition, log in source.topics[name].partitions.items():
            start = max(log.log_start, begun.get(partition, 0))
            position = positions.get(name, {}).get(partition, start)
            total += max(0, log.end_for(flow.source_isolation) - position)
    return total
