"""Comparing digests: both sides of each bucket, and what is known of it."""

from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from mirror_report.parity import BUCKET
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, compare, digest, retention, sql, status
from mirror_report.parity.plan import RunPlan, buckets, positions
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import Gone, Manifest

# Buckets as :func:`frames.status.statuses` returns them.
BucketStatuses: TypeAlias = DataFrame


@dataclass(frozen=True)
class Compared:
    """Digests with their lanes, and both sides of each bucket (:func:`frames.compare.by_bucket`).

    Buckets are persisted.
    """

    digests: DataFrame
    buckets: DataFrame


def compare_digests(
    context: RunContext, storage: RowStorage, manifest: Manifest, plan: RunPlan
) -> Compared:
    """Hold both sides of each bucket against each other."""
    rows = storage.digests(manifest)
    if spans := buckets.spans(manifest, plan.topics):
        rows = align.realign(rows, sql.table(storage.session, align.SPANS_SCHEMA, spans))
    digests = compare.with_lanes(rows, context.by_partition)
    position_rows = positions.position_rows(
        manifest, plan.snapshots, context.settings.flows, plan.unread
    )
    committed = sql.table(storage.session, compare.POSITIONS_SCHEMA, position_rows)
    return Compared(digests, compare.by_bucket(digests, committed).persist())


def statuses(
    context: RunContext,
    storage: RowStorage,
    manifest: Manifest,
    plan: RunPlan,
    compared: Compared,
) -> BucketStatuses:
    """The status of each bucket, persisted (:func:`frames.status.statuses`)."""
    rows = positions.topic_rows(manifest, plan)
    return status.statuses(
        compared.buckets, sql.table(storage.session, status.TOPICS_SCHEMA, rows),
        storage.results(manifest.results), context.run_id, manifest.unreported,
        gaps=any(row["target_left"] for row in rows),
    ).persist()  # fmt: skip


def removed_records(
    storage: RowStorage, manifest: Manifest, compared: Compared, statuses: BucketStatuses
) -> tuple[Gone, ...]:
    """Records that left the target, with those that had to; others are in buckets that differ."""
    if not manifest.removals:
        return manifest.gone
    rows = compared.digests.join(
        statuses.filter("due and unequal").select(*BUCKET), on=list(BUCKET), how="left_anti"
    )
    both = rows.select(*digest.COLUMNS).unionByName(
        storage.sealed(manifest).select(*digest.COLUMNS)
    )
    return retention.add(
        manifest.gone, retention.gone_records(storage.session, both, manifest.removals)
    )
