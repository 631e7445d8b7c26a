"""Keeping the state small: fewer directories, hours in the place of minutes that are closed.

An hour is sealed when each of its minutes is verified and long past. What comes later with its time
makes a new minute, which is judged by itself: everything sealed lies at lower offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames import digest
from mirror_report.parity.spark.rows import Shelf

if TYPE_CHECKING:
    from mirror_report.parity.run import Run

MAX_DIRECTORIES = 8
HOUR_MS = 3_600_000
SEAL_AFTER_MS = 48 * HOUR_MS
DAY_MS = 24 * HOUR_MS
NUMBERS = ("source_records", "target_records", "verified_records", "buckets_verified")
"""Numbers of a topic that sealed hours add to."""


def compact(run: Run, shelf: Shelf, digests: DataFrame, final: DataFrame) -> None:
    """Merge what has become many directories; seal what is closed, forget what is too old.

    :param digests: all of them with lanes; ``final``: all buckets as judged.
    """
    memory = run.memory
    if len(memory.digests) <= MAX_DIRECTORIES:
        return
    hour = (F.col("bucket") - F.pmod("bucket", F.lit(HOUR_MS))).alias("hour")
    sound = (F.col("status") == "verified") & F.col("equal") & F.col("due")
    old = F.col("ts_max") < run.now_ms - SEAL_AFTER_MS
    closed = (
        final.groupBy("flow", "topic", hour)
        .agg(F.min(F.coalesce(sound & old, F.lit(False))).alias("closed"))
        .filter("closed")
        .select("flow", "topic", "hour")
        .persist()
    )
    rows = digests.withColumn("hour", hour)
    on = ["flow", "topic", "hour"]
    if closed.isEmpty():
        memory.digests = [shelf.write(digest.merge(digests).coalesce(1), "digest-merged")]
    else:
        numbers = (
            final.withColumn("hour", hour)
            .join(F.broadcast(closed), on=on, how="left_semi")
            .groupBy("flow", "topic")
            .agg(
                F.sum("n_source").alias("source_records"),
                F.sum("n_target").alias("target_records"),
                F.sum("n_source").alias("verified_records"),
                F.count(F.lit(1)).alias("buckets_verified"),
                F.max(F.col("bucket") + run.bucket_ms).alias("through_ms"),
                F.max("ts_max").alias("newest_ms"),
            )
            .collect()
        )
        sealed = rows.join(F.broadcast(closed), on=on, how="left_semi")
        sealed = digest.merge(sealed.withColumn("bucket", F.col("hour")).select(*digest.COLUMNS))
        left = rows.join(F.broadcast(closed), on=on, how="left_anti").select(*digest.COLUMNS)
        memory.sealed.append(shelf.write(sealed.coalesce(1), "sealed"))
        memory.digests = [shelf.write(digest.merge(left).coalesce(1), "digest-merged")]
        for row in numbers:
            _seal_numbers(run, row.asDict())
    closed.unpersist()
    if len(memory.sealed) > MAX_DIRECTORIES:
        kept = digest.merge(shelf.sealed()).filter(
            F.col("ts_max") >= run.now_ms - run.settings.history_days * DAY_MS
        )
        memory.sealed = [shelf.write(kept.coalesce(1), "sealed-merged")]


def _seal_numbers(run: Run, row: dict[str, Any]) -> None:
    """Move numbers of a topic from what is judged in every run to what is sealed."""
    flow, topic = row["flow"], row["topic"]
    total = run.memory.totals.setdefault(flow, {}).setdefault(topic, {})
    for name in NUMBERS:
        total[name] = total.get(name, 0) + row[name]
    for name in ("through_ms", "newest_ms"):
        total[name] = max(total.get(name, row[name]), row[name])
    summary = run.memory.summaries[flow][topic]
    for kind in ("now", "next"):
        for name in NUMBERS:
            summary[kind][name] -= row[name]
