"""Confirming what differs: which buckets are read again, and where their records lie."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, Key, bucket_key
from mirror_report.parity.frames import compare
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import Differences, FlowSnapshots, Rows, RunPlan
from mirror_report.parity.spark.rows import RowStorage
from mirror_report.parity.state import Manifest

MAX_CANDIDATES = 2_000
"""Buckets read again in one run; the oldest of them first."""


def differing(judged: DataFrame) -> tuple[Rows, int]:
    """Buckets to read again, and how many are left for a later run.

    :param judged: :func:`frames.judge.judge`.
    """
    candidates = judged.filter("candidate")
    chosen = candidates.orderBy("settled", "bucket").limit(MAX_CANDIDATES + 1)
    rows = [row.asDict() for row in chosen.collect()]
    if len(rows) <= MAX_CANDIDATES:
        return rows, 0
    return rows[:MAX_CANDIDATES], candidates.count() - MAX_CANDIDATES


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
    there = sorted((row for row in rows if row["flow"] in snapshots), key=lambda row: row["bucket"])
    extents = _extents(storage, digests, there)
    found = Differences(manifest, plan.topics, snapshots, extents)
    return found, found.readable(there)


def _extents(
    storage: RowStorage, digests: DataFrame, rows: Rows
) -> Mapping[Key, Sequence[Mapping[str, Any]]]:
    """Bucket -> where its digested records lie."""
    found: dict[Key, list[Mapping[str, Any]]] = {bucket_key(row): [] for row in rows}
    chosen = table(
        storage.session, compare.BUCKET_SCHEMA,
        [{name: row[name] for name in BUCKET} for row in rows],
    )  # fmt: skip
    extents = (
        digests.join(F.broadcast(chosen), on=list(BUCKET), how="left_semi")
        .groupBy(*BUCKET, "side", "origin", "partition")
        .agg(F.min("off_min").alias("off_min"), F.max("off_max").alias("off_max"))
    )
    for row in extents.collect():
        found[bucket_key(row.asDict())].append(row.asDict())
    return found
