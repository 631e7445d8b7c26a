"""The bucket of a record, within which both sides are compared, and whether its time is compared.

Both sides of a mirror are cut into buckets that must hold the same records. Where the target keeps
the timestamps of the source, a bucket is a span of time, and the timestamp is part of what has to
be the same. Where it does not, both logs are cut at offsets that are known to be alike
(:mod:`plan.cuts`). A topic at rest can be cut by the hash of its records instead.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, HOUR_MS, PARTITION, Key, bucket_key
from mirror_report.parity.frames import compare, fingerprint
from mirror_report.parity.frames.compare import BUCKET_SCHEMA
from mirror_report.parity.frames.sql import table
from mirror_report.parity.state import TopicKey, Widths

# What :func:`place` adds: start of the bucket in milliseconds, and the timestamp in milliseconds as
# far as it has to be the same on both sides (null: it is not compared).
PLACE = ("bucket", "compared_ms")
# Buckets of topics whose timestamps say nothing: offsets of one side, and what they are called.
SPANS_SCHEMA = (
    "flow string, side string, origin string, partition int, "
    "span_start bigint, span_end bigint, label bigint"
)
# Offsets that are found together.
BLOCK = 4096
# Extent of one bucket in one partition: offsets, both inclusive.
EXTENTS_SCHEMA = (
    f"{BUCKET_SCHEMA}, side string, origin string, partition int, off_min bigint, off_max bigint"
)
# How far each partition was digested.
FOLLOWING_SCHEMA = "flow string, side string, origin string, partition int, following bigint"


def place(records: DataFrame, widths: Widths, spans: DataFrame | None = None) -> DataFrame:
    """Give records their buckets.

    :param records: :data:`frames.digest.RECORD_COLUMNS`, maybe with others.
    :param widths: of buckets of time.
    :param spans: :data:`SPANS_SCHEMA` of all logs that are cut by offsets, one without spans by an
        empty one; ``None``: there are none. Records outside of spans have a null bucket.
    :returns: the records with :data:`PLACE`.
    """
    time = fingerprint.timestamp_ms()
    bucket = by_hour(time - F.pmod(time, F.lit(widths.normal)), widths.by_hour)
    placed = records.withColumns({"bucket": bucket, "compared_ms": time})
    if spans is None:
        return placed
    compared = F.when(F.col("cut").isNull(), F.col("compared_ms"))
    return _cut(placed, spans, "offset").withColumn("compared_ms", compared).drop("cut", "label")


def by_hour(bucket: Column, topics: Collection[TopicKey]) -> Column:
    """The bucket of a row with flow and topic, if those of some topics are hours.

    :param bucket: of the row, in milliseconds.
    """
    if not topics:
        return bucket
    return F.when(of_topics(topics), hour(bucket)).otherwise(bucket)


def hour(bucket: Column) -> Column:
    """The hour a bucket begins in; both in milliseconds."""
    return bucket - F.pmod(bucket, F.lit(HOUR_MS))


def of_topics(topics: Collection[TopicKey]) -> Column:
    """Whether a row with flow and topic is of one of some topics."""
    names: dict[str, list[str]] = {}
    for flow, topic in sorted(topics):
        names.setdefault(flow, []).append(topic)
    matches = F.lit(False)
    for flow, of_flow in names.items():
        matches = matches | ((F.col("flow") == flow) & F.col("topic").isin(*of_flow))
    return matches


def realign(digests: DataFrame, spans: DataFrame) -> DataFrame:
    """Digest rows with the buckets their records have by now; without those that have none.

    Cuts are only ever taken away where records were digested, so a row lies in one bucket.

    :param digests: :data:`frames.digest.COLUMNS`, maybe with others.
    :param spans: :data:`SPANS_SCHEMA` of all logs that are cut by offsets.
    """
    return _cut(digests, spans, "off_min").drop("cut", "label").filter(F.col("bucket").isNotNull())


def _cut(rows: DataFrame, spans: DataFrame, offset: str) -> DataFrame:
    """Rows with the buckets of the spans their offsets lie in, where their log is ``cut``."""
    block = F.expr(f"sequence(span_start div {BLOCK}, (span_end - 1) div {BLOCK})")
    blocks = spans.filter("span_start < span_end").select(
        *(F.col(name).alias(f"span_{name}") for name in PARTITION),
        "span_start",
        "span_end",
        "label",
        F.explode(block).alias("span_block"),
    )
    # An equality lets Spark hash the spans, where comparisons alone would try each of them.
    within = [
        *(F.col(name) == F.col(f"span_{name}") for name in PARTITION),
        F.expr(f"{offset} div {BLOCK}") == F.col("span_block"),
        F.col(offset) >= F.col("span_start"),
        F.col(offset) < F.col("span_end"),
    ]
    cut = spans.groupBy(*PARTITION).agg(F.lit(True).alias("cut"))
    return (
        rows.join(F.broadcast(blocks), on=within, how="left")
        .select(*rows.columns, "label")
        .join(F.broadcast(cut), on=list(PARTITION), how="left")
        .withColumn("bucket", F.when(F.col("cut"), F.col("label")).otherwise(F.col("bucket")))
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


def extents(
    session: SparkSession, digests: DataFrame, rows: Iterable[Mapping[str, Any]]
) -> dict[Key, list[dict[str, Any]]]:
    """Bucket -> where its digested records lie, by partition, and how many (``n``).

    :param digests: with lanes.
    :param rows: of the buckets.
    """
    named = list(rows)
    of_buckets: dict[Key, list[dict[str, Any]]] = {bucket_key(row): [] for row in named}
    grouped = (
        digests.join(compare.some_buckets(session, named), on=list(BUCKET), how="left_semi")
        .groupBy(*BUCKET, "side", "origin", "partition")
        .agg(
            F.min("off_min").alias("off_min"),
            F.max("off_max").alias("off_max"),
            F.sum("n").alias("n"),
        )
    )
    for row in grouped.collect():
        of_buckets[bucket_key(row.asDict())].append(row.asDict())
    return of_buckets


def bounded(
    session: SparkSession,
    records: DataFrame,
    extents: Iterable[Mapping[str, Any]],
    following: Mapping[Key, int] | None,
) -> DataFrame:
    """Records that the digests of some buckets stand for, and those that are new.

    One read serves many buckets; what it meets of a bucket beside that was sealed before.

    :param records: with lanes and buckets.
    :param extents: rows of :data:`EXTENTS_SCHEMA`.
    :param following: partition -> first offset that is new; one that is not named is all new;
        ``None``: nothing is.
    """
    where = (*BUCKET, "side", "origin", "partition")
    rows = [{name: row[name] for name in (*where, "off_min", "off_max")} for row in extents]
    bounds = F.broadcast(table(session, EXTENTS_SCHEMA, rows))
    joined = records.join(bounds, on=list(where), how="left")
    digested = F.coalesce(F.col("offset").between(F.col("off_min"), F.col("off_max")), F.lit(False))
    if following is None:
        return joined.filter(digested).drop("off_min", "off_max")
    ends = table(
        session, FOLLOWING_SCHEMA,
        [{**dict(zip(PARTITION, log, strict=True)), "following": offset}
         for log, offset in following.items()],
    )  # fmt: skip
    return (
        joined.join(F.broadcast(ends), on=list(PARTITION), how="left")
        .filter(digested | (F.col("offset") >= F.coalesce("following", F.lit(0))))
        .drop("off_min", "off_max", "following")
    )
