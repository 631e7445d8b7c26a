"""One way of reading a topic, in a process of its own; prints what it took as JSON.

``readers.py NAME`` with its settings as JSON on standard input. Times are those of the reading
alone, from the first request to the result; processor time and memory are the process tree's.
"""

# Each reader imports only what it measures.
# ruff: noqa: PLC0415

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

Settings = dict[str, Any]
PARTITIONS = 6


def cpu() -> float:
    """Processor time of this process and the one Java below it, in seconds."""
    total = 0.0
    for pid in (os.getpid(), java()):
        if pid is not None:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def java() -> int | None:
    """The Java process this one started."""
    own = os.getpid()
    for child in Path(f"/proc/{own}/task/{own}/children").read_text().split():
        if Path(f"/proc/{child}/comm").read_text().strip() == "java":
            return int(child)
    return None


def peak_mib() -> float:
    """Most memory the Java process, or else this one, ever held."""
    status = Path(f"/proc/{java() or os.getpid()}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def measured(read: Callable[[], int]) -> dict[str, float]:
    """Time, processor time and memory of a reading.

    :param read: returns the number of records it saw.
    """
    cpu_before, begun = cpu(), time.monotonic()
    records = read()
    seconds = time.monotonic() - begun
    return {
        "seconds": seconds,
        "cpu_s": cpu() - cpu_before,
        "records": records,
        "records_per_s": records / seconds,
        "peak_mib": peak_mib(),
    }


def spark(
    settings: Settings,
    jobs: list[list[Literal["source", "target"]]],
    kind: str,
    *,
    warm: bool = True,
) -> dict[str, float]:
    """Read with the report's own functions.

    :param jobs: sides that are read in one job, job after job.
    :param kind: ``digest``, or ``count`` for a bare one.
    :param warm: read everything once before, so that Java has compiled its code.
    """
    from mirror_report.config import Cluster, Spark
    from mirror_report.parity.frames import align, digest
    from mirror_report.parity.plan import Range
    from mirror_report.parity.spark import session, source
    from mirror_report.parity.state import Widths

    how = Spark(
        master=settings.get("master", "local[2]"),
        heap=settings["heap"],
        jars_directory=settings["jars"],
        class_archive=settings["classes"],
        fetch=settings.get("fetch", {}),
    )

    def frame(session_: Any, sides: list[Literal["source", "target"]]) -> Any:
        parts = []
        for side in sides:
            ranges = [
                Range("f", side, settings["topic"], settings["topic"], number, 0, end,
                      settings["record_bytes"])
                for number, end in enumerate(settings["ends"][side])
            ]  # fmt: skip
            connect = source.connection(how, Cluster(side, (settings[side],)), None, ranges)
            parts.append(source.read(session_, ranges, connect))
        rows = digest.union(parts)
        if kind == "count":
            return rows.groupBy("topic", "partition").count().selectExpr("`count` as n")
        return digest.digest(align.place(rows, Widths(60_000)))

    # Warm, it is the rate of those that read for long.
    records = session.LARGE_RECORDS if warm else settings["records"]
    expected = max(records * settings["record_bytes"], session.SMALL_BYTES)
    with session.open_session(how, expected, records) as opened:

        def read() -> int:
            return sum(row["n"] for job in jobs for row in frame(opened, job).collect())

        if warm:
            read()
        return measured(read)


def perf(settings: Settings) -> dict[str, float]:
    """Kafka's own consumer perf tool; its rate leaves out its start and its joining of a group."""
    command = [
        f"{settings['kafka']}/bin/kafka-consumer-perf-test.sh", "--bootstrap-server",
        settings["source"], "--topic", settings["topic"], "--messages", str(settings["records"]),
        "--hide-header", "--timeout", "60000",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    line = next(line for line in reversed(done.stdout.splitlines()) if line.count(",") >= 9)
    fields = [field.strip() for field in line.split(",")]
    return {"records": float(fields[4]), "records_per_s": float(fields[9])}


class Digest:
    """What a checker of one process keeps: additive sums per partition and minute."""

    def __init__(self) -> None:
        self.buckets: dict[tuple[int, int], list[int]] = {}
        self.records = 0

    def add(self, partition: int, stamp: int, key: bytes | None, value: bytes | None) -> None:
        """Take one record."""
        digest = hashlib.blake2b(key or b"", digest_size=16)
        digest.update(value or b"")
        found = digest.digest()
        low, high = int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")
        bucket = self.buckets.setdefault((partition, stamp // 60_000), [0, 0, 0, 0])
        bucket[0] += 1
        bucket[1] += low
        bucket[2] += high
        bucket[3] ^= low
        self.records += 1


def confluent(settings: Settings, rest_ms: int = 1000) -> dict[str, float]:
    """A checker of one process on librdkafka.

    :param rest_ms: how long it rests whenever its queue is full; the default is librdkafka's.
    """
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": settings["source"], "group.id": "bench", "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "check.crcs": True,
        "fetch.queue.backoff.ms": rest_ms,
    })  # fmt: skip
    consumer.assign([TopicPartition(settings["topic"], n, 0) for n in range(PARTITIONS)])

    def read() -> int:
        kept = Digest()
        while kept.records < settings["records"]:
            messages: Iterable[Any] = consumer.consume(10_000, 10)
            for message in messages:
                # A message whose value is empty counts as false.
                if message is not None and message.error() is None:
                    kept.add(
                        message.partition(), message.timestamp()[1], message.key(), message.value()
                    )
        return kept.records

    return measured(read)


def kafka_python(settings: Settings) -> dict[str, float]:
    """A checker of one process in pure Python."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=settings["source"], enable_auto_commit=False, max_poll_records=10_000
    )
    parts = [TopicPartition(settings["topic"], number) for number in range(PARTITIONS)]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)

    def read() -> int:
        kept = Digest()
        while kept.records < settings["records"]:
            for some in consumer.poll(1000).values():
                for record in some:
                    kept.add(record.partition, record.timestamp, record.key, record.value)
        return kept.records

    return measured(read)


def stock(settings: Settings) -> dict[str, float]:
    """PySpark as its documentation starts it: the first aggregates of both sides' new records."""
    from pyspark.sql import SparkSession

    begun = time.monotonic()
    jars = ",".join(str(jar) for jar in sorted(Path(settings["jars"]).glob("*.jar")))
    session = (
        SparkSession.builder.master("local[2]").config("spark.jars", jars)
        .config("spark.ui.enabled", "false").getOrCreate()
    )  # fmt: skip
    records = 0
    for side in ("source", "target"):
        rows = (
            session.read.format("kafka")
            .option("kafka.bootstrap.servers", settings[side])
            .option("subscribe", settings["topic"])
            .option("startingOffsets", "earliest")
            .option("endingOffsets", "latest")
            .load()
        )
        found = rows.groupBy("topic", "partition").count().collect()
        records += sum(row["count"] for row in found)
    return {
        "seconds": time.monotonic() - begun,
        "cpu_s": cpu(),
        "records": records,
        "peak_mib": peak_mib(),
    }


READERS: dict[str, Callable[[Settings], dict[str, float]]] = {
    "perf": perf,
    "count": lambda settings: spark(settings, [["source"]], "count"),
    "digest": lambda settings: spark(settings, [["source"]], "digest"),
    "cold_digest": lambda settings: spark(settings, [["source"]], "digest", warm=False),
    "one_job": lambda settings: spark(settings, [["source", "target"]], "digest"),
    "two_jobs": lambda settings: spark(settings, [["source"], ["target"]], "digest"),
    "confluent": lambda settings: confluent(settings, rest_ms=10),
    "confluent_stock": confluent,
    "kafka_python": kafka_python,
    "stock": stock,
}

if __name__ == "__main__":
    print(json.dumps(READERS[sys.argv[1]](json.load(sys.stdin))))
