"""Source digests against target digests, bucket by bucket; SQL text.

Timestamps choose the bucket, offsets decide: a bucket is *due* when every source record in it lies
below the position the mirror has committed and nothing of the topic is left unread.

A mirror that keeps partitions is compared partition by partition: each is a *lane* of its own. One
that does not has a single lane per topic.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import SIDES
from mirror_report.parity import BUCKET
from mirror_report.parity.frames.digest import LOW_39, SUMS_64, normalise
from mirror_report.parity.frames.sql import derived, named, table

BUCKET_SCHEMA = "flow string, topic string, lane int, bucket bigint"
# The lane of a topic whose partitions the mirror does not keep.
WHOLE_TOPIC = -1
KEEPS_ORDER = f"lane <> {WHOLE_TOPIC}"

# Offsets that decide, per partition. Of the source: ``position``, the next to mirror; ``boundary``,
# below which records are on what was read of the target (null: below ``position``); ``required``,
# below which a record may have been copied before the baseline. Of the target:
# ``first``, the first digested, ``older``, below which records may be copies of what the source had
# lost when it was first read, and ``gap``, likewise of what left the source unread later on. Null:
# there is no such offset. Of both: ``following``, the first that is not digested (null: all are).
POSITIONS_SCHEMA = (
    "flow string, side string, origin string, partition int, position bigint, boundary bigint, "
    "required bigint, first bigint, older bigint, gap bigint, following bigint"
)

_SUMS = tuple(name for name in SUMS_64 if name != "order")
_KINDS = {
    "sum": ("n", "order_weight"),
    "bit_xor": ("x1", "x2"),
    "min": ("off_min",),
    "max": ("off_max",),
}


def some_buckets(session: SparkSession, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """The buckets that some rows are of, to join with: :data:`BUCKET_SCHEMA`, broadcast."""
    names = [{name: row[name] for name in BUCKET} for row in rows]
    return F.broadcast(table(session, BUCKET_SCHEMA, names))


def with_lanes(rows: DataFrame, by_partition: Collection[str]) -> DataFrame:
    """Add a column ``lane``: with which others a digest or record is compared.

    :param rows: anything with flow and partition.
    :param by_partition: flows whose mirror keeps partitions.
    """
    kept = F.col("flow").isin(*by_partition)
    return rows.withColumn(
        "lane", F.when(kept, F.col("partition")).otherwise(F.lit(WHOLE_TOPIC)).cast("int")
    )


def by_bucket(digests: DataFrame, positions: DataFrame) -> DataFrame:
    """Both sides of each bucket next to each other, summed over the partitions of its lane.

    Buckets are equal if they hold the same records and, as far as digests show, in the same
    order: that is known of a partition whose records of the bucket are the same on both sides
    and lie side by side.

    :param digests: both sides, :func:`with_lanes`; those of one key add up.
    :param positions: :data:`POSITIONS_SCHEMA`; partitions without a row have mirrored nothing.
    :returns: flow, topic, lane, bucket, n_source, n_target, replaced (records of the source with
        header keys that are no UTF-8), below (records of the source below the boundary, at most),
        ts_min and ts_max (source), mirrored, within (all of the source is below the boundary),
        equal, disordered (the same records in another order), all_older (of the target, all may be
        copies of what the source had lost when it was first read), pair.
    """
    both = ", ".join(part.format(side) for side in SIDES for part in _parts())
    return _by_lane(_by_partition(digests, positions)).select(
        *BUCKET,
        "n_source",
        "n_target",
        "replaced",
        "below",
        "ts_min",
        "ts_max",
        *named(
            {
                "mirrored": "unmirrored = 0",
                "within": "beyond = 0",
                "equal": f"{_same()} and not disordered",
                "disordered": f"{_same()} and disordered",
                "all_older": "not_older = 0",
                "pair": f"concat_ws('-', hex(xxhash64(1, {both})), hex(xxhash64(2, {both})))",
            }
        ),
    )


def _by_partition(digests: DataFrame, positions: DataFrame) -> DataFrame:
    """Both sides of each partition of a bucket, and whether its records are in another order."""
    sums = {
        "unmirrored": "count_if(side = 'source' and off_max >= coalesce(position, 0))",
        "beyond": "count_if(side = 'source' and off_max >= coalesce(boundary, position, 0))",
        "replaced": f"coalesce(sum({_on('source', 'n_replaced')}), 0L)",
        "below": "coalesce(sum(if(side = 'source', least(n, greatest("
        "coalesce(boundary, position, 0L) - off_min, 0L)), null)), 0L)",
        "not_older": "count_if(side = 'target' and off_max >= coalesce(older, 0))",
        "ts_min": f"min({_on('source', 'ts_min')})",
        "ts_max": f"max({_on('source', 'ts_max')})",
        "one_origin": f"min({_on('source', 'origin')})",
        "other_origin": f"max({_on('source', 'origin')})",
        **{
            f"{name}_{side}": f"coalesce({kind}({_on(side, name)}), 0L)"
            for side in SIDES
            for kind, names in _KINDS.items()
            for name in names
        },
        **{
            f"{name}_{side}_{half}": f"coalesce(sum({_on(side, f'{name}_{half}')}), 0L)"
            for side in SIDES
            for name in SUMS_64
            for half in ("lo", "hi")
        },
    }
    partitions = (
        digests.join(F.broadcast(positions), on=["flow", "side", "origin", "partition"], how="left")
        .groupBy(*BUCKET, "partition")
        .agg(*named(sums))
    )
    disordered = (
        _same(),
        "coalesce(one_origin = other_origin, false)",
        _side_by_side("source"),
        _side_by_side("target"),
        f"{_order('source')} <> {_order('target')}",
    )
    return derived(
        normalise(partitions, _of_sides(SUMS_64)), {"disordered": " and ".join(disordered)}
    )


def _by_lane(partitions: DataFrame) -> DataFrame:
    """Both sides of each bucket, out of :func:`_by_partition`."""
    sums = {
        "unmirrored": "sum(unmirrored)",
        "beyond": "sum(beyond)",
        "replaced": "sum(replaced)",
        "below": "sum(below)",
        "not_older": "sum(not_older)",
        "ts_min": "min(ts_min)",
        "ts_max": "max(ts_max)",
        "disordered": "bool_or(disordered)",
        **{
            f"{name}_{side}": f"{kind}({name}_{side})"
            for side in SIDES
            for name, kind in {"n": "sum", "x1": "bit_xor", "x2": "bit_xor"}.items()
        },
        **{
            f"{name}_{half}": f"sum({name}_{half})"
            for name in _of_sides(_SUMS)
            for half in ("lo", "hi")
        },
    }
    return normalise(partitions.groupBy(*BUCKET).agg(*named(sums)), _of_sides(_SUMS))


def _on(side: str, name: str) -> str:
    return f"if(side = '{side}', {name}, null)"


def _of_sides(names: Collection[str]) -> tuple[str, ...]:
    return tuple(f"{name}_{side}" for side in SIDES for name in names)


def _parts() -> list[str]:
    """Columns that are equal on two sides that hold the same records."""
    return [
        *(f"{name}_{{}}" for name in ("n", "x1", "x2")),
        *(f"{name}_{{}}_{half}" for name in _SUMS for half in ("lo", "hi")),
    ]


def _same() -> str:
    return " and ".join(f"{part.format('source')} = {part.format('target')}" for part in _parts())


def _side_by_side(side: str) -> str:
    """Whether nothing lies between the records."""
    return f"off_max_{side} - off_min_{side} + 1 = n_{side}"


def _order(side: str) -> str:
    """The order digest as if the first record had offset 0, modulo 2**64.

    It is the sum of weight times offset, so it only takes the weights times the first offset away;
    in decimals, because the product may exceed a long.
    """
    high, low, weight = (
        f"cast({name} as decimal(20,0))"
        for name in (f"order_{side}_hi", f"order_{side}_lo", f"order_weight_{side}")
    )
    first = f"cast(off_min_{side} & {LOW_39} as decimal(12,0))"
    moved = f"{high} * cast({2**32} as decimal(10,0)) + {low} - {weight} * {first}"
    return f"pmod({moved}, cast('{2**64}' as decimal(20,0)))"
