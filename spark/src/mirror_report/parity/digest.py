"""Additive digests: one row says what a bucket of records holds, and rows add up.

Two digests of disjoint ranges merge into exactly the digest of both, whatever the cut, so a run
reads only what is new. Sums of 64-bit hashes are kept as two 32-bit halves: a plain ``sum`` would
overflow under ANSI, which is Spark's default, and a decimal costs half as much again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import fingerprint

RECORD_COLUMNS = (
    "flow",
    "side",
    "topic",
    "origin",
    "partition",
    "offset",
    "key",
    "value",
    "timestamp",
    "headers",
)
"""A record: ``topic`` is the name on the target, ``origin`` the name where it was read."""

KEYS = ("flow", "side", "topic", "origin", "partition", "bucket")
SUMS_64 = ("s1", "s2", "order")
XORS = ("x1", "x2")
COUNTS = (
    "n",
    "order_weight",
    "key_bytes",
    "value_bytes",
    "header_bytes",
    "tombstones",
    "n_null_key",
)
MINIMA = ("off_min", "ts_min")
MAXIMA = ("off_max", "ts_max")
COLUMNS = (
    *KEYS,
    *COUNTS,
    *(f"{name}_{half}" for name in SUMS_64 for half in ("lo", "hi")),
    *XORS,
    *MINIMA,
    *MAXIMA,
)

SCHEMA = ", ".join(
    f"{name} {'string' if name in KEYS[:4] else 'int' if name == 'partition' else 'bigint'}"
    for name in COLUMNS
)

LOW_32 = 0xFFFFFFFF
LOW_24 = 0xFFFFFF
LOW_39 = (1 << 39) - 1


def digest(records: DataFrame) -> DataFrame:
    """Digest records. Out: :data:`COLUMNS`, O(buckets) rows.

    :param records: :data:`RECORD_COLUMNS`, :func:`mirror_report.parity.alignment.place`.
    """
    # 24 bits of hash times 39 bits of offset stay below 2**63: no overflow under ANSI.
    weight = F.col("h1").bitwiseAND(LOW_24)
    order = weight * F.col("offset").bitwiseAND(LOW_39)
    hashed = records.select(
        *KEYS,
        "offset",
        # What is not cut by the records' times has the time its bucket is called by.
        F.coalesce("compared_ms", "bucket").alias("ts"),
        fingerprint.record_hash(1).alias("h1"),
        fingerprint.record_hash(2).alias("h2"),
        F.expr("length(key)").cast("bigint").alias("key_length"),
        F.expr("length(value)").cast("bigint").alias("value_length"),
        F.expr(
            "if(headers is null, 0L, aggregate(headers, 0L, (total, header) -> total"
            " + octet_length(header.key) + coalesce(octet_length(header.value), 0)))"
        ).alias("header_length"),
    )
    sums = hashed.groupBy(*KEYS).agg(
        F.count(F.lit(1)).alias("n"),
        *_halves("s1", F.col("h1")),
        *_halves("s2", F.col("h2")),
        *_halves("order", order),
        F.sum(weight).alias("order_weight"),
        F.bit_xor("h1").alias("x1"),
        F.bit_xor("h2").alias("x2"),
        F.coalesce(F.sum("key_length"), F.lit(0)).alias("key_bytes"),
        F.coalesce(F.sum("value_length"), F.lit(0)).alias("value_bytes"),
        F.sum("header_length").alias("header_bytes"),
        F.count_if(F.col("value_length").isNull()).alias("tombstones"),
        F.count_if(F.col("key_length").isNull()).alias("n_null_key"),
        F.min("offset").alias("off_min"),
        F.max("offset").alias("off_max"),
        F.min("ts").alias("ts_min"),
        F.max("ts").alias("ts_max"),
    )
    return normalise(sums, SUMS_64).select(*COLUMNS)


def merge(digests: DataFrame) -> DataFrame:
    """Add up digests. In: :data:`COLUMNS` of disjoint ranges; out: one row per key."""
    kinds: dict[str, Callable[[str], Column]] = {
        **dict.fromkeys(COUNTS, F.sum),
        **{f"{name}_{half}": F.sum for name in SUMS_64 for half in ("lo", "hi")},
        **dict.fromkeys(XORS, F.bit_xor),
        **dict.fromkeys(MINIMA, F.min),
        **dict.fromkeys(MAXIMA, F.max),
    }
    sums = digests.groupBy(*KEYS).agg(*(kind(name).alias(name) for name, kind in kinds.items()))
    return normalise(sums, SUMS_64).select(*COLUMNS)


def normalise(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Carry from the low into the high half of each 64-bit sum, modulo 2**64.

    :param names: sums held as ``<name>_lo`` and ``<name>_hi``.
    """
    carried = {
        column: value
        for name in names
        for column, value in (
            (f"{name}_lo", F.col(f"{name}_lo").bitwiseAND(LOW_32)),
            (
                f"{name}_hi",
                (F.col(f"{name}_hi") + F.shiftrightunsigned(F.col(f"{name}_lo"), 32)).bitwiseAND(
                    LOW_32
                ),
            ),
        )
    }
    return frame.withColumns(carried)


def union(frames: list[DataFrame]) -> DataFrame:
    """All rows of frames that have the same columns."""
    return reduce(DataFrame.unionByName, frames)


def _halves(name: str, value: Column) -> tuple[Column, Column]:
    return (
        F.sum(value.bitwiseAND(LOW_32)).alias(f"{name}_lo"),
        F.sum(F.shiftrightunsigned(value, 32)).alias(f"{name}_hi"),
    )
