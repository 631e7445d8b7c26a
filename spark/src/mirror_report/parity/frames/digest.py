"""Additive digests: one row says what a bucket of records holds, and rows add up.

Two digests of disjoint ranges merge into exactly the digest of both, whatever the cut, so a run
reads only what is new. Sums of 64-bit hashes are kept as two 32-bit halves: a plain ``sum`` would
overflow under ANSI, which is Spark's default, and a decimal costs half as much again.
"""

from functools import reduce

from pyspark.sql import DataFrame

from mirror_report.parity.frames import fingerprint
from mirror_report.parity.frames.sql import derived, named

# A record: ``topic`` is the name on the target, ``origin`` the name where it was read.
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
    "n_replaced",
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

# A function with a lambda would count them too, but Spark compiles no stage with one.
HEADER_BYTES = (
    "octet_length(array_join(headers.key, ''))"
    " + octet_length(array_join(cast(headers.value as array<string>), ''))"
)

LOW_32 = 0xFFFFFFFF
LOW_24 = 0xFFFFFF
LOW_39 = (1 << 39) - 1


def digest(records: DataFrame) -> DataFrame:
    """Digest records. Out: :data:`COLUMNS`, O(buckets) rows.

    :param records: :data:`RECORD_COLUMNS`, :func:`frames.align.place`.
    """
    # 24 bits of hash times 39 bits of offset stay below 2**63: no overflow under ANSI.
    weight = f"(h1 & {LOW_24})"
    hashed = records.select(
        *KEYS,
        "offset",
        fingerprint.record_hash(1).alias("h1"),
        fingerprint.record_hash(2).alias("h2"),
        fingerprint.has_replaced_key().alias("replaced"),
        *named(
            {
                # What is not cut by the records' times has the time its bucket is called by.
                "ts": "coalesce(compared_ms, bucket)",
                "key_length": "cast(length(key) as bigint)",
                "value_length": "cast(length(value) as bigint)",
                "header_length": f"coalesce(cast({HEADER_BYTES} as bigint), 0L)",
            }
        ),
    )
    texts = {
        "n": "count(1)",
        **_halves("s1", "h1"),
        **_halves("s2", "h2"),
        **_halves("order", f"{weight} * (offset & {LOW_39})"),
        "order_weight": f"sum({weight})",
        "x1": "bit_xor(h1)",
        "x2": "bit_xor(h2)",
        "key_bytes": "coalesce(sum(key_length), 0)",
        "value_bytes": "coalesce(sum(value_length), 0)",
        "header_bytes": "sum(header_length)",
        "tombstones": "count_if(value_length is null)",
        "n_null_key": "count_if(key_length is null)",
        "n_replaced": "count_if(replaced)",
        "off_min": "min(offset)",
        "off_max": "max(offset)",
        "ts_min": "min(ts)",
        "ts_max": "max(ts)",
    }
    return normalise(hashed.groupBy(*KEYS).agg(*named(texts)), SUMS_64).select(*COLUMNS)


def merge(digests: DataFrame) -> DataFrame:
    """Add up digests. In: :data:`COLUMNS` of disjoint ranges; out: one row per key."""
    kinds = {
        **dict.fromkeys(COUNTS, "sum"),
        **{f"{name}_{half}": "sum" for name in SUMS_64 for half in ("lo", "hi")},
        **dict.fromkeys(XORS, "bit_xor"),
        **dict.fromkeys(MINIMA, "min"),
        **dict.fromkeys(MAXIMA, "max"),
    }
    merged = named({name: f"{kind}({name})" for name, kind in kinds.items()})
    return normalise(digests.groupBy(*KEYS).agg(*merged), SUMS_64).select(*COLUMNS)


def normalise(frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Carry from the low into the high half of each 64-bit sum, modulo 2**64.

    :param names: sums held as ``<name>_lo`` and ``<name>_hi``.
    """
    low = {f"{name}_lo": f"{name}_lo & {LOW_32}" for name in names}
    high = {
        f"{name}_hi": f"({name}_hi + shiftrightunsigned({name}_lo, 32)) & {LOW_32}"
        for name in names
    }
    return derived(frame, low | high)


def union(frames: list[DataFrame]) -> DataFrame:
    """All rows of frames that have the same columns."""
    return reduce(DataFrame.unionByName, frames)


def _halves(name: str, value: str) -> dict[str, str]:
    return {
        f"{name}_lo": f"sum(({value}) & {LOW_32})",
        f"{name}_hi": f"sum(shiftrightunsigned({value}, 32))",
    }
