"""Classifying what differs: its records are read again, and each is said what it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, bucket_key
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import classify, compare, digest
from mirror_report.parity.frames.extents import bounded
from mirror_report.parity.frames.leftovers import leftovers
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import (
    CHUNK_BYTES,
    Differences,
    Range,
    Rows,
    RunPlan,
    Spent,
    Unread,
    buckets,
)
from mirror_report.parity.plan.positions import position_rows
from mirror_report.parity.plan.ranges import joined, total_bytes, total_records
from mirror_report.parity.spark.deadline import OutOfTimeError, limited
from mirror_report.parity.spark.records import Reader
from mirror_report.parity.spark.rows import RowStorage
from mirror_report.parity.state import Manifest, TopicKey


@dataclass(frozen=True)
class Classified:
    """What was found.

    :param results: name of the results of all runs, those of this one among them.
    :param samples: rows of :func:`frames.classify.samples`.
    :param left: buckets that wait for a later run.
    """

    results: str | None
    samples: list[dict[str, Any]] = field(default_factory=list)
    unread: Unread = field(default_factory=Unread)
    spent: Spent = field(default_factory=Spent)
    left: int = 0


def earlier_results(
    storage: RowStorage, manifest: Manifest, plan: RunPlan, judged: DataFrame
) -> DataFrame:
    """Results of earlier runs without those of buckets that agree by now: these are history."""
    old = storage.results(manifest.results)
    still = judged.filter(~F.col("equal")).select(*BUCKET)
    topics = table(
        storage.session, "flow string, topic string",
        [{"flow": topic.flow, "topic": topic.topic} for topic in plan.judged],
    )  # fmt: skip
    return old.join(still, on=list(BUCKET), how="left_semi").unionByName(
        old.join(F.broadcast(topics), on=["flow", "topic"], how="left_anti")
    )


def keep_earlier(storage: RowStorage, manifest: Manifest, earlier: DataFrame) -> str | None:
    """Name of the results when nothing has to be read again."""
    if manifest.results is None:
        return None
    return storage.write(earlier.coalesce(1), "results")


class Classifier:
    """Buckets that differ, in one run.

    :param differences: where their records lie now.
    """

    def __init__(
        self,
        context: RunContext,
        storage: RowStorage,
        manifest: Manifest,
        plan: RunPlan,
        differences: Differences,
    ) -> None:
        self.context = context
        self.storage = storage
        self.manifest = manifest
        self.plan = plan
        self.differences = differences
        self.spent = plan.spent
        self.reader = Reader(
            context.settings, storage.session, context.progress, manifest.unreadable, plan.topic_id
        )

    def classify(self, rows: Rows, earlier: DataFrame) -> Classified:
        """Say of the records of some buckets what they are.

        :param earlier: :func:`earlier_results`.
        """
        storage = self.storage
        done: list[Any] = []
        samples: list[dict[str, Any]] = []
        found: list[DataFrame] = []
        for number, batch in enumerate(self._batches(rows)):
            try:
                name, some = self.reader.read(partial(self._in_time, batch, f"drilled-{number}"))
            except OutOfTimeError:
                break
            found.append(storage.results(name))
            samples += some
            done += self._readable(batch)
        chosen = table(
            storage.session, compare.BUCKET_SCHEMA,
            [{name: row[name] for name in BUCKET} for row in done],
        )  # fmt: skip
        kept = earlier.join(F.broadcast(chosen), on=list(BUCKET), how="left_anti")
        results = storage.write(digest.union([kept, *found]).coalesce(1), "results")
        left = len(rows) - len(done)
        return Classified(results, samples, self.reader.unread, self.spent, left)

    def _batches(self, rows: Rows) -> Iterator[Rows]:
        """Buckets to read together, as long as time and budget last; at least one."""
        batch: list[Any] = []
        wanted: list[Range] = []
        begun = False
        for row in rows:
            more = self.differences.digested([row])
            together = [*wanted, *more]
            if begun and not self.spent.allows(self.context.settings.budget, together):
                break
            if batch and total_bytes(together) > CHUNK_BYTES:
                yield batch
                batch, wanted = [], []
                if self.context.time_is_over():
                    return
            batch.append(row)
            wanted += more
            begun = True
        if batch:
            yield batch

    def _readable(self, batch: Rows) -> Rows:
        """Buckets without those of topics of which nothing can be said."""
        return self.reader.readable(batch, _topic)

    def _in_time(self, batch: Rows, name: str) -> tuple[str, list[dict[str, Any]]]:
        with limited(self.context, self.storage.session):
            return self._classified(self._readable(batch), name)

    def _classified(self, rows: Rows, name: str) -> tuple[str, list[dict[str, Any]]]:
        """Name of the results of some buckets, and samples."""
        session, newer = self.storage.session, self.differences.newer(rows)
        wanted = joined([*self.differences.digested(rows), *newer.ranges])
        sought = self.differences.sought(rows)
        self.spent = self.spent.plus([*wanted, *sought])
        count = total_records([*wanted, *sought])
        self.context.progress(f"classifying {count} records one by one")
        extents = [extent for row in rows for extent in self.differences.extents[bucket_key(row)]]
        records = bounded(session, self._records(wanted), extents, newer.following)
        if sought:
            records = records.unionByName(self._records(sought))
        hidden = self.differences.hidden(rows, newer.starts, self.reader.unread.records)
        candidates = table(
            session, classify.CANDIDATES_SCHEMA,
            [{**classify.candidate(row), **more} for row, more in zip(rows, hidden, strict=True)],
        )  # fmt: skip
        flows = self.context.settings.flows
        positions = position_rows(self.manifest, self.differences.snapshots, flows)
        left = leftovers(
            records, candidates, table(session, compare.POSITIONS_SCHEMA, positions)
        ).persist()
        try:
            outcome = classify.outcome(left, candidates, self.context.run_id)
            known_as = self.storage.write(outcome, name)
            samples = [row.asDict() for row in classify.samples(left).collect()]
        finally:
            left.unpersist()
        return known_as, samples

    def _records(self, wanted: Sequence[Range]) -> DataFrame:
        spans = buckets.spans(self.manifest, self.plan.topics, wanted)
        records = self.reader.bucketed(wanted, self.context.bucket_ms, spans)
        return compare.with_lanes(records, self.context.by_partition)


def _topic(row: Any) -> TopicKey:
    return row["flow"], row["topic"]
