"""Which records of a read the digests of some buckets stand for."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET, PARTITION, Key
from mirror_report.parity.frames.compare import BUCKET_SCHEMA
from mirror_report.parity.frames.tables import table

SCHEMA = (
    f"{BUCKET_SCHEMA}, side string, origin string, partition int, off_min bigint, off_max bigint"
)
"""Extent of one bucket in one partition: offsets, both inclusive."""
FOLLOWING_SCHEMA = "flow string, side string, origin string, partition int, following bigint"
"""How far each partition was digested."""


def bounded(
    session: SparkSession,
    records: DataFrame,
    extents: Iterable[Mapping[str, Any]],
    following: Mapping[Key, int] | None,
) -> DataFrame:
    """Records that the digests of some buckets stand for, and those that are new.

    One read serves many buckets; what it meets of a bucket beside that was sealed before.

    :param records: with lanes and buckets.
    :param extents: rows of :data:`SCHEMA`.
    :param following: partition -> first offset that is new; one that is not named is all new;
        ``None``: nothing is.
    """
    names = (*BUCKET, "side", "origin", "partition", "off_min", "off_max")
    bounds = table(session, SCHEMA, [{name: extent[name] for name in names} for extent in extents])
    found = records.join(
        F.broadcast(bounds), on=[*BUCKET, "side", "origin", "partition"], how="left"
    )
    digested = F.coalesce(F.col("offset").between(F.col("off_min"), F.col("off_max")), F.lit(False))
    if following is None:
        return found.filter(digested).drop("off_min", "off_max")
    ends = table(
        session, FOLLOWING_SCHEMA,
        [{**dict(zip(PARTITION, where, strict=True)), "following": offset}
         for where, offset in following.items()],
    )  # fmt: skip
    new = F.col("offset") >= F.coalesce(F.col("following"), F.lit(0))
    return (
        found.join(F.broadcast(ends), on=list(PARTITION), how="left")
        .filter(digested | new)
        .drop("off_min", "off_max", "following")
    )
