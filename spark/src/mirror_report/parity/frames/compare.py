"""Source digests against target digests, bucket by bucket, and what is known of each.

Timestamps choose the bucket, offsets decide: a bucket is *due* when every source record in it lies
below the position the mirror has committed and nothing of the topic is left unread.

A mirror that keeps partitions is compared partition by partition: each is a *lane* of its own. One
that does not has a single lane per topic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model.content import CLASSES
from mirror_report.parity.frames.digest import LOW_39, SUMS_64, normalise
from mirror_report.parity.frames.sql import derived, named
from mirror_report.parity.results.summaries import BY_LANE, LASTING, NEWS

NEAR_MS = 3_600_000
"""How far from what is new leftovers are looked at again."""
BUCKET = ("flow", "topic", "lane", "bucket")
BUCKET_SCHEMA = "flow string, topic string, lane int, bucket bigint"
WHOLE_TOPIC = -1
"""The lane of a topic whose partitions the mirror does not keep."""
KEEPS_ORDER = f"lane <> {WHOLE_TOPIC}"

POSITIONS_SCHEMA = (
    "flow string, side string, origin string, partition int, position bigint, "
    "required bigint, first bigint, older bigint"
)
"""Offsets that decide, per partition. Of the source: ``position``, the next to mirror, and
``required``, below which a record may have been copied before the baseline. Of the target:
``first``, the first digested, and ``older``, below which records may be copies of what the source
had lost when it was first looked at. Null: there is no such offset."""

TOPICS_SCHEMA = "flow string, topic string, unread boolean, source_gap bigint, target_gap bigint"
"""Topics to judge: whether records are unread, and until when records of a side expired before
they were read."""

BESIDE = ("in_flight", "skipped", "older", "halves")
"""What a drill counts beside the classes. ``skipped``: source records that may have been copied
before the baseline, and were not found; ``older``: target records that may be copies of what the
source had lost when it was first looked at; ``halves``: records that were paired with one that may
lie in another bucket."""

RESULTS_SCHEMA = (
    f"{BUCKET_SCHEMA}, pair string, run_id string, "
    + ", ".join(f"{name} bigint" for name in (*CLASSES, *BESIDE))
    + ", "
    + ", ".join(f"new_{name} bigint" for name in NEWS)
)
"""What a drill found in one bucket, valid for one pair of digests. ``new_*``: the part that no
report had told of."""

_SUMS = tuple(name for name in SUMS_64 if name != "order")
_SIDES = ("source", "target")
_KINDS = {
    "sum": ("n", "order_weight"),
    "bit_xor": ("x1", "x2"),
    "min": ("off_min",),
    "max": ("off_max",),
}
_KNOWN = (*CLASSES, *BESIDE, *(f"new_{name}" for name in NEWS))


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
        disordered (the same records in another order), all_older (of the target, all may be copies
        of what the source had lost when it was first looked at), pair.
    """
    placed = digests.join(
        F.broadcast(positions), on=["flow", "side", "origin", "partition"], how="left"
    )
    partitions = placed.groupBy(*BUCKET, "partition").agg(
        *named(
            {
                "unmirrored": "count_if(side = 'source' and off_max >= coalesce(position, 0))",
                "not_older": "count_if(side = 'target' and off_max >= coalesce(older, 0))",
                "ts_max": f"max({_on('source', 'ts_max')})",
                "one_origin": f"min({_on('source', 'origin')})",
                "other_origin": f"max({_on('source', 'origin')})",
                **{
                    f"{name}_{side}": f"coalesce({kind}({_on(side, name)}), 0L)"
                    for side in _SIDES
                    for kind, names in _KINDS.items()
                    for name in names
                },
                **_halves_of(SUMS_64),
            }
        )
    )
    ordered = derived(
        normalise(partitions, _of_sides(SUMS_64)),
        {
            "disordered": f"{_same()} and coalesce(one_origin = other_origin, false)"
            f" and {_side_by_side('source')} and {_side_by_side('target')}"
            f" and {_order('source')} <> {_order('target')}"
        },
    )
    lanes = ordered.groupBy(*BUCKET).agg(
        *named(
            {
                "unmirrored": "sum(unmirrored)",
                "not_older": "sum(not_older)",
                "ts_max": "max(ts_max)",
                "disordered": "bool_or(disordered)",
                **{
                    f"{name}_{side}": f"{kind}({name}_{side})"
                    for side in _SIDES
                    for name, kind in {"n": "sum", "x1": "bit_xor", "x2": "bit_xor"}.items()
                },
                **{name: f"sum({name})" for name in _half_names(_SUMS)},
            }
        )
    )
    both = ", ".join(part.format(side) for side in _SIDES for part in _parts())
    return normalise(lanes, _of_sides(_SUMS)).select(
        *BUCKET,
        "n_source",
        "n_target",
        "ts_max",
        *named(
            {
                "mirrored": "unmirrored = 0",
                "equal": f"{_same()} and not disordered",
                "disordered": f"{_same()} and disordered",
                "all_older": "not_older = 0",
                "pair": f"concat_ws('-', hex(xxhash64(1, {both})), hex(xxhash64(2, {both})))",
            }
        ),
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
        settled), settled, status (``skipped``: nothing of the bucket was compared), accountable
        (the next run will call it verified) and the count of each class and of :data:`BESIDE`; of
        :data:`NEWS` what is told once counts while it is news, and is ``accounted_*`` afterwards.
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
    state = derived(
        known,
        {
            "only_older": "n_source = 0 and all_older",
            "nothing_to_compare": "coalesce((n_source = 0 and bucket <= source_gap)"
            " or (n_target = 0 and bucket <= target_gap), false)",
            "settled": "coalesce(known_pair = pair, false) and (in_flight = 0 or this_run)",
        },
    )
    # While records are unread a difference says nothing; what agrees or was drilled holds.
    state = derived(
        state,
        {
            "due": "mirrored and (not unread or equal or settled)",
            "unequal": "not equal",
        },
    )
    state = derived(state, {"blind": "unequal and due and (nothing_to_compare or only_older)"})
    state = derived(state, {"differs": "due and unequal and not blind"})
    # What was left over here may be the other half of what is new elsewhere in the topic, and a
    # bucket whose other half is looked at again has to be there.
    fresh = "(if(differs and not settled, bucket, null)) over (partition by flow, topic)"
    near = f"bucket between min{fresh} - {NEAR_MS} and max{fresh} + {NEAR_MS}"
    open_ended = f"missing + skipped + extra + halves > 0 and coalesce({near}, false)"
    state = derived(state, {"candidate": f"differs and (not settled or ({open_ended}))"})
    # An old result holds while its bucket differs: settled, or not due for a new drill.
    carried = "unequal and not blind"
    counted = derived(
        state,
        {name: f"if({carried}, {name}, 0L)" for name in (*CLASSES, "in_flight", "skipped")}
        | {f"new_{name}": f"if({carried} and news, new_{name}, 0L)" for name in NEWS}
        | {
            "unverifiable": "case when blind and only_older then 0L"
            " when blind then abs(n_source - n_target)"
            f" when {carried} then unverifiable else 0L end",
            "older": f"case when blind and only_older then n_target when {carried} then older"
            " else 0L end",
        },
    )
    told = derived(counted, {f"accounted_{name}": _told(name) for name in NEWS})
    told = derived(told, {name: f"{name} - accounted_{name}" for name in NEWS})
    status = derived(
        told,
        {
            "status": f"case when {_sum((*LASTING, *NEWS))} > 0 then 'mismatch'"
            " when unverifiable > 0 then 'unverifiable'"
            " when due and skipped + older > 0 and n_source <= skipped then 'skipped'"
            " when due and (equal or settled) and in_flight = 0 then 'verified'"
            " else 'in_flight' end"
        },
    )
    lasting = f"({_sum(LASTING)} + if({KEEPS_ORDER}, {BY_LANE}, 0L) > 0)"
    # What the next run will say of the same bucket if nothing changes.
    return derived(
        status, {"accountable": f"status = 'mismatch' and not {lasting} and unverifiable = 0"}
    )


