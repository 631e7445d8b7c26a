"""Where the copy of a record may lie: between the looks at which it was not there and there.

See :mod:`plan.copies`. Where partitions are kept, a record is copied after the one before it and
before the one after it as well.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, PARTITION
from mirror_report.parity.frames.compare import WHOLE_TOPIC
from mirror_report.parity.state import BEHIND_ALL

# Offsets by look, the oldest look first. ``looks``: of the source committed positions, of the
# target ends; of the source also ``following``, ends taken after these, and ``ends``, those of the
# target's partition of that number.
LOOKS_SCHEMA = (
    "flow string, side string, origin string, partition int, "
    "looks array<bigint>, following array<bigint>, ends array<bigint>"
)
# Source offsets among which the first and the last record that match stand for all that do.
STRETCH = 256


def with_looks(records: DataFrame, looks: DataFrame) -> DataFrame:
    """Say when records were first seen, and where copies of them may lie.

    Places are offsets where partitions are kept, and else looks.

    :param records: both sides, with lanes.
    :param looks: :data:`LOOKS_SCHEMA`; without rows everything was seen at one look.
    :returns: the records with ``look`` (the first one that has the record below its offset), its
        ``place``, and of the source ``born`` (how many looks were over before it was written) and
        where copies of it may lie: from ``lowest`` on, before ``beyond``.
    """
    spread = F.col("lane") == WHOLE_TOPIC
    return (
        records.join(F.broadcast(looks), on=list(PARTITION), how="left")
        .withColumns({"look": _passed("looks"), "born": _passed("following")})
        .withColumns(
            {
                "place": F.when(spread, F.col("look")).otherwise(F.col("offset")),
                "lowest": F.when(spread, F.col("born")).otherwise(
                    F.coalesce(F.get("ends", F.col("born") - 1), F.lit(0))
                ),
                "beyond": F.when(spread, F.col("look") + 1).otherwise(
                    F.coalesce(F.get("ends", F.col("look")), F.lit(BEHIND_ALL))
                ),
            }
        )
        .drop("looks", "following", "ends")
    )


def _passed(name: str) -> Column:
    """How many looks were over before a record came."""
    offsets = F.coalesce(name, F.array().cast("array<bigint>"))
    return F.size(F.filter(offsets, lambda offset: offset <= F.col("offset"))).cast("bigint")


def anchor(matches: Column) -> Column:
    """Where a record that matches lies on both sides (null: none)."""
    alone = (F.col("n_source") == 1) & (F.col("n_target") == 1)
    return F.when(
        matches & alone & (F.col("lane") != WHOLE_TOPIC),
        F.struct(
            F.col("source_at").alias("source"),
            F.col("target_at.offset").alias("target"),
            F.col("target_look").alias("look"),
        ),
    )


def stretch(place: Column) -> Column:
    """The stretch of source offsets that an :func:`anchor` is in."""
    return F.floor(place["source"] / STRETCH)


def by_look(groups: DataFrame) -> DataFrame:
    """Groups of equal records in parts, by the look at which these were first seen.

    Of equal records those count as lost that were seen first.

    :param groups: of equal records; ``looks``: what each look saw first of them, in order.
    :returns: ``lost``, ``optional``, ``foreign``, ``n_older``, ``n_gap``, ``source`` and ``target``
        of each part, with ``look``, ``born``, ``place``, ``lowest`` and ``beyond``; what is counted
        of a group as a whole is in its first part.
    """
    group = Window.partitionBy(*BUCKET, "h1", "h2", "stretch").orderBy("nth")
    so_far = group.rowsBetween(Window.unboundedPreceding, 0)
    whole = (
        "n_source", "n_target", "digested_source", "digested_target", "in_flight", "explained",
        "duplicate", "reordered",
    )  # fmt: skip
    first = F.coalesce("nth", F.lit(0)) == 0
    parts = (
        groups.select("*", F.posexplode_outer("looks").alias("nth", "seen"))
        .withColumn("short", F.sum(F.col("seen.n_below") - F.col("seen.n_target")).over(so_far))
        .withColumn("short", F.greatest(F.max("short").over(so_far), F.lit(0)))
        .withColumn("lost_by", F.least("lost", "short"))
        .withColumn("optional_by", F.least("optional", "lost_by"))
    )
    columns = ("look", "born", "place", "lowest", "beyond", "source_from", "source_to")
    return parts.withColumns(
        {name: F.when(first, F.col(name)).otherwise(0) for name in whole}
        | {
            name: F.col(f"{name}_by") - F.coalesce(F.lag(f"{name}_by").over(group), F.lit(0))
            for name in ("lost", "optional")
        }
        | {"foreign": F.when(F.col("foreign") > 0, F.col("seen.n_target")).otherwise(0)}
        | {name: F.coalesce(f"seen.{name}", F.lit(0)) for name in ("n_older", "n_gap")}
        | {name: F.coalesce(f"seen.{name}", name) for name in ("source", "target")}
        | {name: F.col(f"seen.{name}") for name in columns}
    ).drop("looks", "nth", "seen", "short", "lost_by", "optional_by")


def between_neighbours(parts: DataFrame) -> DataFrame:
    """Bring ``lowest`` and ``beyond`` to the copies of the nearest records that match.

    A mirror that was set back copies a record once more, past the copies of those after it. Then
    the look that saw the latter is over before the first one that has the record below. Who repairs
    a loss writes past the copies of those after it, too. So only neighbours count whose copies were
    seen in their order.

    :param parts: :func:`by_look`, with ``first`` and ``last``, the outermost :func:`anchor` of what
        a row stands for, and ``log``, the one of the source that all of it is in.
    """
    both = F.when(F.col("first").isNotNull(), F.array("first", "last"))
    spread = F.col("lane") == WHOLE_TOPIC
    lane = Window.partitionBy("flow", "topic", "lane", "log", F.when(spread, F.col("h1")))
    ways = {
        "before": lane.orderBy(F.coalesce("anchor.source", "source_from")),
        "after": lane.orderBy(F.desc(F.coalesce("anchor.source", "source_to"))),
    }
    lowest = F.when(F.col("before.look") <= F.col("look"), F.col("before.target") + 1)
    beyond = F.when(F.col("look") <= F.col("after.look"), F.col("after.target"))
    return (
        parts.select("*", F.posexplode_outer(both).alias("nth", "anchor"))
        .withColumns(
            {
                name: F.last("anchor", ignorenulls=True).over(
                    way.rowsBetween(Window.unboundedPreceding, -1)
                )
                for name, way in ways.items()
            }
        )
        .filter(F.coalesce("nth", F.lit(0)) == 0)
        .withColumns(
            {
                "lowest": F.greatest("lowest", lowest),
                "beyond": F.least("beyond", beyond),
            }
        )
        .drop("first", "last", "log", "nth", "anchor", "before", "after")
        .drop("source_from", "source_to", "stretch")
    )
