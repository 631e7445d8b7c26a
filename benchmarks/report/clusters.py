"""Two clusters that the report's benchmarks fill, and the report as a process that is measured."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import MeasurementError, threads
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata
from trials import Trial

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PARTITIONS = 6
# What the names of threads of Spark's Java process begin with.
THREADS = {
    "compiler": ("C1 Compiler", "C2 Compiler"),
    "gc": ("VM Thread", "GC Thread", "G1 "),
    "task": ("Executor task", "task-result-get"),
    # One for each connection of Python's: it analyses, plans and starts jobs.
    "driver": ("Thread-",),
    "start": ("java", "main"),
}
ENVIRONMENT = {**os.environ, "KAFKA_HEAP_OPTS": "-Xmx512m"}
# A host has what pip compiled.
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass
class Lab:
    """Two clusters, what fills them, and the report that reads them.

    :param directory: of what the report keeps.
    :param tls: source and target where connections are encrypted.
    :param credentials: directory with the authority of both, as the report wants it.
    :param via: round trip in milliseconds -> address of the source as seen from so far.
    :param checkout: whose code is measured.
    """

    kafka: Path
    jars: Path
    directory: Path
    source: str
    target: str
    tls: tuple[str, str]
    credentials: Path
    records: int
    record_bytes: int
    via: dict[int, str] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    checkout: Path = ROOT

    @property
    def environment(self) -> dict[str, str]:
        """In which the code that is measured is found."""
        path = f"{self.checkout / 'spark/src'}:{os.environ.get('PYTHONPATH', '')}"
        directory = str(self.credentials)
        return {**ENVIRONMENT, "PYTHONPATH": path, "CREDENTIALS_DIRECTORY": directory}

    @property
    def classes(self) -> Path:
        """Where the archive of Java classes lies, which the report's role makes on its host."""
        return self.directory / "classes"

    def fill(self, topic: str, records: int, *addresses: str) -> None:
        """Write records into a topic, once per address."""
        for address in addresses:
            if f"{address}/{topic}" in self.filled:
                continue
            self.filled.add(f"{address}/{topic}")
            create(address, [topic])
            self.produce(topic, records, address)

    def produce(self, topic: str, records: int, address: str) -> None:
        """Write some more records."""
        command = [
            f"{self.kafka}/bin/kafka-producer-perf-test.sh", "--topic", topic, "--num-records",
            str(records), "--record-size", str(self.record_bytes), "--throughput", "-1",
            "--producer-props", f"bootstrap.servers={address}", "batch.size=262144", "linger.ms=20",
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)

    def write(self, topic: str, records: int, step_ms: int, begin_ms: int) -> None:
        """Write records whose timestamps lie so far apart."""
        with closing(KafkaProducer(bootstrap_servers=self.source, linger_ms=50)) as producer:
            for number in range(records):
                producer.send(
                    topic, b"%d" % number, partition=number % PARTITIONS,
                    timestamp_ms=begin_ms + number * step_ms,
                )  # fmt: skip

    def reader(self, name: str, **changes: object) -> Trial:
        """One reader of readers.py, in a process of its own."""
        settings = {
            "kafka": str(self.kafka), "jars": str(self.jars), "source": self.source,
            "target": self.target, "topic": "full", "records": self.records,
            "record_bytes": self.record_bytes, "heap": "1g", "classes": str(self.classes),
            **changes,
        }  # fmt: skip
        # The tool that fills topics does not fill partitions evenly, nor twice the same.
        settings["ends"] = {
            side: ends(str(settings[side]), str(settings["topic"])) for side in ("source", "target")
        }
        done = subprocess.run(
            [sys.executable, str(self.checkout / HERE.relative_to(ROOT) / "readers.py"), name],
            input=json.dumps(settings), capture_output=True, text=True, check=False,
            env=self.environment,
        )  # fmt: skip
        if done.returncode:
            raise MeasurementError(f"{name}: {done.stderr[-2000:]}")
        found: Trial = json.loads(done.stdout.splitlines()[-1])
        return found

    def configuration(
        self,
        name: str,
        include: str,
        heap: str = "512m",
        *,
        tls: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> Path:
        """A report whose flow has one cluster on both sides, so that all of it is mirrored."""
        flow = {"name": name, "source": "a", "target": "b", "include": include,
                "group_id": f"mirrormaker-{name}"}  # fmt: skip
        cluster = over_tls(self.tls[0]) if tls else {"bootstrap_servers": [self.source]}
        return self.configured(name, flow, {"a": cluster, "b": cluster}, heap, properties)

    def configured(
        self,
        name: str,
        flow: Mapping[str, Any],
        clusters: Mapping[str, Any],
        heap: str = "512m",
        properties: Mapping[str, str] | None = None,
    ) -> Path:
        """A report of one flow, with a directory of its own; ``properties`` are Spark's."""
        place = self.directory / name
        place.mkdir(exist_ok=True)
        spark = {"master": "local[2]", "heap": heap, "jars_directory": str(self.jars),
                 "class_archive": str(self.classes), "properties": properties or {}}  # fmt: skip
        path = place / "config.json"
        document = {
            "version": 1,
            "clusters": clusters,
            "flows": [flow],
            "state_directory": str(place / "state"),
            "spark": spark,
        }
        path.write_text(json.dumps(document))
        return path

    def report(self, config: Path, *command: str) -> tuple[Trial, dict[str, Any]]:
        """One command of the report, from its start to its end.

        :returns: its cost, and its JSON output.
        """
        argv = [sys.executable, "-m", "mirror_report.cli", "--config", str(config), *command]
        before, begun = _cpu(), time.monotonic()
        with (
            subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.environment,
            ) as process,
            watched(process.pid) as seen,
        ):
            out, said = process.communicate()
        seconds = time.monotonic() - begun
        if process.returncode not in {0, 1, 2}:
            raise MeasurementError(f"{' '.join(command)}: {said[-2000:]}")
        trial = {
            "seconds": seconds, "cpu_s": _cpu() - before, "peak_mib": max(seen.peaks.values()),
            **seen.cpu(),
        }  # fmt: skip
        return trial, json.loads(out) if out.startswith("{") else {}


