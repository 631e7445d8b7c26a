"""Records as plain tuples, the same ones as a DataFrame, and reference results without Spark."""

from __future__ import annotations

import os
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from mirror_report.model import TopicParity
from mirror_report.parity.frames import align
from mirror_report.parity.state import Widths

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
            record.flow,
            record.side,
            record.topic,
            record.topic,
            record.partition,
            record.offset,
            None if record.content[0] is None else bytearray(record.content[0]),
            None if record.content[1] is None else bytearray(record.content[1]),
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=record.content[2]),
            None
            if record.content[3] is None
            else [
                (name, None if value is None else bytearray(value))
                for name, value in record.content[3]
            ],
        )
        for record in records
    ]
    return spark.createDataFrame(rows, SCHEMA)


def placed(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """The records with their buckets, minutes."""
    return align.place(frame(spark, records), Widths(MINUTE))


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
    if headers is not None:
        for null in (b"A", b"B"):
            parts.append(b"\x01".join(null if text is None else text for _, text in headers))
    hashed = 42
    for part in parts:
        if part is not None:
            hashed = xxh64(part, hashed)
    return hashed


def forged(content: Content) -> bytes:
    """Another value of at least 64 bytes with which a record has the same fingerprint.

    The top bit of a word can be turned over with a known effect on the lane, which a word of the
    next stripe takes back, wherever both seeds have the same bit there.
    """
    key, value, _, headers = content
    assert value is not None
    mask = 4 * (headers is None) + (key is None)
    lanes = []
    for number in (1, 2):
        seed = xxh64(mask.to_bytes(4, "little"), xxh64(number.to_bytes(4, "little"), 42))
        seed = seed if key is None else xxh64(key, seed)
        lanes.append([(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK])
    size = len(value) // 8
    words = list(struct.unpack_from(f"<{size}Q", value))
    for at in range(4 * (len(value) // 32 - 1)):
        sums = [(own[at % 4] + words[at] * P2) & MASK for own in lanes]
        tops = {each >> 63 for each in sums}
        if len(tops) == 1:
            change = (P1 << 30) * (-1 if tops == {1} else 1)
            words[at] ^= 1 << 63
            words[at + 4] = (words[at + 4] - change * pow(P2, -1, 1 << 64)) & MASK
            return struct.pack(f"<{size}Q", *words) + value[8 * size :]
        for own, each in zip(lanes, sums, strict=True):
            own[at % 4] = _rotl(each, 31) * P1 & MASK
    raise AssertionError("no word has the same top bit under both seeds")


def digests(records: Iterable[Record]) -> dict[tuple[str, str, int, int], dict[str, int]]:
    """(flow, side, partition, bucket) -> the digest row, by plain arithmetic."""
    groups: dict[tuple[str, str, int, int], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.flow, record.side, record.partition, record.bucket].append(record)
    found = {}
    for key, members in groups.items():
        row = Counter[str]()
        xors = [0, 0]
        for record in members:
            h1, h2 = record_hash(record.content, 1), record_hash(record.content, 2)
            weight = h1 & 0xFFFFFF
            row.update(
                n=1,
                s1=h1,
                s2=h2,
                order=weight * (record.offset & ((1 << 39) - 1)),
                order_weight=weight,
                key_bytes=len(record.content[0] or b""),
                value_bytes=len(record.content[1] or b""),
                header_bytes=sum(
                    len(name.encode()) + len(text or b"") for name, text in record.content[3] or ()
                ),
                tombstones=int(record.content[1] is None),
                n_null_key=int(record.content[0] is None),
                n_replaced=int(any("\ufffd" in name for name, _ in record.content[3] or ())),
            )
            xors[0] ^= h1
            xors[1] ^= h2
        offsets = [record.offset for record in members]
        times = [record.content[2] for record in members]
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


Where = tuple[str, int, int]
"""Flow, lane and bucket."""
Heap = dict[tuple[Where, Content], int]
"""How many records of a content are left over, and where."""

STAGES: dict[str, Callable[[Where, Content], object]] = {
    "moved": lambda where, content: (where[0], content),
    "altered_timestamp": lambda where, content: (where[:2], content[0], content[1], content[3]),
    "corrupt_headers": lambda where, content: (where, content[0], content[1], content[2]),
    "corrupt_value": lambda where, content: (where, content[0], content[2]),
}
"""Class of a pair of leftovers -> what both agree in; the first that fits counts."""


def classes(
    records: Iterable[Record], positions: dict[tuple[str, int], int]
) -> dict[Where, dict[str, int]]:
    """(flow, lane, bucket) -> count of each class, by multisets and sequences.

    :param positions: (flow, source partition) -> next offset to mirror.
    """
    records = list(records)
    below: dict[Where, Counter[Content]] = defaultdict(Counter)
    logs: dict[str, dict[Where, list[Record]]] = {"source": defaultdict(list),
                                                  "target": defaultdict(list)}  # fmt: skip
    for record in records:
        logs[record.side][record.where].append(record)
        if record.side == "source" and record.offset < positions.get(
            (record.flow, record.partition), 0
        ):
            below[record.where][record.content] += 1
    lost: Heap = {}
    foreign: Heap = {}
    found: dict[Where, dict[str, int]] = {}
    for where in logs["source"].keys() | logs["target"].keys():
        source, target = (
            Counter(record.content for record in logs[side][where]) for side in ("source", "target")
        )
        missing, surplus = below[where] - target, target - source
        lost |= {(where, content): count for content, count in missing.items()}
        foreign |= {
            (where, content): count for content, count in surplus.items() if not source[content]
        }
        found[where] = dict.fromkeys((*STAGES, "missing", "extra"), 0) | {
            "duplicate": sum(count for content, count in surplus.items() if source[content]),
            "reordered": late(logs["source"][where], logs["target"][where]),
            "in_flight": (source - target).total() - missing.total(),
        }
    reach = neighbours(logs, below)
    places = {
        (record.where, record.content): record.offset
        for record in sorted(records, key=lambda record: -record.offset)
        if record.side == "target" and keeps(record.where)
    }
    for name, agree in STAGES.items():
        pairs = (
            paired_within(lost, foreign, agree, reach, places) if name == "altered_timestamp"
            else paired(lost, foreign, agree)
        )  # fmt: skip
        for where, count in pairs:
            found[where][name] += count
    for name, heap in (("missing", lost), ("extra", foreign)):
        for (where, _), count in heap.items():
            found[where][name] += count
    return found


def paired(
    lost: Heap, foreign: Heap, agree: Callable[[Where, Content], object]
) -> list[tuple[Where, int]]:
    """Take pairs off both heaps, and say how many of them were lost where."""
    heaps = [dict[object, list[tuple[Where, Content]]](), dict[object, list[Any]]()]
    for heap, by_agreement in zip((lost, foreign), heaps, strict=True):
        for where, content in sorted(heap, key=_pairing_order):
            by_agreement.setdefault(agree(where, content), []).append((where, content))
    taken = []
    for agreement, some in heaps[0].items():
        others = heaps[1].get(agreement, [])
        pairs = min(
            sum(lost[leftover] for leftover in some), sum(foreign[leftover] for leftover in others)
        )
        for heap, members in ((lost, some), (foreign, others)):
            rest = pairs
            for leftover in members:
                count = min(rest, heap[leftover])
                heap[leftover] -= count
                rest -= count
                if heap is lost:
                    taken.append((leftover[0], count))
    return taken


Reach = dict[tuple[Where, Content], tuple[int, int]]
"""Records of a content -> from where on and before where their copies lie on the target."""


def keeps(where: Where) -> bool:
    """Whether the mirror keeps partitions."""
    return where[0].startswith(KEPT)


def neighbours(
    logs: dict[str, dict[Where, list[Record]]], below: dict[Where, Counter[Content]]
) -> Reach:
    """Where copies lie, by the outermost records of each bucket that are on both sides once."""
    anchors: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for where, source in logs["source"].items():
        target = logs["target"][where]
        ones = [Counter(record.content for record in some) for some in (source, target)]
        displaced = out_of_order(source, target)
        copies = {record.content: record.offset for record in target}
        both = sorted(
            (record.offset, copies[record.content])
            for record in source
            if all(counted[record.content] == 1 for counted in ones)
            and record.content not in displaced
        )
        anchors[where[:2]] += {*both[:1], *both[-1:]} if keeps(where) else ()
    reach: Reach = {}
    for where, source in logs["source"].items():
        for content in below[where]:
            at = [record.offset for record in source if record.content == content]
            before = [pair for pair in anchors[where[:2]] if pair[0] < min(at)]
            after = [pair for pair in anchors[where[:2]] if pair[0] > max(at)]
            reach[where, content] = (
                max(before)[1] + 1 if before else 0,
                min(after)[1] if after else 1 << 62,
            )
    return reach


def paired_within(
    lost: Heap,
    foreign: Heap,
    agree: Callable[[Where, Content], object],
    reach: Reach,
    places: dict[tuple[Where, Content], int],
) -> list[tuple[Where, int]]:
    """The same, but that what is foreign has to be in the reach of what is lost.

    :param places: where the first of each foreign content is; 0: where order says nothing.
    """
    taken = []
    for agreement in {agree(*leftover) for leftover in lost}:
        own, others = (
            [leftover for leftover in sorted(heap, key=_pairing_order)
             if agree(*leftover) == agreement and heap[leftover]]
            for heap in (lost, foreign)
        )  # fmt: skip
        at = {each: places.get(each, 0) for each in others}
        ends = {each: reach[each][1] - 1 for each in own}
        waiting: dict[tuple[Where, Content], int] = {}
        alike: Counter[tuple[int, int]] = Counter()
        for each in own:
            there = sum(foreign[o] for o in others if reach[each][0] <= at[o] <= ends[each])
            waiting[each] = max(0, min(lost[each], there - alike[reach[each]]))
            alike[reach[each]] += lost[each]
        usable = {
            each: foreign[each] for each in others
            if any(waiting[o] and reach[o][0] <= at[each] <= ends[o] for o in own)
        }  # fmt: skip
        where = ends | at
        for heap, mine, theirs, sign in (
            (lost, waiting, usable, 1), (foreign, usable, waiting, -1),
        ):  # fmt: skip
            room = 0
            steps = sorted([*mine, *theirs], key=lambda each: (sign * where[each], each in mine))
            for each in steps:
                if each in theirs:
                    room += theirs[each]
                else:
                    count = min(room, mine[each])
                    room, heap[each] = room - count, heap[each] - count
                    taken += [(each[0], count)] if heap is lost else []
    return taken


def _pairing_order(leftover: tuple[Where, Content]) -> tuple[int, ...]:
    (_, lane, bucket), content = leftover
    hashes = (record_hash(content, seed) for seed in (1, 2))
    return lane, bucket, content[2], *(h - (1 << 64) if h >> 63 else h for h in hashes)


def equal(source: list[Record], target: list[Record]) -> bool:
    """Whether digests of a bucket have to agree: the same records, and no order that differs.

    Order can be told in a partition in which they are the same and lie side by side.
    """
    if Counter(record.content for record in source) != Counter(record.content for record in target):
        return False
    for partition in {record.partition for record in source}:
        first, second = (
            sorted(
                ((r.offset, r.content) for r in some if r.partition == partition),
                key=lambda r: r[0],
            )
            for some in (source, target)
        )
        together = all(
            some and some[-1][0] - some[0][0] + 1 == len(some) for some in (first, second)
        )
        contents = [[content for _, content in some] for some in (first, second)]
        same = Counter(contents[0]) == Counter(contents[1])
        if together and same and contents[0] != contents[1]:
            return False
    return True


def late(source: list[Record], target: list[Record]) -> int:
    """Records of a bucket that come after one they preceded on the source, by first copies."""
    return len(out_of_order(source, target))


def out_of_order(source: list[Record], target: list[Record]) -> set[Content]:
    """What they hold: of equal records that are on both sides as often, the first copies count."""
    copies: dict[Content, tuple[list[Record], list[Record]]] = defaultdict(lambda: ([], []))
    for side, members in enumerate((source, target)):
        for record in members:
            copies[record.content][side].append(record)
    sequences: dict[object, list[tuple[int, int, Content]]] = defaultdict(list)
    for content, (on_source, on_target) in copies.items():
        where = {record.partition for record in on_source}
        if len(where) != 1 or len(on_target) != len(on_source):
            continue
        first = min(on_target, key=lambda record: (record.partition, record.offset))
        keyed = None
        if first.where[1] == -1:
            if content[0] is None:
                continue
            keyed = content[0]
        sequences[*where, first.partition, keyed].append(
            (first.offset, min(record.offset for record in on_source), content)
        )
    found = set()
    for sequence in sequences.values():
        newest = -1
        for _, offset, content in sorted(sequence, key=lambda place: place[:2]):
            if offset < newest:
                found.add(content)
            newest = max(newest, offset)
    return found


def _rotl(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & MASK


def assert_partitions_add_up(topics: Iterable[TopicParity]) -> None:
    """Where a class is reported by partition, its partitions hold all of it."""
    for topic in topics:
        for kind, partitions in topic.partitions.items():
            assert sum(partitions.values()) == topic.counts[kind], (topic.topic, kind, partitions)
