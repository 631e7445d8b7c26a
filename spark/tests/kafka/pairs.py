"""A mirror in small: two clusters, a topic on each, and a consumer group that copies for real."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from mirror_report.config import Settings
from mirror_report.config.load import parse
from mirror_report.state.store import Store


def need(resource: str, name: str, operation: str) -> dict[str, str]:
    """One row of a flow's permissions, on the source."""
    return {
        "cluster": "east", "resource": resource, "name": name, "pattern": "literal",
        "operation": operation,
    }  # fmt: skip


@dataclass
class Pair:
    """Two clusters, a topic on each, and a mirror in small: one consumer group that copies."""

    source: str
    target: str
    directory: Path
    topic: str
    group: str
    flow: dict[str, Any] = field(default_factory=dict)
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)

    def document(self, **changes: Any) -> dict[str, Any]:
        """The configuration, with some of its keys replaced."""
        return {
            "version": 1,
            "clusters": {
                "east": {"bootstrap_servers": [self.source]} | self.clusters.get("east", {}),
                "west": {"bootstrap_servers": [self.target]} | self.clusters.get("west", {}),
            },
            "flows": [
                {
                    "name": "f", "source": "east", "target": "west", "topics": [self.topic],
                    "include": self.topic, "group_id": self.group, "hosts": ["localhost"],
                    "permissions": [need("group", self.group, "DESCRIBE")],
                }
                | self.flow
            ],
            "state_directory": str(self.directory / "state"),
            **changes,
        }  # fmt: skip

    def settings(self, **changes: Any) -> Settings:
        """The configuration as the commands take it."""
        return parse(self.document(**changes))

    def store(self) -> Store:
        """What the commands remember."""
        return Store(self.directory / "state")

    def create(self, side: str, partitions: int = 2, **configs: str) -> None:
        """Create the topic on one side."""
        with admin(self.source if side == "source" else self.target) as client:
            client.create_topics([NewTopic(self.topic, partitions, 1, topic_configs=configs)])
            client.wait_for_topics([self.topic])

    def delete(self, side: str) -> None:
        """Delete the topic on one side."""
        with admin(self.source if side == "source" else self.target) as client:
            client.delete_topics([self.topic])
            deadline = time.monotonic() + 20
            while self.topic in client.list_topics() and time.monotonic() < deadline:
                time.sleep(0.1)

    def produce(self, count: int, partition: int = 0) -> None:
        """Write records on the source."""
        produce(self.source, self.topic, count, partition)

    def mirror(self, count: int) -> None:
        """Copy exactly so many records and commit behind them, without joining the group."""
        consumer = self.consumer()
        numbers = consumer.partitions_for_topic(self.topic)
        consumer.assign([TopicPartition(self.topic, number) for number in numbers])
        producer = KafkaProducer(bootstrap_servers=self.target, acks="all")
        left = count
        try:
            while left:
                for at, records in consumer.poll(1000, max_records=left).items():
                    for record in records:
                        producer.send(
                            at.topic,
                            key=record.key,
                            value=record.value,
                            headers=record.headers,
                            partition=at.partition,
                            timestamp_ms=record.timestamp,
                        )
                    left -= len(records)
            producer.flush()
            consumer.commit()
        finally:
            producer.close()
            consumer.close(autocommit=False)

    def consumer(self) -> Any:
        """Read as the mirror's group, which it has not joined."""
        return KafkaConsumer(
            bootstrap_servers=self.source, group_id=self.group,
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip


def admin(bootstrap: str) -> Any:
    return KafkaAdminClient(bootstrap_servers=bootstrap)


def produce(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    sent = [producer.send(topic, value=b"v%d" % n, partition=partition) for n in range(count)]
    for future in sent:
        future.get(30)
    producer.close()


@contextlib.contextmanager
def member(pair: Pair) -> Iterator[threading.Event]:
    """A member of the group that has its partitions; it commits once the event it yields is set."""
    stop, commits, joined = threading.Event(), threading.Event(), threading.Event()
    consumer = pair.consumer()
    # kafka-python 3.0.12 assigns nothing for good when the topic's partitions arrive while it joins
    assert consumer.partitions_for_topic(pair.topic), "the topic's partitions are known first"
    consumer.subscribe([pair.topic])

    def hold() -> None:
        while not stop.is_set():
            consumer.poll(100)
            if consumer.assignment():
                joined.set()
            if commits.is_set():
                consumer.commit()
        consumer.close(autocommit=False)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert joined.wait(60), "the member joins its group"
        yield commits
    finally:
        stop.set()
        thread.join(20)


def kinds(found: list[Any]) -> list[str]:
    return sorted(finding.kind for finding in found)
