"""``lag``: how far every flow is behind, and what was found on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_report.checks import lag as lag_checks
from mirror_report.checks import lag_findings, partition_history, points, recreated, shifts, workers
from mirror_report.checks import losses as loss_checks
from mirror_report.checks import positions as position_checks
from mirror_report.checks.estimates import estimates
from mirror_report.checks.verdict import failure, finding
from mirror_report.commands.checked import (
    check_flow,
    ending_certificates,
    lacking_permissions,
    said_once,
)
from mirror_report.commands.flows import aliases, chosen, status_of
from mirror_report.config.flow import HEARTBEATS, Flow
from mirror_report.config.settings import Settings
from mirror_report.kafka.records import oldest_waiting
from mirror_report.kafka.tails import FlowTails, Tail
from mirror_report.kafka.transactions import open_transactions
from mirror_report.model.cluster import Place
from mirror_report.model.document import FlowStatus
from mirror_report.model.errors import ReportError
from mirror_report.model.findings import Finding
from mirror_report.model.lag import LagPoint, PartitionLag
from mirror_report.observe import (
    Clients,
    Observed,
    observe_flow,
    observe_lag,
    open_clients,
    with_later_ends,
)
from mirror_report.state.history import History
from mirror_report.state.store import StateError, Store

AGES_ASKED = 300
"""Partitions with lag whose oldest record is read at one look."""
AGES_SECONDS = 3.0


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


def lag(
    settings: Settings, store: Store, flow_name: str | None = None, *, topics: bool = False
) -> LagResult:
    """Measure lag once and remember what was seen.

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
    result.tails.update(_memories(manifests["mirrors"]))
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            try:
                seen = (observe_flow if topics else observe_lag)(clients, flow, result.tails)
                observed = with_later_ends(clients, flow, seen)
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                result.flows.append(status_of(flow, None))
                continue
            result.observed[flow.name] = observed
            _Measurement(settings, store, clients, flow, observed, manifests, result).add()
            if topics:
                result.findings.extend(check_flow(settings, clients, flow, observed))
                result.findings.extend(
                    one
                    for one in lacking_permissions(settings, clients, flow)
                    if one.kind == "missing_permission"
                )
        result.findings.extend(ending_certificates(settings, clients, flows))
    result.findings[:] = said_once(result.findings)
    if any(flow.name in result.tails for flow in flows):
        _keep_memories(store, manifests["mirrors"], result)
    return result


def over_time(settings: Settings, measured: LagResult) -> list[LagPoint]:
    """Lag of the topics over the last day, as far as looks have left it."""
    history = History(settings.state_directory, settings.history_days)
    found: list[LagPoint] = []
    for flow, observed in measured.observed.items():
        now_ms = observed.source.taken_at_ms
        try:
            looks = history.lags(flow, now_ms - points.SPAN_MS, now_ms)
        except StateError as error:
            measured.findings.append(failure(error, flow))
            continue
        topics = {row.topic for row in measured.rows if row.flow == flow}
        found += points.points(flow, looks, topics, now_ms)
    return found


def _memories(plain: Mapping[str, Any]) -> FlowTails:
    return {
        flow: {topic: Tail.load(one) for topic, one in topics.items()}
        for flow, topics in plain.items()
    }


def _keep_memories(store: Store, before: Mapping[str, Any], result: LagResult) -> None:
    now = {
        flow: {topic: tail.dump() for topic, tail in topics.items()}
        for flow, topics in result.tails.items()
    }
    try:
        store.commit("mirrors", {**before, **now})
    except StateError as error:
        result.findings.append(failure(error))