def _sum(names: Collection[str]) -> str:
    return f"({' + '.join(names)})"


def _on(side: str, name: str) -> str:
    return f"if(side = '{side}', {name}, null)"


def _half_names(names: Collection[str]) -> list[str]:
    return [f"{name}_{half}" for name in _of_sides(names) for half in ("lo", "hi")]


def _of_sides(names: Collection[str]) -> tuple[str, ...]:
    return tuple(f"{name}_{side}" for side in _SIDES for name in names)


def _halves_of(names: Collection[str]) -> dict[str, str]:
    return {
        f"{name}_{side}_{half}": f"coalesce(sum({_on(side, f'{name}_{half}')}), 0L)"
        for side in _SIDES
        for name in names
        for half in ("lo", "hi")
    }


def _parts() -> list[str]:
    """What two sides that hold the same records agree in."""
    return [
        *(f"{name}_{{}}" for name in ("n", "x1", "x2")),
        *(f"{name}_{{}}_{half}" for name in _SUMS for half in ("lo", "hi")),
    ]


def _same() -> str:
    return " and ".join(f"{one.format('source')} = {one.format('target')}" for one in _parts())


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


def _told(name: str) -> str:
    """How many records of a class an earlier report has told of, for good."""
    known = f"{name} - new_{name}"
    return f"if({KEEPS_ORDER}, 0L, {known})" if name == BY_LANE else known
