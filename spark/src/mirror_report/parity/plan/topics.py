"""What a flow has to read, from what was read before and what the clusters hold now."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from mirror_report.config import Flow
from mirror_report.model import Baseline, ClusterSnapshot, Positions, Strategy, TopicBaseline
from mirror_report.parity.plan import strategies
from mirror_report.parity.plan.sides import (
    Drop,
    Reopened,
    SideNow,
    SidePlan,
    changed,
    changed_since_scan,
    plan_side,
)
from mirror_report.parity.state import (
    Manifest,
    Side,
    TopicKey,
    fed_by,
)

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class TopicPlan:
    """One target topic and the source topics that feed it.

    :param strategy: how its content is compared; ``why``: if it is not the default, the reason.
    :param skip: why its content is not compared.
    :param unknown: why nothing can be said of it now.
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
    def judged(self) -> bool:
        """Whether digests are compared, bucket by bucket."""
        return self.skip is None and self.unknown is None and self.strategy in strategies.BY_BUCKET

    @property
    def feeds(self) -> list[tuple[str, str]]:
        """Flows and their source topics that feed it."""
        return [fed_by(self.flow, origin) for origin in self.origins]


@dataclass
class FlowPlan(SidePlan):
    """What one flow needs in this run.

    :param departed: topics that are no longer on the source, with what fed them.
    """

    topics: list[TopicPlan] = field(default_factory=list)
    departed: list[TopicPlan] = field(default_factory=list)


def plan_flow(
    flow: Flow,
    manifest: Manifest,
    baseline: Baseline,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    *,
    co_fed: Mapping[str, Sequence[SideNow]] = NOTHING,
    elsewhere: Collection[str] = (),
    doubtful: Mapping[str, str] = NOTHING,
) -> FlowPlan:
    """Ranges to read for one flow.

    :param source: taken first; ``target`` after it and after the positions.
    :param co_fed: topic of the target -> what other flows bring there.
    :param elsewhere: topics of the target that another flow judges.
    :param doubtful: topic of the target -> why it cannot be judged now.
    """
    done = FlowPlan()
    feeds: dict[str, list[SideNow]] = {}
    for name in sorted(filter(flow.matches, source.topics)):
        feeds.setdefault(flow.target_topic(name), []).append(feed_of(flow, name, baseline, source))
    for name in sorted(filter(flow.matches, source.errors.keys() - source.topics.keys())):
        topic, unknown = flow.target_topic(name), f"source: {source.errors[name]}"
        done.topics.append(TopicPlan(flow.name, topic, (name,), unknown=unknown))
        feeds.pop(topic, None)
    for topic, own in feeds.items():
        if topic in doubtful:
            origins = tuple(feed.origin for feed in own)
            done.topics.append(TopicPlan(flow.name, topic, origins, unknown=doubtful[topic]))
        elif topic not in elsewhere:
            _plan_topic(done, flow, topic, [*own, *co_fed.get(topic, ())], manifest, target)
    _plan_departed(done, flow, {*elsewhere, *(plan.topic for plan in done.topics)}, manifest)
    return done


def _plan_departed(
    done: FlowPlan, flow: Flow, planned: Collection[str], manifest: Manifest
) -> None:
    left: dict[str, list[str]] = {}
    for owner, side, origin in sorted(manifest.sides):
        if (owner, side) == (flow.name, "source") and fed_by(owner, origin)[0] == owner:
            left.setdefault(flow.target_topic(origin), []).append(origin)
    for topic, names in left.items():
        if topic not in planned:
            departed = TopicPlan(flow.name, topic, tuple(names))
            done.departed.append(departed)
            done.drops += [Drop(flow.name, *side) for side in departed.sides]


def feed_of(
    flow: Flow, name: str, baseline: Baseline, source: ClusterSnapshot, origin: str = ""
) -> SideNow:
    """One source topic of a flow.

    :param origin: what the judging flow calls it, if that is another.
    """
    return SideNow(
        flow.name, "source", origin or name, flow.target_topic(name), flow.source_isolation,
        source.topics[name], source.taken_at_ms, baseline.topics.get(name),
        baseline.exists,
    )  # fmt: skip


def _plan_topic(
    done: FlowPlan,
    flow: Flow,
    topic: str,
    feeds: Sequence[SideNow],
    manifest: Manifest,
    target: ClusterSnapshot,
) -> None:
    on_target = target.topics.get(topic)
    plan = TopicPlan(flow.name, topic, tuple(feed.origin for feed in feeds))
    if topic in target.errors and on_target is None:
        done.topics.append(replace(plan, unknown=f"target: {target.errors[topic]}"))
        return
    chosen = strategies.choose(
        flow, [feed.snapshot for feed in feeds], on_target,
        untimed=manifest.untimed(flow.name, topic),
    )  # fmt: skip
    plan = replace(plan, strategy=chosen.strategy, why=chosen.reason)
    if not plan.judged and len({via for via, _ in plan.feeds}) > 1:
        plan = replace(plan, skip=f"{plan.why}, and several flows feed it")
    done.topics.append(plan)
    sides = _sides(flow, topic, feeds, manifest, target)
    if plan.judged:
        _plan_sides(done, sides, plan, manifest)
    elif plan.strategy == "latest_by_key" and plan.skip is None:
        for side in sides:
            done.reopened += changed_since_scan(side, manifest)


def _sides(
    flow: Flow,
    topic: str,
    feeds: Sequence[SideNow],
    manifest: Manifest,
    target: ClusterSnapshot,
) -> list[SideNow]:
    """Both sides of a topic, under its judge's name; without the target's if it is not there."""
    sides = [replace(feed, flow=flow.name) for feed in feeds]
    on_target = target.topics.get(topic)
    if on_target is None:
        return sides
    known = (feed.recorded for feed in reversed(feeds) if feed.recorded is not None)
    start = next(known, None)
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


def _plan_sides(
    done: FlowPlan, sides: Sequence[SideNow], plan: TopicPlan, manifest: Manifest
) -> None:
    flow, topic = plan.key
    there = any(side.side == "target" for side in sides)
    deleted = not there and (flow, "target", topic) in manifest.sides
    if deleted:
        done.reopened.append(Reopened("topic_reset", flow, "target", topic, topic, None, "deleted"))
        done.drops.append(Drop(flow, "target", topic))
    # Sealed rows of one side cannot be held against a new log of the other.
    sealed = bool(manifest.totals.get(flow, {}).get(topic))
    changes = [changed(side, manifest) for side in sides]
    rebuild = sealed and (deleted or any(changes))
    # What may have been copied before the baseline is in logs that are no longer there.
    recreated = deleted or any(isinstance(change, str) for change in changes)
    gaps = len(done.gaps)
    # The source first: what it lost unread may have copies on the target.
    for side in sorted(sides, key=lambda side: side.side):
        lost = side.side == "target" and len(done.gaps) > gaps
        plan_side(done, side, manifest, rebuild=rebuild, recreated=recreated, lost=lost)


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
