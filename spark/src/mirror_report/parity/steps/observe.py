"""Observing flows: what the clusters hold, in an order that lets offsets decide.

First source, positions, target, so that what is below a position must be on the target. What
differs is observed again in the order positions, target, source, so that a record that is merely
on its way is never called missing, foreign or double.
"""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mirror_report.checks import remedies
from mirror_report.config import Flow
from mirror_report.model import Finding, ReportError
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan import (
    FlowSnapshot,
    FlowSnapshots,
    RunPlan,
    SyncsRead,
    lost_tails,
    offset_syncs,
    topics,
)
from mirror_report.parity.plan.snapshots import of_present_topics
from mirror_report.parity.results import findings
from mirror_report.parity.state import SIDES, Manifest, TopicKey
from mirror_report.parity.steps.log_identity import with_identity
from mirror_report.state import baselines
from mirror_report.state.store import StateError


@dataclass(frozen=True)
class ObservedFlows:
    """Snapshots of some flows.

    :param snapshots: of those that could be.
    :param deferred: those whose mirror is further behind than the budget allows.
    """

    snapshots: FlowSnapshots
    findings: list[Finding] = field(default_factory=list)
    deferred: frozenset[str] = frozenset()


def observe(context: RunContext, manifest: Manifest) -> ObservedFlows:
    """Observe every flow: source, positions, target, and what identifies their logs later on."""
    snapshots: dict[str, FlowSnapshot] = {}
    reported: list[Finding] = []
    deferred: set[str] = set()
    bound = context.settings.budget.max_lag_records
    for flow in context.flows:
        try:
            snapshots[flow.name] = snapshot = _with_identity(
                context, manifest, _snapshot(context, flow)
            )
        except ReportError as error:
            action = (
                remedies.renew(flow) if isinstance(error, StateError)
                else "See the finding about the cluster"
            )  # fmt: skip
            what = f"content of flow {flow.name} was not compared: {error}"
            reported.append(findings.unavailable(flow.name, what, action))
            continue
        lag = topics.behind(flow, context.baseline(flow.name), snapshot.positions, snapshot.source)
        if bound is not None and lag > bound:
            deferred.add(flow.name)
            reported.append(findings.deferred(flow, lag, bound))
    return ObservedFlows(snapshots, reported, frozenset(deferred))


def _snapshot(context: RunContext, flow: Flow) -> FlowSnapshot:
    baselines.refuse_cut_by_time(flow.name, context.baseline(flow.name))
    source = context.take.source(flow)
    positions = context.take.positions(flow)
    if of_present_topics(positions, source) != positions:
        # A mirror at work is ahead of the first snapshot, but not of one that comes after it.
        positions = of_present_topics(positions, context.take.source(flow))
    return FlowSnapshot(flow, positions, source, context.take.target(flow))


def _with_identity(context: RunContext, manifest: Manifest, snapshot: FlowSnapshot) -> FlowSnapshot:
    """With what identifies its logs later on, before a record of them is read.

    A log that loses its newest records later is read as it is by then; the next run reports it.
    """
    flow, baseline = snapshot.flow, context.baseline(snapshot.flow.name)
    source, target = (
        with_identity(
            context.take, snapshot.side(side),
            lost_tails.looks(flow, side, manifest, baseline, snapshot.side(side)),
        )
        for side in SIDES
    )  # fmt: skip
    return replace(snapshot, source=source, target=target)


def observe_again(context: RunContext, plan: RunPlan, flows: Collection[str]) -> ObservedFlows:
    """Observe some flows again: positions, then target, then source. One that fails is left out.

    A flow whose topics others feed too is observed together with these.
    """
    take = context.take
    together = {name: plan.feeding(name) for name in flows}
    snapshots: dict[str, FlowSnapshot] = {}
    failed: dict[str, ReportError] = {}
    for name, before in plan.snapshots.items():
        if any(name in feeding for feeding in together.values()):
            try:
                positions = take.positions(before.flow)
                target = take.target(before.flow)
                source = take.source(before.flow)
                positions = of_present_topics(positions, source)
                snapshots[name] = FlowSnapshot(before.flow, positions, source, target)
            except ReportError as error:
                failed[name] = error
    reported = []
    for name, feeding in together.items():
        for other in sorted(feeding & failed.keys()):
            snapshots.pop(name, None)
            what = f"differences of flow {name} were not confirmed: {failed[other]}"
            reported.append(findings.unavailable(name, what, "mirror-report run again"))
    return ObservedFlows(snapshots, reported)


def topics_with_timestamps(
    context: RunContext, manifest: Manifest, snapshots: FlowSnapshots
) -> list[TopicKey]:
    """Topics that were known without timestamps and have some by now."""
    timed_topics: list[TopicKey] = []
    for name, snapshot in snapshots.items():
        flow = snapshot.flow
        untimed = [
            origin for origin in snapshot.source.topics
            if manifest.may_have_timestamps(name, flow.target_topic(origin))
        ]  # fmt: skip
        # Without an answer they stay what they were.
        with contextlib.suppress(ReportError):
            timed = context.take.timed(flow, untimed) if untimed else ()
            timed_topics += [(name, flow.target_topic(origin)) for origin in timed]
    return timed_topics


def read_syncs(
    context: RunContext, manifest: Manifest, snapshots: FlowSnapshots
) -> Mapping[str, SyncsRead]:
    """Offset syncs of the flows that have topics to align, and a second source snapshot."""
    syncs_read = {}
    for name, snapshot in snapshots.items():
        if offset_syncs.to_align(manifest, snapshot):
            try:
                syncs, read = context.take.syncs(snapshot.flow, manifest.syncs.get(name, {}))
                drained = offset_syncs.seems_drained(manifest, snapshot)
                source = context.take.source(snapshot.flow) if drained else None
                syncs_read[name] = SyncsRead(syncs, read, source)
            except ReportError as error:
                syncs_read[name] = SyncsRead(problem=str(error))
    return syncs_read
