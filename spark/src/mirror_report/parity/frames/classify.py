"""Differences in the buckets whose digests differ: numbers of records by class, and samples."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import CLASSES
from mirror_report.parity import ACCOUNTABLE, BUCKET, BY_LANE, LASTING, SAMPLES
from mirror_report.parity.frames import fingerprint
from mirror_report.parity.frames.compare import BUCKET_SCHEMA, WHOLE_TOPIC
from mirror_report.parity.frames.leftovers import DIGESTED, sum_of
from mirror_report.parity.frames.pairing import DISPLACED, STAGES
from mirror_report.parity.frames.status import BESIDE

# Buckets to classify. ``disordered``: the digests hold the same records in another order;
# ``unread``: more of the topic waits to be read;
# ``*_gap``: records of that side had expired before they were ever read; ``*_gone``: digested
# records of the bucket can no longer be read; ``allowed_from_ms``: where records of the target are
# gone, retention allows that for those with an earlier timestamp (null: not known);
# ``target_most``: so many may have left the target before they were ever read at most (null: nobody
# knows); ``target_own``: so many of those that were digested; ``target_unread``: so many offsets of
# the lane left it since, before they were digested; ``known_*``: already reported; ``was_*``: what
# lasts of what earlier runs have found.
CANDIDATES_SCHEMA = (
    f"{BUCKET_SCHEMA}, pair string, n_source bigint, n_target bigint, disordered boolean, "
    "unread boolean, source_gap boolean, target_gap boolean, source_gone boolean, "
    "target_gone boolean, "
    "allowed_from_ms bigint, target_most bigint, target_own bigint, target_unread bigint, "
    "known_missing bigint, "
    + ", ".join(f"known_{name} bigint" for name in ACCOUNTABLE)
    + ", "
    + ", ".join(f"was_{name} bigint" for name in (*LASTING, BY_LANE))
)

PAIRS = tuple(name for name in STAGES if name != DISPLACED)
# Classes a record can be seen to be of; ``unverifiable`` is what cannot be seen.
COUNTS = ("missing", "duplicate", *PAIRS, "reordered", "extra", "deleted_early", "expired")
_SUMS = ("n_source", "n_target", *DIGESTED, *COUNTS, *BESIDE, "balance", "unseen")


def candidate(bucket: Mapping[str, Any]) -> dict[str, Any]:
    """Row of :data:`CANDIDATES_SCHEMA`, without what is hidden of the bucket.

    :param bucket: row of :func:`frames.status.statuses`.
    """
    names = (*BUCKET, "pair", "n_source", "n_target", "disordered", "unread")
    lacks = max(0, bucket["n_source"] - bucket["n_target"])
    return {
        **{name: bucket[name] for name in names},
        "target_most": bucket["target_left"],
        # By what was digested: if that is there by now, it was mended.
        "known_missing": min(bucket["missing"], lacks),
        **{f"known_{name}": bucket[f"accounted_{name}"] for name in ACCOUNTABLE},
        **{f"was_{name}": bucket[name] for name in LASTING},
        # Else it is reported once.
        f"was_{BY_LANE}": bucket[BY_LANE] if bucket["lane"] != WHOLE_TOPIC else 0,
    }


def outcome(left: DataFrame, candidates: DataFrame, run_id: str) -> DataFrame:
    """Counts of each class in each candidate.

    Where records of a side are gone, its absence proves nothing: such leftovers are
    ``unverifiable``, and so is any difference of the digests that the readable rest does not
    explain. Where the digests hold the same records in another order, one is out of order at least.
    What an earlier run found of records that are gone stays: that it was mended cannot be seen.

    :param left: :func:`frames.leftovers.leftovers`.
    :returns: :data:`frames.status.RESULTS_SCHEMA`.
    """
    sums = left.groupBy(*BUCKET).agg(*(F.sum(name).alias(f"seen_{name}") for name in _SUMS))
    joined = candidates.join(sums, on=list(BUCKET), how="left").fillna(
        0, subset=[f"seen_{name}" for name in _SUMS]
    )
    counts = _with_unseen_losses(_counts())
    # Records newer than the digests were seen: the next run has to classify this bucket again.
    newer = ~_gone() & (
        (F.col("seen_n_source") != F.col("n_source"))
        | (F.col("seen_n_target") != F.col("n_target"))
    )
    return joined.select(
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
            for name in ACCOUNTABLE
        ),
    )


def _gone() -> Column:
    return F.col("source_gone") | F.col("target_gone")


def _counts() -> dict[str, Column]:
    hidden = _gone() | F.col("source_gap") | F.col("target_gap")
    disordered = F.col("disordered") & ~hidden & (F.col("lane") != WHOLE_TOPIC)
    classified = sum_of([f"seen_{name}" for name in COUNTS])
    unexplained = F.abs(F.col("n_source") - F.col("n_target") - F.col("seen_balance"))
    at_least_one = F.greatest(unexplained, F.lit(1))
    return {name: F.col(f"seen_{name}") for name in COUNTS} | {
        "reordered": F.greatest("seen_reordered", disordered.cast("bigint")),
        "unverifiable": F.when(_gone() & (classified == 0), at_least_one)
        .when(_gone(), unexplained)
        .otherwise(F.col("seen_unseen")),
    }


def _with_unseen_losses(counts: Mapping[str, Column]) -> dict[str, Column]:
    """With what earlier runs found of records that no side shows any more.

    What of it the counts of the digests contradict is unverifiable: it may have been mended.
    """
    nothing = F.lit(0)
    gone = {
        side: F.when(
            F.col(f"{side}_gone"),
            F.greatest(F.col(f"n_{side}") - F.col(f"seen_digested_{side}"), nothing),
        ).otherwise(nothing)
        for side in ("source", "target")
    }
    counted, left = dict(counts), gone["source"] + gone["target"]
    kept = doubted = nothing
    for name in (*LASTING, BY_LANE):
        was, now = F.coalesce(f"was_{name}", nothing), counts[name]
        of_source = name in ("missing", "deleted_early")
        unseen = F.least(
            F.greatest(was - now, nothing), F.least(left, gone["source"]) if of_source else left
        )
        lasts = unseen
        if name == "missing":
            lacks = F.greatest(F.coalesce("known_missing", nothing) - now, nothing)
            lasts = F.least(unseen, lacks)
        counted[name] = now + lasts
        left, kept, doubted = left - unseen, kept + lasts, doubted + unseen - lasts
    # What it was called without being known.
    for name in ("unverifiable", "expired"):
        taken = F.least(kept, counts[name])
        counted[name], kept = counts[name] - taken, kept - taken
    counted["unverifiable"] = F.greatest(counted["unverifiable"], doubted)
    return counted


def looks_of_losses(left: DataFrame) -> DataFrame:
    """Of each topic the looks that tell what may be a copy of what it misses.

    :param left: :func:`frames.leftovers.leftovers`.
    :returns: flow, topic, looks (their numbers).
    """
    rests_on = F.explode(F.array("look", F.col("born") - 1))
    return (
        left.filter("missing > 0")
        .select("flow", "topic", rests_on.alias("rests_on"))
        .filter("rests_on >= 0")
        .groupBy("flow", "topic")
        .agg(F.collect_set("rests_on").alias("looks"))
    )


def samples(left: DataFrame) -> DataFrame:
    """At most :data:`SAMPLES` records per (flow, topic, class), oldest first.

    :param left: :func:`frames.leftovers.leftovers`.
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
        .select("flow", "topic", "key_hash", F.explode(taken).alias("sample"))
        .filter(F.col("sample").isNotNull())
        .select(
            "flow",
            "topic",
            F.col("sample.class").alias("class"),
            F.col("sample.side").alias("side"),
            F.col("sample.at.partition").alias("partition"),
            F.col("sample.at.offset").alias("offset"),
            F.col("sample.at.timestamp_ms").alias("timestamp_ms"),
            fingerprint.text(left, "key_hash").alias("key_hash"),
            F.col("sample.at.record_hash").alias("record_hash"),
            F.col("sample.at.key_length").alias("key_bytes"),
            F.col("sample.at.value_length").alias("value_bytes"),
        )
        .withColumn("rank", F.row_number().over(order))
        .filter(F.col("rank") <= SAMPLES)
        .drop("rank")
    )
