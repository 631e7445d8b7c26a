"""Every topic of the flows, and every group whose offsets they take along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_report.checks import selection, topic_status
from mirror_report.checks.failover import none_examined
from mirror_report.checks.verdict import failure
from mirror_report.commands.failover import look_at_groups
from mirror_report.commands.flows import Progress, aliases, chosen
from mirror_report.commands.measured import LagResult, lag
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Settings
from mirror_report.model.errors import ReportError
from mirror_report.model.findings import Finding
from mirror_report.model.groups import GroupParity
from mirror_report.model.topics import TopicStatus
from mirror_report.observe import Clients, Observed, open_clients
from mirror_report.state.store import StateError, Store


@dataclass(frozen=True)
class Survey:
    """Topics and groups of some flows.

    :param told: flow -> what the next report has to know; it is kept once this one is out.
    :param read: flow -> what was read of its groups, likewise.
    """

    topics: list[TopicStatus] = field(default_factory=list)
    groups: list[GroupParity] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    read: dict[str, dict[str, Any]] = field(default_factory=dict)

    def keep(self, store: Store) -> None:
        """Remember what was told and read.

        :raises StateError: it cannot be written.
        """
        for name, some in (("survey", self.told), ("groups", self.read)):
            if some:
                store.commit(name, {**store.load(name), **some})


def survey(settings: Settings, store: Store, flows: Sequence[Flow], measured: LagResult) -> Survey:
    """Look at topics and groups of flows whose lag was measured just now."""
    result = Survey()
    manifests: dict[str, dict[str, Any]] = {}
    for name in ("baseline", "topics", "survey", "groups"):
        try:
            manifests[name] = store.load(name)
        except StateError as error:
            manifests[name] = {}
            result.findings.append(failure(error))
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            observed = measured.observed[flow.name]
            before = manifests["survey"].get(flow.name, {})
            known = manifests["topics"].get(flow.name, {}).get("source", {})
            starts = {
                name: one["source"]
                for name, one in manifests["baseline"].get(flow.name, {}).get("topics", {}).items()
            }
            try:
                told = _topics(clients, flow, observed, known, starts, before, result)
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                continue
            result.told[flow.name] = told
            _groups(settings, clients, flow, measured, manifests["groups"], result)
    return result


def _groups(
    settings: Settings,
    clients: Clients,
    flow: Flow,
    measured: LagResult,
    before: Mapping[str, Any],
    result: Survey,
) -> None:
    """Add the flow's groups to the result; MirrorMaker 1 takes none along."""
    if flow.engine != "mm2" or not flow.consumer_groups:
        return
    drained = {
        (row.topic, row.partition): row.log_end
        for row in measured.rows
        if row.flow == flow.name and row.lag_records == 0 and row.log_end is not None
    }
    observed = measured.observed[flow.name]
    try:
        found = look_at_groups(
            settings, clients, flow, observed, drained, before.get(flow.name, {})
        )
    except ReportError as error:
        result.findings.append(failure(error, flow.name))
        return
    result.groups.extend(found.rows)
    result.findings.extend(found.findings)
    result.read[flow.name] = found.remembered


def groups(settings: Settings, flow_name: str | None, progress: Progress) -> Survey:
    """Look at the groups of the flows alone; what it reads is read again by the next report.

    :returns: of the findings those about groups, and what kept anything from being known; a flow of
        which no group was examined is one.
    """
    store = Store(settings.state_directory)
    flows = chosen(settings, flow_name)
    measured = lag(settings, store, flow_name)
    result = Survey()
    result.findings.extend(one for one in measured.findings if one.severity == "unknown")
    try:
        before = store.load("groups")
    except StateError as error:
        before = {}
        result.findings.append(failure(error))
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            if flow.name not in measured.observed:
                continue
            progress(f"flow {flow.name}: looking at its groups")
            said = len(result.findings)
            _groups(settings, clients, flow, measured, before, result)
            seen = [one for one in result.groups if one.flow == flow.name]
            if len(result.findings) == said and all(one.state == "not_synced" for one in seen):
                result.findings.append(none_examined(flow))
    return result


def _topics(
    clients: Clients,
    flow: Flow,
    observed: Observed,
    known: Mapping[str, str],
    starts: Mapping[str, Mapping[str, int]],
    before: Mapping[str, Any],
    result: Survey,
) -> dict[str, Any]:
    """Add the flow's topics to the result; returns what the next report has to know of them."""
    client = clients.get(flow.source)
    on_source = client.partition_counts()
    on_target = clients.get(flow.target).partition_counts()
    mirrored = {*known, *observed.positions}
    gone = topic_status.candidates(flow, observed.source, on_source, on_target, mirrored)
    if gone:
        # Asked by name, what is hidden from us differs from what is not there.
        asked = client.snapshot(None, gone, settings=False)
        shown = {*asked.topics, *asked.errors}
        gone = {name: there for name, there in gone.items() if name not in shown}
    result.topics.extend(
        topic_status.statuses(flow, observed.source, observed.target, on_source, gone, on_target)
    )
    result.findings.extend(topic_status.orphaned(flow, gone, before.get("orphaned", ())))
    seen = selection.observe(
        flow, observed.source, observed.positions, starts, before.get("selection", {})
    )
    result.findings.extend(
        selection.judge(
            flow, observed.source, observed.positions, observed.group, seen,
            before.get("selection", {}),
        )
    )  # fmt: skip
    return {"orphaned": sorted(gone), "selection": seen}
