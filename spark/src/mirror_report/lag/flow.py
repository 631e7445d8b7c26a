"""Measuring the lag of one flow, by observations of now and before."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mirror_report.checks import (
    control,
    lag_findings,
    lag_over_time,
    partition_history,
    shifts,
    topic_identity,
    workers,
)
from mirror_report.checks import lag as lag_checks
from mirror_report.checks import losses as loss_checks
from mirror_report.checks import positions as position_checks
from mirror_report.checks.verdict import failure
from mirror_report.config import HEARTBEATS, Flow, Warn
from mirror_report.kafka import guarded
from mirror_report.kafka.logs import open_transactions, partition_sizes
from mirror_report.kafka.records import oldest_waiting
from mirror_report.model import (
    Baseline,
    Finding,
    FlowStatus,
    Observed,
    PartitionLag,
    Place,
    ReportError,
)
from mirror_report.observe import Clients, status_of
from mirror_report.state import baselines
from mirror_report.state.history import History
from mirror_report.state.store import StateError, Store

# Partitions with lag whose oldest record is read at one observation.
AGES_ASKED = 300
AGES_SECONDS = 3.0

# Rows, status, findings, and shifts of its offsets for the next run to compare with.
FlowLag = tuple[list[PartitionLag], FlowStatus, list[Finding], dict[str, Any]]


@dataclass(frozen=True)
class FlowMeasurement:
    """Measures the lag of one flow, and remembers what was observed.

    :param manifests: manifest -> what it holds of the flow.
    :param findings: grow while it is measured.
    """

    clients: Clients
    store: Store
    history: History
    warn: Warn
    flow: Flow
    observed: Observed
    manifests: Mapping[str, Mapping[str, Any]]
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def baseline(self) -> Baseline:
        """Where verification of the flow begins."""
        return baselines.of_flow(self.manifests["baseline"])

    def _failed(self, error: ReportError) -> None:
        self.findings.append(failure(error, self.flow.name))

    def measure(self) -> FlowLag:
        """Measure it.

        :raises ReportError: the source cannot be read.
        """
        with contextlib.ExitStack() as stack:
            try:
                # What was observed before and what is added to it belong together.
                stack.enter_context(self.history.lock())
            except StateError as error:
                self._failed(error)
            return self._measured()

    def _measured(self) -> FlowLag:
        flow, observed, warn = self.flow, self.observed, self.warn
        source, mirror = observed.source, observed.mirror
        try:
            lines = self.history.lines(flow.name)
        except StateError as error:
            lines = []
            self._failed(error)
        past = partition_history.of_lines(lines, source.taken_at_ms)
        positions = position_checks.mirror_positions(
            flow, source, observed.positions, self.baseline, past
        )
        waiting = position_checks.waiting_ranges(flow, source, positions)
        ages = self._ages(position_checks.oldest_first(waiting, past, AGES_ASKED), len(waiting))
        drained = position_checks.drained(waiting, ages)
        client = self.clients.get(flow.source)
        admin, cluster = client.admin, client.cluster
        transactions = open_transactions(admin, source)
        reset, replaced = self._recreated()
        shifted = shifts.offset_shifts(source, observed.target, mirror, flow, drained)
        before = self.manifests["shifts"]
        self.findings.extend(shifts.findings(flow, source, shifted, before, replaced))
        next_offsets = {
            place: position.next_offset
            for place, position in positions.items()
            if place[0] not in replaced
        }
        truncated, losses = self._losses(next_offsets, past, shifts.rises(shifted, before))
        evidence = lag_checks.Evidence(
            positions,
            ages=ages,
            sizes=partition_sizes(admin, {name for name, _ in waiting.keys() - drained.keys()}),
            transactions=transactions,
            losses=loss_checks.counts(losses),
            truncated=truncated,
            estimates=position_checks.estimates(flow, source, observed.target, mirror, replaced),
            reset_topics=reset,
        )
        rows = lag_checks.measure(
            flow, observed, evidence, history=past, baseline=self.baseline, warn=warn
        )
        status = self._status()
        self.findings.extend([
            *loss_checks.findings(flow, losses, cluster),
            *lag_findings.findings(flow, rows, observed.group, cluster),
            *lag_findings.hung_transactions(flow, transactions, cluster, warn.stalled_seconds),
            *lag_findings.old_heartbeat(flow, status, warn.heartbeat_seconds, cluster),
            *workers.findings(flow, mirror, observed.group),
            *(failure(problem, flow.name) for problem in mirror.problems),
            *control.control_records(flow, mirror.foreign, time.time_ns() // 1_000_000),
        ])  # fmt: skip
        self._remember(len(lines), past, drained, rows)
        return rows, status, self.findings, shifts.with_former(before, shifted)

    def _ages(
        self, asked: Mapping[Place, tuple[int, int]], lagging: int
    ) -> dict[Place, int | None]:
        """Timestamps of the oldest records waiting, as far as they were asked for."""
        self.findings.extend(lag_findings.ages_not_asked(self.flow, lagging, len(asked)))
        flow, cluster = self.flow, self.clients.get(self.flow.source).cluster
        isolation, credentials = flow.source_isolation, self.clients.credentials
        try:
            ages = guarded.each(
                lambda part: oldest_waiting(cluster, credentials, part, AGES_SECONDS, isolation),
                asked,
                AGES_SECONDS,
            )
        except ReportError as error:
            self._failed(error)
            return {}
        self.findings.extend(lag_findings.unreadable_records(flow, cluster, asked, ages.failed))
        return ages.answers

    def _recreated(self) -> tuple[frozenset[str], set[str]]:
        """Source topics with another id, and those with another one on either side."""
        flow, source, ids = self.flow, self.observed.source, self.manifests["topics"]
        reset = topic_identity.changed_ids(ids.get("source", {}), source)
        target_reset = topic_identity.changed_ids(ids.get("target", {}), self.observed.target)
        cluster = self.clients.get(flow.source).cluster
        self.findings.extend(topic_identity.recreated_on_target(flow, target_reset, cluster))
        copied = {name for name in source.topics if flow.target_topic(name) in target_reset}
        return frozenset(reset), set(reset) | copied

    def _losses(
        self,
        next_offsets: Mapping[Place, int],
        past: partition_history.FlowHistory,
        rises: Mapping[Place, int],
    ) -> tuple[frozenset[Place], dict[str, Any]]:
        """Partitions truncated now, and all that is known to be lost, which is remembered."""
        flow, observed, baseline = self.flow, self.observed, self.baseline
        source = observed.source
        lost = loss_checks.newly_lost(
            flow, observed, next_offsets, past, baseline=baseline, rises=rises
        )
        truncated = frozenset(
            place
            for place in lost
            if next_offsets[place] < source.topics[place[0]].partitions[place[1]].log_start
        )
        try:
            every = self.store.load("losses")
            before = every.get(flow.name, {})
            losses = loss_checks.with_new(before, lost, source.taken_at_ms, baseline)
            if losses != before:
                self.store.commit("losses", {**every, flow.name: losses})
        except StateError as error:
            self._failed(error)
            losses = loss_checks.with_new({}, lost, source.taken_at_ms, baseline)
        return truncated, losses

    def _status(self) -> FlowStatus:
        flow, status = self.flow, status_of(self.flow, self.observed)
        if flow.engine.has_heartbeats:
            newest = self.clients.get(flow.target).newest_record(flow.target_topic(HEARTBEATS))
            if newest is not None:
                age = max(0.0, (time.time_ns() // 1_000_000 - newest) / 1000)
                return dataclasses.replace(status, heartbeat_age_seconds=age)
        return status

    def _remember(
        self,
        before: int,
        past: partition_history.FlowHistory,
        drained: Mapping[Place, int],
        rows: Sequence[PartitionLag],
    ) -> None:
        flow, source, positions = self.flow, self.observed.source, self.observed.positions
        through = partition_history.ends_of_markers(past, source, positions, drained)
        line = partition_history.new_line(past, source, positions, through, flow.source_isolation)
        topics, days = {*source.topics, *source.errors}, self.history.days
        try:
            self.history.append(
                flow.name,
                line,
                before,
                lambda lines: partition_history.fewer_lines(lines, topics, line["at"], days),
            )
            self.history.append_lags(flow.name, line["at"], lag_over_time.topic_lags(rows))
        except StateError as error:
            self._failed(error)