@dataclass(frozen=True)
class _Measurement:
    """One flow at one look; what it finds is added to the result."""

    settings: Settings
    store: Store
    clients: Clients
    flow: Flow
    observed: Observed
    manifests: Mapping[str, Mapping[str, Any]]
    result: LagResult

    def add(self) -> None:
        """Measure, judge, remember."""
        history = History(self.settings.state_directory, self.settings.history_days)
        with contextlib.ExitStack() as stack:
            try:
                # What was seen before and what is added to it belong together.
                stack.enter_context(history.lock())
            except StateError as error:
                self._failed(error)
            self._measure(history)

    def _failed(self, error: ReportError) -> None:
        self.result.findings.append(failure(error, self.flow.name))

    def _found(self, findings: Iterable[Finding]) -> None:
        self.result.findings.extend(findings)

    @property
    def _baseline(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.manifests["baseline"].get(self.flow.name, {})
        return found

    def _measure(self, history: History) -> None:
        flow, observed, warn = self.flow, self.observed, self.settings.warn
        source, mirror = observed.source, observed.mirror
        try:
            lines = history.lines(flow.name)
        except StateError as error:
            lines = []
            self._failed(error)
        past = partition_history.read(lines)
        positions = position_checks.by_partition(
            flow, source, observed.positions, self._baseline, past
        )
        waiting = position_checks.waiting(flow, source, positions)
        ages = self._ages(position_checks.oldest_first(waiting, past, AGES_ASKED), len(waiting))
        drained = position_checks.drained(waiting, ages)
        client = self.clients.get(flow.source)
        transactions = open_transactions(client, source)
        reset, anew = self._made_anew()
        gone, losses = self._losses(positions, past, drained, anew)
        evidence = lag_checks.Evidence(
            ages=ages,
            sizes=client.partition_sizes({name for name, _ in waiting.keys() - drained.keys()}),
            transactions=transactions,
            losses=loss_checks.counts(losses),
            truncated=gone,
            estimates=estimates(flow, source, observed.target, mirror, anew),
            reset_topics=reset,
        )
        rows = lag_checks.measure(
            flow, source, mirror, observed.group, positions,
            evidence=evidence, history=past, baseline=self._baseline, warn=warn,
        )  # fmt: skip
        status = self._status()
        self.result.rows.extend(rows)
        self.result.flows.append(status)
        cluster = self.settings.clusters[flow.source]
        self._found(loss_checks.judge(flow, losses, cluster))
        self._found(lag_findings.judge(flow, rows, observed.group, self.settings.clusters))
        self._found(lag_findings.hung(flow, transactions, cluster, warn))
        self._found(lag_findings.heartbeat(flow, status, warn, cluster))
        self._found(workers.judge(flow, mirror, observed.group))
        self._found(
            finding("permission", message, f"Grant the identity READ on the topics of {flow.target}"
                    " that docs/report/permissions.md lists", flow=flow.name)
            for message in mirror.problems
        )  # fmt: skip
        self._remember(history, len(lines), past, drained, rows)

    def _ages(
        self, asked: Mapping[Place, tuple[int, int]], lagging: int
    ) -> dict[Place, int | None]:
        """Timestamps of the oldest records waiting, as far as they were asked for."""
        flow = self.flow
        self._found(lag_findings.not_asked(flow, lagging, len(asked)))
        try:
            return oldest_waiting(
                self.settings.clusters[flow.source], self.settings.credentials, asked,
                AGES_SECONDS, flow.source_isolation,
            )  # fmt: skip
        except ReportError as error:
            self._failed(error)
            return {}

    def _made_anew(self) -> tuple[frozenset[str], set[str]]:
        """Source topics with another id, and those with another one on either side."""
        flow, source = self.flow, self.observed.source
        remembered = self.manifests["topics"].get(flow.name, {})
        reset = recreated.changed_ids(remembered.get("source", {}), source)
        target_reset = recreated.changed_ids(remembered.get("target", {}), self.observed.target)
        self._found(recreated.on_target(flow, target_reset, self.settings.clusters))
        there = {name for name in source.topics if flow.target_topic(name) in target_reset}
        return frozenset(reset), set(reset) | there

    def _losses(
        self,
        positions: Mapping[Place, position_checks.Position],
        past: partition_history.FlowHistory,
        drained: Mapping[Place, int],
        anew: Collection[str],
    ) -> tuple[frozenset[Place], dict[str, Any]]:
        """Partitions truncated now, and all that is known to be lost, which is remembered."""
        flow, observed = self.flow, self.observed
        source, target, mirror = observed.source, observed.target, observed.mirror
        seen = shifts.observe(source, target, mirror, flow, drained)
        before = self.manifests["shifts"].get(flow.name, {})
        self._found(shifts.judge(flow, source, seen, before, anew))
        self.result.shifts[flow.name] = shifts.remember(before, seen)
        stands = {
            place: one.next_offset for place, one in positions.items() if place[0] not in anew
        }
        lost = loss_checks.observe(
            flow, source, target, mirror, stands, past,
            baseline=self._baseline, rises=shifts.rises(seen, before),
            alive=bool(observed.group.members),
        )  # fmt: skip
        gone = frozenset(
            place
            for place in lost
            if stands[place] < source.topics[place[0]].partitions[place[1]].log_start
        )
        try:
            every = self.store.load("losses")
            known = every.get(flow.name, {})
            since = int(self._baseline.get("losses_since_ms", 0))
            losses = loss_checks.remember(known, lost, source.taken_at_ms, since)
            if losses != known:
                self.store.commit("losses", {**every, flow.name: losses})
        except StateError as error:
            self._failed(error)
            losses = loss_checks.remember({}, lost, source.taken_at_ms, 0)
        return gone, losses

    def _status(self) -> FlowStatus:
        status = status_of(self.flow, self.observed)
        if not self.flow.engine.has_heartbeats:
            return status
        client = self.clients.get(self.flow.target)
        newest = client.newest_record(self.flow.target_topic(HEARTBEATS))
        if newest is None:
            return status
        age = max(0.0, (time.time_ns() // 1_000_000 - newest) / 1000)
        return dataclasses.replace(status, heartbeat_age_seconds=age)

    def _remember(
        self,
        history: History,
        before: int,
        past: partition_history.FlowHistory,
        drained: Mapping[Place, int],
        rows: Sequence[PartitionLag],
    ) -> None:
        flow, source, positions = self.flow, self.observed.source, self.observed.positions
        through = partition_history.through(past, source, positions, drained)
        line = partition_history.line(past, source, positions, through, flow.source_isolation)
        topics = {*source.topics, *source.errors}
        try:
            history.append(
                flow.name,
                line,
                before,
                lambda lines: partition_history.thinned(lines, topics, line["at"], history.days),
            )
            history.append_lags(flow.name, line["at"], points.by_topic(rows))
        except StateError as error:
            self._failed(error)
