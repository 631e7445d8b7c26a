"""Two real clusters with a small copier in the place of the mirror."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata
from parity_records import assert_partitions_add_up
from pyspark.sql import SparkSession

from mirror_report.config import Budget, Cluster, Flow, Settings
from mirror_report.config import Spark as SparkSettings
from mirror_report.model import CLASSES, Finding, ParityResult, TopicParity
from mirror_report.observe import Snapshots
from mirror_report.parity.context import ParityRequest
from mirror_report.parity.run import run_parity
from mirror_report.state.store import Store

# Recent, or retention would remove the records at once.
T0 = (int(time.time()) // 60 - 40) * 60_000
RECORDS = 600


class Mirror:
    """Two clusters, a flow, and what a test does to them. Topics are new for every test."""

    def __init__(self, spark: SparkSession, brokers: tuple[str, str], state: Path) -> None:
        self.spark = spark
        self.brokers = brokers
        self.prefix = "t" + uuid.uuid4().hex[:8]
        self.group = f"mirrormaker-{self.prefix}"
        flow = Flow(
            name="flow", source="a", target="b", include=f"{self.prefix}\\..*",
            topics=(f"{self.prefix}\\..*",), group_id=self.group,
        )  # fmt: skip
        self.settings = Settings(
            clusters={
                alias: Cluster(alias, (address,))
                for alias, address in zip("ab", brokers, strict=True)
            },
            flows=(flow,),
            state_directory=state,
            spark=SparkSettings(master="local[2]"),
            budget=Budget(scrub_bytes=0),
        )
        self.store = Store(state)
        self.runs = 0
        self.said: list[str] = []
        self.admins = [KafkaAdminClient(bootstrap_servers=address) for address in brokers]
        self.producers = [
            KafkaProducer(
                bootstrap_servers=address, acks="all", linger_ms=5, metadata_max_age_ms=500
            )
            for address in brokers
        ]

    def topic(self, name: str, partitions: int = 3, **configs: str) -> str:
        """Create a topic on both clusters."""
        full = f"{self.prefix}.{name}"
        for admin in self.admins:
            settings = {key.replace("_", "."): value for key, value in configs.items()}
            wanted = [NewTopic(full, partitions, 1, topic_configs=settings)]
            admin.create_topics(wanted, wait_for_metadata=True)
        return full

    def renew(self, topic: str, *sides: int) -> None:
        """Delete a topic, which had one partition, and create it again."""
        for side in sides:
            admin = self.admins[side]
            admin.delete_topics([topic])
            eventually(lambda admin=admin: topic not in admin.list_topics())
            admin.create_topics([NewTopic(topic, 1, 1)])

    def produce(self, topic: str, count: int = RECORDS, start: int = 0) -> None:
        """Keyed, null-key, headers and tombstones, over ten minutes."""
        for i in range(start, start + count):
            self.producers[0].send(
                topic,
                key=None if i % 5 == 0 else b"key-%d" % (i % 50),
                value=None if i % 11 == 0 and i % 5 else b"value-%d-" % i + b"x" * (i % 300),
                headers=[("n", b"%d" % i), ("empty", b"")] if i % 3 == 0 else [],
                timestamp_ms=T0 + i * 1000,
            )
        self.producers[0].flush()

    def copy(
        self, topic: str, limit: int | None = None, faults: dict[str, Any] | None = None
    ) -> list[Any]:
        """Mirror everything (or ``limit`` records per partition) and commit the position.

        :param faults: class -> how many of the topic's first records get that fault; ``swapped``
            records hand their values on, a ``reordered`` one waits for the next of its key.
        """
        records = self.read(0, topic)
        chosen = [record for record in records if limit is None or record.offset < limit]
        fate: dict[int, str] = {}
        for kind, count in (faults or {}).items():
            free = [
                n for n, record in enumerate(chosen)
                if n not in fate and record.value and (kind != "reordered" or record.key)
            ]  # fmt: skip
            fate |= dict.fromkeys(free[:count], kind)
        swapped = [chosen[n].value for n, kind in fate.items() if kind == "swapped"]
        waiting: list[Any] = []
        for number, record in enumerate(chosen):
            kind = fate.get(number)
            changes: dict[str, dict[str, Any]] = {
                "corrupt_value": {"value": b"altered"},
                "corrupt_headers": {"headers": [("h", b"altered")]},
                "altered_timestamp": {"timestamp": record.timestamp + 120_000},
            }
            if kind == "swapped":
                self.write(record, value=swapped.pop())
            elif kind == "reordered":
                waiting.append(record)
            elif kind != "missing":
                self.write(record, **changes.get(kind or "", {}))
            if kind == "duplicate":
                self.write(record)
            if kind == "extra":
                self.write(record, key=b"foreign")
            if kind is None:
                for late in [late for late in waiting if late.key == record.key]:
                    self.write(late)
                    waiting.remove(late)
        self.producers[1].flush()
        self.commit(topic, limit)
        return chosen

    def copy_since(self, topic: str, timestamp: int, *, commit: bool = True) -> None:
        """Mirror the records from a time on, and commit the end."""
        for record in self.read(0, topic):
            if record.timestamp >= timestamp:
                self.write(record)
        self.producers[1].flush()
        if commit:
            self.commit(topic)

    def write(self, record: Any, **changes: Any) -> None:
        """Write a copy of a record, or an altered one, to the target."""
        self.producers[1].send(
            record.topic,
            key=changes.get("key", record.key),
            value=changes.get("value", record.value),
            partition=changes.get("partition"),
            headers=changes.get("headers", list(record.headers)),
            timestamp_ms=changes.get("timestamp", record.timestamp),
        )

    def commit(self, topic: str, limit: int | None = None) -> None:
        """Commit the mirror's position: the end, or ``limit``."""
        with contextlib.closing(self.consumer(0)) as consumer:
            partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            ends = consumer.end_offsets(partitions)
        self.commit_at(
            {
                partition: end if limit is None else min(end, limit)
                for partition, end in ends.items()
            }
        )

    def commit_at(self, positions: dict[TopicPartition, int]) -> None:
        """Commit the mirror's positions."""
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.brokers[0], group_id=self.group, enable_auto_commit=False
            )
        ) as consumer:
            consumer.assign(list(positions))
            consumer.commit(
                {partition: OffsetAndMetadata(at, "", -1) for partition, at in positions.items()}
            )

    def read(self, side: int, topic: str) -> list[Any]:
        """Read all records of one side."""
        with contextlib.closing(self.consumer(side)) as consumer:
            partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            found: list[Any] = []
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                for some in consumer.poll(timeout_ms=500).values():
                    found += some
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def consumer(self, side: int) -> KafkaConsumer:
        """Make a consumer of one side."""
        return KafkaConsumer(
            bootstrap_servers=self.brokers[side], enable_auto_commit=False,
            auto_offset_reset="earliest",
        )  # fmt: skip

    def run(self, take: Any = None, *, reported: bool = True, **budget: Any) -> ParityResult:
        """Make one parity run.

        :param reported: whether its report is written.
        :param budget: as in the configuration.
        """
        self.runs += 1
        settings = replace(self.settings, budget=replace(self.settings.budget, **budget))
        request = ParityRequest(
            settings, take or Snapshots(self.settings), self.store, f"run-{self.runs}"
        )

        @contextlib.contextmanager
        def ours(*_: Any) -> Iterator[SparkSession]:
            yield self.spark

        result = run_parity(request, self.said.append, ours)
        if reported:
            self.store.write_report(f"{request.run_id}.json", "{}")
        assert_partitions_add_up(result.topics)
        return result

    def close(self) -> None:
        """Close all clients."""
        for client in (*self.admins, *self.producers):
            client.close()


class Scenario:
    """Topics of a mirror, and what each run says of them."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.results: list[ParityResult] = []
        self.said: list[list[str]] = []

    def topic(self, name: str) -> str:
        """Name of one of them on both clusters."""
        return f"{self.mirror.prefix}.{name}"

    def run(self) -> None:
        """Compare, and keep what was said."""
        before = len(self.mirror.said)
        self.results.append(self.mirror.run())
        self.said.append(self.mirror.said[before:])

    def of(self, run: int, name: str) -> TopicParity:
        """What a run says of a topic."""
        (found,) = [topic for topic in self.results[run].topics if topic.topic == self.topic(name)]
        return found

    def findings(self, run: int, name: str) -> dict[str, Finding]:
        """What a run has to say against a topic."""
        return {
            finding.kind: finding
            for finding in self.results[run].findings
            if finding.topic == self.topic(name)
        }


def only(result: ParityResult) -> TopicParity:
    (topic,) = result.topics
    return topic


def counts(topic: TopicParity) -> dict[str, int]:
    return {name: n for name in CLASSES if (n := topic.counts[name])}


def eventually(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)
