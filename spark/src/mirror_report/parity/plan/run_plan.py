"""The plan of one run, of all flows together, and the state that it supersedes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from mirror_report.config import Flow
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan import buckets, co_fed_topics, offset_syncs, unreadable
from mirror_report.parity.plan.ranges import Range, Spent
from mirror_report.parity.plan.scans import CompactedTopic
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import FlowPlan, TopicPlan, plan_flow
from mirror_report.parity.state import Manifest, TopicKey, basis, changes, fed_by


@dataclass(frozen=True)
class RunPlan:
    """The ranges and topics that a run reads and compares; each change makes another plan.

    :param ranges: all that is new; ``backlog``: what is left for a later run.
    :param scans: compacted topics to compare as a whole; ``news``: those of which only what is
        new is.
    :param drops: rows that no longer count; ``rebuilt``: topics whose results do not either.
    :param deferred: flows whose mirror is further behind than a budget allows.
    :param expired: flows of which records expired unread since the last run.
    :param spent: what was read by now.
    """

    snapshots: FlowSnapshots
    topics: tuple[TopicPlan, ...] = ()
    ranges: tuple[Range, ...] = ()
    backlog: tuple[Range, ...] = ()
    scans: tuple[CompactedTopic, ...] = ()
    news: tuple[CompactedTopic, ...] = ()
    drops: tuple[Drop, ...] = ()
    rebuilt: tuple[TopicKey, ...] = ()
    deferred: Collection[str] = ()
    expired: frozenset[str] = frozenset()
    spent: Spent = field(default_factory=Spent)

    @property
    def compared(self) -> list[TopicPlan]:
        """Topics whose digests are compared."""
        return [topic for topic in self.topics if topic.compared]

    @property
    def deferred_topics(self) -> set[TopicKey]:
        """Topics left alone because a mirror that feeds them is too far behind."""
        return {
            topic.key
            for topic in self.topics
            if any(via in self.deferred for via, _ in topic.feeds)
        }

    @property
    def unread(self) -> set[TopicKey]:
        """Topics of which something is left for a later run."""
        return {waiting.topic_key for waiting in self.backlog} | self.deferred_topics

    def without(self, unknown: Mapping[TopicKey, str]) -> Self:
        """Leave topics alone.

        :param unknown: why the status of each is unknown.
        """
        topics = (
            replace(topic, unknown=topic.unknown or unknown.get(topic.key)) for topic in self.topics
        )
        return replace(
            self,
            topics=tuple(topics),
            ranges=tuple(part for part in self.ranges if part.topic_key not in unknown),
        )

    def feeding(self, flow: str) -> set[str]:
        """Flows that feed the topics a flow compares; itself among them."""
        topics = (topic for topic in self.topics if topic.flow == flow)
        return {flow, *(via for topic in topics for via, _ in topic.feeds)}

    def topic_id(self, part: Range) -> str:
        """Id of the topic a range is in, as it was observed first; empty if it was not there."""
        topic = find(self.snapshots, *part.key)
        return topic.topic_id if topic else ""


@dataclass(frozen=True)
class Superseded:
    """State that no longer counts.

    :param manifest: without it.
    :param drops: rows to leave out; ``rebuilt``: topics whose results no longer count, by the flow
        that compared them.
    :param renewed: topics that begin again because their baseline is another one.
    """

    manifest: Manifest
    drops: tuple[Drop, ...] = ()
    rebuilt: tuple[TopicKey, ...] = ()
    renewed: tuple[TopicKey, ...] = ()

    def leaving(self, flows: Sequence[Flow], flow: str, topic: str) -> Self:
        """Without a topic that another flow compares from now on, or that begins again."""
        of_name = {each.name: each for each in flows}
        feeds = (
            (key[2], *fed_by(flow, key[2]))
            for key in self.manifest.sides
            if key[:2] == (flow, "source")
        )
        origins = [
            origin
            for origin, via, name in feeds
            if via in of_name and of_name[via].target_topic(name) == topic
        ]
        sides = TopicPlan(flow, topic, tuple(origins)).sides
        return replace(
            self,
            manifest=changes.forget_topic(self.manifest, flow, topic, origins),
            drops=(*self.drops, *(Drop(flow, *side) for side in sides)),
        )


def superseded(context: RunContext, manifest: Manifest) -> Superseded:
    """State that rests on another baseline than the present one, or on no flow at all."""
    flows = {flow.name: flow for flow in context.settings.flows}
    outdated = Superseded(manifest)
    for name, based in sorted(manifest.baselines.items()):
        if name not in flows or based != basis(flows[name], context.baseline(name)):
            manifest = changes.forget_flow(outdated.manifest, name)
            outdated = replace(outdated, manifest=manifest, drops=(*outdated.drops, Drop(name)))
    for name in sorted(outdated.manifest.baselines):
        kept = outdated.manifest.topic_baselines.get(name, {})
        for origin, entry in sorted(context.baseline(name).topics.items()):
            if kept.get(origin) != entry.recorded_at_ms:
                outdated = _renewed(context, outdated, flows[name], origin)
    return outdated


def _renewed(context: RunContext, outdated: Superseded, flow: Flow, origin: str) -> Superseded:
    topic, sides = flow.target_topic(origin), outdated.manifest.sides
    owners = {key[0] for key in sides if key[1:] == ("target", topic)}
    if (flow.name, "source", origin) in sides:
        owners.add(flow.name)
    for owner in sorted(owners):
        if context.settings.flow(owner).target == flow.target:
            outdated = outdated.leaving(context.settings.flows, owner, topic)
            outdated = replace(
                outdated,
                manifest=changes.forget_values(outdated.manifest, ("alignments",), owner, topic),
                rebuilt=(*outdated.rebuilt, (owner, topic)),
                renewed=(*outdated.renewed, (flow.name, topic)),
            )
    return outdated


def plan_run(
    context: RunContext,
    manifest: Manifest,
    snapshots: FlowSnapshots,
    syncs: Mapping[str, offset_syncs.SyncsRead],
    former: Superseded,
) -> tuple[RunPlan, list[FlowPlan], Manifest]:
    """The plan of a run, and the state that no longer counts.

    :param syncs: what was read to align topics, by flow.
    :param former: what is known not to count any more.
    :returns: with what each flow brings to the plan, and the manifest by then.
    """
    rebuilt = list(former.rebuilt)
    flows: list[FlowPlan] = []
    shared = co_fed_topics.co_fed_topics(context.settings.flows, snapshots, manifest)
    for name, snapshot in snapshots.items():
        read, baseline = syncs.get(name, offset_syncs.SyncsRead()), context.baseline(name)
        aligned = offset_syncs.align(manifest, snapshot, baseline, read, context.bucket_ms)
        alignments = {**manifest.alignments, name: aligned.topics}
        manifest = replace(manifest, alignments=alignments)
        if name in syncs and read.problem is None:
            manifest = replace(manifest, syncs={**manifest.syncs, name: read.read})
        plan = plan_flow(snapshot, manifest, context.baselines, shared[name])
        plan = buckets.limit(plan, aligned, snapshot)
        again = [topic.key for topic in plan.topics if topic.topic in aligned.rebuild]
        for topic in again:
            manifest = changes.forget_numbers(manifest, *topic)
            # Both sides of it are read again, by minutes.
            manifest = changes.forget_values(manifest, ("spread",), *topic)
        rebuilt += again
        flows.append(plan)
    topics = tuple(topic for plan in flows for topic in plan.topics)
    left = replace(former, manifest=manifest)
    for owner, name in misplaced(snapshots, topics, manifest):
        left = left.leaving(context.settings.flows, owner, name)
    manifest, drops = left.manifest, list(left.drops)
    for plan in flows:
        manifest = _with_plan(manifest, plan)
        drops += plan.drops
        rebuilt += [(topic.flow, topic.topic) for topic in plan.reopened]
        rebuilt += [topic.key for topic in plan.departed]
    still_unreadable = unreadable.still_there(manifest.unreadable, snapshots, drops)
    manifest = _with_baselines(replace(manifest, unreadable=still_unreadable), context, snapshots)
    plan_of_all = RunPlan(
        snapshots, topics, tuple(part for plan in flows for part in plan.ranges),
        drops=tuple(drops), rebuilt=tuple(rebuilt),
        expired=frozenset(gap.flow for plan in flows for gap in plan.gaps),
    )  # fmt: skip
    return plan_of_all.without(unreadable.too_many(still_unreadable)), flows, manifest


def misplaced(
    snapshots: FlowSnapshots, topics: Iterable[TopicPlan], manifest: Manifest
) -> list[TopicKey]:
    """Topics that a flow compared before another took them over."""
    targets = {name: snapshot.flow.target for name, snapshot in snapshots.items()}
    owned = {(targets[plan.flow], plan.topic): plan.flow for plan in topics if plan.compared}
    return [
        (flow, topic)
        for flow, side, topic in sorted(manifest.sides)
        if side == "target" and flow in targets and owned.get((targets[flow], topic), flow) != flow
    ]


def _with_plan(manifest: Manifest, plan: FlowPlan) -> Manifest:
    """Forget what no longer holds of a flow, keep where it goes on and which records are gone."""
    reopened = {(topic.flow, topic.topic) for topic in plan.reopened}
    for topic in reopened:
        manifest = changes.forget_numbers(manifest, *topic)
    removals = [
        part
        for removal in plan.removals
        if (removal.flow, removal.topic) not in reopened
        for part in unreadable.digested(removal, manifest.unreadable)
    ]
    manifest = replace(
        manifest,
        gaps=(*manifest.gaps, *plan.gaps),
        removals=(*manifest.removals, *removals),
    )
    for departed in plan.departed:
        manifest = changes.forget_topic(manifest, *departed.key, departed.origins)
    return replace(manifest, sides={**manifest.sides, **plan.begin})


def _with_baselines(manifest: Manifest, context: RunContext, snapshots: FlowSnapshots) -> Manifest:
    bases = {
        name: basis(snapshot.flow, context.baseline(name)) for name, snapshot in snapshots.items()
    }
    topics = {
        name: {
            topic: entry.recorded_at_ms for topic, entry in context.baseline(name).topics.items()
        }
        for name in snapshots
    }
    return replace(
        manifest,
        baselines={**manifest.baselines, **bases},
        topic_baselines={**manifest.topic_baselines, **topics},
    )
