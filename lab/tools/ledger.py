"""Records as the lab makes them, the log of acknowledged ones, and the comparison of both sides.

No Kafka client is imported here. Records are compared by a checksum over the whole record, as
multisets, without regard to keys, offsets or order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Headers = tuple[tuple[str, bytes | None], ...]

SEQUENCE_HEADER = "sequence"
SEQUENCE = re.compile(rb"[0-9a-f]{8}-\d+-\d+")
SAMPLES = 5
KINDS = 20
"""Of records; the first :data:`PLAIN_KINDS` have no headers."""
PLAIN_KINDS = 14
KEYS = 1000
# Values are slices of one random pool: incompressible, and far cheaper than new random bytes.
POOL = b"".join(hashlib.blake2b(b"%d" % n).digest() for n in range(2048))


@dataclasses.dataclass(frozen=True)
class Record:
    """One record without its place: what has to arrive byte for byte."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclasses.dataclass(frozen=True)
class Acknowledged:
    """One line of the log: a record that the source cluster has acknowledged."""

    sequence: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    checksum: str


@dataclasses.dataclass(frozen=True)
class Found:
    """One record read back from a cluster."""

    topic: str
    partition: int
    offset: int
    sequence: str | None
    checksum: str


def checksum(record: Record) -> str:
    """Hex blake2b-128 over key, value, headers in their order, and timestamp; null is not empty."""
    digest = hashlib.blake2b(digest_size=16)
    parts: list[bytes | None] = [record.key, record.value]
    for name, value in record.headers:
        parts += [name.encode(), value]
    digest.update(struct.pack(">qi", record.timestamp_ms, len(record.headers)))
    for part in parts:
        digest.update(struct.pack(">i", -1 if part is None else len(part)))
        digest.update(part or b"")
    return digest.hexdigest()


