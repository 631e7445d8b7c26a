"""``lag``: how far every flow is behind, and what was found on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_report.checks import lag as lag_checks
from mirror_report.checks import shifts, workers
from mirror_report.checks.estimates import estimates
from mirror_report.checks.verdict import failure, finding
from mirror_report.commands.checked import (
    check_flow,
    ending_certificates,
    lacking_permissions,
    said_once,
)
from mirror_report.commands.flows import aliases, chosen, status_of
from mirror_report.config import Flow, Settings
from mirror_report.kafka.records import Tail, oldest_waiting
from mirror_report.model import Finding, FlowStatus, PartitionLag, ReportError
from mirror_report.observe import Memories, Observed, look, open_clients
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
    memories: Memories = field(default_factory=dict)
    shifts: dict[str, dict[str, Any]] = field(default_factory=dict)


def lag(
    settings: Settings, store: Store, flow_name: str | None = None, *, topics: bool = False
) -> LagResult:
    """Measure lag once and remember the positions.

    :param topics: judge the topics' settings too.
    """
    flows = chosen(settings, flow_name)
    result = LagResult()
    manifests: dict[str, dict[str, Any]] = {}
    for name in ("baseline", "topics", "shifts", "mirrors"):
        try:
            manifests[name] = store.load(name)
        except StateError as error:
            manifests[name] = {}
            result.findings.append(failure(error))
    result.memories.update(_memories(manifests["mirrors"]))
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            try:
                observed = look(clients, flow, result.memories)
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                result.flows.append(status_of(flow, None))
                continue
            result.observed[flow.name] = observed
            result.flows.append(status_of(flow, observed))
            _lag_of(settings, store, flow, observed, manifests, result)
            if topics:
                result.findings.extend(check_flow(settings, clients, flow, observed))
                result.findings.extend(
                    one
                    for one in lacking_permissions(settings, clients, flow)
                    if one.kind == "missing_permission"
                )
        result.findings.extend(ending_certificates(settings, clients, flows))
    result.findings[:] = said_once(result.findings)
    if any(flow.engine == "mm2" for flow in flows):
        _keep_memories(store, manifests["mirrors"], result)
    return result


def _memories(plain: Mapping[str, Any]) -> Memories:
    return {
        flow: {topic: Tail.load(one) for topic, one in topics.items()}
        for flow, topics in plain.items()
    }


def _keep_memories(store: Store, before: Mapping[str, Any], result: LagResult) -> None:
    now = {
        flow: {topic: tail.dump() for topic, tail in topics.items()}
        for flow, topics in result.memories.items()
    }
    try:
        store.commit("mirrors", {**before, **now})
    except StateError as error:
        result.findings.append(failure(error))


def _lag_of(
    settings: Settings,
    store: Store,
    flow: Flow,
    observed: Observed,
    manifests: Mapping[str, Mapping[str, Any]],
    result: LagResult,
) -> None:
    source, positions, standing = observed.source, observed.positions, observed.standing
    start = manifests["baseline"].get(flow.name, {})
    remembered = manifests["topics"].get(flow.name, {})
    waiting = lag_checks.waiting(flow, source, positions, start)
    try:
        ages = oldest_waiting(settings.clusters[flow.source], settings.credentials, waiting)
    except ReportError as error:
        ages = {}
        result.findings.append(failure(error, flow.name))
    try:
        history = store.history(flow.name)
    except StateError as error:
        history = []
        result.findings.append(failure(error, flow.name))
    reset = lag_checks.changed_ids(remembered.get("source", {}), source)
    target_reset = lag_checks.changed_ids(remembered.get("target", {}), observed.target)
    anew = set(reset) | {name for name in source.topics if flow.target_topic(name) in target_reset}
    rows = lag_checks.measure(
        flow,
        source,
        positions,
        observed.group,
        ages=ages,
        history=history,
        baseline=start,
        reset_topics=frozenset(reset),
        warn=settings.warn,
        estimates=estimates(flow, source, observed.target, standing, anew),
    )
    result.rows.extend(rows)
    result.findings.extend(lag_checks.judge(flow, rows, observed.group))
    result.findings.extend(workers.judge(flow, standing, observed.group))
    result.findings.extend(
        finding("permission", message, f"Grant the identity READ on the topics of {flow.target} "
                "that docs/report.md lists", flow=flow.name)
        for message in standing.problems
    )  # fmt: skip
    drained = lag_checks.drained(waiting, ages)
    seen = shifts.observe(source, observed.target, standing, flow, drained)
    before = manifests["shifts"].get(flow.name, {})
    result.findings.extend(shifts.judge(flow, source, seen, before, anew))
    result.shifts[flow.name] = shifts.remember(before, seen)
    again = (
        f"write a record without value for each of its keys into {flow.offset_topic}"
        if flow.engine == "mm2"
        else f"reset group {flow.group_id} to the earliest offsets"
    )
    result.findings.extend(
        finding(
            "reset",
            f"{name}: deleted and created again on {flow.target} (id {old}, now {new})",
            f"Records mirrored before are gone. To mirror them again {again} while "
            f"{flow.instance}.service is stopped; "
            f"then mirror-report baseline --flow {flow.name} --renew",
            flow=flow.name,
            topic=name,
        )
        for name, (old, new) in target_reset.items()
    )
    try:
        store.append_history(flow.name, lag_checks.observation(source, positions, drained))
    except StateError as error:
        result.findings.append(failure(error, flow.name))
