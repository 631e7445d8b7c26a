"""Source digests against target digests, bucket by bucket, and what is known of each.

Timestamps choose the bucket, offsets decide: a bucket is *due* when every source record in it lies
below the position the mirror has committed and nothing of the topic is left unread.

A mirror that keeps partitions is compared partition by partition: each is a *lane* of its own. One
that does not has a single lane per topic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import CLASSES
from mirror_report.parity.digest import LOW_39, SUMS_64, normalise
from mirror_report.parity.summary import BY_LANE, LASTING, NEWS

NEAR_MS = 3_600_000
"""How far from what is new leftovers are looked at again."""
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
    f"{BUCKET_SCHEMA}, pair string, run_id string, "
    + ", ".join(f"{name} bigint" for name in (*CLASSES, "in_flight", "halves"))
    + ", "
    + ", ".join(f"new_{name} bigint" for name in NEWS)
)
"""What a drill found in one bucket, valid for one pair of digests. ``halves``: records that were
paired with one that may lie in another bucket; ``new_*``: the part that no report had told of."""

_SUMS = tuple(name for name in SUMS_64 if name != "order")
_SIDES = ("source", "target")
_KNOWN = (*CLASSES, "in_flight", "halves", *(f"new_{name}" for name in NEWS))


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

    Buckets are equal if they hold the same records and, as far as digests can tell, in the same
    order: that can be told of a partition whose records of the bucket are the same on both sides
    and lie side by side.

    :param digests: both sides, :func:`with_lanes`; those of one key add up.
    :param positions: :data:`POSITIONS_SCHEMA`; partitions without a row have mirrored nothing.
    :returns: flow, topic, lane, bucket, n_source, n_target, ts_max (source), mirrored, equal,
        disordered (the same records in another order), pair.
    """
    placed = digests.join(F.broadcast(positions), on=["flow", "origin", "partition"], how="left")
    unmirrored = (F.col("side") == "source") & (
        F.col("off_max") >= F.coalesce(F.col("position"), F.lit(0))
    )
    partitions = placed.groupBy(*BUCKET, "partition").agg(
        F.count_if(unmirrored).alias("unmirrored"),
        F.max(F.when(F.col("side") == "source", F.col("ts_max"))).alias("ts_max"),
        F.min(_on("source", "origin")).alias("one_origin"),
        F.max(_on("source", "origin")).alias("other_origin"),
        *(
            F.coalesce(kind(_on(side, name)), F.lit(0)).cast("bigint").alias(f"{name}_{side}")
            for side in _SIDES
            for kind, names in (
                (F.sum, ("n", "order_weight")),
                (F.bit_xor, ("x1", "x2")),
                (F.min, ("off_min",)),
                (F.max, ("off_max",)),
            )
            for name in names
        ),
        *_halves_of(SUMS_64),
    )
    ordered = normalise(partitions, _of_sides(SUMS_64)).withColumn(
        "disordered",
        _same()
        & F.coalesce(F.col("one_origin") == F.col("other_origin"), F.lit(False))
        & _side_by_side("source")
        & _side_by_side("target")
        & (_order("source") != _order("target")),
    )
    lanes = ordered.groupBy(*BUCKET).agg(
        F.sum("unmirrored").alias("unmirrored"),
        F.max("ts_max").alias("ts_max"),
        F.bool_or("disordered").alias("disordered"),
        *(
            kind(f"{name}_{side}").alias(f"{name}_{side}")
            for side in _SIDES
            for kind, names in ((F.sum, ("n",)), (F.bit_xor, ("x1", "x2")))
            for name in names
        ),
        *(F.sum(name).alias(name) for name in _half_names(_SUMS)),
    )
    lanes = normalise(lanes, _of_sides(_SUMS))
    both = [F.col(part.format(side)) for side in _SIDES for part in _parts()]
    pair = F.concat_ws("-", *(F.hex(F.xxhash64(F.lit(seed), *both)) for seed in (1, 2)))
    return lanes.select(
        *BUCKET,
        "n_source",
        "n_target",
        "ts_max",
        (F.col("unmirrored") == 0).alias("mirrored"),
        (_same() & ~F.col("disordered")).alias("equal"),
        (_same() & F.col("disordered")).alias("disordered"),
        pair.alias("pair"),
    )


