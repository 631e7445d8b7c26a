"""Reading records without a group: bounded, and nothing is committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from mirror_report.config.cluster import Cluster
from mirror_report.config.credentials import Credentials
from mirror_report.kafka.formats import FormatError
from mirror_report.kafka.snapshot import ClusterError, client_options, explained
from mirror_report.model.cluster import Place, TopicSnapshot

TOMBSTONES_KEPT_MS = 12 * 3_600_000
"""Half of Kafka's default of ``delete.retention.ms``."""


def oldest_waiting(
    cluster: Cluster,
    credentials: Credentials,
    waiting: Mapping[Place, tuple[int, int]],
    timeout_seconds: float = 5,
    isolation: str = "read_uncommitted",
) -> dict[Place, int | None]:
    """Timestamp (ms) of the first record at or after each position.

    :param waiting: topic and partition -> position and log end, the position below the end.
    :param isolation: Kafka's word for whether records of transactions that did not commit count.
    :returns: ``None`` where no record is left before the end (transaction markers only); a
        partition that did not answer in time is left out, its age is unknown.
    """
    ages: dict[Place, int | None] = {}
    if not waiting:
        return ages
    options = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-age",
        "group_id": None,
        "isolation_level": isolation,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_partition_fetch_bytes": 65_536,
        "max_poll_records": 5_000,
    }
    left = {TopicPartition(*at): ends for at, ends in waiting.items()}
    deadline = time.monotonic() + timeout_seconds
    with explained(cluster, "read records", "READ on the topics"):
        consumer = reader(options)
        try:
            consumer.assign(list(left))
            for at, (position, _) in left.items():
                consumer.seek(at, position)
            while left and time.monotonic() < deadline:
                batches = consumer.poll(timeout_ms=200)
                for at, records in batches.items():
                    if records and at in left:
                        ages[at.topic, at.partition] = int(records[0].timestamp)
                        del left[at]
                for at, (_, end) in list(left.items()):
                    if consumer.position(at) >= end:
                        ages[at.topic, at.partition] = None
                        del left[at]
                consumer.pause(*(set(consumer.assignment()) - set(left)))
        finally:
            consumer.close(autocommit=False)
    return ages


def fetched_at(
    cluster: Cluster,
    credentials: Credentials,
    place: Place,
    offset: int,
    isolation: str,
    timeout_seconds: float = 15,
) -> list[Any]:
    """Records of a partition from an offset on, as many as one fetch brings.

    :param isolation: as for :func:`oldest_waiting`.
    :returns: consumer records, keys and values as bytes; none if none came in time.
    """
    options = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-look",
        "group_id": None,
        "isolation_level": isolation,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    at = TopicPartition(*place)
    deadline = time.monotonic() + timeout_seconds
    with explained(cluster, "read records", "READ on the topics"):
        consumer = reader(options)
        try:
            consumer.assign([at])
            consumer.seek(at, offset)
            while time.monotonic() < deadline:
                batch = consumer.poll(timeout_ms=200).get(at)
                if batch:
                    return list(batch)
        finally:
            consumer.close(autocommit=False)
    return []


def reader(options: Mapping[str, Any]) -> Any:
    """A consumer that asks for topics without making them.

    kafka-python has an option for that and does not hand it on to what sends the request.
    """
    consumer = KafkaConsumer(**options)
    consumer._cluster.config["allow_auto_create_topics"] = False
    return consumer


@dataclass
class Tail:
    """What a compacted topic says, read up to some offset; a later read goes on from there.

    :param latest: key -> value of its newest record, both as :data:`Decode` made them.
    """

    topic_id: str = ""
    read_at_ms: int = 0
    next: dict[int, int] = field(default_factory=dict)
    latest: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Tail:
        """What :meth:`dump` made."""
        return cls(
            plain["topic_id"],
            plain["read_at_ms"],
            {int(p): offset for p, offset in plain["next"].items()},
            dict(plain["latest"]),
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "topic_id": self.topic_id,
            "read_at_ms": self.read_at_ms,
            "next": {str(p): offset for p, offset in self.next.items()},
            "latest": self.latest,
        }

    def fit(self, topic: TopicSnapshot, now_ms: int) -> None:
        """Forget everything unless going on from here gives the same as reading it all.

        Another topic, a log that got shorter, or so long a pause that tombstones may be gone
        (they are kept for a day) mean a new beginning.
        """
        fits = self.topic_id == topic.topic_id and now_ms - self.read_at_ms < TOMBSTONES_KEPT_MS
        if not fits or any(
            self.next.get(p, 0) > (one.high_watermark or 0) for p, one in topic.partitions.items()
        ):
            self.next, self.latest = {}, {}
        self.topic_id, self.read_at_ms = topic.topic_id, now_ms
        for number, one in topic.partitions.items():
            self.next[number] = max(self.next.get(number, 0), one.log_start)

    def left(self, topic: TopicSnapshot) -> int:
        """Offsets not read yet."""
        return sum(
            max(0, (one.high_watermark or 0) - self.next[p]) for p, one in topic.partitions.items()
        )


Decode = Callable[[Any], tuple[str, Any] | None]
"""Consumer record -> key and value (``None``: forgotten), or ``None`` for one of no interest."""


def catch_up(
    cluster: Cluster,
    credentials: Credentials,
    tails: Sequence[tuple[TopicSnapshot, Tail, Decode]],
    timeout_seconds: float,
) -> None:
    """Read compacted topics on to their ends, or as far as the time allows.

    :param tails: each topic, what was read of it (fitted to it), and how to decode its records.
    :raises ClusterError: a record is not of its format; the message names it.
    """
    waiting = {
        TopicPartition(topic.name, number): (one.high_watermark or 0, tail, decode)
        for topic, tail, decode in tails
        for number, one in topic.partitions.items()
        if tail.next[number] < (one.high_watermark or 0)
    }
    if not waiting:
        return
    options = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-tail",
        "group_id": None,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_poll_records": 10_000,
    }
    deadline = time.monotonic() + timeout_seconds
    names = ", ".join(sorted({at.topic for at in waiting}))
    with explained(cluster, f"read {names}", f"READ on topics {names}"):
        consumer = reader(options)
        try:
            consumer.assign(list(waiting))
            for at, (_, tail, _) in waiting.items():
                consumer.seek(at, tail.next[at.partition])
            while waiting and time.monotonic() < deadline:
                for at, batch in consumer.poll(timeout_ms=200).items():
                    if at in waiting:
                        _, tail, decode = waiting[at]
                        _take(cluster, batch, tail, decode)
                for at, (end, tail, _) in list(waiting.items()):
                    tail.next[at.partition] = consumer.position(at)
                    if tail.next[at.partition] >= end:
                        del waiting[at]
                consumer.pause(*(set(consumer.assignment()) - set(waiting)))
        finally:
            consumer.close(autocommit=False)


def _take(cluster: Cluster, batch: Sequence[Any], tail: Tail, decode: Decode) -> None:
    for one in batch:
        try:
            found = decode(one)
        except FormatError as error:
            raise ClusterError(
                f"cluster {cluster.alias}: {one.topic}-{one.partition} at {one.offset}: {error}. "
                "Something else than MirrorMaker writes into this topic: find it, then mirror into "
                "topics of its own"
            ) from error
        if found is not None:
            key, value = found
            if value is None:
                tail.latest.pop(key, None)
            else:
                tail.latest[key] = value
