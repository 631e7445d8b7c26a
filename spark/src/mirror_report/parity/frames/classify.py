"""Record by record: what exactly is wrong in the buckets whose digests differ.

Source records below a committed position must be on the target that was looked at *after* that
position; target records must be on the source that was looked at *after* the target. What lies
between is in flight, and never a difference.

A baseline that was recorded while the mirror ran leaves source records of which nobody knows
whether they were copied before it. What was read of the target below the first offset that counts
is there to explain those, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model.content import CLASSES
from mirror_report.parity.frames import fingerprint
from mirror_report.parity.frames.compare import BESIDE, BUCKET, BUCKET_SCHEMA, WHOLE_TOPIC
from mirror_report.parity.frames.pairing import ACROSS, DISPLACED, STAGES, pair
from mirror_report.parity.results.summaries import NEWS

CANDIDATES_SCHEMA = (
    f"{BUCKET_SCHEMA}, pair string, n_source bigint, n_target bigint, disordered boolean, "
    "source_gap boolean, target_gap boolean, source_gone boolean, target_gone boolean, "
    "allowed_from_ms bigint, " + ", ".join(f"known_{name} bigint" for name in NEWS)
)
"""Buckets to drill. ``disordered``: the digests hold the same records in another order; ``*_gap``:
records of that side had expired before they were ever read; ``*_gone``: digested records of the
bucket can no longer be read; ``allowed_from_ms``: where records of the target are gone, retention
allows that for those with an earlier timestamp (null: it cannot be told); ``known_*``: already
reported."""

SAMPLES = 20
PAIRS = tuple(name for name in STAGES if name != DISPLACED)
COUNTS = ("missing", "duplicate", *PAIRS, "reordered", "extra", "deleted_early", "expired")
"""Classes a record can be seen to be of; ``unverifiable`` is what cannot be seen."""
_SUMS = ("n_source", "n_target", *COUNTS, *BESIDE, "balance", "unseen")


def candidate(bucket: Mapping[str, Any]) -> dict[str, Any]:
    """Row of :data:`CANDIDATES_SCHEMA` of a judged bucket; what is hidden has to be added."""
    names = (*BUCKET, "pair", "n_source", "n_target", "disordered")
    known = {f"known_{name}": bucket[f"accounted_{name}"] for name in NEWS}
    return {name: bucket[name] for name in names} | known


def leftovers(records: DataFrame, candidates: DataFrame, positions: DataFrame) -> DataFrame:
    """Groups of equal records that do not match, and one group of all others per bucket.

    :param records: :data:`frames.digest.RECORD_COLUMNS`, both sides,
        :func:`frames.align.place`,
        :func:`frames.compare.with_lanes`.
    :param candidates: :data:`CANDIDATES_SCHEMA`.
    :param positions: :data:`frames.compare.POSITIONS_SCHEMA`, taken before the ends
        up to which ``records`` were read.
    :returns: flow, topic, lane, bucket, h1, h2 (null: all that match), key_hash, n_source,
        n_target, :data:`COUNTS`, ``at_<class>`` of :data:`frames.pairing.STAGES`,
        :data:`frames.compare.BESIDE`,
        balance (source records less target records, as far as explained), unseen
        (leftovers whose partner may have been among what is gone), source and target (sample
        structs, null for what matches).
    """
    groups = _late(_groups(records, candidates, positions))
    # What lies below the first offset explains what may have been copied by then before all else.
    sought = F.least("n_sought", "n_below")
    n_lost = F.greatest(F.col("n_below") - F.col("n_target") - sought, F.lit(0))
    not_sought = F.greatest(sought - F.col("n_optional"), F.lit(0))
    n_required = F.greatest(
        F.col("n_below") - F.col("n_optional") - F.col("n_target") - not_sought, F.lit(0)
    )
    open_ = F.greatest(F.col("n_source") - F.col("n_target"), F.lit(0))
    in_flight = F.greatest(open_ - sought, F.lit(0)) - n_lost
    surplus = F.greatest(F.col("n_target") - F.col("n_source"), F.lit(0))
    counted = groups.withColumns(
        {
            "lost": n_lost,
            "optional": n_lost - F.least(n_required, n_lost),
            "duplicate": F.when(F.col("n_source") > 0, surplus).otherwise(0),
            "foreign": F.when(F.col("n_source") == 0, surplus).otherwise(0),
            "in_flight": in_flight,
            "explained": open_ - n_lost - in_flight,
            "reordered": F.col("late").cast("bigint"),
        }
    )
    # All that matches becomes one row per bucket: the rest grows with what is wrong.
    wrong = F.col("lost") + F.col("duplicate") + F.col("foreign") + F.col("reordered") > 0
    names = ("h1", "h2", "key_hash", "value_hash", "content_hash", "compared_ms", "timestamp_ms")
    kept = (
        counted.withColumns(
            {name: F.when(wrong, F.col(name)) for name in names}
            | {"n_older": _where(wrong, "n_older")}
        )
        .groupBy(*BUCKET, *names)
        .agg(
            *(
                F.sum(name).alias(name)
                for name in ("n_source", "n_target", "n_older", "in_flight", "explained", "lost",
                             "optional", "foreign", "duplicate", "reordered")
            ),
            *(F.max(F.when(wrong, F.col(name))).alias(name) for name in ("source", "target")),
        )
    )  # fmt: skip
    return _named(kept, candidates)


def _groups(records: DataFrame, candidates: DataFrame, positions: DataFrame) -> DataFrame:
    """Equal records of a bucket: how many each side has, and the first place on each."""
    below = (F.col("side") == "source") & (
        F.col("offset") < F.coalesce(F.col("position"), F.lit(0))
    )
    hash128 = F.concat(fingerprint.hex64(F.col("h1")), fingerprint.hex64(F.col("h2")))
    sample = F.struct(
        *("offset", "partition"),
        hash128.alias("record_hash"),
        *("key_length", "value_length", "timestamp_ms"),
    )
    hashed = (
        records.select(
            *("flow", "side", "topic", "lane", "origin", "partition", "offset"),
            *("bucket", "compared_ms"),
            fingerprint.timestamp_ms().alias("timestamp_ms"),
            fingerprint.key_hash().alias("key_hash"),
            fingerprint.value_hash().alias("value_hash"),
            fingerprint.content_hash().alias("content_hash"),
            fingerprint.record_hash(1).alias("h1"),
            fingerprint.record_hash(2).alias("h2"),
            F.expr("length(key)").alias("key_length"),
            F.expr("length(value)").alias("value_length"),
        )
        .join(F.broadcast(candidates.select(*BUCKET)), on=list(BUCKET), how="left_semi")
        .join(F.broadcast(positions), on=["flow", "side", "origin", "partition"], how="left")
        .withColumns(
            {
                "below": below,
                "sample": sample,
                "counts": F.col("offset") >= F.coalesce(F.col("first"), F.lit(0)),
            }
        )
    )
    on_source = F.col("side") == "source"
    on_target = (F.col("side") == "target") & F.col("counts")
    log = F.struct("origin", "partition")
    return hashed.groupBy(*BUCKET, "h1", "h2").agg(
        F.count_if("below").alias("n_below"),
        F.count_if(on_source).alias("n_source"),
        F.count_if(on_target).alias("n_target"),
        F.count_if(F.col("below") & (F.col("offset") < F.col("required"))).alias("n_optional"),
        F.count_if((F.col("side") == "target") & ~F.col("counts")).alias("n_sought"),
        F.count_if(on_target & (F.col("offset") < F.col("older"))).alias("n_older"),
        *(
            F.min(name).alias(name)
            for name in ("key_hash", "value_hash", "content_hash", "compared_ms", "timestamp_ms",
                         "key_length")
        ),
        F.min(F.when(F.col("below"), F.col("sample"))).alias("source"),
        F.max(F.when(on_target, F.col("sample"))).alias("target"),
        F.min(F.when(on_source, log)).alias("source_log"),
        F.max(F.when(on_source, log)).alias("other_log"),
        F.min(F.when(on_source, F.col("offset"))).alias("source_at"),
        F.min(F.when(on_target, F.struct("partition", "offset"))).alias("target_at"),
    )  # fmt: skip


def _late(groups: DataFrame) -> DataFrame:
    """Say in ``late`` which records come after one that they preceded on the source.

    Order is that of one log; of a mirror that keeps no partitions, that of one key in it. Equal
    records count once, where the first of them is, and only if both sides have as many: of copies
    nobody can say which one is out of place.
    """
    spread = F.col("lane") == WHOLE_TOPIC
    ordered = (
        (F.col("n_source") > 0)
        & (F.col("n_target") == F.col("n_source"))
        & (F.col("source_log") == F.col("other_log"))
        & ~(spread & F.col("key_length").isNull())
    )
    sequence = (
        Window.partitionBy(
            *BUCKET, "ordered", "source_log", "target_at.partition",
            F.when(spread, F.col("key_hash")),
        )
        .orderBy("target_at.offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )  # fmt: skip
    passed = F.coalesce(F.max("source_at").over(sequence) > F.col("source_at"), F.lit(False))
    return groups.withColumn("ordered", F.coalesce(ordered, F.lit(False))).withColumn(
        "late", F.col("ordered") & passed
    )


def _named(kept: DataFrame, candidates: DataFrame) -> DataFrame:
    """Give what does not match the names of its classes."""
    hidden = candidates.select(
        *BUCKET,
        (F.col("source_gap") | F.col("source_gone")).alias("source_hidden"),
        (F.col("target_gap") | F.col("target_gone")).alias("target_hidden"),
        "allowed_from_ms",
    )
    # Where records are gone, the partner of a leftover may be among them: it is left unpaired.
    seen = kept.join(F.broadcast(hidden), on=list(BUCKET), how="inner").withColumns(
        {
            "balance": F.col("lost") + F.col("explained")
            - F.col("foreign") - F.col("duplicate"),
            "skipped": _where("target_hidden", "optional"),
            "optional": _where(~F.col("target_hidden"), "optional"),
            "alone": _where("target_hidden", "lost") - _where("target_hidden", "optional"),
            "unseen": _where("source_hidden", "foreign"),
            "lost": _where(~F.col("target_hidden"), "lost"),
            "foreign": _where(~F.col("source_hidden"), "foreign"),
            "reordered": _where(~F.col("source_hidden") & ~F.col("target_hidden"), "reordered"),
        }
    )  # fmt: skip
    unpaired = F.least("lost", "optional")
    older = F.least("foreign", "n_older")
    repeated = F.least("duplicate", F.col("n_older") - older)
    too_early = F.col("timestamp_ms") >= F.col("allowed_from_ms")
    unknown = F.col("allowed_from_ms").isNull()
    return (
        pair(seen)
        .withColumns(
            {
                "missing": F.col("lost") - unpaired,
                "skipped": F.col("skipped") + unpaired,
                "older": older + repeated,
                "duplicate": F.col("duplicate") - repeated,
                "halves": _total([f"{at}{name}" for name in ACROSS for at in ("", "at_")]),
                "reordered": F.col("reordered") + F.col(DISPLACED),
                "extra": F.col("foreign") - older,
                "deleted_early": _where(F.coalesce(too_early, F.lit(False)), "alone"),
                "expired": _where(F.coalesce(~too_early, F.lit(False)), "alone"),
                "balance": F.col("balance")
                - _where(unknown, "alone") + F.col("unseen"),
                "unseen": F.col("unseen") + _where(unknown, "alone"),
            }
        )
        .drop(DISPLACED, "lost", "foreign", "alone", "optional", "explained", "n_older")
        .drop("source_hidden", "target_hidden", "allowed_from_ms")
    )  # fmt: skip


def outcome(left: DataFrame, candidates: DataFrame, run_id: str) -> DataFrame:
    """What the drill says of each candidate.

    Where records of a side are gone, its absence proves nothing: such leftovers are
    ``unverifiable``, and so is any difference of the digests that the readable rest does not
    explain. Where the digests hold the same records in another order, one is out of order at least.

    :param left: :func:`leftovers`.
    :returns: :data:`frames.compare.RESULTS_SCHEMA`.
    """
    seen = left.groupBy(*BUCKET).agg(*(F.sum(name).alias(f"seen_{name}") for name in _SUMS))
    drilled = candidates.join(seen, on=list(BUCKET), how="left").fillna(
        0, subset=[f"seen_{name}" for name in _SUMS]
    )
    gone = F.col("source_gone") | F.col("target_gone")
    hidden = gone | F.col("source_gap") | F.col("target_gap")
    certain = F.col("disordered") & ~hidden & (F.col("lane") != WHOLE_TOPIC)
    counts = {name: F.col(f"seen_{name}") for name in COUNTS} | {
        "reordered": F.greatest("seen_reordered", certain.cast("bigint"))
    }
    found = _total([f"seen_{name}" for name in COUNTS])
    unexplained = F.abs(F.col("n_source") - F.col("n_target") - F.col("seen_balance"))
    # Records newer than the digests were seen: the next run has to look at this bucket again.
    newer = ~gone & (
        (F.col("seen_n_source") != F.col("n_source"))
        | (F.col("seen_n_target") != F.col("n_target"))
    )
    counts["unverifiable"] = (
        F.when(gone & (found == 0), F.greatest(unexplained, F.lit(1)))
        .when(gone, unexplained)
        .otherwise(F.col("seen_unseen"))
    )
    return drilled.select(
        *BUCKET,
        "pair",
        F.lit(run_id).alias("run_id"),
        *(counts[name].cast("bigint").alias(name) for name in CLASSES),
        F.greatest(F.col("seen_in_flight"), newer.cast("bigint")).alias("in_flight"),
        *(F.col(f"seen_{name}").alias(name) for name in BESIDE if name != "in_flight"),
        *(
            F.greatest(counts[name] - F.col(f"known_{name}"), F.lit(0))
            .cast("bigint")
            .alias(f"new_{name}")
            for name in NEWS
        ),
    )


def samples(left: DataFrame) -> DataFrame:
    """At most :data:`SAMPLES` records per (flow, topic, class), oldest first.

    :param left: :func:`leftovers`.
    :returns: flow, topic, class, side, partition, offset, timestamp_ms, key_hash, record_hash,
        key_bytes, value_bytes.
    """
    target_side = ("duplicate", "extra", "reordered")
    kinds = [
        *((name, "target" if name in target_side else "source", name) for name in COUNTS),
        *((name, "target", f"at_{name}") for name in PAIRS),
        ("reordered", "target", f"at_{DISPLACED}"),
    ]
    taken = F.array(
        *(
            F.when(
                F.col(count) > 0,
                F.struct(
                    F.lit(name).alias("class"), F.lit(side).alias("side"), F.col(side).alias("at")
                ),
            )
            for name, side, count in kinds
        )
    )
    order = Window.partitionBy("flow", "topic", "class").orderBy("timestamp_ms", "offset", "side")
    return (
        left.filter(F.col("h1").isNotNull())
        .select("flow", "topic", "key_hash", F.explode(taken).alias("one"))
        .filter(F.col("one").isNotNull())
        .select(
            "flow",
            "topic",
            F.col("one.class").alias("class"),
            F.col("one.side").alias("side"),
            F.col("one.at.partition").alias("partition"),
            F.col("one.at.offset").alias("offset"),
            F.col("one.at.timestamp_ms").alias("timestamp_ms"),
            fingerprint.hex64(F.col("key_hash")).alias("key_hash"),
            F.col("one.at.record_hash").alias("record_hash"),
            F.col("one.at.key_length").alias("key_bytes"),
            F.col("one.at.value_length").alias("value_bytes"),
        )
        .withColumn("rank", F.row_number().over(order))
        .filter(F.col("rank") <= SAMPLES)
        .drop("rank")
    )


def _where(condition: Column | str, name: str) -> Column:
    chosen = F.col(condition) if isinstance(condition, str) else condition
    return F.when(chosen, F.col(name)).otherwise(0)


def _total(names: Iterable[str]) -> Column:
    return sum((F.col(name) for name in names), start=F.lit(0))
