"""Which records are held against which: the bucket of a record, and whether its time is compared.

Both sides of a mirror are cut into buckets that must hold the same records. Where the target keeps
the timestamps of the source, a bucket is a span of time, and the timestamp is part of what has to
be the same. A topic at rest can be cut by the hash of its records instead.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import fingerprint

PLACE = ("bucket", "compared_ms")
"""What :func:`place` adds: start of the bucket in milliseconds, and the timestamp in milliseconds
as far as it has to be the same on both sides (null: it is not compared)."""


def place(records: DataFrame, bucket_ms: int) -> DataFrame:
    """Give records their buckets.

    :param records: :data:`mirror_report.parity.digest.RECORD_COLUMNS`, maybe with others.
    :param bucket_ms: width of a time bucket.
    :returns: the records with :data:`PLACE`.
    """
    time = fingerprint.timestamp_ms()
    return records.withColumns(
        {"bucket": time - F.pmod(time, F.lit(bucket_ms)), "compared_ms": time}
    )


def place_by_hash(records: DataFrame, untimed: Collection[str], buckets: int) -> DataFrame:
    """Give records of topics at rest their buckets, by what they hold.

    :param records: :data:`mirror_report.parity.digest.RECORD_COLUMNS`, maybe with others.
    :param untimed: topics (by their names on the target) whose timestamps are not compared.
    :param buckets: how many.
    :returns: the records with :data:`PLACE`; a bucket is a number below ``buckets``.
    """
    time = F.when(~F.col("topic").isin(*untimed), fingerprint.timestamp_ms())
    compared = records.withColumn("compared_ms", time)
    return compared.withColumn("bucket", F.pmod(fingerprint.record_hash(1), F.lit(buckets)))
