"""How far every flow is behind, and what was found on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mirror_report.check.flow import check_flow, ending_certificates, lacking_permissions
from mirror_report.checks import lag_over_time
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.verdict import failure, once
from mirror_report.config import Flow, Settings
from mirror_report.kafka.tails import FlowTails, Tail
from mirror_report.lag.flow import measure_flow
from mirror_report.model import (
    Finding,
    FlowStatus,
    LagPoint,
    Observed,
    PartitionLag,
    ReportError,
)
from mirror_report.observe import (
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
    """Lag of all flows asked for, and what was found on the way.

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
    """Measure lag once and remember what was seen.

    :param topics: judge the topics' settings too, not only what stops the mirror.
    """
    flows = settings.chosen(flow_name)
    result = LagResult()
    manifests = load_manifests(store, ("baseline", "topics", "shifts", "mirrors"), result.findings)
    result.tails.update({
        name: {topic: Tail.load(one) for topic, one in topics_of.items()}
        for name, topics_of in manifests["mirrors"].items()
    })  # fmt: skip
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            observe = observe_flow if topics else observe_lag
            try:
                seen = with_later_ends(clients, flow, observe(clients, flow, result.tails))
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                result.flows.append(status_of(flow, None))
                continue
            observed = _recognised(settings, flow, seen, result)
            known = {name: of_flows.get(flow.name, {}) for name, of_flows in manifests.items()}
            rows, status, findings, shifts = measure_flow(
                settings, store, clients, flow, observed, known
            )
            result.rows.extend(rows)
            result.flows.append(status)
            result.findings.extend(findings)
            result.shifts[flow.name] = shifts
            if not topics:
                result.findings.extend(
                    topic_checks.blocking(
                        flow, observed.source, observed.target,
                        auto_creation=observed.auto_creation, positions=observed.positions,
                    )
                )  # fmt: skip
            else:
                result.findings.extend([
                    *check_flow(clients, flow, observed),
                    *(
                        lack
                        for lack in lacking_permissions(clients, flow)
                        if lack.kind == "missing_permission"
                    ),
                ])  # fmt: skip
        result.findings.extend(ending_certificates(settings, clients, flows))
    result.findings.extend(processes_of(settings, flows, result.findings, result.rows))
    result.findings[:] = once(result.findings)
    if any(flow.name in result.tails for flow in flows):
        _keep_tails(store, manifests["mirrors"], result)
    return result


def _recognised(settings: Settings, flow: Flow, seen: Observed, result: LagResult) -> Observed:
    """What was seen, kept in the result, with marks on the topics that have no id."""
    try:
        seen = replace(
            seen,
            source=recognised(settings, seen.source),
            target=recognised(settings, seen.target),
        )
    except ReportError as error:
        result.findings.append(failure(error, flow.name))
    result.observed[flow.name] = seen
    if seen.target_error is not None:
        result.findings.append(failure(seen.target_error, flow.name))
    return seen


def over_time(history: History, lag: LagResult) -> list[LagPoint]:
    """Lag of the topics over the last day, as far as it was measured."""
    found: list[LagPoint] = []
    for flow, observed in lag.observed.items():
        now_ms = observed.source.taken_at_ms
        try:
            measured = history.lags(flow, now_ms - lag_over_time.SPAN_MS, now_ms)
        except StateError as error:
            lag.findings.append(failure(error, flow))
        else:
            found += lag_over_time.points(
                flow, measured, {row.topic for row in lag.rows if row.flow == flow}, now_ms
            )
    return found


def _keep_tails(store: Store, before: Mapping[str, Any], result: LagResult) -> None:
    now = {
        flow: {topic: tail.dump() for topic, tail in topics.items()}
        for flow, topics in result.tails.items()
    }
    try:
        store.commit("mirrors", {**before, **now})
    except StateError as error:
        result.findings.append(failure(error))
