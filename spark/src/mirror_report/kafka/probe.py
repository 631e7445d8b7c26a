"""Single records of both sides, fetched to find which of them are the same; bounded.

Nothing of a record is kept but a hash of its key, value and headers.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka.records import consumer
from mirror_report.model import Place

PARTITIONS = 200
"""Partitions probed in one run at most, each with one fetch from either side."""
FETCH_BYTES = 262_144
LOG_APPEND_TIME = 1


@dataclass(frozen=True)
class Seen:
    """One record.

    :param timestamp_ms: ``None``: the broker's own, which no two clusters share.
    """

    offset: int
    content: bytes
    timestamp_ms: int | None

    def same_as(self, other: Seen) -> bool:
        """Whether one may be the copy of the other."""
        if self.content != other.content:
            return False
        stamps = {self.timestamp_ms, other.timestamp_ms}
        return len(stamps) == 1 or None in stamps


def fetch(
    cluster: Cluster,
    credentials: Credentials,
    ranges: Mapping[Place, tuple[int, int]],
    timeout_seconds: float = 5,
) -> dict[Place, list[Seen]]:
    """Records of some ranges, as many as one fetch of each brings.

    :param ranges: topic and partition -> first offset and the one behind the last, both within the
        log; at most :data:`PARTITIONS`.
    :returns: what answered in time; a partition may be missing.
    """
    found: dict[Place, list[Seen]] = {}
    if not ranges:
        return found
    left = {TopicPartition(*at): ends for at, ends in list(ranges.items())[:PARTITIONS]}
    starts = {at: first for at, (first, _) in left.items()}
    deadline = time.monotonic() + timeout_seconds
    with consumer(
        cluster, credentials, "probe", starts,
        max_partition_fetch_bytes=FETCH_BYTES, max_poll_records=5_000,
    ) as opened:  # fmt: skip
        while left and time.monotonic() < deadline:
            for at, records in opened.poll(timeout_ms=200).items():
                if records and at in left:
                    _, end = left.pop(at)
                    found[at.topic, at.partition] = [
                        _seen(record) for record in records if record.offset < end
                    ]
            opened.pause(*(set(opened.assignment()) - set(left)))
    return found


def _seen(record: Any) -> Seen:
    content = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value, *(text for one in record.headers for text in one)):
        data = part.encode() if isinstance(part, str) else part
        content.update(b"-" if data is None else b"%d:" % len(data) + data)
    own = record.timestamp_type == LOG_APPEND_TIME
    return Seen(int(record.offset), content.digest(), None if own else int(record.timestamp))