def over_tls(address: str) -> dict[str, Any]:
    """How the report reaches a cluster over TLS."""
    return {"bootstrap_servers": [address], "security_protocol": "SSL", "ssl_ca": True}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Seen:
    """What was seen of processes.

    :param peaks: process id -> the most memory it ever held, in mebibytes.
    :param java: process id -> processor seconds by kind of thread (:data:`THREADS`).
    """

    peaks: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    java: dict[int, Counter[str]] = field(default_factory=dict)

    def cpu(self) -> Trial:
        """Processor seconds of Java by kind of thread, but for what its last tenth took."""
        used = sum(self.java.values(), Counter())
        return {f"cpu_s_{kind}": used[kind] for kind in (*THREADS, "other")} if used else {}


@contextmanager
def watched(pid: int) -> Iterator[Seen]:
    """Look at a process and at each that it starts, while it runs."""
    seen = Seen()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            for process in _tree(pid):
                with suppress(OSError, StopIteration):
                    text = Path(f"/proc/{process}/status").read_text().splitlines()
                    line = next(each for each in text if each.startswith("VmHWM"))
                    seen.peaks[process] = int(line.split()[1]) / 1024
                    if text[0].split()[1] == "java":
                        # The greatest of each: threads end before their process does.
                        before = seen.java.get(process, Counter())
                        seen.java[process] = before | threads(process, THREADS)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _tree(pid: int) -> list[int]:
    with suppress(OSError):
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(descendant for child in below for descendant in _tree(int(child)))]
    return []


def create(address: str, topics: Sequence[str], **configs: str) -> None:
    """Create topics."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([
        NewTopic(topic, PARTITIONS, 1, topic_configs=configs) for topic in topics
    ])  # fmt: skip
    admin.close()


def ends(address: str, topic: str) -> list[int]:
    """Log end offsets; zeros where there is no such topic."""
    consumer = KafkaConsumer(bootstrap_servers=address)
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = consumer.end_offsets(parts) if topic in consumer.topics() else {}
    consumer.close()
    return [found.get(part, 0) for part in parts]


def commit(address: str, group: str, topics: Sequence[str]) -> None:
    """Commit the ends of topics, as a mirror that has copied everything does."""
    consumer = KafkaConsumer(bootstrap_servers=address, group_id=group, enable_auto_commit=False)
    parts = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
    consumer.assign(parts)
    reached = consumer.end_offsets(parts)
    consumer.commit({part: OffsetAndMetadata(end, "", -1) for part, end in reached.items()})
    consumer.close()
