"""Where the digested records of a bucket lie, and the records of a read that these are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames import compare
from mirror_report.parity.frames.tables import table

PART = ("flow", "side", "origin", "partition")
SCHEMA = (
    f"{compare.BUCKET_SCHEMA}, side string, origin string, partition int, off_min bigint, "
    "off_max bigint"
)
"""Extent of one bucket in one partition: offsets, both inclusive."""
FOLLOWING_SCHEMA = "flow string, side string, origin string, partition int, following bigint"
"""How far each partition was digested."""

Key = tuple[Any, ...]


def key(row: Mapping[str, Any]) -> Key:
    """What tells a bucket from others."""
    return tuple(row[name] for name in compare.BUCKET)


def part(row: Mapping[str, Any]) -> Key:
    """What tells a partition of one side from others."""
    return tuple(row[name] for name in PART)


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
    names = (*compare.BUCKET, "side", "origin", "partition", "off_min", "off_max")
    bounds = table(session, SCHEMA, [{name: one[name] for name in names} for one in extents])
    found = records.join(
        F.broadcast(bounds), on=[*compare.BUCKET, "side", "origin", "partition"], how="left"
    )
    wanted = F.coalesce(F.col("offset").between(F.col("off_min"), F.col("off_max")), F.lit(False))
    if following is not None:
        ends = table(
            session, FOLLOWING_SCHEMA,
            [{**dict(zip(PART, where, strict=True)), "following": offset}
             for where, offset in following.items()],
        )  # fmt: skip
        found = found.join(F.broadcast(ends), on=list(PART), how="left")
        wanted |= F.col("offset") >= F.coalesce(F.col("following"), F.lit(0))
    return found.filter(wanted).drop("off_min", "off_max", "following")
