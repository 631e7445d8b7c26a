"""A mirror's process while it copies: where its processor time goes, and what it holds."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from common import MeasurementError, Node, threads
from flowing import PARTITIONS
from kafka import KafkaConsumer, TopicPartition

# What the names of threads begin with, of which Linux keeps 15 characters.
THREADS = {
    "gc": ("GC Thread", "G1 "),
    "compiler": ("C1 Compiler", "C2 Compiler"),
    "producer": ("kafka-producer-",),
    "task": ("mirrormaker-thr", "task-thread-mir", "task-thread-Mir"),
}
STEADY = (0.2, 0.95)
"""Parts of the records between which the rate is measured."""


@dataclass
class Moment:
    """What was so at one moment: records on the target, and processor seconds by kind of thread."""

    at: float
    copied: int
    cpu_s: float
    threads: Counter[str]


@dataclass
class Copying:
    """A topic of a target while a process fills it.

    :param box: seconds after the first record at which the trial ends, whatever is copied.
    """

    address: str
    topic: str
    node: Node
    records: int
    box: float
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    def watch(self, start_limit: float = 120) -> dict[str, float]:
        """Wait until all is copied or the time is over.

        :returns: numbers of the trial; ``copied``, and ``boxed`` 1 if the time was over first.
        """
        consumer = KafkaConsumer(bootstrap_servers=self.address)
        try:
            first = self._first(consumer, self.node.started + start_limit)
            begin = end = None
            while end is None:
                now = self._moment(consumer)
                passed = max(
                    now.copied / self.records, (now.at - first) / self.box if self.box else 0.0
                )
                if begin is None and passed >= STEADY[0]:
                    begin = now
                if passed >= STEADY[1]:
                    end = now
            boxed = end.copied < STEADY[1] * self.records
            while not boxed and sum(self.ends) < self.records:
                self._read(consumer)
                time.sleep(0.1)
        finally:
            consumer.close()
        if begin is None or begin is end:
            raise MeasurementError(f"{self.topic}: copied too fast to be measured")
        seconds, copied = end.at - begin.at, end.copied - begin.copied
        cpu = end.cpu_s - begin.cpu_s
        return {
            "first_record_s": first - self.node.started,
            "records_per_s": copied / seconds,
            "cpu_s_per_record": cpu / copied,
            "cores": cpu / seconds,
            "peak_mib": self._peak_mib(),
            "copied": float(sum(self.ends)),
            "boxed": float(boxed),
            **{
                f"cpu_share_{kind}": (end.threads[kind] - begin.threads[kind]) / cpu
                for kind in (*THREADS, "other")
            },
        }

    def _first(self, consumer: KafkaConsumer, deadline: float) -> float:
        # A consumer asked for a topic that is not there waits for its whole timeout.
        while self.topic not in consumer.topics():
            self._alive(deadline)
        while not sum(self.ends):
            self._alive(deadline)
            self._read(consumer)
        return time.monotonic()

    def _alive(self, deadline: float) -> None:
        if self.node.process.poll() is not None or time.monotonic() > deadline:
            said = self.node.log.read_text(errors="replace")[-3000:]
            raise MeasurementError(f"{self.topic}: nothing was copied: {said}")
        time.sleep(0.1)

    def _read(self, consumer: KafkaConsumer) -> None:
        found = consumer.end_offsets([TopicPartition(self.topic, n) for n in range(PARTITIONS)])
        self.ends = [found[TopicPartition(self.topic, number)] for number in range(PARTITIONS)]

    def _moment(self, consumer: KafkaConsumer) -> Moment:
        if self.node.process.poll() is not None:
            self._alive(0)
        time.sleep(0.1)
        self._read(consumer)
        return Moment(
            time.monotonic(),
            sum(self.ends),
            self.node.cpu(),
            threads(self.node.process.pid, THREADS),
        )

    def _peak_mib(self) -> float:
        status = Path(f"/proc/{self.node.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else 0.0

    def end(self) -> None:
        """End the process, and see what it has copied in the end."""
        self.node.end(signal.SIGTERM)
        consumer = KafkaConsumer(bootstrap_servers=self.address)
        self._read(consumer)
        consumer.close()
