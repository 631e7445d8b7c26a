"""Keeping the state small: fewer directories, hours in the place of minutes that are closed.

An hour is sealed when each of its minutes is verified and long past. What comes later with its time
makes a new minute, which is compared by itself: everything sealed lies at lower offsets.

Each run compares all minutes that are not sealed, and a producer chooses the times of its records.
So of each topic only the minutes of its newest hours are left apart, whenever these are, and of
one with many partitions fewer: what a run costs is bounded by what is new, not by how many minutes
there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import HOUR_MS
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, digest, totals
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import Manifest, changes

MAX_DIRECTORIES = 8
SEAL_AFTER_MS = 48 * HOUR_MS
# Hours that hold records, the newest of a topic, whose minutes are left for so long. More than are
# shown (:data:`frames.totals.STRIP_HOURS`).
NEWEST_HOURS = 72
# Digests of a topic's newest minutes, of both sides and all partitions, which are left too: an hour
# of 100 partitions has 12,000. The two newest hours are left in any case.
NEWEST_ROWS = 100_000
LEAST_HOURS = 2
# Minutes that became verified since the last run, beyond which it does not wait for directories.
MANY_MINUTES = 5_000
DAY_MS = 24 * HOUR_MS
ON = ["flow", "topic", "hour"]


def seal(
    context: RunContext,
    storage: RowStorage,
    manifest: Manifest,
    digests: DataFrame,
    statuses: DataFrame,
    *,
    verified: int,
) -> Manifest:
    """Merge what has become many directories; seal what is closed, forget what is too old.

    :param digests: all of them with lanes; ``statuses``: all buckets; ``verified``: how many of
        them are that were not.
    """
    if len(manifest.digests) <= MAX_DIRECTORIES and verified <= MANY_MINUTES:
        return manifest
    hour = align.hour(F.col("bucket")).alias("hour")
    closed = _closed(statuses, digests, hour, context.now_ms).persist()
    names, left = manifest.sealed, digests
    if not closed.isEmpty():
        rows = digests.withColumn("hour", hour)
        hours = (
            rows.join(closed, on=ON, how="left_semi")
            .withColumn("bucket", F.col("hour"))
            .select(*digest.COLUMNS)
        )
        left = rows.join(closed, on=ON, how="left_anti").select(*digest.COLUMNS)
        names = (*names, storage.write(digest.merge(hours).coalesce(1), "sealed"))
        for numbers in _numbers(statuses.withColumn("hour", hour), closed, context.bucket_ms):
            manifest = changes.seal_numbers(manifest, numbers)
    merged = storage.write(digest.merge(left).coalesce(1), "digest-merged")
    closed.unpersist()
    if len(names) > MAX_DIRECTORIES:
        names = (_without_old(context, storage, names),)
    return replace(manifest, digests=(merged,), sealed=names)


def _closed(statuses: DataFrame, digests: DataFrame, hour: Any, now_ms: int) -> DataFrame:
    """Hours of which all is verified, and old or not among the newest: flow, topic, hour."""
    sound = (F.col("status") == "verified") & F.col("equal") & F.col("due")
    newest_first = Window.partitionBy("flow", "topic").orderBy(F.col("hour").desc())
    rows = digests.groupBy("flow", "topic", hour).agg(F.count(F.lit(1)).alias("rows"))
    many = (F.col("rows_from_here") > NEWEST_ROWS) & (F.col("place") > LEAST_HOURS)
    return (
        statuses.groupBy("flow", "topic", hour)
        .agg(
            F.min(F.coalesce(sound, F.lit(False))).alias("sound"),
            F.max("ts_max").alias("newest_ms"),
        )
        .join(rows, on=ON)
        .withColumn("place", F.row_number().over(newest_first))
        .withColumn("rows_from_here", F.sum("rows").over(newest_first))
        .filter(F.col("sound"))
        .filter(
            (F.col("newest_ms") < now_ms - SEAL_AFTER_MS) | (F.col("place") > NEWEST_HOURS) | many
        )
        .select("flow", "topic", "hour")
    )


def _numbers(statuses: DataFrame, closed: DataFrame, bucket_ms: int) -> Sequence[Mapping[str, Any]]:
    """Of each topic that has newly sealed hours: :data:`state.changes.SEALED` and two times."""
    sums = (
        statuses.join(closed, on=ON, how="left_semi")
        .groupBy("flow", "topic")
        .agg(
            F.sum("n_source").alias("source_records"),
            F.sum("n_target").alias("target_records"),
            F.sum("n_source").alias("verified_records"),
            F.count(F.lit(1)).alias("buckets_verified"),
            F.max(F.expr(totals.through(bucket_ms))).alias("through_ms"),
            F.max("ts_max").alias("newest_ms"),
        )
    )
    return [row.asDict() for row in sums.collect()]


def _without_old(context: RunContext, storage: RowStorage, names: Sequence[str]) -> str:
    """Name of the rows of sealed hours that are not too old to be kept."""
    oldest = context.now_ms - context.settings.history_days * DAY_MS
    kept = digest.merge(storage.read(names, digest.SCHEMA)).filter(F.col("ts_max") >= oldest)
    return storage.write(kept.coalesce(1), "sealed-merged")
