"""What a run has to read, from what is remembered and what the clusters say now.

No Spark, no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mirror_report.config.flow import Flow
from mirror_report.model.cluster import ClusterSnapshot, Positions, TopicSnapshot
from mirror_report.model.content import Strategy
from mirror_report.parity.plan import strategies
from mirror_report.parity.plan.ranges import feeder
from mirror_report.parity.plan.sides import (
    Drop,
    Place,
    Reopened,
    SideNow,
    Wanted,
    changed,
    plan_side,
)
from mirror_report.parity.state.manifest import Memory, offsets


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
    def judged(self) -> bool:
        """Whether digests are compared, bucket by bucket."""
        known = self.skip is None and self.unknown is None
        return known and self.strategy in strategies.BY_BUCKET


@dataclass(frozen=True)
class Feed:
    """A source topic that feeds a topic of the target.

    :param origin: its name, or a guest (:func:`plan.ranges.guest`).
    :param recorded: what the baseline holds of it; ``based``: whether its flow has a baseline.
    :param isolation: which of its records count.
    """

    origin: str
    topic: TopicSnapshot
    taken_at_ms: int
    recorded: Mapping[str, Any] | None
    based: bool
    isolation: str


@dataclass
class FlowPlan(Wanted):
    """What one flow needs in this run.

    :param departed: topics that are no longer on the source, with what fed them.
    """

    topics: list[TopicPlan] = field(default_factory=list)
    departed: list[TopicPlan] = field(default_factory=list)


def plan_flow(
    flow: Flow,
    memory: Memory,
    baseline: Mapping[str, Any],
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    *,
    guests: Mapping[str, Sequence[Feed]] | None = None,
    elsewhere: Collection[str] = (),
    doubtful: Mapping[str, str] | None = None,
) -> FlowPlan:
    """Ranges to read for one flow.

    :param baseline: the flow's entry of the manifest ``baseline``; empty if there is none.
    :param source: taken first; ``target`` after it and after the positions.
    :param guests: topic of the target -> what other flows bring there.
    :param elsewhere: topics of the target that another flow judges.
    :param doubtful: topic of the target -> why it cannot be judged now.
    """
    done = FlowPlan()
    feeds: dict[str, list[Feed]] = {}
    for name in sorted(filter(flow.matches, source.topics)):
        one = feed_of(flow, name, baseline, source)
        feeds.setdefault(flow.target_topic(name), []).append(one)
    for name in sorted(filter(flow.matches, source.errors)):
        if name not in source.topics:
            topic = flow.target_topic(name)
            done.topics.append(
                TopicPlan(flow.name, topic, (name,), unknown=f"source: {source.errors[name]}")
            )
            feeds.pop(topic, None)
    for topic, some in feeds.items():
        origins = tuple(one.origin for one in some)
        if topic in (doubtful or {}):
            unknown = (doubtful or {})[topic]
            done.topics.append(TopicPlan(flow.name, topic, origins, unknown=unknown))
        elif topic not in elsewhere:
            all_of_it = [*some, *(guests or {}).get(topic, ())]
            _plan_topic(done, flow, topic, all_of_it, memory, target)
    planned = {one.topic for one in done.topics} | set(elsewhere)
    left: dict[str, list[str]] = {}
    for owner, side, origin in sorted(memory.sides):
        if (owner, side) == (flow.name, "source") and feeder(owner, origin)[0] == owner:
            left.setdefault(flow.target_topic(origin), []).append(origin)
    for topic, names in left.items():
        if topic in planned:
            continue
        done.departed.append(TopicPlan(flow.name, topic, tuple(names)))
        done.drops += [Drop(flow.name, "source", name) for name in names]
        done.drops.append(Drop(flow.name, "target", topic))
    return done


def feed_of(
    flow: Flow, name: str, baseline: Mapping[str, Any], source: ClusterSnapshot, origin: str = ""
) -> Feed:
    """One source topic of a flow.

    :param origin: what the judging flow calls it, if that is another.
    """
    recorded = baseline.get("topics", {}).get(name)
    return Feed(
        origin or name, source.topics[name], source.taken_at_ms, recorded, bool(baseline),
        flow.source_isolation,
    )  # fmt: skip


def _plan_topic(
    done: FlowPlan,
    flow: Flow,
    topic: str,
    feeds: Sequence[Feed],
    memory: Memory,
    target: ClusterSnapshot,
) -> None:
    known = [one.recorded for one in feeds if one.recorded is not None]
    on_target = target.topics.get(topic)
    origins = tuple(one.origin for one in feeds)
    plan = TopicPlan(flow.name, topic, origins)
    if topic in target.errors and on_target is None:
        done.topics.append(replace(plan, unknown=f"target: {target.errors[topic]}"))
        return
    untimed = memory.untimed(flow.name, topic)
    chosen = strategies.choose(flow, [one.topic for one in feeds], on_target, untimed=untimed)
    plan = replace(plan, strategy=chosen.strategy, why=chosen.reason)
    if not plan.judged and len({feeder(flow.name, one)[0] for one in origins}) > 1:
        plan = replace(plan, skip=f"{plan.why}, and several flows feed it")
    done.topics.append(plan)
    if not plan.judged:
        return
    sides = [
        SideNow(
            Place(flow.name, "source", one.origin, topic, one.isolation),
            one.topic, one.taken_at_ms, one.recorded, one.based,
        )
        for one in feeds
    ]  # fmt: skip
    deleted = on_target is None and (flow.name, "target", topic) in memory.sides
    if deleted:
        done.reopened.append(
            Reopened("topic_reset", flow.name, "target", topic, topic, None, "deleted")
        )
        done.drops.append(Drop(flow.name, "target", topic))
    if on_target is not None:
        place = Place(flow.name, "target", topic, topic, flow.target_isolation)
        start: Mapping[str, Any] | None = known[-1] if known else None
        if start is None and _lost_its_beginning(sides, memory):
            start = {"older": {p: log.end for p, log in on_target.partitions.items()}}
        based = any(one.based for one in feeds)
        sides.append(SideNow(place, on_target, target.taken_at_ms, start, based))
    # Sealed rows of one side cannot be held against a new log of the other.
    sealed = bool(memory.totals.get(flow.name, {}).get(topic))
    changes = [changed(one, memory) for one in sides]
    anew = sealed and (deleted or any(changes))
    # What may have been copied before the baseline went into logs that are no longer there.
    recreated = deleted or any(isinstance(one, str) for one in changes)
    for one in sides:
        plan_side(done, one, memory, anew=anew, recreated=recreated)


def _lost_its_beginning(sources: Sequence[SideNow], memory: Memory) -> bool:
    """Whether a topic is looked at for the first time, and the source holds only its newer part."""
    return all(one.key not in memory.sides for one in sources) and any(
        log.log_start > 0 for one in sources for log in one.snapshot.partitions.values()
    )


def behind(
    flow: Flow, baseline: Mapping[str, Any], positions: Positions, source: ClusterSnapshot
) -> int:
    """Source offsets the mirror has not copied yet; without a commit all since the baseline."""
    recorded = baseline.get("topics", {})
    total = 0
    for name, topic in source.topics.items():
        if not flow.matches(name):
            continue
        begun = offsets((recorded.get(name) or {}).get("source") or {})
        for partition, log in topic.partitions.items():
            start = max(log.log_start, begun.get(partition, 0))
            position = positions.get(name, {}).get(partition, start)
            total += max(0, log.end_for(flow.source_isolation) - position)
    return total


def of_present_topics(positions: Positions, source: ClusterSnapshot) -> Positions:
    """Positions without those past the end of their log.

    MirrorMaker 2 keeps its position when a topic is deleted. Until it commits again, such a one is
    of the earlier topic of that name and says nothing of the present one.

    :param source: taken after the positions, or a mirror at work would seem to be past the end.
    """
    ends = {
        (topic.name, partition): log.end
        for topic in source.topics.values()
        for partition, log in topic.partitions.items()
    }
    return {
        topic: {
            partition: position
            for partition, position in parts.items()
            if position <= ends.get((topic, partition), position)
        }
        for topic, parts in positions.items()
    }
