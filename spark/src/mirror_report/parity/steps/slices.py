"""Counting buckets that stay open: what is new of them, slice by slice of offsets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from mirror_report.parity import BUCKET, Key, bucket_key, partition_key
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, compare, slices, totals
from mirror_report.parity.plan import (
    CHUNK_BYTES,
    FlowSnapshots,
    RunPlan,
    Spent,
    open_buckets,
    open_slices,
    positions,
    ranges,
)
from mirror_report.parity.plan.open_buckets import OpenBucket
from mirror_report.parity.plan.open_slices import Slices
from mirror_report.parity.spark.records import OutOfTimeError, Reader, limited
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import Manifest, TopicKey
from mirror_report.parity.steps.compare import BucketStatuses


@dataclass(frozen=True)
class Counted:
    """Slices that were counted.

    :param rows: :data:`frames.slices.SCHEMA`, persisted.
    :param slices: what they are of; ``lost``: topics of which records are lost, in buckets whose
        sides are both counted up to their ends.
    """

    rows: DataFrame
    slices: tuple[Slices, ...]
    lost: frozenset[TopicKey]


def still_open(
    storage: RowStorage,
    manifest: Manifest,
    statuses: BucketStatuses,
    lanes: Iterable[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Buckets that are not closed: rows of :func:`frames.totals.still_open`.

    :param lanes: rows of :func:`frames.totals.summarise`.
    """
    if not any(lane["n_open"] for lane in lanes):
        return []
    followed = compare.some_buckets(storage.session, _followed(manifest))
    return [row.asDict() for row in totals.still_open(statuses, followed).collect()]


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
        if not any(each.buckets for each in chosen):
            return None
        parts = [part for each in chosen for part in each.ranges]
        total = ranges.total_records(parts)
        self.context.progress(f"counting {total} records of minutes that stay open")
        counted = self._known(
            _named(each.topic.key, bucket)
            for each in chosen
            for bucket in each.buckets
            if bucket.sliced or bucket.begun
        )
        return self._in_parts(counted, chosen, math.ceil(ranges.total_bytes(parts) / CHUNK_BYTES))

    def _in_parts(self, earlier: DataFrame, chosen: Sequence[Slices], parts: int) -> Counted | None:
        """Count slices part by part, for as long as there is time."""
        counted: Counted | None = None
        rest, done = list(chosen), list[Slices]()
        for left in range(max(1, parts), 0, -1):
            pieces = [open_slices.part(each, 1 / left) for each in rest]
            more = self._counted(earlier, [now for now, _ in pieces], done)
            if more is None:
                break
            if counted is not None:
                counted.rows.unpersist()
            counted, earlier = more, more.rows
            done += [now for now, later in pieces if later is None]
            rest = [later for _, later in pieces if later is not None]
            if not rest or self.context.time_is_over():
                break
        return counted

    def confirm(self, counted: Counted, snapshots: FlowSnapshots) -> Counted | None:
        """Count what came to the target meanwhile where records are lost.

        What lies below a position is on the target below an end that was taken after it; what came
        later is counted as well before anything is called lost.

        :param snapshots: fresh ones, of flows that have lost records.
        :returns: without topics that could not be confirmed; ``None``: nothing could be.
        """
        lost = [s for s in counted.slices if s.whole and s.topic.key in counted.lost]
        others = [each for each in counted.slices if each not in lost]
        newer = [
            later
            for each in lost
            if each.topic.flow in snapshots
            if (later := open_slices.newer(each, snapshots)) is not None
        ]
        rows = self._of_slices(counted.rows, [*others, *newer])
        confirmed = self._counted(rows, newer, others)
        counted.rows.unpersist()
        return confirmed

    def _counted(
        self,
        earlier: DataFrame,
        new: Sequence[Slices],
        others: Sequence[Slices] = (),
    ) -> Counted | None:
        """Add some slices to what was counted earlier; ``others``: slices that were counted too."""
        try:
            rows, lost = self.reader.read(partial(self._added, earlier, new))
        except (OutOfTimeError, PySparkException, Py4JError):
            self.context.progress("minutes that stay open could not all be counted in this run")
            return None
        done = self.reader.readable([*new, *others], lambda each: each.topic.key)
        of_whole = frozenset(
            each.topic.key
            for each in done
            if each.whole and any((*each.topic.key, *bucket.key) in lost for bucket in each.buckets)
        )
        return Counted(rows, tuple(done), of_whole)

    def _added(self, earlier: DataFrame, new: Sequence[Slices]) -> tuple[DataFrame, frozenset[Key]]:
        """All rows by then, persisted, and the buckets that the source has more of."""
        parts = ranges.joined(part for each in new for part in each.ranges)
        bounds = [bound for each in new for bound in each.bounds]
        with limited(self.context, self.storage.session):
            records = compare.with_lanes(
                self.reader.bucketed(parts, self.manifest.bucket_widths),
                self.context.by_partition,
            )
            fresh = slices.count(self.storage.session, records, bounds)
            rows = slices.add(earlier, fresh).persist()
            lost = slices.by_bucket(rows).filter("lost > 0").select(*BUCKET).collect()
        return rows, frozenset(bucket_key(row.asDict()) for row in lost)

    def _slices(
        self, late: Mapping[TopicKey, Sequence[OpenBucket]], digests: DataFrame
    ) -> list[Slices]:
        settings, manifest, plan = self.context.settings, self.manifest, self.plan
        names = [_named(key, bucket) for key, each in late.items() for bucket in each]
        extents = align.extents(self.storage.session, digests, names)
        rows = positions.position_rows(manifest, plan.snapshots, settings.flows, plan.unread)
        at: dict[Key, Mapping[str, Any]] = {
            partition_key(row): row for row in rows if row["side"] == "source"
        }
        return [
            each
            for topic in plan.topics
            if topic.key in late
            for each in open_slices.slices(
                manifest, plan.snapshots, topic, late[topic.key], at, extents
            )
        ]

    def _affordable(self, all_slices: Sequence[Slices]) -> list[Slices]:
        """Slices that their own budget allows; those that are behind come last."""
        budget, mine = self.context.settings.budget, Spent()
        chosen: list[Slices] = []
        for each in sorted(all_slices, key=lambda each: (not each.sliced, each.since_ms)):
            share = mine.share_of(budget, each.ranges)
            if share > 0:
                now, _ = open_slices.part(each, share)
                chosen.append(now)
                mine = mine.plus(now.ranges)
                self.spent = self.spent.plus(now.ranges)
        return chosen

    def _known(self, sliced: Iterable[Mapping[str, Any]]) -> DataFrame:
        """Rows that earlier runs have counted of some buckets."""
        names = [self.manifest.slices] if self.manifest.slices else []
        chosen = compare.some_buckets(self.storage.session, sliced)
        counted = self.storage.read(names, slices.SCHEMA)
        return counted.join(chosen, on=list(BUCKET), how="left_semi")

    def keep(
        self, counted: Counted, statuses: BucketStatuses
    ) -> tuple[Manifest, list[dict[str, Any]]]:
        """With what was counted, and what is known now of the buckets that are not due.

        :param statuses: :func:`frames.status.statuses`.
        :returns: the manifest, and samples as of :func:`frames.classify.samples`.
        """
        storage, manifest, done = self.storage, self.manifest, counted.slices
        for each in done:
            manifest = open_slices.with_counted(manifest, each)
        chosen = compare.some_buckets(
            storage.session,
            [_named(each.topic.key, bucket)
             for each in done if each.whole for bucket in each.buckets if bucket.below],
        )  # fmt: skip
        rows = self._of_slices(counted.rows, done)
        not_due = rows.join(chosen, on=list(BUCKET), how="left_semi")
        sliced = slices.by_bucket(not_due)
        results = slices.outcome(statuses, sliced, self.context.run_id)
        earlier = storage.results(manifest.results).join(sliced, on=list(BUCKET), how="left_anti")
        in_this_run = {(*each.topic.key, *bucket.key) for each in done for bucket in each.buckets}
        others = [
            row for row in _followed(manifest, counted=True) if bucket_key(row) not in in_this_run
        ]
        manifest = replace(
            manifest,
            results=storage.write(earlier.unionByName(results).coalesce(1), "results-slices"),
            slices=storage.write(rows.unionByName(self._known(others)).coalesce(1), "slices"),
        )
        samples = slices.samples(not_due).collect() if counted.lost else []
        counted.rows.unpersist()
        return manifest, [row.asDict() for row in samples]

    def _of_slices(self, rows: DataFrame, of_slices: Iterable[Slices]) -> DataFrame:
        named = [_named(each.topic.key, bucket) for each in of_slices for bucket in each.buckets]
        chosen = compare.some_buckets(self.storage.session, named)
        return rows.join(chosen, on=list(BUCKET), how="left_semi")


def _named(topic: TopicKey, bucket: OpenBucket) -> dict[str, Any]:
    return dict(zip(BUCKET, (*topic, *bucket.key), strict=True))


def _followed(manifest: Manifest, *, counted: bool = False) -> list[dict[str, Any]]:
    """Open buckets of all topics.

    :param counted: those alone that slices have counted, or a part of them.
    """
    return [
        _named((flow, topic), bucket)
        for flow, topics in manifest.open_buckets.items()
        for topic in topics
        for bucket in open_buckets.of_topic(manifest, (flow, topic)).buckets
        if bucket.sliced or bucket.begun or not counted
    ]
