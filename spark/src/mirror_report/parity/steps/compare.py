"""Comparing digests: both sides of each bucket, and what is known of it."""

from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from mirror_report.parity import BUCKET
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, compare, digest, retention
from mirror_report.parity.frames import judge as judging
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import RunPlan, buckets
from mirror_report.parity.plan.positions import position_rows, topic_rows
from mirror_report.parity.spark.rows import RowStorage
from mirror_report.parity.state import Gone, Manifest

Judged: TypeAlias = DataFrame
"""Buckets as :func:`frames.judge.judge` returns them."""


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
    spans = buckets.spans(manifest, plan.topics)
    if spans:
        rows = align.realign(rows, table(storage.session, align.SPANS_SCHEMA, spans))
    digests = compare.with_lanes(rows, context.by_partition)
    positions = position_rows(manifest, plan.snapshots, context.settings.flows)
    known = table(storage.session, compare.POSITIONS_SCHEMA, positions)
    return Compared(digests, compare.by_bucket(digests, known).persist())


def judge(
    context: RunContext,
    storage: RowStorage,
    manifest: Manifest,
    plan: RunPlan,
    compared: Compared,
) -> Judged:
    """What is known of each bucket, persisted (:func:`frames.judge.judge`)."""
    topics = table(storage.session, judging.TOPICS_SCHEMA, topic_rows(manifest, plan))
    results = storage.results(manifest.results)
    judged = judging.judge(compared.buckets, topics, results, context.run_id, manifest.unreported)
    return judged.persist()


def removed_records(
    storage: RowStorage, manifest: Manifest, compared: Compared, judged: Judged
) -> tuple[Gone, ...]:
    """Which of the records that left the target had to; the rest is in buckets that differ."""
    if not manifest.removals:
        return manifest.gone
    differing = judged.filter("due and unequal").select(*BUCKET)
    rows = compared.digests.join(differing, on=list(BUCKET), how="left_anti")
    both = rows.select(*digest.COLUMNS).unionByName(
        storage.sealed(manifest).select(*digest.COLUMNS)
    )
    found = retention.judge(storage.session, both, manifest.removals)
    return retention.add(manifest.gone, found)
