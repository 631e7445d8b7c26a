"""The Spark job of a parity run: read what is new, digest, compare, look closely at what differs.

Only imported when something has to be compared: a run without news costs no JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import compare, digest, summary, telling, totals
from mirror_report.parity.deadline import Deadline, OutOfTimeError
from mirror_report.parity.drilling import Driller
from mirror_report.parity.ranges import Range
from mirror_report.parity.reading import Reader
from mirror_report.parity.scanning import Scanner
from mirror_report.parity.session import table
from mirror_report.parity.shelf import Shelf
from mirror_report.parity.standing import Standing

if TYPE_CHECKING:
    from mirror_report.parity.engine import Run

MAX_DIGEST_DIRECTORIES = 8


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

    def read(self, wanted: list[Range]) -> None:
        """Digest what is new, after leaving out what no longer counts."""
        for look in self.run.looks:
            for key, side in look.plan.begin.items():
                self.run.memory.sides[key] = side
        if self.run.drops:
            self._drop()
        self.reader.read(wanted)

    def scan(self) -> None:
        """Compare the compacted topics that are due, if there is time."""
        run = self.run
        if not run.scans or self.deadline.over():
            return
        try:
            with self.deadline.step(self.session):
                Scanner(run, self.session).scan(run.scans, self.driller.sandwich)
        except OutOfTimeError:
            run.progress("deadline reached: compacted topics wait for the next run")
            return
        run.commit()

    def _drop(self) -> None:
        """Leave out digests that no longer describe what is there."""
        run = self.run
        topics = [one for look in run.looks for one in look.plan.reopened]
        flows = [one for one in run.drops if one.side is None]
        rows = self.shelf.digests()
        results = self.shelf.results()
        for drop in run.drops:
            of_drop = F.col("flow") == drop.flow
            if drop.side is not None:
                of_drop &= (F.col("side") == drop.side) & (F.col("origin") == drop.origin)
            rows = rows.filter(~of_drop)
        for flow in flows:
            results = results.filter(F.col("flow") != flow.flow)
        for one in topics:
            results = results.filter(~((F.col("flow") == one.flow) & (F.col("topic") == one.topic)))
        kept = self.shelf.write(rows, "digest-kept")
        run.memory.results = self.shelf.write(results, "results-kept")
        run.memory.digests = [kept]

    def judge(self) -> None:
        """Compare all digests, drill where they differ, and put the result in place."""
        run = self.run
        run.progress("comparing digests")
        rows = self.shelf.digests()
        if len(run.memory.digests) > MAX_DIGEST_DIRECTORIES:
            run.memory.digests = [self.shelf.write(digest.merge(rows).coalesce(1), "digest-merged")]
            rows = self.shelf.digests()
        digests = compare.with_lanes(rows, self.standing.by_partition)
        looks = {look.flow.name: look for look in run.looks}
        positions = {one: self.standing.positions(look, looks) for one, look in looks.items()}
        buckets = compare.by_bucket(digests, self.standing.position_table(positions)).persist()
        topics = table(self.session, compare.TOPICS_SCHEMA, self.standing.topic_rows())
        old = self.shelf.results()
        judged = compare.judge(buckets, topics, old, run.request.run_id, run.memory.untold)
        results, samples = self.driller.drill(judged.persist(), digests, old)
        final = compare.judge(buckets, topics, results, run.request.run_id, run.memory.untold)
        summaries = summary.by_topic(totals.summarise(final, run.bucket_ms).collect())
        telling.remember(run, summaries, samples)
        run.memory.open_work = bool(run.backlog) or bool(
            sum(row["candidates"] for row in summaries)
        )
        run.remember_positions()
        run.commit()
