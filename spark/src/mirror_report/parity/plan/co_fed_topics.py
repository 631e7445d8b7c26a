"""Co-fed topics: which flow compares a topic of the target that several flows feed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_report.config import Flow
from mirror_report.parity import grouped
from mirror_report.parity.plan.snapshots import FlowSnapshot, FlowSnapshots
from mirror_report.parity.state import Manifest, fed_by

# Alias of a target and the name of a topic there.
TargetTopic = tuple[str, str]
# Flows and their source topics that feed a topic, the flow that compares it first.
Feeds = dict[TargetTopic, list[tuple[FlowSnapshot, str]]]


@dataclass(frozen=True)
class CoFed:
    """Topics of one flow that other flows feed too.

    :param here: topic of the target -> other flows and their source topics, to be compared here.
    :param elsewhere: topics that another flow compares.
    :param doubtful: topic -> why it cannot be compared now.
    """

    here: Mapping[str, Sequence[tuple[FlowSnapshot, str]]] = field(default_factory=dict)
    elsewhere: Collection[str] = ()
    doubtful: Mapping[str, str] = field(default_factory=dict)


NOTHING_SHARED = CoFed()


def co_fed_topics(
    flows: Sequence[Flow], snapshots: FlowSnapshots, manifest: Manifest
) -> dict[str, CoFed]:
    """Who compares what, by flow; a topic is compared once, with all that feeds it.

    Flows that do not keep partitions go first: where one of them feeds a topic, it is compared as a
    whole.

    :param flows: all flows there are; those without a snapshot could not be observed.
    """
    rank = {flow.name: (flow.engine.keeps_partitions, number) for number, flow in enumerate(flows)}
    feeds = grouped(
        (
            (snapshot, name)
            for snapshot in sorted(snapshots.values(), key=lambda one: rank[one.flow.name])
            for name in sorted(filter(snapshot.flow.matches, snapshot.source.topics))
        ),
        lambda feed: (feed[0].flow.target, feed[0].flow.target_topic(feed[1])),
    )
    doubts = _doubts(flows, snapshots, feeds, manifest)
    return {name: _of_flow(snapshot, feeds, doubts) for name, snapshot in snapshots.items()}


def _doubts(
    flows: Sequence[Flow], snapshots: FlowSnapshots, feeds: Feeds, manifest: Manifest
) -> dict[TargetTopic, str]:
    """Topics that may be fed by what could not be observed, and why."""
    doubts: dict[TargetTopic, str] = {}
    for snapshot in snapshots.values():
        flow = snapshot.flow
        unread = snapshot.source.errors.keys() - snapshot.source.topics.keys()
        doubts |= {
            (flow.target, flow.target_topic(name)): (
                f"topic {name} of flow {flow.name} feeds it too and could not be read"
            )
            for name in filter(flow.matches, unread)
        }
    for flow in flows:
        if flow.name not in snapshots:
            doubts |= {
                (target, topic): f"flow {flow.name} feeds it too and was not observed"
                for target, topic in feeds
                if target == flow.target and _may_feed(flow, topic, manifest)
            }
    return doubts


def _of_flow(snapshot: FlowSnapshot, feeds: Feeds, doubts: Mapping[TargetTopic, str]) -> CoFed:
    target = snapshot.flow.target
    fed = {
        topic: its_feeds
        for (alias, topic), its_feeds in feeds.items()
        if alias == target and any(feeding is snapshot for feeding, _ in its_feeds)
    }
    own = {topic for topic, its_feeds in fed.items() if its_feeds[0][0] is snapshot}
    return CoFed(
        {
            topic: others
            for topic in own
            if (others := [feed for feed in fed[topic] if feed[0] is not snapshot])
        },
        [topic for topic in fed if topic not in own],
        {topic: doubts[target, topic] for topic in fed if (target, topic) in doubts},
    )


def _may_feed(flow: Flow, topic: str, manifest: Manifest) -> bool:
    """Whether a flow that was not observed may bring records to a topic: it did, or is new."""
    feeds = (fed_by(owner, origin) for owner, side, origin in manifest.sides if side == "source")
    return flow.source_topic(topic) is not None and (
        flow.name not in manifest.baselines
        or any(via == flow.name and flow.target_topic(name) == topic for via, name in feeds)
    )
