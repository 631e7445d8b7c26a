"""Two clusters and what a made-up mirror writes into them: the same bytes every time."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata
from parity_mirror import eventually

T0 = 1_767_225_600_000
"""Timestamp of the first record: 2026-01-01, in milliseconds."""
MINUTE = 60_000
HOUR = 60 * MINUTE
CENTURY = str(100 * 365 * 24 * HOUR)
"""Retention that never removes these records."""
SIDES = ("source", "target")
PREFIX = "golden-"
"""How the names of all topics and groups begin, but for the prefix of a replication policy."""


class Message(NamedTuple):
    """A record; ``at`` is its timestamp in milliseconds."""

    partition: int
    key: bytes | None
    value: bytes | None
    at: int = T0
    headers: Sequence[tuple[str, bytes]] = ()


def messages(count: int, start: int = 0, step_ms: int = 1000) -> list[Message]:
    """Records of two partitions in turn: null keys, tombstones and headers among them.

    :param start: number of the first record, which decides its content and timestamp.
    """
    found = []
    for number in range(start, start + count):
        key = None if number % 5 == 0 else b"key-%d" % (number % 7)
        value = None if key and number % 11 == 0 else b"value-%d" % number
        headers = [("n", b"%d" % number), ("empty", b"")] if number % 3 == 0 else []
        found.append(Message(number % 2, key, value, T0 + number * step_ms, headers))
    return found


def copied(
    originals: Iterable[Message], faults: Mapping[int, str] | None = None, shift: int = 0
) -> list[Message]:
    """What a mirror makes of records of two partitions.

    :param faults: number of the record -> class of its fault.
    :param shift: added to the partition, as by a mirror that keeps none.
    """
    copies, late = [], []
    for number, original in enumerate(originals):
        copy = original._replace(partition=(original.partition + shift) % 2)
        match (faults or {}).get(number):
            case "missing":
                continue
            case "reordered":
                late.append(copy)
                continue
            case "duplicate":
                copies.append(copy)
            case "extra":
                copies.append(copy._replace(key=b"foreign"))
            case "moved":
                copy = copy._replace(partition=1 - copy.partition)
            case "corrupt_value":
                copy = copy._replace(value=b"altered")
            case "corrupt_headers":
                copy = copy._replace(headers=[("h", b"altered")])
            case "altered_timestamp":
                copy = copy._replace(at=copy.at + 2 * MINUTE)
        copies.append(copy)
    return copies + late


class World:
    """Both clusters.

    :param brokers: address of the source and of the target.
    """

    def __init__(self, brokers: Sequence[str]) -> None:
        self.brokers = dict(zip(SIDES, brokers, strict=True))
        self._admins = {
            side: KafkaAdminClient(bootstrap_servers=address)
            for side, address in self.brokers.items()
        }
        # One request at a time, so that no retry changes the order.
        self._producers = {
            side: KafkaProducer(
                bootstrap_servers=address, acks="all", linger_ms=5,
                max_in_flight_requests_per_connection=1, metadata_max_age_ms=500,
            )
            for side, address in self.brokers.items()
        }  # fmt: skip

    def close(self) -> None:
        """Close all clients."""
        for client in (*self._admins.values(), *self._producers.values()):
            client.close()

    def create(self, side: str, topic: str, partitions: int = 2, **settings: str) -> None:
        """Create a topic.

        :param settings: the topic's settings, with underscores for dots.
        """
        configs = {"retention.ms": CENTURY} | {
            name.replace("_", "."): value for name, value in settings.items()
        }
        self._admins[side].create_topics(
            [NewTopic(topic, partitions, 1, topic_configs=configs)], wait_for_metadata=True
        )

    def create_again(self, side: str, topic: str, partitions: int = 2, **settings: str) -> None:
        """Delete a topic and create it, as :meth:`create` does."""
        admin = self._admins[side]
        admin.delete_topics([topic])
        eventually(lambda: topic not in admin.list_topics())
        self.create(side, topic, partitions, **settings)

    def grow(self, side: str, topic: str, partitions: int) -> None:
        """Add partitions to a topic; there are so many then."""
        self._admins[side].create_partitions({topic: partitions})
        eventually(lambda: len(self._producers[side].partitions_for(topic)) == partitions)

    def configure(self, side: str, topic: str, **settings: str) -> None:
        """Replace the settings of a topic, with underscores for dots."""
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self._admins[side].alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)]
        )

    def starts(self, side: str, topic: str) -> dict[int, int]:
        """First offset still there, by partition."""
        with contextlib.closing(KafkaConsumer(bootstrap_servers=self.brokers[side])) as consumer:
            parts = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            return {part.partition: at for part, at in consumer.beginning_offsets(parts).items()}

    def write(self, side: str, topic: str, records: Iterable[Message]) -> None:
        """Append records."""
        for record in records:
            self._producers[side].send(
                topic, key=record.key, value=record.value, headers=list(record.headers),
                partition=record.partition, timestamp_ms=record.at,
            )  # fmt: skip
        self._producers[side].flush(60)

    def delete_before(self, side: str, topic: str, partition: int, offset: int) -> None:
        """Delete the records of a partition before an offset."""
        self._admins[side].delete_records({TopicPartition(topic, partition): offset})

    def commit(self, side: str, group: str, topic: str, *offsets: int) -> None:
        """Commit for a consumer group.

        :param offsets: of partitions 0, 1, ...
        """
        positions = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in enumerate(offsets)
        }
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.brokers[side], group_id=group, enable_auto_commit=False
            )
        ) as consumer:
            consumer.assign(list(positions))
            consumer.commit(positions)

    @contextlib.contextmanager
    def member(self, side: str, group: str, topics: Sequence[str]) -> Iterator[None]:
        """A live member of a consumer group, which holds all partitions and commits nothing."""
        consumer = KafkaConsumer(
            *topics, bootstrap_servers=self.brokers[side], group_id=group, enable_auto_commit=False
        )
        joined, ended = threading.Event(), threading.Event()

        def hold() -> None:
            while not ended.is_set():
                consumer.poll(100)
                if consumer.assignment():
                    joined.set()
            consumer.close(autocommit=False)

        thread = threading.Thread(target=hold)
        thread.start()
        try:
            assert joined.wait(120), f"group {group} did not become stable"
            yield
        finally:
            ended.set()
            thread.join(30)

    def ids(self) -> dict[str, str]:
        """Ids of clusters and topics, as texts -> what stands in their place in a golden."""
        found = {}
        for side, admin in self._admins.items():
            found[str(admin.describe_cluster()["cluster_id"])] = f"<{side}>"
            for topic in admin.describe_topics():
                if PREFIX in topic["name"]:
                    found[str(topic["topic_id"])] = f"<{side} {topic['name']}>"
        return found


class Connect:
    """What MirrorMaker 2 and Kafka Connect write into topics of their own on the target.

    :param names: prefix of these topics' names; ``alias``: of the source.
    """

    def __init__(self, world: World, names: str, alias: str) -> None:
        self._world = world
        self._alias = alias
        self._syncs = 0
        self.topics = {
            name: f"{names}-{name}" for name in ("offsets", "status", "syncs", "checkpoints")
        }

    def create(self) -> None:
        """Create the topics, with a connector and a task that run."""
        for name in self.topics.values():
            self._world.create("target", name, 1, cleanup_policy="compact")
        value = {"state": "RUNNING", "trace": None, "worker_id": "worker:8083", "generation": 1}
        for key in (
            "status-connector-MirrorSourceConnector",
            "status-task-MirrorSourceConnector-0",
        ):
            self._write("status", key.encode(), json.dumps(value).encode())

    def position(self, topic: str, *offsets: int) -> None:
        """Flush the next offsets to mirror, of partitions 0, 1, ...; 0: nothing was copied yet."""
        for partition, offset in enumerate(offsets):
            if not offset:
                continue
            place = {"cluster": self._alias, "partition": partition, "topic": topic}
            key = json.dumps(["MirrorSourceConnector", place], separators=(",", ":"))
            self._write("offsets", key.encode(), b'{"offset":%d}' % (offset - 1))

    def sync(self, topic: str, partition: int, upstream: int, downstream: int) -> None:
        """Write an offset sync, a minute after the one before."""
        self._syncs += 1
        key = _string(topic) + struct.pack(">i", partition)
        value = struct.pack(">qq", upstream, downstream)
        self._write("syncs", key, value, T0 + self._syncs * MINUTE)

    def checkpoint(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Write a checkpoint of a group whose offsets are equal on both sides."""
        key = _string(group) + _string(topic) + struct.pack(">i", partition)
        value = struct.pack(">hqq", 0, offset, offset) + _string("")
        self._write("checkpoints", key, value)

    def _write(self, topic: str, key: bytes, value: bytes, at: int = T0) -> None:
        self._world.write("target", self.topics[topic], [Message(0, key, value, at)])


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def settings_of(connect: Connect) -> dict[str, Any]:
    """Keys of a flow's configuration that name MirrorMaker 2's own topics."""
    return {
        "offset_topic": connect.topics["offsets"],
        "status_topic": connect.topics["status"],
        "offset_syncs_topic": connect.topics["syncs"],
        "checkpoints_topic": connect.topics["checkpoints"],
    }
