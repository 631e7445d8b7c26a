"""Every topic of the flows, and every consumer group whose offsets they take along."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_report.checks import selection, topic_status
from mirror_report.checks.verdict import failure
from mirror_report.config import Flow, Settings
from mirror_report.groups.moving import flow_groups
from mirror_report.lag.measure import LagResult
from mirror_report.model import Finding, GroupParity, Observed, ReportError, TopicStatus
from mirror_report.observe import (
    Clients,
    aliases,
    load_manifests,
    open_clients,
)
from mirror_report.state import baselines
from mirror_report.state.store import Store

# Topics of the target alone whose ends one report asks for.
UNFED_ASKED = 2000


@dataclass(frozen=True)
class Survey:
    """Topics and groups of some flows.

    :param manifests: name of a manifest -> flow -> what the next report has to know; it is kept
        once this one is out.
    """

    topics: list[TopicStatus] = field(default_factory=list)
    groups: list[GroupParity] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    manifests: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"survey": {}, "groups": {}}
    )

    def keep(self, store: Store) -> None:
        """Remember what the next report has to know.

        :raises StateError: it cannot be written.
        """
        for name, flows in self.manifests.items():
            if flows:
                store.commit(name, {**store.load(name), **flows})


def survey(settings: Settings, store: Store, flows: Sequence[Flow], lag: LagResult) -> Survey:
    """Observe topics and groups of flows whose lag was measured just now."""
    result = Survey()
    manifests = load_manifests(store, ("baseline", "topics", "survey", "groups"), result.findings)
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            before = {name: some.get(flow.name, {}) for name, some in manifests.items()}
            others = settings.into_one(flow)
            try:
                topics = _topics(clients, flow, lag.observed[flow.name], before, others, result)
                result.manifests["survey"][flow.name] = topics
                groups = flow_groups(
                    clients, flow, lag, before["groups"],
                    others=others, most_reread=settings.warn.reread_records,
                )  # fmt: skip
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                continue
            result.groups.extend(groups.rows)
            result.findings.extend(groups.findings)
            if groups.remembered is not None:
                result.manifests["groups"][flow.name] = groups.remembered
    return result


def _topics(
    clients: Clients,
    flow: Flow,
    observed: Observed,
    before: Mapping[str, Mapping[str, Any]],
    others: Sequence[Flow],
    result: Survey,
) -> dict[str, Any]:
    """Add the flow's topics to the result.

    :param others: further flows into its target.
    :param before: manifest -> what it holds of the flow.
    :returns: what the next report has to know of the topics.
    """
    client = clients.get(flow.source)
    on_source = client.partition_counts()
    on_target = clients.get(flow.target).partition_counts()
    mirrored = {*before["topics"].get("source", {}), *observed.positions}
    gone = topic_status.candidates(flow, observed.source, on_source, on_target, mirrored)
    if gone:
        # Asked by name, what is hidden from us differs from what is not there.
        asked = client.snapshot(None, gone, settings=False)
        there = {*asked.topics, *asked.errors}
        gone = {name: partitions for name, partitions in gone.items() if name not in there}
    source, positions, known = observed.source, observed.positions, before["survey"]
    result.topics.extend(
        topic_status.statuses(flow, source, observed.target, on_source, gone, on_target)
    )
    baseline, selected = baselines.of_flow(before["baseline"]), known.get("selection", {})
    seen = selection.observe(flow, source, positions, baseline, selected)
    foreign = topic_status.not_made(flow, known, source, baseline)
    unfed = topic_status.unfed(flow, source.topics, on_target, mirrored, others)
    result.findings.extend([
        *topic_status.foreign(flow, source, observed.target, positions, others, foreign),
        *topic_status.orphaned(flow, gone, known.get("orphaned", ())),
        *selection.judge(flow, source, positions, observed.group, seen, selected),
    ])  # fmt: skip
    return {
        "orphaned": sorted(gone),
        "selection": seen,
        "held": _held(clients, flow, unfed, known.get("held", ())),
        "foreign": [name for name in foreign if name in on_target],
    }


def _held(clients: Clients, flow: Flow, unfed: Sequence[str], before: Collection[str]) -> list[str]:
    """Those of some topics that hold records on the target, and are not on the source.

    :param unfed: their names, on both sides.
    :param before: those that did at the last report; it is not asked again.
    """
    new = [name for name in unfed if name not in before][:UNFED_ASKED]
    theirs = clients.get(flow.target).snapshot(None, new, settings=False).topics if new else {}
    full = [
        name
        for name, topic in theirs.items()
        if any(log.end > log.log_start for log in topic.partitions.values())
    ]
    # Asked by name and after the target: what is hidden from us may have been copied, too.
    ours = clients.get(flow.source).snapshot(None, full, settings=False) if full else None
    there = {*ours.topics, *ours.errors} if ours else set()
    return sorted({*(set(full) - there), *(name for name in unfed if name in before)})