def judge(
    buckets: DataFrame,
    topics: DataFrame,
    results: DataFrame,
    run_id: str,
    untold: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> DataFrame:
    """What is known of each bucket.

    :param buckets: :func:`by_bucket`.
    :param topics: :data:`TOPICS_SCHEMA`; buckets of other topics are left out.
    :param results: :data:`RESULTS_SCHEMA`, at most one row per bucket.
    :param run_id: the present run.
    :param untold: flow -> runs whose report nobody got: what they found is news still.
    :returns: the buckets with due, candidate (a drill has to decide, or to decide again, if it is
        settled), settled, status, accountable (the next run will call it verified) and the count
        of each class; of :data:`NEWS` what is told once counts while it is news, and is
        ``accounted_*`` afterwards.
    """
    run = F.col("run_id")
    unread_news = [f"{flow}/{one}" for flow, runs in untold.items() for one in runs]
    old = results.select(
        *BUCKET,
        F.col("pair").alias("known_pair"),
        (run == run_id).alias("this_run"),
        ((run == run_id) | F.concat_ws("/", "flow", run).isin(*unread_news)).alias("news"),
        *_KNOWN,
    )
    known = (
        buckets.join(F.broadcast(topics), on=["flow", "topic"], how="inner")
        .join(old, on=list(BUCKET), how="left")
        .fillna(False, subset=["this_run", "news"])
        .fillna(0, subset=list(_KNOWN))
    )
    skipped = F.col("bucket") <= F.coalesce(F.col("skip_through"), F.lit(-(2**62)))
    nothing_to_compare = ((F.col("n_source") == 0) & (F.col("bucket") <= F.col("source_gap"))) | (
        (F.col("n_target") == 0) & (F.col("bucket") <= F.col("target_gap"))
    )
    settled = F.coalesce(F.col("known_pair") == F.col("pair"), F.lit(False)) & (
        (F.col("in_flight") == 0) | F.col("this_run")
    )
    # While records are unread a difference says nothing; what agrees or was drilled holds.
    decided = ~F.col("unread") | F.col("equal") | settled
    due = ~F.col("skipped") & F.col("mirrored") & decided
    unequal = ~F.col("skipped") & ~F.col("equal")
    blind = unequal & F.col("due") & F.col("nothing_to_compare")
    state = (
        known.withColumn("skipped", skipped)
        .withColumn("nothing_to_compare", F.coalesce(nothing_to_compare, F.lit(False)))
        .withColumn("due", due)
        .withColumn("settled", settled)
        .withColumn("unequal", unequal)
        .withColumn("blind", blind)
        .withColumn("differs", F.col("due") & F.col("unequal") & ~F.col("blind"))
    )
    # What was left over here may be the other half of what is new elsewhere in the topic, and a
    # bucket whose other half is looked at again has to be there.
    topic = Window.partitionBy("flow", "topic")
    fresh = F.when(F.col("differs") & ~F.col("settled"), F.col("bucket"))
    near = F.col("bucket").between(
        F.min(fresh).over(topic) - NEAR_MS, F.max(fresh).over(topic) + NEAR_MS
    )
    open_ended = F.col("missing") + F.col("extra") + F.col("halves") > 0
    state = state.withColumn(
        "candidate",
        F.col("differs") & (~F.col("settled") | (open_ended & F.coalesce(near, F.lit(False)))),
    )
    # An old result holds while its bucket differs: settled, or not due for a new drill.
    carried = F.col("unequal") & ~F.col("blind")
    counted = state.withColumns(
        {name: F.when(carried, F.col(name)).otherwise(0) for name in (*CLASSES, "in_flight")}
        | {
            f"new_{name}": F.when(carried & F.col("news"), F.col(f"new_{name}")).otherwise(0)
            for name in NEWS
        }
    ).withColumn(
        "unverifiable",
        F.when(F.col("blind"), F.abs(F.col("n_source") - F.col("n_target"))).otherwise(
            F.col("unverifiable")
        ),
    )
    accounted = {f"accounted_{name}": _told(name) for name in NEWS}
    current = {name: F.col(name) - F.col(f"accounted_{name}") for name in NEWS}
    told = counted.withColumns(accounted).withColumns(current)
    lasting = total(LASTING) + F.when(_keeps_order(), F.col(BY_LANE)).otherwise(0) > 0
    wrong = total((*LASTING, *NEWS)) > 0
    whole = F.col("due") & (F.col("equal") | F.col("settled")) & (F.col("in_flight") == 0)
    return told.withColumn(
        "status",
        F.when(F.col("skipped"), "skipped")
        .when(wrong, "mismatch")
        .when(F.col("unverifiable") > 0, "unverifiable")
        .when(whole, "verified")
        .otherwise("in_flight"),
    ).withColumn(
        # What the next run will say of the same bucket if nothing changes.
        "accountable",
        (F.col("status") == "mismatch") & ~lasting & (F.col("unverifiable") == 0),
    )


def total(names: Collection[str]) -> Column:
    """Sum of some columns."""
    return sum((F.col(name) for name in names), start=F.lit(0))


def _on(side: str, name: str) -> Column:
    return F.when(F.col("side") == side, F.col(name))


def _half_names(names: Collection[str]) -> list[str]:
    return [f"{name}_{half}" for name in _of_sides(names) for half in ("lo", "hi")]


def _of_sides(names: Collection[str]) -> tuple[str, ...]:
    return tuple(f"{name}_{side}" for side in _SIDES for name in names)


def _halves_of(names: Collection[str]) -> list[Column]:
    return [
        F.coalesce(F.sum(_on(side, f"{name}_{half}")), F.lit(0)).alias(f"{name}_{side}_{half}")
        for side in _SIDES
        for name in names
        for half in ("lo", "hi")
    ]


def _parts() -> list[str]:
    """What two sides that hold the same records agree in."""
    return [
        *(f"{name}_{{}}" for name in ("n", "x1", "x2")),
        *(f"{name}_{{}}_{half}" for name in _SUMS for half in ("lo", "hi")),
    ]


def _same() -> Column:
    same = F.lit(True)
    for part in _parts():
        same = same & (F.col(part.format("source")) == F.col(part.format("target")))
    return same


def _side_by_side(side: str) -> Column:
    """Whether nothing lies between the records."""
    return F.col(f"off_max_{side}") - F.col(f"off_min_{side}") + 1 == F.col(f"n_{side}")


def _order(side: str) -> Column:
    """The order digest as if the first record had offset 0, modulo 2**64.

    It is the sum of weight times offset, so it only takes the weights times the first offset away;
    in decimals, because the product may exceed a long.
    """
    high, low, weight = (
        F.col(f"{name}_{side}{half}").cast("decimal(20,0)")
        for name, half in (("order", "_hi"), ("order", "_lo"), ("order_weight", ""))
    )
    first = F.col(f"off_min_{side}").bitwiseAND(LOW_39).cast("decimal(12,0)")
    moved = high * F.lit(2**32).cast("decimal(10,0)") + low - weight * first
    return F.pmod(moved, F.lit(str(2**64)).cast("decimal(20,0)"))


def _keeps_order() -> Column:
    return F.col("lane") != WHOLE_TOPIC


def _told(name: str) -> Column:
    """How many records of a class an earlier report has told of, for good."""
    known = F.col(name) - F.col(f"new_{name}")
    return F.when(_keeps_order(), 0).otherwise(known) if name == BY_LANE else known
