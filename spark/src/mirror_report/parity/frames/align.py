"""Which records are held against which: the bucket of a record, and whether its time is compared.

Both sides of a mirror are cut into buckets that must hold the same records. Where the target keeps
the timestamps of the source, a bucket is a span of time, and the timestamp is part of what has to
be the same. Where it does not, both logs are cut at offsets that are known to be alike
(:mod:`plan.cuts`). A topic at rest can be cut by the hash of its records instead.
"""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames import fingerprint

PLACE = ("bucket", "compared_ms")
"""What :func:`place` adds: start of the bucket in milliseconds, and the timestamp in milliseconds
as far as it has to be the same on both sides (null: it is not compared)."""


SPANS_SCHEMA = (
    "flow string, side string, origin string, partition int, "
    "span_start bigint, span_end bigint, label bigint"
)
"""Buckets of topics whose timestamps say nothing: offsets of one side, and what they are called."""

LOG = ("flow", "side", "origin", "partition")
BLOCK = 4096
"""Offsets that are found together."""


def place(records: DataFrame, bucket_ms: int, spans: DataFrame | None = None) -> DataFrame:
    """Give records their buckets.

    :param records: :data:`frames.digest.RECORD_COLUMNS`, maybe with others.
    :param bucket_ms: width of a time bucket.
    :param spans: :data:`SPANS_SCHEMA` of all logs that are cut by offsets, one without spans by an
        empty one; ``None``: there are none. Records outside of spans have a null bucket.
    :returns: the records with :data:`PLACE`.
    """
    time = fingerprint.timestamp_ms()
    placed = records.withColumns(
        {"bucket": time - F.pmod(time, F.lit(bucket_ms)), "compared_ms": time}
    )
    if spans is None:
        return placed
    cut = spans.groupBy(*LOG).agg(F.lit(True).alias("cut"))
    return (
        _labelled(placed, spans, "offset")
        .join(F.broadcast(cut), on=list(LOG), how="left")
        .withColumns(
            {
                "bucket": F.when(F.col("cut"), F.col("label")).otherwise(F.col("bucket")),
                "compared_ms": F.when(F.col("cut").isNull(), F.col("compared_ms")),
            }
        )
        .drop("cut", "label")
    )


def realign(digests: DataFrame, spans: DataFrame) -> DataFrame:
    """Digest rows with the buckets their records have by now; without those that have none.

    Cuts are only ever taken away where records were digested, so a row lies in one bucket.

    :param digests: :data:`frames.digest.COLUMNS`, maybe with others.
    :param spans: :data:`SPANS_SCHEMA` of all logs that are cut by offsets.
    """
    cut = spans.groupBy(*LOG).agg(F.lit(True).alias("cut"))
    return (
        _labelled(digests, spans, "off_min")
        .join(F.broadcast(cut), on=list(LOG), how="left")
        .withColumn("bucket", F.when(F.col("cut"), F.col("label")).otherwise(F.col("bucket")))
        .drop("cut", "label")
        .filter(F.col("bucket").isNotNull())
    )


def _labelled(rows: DataFrame, spans: DataFrame, offset: str) -> DataFrame:
    """Rows with the label of the span their offset lies in, or null."""
    block = F.expr(f"sequence(span_start div {BLOCK}, (span_end - 1) div {BLOCK})")
    blocks = spans.filter("span_start < span_end").select(
        *(F.col(name).alias(f"span_{name}") for name in LOG),
        "span_start",
        "span_end",
        "label",
        F.explode(block).alias("span_block"),
    )
    # An equality lets Spark hash the spans, where comparisons alone would try each of them.
    same = [F.col(name) == F.col(f"span_{name}") for name in LOG]
    within = [
        F.expr(f"{offset} div {BLOCK}") == F.col("span_block"),
        F.col(offset) >= F.col("span_start"),
        F.col(offset) < F.col("span_end"),
    ]
    return rows.join(F.broadcast(blocks), on=[*same, *within], how="left").select(
        *rows.columns, "label"
    )


def place_by_hash(records: DataFrame, untimed: Collection[str], buckets: int) -> DataFrame:
    """Give records of topics at rest their buckets, by what they hold.

    :param records: :data:`frames.digest.RECORD_COLUMNS`, maybe with others.
    :param untimed: topics (by their names on the target) whose timestamps are not compared.
    :param buckets: how many.
    :returns: the records with :data:`PLACE`; a bucket is a number below ``buckets``.
    """
    time = F.when(~F.col("topic").isin(*untimed), fingerprint.timestamp_ms())
    compared = records.withColumn("compared_ms", time)
    return compared.withColumn("bucket", F.pmod(fingerprint.record_hash(1), F.lit(buckets)))
