"""Records as plain tuples, the same ones as a DataFrame, and oracles that know no Spark."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mirror_report.parity import alignment

MINUTE = 60_000
MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
SCHEMA = (
    "flow string, side string, topic string, origin string, partition int, offset bigint, "
    "key binary, value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)

KEPT = "kept"
"""How flows begin whose mirror keeps partitions."""

Headers = tuple[tuple[str, bytes | None], ...] | None
Content = tuple[bytes | None, bytes | None, int, Headers]
"""Key, value, timestamp in milliseconds, headers."""


@dataclass(frozen=True)
class Record:
    """One record of one case; cases share a DataFrame, ``flow`` keeps them apart."""

    flow: str
    side: str
    partition: int
    offset: int
    content: Content
    topic: str = "t"

    @property
    def bucket(self) -> int:
        """Start of the minute it belongs to."""
        return self.content[2] - self.content[2] % MINUTE

    @property
    def where(self) -> tuple[str, int, int]:
        """Flow, lane and bucket: what it is compared with."""
        lane = self.partition if self.flow.startswith(KEPT) else -1
        return self.flow, lane, self.bucket


def jars_directory() -> Path | None:
    """Where the lab keeps Spark's jars; none before `make bootstrap`."""
    cache = os.environ.get("MIRROR_LAB_CACHE") or str(
        Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "kafka-mirror-lab"
    )
    found = Path(cache) / "jars"
    return found if any(found.glob("spark-sql-kafka*.jar")) else None


def frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    rows = [
        (
            one.flow,
            one.side,
            one.topic,
            one.topic,
            one.partition,
            one.offset,
            None if one.content[0] is None else bytearray(one.content[0]),
            None if one.content[1] is None else bytearray(one.content[1]),
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=one.content[2]),
            None
            if one.content[3] is None
            else [
                (name, None if value is None else bytearray(value))
                for name, value in one.content[3]
            ],
        )
        for one in records
    ]
    return spark.createDataFrame(rows, SCHEMA)


def placed(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """The records with their buckets, minutes."""
    return alignment.place(frame(spark, records), MINUTE)


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 as its specification writes it."""
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while at <= size - 32:
            for lane in range(4):
                word = int.from_bytes(data[at : at + 8], "little")
                lanes[lane] = _rotl((lanes[lane] + word * P2) & MASK, 31) * P1 & MASK
                at += 8
        shifts = (1, 7, 12, 18)
        hashed = sum(_rotl(v, s) for v, s in zip(lanes, shifts, strict=True)) & MASK
        for lane in lanes:
            hashed = ((hashed ^ (_rotl(lane * P2 & MASK, 31) * P1 & MASK)) * P1 + P4) & MASK
    else:
        hashed = (seed + P5) & MASK
    hashed = (hashed + size) & MASK
    while at <= size - 8:
        word = int.from_bytes(data[at : at + 8], "little")
        hashed ^= _rotl(word * P2 & MASK, 31) * P1 & MASK
        hashed = (_rotl(hashed, 27) * P1 + P4) & MASK
        at += 8
    if at <= size - 4:
        hashed ^= int.from_bytes(data[at : at + 4], "little") * P1 & MASK
        hashed = (_rotl(hashed, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        hashed ^= byte * P5 & MASK
        hashed = _rotl(hashed, 11) * P1 & MASK
    hashed = ((hashed ^ (hashed >> 33)) * P2) & MASK
    hashed = ((hashed ^ (hashed >> 29)) * P3) & MASK
    return hashed ^ (hashed >> 32)


def record_hash(content: Content, seed: int) -> int:
    """The canonical encoding: each field's hash is the seed of the next, nulls are passed over."""
    key, value, timestamp, headers = content
    mask = (key is None) + 2 * (value is None) + 4 * (headers is None)
    parts: list[bytes | None] = [
        seed.to_bytes(4, "little"),
        mask.to_bytes(4, "little"),
        key,
        value,
        timestamp.to_bytes(8, "little", signed=True),
        (-1 if headers is None else len(headers)).to_bytes(4, "little", signed=True),
    ]
    for name, text in headers or ():
        parts += [name.encode(), text]
    hashed = 42
    for part in parts:
        if part is not None:
            hashed = xxh64(part, hashed)
    return hashed


def digests(records: Iterable[Record]) -> dict[tuple[str, str, int, int], dict[str, int]]:
    """(flow, side, partition, bucket) -> the digest row, by plain arithmetic."""
    groups: dict[tuple[str, str, int, int], list[Record]] = defaultdict(list)
    for one in records:
        groups[one.flow, one.side, one.partition, one.bucket].append(one)
    found = {}
    for key, members in groups.items():
        row = Counter[str]()
        xors = [0, 0]
        for one in members:
            h1, h2 = record_hash(one.content, 1), record_hash(one.content, 2)
            weight = h1 & 0xFFFFFF
            row.update(
                n=1,
                s1=h1,
                s2=h2,
                order=weight * (one.offset & ((1 << 39) - 1)),
                order_weight=weight,
                key_bytes=len(one.content[0] or b""),
                value_bytes=len(one.content[1] or b""),
                header_bytes=sum(
                    len(name.encode()) + len(text or b"") for name, text in one.content[3] or ()
                ),
                tombstones=int(one.content[1] is None),
                n_null_key=int(one.content[0] is None),
            )
            xors[0] ^= h1
            xors[1] ^= h2
        offsets = [one.offset for one in members]
        times = [one.content[2] for one in members]
        found[key] = {
            **{name: value & MASK for name, value in row.items()},
            "x1": xors[0],
            "x2": xors[1],
            "off_min": min(offsets),
            "off_max": max(offsets),
            "ts_min": min(times),
            "ts_max": max(times),
        }
    return found


def classes(
    records: Iterable[Record], positions: dict[tuple[str, int], int]
) -> dict[tuple[str, int, int], dict[str, int]]:
    """(flow, lane, bucket) -> count of each class, by multisets.

    :param positions: (flow, source partition) -> next offset to mirror.
    """
    below: dict[tuple[str, int, int], Counter[Content]] = defaultdict(Counter)
    source: dict[tuple[str, int, int], Counter[Content]] = defaultdict(Counter)
    target: dict[tuple[str, int, int], Counter[Content]] = defaultdict(Counter)
    for one in records:
        where = one.where
        if one.side == "target":
            target[where][one.content] += 1
            continue
        source[where][one.content] += 1
        if one.offset < positions.get((one.flow, one.partition), 0):
            below[where][one.content] += 1
    found = {}
    for where in source.keys() | target.keys():
        missing = below[where] - target[where]
        surplus = target[where] - source[where]
        duplicate = Counter({c: n for c, n in surplus.items() if source[where][c]})
        extra = surplus - duplicate
        lost, foreign = (
            Counter[tuple[bytes | None, int]](),
            Counter[tuple[bytes | None, int]](),
        )
        for content, count in missing.items():
            lost[content[0], content[2]] += count
        for content, count in extra.items():
            foreign[content[0], content[2]] += count
        corrupt = (lost & foreign).total()
        in_flight = (source[where] - target[where]).total() - missing.total()
        found[where] = {
            "missing": missing.total() - corrupt,
            "duplicate": duplicate.total(),
            "corrupt_value": corrupt,
            "extra": extra.total() - corrupt,
            "in_flight": in_flight,
        }
    return found


def _rotl(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & MASK
