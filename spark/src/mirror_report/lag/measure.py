"""How far every flow is behind, with findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mirror_report.check.flows import check_flow, ending_certificates, lacking_permissions
from mirror_report.checks import lag_over_time
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.verdict import failure, once
from mirror_report.config import Flow, Settings
from mirror_report.kafka.mirror_topics import FlowTails, Tail
from mirror_report.lag.flow import FlowMeasurement
from mirror_report.model import (
    Finding,
    FlowStatus,
    LagPoint,
    Observed,
    PartitionLag,
    ReportError,
)
from mirror_report.observe import (
    Clients,
    aliases,
    load_manifests,
    observe_flow,
    observe_lag,
    open_clients,
    recognised,
    status_of,
    with_later_ends,
)
from mirror_report.processes.findings import processes_of
from mirror_report.state.history import History
from mirror_report.state.store import StateError, Store


@dataclass(frozen=True)
class LagResult:
    """Lag of all flows asked for, with findings.

    :param shifts: flow -> shifts of its offsets, for the next run to compare with.
    """

    rows: list[PartitionLag] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    flows: list[FlowStatus] = field(default_factory=list)
    observed: dict[str, Observed] = field(default_factory=dict)
    tails: FlowTails = field(default_factory=dict)
    shifts: dict[str, dict[str, Any]] = field(default_factory=dict)


def measure_lag(
    settings: Settings, store: Store, flow_name: str | None = None, *, topics: bool = False
) -> LagResult:
    """Measure lag once and remember what was observed.

    :param topics: check the topics' settings too, not only what stops the mirror.
    """
    flows = settings.chosen(flow_name)
    history = History(settings.state_directory, settings.history_days)
    observe = observe_flow if topics else observe_lag
    result = LagResult()
    manifests = load_manifests(store, ("baseline", "topics", "shifts", "mirrors"), result.findings)
    result.tails.update({
        name: {topic: Tail.load(one) for topic, one in topics_of.items()}
        for name, topics_of in manifests["mirrors"].items()
    })  # fmt: skip
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            try:
                observed = with_later_ends(clients, flow, observe(clients, flow, result.tails))
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                result.flows.append(status_of(flow, None))
                continue
            observed = _recognised(settings, flow, observed, result)
            of_flow = {name: of_flows.get(flow.name, {}) for name, of_flows in manifests.items()}
            measurement = FlowMeasurement(
                clients, store, history, settings.warn, flow, observed, of_flow
            )
            rows, status, findings, shifts = measurement.measure()
            result.rows.extend(rows)
            result.flows.append(status)
            result.findings.extend(findings)
            result.shifts[flow.name] = shifts
            result.findings.extend(_topic_findings(clients, flow, observed, every=topics))
        clusters = settings.clusters_of(flow.name for flow in flows)
        days = settings.warn.certificate_days
        result.findings.extend(ending_certificates(clients, clusters, days))
    result.findings.extend(
        processes_of(
            flows, result.findings, result.rows, units_file=settings.units_file,
            interval_seconds=settings.lag_interval_seconds, instances=settings.instances,
        )
    )  # fmt: skip
    result.findings[:] = once(result.findings)
    if any(flow.name in result.tails for flow in flows):
        _keep_tails(store, manifests["mirrors"], result)
    return result


def _topic_findings(
    clients: Clients, flow: Flow, observed: Observed, *, every: bool
) -> list[Finding]:
    """Findings about the flow's topics and permissions, or only about what stops the mirror."""
    if every:
        lacking = lacking_permissions(clients, flow)
        missing = [lack for lack in lacking if lack.kind == "missing_permission"]
        return [*check_flow(clients, flow, observed), *missing]
    return list(
        topic_checks.blocking_topics(
            flow, observed.source, observed.target,
            auto_creation=observed.auto_creation, positions=observed.positions,
        )
    )  # fmt: skip


def _recognised(settings: Settings, flow: Flow, observed: Observed, result: LagResult) -> Observed:
    """The observation, kept in the result, with marks on the topics that have no id."""
    try:
        observed = replace(
            observed,
            source=recognised(settings, observed.source),
            target=recognised(settings, observed.target),
        )
    except ReportError as error:
        result.findings.append(failure(error, flow.name))
    result.observed[flow.name] = observed
    if observed.target_error is not None:
        result.findings.append(failure(observed.target_error, flow.name))
    return observed


def over_time(history: History, lag: LagResult) -> list[LagPoint]:
    """Lag of the topics over the last day, as far as it was measured."""
    points: list[LagPoint] = []
    for flow, observed in lag.observed.items():
        now_ms = observed.source.taken_at_ms
        try:
            measured = history.lags(flow, now_ms - lag_over_time.SPAN_MS, now_ms)
        except StateError as error:
            lag.findings.append(failure(error, flow))
        else:
            points += lag_over_time.points(
                flow, measured, {row.topic for row in lag.rows if row.flow == flow}, now_ms
            )
    return points


def _keep_tails(store: Store, before: Mapping[str, Any], result: LagResult) -> None:
    now = {
        flow: {topic: tail.dump() for topic, tail in topics.items()}
        for flow, topics in result.tails.items()
    }
    try:
        store.commit("mirrors", {**before, **now})
    except StateError as error:
        result.findings.append(failure(error))
