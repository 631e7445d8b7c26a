"""Looking at every flow, and which of them judges a topic that several flows feed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_report.config.flow import Flow
from mirror_report.model.cluster import ClusterSnapshot, Positions
from mirror_report.parity.plan.ranges import feeder
from mirror_report.parity.plan.topics import FlowPlan
from mirror_report.parity.state.manifest import Memory


@dataclass
class Look:
    """One flow in this run."""

    flow: Flow
    positions: Positions
    source: ClusterSnapshot
    target: ClusterSnapshot
    plan: FlowPlan = field(default_factory=FlowPlan)


@dataclass(frozen=True)
class Share:
    """What one flow has to do with topics that others feed too.

    :param guests: topic of the target -> other flows and their source topics, to be judged here.
    :param elsewhere: topics that another flow judges.
    :param doubtful: topic -> why it cannot be judged now.
    """

    guests: Mapping[str, Sequence[tuple[Look, str]]] = field(default_factory=dict)
    elsewhere: Collection[str] = ()
    doubtful: Mapping[str, str] = field(default_factory=dict)


Place = tuple[str, str]
"""Alias of a target and the name of a topic there."""


def shares(flows: Sequence[Flow], looks: Sequence[Look], memory: Memory) -> dict[str, Share]:
    """Who judges what, by flow; a topic is judged once, by all that feeds it.

    Flows that keep no partitions go first: where one of them feeds a topic, it is compared as a
    whole.

    :param flows: all flows there are; those without a look could not be looked at.
    """
    rank = {flow.name: (flow.engine.keeps_partitions, number) for number, flow in enumerate(flows)}
    fed: dict[Place, list[tuple[Look, str]]] = {}
    doubts: dict[Place, str] = {}
    for look in sorted(looks, key=lambda one: rank[one.flow.name]):
        flow = look.flow
        for name in sorted(filter(flow.matches, look.source.topics)):
            fed.setdefault((flow.target, flow.target_topic(name)), []).append((look, name))
        for name in filter(flow.matches, look.source.errors):
            if name not in look.source.topics:
                doubts[flow.target, flow.target_topic(name)] = (
                    f"topic {name} of flow {flow.name} feeds it too and could not be read"
                )
    seen = {look.flow.name for look in looks}
    for flow in flows:
        if flow.name not in seen:
            for place in fed:
                if place[0] == flow.target and _may_feed(flow, place[1], memory):
                    doubts[place] = f"flow {flow.name} feeds it too and was not looked at"
    found = {}
    for look in looks:
        flow = look.flow
        mine = {
            place[1]: [one for one in some if one[0] is not look]
            for place, some in fed.items()
            if any(one[0] is look for one in some)
        }
        found[flow.name] = Share(
            {
                topic: others
                for topic, others in mine.items()
                if others and fed[flow.target, topic][0][0] is look
            },
            [topic for topic in mine if fed[flow.target, topic][0][0] is not look],
            {topic: doubts[flow.target, topic] for topic in mine if (flow.target, topic) in doubts},
        )
    return found


def _may_feed(flow: Flow, topic: str, memory: Memory) -> bool:
    """Whether a flow that was not looked at brings records to a topic: it did, or nobody knows."""
    if flow.source_topic(topic) is None:
        return False
    if flow.name not in memory.baselines:
        return True
    return any(
        side == "source"
        and feeder(owner, origin)[0] == flow.name
        and flow.target_topic(feeder(owner, origin)[1]) == topic
        for owner, side, origin in memory.sides
    )


def misplaced(looks: Sequence[Look], memory: Memory) -> list[tuple[str, str]]:
    """Topics (flow, topic on the target) that a flow judged before another took them over."""
    targets = {look.flow.name: look.flow.target for look in looks}
    owned = {
        (look.flow.target, one.topic): look.flow.name
        for look in looks
        for one in look.plan.topics
        if one.judged
    }
    return [
        (flow, topic)
        for flow, side, topic in sorted(memory.sides)
        if side == "target" and flow in targets and owned.get((targets[flow], topic), flow) != flow
    ]
