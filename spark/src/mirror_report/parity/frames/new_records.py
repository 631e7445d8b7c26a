"""New records of compacted topics, between two scans: the latest of each key; Column functions.

The latest record of a key below the committed position has a copy where the target's copies of new
records lie, or the target holds a later one of the key there. A cleaner removes neither.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import SIDES
from mirror_report.parity import WRONG_KEYS
from mirror_report.parity.frames import latest_by_key
from mirror_report.parity.frames.latest_by_key import KEY

# Of one side of a key that was wrong at an earlier look or scan.
RECORD_SCHEMA = (
    "offset bigint, origin string, partition int, compared_ms bigint, timestamp_ms bigint, "
    "tombstone boolean, value_1 bigint, value_2 bigint, headers_1 bigint, key_length int, "
    "value_length int, counts boolean, below boolean, replaced boolean"
)
WRONG_SCHEMA = (
    "flow string, topic string, lane int, k1 bigint, k2 bigint, side string, " + RECORD_SCHEMA
)
RECORD = tuple(column.split()[0] for column in RECORD_SCHEMA.split(", "))
# Topics in whose part of the target that is read no tombstone can have been removed.
TOMBSTONES_SCHEMA = "flow string, topic string, tombstones boolean"
# What is not known of a key: its tombstone may have been removed from the target.
NOT_COMPARED = "not_compared"


def by_key(records: DataFrame, wrong: DataFrame, places: DataFrame) -> DataFrame:
    """The latest record of each key that is new, or was wrong before, on both sides.

    :param records: as :func:`frames.latest_by_key.by_key` takes them, of what is new.
    :param wrong: :data:`WRONG_SCHEMA`, both sides.
    :param places: :data:`frames.latest_by_key.PLACES_SCHEMA`.
    :returns: :data:`KEY`, source (below the position) and target, later (the source holds another
        one that the mirror has not committed), ambiguous (as there).
    """
    columns = (*KEY, "side", *RECORD)
    rows = latest_by_key.hashed(records, places).select(*columns)
    rows = rows.unionByName(wrong.select(*columns))
    on_source, on_target = (F.col("side") == side for side in SIDES)
    record = F.struct(*RECORD)
    return rows.groupBy(*KEY).agg(
        F.max(F.when(on_source & F.col("below"), record)).alias("source"),
        F.max(F.when(on_target, record)).alias("target"),
        F.bool_or(on_source & ~F.col("below")).alias("later"),
        latest_by_key.is_ambiguous().alias("ambiguous"),
    )


def with_class(
    keys: DataFrame, tombstones: DataFrame, unreadable: DataFrame | None = None
) -> DataFrame:
    """The class of each key; those of which the source has nothing new are left out.

    :param keys: :func:`by_key`, :func:`frames.latest_by_key.with_history`.
    :param unreadable: as :func:`frames.latest_by_key.with_class` takes it.
    :param tombstones: :data:`TOMBSTONES_SCHEMA`.
    :returns: what :func:`frames.latest_by_key.with_class` does.
    """
    return (
        latest_by_key.with_unreadable(keys, unreadable)
        .join(F.broadcast(tombstones), on=["flow", "topic"], how="left")
        .select(*KEY, "source", "target", "lost", _class().alias("class"))
        .filter(F.col("class").isNotNull())
    )


def _class() -> Column:
    live, target_live = latest_by_key.is_live("source"), latest_by_key.is_live("target")
    absent = F.col("target").isNull()
    difference = latest_by_key.difference()
    return (
        F.when(F.col("unreadable"), "unverifiable")
        .when(F.col("source").isNull() & F.col("later"), "in_flight")
        .when(F.col("source").isNull(), F.lit(None))
        .when(~F.col("source.counts"), "skipped")
        .when(~live & ~absent & ~target_live, "absent")
        .when(live & target_live & difference.isin("verified", "unverifiable"), difference)
        # What the target holds is a copy of that later one, or will be replaced by one.
        .when(~absent & F.col("later"), "in_flight")
        .when(F.col("ambiguous"), "unverifiable")
        .when(~live & absent & ~F.coalesce("tombstones", F.lit(False)), NOT_COMPARED)
        .when(~live | ~target_live, "missing")
        .otherwise(difference)
    )


def wrong(collapsed: DataFrame, most: int) -> DataFrame:
    """Keys of the source that a later look has to find again, some of them if there are many.

    Those first that changed while they were read: the others are counted by the next scan at last.

    :param collapsed: :func:`frames.latest_by_key.collapse`.
    """
    kept = F.col("k1").isNotNull() & F.col("source").isNotNull()
    return (
        collapsed.filter(kept & F.col("class").isin(*WRONG_KEYS, "in_flight"))
        .select("flow", "topic", "lane", "class", "k1", "k2", "source", "target", "lost")
        .orderBy(F.col("class") != "in_flight")
        .limit(most)
    )
