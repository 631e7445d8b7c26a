"""Classifying what differs: its records are read again, and each gets its class.

Before that it is confirmed: fresh snapshots say where its records lie.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, BY_LANE, LASTING, bucket_key
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, classify, compare, digest, reach, sql
from mirror_report.parity.frames.leftovers import leftovers
from mirror_report.parity.plan import (
    CHUNK_BYTES,
    Differences,
    FlowSnapshots,
    Range,
    Rows,
    RunPlan,
    buckets,
    copies,
    positions,
    ranges,
)
from mirror_report.parity.spark.records import OutOfTimeError, Reader, limited
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import Manifest, TopicKey

# Buckets read again in one run; the oldest of them first.
MAX_CANDIDATES = 2_000


# A bucket as it was before, and its row of :data:`frames.status.RESULTS_SCHEMA` now.
Again = tuple[Mapping[str, Any], Mapping[str, Any]]


def differing(statuses: DataFrame) -> tuple[Rows, int]:
    """Buckets to read again, and how many unclassified ones are left for a later run.

    :param statuses: :func:`frames.status.statuses`.
    """
    candidates = statuses.filter("candidate")
    # While a backlog is read, most buckets only wait for the rest of their source.
    waiting = F.col("n_target") >= F.col("n_source")
    chosen = candidates.orderBy("settled", waiting, "bucket").limit(MAX_CANDIDATES + 1)
    rows = [row.asDict() for row in chosen.collect()]
    if len(rows) <= MAX_CANDIDATES:
        return rows, 0
    rows = rows[:MAX_CANDIDATES]
    return rows, candidates.filter("not settled").count() - _unsettled(rows)


def _unsettled(rows: Rows) -> int:
    return sum(not row["settled"] for row in rows)


def confirm(
    storage: RowStorage,
    manifest: Manifest,
    plan: RunPlan,
    snapshots: FlowSnapshots,
    digests: DataFrame,
    rows: Rows,
) -> tuple[Differences, Rows]:
    """Buckets of the flows that were observed again, the oldest first, and what to read of them.

    :param snapshots: fresh ones.
    :param digests: with lanes.
    :param rows: :func:`differing`.
    """
    observed = sorted(
        (row for row in rows if row["flow"] in snapshots), key=lambda row: row["bucket"]
    )
    extents = align.extents(storage.session, digests, observed)
    differences = Differences(manifest, plan.topics, snapshots, extents, plan.unread)
    return differences, differences.readable(observed)


def earlier_results(
    storage: RowStorage, manifest: Manifest, plan: RunPlan, statuses: DataFrame
) -> DataFrame:
    """Results of earlier runs without those of buckets that agree by now: these are history."""
    old = storage.results(manifest.results)
    still = statuses.filter(~F.col("equal")).select(*BUCKET)
    topics = sql.table(
        storage.session, "flow string, topic string",
        [{"flow": topic.flow, "topic": topic.topic} for topic in plan.compared],
    )  # fmt: skip
    return old.join(still, on=list(BUCKET), how="left_semi").unionByName(
        old.join(F.broadcast(topics), on=["flow", "topic"], how="left_anti")
    )


class Classifier:
    """Classifies buckets that differ, in one run.

    ``spent``: what the run has read by now. ``looks``: numbers of those that losses rest on, by
    topic (:func:`plan.copies.need`). ``again``: buckets that were known to have lost records, as
    they were before and as found now.

    :param differences: where their records lie now.
    """

    def __init__(
        self, context: RunContext, storage: RowStorage, plan: RunPlan, differences: Differences
    ) -> None:
        self.context = context
        self.storage = storage
        self.differences = differences
        self.spent = plan.spent
        self.looks: dict[TopicKey, set[int]] = {}
        self.again: list[Again] = []
        self.reader = Reader(
            context.settings, storage.session, context.progress, differences.manifest.unreadable,
            plan.topic_id,
        )  # fmt: skip

    def classify(self, rows: Rows, earlier: DataFrame) -> tuple[str, list[dict[str, Any]], int]:
        """Classify the records of some buckets.

        :param earlier: :func:`earlier_results`.
        :returns: name of the results of all runs, rows of :func:`frames.classify.samples`, and how
            many unclassified buckets wait for a later run.
        """
        budget = self.context.settings.budget
        done: list[Any] = []
        samples: list[dict[str, Any]] = []
        frames: list[DataFrame] = []
        for number, batch in enumerate(self._batches(rows)):
            allowed = self.spent.allows(budget, self.differences.digested(batch))
            if number and (self.context.time_is_over() or not allowed):
                break
            try:
                name, new_samples = self.reader.read(
                    partial(self._classified, batch, f"drilled-{number}")
                )
            except OutOfTimeError:
                break
            frames.append(self.storage.results(name))
            samples += new_samples
            done += self.reader.readable(batch)
            self.again += self._again(self.reader.readable(batch), name)
        chosen = compare.some_buckets(self.storage.session, done)
        kept = earlier.join(chosen, on=list(BUCKET), how="left_anti")
        results = self.storage.write(digest.union([kept, *frames]).coalesce(1), "results")
        return results, samples, _unsettled(rows) - _unsettled(done)

    def _batches(self, rows: Rows) -> list[Rows]:
        """Buckets to read together: neighbours, and first those that are not classified yet."""
        batches: list[list[Any]] = []
        size = 0.0
        for row in self._affordable(rows):
            more = ranges.total_bytes(self.differences.digested([row]))
            if not batches or size + more > CHUNK_BYTES:
                batches.append([])
                size = 0.0
            batches[-1].append(row)
            size += more
        return sorted(batches, key=lambda batch: not _unsettled(batch))

    def _affordable(self, rows: Rows) -> Rows:
        """As many buckets as the budget allows, at least one; what is settled is left first."""
        chosen: list[Any] = []
        spent = self.spent
        for row in sorted(rows, key=lambda row: row["settled"]):
            more = self.differences.digested([row])
            if chosen and not spent.allows(self.context.settings.budget, more):
                break
            chosen.append(row)
            spent = spent.plus(more)
        return sorted(chosen, key=lambda row: row["bucket"])

    def _classified(self, batch: Rows, name: str) -> tuple[str, list[dict[str, Any]]]:
        """Name of the results of some buckets, and samples."""
        with limited(self.context, self.storage.session):
            rows = self.reader.readable(batch)
            candidates, left = self._left_over(rows)
            left.persist()
            try:
                outcome = classify.outcome(left, candidates, self.context.run_id)
                known_as = self.storage.write(outcome, name)
                for row in classify.looks_of_losses(left).collect():
                    needed = self.looks.setdefault((row["flow"], row["topic"]), set())
                    needed |= set(row["looks"])
                return known_as, [row.asDict() for row in classify.samples(left).collect()]
            finally:
                left.unpersist()

    def _again(self, rows: Rows, name: str) -> list[Again]:
        """Buckets that were known to have lost records, with what was found of them now.

        :param name: of the results.
        """
        lossy = [row for row in rows if any(row[kind] for kind in (*LASTING, BY_LANE))]
        if not lossy:
            return []
        chosen = compare.some_buckets(self.storage.session, lossy)
        joined = self.storage.results(name).join(chosen, on=list(BUCKET), how="left_semi")
        now = {bucket_key(row.asDict()): row.asDict() for row in joined.collect()}
        return [(row, now[bucket_key(row)]) for row in lossy if bucket_key(row) in now]

    def _left_over(self, rows: Rows) -> tuple[DataFrame, DataFrame]:
        """Candidates of :mod:`frames.classify`, and what is left over of their records."""
        session, newer = self.storage.session, self.differences.newer(rows)
        parts = ranges.joined([*self.differences.digested(rows), *newer.ranges])
        sought = self.differences.sought(rows)
        self.spent = self.spent.plus([*parts, *sought])
        count = ranges.total_records([*parts, *sought])
        self.context.progress(f"classifying {count} records one by one")
        extents = [extent for row in rows for extent in self.differences.extents[bucket_key(row)]]
        records = align.bounded(session, self._records(parts), extents, newer.following)
        if sought:
            records = records.unionByName(self._records(sought))
        hidden = self.differences.hidden(rows, newer.starts, self.reader.unread.records)
        candidates = sql.table(
            session, classify.CANDIDATES_SCHEMA,
            [{**classify.candidate(row), **more} for row, more in zip(rows, hidden, strict=True)],
        )  # fmt: skip
        committed = sql.table(session, compare.POSITIONS_SCHEMA, positions.position_rows(
            self.differences.manifest, self.differences.snapshots, self.context.settings.flows,
            self.differences.unread,
        ))  # fmt: skip
        return candidates, leftovers(records, candidates, committed, self._looks(rows))

    def _looks(self, rows: Rows) -> DataFrame:
        """Looks at the topics of some buckets."""
        touched = {(row["flow"], row["topic"]) for row in rows}
        topics = (topic for topic in self.differences.topics if topic.key in touched)
        looks = copies.rows(self.differences.manifest, topics)
        return sql.table(self.storage.session, reach.LOOKS_SCHEMA, looks)

    def _records(self, parts: Sequence[Range]) -> DataFrame:
        manifest = self.differences.manifest
        spans = buckets.spans(manifest, self.differences.topics, parts)
        records = self.reader.bucketed(parts, manifest.bucket_widths, spans)
        return compare.with_lanes(records, self.context.by_partition)
