"""One parity run: what is new is read once, digested, compared; what differs is looked at closely.

Order of every look: source, positions, target, so that what is below a position must be on the
target. What differs is confirmed with fresh ones in the order positions, target, source, so that a
record that is merely on its way is never called missing, foreign or double.

Nothing is remembered before it is whole: rows are written to a directory of their own, then one
manifest is renamed into place, then what it no longer names is removed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mirror_report.checks import content
from mirror_report.config import Flow, Settings
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    ParityResult,
    Positions,
    ReportError,
)
from mirror_report.parity import FINGERPRINT_VERSION, archives, scans, summary, telling
from mirror_report.parity import plan as planning
from mirror_report.parity.errors import spark_errors
from mirror_report.parity.memory import Memory, basis
from mirror_report.parity.plan import FlowPlan
from mirror_report.parity.ranges import Range, feeder, within_budget
from mirror_report.state.store import Store

if TYPE_CHECKING:
    from mirror_report.parity.session import OpenSession

Progress = Callable[[str], None]

MANIFEST = "parity"


class TakeSnapshots(Protocol):
    """Fresh looks at the clusters of a flow; each raises a ReportError if it cannot."""

    def source(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the source."""

    def positions(self, flow: Flow) -> Positions:
        """Take the committed positions."""

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the target."""


@dataclass(frozen=True)
class ParityRequest:
    """What a run is asked to do, within ``settings.budget``."""

    settings: Settings
    take: TakeSnapshots
    store: Store
    run_id: str


def run_parity(
    request: ParityRequest, progress: Progress, open_session: OpenSession | None = None
) -> ParityResult:
    """Compare the content of every flow and remember what was found.

    :param progress: told in a line what is being done.
    :param open_session: how to get a Spark session; by default one of our own.
    :raises ParityError: nothing could be compared; what was remembered before still holds.
    """
    return Run(request, progress, open_session).go()


@dataclass
class Look:
    """One flow in this run."""

    flow: Flow
    plan: FlowPlan
    positions: Positions
    source: ClusterSnapshot
    target: ClusterSnapshot


class Run:
    """One run: what it was asked, what it remembers, and what it has found so far."""

    def __init__(
        self, request: ParityRequest, progress: Progress, open_session: OpenSession | None
    ) -> None:
        self.request = request
        self.settings = request.settings
        self.progress = progress
        self.open_session = open_session
        self.started = time.monotonic()
        self.bucket_ms = self.settings.bucket_seconds * 1000
        self.memory = Memory.load(request.store.load(MANIFEST), FINGERPRINT_VERSION, self.bucket_ms)
        self.memory.now_runs(request.run_id, request.store.was_told)
        self.baselines = request.store.load("baseline")
        self.directory = request.store.parity_directory
        self.findings: list[Finding] = []
        self.looks: list[Look] = []
        self.drops: list[planning.Drop] = []
        self.backlog: list[Range] = []
        self.braked: dict[str, int] = {}
        self.left_candidates = 0
        self.scans: list[scans.Subject] = []
        self.read_bytes = 0.0
        self.read_records = 0

    def go(self) -> ParityResult:
        """Look at every flow, compare what is new, and tell what is known."""
        for flow in self.settings.flows:
            self._look_at(flow)
        ranges = [one for look in self.looks for one in look.plan.ranges]
        budget = self.settings.budget
        free = [one for one in ranges if one.flow not in self.braked]
        now, later = within_budget(free, budget.max_bytes, budget.max_records)
        self.backlog = later + [one for one in ranges if one.flow in self.braked]
        self.scans = scans.wanted(self, now)
        needed = self._spark_is_needed(now)
        if needed:
            self._compare(now)
        else:
            self.progress("nothing new on either side: Spark is not started")
            self.remember_positions()
            self._commit()
        topics = [telling.tell(self, one) for look in self.looks for one in look.plan.topics]
        for topic in topics:
            flow = self.settings.flow(topic.flow)
            self.findings += content.findings(topic, flow, self.settings.clusters)
        records = sum(one.records for one in self.backlog)
        if records or self.left_candidates:
            self.findings.append(telling.backlog(self, records))
        return ParityResult(
            topics=topics,
            findings=self.findings,
            backlog_records=records,
            backlog_bytes=int(sum(one.bytes for one in self.backlog)),
            spark_started=needed,
            seconds=round(time.monotonic() - self.started, 3),
        )

    # -- looking -----------------------------------------------------------------------------

    def _look_at(self, flow: Flow) -> None:
        baseline = self.baselines.get(flow.name) or {}
        rests_on = basis(flow, baseline)
        if self.memory.baselines.get(flow.name, rests_on) != rests_on:
            self.memory.forget(flow.name)
            self.drops.append(planning.Drop(flow.name))
        self.memory.baselines[flow.name] = rests_on
        try:
            source = self.request.take.source(flow)
            positions = self.request.take.positions(flow)
            target = self.request.take.target(flow)
        except ReportError as error:
            self.findings.append(
                Finding(
                    "unknown", "parity_unavailable", flow.name, None, None, None,
                    f"content of flow {flow.name} was not compared: {error}",
                    "See the finding about the cluster",
                )
            )  # fmt: skip
            return
        plan = planning.plan_flow(flow, self.memory, baseline, source, target)
        judged = {one.topic for one in plan.topics if one.judged}
        plan.ranges = [one for one in plan.ranges if one.topic in judged]
        self.drops += plan.drops
        self.looks.append(Look(flow, plan, positions, source, target))
        behind = planning.behind(flow, baseline, positions, source)
        bound = self.settings.budget.max_lag_records
        if bound is not None and behind > bound:
            self.braked[flow.name] = behind
            self.findings.append(telling.braked(flow, behind, bound))
        for one in plan.reopened:
            self.findings.append(summary.reopened_finding(one))
        for gap in plan.gaps:
            if gap.end > gap.start:
                self.findings.append(summary.gap_finding(gap))
        self.memory.gaps += plan.gaps
        for drop in plan.drops:
            for topic in {one.topic for one in plan.reopened if one.origin == drop.origin}:
                self.memory.summaries.get(flow.name, {}).pop(topic, None)

    def _spark_is_needed(self, ranges: list[Range]) -> bool:
        if ranges or self.scans or self.memory.open_work or self.drops:
            return True
        for look in self.looks:
            known = self.memory.summaries.get(look.flow.name, {})
            moved = self.memory.positions.get(look.flow.name) != _relevant(look)
            if moved and any(one.get("buckets_in_flight") for one in known.values()):
                return True
            if look.plan.gaps and known:
                return True
        return False

    # -- comparing ---------------------------------------------------------------------------

    def _compare(self, ranges: list[Range]) -> None:
        # The only place that needs Spark: a run without news starts none.
        from mirror_report.parity import session as sessions  # noqa: PLC0415
        from mirror_report.parity.job import Job  # noqa: PLC0415

        scanned = [each for one in self.scans for each in one.ranges()]
        expected = sum(one.bytes for one in (*ranges, *scanned))
        small = expected < sessions.SMALL_BYTES
        self.progress(
            f"starting Spark for {sum(one.records for one in ranges)} new records "
            f"(about {expected / 1e6:.0f} MB)"
        )
        hint = archives.hint(self.settings.spark)
        if hint is not None:
            self.progress(hint)
        with (
            # The session first: an error of the JVM can only be read while the JVM lives.
            (self.open_session or sessions.open_session)(self.settings.spark, small) as session,
            spark_errors(),
        ):
            job = Job(self, session)
            job.read(ranges)
            job.judge()
            job.scan()

    def remember_positions(self) -> None:
        """Keep the positions that were judged by."""
        for look in self.looks:
            self.memory.positions[look.flow.name] = _relevant(look)

    def remember_read(self, ranges: Iterable[Range]) -> None:
        """Move the memory of how far was read to the end of some ranges."""
        for one in ranges:
            key = (one.flow, one.side, one.origin)
            side = self.memory.sides[key]
            self.memory.sides[key] = replace(side, next={**side.next, one.partition: one.end})

    def feeders(self, flow: str) -> set[str]:
        """Flows that feed the topics a flow judges; itself among them."""
        plans = [one for look in self.looks for one in look.plan.topics if one.flow == flow]
        return {feeder(flow, origin)[0] for one in plans for origin in one.origins}

    def braked_topics(self) -> set[tuple[str, str]]:
        """Topics left alone because their mirror is too far behind."""
        plans = [one for look in self.looks for one in look.plan.topics]
        return {(one.flow, one.topic) for one in plans if one.flow in self.braked}

    def spend(self, ranges: Iterable[Range]) -> None:
        """Count what is read against the budget."""
        for one in ranges:
            self.read_bytes += one.bytes
            self.read_records += one.records

    def affords(self, ranges: Sequence[Range]) -> bool:
        """Whether so much more may be read in this run."""
        budget = self.settings.budget
        return (
            budget.max_bytes is None
            or self.read_bytes + sum(one.bytes for one in ranges) <= budget.max_bytes
        ) and (
            budget.max_records is None
            or self.read_records + sum(one.records for one in ranges) <= budget.max_records
        )

    def _commit(self) -> None:
        for look in self.looks:
            for key, side in look.plan.begin.items():
                self.memory.sides.setdefault(key, side)
        self.request.store.commit(MANIFEST, self.memory.dump())

    def commit(self) -> None:
        """Put the memory in place, then remove rows it no longer names."""
        self._commit()
        named = {*self.memory.digests, self.memory.results}
        for run in self.directory.iterdir() if self.directory.is_dir() else ():
            kept = [one for one in run.iterdir() if f"{run.name}/{one.name}" in named]
            for one in run.iterdir():
                if one not in kept:
                    shutil.rmtree(one, ignore_errors=True)
            if not kept:
                shutil.rmtree(run, ignore_errors=True)


def _relevant(look: Look) -> Positions:
    return {
        topic: dict(parts) for topic, parts in look.positions.items() if topic in look.source.topics
    }
