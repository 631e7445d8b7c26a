"""One parity run: what is new is read once, digested, compared; what differs is looked at closely.

Order of every look: source, positions, target, so that what is below a position must be on the
target. What differs is confirmed with fresh ones in the order positions, target, source, so that a
record that is merely on its way is never called missing, foreign or double.

Nothing is remembered before it is whole: rows are written to a directory of their own, then one
manifest is renamed into place, then what it no longer names is removed.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from mirror_report.checks import content, remedies
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Settings
from mirror_report.model.cluster import ClusterSnapshot, Place, Positions
from mirror_report.model.content import ParityResult
from mirror_report.model.errors import ReportError
from mirror_report.model.findings import Finding
from mirror_report.model.mirror import OffsetSync
from mirror_report.parity import FINGERPRINT_VERSION
from mirror_report.parity.plan import cofed as looking
from mirror_report.parity.plan import offset_syncs, scans, unreadable
from mirror_report.parity.plan import topics as planning
from mirror_report.parity.plan.cofed import Look
from mirror_report.parity.plan.ranges import Range, feeder, guest, within_budget
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.results import summaries
from mirror_report.parity.results import topics as telling
from mirror_report.parity.spark import class_archive
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.state.manifest import Memory, Removal, basis
from mirror_report.state import baselines
from mirror_report.state.store import StateError, Store

if TYPE_CHECKING:
    from mirror_report.parity.spark.session import OpenSession

Progress = Callable[[str], None]

MANIFEST = "parity"
SCRUB_IDLE_MS = 86_400_000
"""Nothing new for so long: Spark is started all the same, to read again what was verified."""


class TakeSnapshots(Protocol):
    """Fresh looks at the clusters of a flow; each raises a ReportError if it cannot."""

    def source(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the source."""

    def positions(self, flow: Flow) -> Positions:
        """Take the committed positions."""

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the target."""

    def syncs(
        self, flow: Flow, memory: Mapping[str, Any]
    ) -> tuple[dict[Place, list[OffsetSync]], dict[str, Any]]:
        """Take MirrorMaker 2's offset syncs since an earlier look, and what the next has to know.

        :param memory: what that look returned.
        """

    def timed(self, flow: Flow, topics: Collection[str]) -> set[str]:
        """Those topics of the source known to hold records with timestamps."""


@dataclass(frozen=True)
class ParityRequest:
    """What a run is asked to do, within ``settings.budget``.

    :param flows: names of the flows to compare; ``None``: all. The others still count where they
        feed the same topics.
    """

    settings: Settings
    take: TakeSnapshots
    store: Store
    run_id: str
    flows: tuple[str, ...] | None = None


def run_parity(
    request: ParityRequest, progress: Progress, open_session: OpenSession | None = None
) -> ParityResult:
    """Compare the content of every flow and remember what was found.

    :param progress: told in a line what is being done.
    :param open_session: how to get a Spark session; by default one of our own.
    :raises ReportError: nothing could be compared; what was remembered before still holds.
    """
    return Run(request, progress, open_session).go()


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
        self.now_ms = int(time.time() * 1000)
        self.bucket_ms = self.settings.bucket_seconds * 1000
        store = request.store
        self.memory = Memory.load(
            store.load(MANIFEST), FINGERPRINT_VERSION, self.bucket_ms, store.directory
        )
        self.flows = [
            one for one in self.settings.flows if request.flows is None or one.name in request.flows
        ]
        names = {one.name for one in self.flows}
        self.memory.now_runs(request.run_id, sorted(names), store.was_told)
        self.baselines = store.load("baseline")
        self.directory = store.parity_directory
        self.findings = [one for one in self.memory.news if one.flow in names]
        self.looks: list[Look] = []
        self.drops: list[Drop] = []
        self.reopened: list[tuple[str, str]] = []
        self.backlog: list[Range] = []
        self.braked: dict[str, int] = {}
        self.left_candidates = 0
        self.scans: list[scans.Subject] = []
        self.read_bytes = 0.0
        self.read_records = 0

    def go(self) -> ParityResult:
        """Look at every flow, compare what is new, and tell what is known."""
        self._forget_flows()
        for flow in self.flows:
            self._look_at(flow)
        self._plan()
        self.remember_begin()
        ranges = [one for look in self.looks for one in look.plan.ranges]
        braked = self.braked_topics()
        held = [one for one in ranges if (one.flow, one.topic) in braked]
        free = [one for one in ranges if (one.flow, one.topic) not in braked]
        budget = self.settings.budget
        now, later = within_budget(free, budget.max_bytes, budget.max_records)
        self.backlog = later + held
        self.scans = scans.wanted(self, now)
        needed = self._spark_is_needed(now)
        if needed:
            self._compare(now)
        else:
            self.progress("nothing new on either side: Spark is not started")
            self.remember_positions()
        topics = [telling.tell(self, one) for look in self.looks for one in look.plan.topics]
        # What is said once has been said, unless this run's report is never written.
        for look in self.looks:
            self.memory.finished[look.flow.name] = self.request.run_id
        self.commit()
        for topic in topics:
            flow = self.settings.flow(topic.flow)
            self.findings += content.findings(topic, flow, self.settings.clusters)
        records = sum(one.records for one in self.backlog if (one.flow, one.topic) not in braked)
        if records or self.left_candidates:
            self.findings.append(telling.backlog(self, records))
        return ParityResult(
            topics=topics,
            findings=self.findings,
            backlog_records=sum(one.records for one in self.backlog),
            backlog_bytes=int(sum(one.bytes for one in self.backlog)),
            spark_started=needed,
            seconds=round(time.monotonic() - self.started, 3),
        )

    # -- looking -----------------------------------------------------------------------------

    def say_once(self, finding: Finding) -> None:
        """Say something that no later run will find again."""
        if finding not in self.findings:
            self.findings.append(finding)
            self.memory.news.append(finding)

    def _forget_flows(self) -> None:
        """Drop what rests on another baseline than the present one, or on no flow at all."""
        flows = {flow.name: flow for flow in self.settings.flows}
        for name in sorted(self.memory.baselines):
            baseline = self.baselines.get(name) or {}
            if name not in flows or self.memory.baselines[name] != basis(flows[name], baseline):
                self.memory.forget(name)
                self.memory.baselines.pop(name)
                self.drops.append(Drop(name))
        for name in sorted(self.memory.baselines):
            self._forget_renewed(flows, flows[name])

    def _forget_renewed(self, flows: Mapping[str, Flow], flow: Flow) -> None:
        """Drop topics whose baseline is another because a further flow has come to feed them."""
        known = self.memory.topic_baselines.get(flow.name, {})
        recorded = (self.baselines.get(flow.name) or {}).get("topics", {})
        for name, at_ms in sorted(known.items()):
            if name not in recorded or recorded[name]["recorded_at_ms"] == at_ms:
                continue
            topic = flow.target_topic(name)
            for owner in {one for one, side, origin in self.memory.sides
                          if side == "target" and origin == topic}:  # fmt: skip
                if flows[owner].target == flow.target:
                    self._leave(owner, topic)
                    self.reopened.append((owner, topic))
            self.say_once(telling.renewed(flow, topic))

    def _look_at(self, flow: Flow) -> None:
        take = self.request.take
        try:
            baselines.check(flow.name, self.baselines.get(flow.name) or {})
            source = take.source(flow)
            positions = take.positions(flow)
            if planning.of_present_topics(positions, source) != positions:
                # A mirror at work is ahead of the first look, but not of one that comes after it.
                positions = planning.of_present_topics(positions, take.source(flow))
            look = Look(flow, positions, source, take.target(flow))
        except ReportError as error:
            # The report of this run tells nothing of the flow.
            self.memory.untold[flow.name].remove(self.request.run_id)
            self.findings.append(
                Finding(
                    "unknown", "parity_unavailable", flow.name, None, None, None,
                    f"content of flow {flow.name} was not compared: {error}",
                    remedies.renew(flow) if isinstance(error, StateError)
                    else "See the finding about the cluster",
                )
            )  # fmt: skip
            return
        self.looks.append(look)
        baseline = self.baselines.get(flow.name) or {}
        behind = planning.behind(flow, baseline, positions, source)
        bound = self.settings.budget.max_lag_records
        if bound is not None and behind > bound:
            self.braked[flow.name] = behind
            self.findings.append(telling.braked(flow, behind, bound))

    def _plan(self) -> None:
        shares = looking.shares(self.settings.flows, self.looks, self.memory)
        for look in self.looks:
            share = shares[look.flow.name]
            guests = {
                topic: [
                    planning.feed_of(
                        other.flow, name, self.baselines.get(other.flow.name) or {}, other.source,
                        guest(other.flow.name, name),
                    )
                    for other, name in some
                ]
                for topic, some in share.guests.items()
            }  # fmt: skip
            baseline = self.baselines.get(look.flow.name) or {}
            self._look_for_timestamps(look)
            aligned = offset_syncs.align(
                self, look.flow, baseline, look.source, look.positions, look.target
            )
            look.plan = planning.plan_flow(
                look.flow, self.memory, baseline, look.source, look.target,
                guests=guests, elsewhere=share.elsewhere, doubtful=share.doubtful,
            )  # fmt: skip
            offset_syncs.cap(self, aligned, look.plan, look.source, look.target)
        for flow, topic in looking.misplaced(self.looks, self.memory):
            self._leave(flow, topic)
        for look in self.looks:
            self._take_up(look)
        memory = self.memory
        memory.unreadable = unreadable.still_there(memory.unreadable, self.looks, self.drops)
        self.leave_unknown(unreadable.full(memory.unreadable))

    def leave_unknown(self, topics: Mapping[unreadable.Topic, str]) -> None:
        """Leave topics alone in this run.

        :param topics: why nothing can be said of each.
        """
        for look in self.looks:
            plan = look.plan
            plan.topics = [
                replace(one, unknown=one.unknown or topics.get((one.flow, one.topic)))
                for one in plan.topics
            ]
            plan.ranges = [one for one in plan.ranges if (one.flow, one.topic) not in topics]

    def topic_id(self, one: Range) -> str:
        """Id of the topic a range is in, as it was looked at first; empty if it was not there."""
        via, name = feeder(one.flow, one.origin)
        look = next(each for each in self.looks if each.flow.name == via)
        topic = (look.source if one.side == "source" else look.target).topics.get(name)
        return topic.topic_id if topic else ""

    def _look_for_timestamps(self, look: Look) -> None:
        """Ask whether topics that were known without timestamps have some by now."""
        flow, memory = look.flow, self.memory
        untimed = [
            origin for origin in look.source.topics
            if memory.may_have_timestamps(flow.name, flow.target_topic(origin))
        ]  # fmt: skip
        if not untimed:
            return
        # Without an answer they stay what they were.
        with contextlib.suppress(ReportError):
            for origin in self.request.take.timed(flow, untimed):
                memory.now_timed(flow.name, flow.target_topic(origin))

    def _leave(self, flow: str, topic: str) -> None:
        """Drop a topic that another flow judges from now on."""
        target = {one.name: one for one in self.settings.flows}
        origins = [
            origin for owner, side, origin in self.memory.sides
            if (owner, side) == (flow, "source")
            and _leads_to(target, *feeder(owner, origin)) == topic
        ]  # fmt: skip
        self.memory.forget_topic(flow, topic, origins)
        self.drops += [Drop(flow, "source", one) for one in origins]
        self.drops.append(Drop(flow, "target", topic))

    def _take_up(self, look: Look) -> None:
        plan, memory = look.plan, self.memory
        self.drops += plan.drops
        for one in plan.reopened:
            self.say_once(summaries.reopened_finding(one))
            memory.forget_numbers(one.flow, one.topic)
            self.reopened.append((one.flow, one.topic))
        for gap in plan.gaps:
            if gap.end > gap.start:
                self.say_once(summaries.gap_finding(gap))
        memory.gaps += plan.gaps
        reopened = {(one.flow, one.topic) for one in plan.reopened}
        memory.removals += [
            part
            for one in plan.removals
            if (one.flow, one.topic) not in reopened
            for part in unreadable.digested(one, memory.unreadable)
        ]
        for gone in plan.departed:
            self.say_once(telling.departed(gone))
            memory.forget_topic(gone.flow, gone.topic, gone.origins)
            self.reopened.append((gone.flow, gone.topic))

    def _spark_is_needed(self, ranges: list[Range]) -> bool:
        memory = self.memory
        if ranges or self.scans or memory.open_work or self.drops:
            return True
        known = {look.flow.name: memory.summaries.get(look.flow.name, {}) for look in self.looks}
        in_flight = any(
            one.get("buckets_in_flight") for topics in known.values() for one in topics.values()
        )
        for look in self.looks:
            before = memory.positions.get(look.flow.name, {})
            if in_flight and before != self._relevant(look):
                return True
            if look.plan.gaps and known[look.flow.name]:
                return True
        if any(self._may_be_early(one) for one in memory.removals):
            return True
        scrubbed = self.settings.budget.scrub_bytes and memory.digests
        return bool(scrubbed) and self.now_ms - memory.scrubbed_at_ms > SCRUB_IDLE_MS

    def _may_be_early(self, one: Removal) -> bool:
        """Whether something went that retention had not to remove, as far as is known by now."""
        said = self.memory.summaries.get(one.flow, {}).get(one.topic, {}).get("now", {})
        newest = said.get("newest_due_ms")
        return newest is None or newest > one.kept_from_ms

    # -- comparing ---------------------------------------------------------------------------

    def _compare(self, ranges: list[Range]) -> None:
        # The only place that needs Spark: a run without news starts none.
        from mirror_report.parity.spark import session as sessions  # noqa: PLC0415
        from mirror_report.parity.steps.job import Job  # noqa: PLC0415

        scanned = [each for one in self.scans for each in one.ranges()]
        expected = sum(one.bytes for one in (*ranges, *scanned))
        self.progress(
            f"starting Spark for {sum(one.records for one in ranges)} new records "
            f"(about {expected / 1e6:.0f} MB)"
        )
        rows = sum(one.stat().st_size for one in self.directory.rglob("*.parquet"))
        hint = class_archive.hint(self.settings.spark)
        if hint is not None:
            self.progress(hint)
        with (
            # The session first: an error of the JVM can only be read while the JVM lives.
            (self.open_session or sessions.open_session)(
                self.settings.spark, expected + rows
            ) as session,
            spark_errors(),
        ):
            job = Job(self, session)
            job.read(ranges)
            job.judge()
            job.scan()

    def feeders(self, flow: str) -> set[str]:
        """Flows that feed the topics a flow judges; itself among them."""
        plans = [one for look in self.looks for one in look.plan.topics if one.flow == flow]
        return {flow, *(feeder(flow, origin)[0] for one in plans for origin in one.origins)}

    def braked_topics(self) -> set[tuple[str, str]]:
        """Topics left alone because a mirror that feeds them is too far behind."""
        plans = [one for look in self.looks for one in look.plan.topics]
        return {
            (one.flow, one.topic)
            for one in plans
            if any(feeder(one.flow, origin)[0] in self.braked for origin in one.origins)
        }

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

    # -- remembering -------------------------------------------------------------------------

    def remember_positions(self) -> None:
        """Keep the positions that were judged by; those of other topics stay as they were."""
        for look in self.looks:
            self.memory.positions[look.flow.name] = self._relevant(look)

    def _relevant(self, look: Look) -> Positions:
        """Positions to remember: of the topics that are judged in this run those of now."""
        judged = {
            feeder(one.flow, origin)
            for each in self.looks
            for one in each.plan.topics
            for origin in one.origins
            if one.judged
        }
        mine = [name for flow, name in judged if flow == look.flow.name]
        before = self.memory.positions.get(look.flow.name, {})
        there = {name: one for name, one in before.items() if name in look.source.topics}
        return there | {name: dict(look.positions.get(name, {})) for name in mine}

    def remember_read(self, ranges: Iterable[Range]) -> None:
        """Move the memory of how far was read to the end of some ranges."""
        for one in ranges:
            key = (one.flow, one.side, one.origin)
            side = self.memory.sides[key]
            self.memory.sides[key] = replace(side, next={**side.next, one.partition: one.end})

    def remember_begin(self) -> None:
        """Take over ids and log starts as they are now, and what was found to be read anew."""
        for look in self.looks:
            self.memory.sides.update(look.plan.begin)
            baseline = self.baselines.get(look.flow.name) or {}
            self.memory.baselines[look.flow.name] = basis(look.flow, baseline)
            self.memory.topic_baselines[look.flow.name] = {
                name: one["recorded_at_ms"] for name, one in baseline.get("topics", {}).items()
            }

    def commit(self) -> None:
        """Put the memory in place, then remove rows it no longer names."""
        self.request.store.commit(MANIFEST, self.memory.dump())
        named = self.memory.named()
        for run in self.directory.iterdir() if self.directory.is_dir() else ():
            kept = [one for one in run.iterdir() if f"{run.name}/{one.name}" in named]
            for one in run.iterdir():
                if one not in kept:
                    shutil.rmtree(one, ignore_errors=True)
            if not kept:
                shutil.rmtree(run, ignore_errors=True)


def _leads_to(flows: dict[str, Flow], via: str, name: str) -> str | None:
    return flows[via].target_topic(name) if via in flows else None
