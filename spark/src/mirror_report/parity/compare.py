"""Source digests against target digests, bucket by bucket, and what follows for a topic.

Timestamps choose the bucket, offsets decide: a bucket is *due* when every source record in it lies
below the position the mirror has committed and nothing of the topic is left unread.

A mirror that keeps partitions is compared partition by partition: each is a *lane* of its own. One
that does not has a single lane per topic.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.digest import SUMS_64, normalise

BUCKET = ("flow", "topic", "lane", "bucket")
BUCKET_SCHEMA = "flow string, topic string, lane int, bucket bigint"
WHOLE_TOPIC = -1
"""The lane of a topic whose partitions the mirror does not keep."""

POSITIONS_SCHEMA = "flow string, origin string, partition int, position bigint"
"""Next source offset to mirror, per source partition."""

TOPICS_SCHEMA = (
    "flow string, topic string, unread boolean, skip_through bigint, "
    "source_gap bigint, target_gap bigint"
)
"""Topics to judge: whether records are unread, the newest bucket start that straddles the
baseline, and until when records of a side expired before they were read."""

RESULTS_SCHEMA = (
    f"{BUCKET_SCHEMA}, pair string, run_id string, missing bigint, "
    "duplicate bigint, corrupt_value bigint, extra bigint, unverifiable bigint, in_flight bigint, "
    "new_duplicate bigint, new_extra bigint"
)
"""What a drill found in one bucket, valid for one pair of digests; ``new_*`` is the part that
no earlier run had reported."""

_SUMS = tuple(name for name in SUMS_64 if name != "order")
_SIDES = ("source", "target")
_CLASSES = ("missing", "duplicate", "corrupt_value", "extra", "unverifiable", "in_flight")


def with_lanes(rows: DataFrame, by_partition: Collection[str]) -> DataFrame:
    """Say of each digest or record with which others it is compared, in a column ``lane``.

    :param rows: anything with flow and partition.
    :param by_partition: flows whose mirror keeps partitions.
    """
    kept = F.col("flow").isin(*by_partition)
    return rows.withColumn(
        "lane", F.when(kept, F.col("partition")).otherwise(F.lit(WHOLE_TOPIC)).cast("int")
    )


def by_bucket(digests: DataFrame, positions: DataFrame) -> DataFrame:
    """Both sides of each bucket next to each other, summed over the partitions of its lane.

    :param digests: merged digests, both sides, :func:`with_lanes`.
    :param positions: :data:`POSITIONS_SCHEMA`; partitions without a row have mirrored nothing.
    :returns: flow, topic, lane, bucket, n_source, n_target, ts_max (source), mirrored, equal, pair.
    """
    placed = digests.join(F.broadcast(positions), on=["flow", "origin", "partition"], how="left")
    unmirrored = (F.col("side") == "source") & (
        F.col("off_max") >= F.coalesce(F.col("position"), F.lit(0))
    )
    sums = placed.groupBy(*BUCKET).agg(
        F.count_if(unmirrored).alias("unmirrored"),
        F.max(F.when(F.col("side") == "source", F.col("ts_max"))).alias("ts_max"),
        *(
            F.coalesce(kind(_on(side, name)), F.lit(0)).cast("bigint").alias(f"{name}_{side}")
            for side in _SIDES
            for kind, names in ((F.sum, ("n",)), (F.bit_xor, ("x1", "x2")))
            for name in names
        ),
        *(
            F.coalesce(F.sum(_on(side, f"{name}_{half}")), F.lit(0)).alias(f"{name}_{side}_{half}")
            for side in _SIDES
            for name in _SUMS
            for half in ("lo", "hi")
        ),
    )
    sums = normalise(sums, tuple(f"{name}_{side}" for side in _SIDES for name in _SUMS))
    parts = (
        "n_{}",
        "x1_{}",
        "x2_{}",
        *(f"{name}_{{}}_{half}" for name in _SUMS for half in ("lo", "hi")),
    )
    equal = F.lit(True)
    for part in parts:
        equal = equal & (F.col(part.format("source")) == F.col(part.format("target")))
    both = [F.col(part.format(side)) for side in _SIDES for part in parts]
    pair = F.concat_ws("-", *(F.hex(F.xxhash64(F.lit(seed), *both)) for seed in (1, 2)))
    return sums.select(
        *BUCKET,
        "n_source",
        "n_target",
        "ts_max",
        (F.col("unmirrored") == 0).alias("mirrored"),
        equal.alias("equal"),
        pair.alias("pair"),
    )


def judge(buckets: DataFrame, topics: DataFrame, results: DataFrame, run_id: str) -> DataFrame:
    """What is known of each bucket.

    :param buckets: :func:`by_bucket`.
    :param topics: :data:`TOPICS_SCHEMA`; buckets of other topics are left out.
    :param results: :data:`RESULTS_SCHEMA`, at most one row per bucket.
    :param run_id: the present run, the only one whose duplicates and extras are news.
    :returns: the buckets with due, candidate (a drill has to decide), settled, status and the
        counts of each class (``new_duplicate`` and ``new_extra`` beside the totals).
    """
    old = results.select(
        *BUCKET,
        F.col("pair").alias("known_pair"),
        (F.col("run_id") == run_id).alias("this_run"),
        *(F.col(name) for name in (*_CLASSES, "new_duplicate", "new_extra")),
    )
    known = (
        buckets.join(F.broadcast(topics), on=["flow", "topic"], how="inner")
        .join(old, on=list(BUCKET), how="left")
        .fillna(False, subset=["this_run"])
        .fillna(0, subset=[*_CLASSES, "new_duplicate", "new_extra"])
    )
    skipped = F.col("bucket") <= F.coalesce(F.col("skip_through"), F.lit(-(2**62)))
    nothing_to_compare = ((F.col("n_source") == 0) & (F.col("bucket") <= F.col("source_gap"))) | (
        (F.col("n_target") == 0) & (F.col("bucket") <= F.col("target_gap"))
    )
    settled = F.coalesce(F.col("known_pair") == F.col("pair"), F.lit(False)) & (
        (F.col("in_flight") == 0) | F.col("this_run")
    )
    due = ~F.col("skipped") & F.col("mirrored") & ~F.col("unread")
    unequal = ~F.col("skipped") & ~F.col("equal")
    blind = unequal & F.col("due") & F.col("nothing_to_compare")
    state = (
        known.withColumn("skipped", skipped)
        .withColumn("nothing_to_compare", F.coalesce(nothing_to_compare, F.lit(False)))
        .withColumn("due", due)
        .withColumn("settled", settled)
        .withColumn("unequal", unequal)
        .withColumn("blind", blind)
        .withColumn(
            "candidate", F.col("due") & F.col("unequal") & ~F.col("blind") & ~F.col("settled")
        )
    )
    counted = state.withColumns(
        {
            **{name: F.when(_carried(), F.col(name)).otherwise(0) for name in _CLASSES},
            **{
                name: F.when(_carried() & F.col("this_run"), F.col(name)).otherwise(0)
                for name in ("new_duplicate", "new_extra")
            },
        }
    ).withColumn(
        "unverifiable",
        F.when(F.col("blind"), F.abs(F.col("n_source") - F.col("n_target"))).otherwise(
            F.col("unverifiable")
        ),
    )
    wrong = F.col("missing") + F.col("corrupt_value") > 0
    news = F.col("new_duplicate") + F.col("new_extra") > 0
    whole = F.col("due") & (F.col("equal") | F.col("settled")) & (F.col("in_flight") == 0)
    return counted.withColumn(
        "status",
        F.when(F.col("skipped"), "skipped")
        .when(wrong | news, "mismatch")
        .when(F.col("unverifiable") > 0, "unverifiable")
        .when(whole, "verified")
        .otherwise("in_flight"),
    ).withColumn(
        # What the next run will say of the same bucket if nothing changes.
        "accountable",
        (F.col("status") == "mismatch") & ~wrong & (F.col("unverifiable") == 0),
    )


def summarise(judged: DataFrame, bucket_ms: int) -> DataFrame:
    """One row per (flow, topic): records and buckets by status, and how far all is verified.

    :param judged: :func:`judge`.
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
        }
    )
    good = (F.col("status") == "verified") & _before("first_bad")
    good_next = ((F.col("status") == "verified") | F.col("accountable")) & _before("first_bad_next")
    found = F.col("missing") + F.col("corrupt_value")
    compared = F.greatest(F.col("n_source") - found, F.lit(0))
    settled_mismatch = (F.col("status") == "mismatch") & F.col("settled")
    open_mismatch = (F.col("status") == "mismatch") & ~F.col("settled")
    statuses = ("verified", "in_flight", "mismatch", "unverifiable", "skipped")
    end = F.col("bucket") + F.lit(bucket_ms)
    return ranked.groupBy("flow", "topic").agg(
        F.sum("n_source").alias("source_records"),
        F.sum("n_target").alias("target_records"),
        F.sum(
            F.when(F.col("status") == "verified", F.col("n_source"))
            .when(settled_mismatch, compared)
            .otherwise(0)
        ).alias("verified_records"),
        F.sum(
            F.when(F.col("status") == "in_flight", F.col("n_source"))
            .when(open_mismatch, compared)
            .otherwise(0)
        ).alias("in_flight_records"),
        F.sum(F.when(F.col("status") == "skipped", F.col("n_source")).otherwise(0)).alias(
            "skipped_records"
        ),
        *(F.sum(name).alias(name) for name in ("missing", "corrupt_value", "unverifiable")),
        *(F.sum(f"new_{name}").alias(name) for name in ("duplicate", "extra")),
        *(
            F.sum(F.col(name) - F.col(f"new_{name}")).alias(f"accounted_{name}")
            for name in ("duplicate", "extra")
        ),
        *(F.count_if(F.col("status") == name).alias(f"buckets_{name}") for name in statuses),
        F.count_if("accountable").alias("buckets_accountable"),
        F.count_if("candidate").alias("candidates"),
        F.max(F.when(due, F.coalesce("ts_max", F.col("bucket")))).alias("newest_due_ms"),
        F.max(F.when(good, end)).alias("verified_through_ms"),
        F.max(F.when(good_next, end)).alias("verified_through_next_ms"),
    )


def _on(side: str, name: str) -> Column:
    return F.when(F.col("side") == side, F.col(name))


def _carried() -> Column:
    """An old result holds while its bucket differs: settled, or not due for a new drill."""
    return F.col("unequal") & ~F.col("blind")


def _before(first_bad: str) -> Column:
    return F.col(first_bad).isNull() | (F.col("bucket") < F.col(first_bad))
