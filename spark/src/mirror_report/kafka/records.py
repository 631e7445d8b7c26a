"""Reading records without a group: bounded, and nothing is committed.

Single records of both sides are fetched to find which of them are the same; of those nothing is
kept but a hash of key, value and headers.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition, codec
from kafka.errors import (
    AuthorizationError,
    RetriableError,
    SaslAuthenticationFailedError,
    UnsupportedCodecError,
)

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka.connection import UnreadableError, client_options, explained
from mirror_report.kafka.guarded import Guarded
from mirror_report.model import Place

# Partitions probed in one run at most, each with one fetch from either side.
PARTITIONS = 200
FETCH_BYTES = 262_144
# Within which records have to come.
WAITING_SECONDS = 5.0
FETCHED_SECONDS = 15.0
LOG_APPEND_TIME = 1

# No fault of the records: the cluster is away or refuses us, or no memory is left.
_NO_FAULT_OF_RECORDS = (
    AuthorizationError,
    RetriableError,
    SaslAuthenticationFailedError,
    MemoryError,
)
# Package -> whether kafka-python has what it needs of it.
_CODECS = {
    "python-snappy": codec.has_snappy,
    "lz4": codec.has_lz4,
    "zstandard": codec.has_zstd,
}


@dataclass(frozen=True)
class HashedRecord:
    """One record, its content as a hash.

    :param timestamp_ms: ``None``: the broker's own, which no two clusters share.
    """

    offset: int
    content: bytes
    timestamp_ms: int | None

    def same_as(self, other: "HashedRecord") -> bool:
        """Whether one may be the copy of the other."""
        stamps = {self.timestamp_ms, other.timestamp_ms}
        return self.content == other.content and (len(stamps) == 1 or None in stamps)


@contextlib.contextmanager
def consumer(
    cluster: Cluster,
    credentials: Credentials,
    purpose: str,
    starts: Mapping[TopicPartition, int],
    topics: str = "",
    **options: Any,
) -> Iterator[Any]:
    """A consumer at some offsets, which asks for topics without making them.

    :param purpose: one word, for the client's id.
    :param topics: names of those that are read, for the message if they may not be.
    :param options: of kafka-python, beside those that keep it without a group.
    :raises ClusterError: records cannot be read.
    """
    connection = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-{purpose}",
        "group_id": None,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        # For as long it sleeps whenever it does not know the partitions yet.
        "retry_backoff_ms": 20,
    }
    where = f"topics {topics}" if topics else "the topics"
    with explained(cluster, f"read {topics or 'records'}", f"READ on {where}"):
        opened = KafkaConsumer(**connection, **options)
        # kafka-python has an option for that and does not hand it on to what sends the request.
        opened._cluster.config["allow_auto_create_topics"] = False
        try:
            opened.assign(list(starts))
            for at, offset in starts.items():
                opened.seek(at, offset)
            yield opened
        finally:
            opened.close(autocommit=False)


def polled(opened: Any, failed: dict[Place, str]) -> dict[TopicPartition, list[Any]]:
    """Records that a consumer has now; a partition with some that it cannot read is paused.

    :param failed: such a partition is added with the reason.
    :raises UnreadableError: it is not known which partition it is.
    """
    try:
        return dict(opened.poll(timeout_ms=200))
    except _NO_FAULT_OF_RECORDS:
        raise
    except Exception as error:  # whatever a client makes of foreign bytes
        why = f"the client cannot read it ({type(error).__name__}: {error})"
        absent = [package for package, is_installed in _CODECS.items() if not is_installed()]
        if isinstance(error, UnsupportedCodecError) and absent:
            why += f"; {', '.join(absent)} is not installed beside the report"
        # The partition whose batch was being decoded; kafka-python's error does not name it.
        broken = opened._fetcher._next_partition_records
        if not broken:
            raise UnreadableError(why) from error
        # Polled again, it returns nothing for ever.
        opened.pause(broken.topic_partition)
        failed[broken.topic_partition.topic, broken.topic_partition.partition] = why
        return {}


def batches(
    opened: Any,
    left: dict[TopicPartition, int],
    failed: dict[Place, str],
    timeout_seconds: float,
) -> Iterator[tuple[TopicPartition, list[Any], bool]]:
    """Records of some partitions, until each is read to its end or the time is over.

    :param left: partition -> offset to read to. A partition is removed at its end or when it
        fails; one that the caller removes is read no further.
    :param failed: partitions that cannot be read are added with the reason.
    :returns: partition, its records (none: nothing came yet), and whether it is read to its end.
    """
    deadline = time.monotonic() + timeout_seconds
    while left and time.monotonic() < deadline:
        records = polled(opened, failed)
        for at, end in list(left.items()):
            is_failed = (at.topic, at.partition) in failed
            at_end = not is_failed and opened.position(at) >= end
            if is_failed or at_end:
                del left[at]
            yield at, records.get(at, []), at_end
        opened.pause(*(set(opened.assignment()) - set(left)))


def oldest_waiting(
    cluster: Cluster,
    credentials: Credentials,
    waiting: Mapping[Place, tuple[int, int]],
    timeout_seconds: float = WAITING_SECONDS,
    isolation: str = "read_uncommitted",
) -> Guarded[int | None]:
    """Timestamp (ms) of the first record at or after each position.

    :param waiting: topic and partition -> position and log end, the position below the end.
    :param isolation: Kafka's word for whether records of transactions that did not commit count.
    :returns: ``None`` where no record is left before the end (transaction markers only); a
        partition that did not answer in time is left out, its age is unknown.
    """
    ages: Guarded[int | None] = Guarded()
    if not waiting:
        return ages
    left = {TopicPartition(*at): end for at, (_, end) in waiting.items()}
    starts = {TopicPartition(*at): position for at, (position, _) in waiting.items()}
    with consumer(
        cluster, credentials, "age", starts, isolation_level=isolation,
        max_partition_fetch_bytes=65_536, max_poll_records=5_000,
    ) as opened:  # fmt: skip
        for at, records, at_end in batches(opened, left, ages.failed, timeout_seconds):
            if records or at_end:
                left.pop(at, None)
                age = int(records[0].timestamp) if records else None
                ages.answers[at.topic, at.partition] = age
    return ages


def fetched_at(
    cluster: Cluster,
    credentials: Credentials,
    place: Place,
    offset: int,
    isolation: str,
    timeout_seconds: float = FETCHED_SECONDS,
) -> Guarded[list[Any]]:
    """Records of a partition from an offset on, as many as one fetch brings.

    :param isolation: as for :func:`oldest_waiting`.
    :returns: consumer records, keys and values as bytes; none if none came in time.
    """
    fetched: Guarded[list[Any]] = Guarded({place: []})
    at = TopicPartition(*place)
    deadline = time.monotonic() + timeout_seconds
    with consumer(cluster, credentials, "fetch", {at: offset}, isolation_level=isolation) as opened:
        while not fetched.answers[place] and not fetched.failed and time.monotonic() < deadline:
            fetched.answers[place] = polled(opened, fetched.failed).get(at, [])
    return fetched


def fetch(
    cluster: Cluster,
    credentials: Credentials,
    ranges: Mapping[Place, tuple[int, int]],
    timeout_seconds: float = WAITING_SECONDS,
    isolation: str = "read_uncommitted",
) -> Guarded[list[HashedRecord]]:
    """Every record of some ranges.

    :param ranges: topic and partition -> first offset and the one behind the last, both within the
        log; at most :data:`PARTITIONS`.
    :param isolation: as for :func:`oldest_waiting`.
    :returns: ranges that were read whole in time; one may hold no record.
    """
    fetched: Guarded[list[HashedRecord]] = Guarded()
    if not ranges:
        return fetched
    asked = {TopicPartition(*at): ends for at, ends in list(ranges.items())[:PARTITIONS]}
    starts = {at: first for at, (first, _) in asked.items()}
    left = {at: end for at, (_, end) in asked.items()}
    read: dict[TopicPartition, list[HashedRecord]] = {at: [] for at in asked}
    with consumer(
        cluster, credentials, "probe", starts, isolation_level=isolation,
        max_partition_fetch_bytes=FETCH_BYTES, max_poll_records=5_000,
    ) as opened:  # fmt: skip
        for at, records, at_end in batches(opened, left, fetched.failed, timeout_seconds):
            first, end = asked[at]
            read[at] += [_hashed(one) for one in records if first <= one.offset < end]
            if at_end:
                fetched.answers[at.topic, at.partition] = read[at]
    return fetched


def _hashed(record: Any) -> HashedRecord:
    content = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value, *(text for header in record.headers for text in header)):
        data = part.encode() if isinstance(part, str) else part
        content.update(b"-" if data is None else b"%d:" % len(data) + data)
    own = record.timestamp_type == LOG_APPEND_TIME
    return HashedRecord(
        int(record.offset), content.digest(), None if own else int(record.timestamp)
    )
