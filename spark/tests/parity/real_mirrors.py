"""A real MirrorMaker under load between two clusters, and what both sides really hold."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from mirror_report.config import Flow
from mirror_report.model import Positions

PATIENCE = 120
MINUTE = 60_000


class Engine(Protocol):
    """A mirror process."""

    def start(self) -> None:
        """Start it."""

    def end(self, number: signal.Signals) -> None:
        """End it by a signal; its group may have members for some time."""

    def move(self, positions: Positions) -> None:
        """Set what it has committed, while it is stopped."""


@dataclass
class MirrorMaker1:
    """MirrorMaker 1 with one consumer group.

    :param home: the unpacked distribution of 3.9.
    """

    home: Path
    directory: Path
    brokers: tuple[str, str]
    flow: Flow
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        consumer, producer = (self.directory / name for name in ("consumer", "producer"))
        consumer.write_text(
            f"bootstrap.servers={self.brokers[0]}\ngroup.id={self.flow.group_id}\n"
            "auto.offset.reset=earliest\nsession.timeout.ms=2000\nheartbeat.interval.ms=500\n"
            "metadata.max.age.ms=1000\n"
        )
        producer.write_text(f"bootstrap.servers={self.brokers[1]}\nacks=all\nlinger.ms=5\n")
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "bash",
                 str(self.home / "bin" / "kafka-mirror-maker.sh"),
                 "--consumer.config", str(consumer), "--producer.config", str(producer),
                 "--include", self.flow.include,
                 "--offset.commit.interval.ms", str(self.flow.commit_interval_ms)],
                stdout=log, stderr=log,
                env=os.environ | {
                    "KAFKA_HEAP_OPTS": "-Xmx256m", "LOG_DIR": str(self.directory),
                    "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
                },
            )  # fmt: skip

    def end(self, number: signal.Signals) -> None:
        """End it by a signal."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def move(self, positions: Positions) -> None:
        """Commit for its group."""
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.brokers[0], group_id=self.flow.group_id,
                enable_auto_commit=False,
            )
        ) as consumer:  # fmt: skip
            places = {
                TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
                for topic, parts in positions.items()
                for partition, offset in parts.items()
            }
            consumer.assign(list(places))
            consumer.commit(places)


@dataclass
class MirrorMaker2:
    """The MirrorMaker 2 of all tests, for one policy."""

    process: Any
    brokers: tuple[str, str]
    flow: Flow

    def start(self) -> None:
        """Start it."""
        self.process.start("identity")

    def end(self, number: signal.Signals) -> None:
        """End it by a signal."""
        self.process.end(number)

    def move(self, positions: Positions) -> None:
        """Write into its topic of offsets."""
        with contextlib.closing(KafkaProducer(bootstrap_servers=self.brokers[1])) as producer:
            for topic, parts in positions.items():
                for partition, offset in parts.items():
                    place = {"cluster": "east", "partition": partition, "topic": topic}
                    key = json.dumps(["MirrorSourceConnector", place], separators=(",", ":"))
                    value = b'{"offset":%d}' % (offset - 1)
                    producer.send(self.flow.offset_topic, key=key.encode(), value=value).get(30)


class Load:
    """A producer that goes on until it is told to rest; its records come late and early too.

    :param stamp: the timestamp of all records, in milliseconds since the epoch.
    """

    def __init__(self, broker: str, topic: str, seed: int, stamp: int | None = None) -> None:
        self._broker, self._topic, self._stamp = broker, topic, stamp
        self._chance = random.Random(seed)  # noqa: S311
        self._working = threading.Event()
        self._ended = False
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        """Produce meanwhile; afterwards everything is acknowledged."""
        self._idle.clear()
        self._working.set()
        try:
            yield
        finally:
            self._working.clear()
            assert self._idle.wait(60)

    def end(self) -> None:
        """End the producer."""
        self._ended = True
        self._working.set()
        self._thread.join(60)

    def _work(self) -> None:
        number = 0
        with contextlib.closing(
            KafkaProducer(bootstrap_servers=self._broker, acks="all", linger_ms=2)
        ) as producer:
            while not self._ended:
                if not self._working.is_set():
                    producer.flush(60)
                    self._idle.set()
                    self._working.wait()
                    continue
                for _ in range(10):
                    number += 1
                    producer.send(
                        self._topic, key=b"k%d" % self._chance.randrange(20),
                        value=b"%d" % number, timestamp_ms=self._time(),
                    )  # fmt: skip
                time.sleep(0.02)

    def _time(self) -> int:
        if self._stamp is not None:
            return self._stamp
        now = int(time.time() * 1000)
        kind = self._chance.random()
        if kind < 0.1:
            return now + self._chance.randrange(50 * MINUTE)
        return now - self._chance.randrange(40 * MINUTE) if kind < 0.3 else now


@dataclass
class Truth:
    """What both sides hold of a topic, read by a consumer of its own."""

    broker: str
    topic: str
    records: dict[int, dict[int, Any]] = field(default_factory=dict)

    def catch_up(self) -> None:
        """Read what is new."""
        with contextlib.closing(
            KafkaConsumer(bootstrap_servers=self.broker, enable_auto_commit=False)
        ) as consumer:
            numbers = consumer.partitions_for_topic(self.topic) or set()
            places = [TopicPartition(self.topic, number) for number in sorted(numbers)]
            consumer.assign(places)
            for place in places:
                known = self.records.setdefault(place.partition, {})
                consumer.seek(place, max(known, default=-1) + 1)
            ends = consumer.end_offsets(places)
            while any(consumer.position(place) < end for place, end in ends.items()):
                for some in consumer.poll(timeout_ms=500).values():
                    for record in some:
                        self.records[record.partition][record.offset] = record

    def ends(self) -> dict[int, int]:
        """Offsets after the newest records, by partition."""
        return {partition: max(some, default=-1) + 1 for partition, some in self.records.items()}

    def values(self, start: Mapping[int, int]) -> Counter[bytes]:
        """How often each value is there from some offsets on."""
        return Counter(
            record.value
            for partition, some in self.records.items()
            for offset, record in some.items()
            if offset >= start.get(partition, 0)
        )


def until(condition: Callable[[], object]) -> None:
    """Wait for something that has to come."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.2)
