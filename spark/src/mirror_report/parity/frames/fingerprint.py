"""The canonical encoding of a record, hashed twice by Spark's own xxhash64.

A fingerprint covers what a mirror has to keep: key, value, headers and, where the target keeps it,
the timestamp; never the topic name, the partition or the offset. ``xxhash64`` skips nulls and
hashes a null array, an empty one and a null inside alike, hence the null mask and the number of
headers in front of them, and which headers are null behind them.

``xxhash64`` finds faults, not forgers: whoever writes a record can make another of the same hash.
:func:`sha256` is what a proof takes that does not trust the mirror.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name every Spark text uses)


def header_columns() -> tuple[Column, ...]:
    """Columns that stand for the headers in a hash.

    Which values are null: where the texts that join the values with two different stand-ins for
    null differ. Functions with a lambda would say so too, but Spark compiles no stage with one.
    """
    values = F.col("headers.value").cast("array<string>")
    joined = (F.array_join(values, "\x01", null) for null in ("A", "B"))
    return (F.expr("coalesce(size(headers), -1)"), F.col("headers"), *joined)


def record_hash(seed: int) -> Column:
    """One 64-bit hash of a record; seeds 1 and 2 together are its 128-bit fingerprint.

    Input columns: ``key``, ``value`` binary, ``compared_ms`` bigint (null where timestamps are not
    compared), ``headers`` array<struct<key, value>>.
    """
    nulls = F.expr("if(key is null, 1, 0) + if(value is null, 2, 0) + if(headers is null, 4, 0)")
    return F.xxhash64(F.lit(seed), nulls, "key", "value", "compared_ms", *header_columns())


def has_replaced_key() -> Column:
    """Whether a header's key has bytes that are no UTF-8, as far as Java can tell.

    Java's clients, of mirrors as well, read U+FFFD for such bytes and write that: what the bytes
    were is not known on either side.
    """
    keys = F.array_join("headers.key", "")
    return F.coalesce(F.contains(keys, F.lit("\ufffd")), F.lit(False))


def key_hash(seed: int = 1) -> Column:
    """64-bit hash of the key; a null key differs from an empty one."""
    return F.xxhash64(F.lit(seed), F.expr("if(key is null, 1, 0)"), F.col("key"))


def value_hash() -> Column:
    """64-bit hash of the value; a null value differs from an empty one."""
    return F.xxhash64(F.lit(1), F.expr("if(value is null, 1, 0)"), F.col("value"))


def content_hash() -> Column:
    """64-bit hash of all that a record holds but its timestamp."""
    return F.xxhash64(key_hash(), value_hash(), *header_columns())


def timestamp_ms() -> Column:
    """Record timestamp in milliseconds, as Kafka stores it (-1: the record has none)."""
    return F.expr("unix_millis(timestamp)")


def hashes() -> Mapping[str, Column]:
    """Hashes of equal records: ``h1``, ``h2``, ``key_hash``, ``value_hash``, ``content_hash``.

    Input columns: as of :func:`record_hash`.
    """
    return {
        "h1": record_hash(1),
        "h2": record_hash(2),
        "key_hash": key_hash(),
        "value_hash": value_hash(),
        "content_hash": content_hash(),
    }


def sha256() -> Mapping[str, Column]:
    """:func:`hashes`, each a SHA-256 as text; ``h2`` is empty, for ``h1`` says all.

    What is hashed is each field behind its length in eight bytes, all ones for null.
    """
    named = _behind_length("cast(h.key as binary)"), _behind_length("h.value")
    headers = f"unhex(array_join(transform(headers, h -> hex(concat({', '.join(named)}))), ''))"
    key, value, listed = map(_behind_length, ("key", "value", headers))
    time = _behind_length("cast(cast(compared_ms as string) as binary)")
    return {
        "h1": F.sha2(F.expr(f"concat({key}, {value}, {listed}, {time})"), 256),
        "h2": F.lit(""),
        "key_hash": F.sha2(F.expr(key), 256),
        "value_hash": F.sha2(F.expr(value), 256),
        "content_hash": F.sha2(F.expr(f"concat({key}, {value}, {listed})"), 256),
    }


def _behind_length(field: str) -> str:
    size = f"unhex(lpad(hex(octet_length({field})), 16, '0'))"
    return f"coalesce(concat({size}, {field}), unhex('{'f' * 16}'))"


def text(frame: DataFrame, *names: str) -> Column:
    """Hashes of a frame as one text: hexadecimal digits."""
    numbers = {name for name, kind in frame.dtypes if kind == "bigint"}
    return F.concat(*(hex64(F.col(each)) if each in numbers else F.col(each) for each in names))


def hex64(value: Column) -> Column:
    """A 64-bit hash as 16 hexadecimal digits."""
    return F.lower(F.lpad(F.hex(value), 16, "0"))
