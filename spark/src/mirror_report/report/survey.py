"""Every topic of the flows, and every consumer group whose offsets they take along."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_report.checks import selection, topic_status
from mirror_report.checks.verdict import failure
from mirror_report.config import Flow
from mirror_report.groups.moving import flow_groups
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.lag.measure import LagResult
from mirror_report.model import Finding, GroupParity, Observed, ReportError, TopicStatus
from mirror_report.observe import Clients, load_manifests
from mirror_report.state import baselines
from mirror_report.state.store import Store

# Topics of the target alone whose ends one report asks for.
UNFED_ASKED = 2000


@dataclass(frozen=True)
class Survey:
    """Topics and groups of flows.

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


def survey_flows(
    clients: Clients,
    store: Store,
    flows: Sequence[tuple[Flow, Sequence[Flow]]],
    lag: LagResult,
    most_reread: int | None,
) -> Survey:
    """Observe topics and groups of flows whose lag was measured just now.

    :param flows: each with the other flows into its target.
    :param most_reread: records that a group may read again in a partition; ``None``: any number.
    """
    survey = Survey()
    manifests = load_manifests(store, ("baseline", "topics", "survey", "groups"), survey.findings)
    for flow, others in flows:
        before = {name: of_flows.get(flow.name, {}) for name, of_flows in manifests.items()}
        try:
            topics = _topics(clients, flow, lag.observed[flow.name], before, others, survey)
            survey.manifests["survey"][flow.name] = topics
            groups = flow_groups(
                clients, flow, lag, before["groups"], others=others, most_reread=most_reread
            )
        except ReportError as error:
            survey.findings.append(failure(error, flow.name))
            continue
        survey.groups.extend(groups.rows)
        survey.findings.extend(groups.findings)
        if groups.remembered is not None:
            survey.manifests["groups"][flow.name] = groups.remembered
    return survey


def _topics(
    clients: Clients,
    flow: Flow,
    observed: Observed,
    before: Mapping[str, Mapping[str, Any]],
    others: Sequence[Flow],
    survey: Survey,
) -> dict[str, Any]:
    """Add the flow's topics to a survey.

    :param others: further flows into its target.
    :param before: manifest -> what it holds of the flow.
    :returns: what the next report has to know of the topics.
    """
    client, source, positions = clients.get(flow.source), observed.source, observed.positions
    on_source = client.partition_counts()
    on_target = clients.get(flow.target).partition_counts()
    mirrored = {*before["topics"].get("source", {}), *positions}
    gone = _not_on(client, topic_status.candidates(flow, source, on_source, on_target, mirrored))
    survey.topics.extend(
        topic_status.statuses(flow, source, observed.target, on_source, gone, on_target)
    )
    baseline, former = baselines.of_flow(before["baseline"]), before["survey"]
    selected = former.get("selection", {})
    disagreements = selection.disagreements(flow, source, positions, baseline, selected)
    foreign = topic_status.not_made(flow, former, source, baseline)
    unfed = topic_status.unfed(flow, source.topics, on_target, mirrored, others)
    survey.findings.extend([
        *topic_status.foreign_topics(flow, source, observed.target, positions, others, foreign),
        *topic_status.orphaned(flow, gone, former.get("orphaned", ())),
        *selection.findings(flow, source, positions, observed.group, disagreements, selected),
    ])  # fmt: skip
    return {
        "orphaned": sorted(gone),
        "selection": disagreements,
        "held": _held(clients, flow, unfed, former.get("held", ())),
        "foreign": [name for name in foreign if name in on_target],
    }


def _held(clients: Clients, flow: Flow, unfed: Sequence[str], before: Collection[str]) -> list[str]:
    """Those of the topics that hold records on the target, and are not on the source.

    :param unfed: their names, on both sides.
    :param before: those that did at the last report; it is not asked again.
    """
    target = clients.get(flow.target)
    new = [name for name in unfed if name not in before][:UNFED_ASKED]
    logs = target.snapshot(None, new, settings=False).logs() if new else ()
    filled = {name for (name, _), log in logs if log.end > log.log_start}
    # The source after the target: what is hidden from us may have been copied, too.
    new_and_held = _not_on(clients.get(flow.source), filled)
    return sorted({*new_and_held, *(name for name in unfed if name in before)})


def _not_on(client: ClusterClient, topics: Collection[str]) -> list[str]:
    """Topics that a cluster does not have; asked by name, one that is hidden from us counts."""
    if not topics:
        return []
    asked = client.snapshot(None, topics, settings=False)
    return [name for name in topics if name not in asked.topics and name not in asked.errors]
