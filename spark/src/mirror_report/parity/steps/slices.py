"""Judging buckets that stay open: what is new of them is counted, slice by slice of offsets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, Key, partition_key
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, compare, slices, sql
from mirror_report.parity.plan import (
    FlowSnapshots,
    RunPlan,
    Spent,
    open_buckets,
    positions,
    ranges,
)
from mirror_report.parity.plan.open_buckets import OpenBucket, Slices
from mirror_report.parity.spark.records import OutOfTimeError, Reader, limited
from mirror_report.parity.spark.rows import RowStorage
from mirror_report.parity.state import Manifest, TopicKey
from mirror_report.parity.steps.compare import JudgedBuckets


@dataclass(frozen=True)
class Counted:
    """What was counted.

    :param rows: :data:`frames.slices.SCHEMA`, persisted.
    :param slices: of the topics they are of; ``lost``: topics of which records are lost.
    """

    rows: DataFrame
    slices: tuple[Slices, ...]
    lost: frozenset[TopicKey]


class Counter:
    """Counts slices of open buckets, in one run."""

    def __init__(
        self, context: RunContext, storage: RowStorage, manifest: Manifest, plan: RunPlan
    ) -> None:
        self.context = context
        self.storage = storage
        self.manifest = manifest
        self.plan = plan
        self.spent = plan.spent
        self.reader = Reader(
            context.settings, storage.session, context.progress, manifest.unreadable,
            plan.topic_id,
        )  # fmt: skip

    def count(
        self, late: Mapping[TopicKey, Sequence[OpenBucket]], digests: DataFrame
    ) -> Counted | None:
        """Add what is new of open buckets to what earlier runs have counted of them.

        :param late: :func:`plan.open_buckets.late`.
        :param digests: with lanes.
        :returns: ``None``: nothing could be counted, and the next run begins where this one did.
        """
        chosen = self._affordable(self._slices(late, digests))
        if not chosen:
            return None
        total = ranges.total_records(part for each in chosen for part in each.ranges)
        self.context.progress(f"counting {total} records of minutes that stay open")
        known = self._known(
            _named(some.topic.key, bucket)
            for some in chosen
            for bucket in some.buckets
            if bucket.sliced
        )
        return self._counted(known, chosen)

    def confirm(self, counted: Counted, snapshots: FlowSnapshots) -> Counted | None:
        """Count what came to the target meanwhile where records are lost.

        What lies below a position is on the target below an end that was taken after it; what came
        later is looked at all the same before anything is called lost.

        :param snapshots: fresh ones, of flows that have lost records.
        :returns: without topics that could not be confirmed; ``None``: nothing could be.
        """
        whole = [some for some in counted.slices if some.topic.key not in counted.lost]
        newer = [
            later
            for some in counted.slices
            if some.topic.key in counted.lost and some.topic.flow in snapshots
            if (later := open_buckets.newer(some, snapshots)) is not None
        ]
        rows = _of_topics(counted.rows, [*whole, *newer])
        confirmed = self._counted(rows, newer, whole)
        counted.rows.unpersist()
        return confirmed

    def _counted(
        self, known: DataFrame, some: Sequence[Slices], others: Sequence[Slices] = ()
    ) -> Counted | None:
        """What is known with what some slices add; ``others``: what else is known."""
        try:
            rows, lost = self.reader.read(partial(self._added, known, some))
        except (OutOfTimeError, PySparkException, Py4JError):
            self.context.progress("minutes that stay open could not be counted in this run")
            return None
        done = self.reader.readable([*some, *others], lambda each: each.topic.key)
        return Counted(rows, tuple(done), lost)

    def _added(
        self, known: DataFrame, some: Sequence[Slices]
    ) -> tuple[DataFrame, frozenset[TopicKey]]:
        """All rows by then, persisted, and the topics of which records are lost."""
        wanted = ranges.joined(part for each in some for part in each.ranges)
        bounds = [bound for each in some for bound in each.bounds]
        with limited(self.context, self.storage.session):
            records = compare.with_lanes(
                self.reader.bucketed(wanted, self.manifest.bucket_widths),
                self.context.by_partition,
            )
            new = slices.count(self.storage.session, records, bounds)
            rows = slices.add(known, new).persist()
            lost = slices.found(rows).filter("lost > 0").select("flow", "topic").collect()
        return rows, frozenset((row["flow"], row["topic"]) for row in lost)

    def _slices(
        self, late: Mapping[TopicKey, Sequence[OpenBucket]], digests: DataFrame
    ) -> list[Slices]:
        settings, manifest, plan = self.context.settings, self.manifest, self.plan
        names = [_named(key, bucket) for key, some in late.items() for bucket in some]
        extents = align.extents(self.storage.session, digests, names)
        rows = positions.position_rows(manifest, plan.snapshots, settings.flows, plan.unread)
        at: dict[Key, Mapping[str, Any]] = {
            partition_key(row): row for row in rows if row["side"] == "source"
        }
        found = (
            open_buckets.slices(manifest, plan.snapshots, topic, late[topic.key], at, extents)
            for topic in plan.topics
            if topic.key in late
        )
        return [some for some in found if some.buckets]

    def _affordable(self, found: Sequence[Slices]) -> list[Slices]:
        """Topics as the budget allows: those that wait for the longest time first.

        The first of them may need a budget of its own, but no more: it is read at once.
        """
        chosen: list[Slices] = []
        for some in sorted(found, key=lambda some: min(b.since_ms for b in some.buckets)):
            spent = self.spent if chosen else Spent()
            if not spent.allows(self.context.settings.budget, some.ranges):
                continue
            chosen.append(some)
            self.spent = self.spent.plus(some.ranges)
        return chosen

    def _known(self, sliced: Iterable[Mapping[str, Any]]) -> DataFrame:
        """What earlier runs have counted of some buckets."""
        names = [self.manifest.slices] if self.manifest.slices else []
        chosen = compare.some_buckets(self.storage.session, sliced)
        known = self.storage.read(names, slices.SCHEMA)
        return known.join(chosen, on=list(BUCKET), how="left_semi")

    def keep(
        self, counted: Counted, judged: JudgedBuckets
    ) -> tuple[Manifest, list[dict[str, Any]]]:
        """With what was counted, and what is known now of the buckets that are not due.

        :param judged: :func:`frames.judge.judge`.
        :returns: the manifest, and samples as of :func:`frames.classify.samples`.
        """
        storage, manifest, done = self.storage, self.manifest, counted.slices
        for some in done:
            manifest = open_buckets.with_counted(manifest, some)
        chosen = compare.some_buckets(
            storage.session,
            [_named(s.topic.key, bucket) for s in done for bucket in s.buckets if bucket.below],
        )
        rows = _of_topics(counted.rows, done)
        not_due = rows.join(chosen, on=list(BUCKET), how="left_semi")
        seen = slices.found(not_due)
        found = slices.outcome(judged, seen, self.context.run_id)
        earlier = storage.results(manifest.results).join(seen, on=list(BUCKET), how="left_anti")
        others = self._known(_sliced(manifest, {some.topic.key for some in done}))
        manifest = replace(
            manifest,
            results=storage.write(earlier.unionByName(found).coalesce(1), "results-slices"),
            slices=storage.write(rows.unionByName(others).coalesce(1), "slices"),
        )
        samples = slices.samples(not_due).collect() if counted.lost else []
        counted.rows.unpersist()
        return manifest, [row.asDict() for row in samples]


def _named(topic: TopicKey, bucket: OpenBucket) -> dict[str, Any]:
    return dict(zip(BUCKET, (*topic, bucket.lane, bucket.bucket), strict=True))


def _sliced(manifest: Manifest, without: Collection[TopicKey]) -> list[dict[str, Any]]:
    """Buckets that slices have counted, of all topics but some."""
    return [
        _named((flow, topic), bucket)
        for flow, topics in manifest.open_buckets.items()
        for topic in topics
        if (flow, topic) not in without
        for bucket in open_buckets.of_topic(manifest, (flow, topic)).buckets
        if bucket.sliced
    ]


def _of_topics(rows: DataFrame, some: Sequence[Slices]) -> DataFrame:
    names = [dict(zip(("flow", "topic"), each.topic.key, strict=True)) for each in some]
    topics = F.broadcast(sql.table(rows.sparkSession, "flow string, topic string", names))
    return rows.join(topics, on=["flow", "topic"], how="left_semi")