def make(sequence: str, number: int, timestamp_ms: int) -> Record:
    """Build the record of one sequence number; twenty kinds in turn, about 1.2 KiB on average.

    Keyed and null keys, 100 B to 8 KiB, headers (null, empty, binary, repeated names),
    tombstones and empty values. Every record names its sequence in its value or in a header.

    :param sequence: ``<run>-<process>-<number>``.
    :param number: chooses the kind, the key and the bytes.
    """
    kind = number % KINDS
    key: bytes | None = b"key-%04d" % (number // KINDS % KEYS)
    headers: Headers = ()
    start = number * 7919 % (len(POOL) // 2)
    mark = sequence.encode()
    size = 1024
    if kind in {10, 11, 12, 13}:
        key = None
        size = (300, 1024, 2048, 4096)[kind - 10]
    elif kind == 14:
        headers = (("trace", mark), ("content-type", b"application/octet-stream"))
    elif kind == 15:
        headers = (
            ("null", None),
            ("empty", b""),
            ("binary", bytes(range(256))),
            ("repeated", b"first"),
            ("repeated", b"second"),
            ("", b"empty name"),
        )
    elif kind == 16:
        return Record(key, None, ((SEQUENCE_HEADER, mark),), timestamp_ms)
    elif kind == 17:
        return Record(key, b"", ((SEQUENCE_HEADER, mark),), timestamp_ms)
    elif kind == 18:
        size = 100
    elif kind == 19:
        size = 8192
    elif kind == 9:
        key = b""
    value = mark + b" " + POOL[start : start + size - len(mark) - 1]
    return Record(key, value, headers, timestamp_ms)


def sequence_of(record: Record) -> str | None:
    """Read the sequence a record claims to have, or None for a record of another producer."""
    candidates = [value for name, value in record.headers if name == SEQUENCE_HEADER]
    if record.value:
        candidates.append(record.value[:64].partition(b" ")[0])
    for candidate in candidates:
        if candidate and SEQUENCE.fullmatch(candidate):
            return candidate.decode()
    return None


def to_line(entry: Acknowledged) -> str:
    """Write one entry as a tab-separated line; the key is hex, ``-`` is a null key."""
    key = "-" if entry.key is None else entry.key.hex()
    fields: tuple[Any, ...] = (
        entry.sequence,
        entry.topic,
        entry.partition,
        entry.offset,
        entry.timestamp_ms,
        key,
        entry.checksum,
    )
    return "\t".join(str(field) for field in fields) + "\n"


def from_lines(lines: Iterable[str]) -> Iterator[Acknowledged]:
    """Read log lines back; a last line without its newline is still being written and is skipped.

    :raises ValueError: a complete line in another format.
    """
    for line in lines:
        if not line.endswith("\n"):
            continue
        sequence, topic, partition, offset, timestamp_ms, key, sum_ = line[:-1].split("\t")
        yield Acknowledged(
            sequence,
            topic,
            int(partition),
            int(offset),
            int(timestamp_ms),
            None if key == "-" else bytes.fromhex(key),
            sum_,
        )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What one topic holds against what was acknowledged for it."""

    topic: str
    acknowledged: int
    found: int
    lost: int
    duplicated: int
    altered: int
    foreign: int
    moved: int
    samples: Mapping[str, list[str]]

    @property
    def whole(self) -> bool:
        """Nothing lost, altered or foreign; copies may be there more than once, and anywhere."""
        return not (self.lost or self.altered or self.foreign)


def compare(
    topics: Iterable[str], acknowledged: Iterable[Acknowledged], found: Iterable[Found]
) -> list[Comparison]:
    """Compare acknowledged records with found ones, topic by topic.

    ``lost``: acknowledged and not there; ``duplicated``: copies beyond the acknowledged number;
    ``altered``: there under the sequence of a lost one with other bytes (not counted as lost);
    ``foreign``: anything else that is there; ``moved``: copies in a partition other than the one
    that was acknowledged.
    """
    wanted: dict[str, Counter[str]] = defaultdict(Counter)
    places: set[tuple[str, int, str]] = set()
    moved: Counter[str] = Counter()
    sequences: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in acknowledged:
        wanted[entry.topic][entry.checksum] += 1
        places.add((entry.topic, entry.partition, entry.checksum))
        sequences[entry.topic][entry.checksum] = entry.sequence
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    strangers: dict[str, list[Found]] = defaultdict(list)
    for record in found:
        seen[record.topic][record.checksum] += 1
        if record.checksum not in wanted[record.topic]:
            strangers[record.topic].append(record)
        elif (record.topic, record.partition, record.checksum) not in places:
            moved[record.topic] += 1
    return [
        _compare_topic(
            topic, wanted[topic], sequences[topic], seen[topic], strangers[topic], moved[topic]
        )
        for topic in topics
    ]


def _compare_topic(
    topic: str,
    wanted: Counter[str],
    sequences: Mapping[str, str],
    seen: Counter[str],
    strangers: Iterable[Found],
    moved: int,
) -> Comparison:
    missing = wanted - seen
    missing_sequences = {sequences[sum_] for sum_ in missing}
    altered: list[Found] = []
    foreign: list[Found] = []
    for record in strangers:
        if record.sequence in missing_sequences:
            missing_sequences.discard(record.sequence)
            altered.append(record)
        else:
            foreign.append(record)
    altered_sequences = {record.sequence for record in altered}
    duplicated = {sum_: n - wanted[sum_] for sum_, n in seen.items() if n > wanted[sum_] > 0}
    lost = {sum_: n for sum_, n in missing.items() if sequences[sum_] not in altered_sequences}
    return Comparison(
        topic=topic,
        acknowledged=wanted.total(),
        found=seen.total(),
        lost=sum(lost.values()),
        duplicated=sum(duplicated.values()),
        altered=len(altered),
        foreign=len(foreign),
        moved=moved,
        samples={
            "lost": [sequences[sum_] for sum_ in lost][:SAMPLES],
            "duplicated": [sequences[sum_] for sum_ in duplicated][:SAMPLES],
            "altered": [_place(record) for record in altered[:SAMPLES]],
            "foreign": [_place(record) for record in foreign[:SAMPLES]],
        },
    )


def _place(record: Found) -> str:
    return f"{record.topic}-{record.partition}@{record.offset} ({record.sequence})"
