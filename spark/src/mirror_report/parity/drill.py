"""Record by record: what exactly is wrong in the buckets whose digests differ.

Source records below a committed position must be on the target that was looked at *after* that
position; target records must be on the source that was looked at *after* the target. What lies
between is in flight, and never a difference.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import fingerprint
from mirror_report.parity.compare import BUCKET, BUCKET_SCHEMA

CANDIDATES_SCHEMA = (
    f"{BUCKET_SCHEMA}, pair string, n_source bigint, n_target bigint, "
    "source_gap boolean, target_gap boolean, source_gone boolean, target_gone boolean, "
    "known_duplicate bigint, known_extra bigint"
)
"""Buckets to drill. ``*_gap``: records of that side had expired before they were ever read;
``*_gone``: digested records of the bucket can no longer be read; ``known_*``: already reported."""

SAMPLES = 20
CLASSES = ("missing", "duplicate", "corrupt_value", "extra")


def leftovers(records: DataFrame, candidates: DataFrame, positions: DataFrame) -> DataFrame:
    """Groups of records that do not match, and one group of all others per bucket.

    Leftovers are paired where key and timestamp (as far as it is compared) agree: a missing record
    and a foreign one are then one corrupted record.

    :param records: :data:`mirror_report.parity.digest.RECORD_COLUMNS`, both sides,
        :func:`mirror_report.parity.alignment.place`,
        :func:`mirror_report.parity.compare.with_lanes`.
    :param candidates: :data:`CANDIDATES_SCHEMA`.
    :param positions: :data:`mirror_report.parity.compare.POSITIONS_SCHEMA`, taken before the ends
        up to which ``records`` were read.
    :returns: flow, topic, lane, bucket, key_hash, compared_ms, n_source, n_target, missing,
        duplicate, corrupt_value, extra, in_flight, source and target (sample structs, null without
        leftovers).
    """
    below = (F.col("side") == "source") & (
        F.col("offset") < F.coalesce(F.col("position"), F.lit(0))
    )
    sample = F.struct(
        F.col("offset"),
        F.col("partition"),
        F.concat(fingerprint.hex64(F.col("h1")), fingerprint.hex64(F.col("h2"))).alias(
            "record_hash"
        ),
        F.col("key_length"),
        F.col("value_length"),
        F.col("timestamp_ms"),
    )
    hashed = (
        records.select(
            "flow",
            "side",
            "topic",
            "lane",
            "origin",
            "partition",
            "offset",
            "bucket",
            "compared_ms",
            fingerprint.timestamp_ms().alias("timestamp_ms"),
            fingerprint.key_hash().alias("key_hash"),
            fingerprint.record_hash(1).alias("h1"),
            fingerprint.record_hash(2).alias("h2"),
            F.expr("length(key)").alias("key_length"),
            F.expr("length(value)").alias("value_length"),
        )
        .join(F.broadcast(candidates.select(*BUCKET)), on=list(BUCKET), how="left_semi")
        .join(F.broadcast(positions), on=["flow", "origin", "partition"], how="left")
        .withColumns({"below": below, "sample": sample})
    )
    per_record = (
        hashed.groupBy(*BUCKET, "key_hash", "compared_ms", "h1", "h2")
        .agg(
            F.count_if("below").alias("n_below"),
            F.count_if(F.col("side") == "source").alias("n_source"),
            F.count_if(F.col("side") == "target").alias("n_target"),
            F.min(F.when(F.col("below"), F.col("sample"))).alias("source"),
            F.max(F.when(F.col("side") == "target", F.col("sample"))).alias("target"),
        )
        .withColumns(
            {
                "missing": F.greatest(F.col("n_below") - F.col("n_target"), F.lit(0)),
                "surplus": F.greatest(F.col("n_target") - F.col("n_source"), F.lit(0)),
            }
        )
        .withColumns(
            {
                "duplicate": F.when(F.col("n_source") > 0, F.col("surplus")).otherwise(0),
                "extra": F.when(F.col("n_source") == 0, F.col("surplus")).otherwise(0),
                "in_flight": F.greatest(F.col("n_source") - F.col("n_target"), F.lit(0))
                - F.col("missing"),
            }
        )
    )
    counts = ("n_source", "n_target", "missing", "duplicate", "extra", "in_flight")
    paired = (
        per_record.groupBy(*BUCKET, "key_hash", "compared_ms")
        .agg(
            *(F.sum(name).alias(name) for name in counts),
            F.min(F.when(F.col("missing") > 0, F.col("source"))).alias("source"),
            F.max(F.when(F.col("duplicate") > 0, F.col("target"))).alias("copy"),
            F.max(F.when(F.col("extra") > 0, F.col("target"))).alias("target"),
        )
        .withColumn("corrupt_value", F.least("missing", "extra"))
        .withColumns(
            {
                "missing": F.col("missing") - F.col("corrupt_value"),
                "extra": F.col("extra") - F.col("corrupt_value"),
            }
        )
    )
    # Groups without leftovers become one row per bucket, so the result grows with what is wrong.
    wrong = sum((F.col(name) for name in CLASSES), start=F.lit(0)) > 0
    return (
        paired.withColumns(
            {
                "key_hash": F.when(wrong, F.col("key_hash")),
                "compared_ms": F.when(wrong, F.col("compared_ms")),
            }
        )
        .groupBy(*BUCKET, "key_hash", "compared_ms")
        .agg(
            *(F.sum(name).alias(name) for name in (*counts, "corrupt_value")),
            F.min("source").alias("source"),
            F.max("target").alias("target"),
            F.max("copy").alias("copy"),
        )
    )


def outcome(left: DataFrame, candidates: DataFrame, run_id: str) -> DataFrame:
    """What the drill says of each candidate.

    Where records of a side are gone, its absence proves nothing: such leftovers are
    ``unverifiable``, and so is any difference of the digests that the readable rest does not
    explain.

    :param left: :func:`leftovers`.
    :returns: :data:`mirror_report.parity.compare.RESULTS_SCHEMA`.
    """
    seen = left.groupBy(*BUCKET).agg(
        F.sum("n_source").alias("seen_source"),
        F.sum("n_target").alias("seen_target"),
        *(F.sum(name).alias(f"found_{name}") for name in (*CLASSES, "in_flight")),
    )
    counts = ["seen_source", "seen_target", *(f"found_{n}" for n in (*CLASSES, "in_flight"))]
    drilled = candidates.join(seen, on=list(BUCKET), how="left").fillna(0, subset=counts)
    source_hidden = F.col("source_gap") | F.col("source_gone")
    target_hidden = F.col("target_gap") | F.col("target_gone")
    gone = F.col("source_gone") | F.col("target_gone")
    judged = drilled.withColumns(
        {
            "missing": F.when(target_hidden, 0).otherwise(F.col("found_missing")),
            "extra": F.when(source_hidden, 0).otherwise(F.col("found_extra")),
            "duplicate": F.col("found_duplicate"),
            "corrupt_value": F.col("found_corrupt_value"),
        }
    )
    found = F.col("missing") + F.col("extra") + F.col("duplicate") + F.col("corrupt_value")
    unexplained = F.abs(
        (F.col("n_source") - F.col("n_target"))
        - (F.col("missing") - F.col("extra") - F.col("duplicate"))
    )
    hidden = (F.col("found_missing") - F.col("missing")) + (F.col("found_extra") - F.col("extra"))
    # Records newer than the digests were seen: the next run has to look at this bucket again.
    newer = ~gone & (
        (F.col("seen_source") != F.col("n_source")) | (F.col("seen_target") != F.col("n_target"))
    )
    return judged.select(
        *BUCKET,
        "pair",
        F.lit(run_id).alias("run_id"),
        *(F.col(name).cast("bigint").alias(name) for name in CLASSES),
        F.when(gone & (found == 0), F.greatest(unexplained, F.lit(1)))
        .when(gone, unexplained)
        .otherwise(hidden)
        .cast("bigint")
        .alias("unverifiable"),
        F.greatest(F.col("found_in_flight"), newer.cast("bigint")).alias("in_flight"),
        *(
            F.greatest(F.col(name) - F.col(f"known_{name}"), F.lit(0))
            .cast("bigint")
            .alias(f"new_{name}")
            for name in ("duplicate", "extra")
        ),
    )


def samples(left: DataFrame) -> DataFrame:
    """At most :data:`SAMPLES` records per (flow, topic, class), oldest first.

    :param left: :func:`leftovers`.
    :returns: flow, topic, class, side, partition, offset, timestamp_ms, key_hash, record_hash,
        key_bytes, value_bytes.
    """
    kinds = (
        ("missing", "missing", "source", "source"),
        ("duplicate", "duplicate", "target", "copy"),
        ("corrupt_value", "corrupt_value", "source", "source"),
        ("corrupt_value", "corrupt_value", "target", "target"),
        ("extra", "extra", "target", "target"),
    )
    taken = F.array(
        *(
            F.when(
                F.col(count) > 0,
                F.struct(
                    F.lit(name).alias("class"), F.lit(side).alias("side"), F.col(column).alias("at")
                ),
            )
            for name, count, side, column in kinds
        )
    )
    order = Window.partitionBy("flow", "topic", "class").orderBy("timestamp_ms", "offset", "side")
    return (
        left.filter(F.col("key_hash").isNotNull())
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
