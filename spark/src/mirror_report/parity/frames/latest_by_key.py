"""Compacted topics: the latest record of each key on both sides; Column functions.

Compaction removes what a newer record of the same key has replaced, on each side at its own pace.
What has to agree is the latest record of each key; a key whose latest record is a tombstone is as
good as absent. Numbers are numbers of keys.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import SIDES
from mirror_report.parity import SAMPLES, WRONG_KEYS
from mirror_report.parity.frames import fingerprint

# A key: its 128-bit hash, in the lane in which its records have an order.
KEY = ("flow", "topic", "lane", "k1", "k2")

# Per partition: offset from which on records count, and next source offset to mirror (source only).
PLACES_SCHEMA = (
    "flow string, side string, origin string, partition int, floor bigint, position bigint"
)

# Of a partition whose records may have no partner because retention removed it: up to which time,
# below which offset it surely did, and from which on it surely did not.
RETAINED_SCHEMA = (
    "flow string, topic string, side string, origin string, partition int, expired_ms bigint, "
    "gone bigint, kept bigint"
)

# Per partition, ends at some earlier moments, the oldest first: of the target; and those that the
# source had afterwards. Copies of what lies beyond these lie beyond those (:mod:`plan.moments`).
ENDS_SCHEMA = (
    "flow string, topic string, side string, origin string, partition int, ends array<bigint>"
)

# Latest records of the source that the target was found to lack.
LOST_SCHEMA = (
    "flow string, topic string, lane int, k1 bigint, k2 bigint, lost_origin string, "
    "lost_partition int, lost_offset bigint"
)


def by_key(records: DataFrame, places: DataFrame) -> DataFrame:
    """The latest record of each key on both sides.

    :param records: :data:`frames.digest.RECORD_COLUMNS`, both sides,
        :func:`frames.align.place`,
        :func:`frames.compare.with_lanes`.
    :param places: :data:`PLACES_SCHEMA`.
    :returns: :data:`KEY`, source and target (structs, null where the key is absent), ambiguous
        (its records lie in several partitions of a side, so none is the latest).
    """
    record = F.struct(
        *("offset", "origin", "partition", "compared_ms", "timestamp_ms", "tombstone"),
        *("value_1", "value_2", "headers_1", "key_length", "value_length", "counts", "below",
          "replaced"),
    )  # fmt: skip
    return hashed(records, places).groupBy(*KEY).agg(
        *(F.max(F.when(F.col("side") == side, record)).alias(side) for side in SIDES),
        is_ambiguous().alias("ambiguous"),
    )  # fmt: skip


def is_ambiguous() -> Column:
    """Whether records of a group lie in several partitions of a side; an aggregate."""
    log = F.struct("origin", "partition")
    spread = F.lit(False)
    for side in SIDES:
        of_side = F.when(F.col("side") == side, log)
        spread = spread | F.coalesce(F.min(of_side) != F.max(of_side), F.lit(False))
    return spread


def hashed(records: DataFrame, places: DataFrame) -> DataFrame:
    """Records by their hashes: whether each counts, and whether it is below the position."""
    plain = with_keys(records).select(
        *KEY,
        "side",
        "origin",
        "partition",
        "offset",
        "compared_ms",
        fingerprint.timestamp_ms().alias("timestamp_ms"),
        F.col("value").isNull().alias("tombstone"),
        F.xxhash64(F.lit(1), F.col("value")).alias("value_1"),
        F.xxhash64(F.lit(2), F.col("value")).alias("value_2"),
        F.xxhash64(F.lit(1), *fingerprint.header_columns()).alias("headers_1"),
        fingerprint.has_replaced_key().alias("replaced"),
        F.expr("length(key)").alias("key_length"),
        F.expr("length(value)").alias("value_length"),
    )
    placed = plain.join(F.broadcast(places), on=["flow", "side", "origin", "partition"], how="left")
    return placed.withColumns(
        {
            "counts": F.col("offset") >= F.coalesce("floor", F.lit(0)),
            "below": F.col("offset") < F.coalesce("position", F.lit(0)),
        }
    )


def with_keys(records: DataFrame) -> DataFrame:
    """Records with :data:`KEY`."""
    return records.withColumns({f"k{seed}": fingerprint.key_hash(seed) for seed in (1, 2)})


def with_history(keys: DataFrame, ends: DataFrame, lost: DataFrame) -> DataFrame:
    """Keys, with what is known of their latest records from earlier comparisons.

    :param keys: with :data:`KEY`, source and target, as of :func:`by_key`.
    :param ends: :data:`ENDS_SCHEMA`; ``lost``: :data:`LOST_SCHEMA`.
    :returns: keys, former (the target had its record before the source had its own, so it is no
        copy of that) and lost (the target was found to lack the record of the source).
    """
    joined = keys.join(F.broadcast(lost), on=list(KEY), how="left")
    for side in SIDES:
        place = {name: f"{side}_{name}" for name in ("origin", "partition")}
        of_side = ends.filter(F.col("side") == side).drop("side")
        of_side = of_side.withColumnsRenamed({**place, "ends": f"{side}_ends"})
        joined = joined.withColumns(
            {column: F.col(f"{side}.{name}") for name, column in place.items()}
        ).join(F.broadcast(of_side), on=["flow", "topic", *place.values()], how="left")
    is_lost = F.lit(True)
    for name in ("origin", "partition", "offset"):
        is_lost = is_lost & (F.col(f"source.{name}") == F.col(f"lost_{name}"))
    former = F.col("target").isNotNull() & (_moments_before("target") < _moments_before("source"))
    return joined.select(
        *keys.columns, former.alias("former"), F.coalesce(is_lost, F.lit(False)).alias("lost")
    )


def _moments_before(side: str) -> Column:
    """How many of the moments found a log that did not reach to a record yet."""
    return F.size(
        F.filter(
            F.coalesce(f"{side}_ends", F.array().cast("array<bigint>")),
            lambda end: end <= F.col(f"{side}.offset"),
        )
    )


def with_class(keys: DataFrame, unreadable: DataFrame | None = None) -> DataFrame:
    """The class of each key, in a column ``class``.

    A key whose latest source record the mirror has not committed yet is in flight. One whose
    tombstone did not arrive is missing as well as one whose value did not, and one of which the
    target has no more than a former record.

    :param keys: :func:`by_key`, :func:`with_history`.
    :param unreadable: :data:`KEY` of records that cannot be read, maybe the latest of their keys.
    """
    return with_unreadable(keys, unreadable).select(
        *KEY, "source", "target", "lost", _class().alias("class")
    )


def with_unreadable(keys: DataFrame, unreadable: DataFrame | None) -> DataFrame:
    """Keys, those among them of which a record cannot be read in a column ``unreadable``."""
    if unreadable is None:
        return keys.withColumn("unreadable", F.lit(False))
    beyond = unreadable.groupBy(*KEY).agg(F.lit(True).alias("unreadable"))
    return keys.join(beyond, on=list(KEY), how="full")


def _class() -> Column:
    on_source = F.col("source").isNotNull()
    live, target_live = is_live("source"), is_live("target")
    counts = F.when(on_source, F.col("source.counts")).otherwise(F.col("target.counts"))
    return (
        F.when(F.col("unreadable"), "unverifiable")
        .when(~counts, "skipped")
        .when(on_source & ~F.col("source.below"), "in_flight")
        .when(~live & ~target_live, "absent")
        .when(F.col("ambiguous"), "unverifiable")
        .when(~target_live, "missing")
        .when(~live, F.when(on_source, "missing").otherwise("extra"))
        .otherwise(difference())
    )


def difference() -> Column:
    """The class of two records that both have a value.

    A mirror never makes a copy that is older than its record. So an older one of equal content is
    a former record of the key, and the newer one is missing; and what was missing is not mended by
    a record of another time.
    """
    is_older = F.col("target.compared_ms") < F.col("source.compared_ms")
    return (
        F.when(_differ("value_1", "value_2"), "corrupt_value")
        .when(_differ("headers_1"), "corrupt_headers")
        .when(F.col("former"), "missing")
        .when(_differ("compared_ms") & (is_older | F.col("lost")), "missing")
        .when(_differ("compared_ms"), "altered_timestamp")
        .when(F.col("source.replaced"), "unverifiable")
        .otherwise("verified")
    )


def is_live(side: str) -> Column:
    """Whether a key has a value."""
    return F.col(side).isNotNull() & ~F.coalesce(F.col(f"{side}.tombstone"), F.lit(True))


def _differ(*names: str) -> Column:
    source, target = (
        F.struct(*(F.col(f"{side}.{name}") for name in names)) for side in ("source", "target")
    )
    return ~source.eqNullSafe(target)


def collapse(classified: DataFrame) -> DataFrame:
    """Keep every key that is wrong, and of all others their number.

    :param classified: :func:`with_class`.
    :returns: flow, topic, lane, class, k1, k2, source, target, lost (null for what is not wrong),
        keys, source_keys and target_keys (those that have a value), repaired (those that were lost
        and are on the target by now), newest_ms (source), source_first and target_first (lowest
        offsets).
    """
    wrong = F.col("class").isin(*WRONG_KEYS)
    kept = ("k1", "k2", "source", "target", "lost")
    return (
        classified.withColumns({f"{name}_wrong": F.when(wrong, F.col(name)) for name in kept})
        .groupBy("flow", "topic", "lane", "class", *(f"{name}_wrong" for name in kept))
        .agg(
            F.count(F.lit(1)).alias("keys"),
            *(
                F.count_if(F.col(side).isNotNull() & ~F.col(f"{side}.tombstone")).alias(
                    f"{side}_keys"
                )
                for side in ("source", "target")
            ),
            F.count_if(F.col("lost") & (F.col("class") == "verified")).alias("repaired"),
            F.max("source.timestamp_ms").alias("newest_ms"),
            *(F.min(f"{side}.offset").alias(f"{side}_first") for side in ("source", "target")),
        )
        .withColumnsRenamed({f"{name}_wrong": name for name in kept})
    )


def with_retention(collapsed: DataFrame, retained: DataFrame) -> DataFrame:
    """Tell keys that lack a side because retention removed it from those that were lost.

    :param collapsed: :func:`collapse`.
    :param retained: :data:`RETAINED_SCHEMA`.
    """
    alone = F.when(
        (F.col("class") == "missing") & F.col("target").isNull(),
        F.struct(F.lit("source").alias("side"), "source.origin", "source.partition",
                 "source.offset", "source.timestamp_ms"),
    ).when(
        (F.col("class") == "extra") & F.col("source").isNull(),
        F.struct(F.lit("target").alias("side"), "target.origin", "target.partition",
                 "target.offset", "target.timestamp_ms"),
    )  # fmt: skip
    where = ("flow", "topic", "side", "origin", "partition")
    rows = collapsed.withColumn("alone", alone).withColumns(
        {name: F.col(f"alone.{name}") for name in where[2:]}
    )
    may_be_gone = (F.col("alone.timestamp_ms") <= F.col("expired_ms")) & (
        F.col("alone.offset") < F.col("kept")
    )
    return (
        rows.join(F.broadcast(retained), on=list(where), how="left")
        .withColumn(
            "class",
            F.when(~F.coalesce(may_be_gone, F.lit(False)), F.col("class"))
            .when(F.col("alone.offset") < F.col("gone"), "expired")
            .otherwise("unverifiable"),
        )
        .select(*collapsed.columns)
    )


def without(collapsed: DataFrame, changed: DataFrame, *, new: bool = False) -> DataFrame:
    """Put keys in flight that have changed since.

    :param collapsed: :func:`collapse`.
    :param changed: :data:`KEY` and side of newer records, with repetitions.
    :param new: of new records (:mod:`frames.new_records`): a key that the target lacks is missing
        however often the source writes it, for what a cleaner removes has a later record there.
    """
    newer = changed.groupBy(*KEY).agg(
        F.lit(True).alias("changed"), F.bool_or(F.col("side") == "target").alias("replaced")
    )
    lacks = F.lit(new) & F.col("target").isNull() & ~F.col("replaced")
    return (
        collapsed.join(newer, on=list(KEY), how="left")
        .withColumn(
            "class", F.when(F.col("changed") & ~lacks, "in_flight").otherwise(F.col("class"))
        )
        .select(*collapsed.columns)
    )


def count(collapsed: DataFrame) -> DataFrame:
    """Numbers of :func:`collapse` by flow, topic, lane and class."""
    return collapsed.groupBy("flow", "topic", "lane", "class").agg(
        *(F.sum(name).alias(name) for name in ("keys", "source_keys", "target_keys", "repaired")),
        F.max("newest_ms").alias("newest_ms"),
        *(F.min(name).alias(name) for name in ("source_first", "target_first")),
    )


def samples(collapsed: DataFrame) -> DataFrame:
    """At most :data:`SAMPLES` keys per flow, topic and class.

    :returns: what :func:`frames.classify.samples` returns.
    """
    shown = ("partition", "offset", "timestamp_ms", "value_1", "value_2", "key_length",
             "value_length")  # fmt: skip
    sides = F.array(
        *(
            F.when(
                F.col(side).isNotNull(),
                F.struct(
                    F.lit(side).alias("side"),
                    *(F.col(f"{side}.{name}").alias(name) for name in shown),
                ),
            )
            for side in ("source", "target")
        )
    )
    order = Window.partitionBy("flow", "topic", "class").orderBy("k1", "k2")
    return (
        collapsed.filter(F.col("class").isin(*WRONG_KEYS))
        .withColumn("rank", F.row_number().over(order))
        .filter(F.col("rank") <= SAMPLES)
        .select("flow", "topic", "class", "k1", F.explode(sides).alias("at"))
        .filter(F.col("at").isNotNull())
        .select(
            *("flow", "topic", "class", "at.side", "at.partition", "at.offset", "at.timestamp_ms"),
            fingerprint.hex64(F.col("k1")).alias("key_hash"),
            F.concat(
                fingerprint.hex64(F.col("at.value_1")), fingerprint.hex64(F.col("at.value_2"))
            ).alias("record_hash"),
            F.col("at.key_length").alias("key_bytes"),
            F.col("at.value_length").alias("value_bytes"),
        )
    )
