"""What the buckets of a topic add up to: one row per lane, however much data there is."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import CLASSES
from mirror_report.parity.compare import WHOLE_TOPIC
from mirror_report.parity.summary import (
    ADDED,
    BY_LANE,
    LASTING,
    NEWEST,
    NEWS,
    OLDEST,
    STATUSES,
)

HOUR_MS = 3_600_000
STRIP_HOURS = 48
UNCOMPARED = (*LASTING, "unverifiable", "expired")
"""Classes whose records are not verified although their bucket was compared."""


def summarise(judged: DataFrame, bucket_ms: int) -> DataFrame:
    """Records and buckets of each lane by status, and how far all of its topic is verified.

    :param judged: :func:`mirror_report.parity.compare.judge`.
    :returns: one row per (flow, topic, lane): ``ADDED``, ``NEWEST`` and ``OLDEST`` of
        :mod:`mirror_report.parity.summary`, and ``hours``, the newest :data:`STRIP_HOURS` hours of
        the topic that hold records: struct of the hour's start in milliseconds, its worst status
        and the one the next run will see, both as indexes of ``STATUSES`` there.
    """
    # A drill that only met records newer than the digests has decided nothing yet.
    undecided = F.col("settled") & (F.col("status") == "in_flight")
    due = F.col("due") & ~undecided
    bad = due & (F.col("status") != "verified")
    bad_next = bad & ~F.col("accountable")
    topic = Window.partitionBy("flow", "topic")
    ranked = judged.withColumns(
        {
            "first_bad": F.min(F.when(bad, F.col("bucket"))).over(topic),
            "first_bad_next": F.min(F.when(bad_next, F.col("bucket"))).over(topic),
            "hour": F.col("bucket") - F.pmod(F.col("bucket"), F.lit(HOUR_MS)),
        }
    )
    good = (F.col("status") == "verified") & _before("first_bad")
    good_next = ((F.col("status") == "verified") | F.col("accountable")) & _before("first_bad_next")
    out_of_order = F.when(F.col("lane") == WHOLE_TOPIC, 0).otherwise(F.col(BY_LANE))
    uncompared = sum((F.col(name) for name in UNCOMPARED), start=out_of_order)
    compared = F.greatest(F.col("n_source") - uncompared, F.lit(0))
    open_mismatch = (F.col("status") == "mismatch") & ~F.col("settled")
    settled_mismatch = (F.col("status") == "mismatch") & F.col("settled")
    end = F.col("bucket") + F.lit(bucket_ms)
    by_hour = ranked.groupBy("flow", "topic", "lane", "hour").agg(
        F.sum("n_source").alias("source_records"),
        F.sum("n_target").alias("target_records"),
        _records((F.col("status") == "verified") | settled_mismatch, compared).alias(
            "verified_records"
        ),
        F.sum(
            F.when(F.col("status") == "in_flight", F.col("n_source"))
            .when(open_mismatch, compared)
            .otherwise(0)
        ).alias("in_flight_records"),
        _records(F.col("status") == "skipped", F.col("n_source")).alias("skipped_records"),
        *(F.sum(name).alias(name) for name in (*CLASSES, *(f"accounted_{one}" for one in NEWS))),
        *(F.count_if(F.col("status") == name).alias(f"buckets_{name}") for name in STATUSES),
        F.count_if("accountable").alias("buckets_accountable"),
        F.count_if("candidate").alias("candidates"),
        F.max(F.when(due, F.coalesce("ts_max", F.col("bucket")))).alias("newest_due_ms"),
        F.max(F.when(good, end)).alias("verified_through_ms"),
        F.max(F.when(good_next, end)).alias("verified_through_next_ms"),
        F.min(
            F.when((F.col("status") == "in_flight") & (F.col("n_source") > 0), F.col("bucket"))
        ).alias("in_flight_since_ms"),
        F.max(_severity()).alias("worst"),
        F.max(F.when(F.col("accountable"), 0).otherwise(_severity())).alias("worst_next"),
    )
    newest = F.dense_rank().over(topic.orderBy(F.desc("hour"))) <= STRIP_HOURS
    shown = F.when(F.col("newest"), F.struct("hour", "worst", "worst_next"))
    return (
        by_hour.withColumn("newest", newest)
        .groupBy("flow", "topic", "lane")
        .agg(
            *(F.sum(name).alias(name) for name in ADDED),
            *(F.max(name).alias(name) for name in NEWEST),
            *(F.min(name).alias(name) for name in OLDEST),
            F.sort_array(F.collect_list(shown)).alias("hours"),
        )
    )


def _records(where: Column, count: Column) -> Column:
    return F.sum(F.when(where, count).otherwise(0))


def _severity() -> Column:
    return F.array_position(F.array(*map(F.lit, STATUSES)), F.col("status")).cast("int") - 1


def _before(first_bad: str) -> Column:
    return F.col(first_bad).isNull() | (F.col("bucket") < F.col(first_bad))
