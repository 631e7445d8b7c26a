"""The Spark job of a parity run: read what is new, digest, compare, look closely at what differs.

Only imported when something has to be compared: a run without news costs no JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.errors import ParityError
from mirror_report.parity.frames import align, compare, digest, retention, totals
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import offset_syncs
from mirror_report.parity.plan.ranges import Range
from mirror_report.parity.results import summaries
from mirror_report.parity.results import topics as telling
from mirror_report.parity.spark.deadline import Deadline, OutOfTimeError
from mirror_report.parity.spark.rows import Shelf
from mirror_report.parity.steps import seal
from mirror_report.parity.steps.confirm import Driller
from mirror_report.parity.steps.read import Reader
from mirror_report.parity.steps.scan import Scanner
from mirror_report.parity.steps.standing import Standing
from mirror_report.parity.steps.verify_again import Scrubber
from mirror_report.state.store import anew

if TYPE_CHECKING:
    from mirror_report.parity.run import Run

COLUMNS = f"{digest.SCHEMA}; {compare.RESULTS_SCHEMA}"


class Job:
    """The part of a run that has a session."""

    def __init__(self, run: Run, session: SparkSession) -> None:
        self.run = run
        self.session = session
        self.shelf = Shelf(session, run.directory, run.memory, run.request.run_id)
        self.deadline = deadline = Deadline(run.settings.budget.deadline_seconds, run.started)
        self.reader = Reader(run, session, self.shelf, deadline)
        self.standing = Standing(run, session)
        self.driller = Driller(run, session, self.shelf, self.reader, deadline)
        self.scrubber = Scrubber(run, session, self.shelf, self.reader, deadline)

    def read(self, wanted: list[Range]) -> None:
        """Digest what is new, after leaving out what no longer counts.

        :raises ParityError: the rows of earlier runs are of another layout, or damaged.
        """
        memory = self.run.memory
        if not memory.baselines.keys() - {one.flow for one in self.run.drops if one.side is None}:
            memory.digests, memory.sealed, memory.results = [], [], None
        if memory.named() and memory.columns != COLUMNS:
            where = self.run.request.store.directory
            raise ParityError(
                "the parity state was written by another release, which keeps other columns. "
                f"Install that one, or start anew: {anew(where)}"
            )
        self.shelf.check()
        memory.columns = COLUMNS
        if self.run.drops and memory.named():
            self._drop()
        self.reader.read(wanted)

    def scan(self) -> None:
        """Compare the compacted topics that are due, if there is time."""
        run = self.run
        if not run.scans or self.deadline.over():
            return
        try:
            scanner = Scanner(run, self.session, self.reader.around, self.deadline)
            scanner.scan(run.scans, self.driller.sandwich)
        except OutOfTimeError:
            run.progress("deadline reached: compacted topics wait for the next run")
            return
        run.commit()

    def _drop(self) -> None:
        """Leave out rows that no longer describe what is there."""
        run = self.run
        rows, sealed, results = self.shelf.digests(), self.shelf.sealed(), self.shelf.results()
        for drop in run.drops:
            of_drop = F.col("flow") == drop.flow
            if drop.side is None:
                results = results.filter(~of_drop)
            else:
                of_drop &= (F.col("side") == drop.side) & (F.col("origin") == drop.origin)
            rows, sealed = rows.filter(~of_drop), sealed.filter(~of_drop)
        for flow, topic in run.reopened:
            of_topic = (F.col("flow") == flow) & (F.col("topic") == topic)
            results, sealed = results.filter(~of_topic), sealed.filter(~of_topic)
        run.memory.digests = [self.shelf.write(rows.coalesce(1), "digest-kept")]
        if run.memory.sealed:
            run.memory.sealed = [self.shelf.write(sealed.coalesce(1), "sealed-kept")]
        run.memory.results = self.shelf.write(results.coalesce(1), "results-kept")

    def judge(self) -> None:
        """Compare all digests, drill where they differ, and take over what was found."""
        run, memory = self.run, self.run.memory
        run.progress("comparing digests")
        digests, buckets = self._buckets()
        if self.scrubber.scrub(buckets, digests):
            buckets.unpersist()
            digests, buckets = self._buckets()
        topics = table(self.session, compare.TOPICS_SCHEMA, self.standing.topic_rows())
        old = self.shelf.results()
        run_id = run.request.run_id
        judged = compare.judge(buckets, topics, old, run_id, memory.untold).persist()
        self._watch(digests, judged)
        results, samples = self.driller.drill(judged, digests, old)
        final = judged
        if results is not None:
            final = compare.judge(buckets, topics, results, run_id, memory.untold).persist()
        rows = summaries.by_topic(totals.summarise(final, run.bucket_ms).collect())
        telling.remember(run, rows, samples)
        memory.open_work = any(row["candidates"] for row in rows)
        run.remember_positions()
        seal.compact(run, self.shelf, digests, final)
        for frame in (final, judged, buckets):
            frame.unpersist()

    def _buckets(self) -> tuple[DataFrame, DataFrame]:
        """All digests with their lanes, and both sides of each bucket next to each other."""
        rows = self.shelf.digests()
        spans = offset_syncs.spans(self.run)
        if spans:
            rows = align.realign(rows, table(self.session, align.SPANS_SCHEMA, spans))
        digests = compare.with_lanes(rows, self.standing.by_partition)
        looks = {look.flow.name: look for look in self.run.looks}
        positions = {one: self.standing.positions(look, looks) for one, look in looks.items()}
        table_of = self.standing.position_table(positions)
        return digests, compare.by_bucket(digests, table_of).persist()

    def _watch(self, digests: DataFrame, judged: DataFrame) -> None:
        """Find out of what went from the target whether it had to; the drill tells of the rest."""
        memory = self.run.memory
        if not memory.removals:
            return
        told = judged.filter("due and unequal").select(*compare.BUCKET)
        rows = digests.join(told, on=list(compare.BUCKET), how="left_anti").select(*digest.COLUMNS)
        both = rows.unionByName(self.shelf.sealed().select(*digest.COLUMNS))
        memory.gone = retention.add(
            memory.gone, retention.judge(self.session, both, memory.removals)
        )
        memory.removals = []
