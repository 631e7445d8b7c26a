"""A topic that is written all the time, and the copy of it: how long it stands still, and why."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from common import LIMIT, Node, wait_for
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

PARTITIONS = 6
RATE = 1000


class Load:
    """A thread that writes numbered records to every partition of a topic, and counts them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.acknowledged = 0
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        futures = []
        number = 0
        begun = time.monotonic()
        while not self._stop.wait(0.02):
            for _ in range(int((time.monotonic() - begun) * RATE) - number):
                key = str(number).encode()
                # Of records without a key MirrorMaker 1 fills one partition for a whole batch.
                futures.append(
                    self._producer.send(
                        self.topic, key.ljust(100), key, partition=number % PARTITIONS
                    )
                )
                number += 1
        self._producer.flush(60)
        self.acknowledged = sum(1 for future in futures if future.succeeded())

    def end(self) -> None:
        """Stop writing once everything is acknowledged."""
        self._stop.set()
        self._thread.join(90)
        self._producer.close()


class Watch:
    """A thread that reads a topic's end offsets every 0.1 s."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap)
        self._topic = topic
        self._stop = threading.Event()
        self.samples: list[tuple[float, tuple[int, ...]]] = []
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        # A consumer asked for a topic that is not there waits for its whole timeout.
        while not self._stop.wait(0.1) and self._topic not in self._consumer.topics():
            self.samples.append((time.monotonic(), (0,) * PARTITIONS))
        while not self._stop.wait(0.1):
            with suppress(KafkaError):
                ends = self._consumer.end_offsets(self._partitions)
                self.samples.append((time.monotonic(), tuple(ends[p] for p in self._partitions)))

    def end(self) -> None:
        """Stop reading them."""
        self._stop.set()
        self._thread.join(60)
        self._consumer.close()

    def now(self) -> tuple[int, ...]:
        """End offsets as they were last seen."""
        return self.samples[-1][1] if self.samples else (0,) * PARTITIONS

    def fresh(self) -> tuple[int, ...]:
        """End offsets seen after this call began."""
        begun = time.monotonic()
        wait_for("a sample", lambda: bool(self.samples) and self.samples[-1][0] > begun + 0.3, 20)
        return self.now()

    def growth(self, base: tuple[int, ...]) -> float:
        """Wait until every partition has a record beyond `base`; the moment of the last one."""
        return wait_for(
            "new records on the target",
            lambda: all(new > old for new, old in zip(self.now(), base, strict=True)),
        )

    def longest_stall(self, since: float) -> float:
        """Longest time any partition did not grow since a moment, in seconds."""
        samples = [sample for sample in self.samples if sample[0] >= since]
        longest = 0.0
        for number in range(PARTITIONS):
            grown = samples[0]
            for sample in samples:
                if sample[1][number] > grown[1][number]:
                    longest = max(longest, sample[0] - grown[0])
                    grown = sample
            longest = max(longest, samples[-1][0] - grown[0])
        return longest


class Flowing:
    """A topic under load, and its copy.

    :param source: address of the cluster that is written; ``target`` of the one that is watched.
    """

    def __init__(self, source: str, target: str, topic: str, target_topic: str) -> None:
        self.target, self.target_topic = target, target_topic
        self.marks: list[tuple[str, tuple[int, ...]]] = []
        self.load = Load(source, topic)
        self.watch = Watch(target, target_topic)

    def settle(self, seconds: float = 12) -> None:
        """Let it mirror for a while, then wait until every partition grows."""
        time.sleep(seconds)
        self.watch.growth(self.watch.now())

    def mark(self, name: str) -> None:
        """Count what reaches the target from now on under a name."""
        self.marks.append((name, self.watch.fresh()))

    def counts(self) -> dict[str, float]:
        """End the load, drain, read the target; returns duplicates since each mark, and lost."""
        self.load.end()
        expected = self.load.acknowledged
        wait_for("the rest", lambda: sum(self.watch.now()) >= expected)
        time.sleep(2)
        remaining = sum(self.watch.fresh())
        consumer = KafkaConsumer(bootstrap_servers=self.target, auto_offset_reset="earliest")
        consumer.assign([TopicPartition(self.target_topic, number) for number in range(PARTITIONS)])
        seen: set[bytes] = set()
        repeated = dict.fromkeys((name for name, _ in self.marks), 0.0)
        deadline = time.monotonic() + LIMIT
        while remaining > 0 and time.monotonic() < deadline:
            for partition, records in consumer.poll(500).items():
                remaining -= len(records)
                for record in records:
                    if record.value in seen:
                        repeated[self._marked(partition.partition, record.offset)] += 1
                    seen.add(record.value)
        consumer.close()
        return {**{f"duplicates_{name}": number for name, number in repeated.items()},
                "records": expected, "lost": expected - len(seen)}  # fmt: skip

    def _marked(self, partition: int, offset: int) -> str:
        return next(name for name, ends in reversed(self.marks) if offset >= ends[partition])

    def end(self) -> None:
        """End writing and watching."""
        self.load.end()
        self.watch.end()


def restarted(flow: Flowing, start: Callable[[], Node]) -> dict[str, float]:
    """One process: first start, SIGTERM and start, kill -9 and start.

    :param start: starts it.
    :returns: seconds until every partition has a new record, since the start or the kill; what
        the process took until then; :meth:`Flowing.counts`.
    """
    result: dict[str, float] = {}
    flow.mark("first_start")
    node = start()
    result["first_start_s"] = flow.watch.growth((0,) * PARTITIONS) - node.started
    result["first_start_cpu_s"] = node.cpu()
    flow.settle()
    stopped = time.monotonic()
    result["sigterm_exit"] = node.end(signal.SIGTERM)
    result["sigterm_ends_s"] = time.monotonic() - stopped
    flow.mark("after_sigterm")
    node = start()
    result["after_sigterm_s"] = flow.watch.growth(flow.marks[-1][1]) - node.started
    result["after_sigterm_cpu_s"] = node.cpu()
    flow.settle()
    node.end(signal.SIGKILL)
    killed = time.monotonic()
    flow.mark("after_kill")
    node = start()
    result["after_kill_s"] = flow.watch.growth(flow.marks[-1][1]) - killed
    result["after_kill_cpu_s"] = node.cpu()
    flow.settle()
    result |= flow.counts()
    return result
