"""Memory does not grow with the data: real runs over some records and over ten times as many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata
from parity_records import jars_directory

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars"),
]

RECORDS = 300_000
PARTITIONS = 6
MB = 1000 * 1000 / 1024
"""In units of the kernel, which counts 1024 bytes as one."""


def fill(home: Path, bootstrap: str, topic: str, records: int) -> None:
    """Write records of 1 KiB, and commit all of them as mirrored."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    admin.close()
    subprocess.run(
        [home / "bin/kafka-producer-perf-test.sh", "--topic", topic, "--record-size", "1024",
         "--num-records", str(records), "--throughput", "-1",
         "--producer-props", f"bootstrap.servers={bootstrap}", "batch.size=262144", "linger.ms=20"],
        check=True, stdout=subprocess.DEVNULL, env={**os.environ, "KAFKA_HEAP_OPTS": "-Xmx256m"},
    )  # fmt: skip
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=f"mirrormaker-{topic}", enable_auto_commit=False
    )
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(parts)
    ends = consumer.end_offsets(parts)
    consumer.commit({partition: OffsetAndMetadata(end, "", -1) for partition, end in ends.items()})
    consumer.close()
    assert sum(ends.values()) == records


def java_below(pid: int) -> int | None:
    """The Java process that a process, or one that it started, runs."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        name = Path(f"/proc/{child}/comm").read_text().strip()
        found = int(child) if name == "java" else java_below(int(child))
        if found is not None:
            return found
    return None


def peak_kb(pid: int) -> int:
    """Most memory a process ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def run(bootstrap: str, topic: str, directory: Path) -> tuple[int, int]:
    """Make a whole report of a mirror whose sides are one topic.

    :returns: peak of the driver's memory in kB, and records verified.
    """
    directory.mkdir()
    config = directory / "config.json"
    flow = {"name": topic, "source": "a", "target": "b", "include": topic,
            "group_id": f"mirrormaker-{topic}"}  # fmt: skip
    config.write_text(
        json.dumps(
            {
                "version": 1,
                "clusters": {alias: {"bootstrap_servers": [bootstrap]} for alias in "ab"},
                "flows": [flow],
                "state_directory": str(directory / "state"),
                "spark": {
                    "master": "local[2]",
                    "heap": "512m",
                    "jars_directory": str(jars_directory()),
                },
            }
        )
    )
    with (directory / "out.json").open("wb") as out, (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mirror_report.cli", "--config", str(config), "run", "--json"],
            stdout=out, stderr=log, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        peak = 0
        java = None
        while process.poll() is None:
            try:
                java = java or java_below(process.pid)
                peak = peak_kb(java) if java else peak
            except (OSError, StopIteration):  # it has just ended
                java = None
            time.sleep(0.1)
    text = (directory / "out.json").read_text()
    assert text, (directory / "log").read_text()
    document = json.loads(text)
    assert document["spark_started"], document["findings"]
    (row,) = document["parity"]
    return peak, row["verified_records"]


def test_memory_stays_flat_at_ten_times_the_data(
    kafka_home: Path,
    kafka_broker: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    peaks = {}
    for factor in (1, 10):
        topic = f"memory-{factor}"
        fill(kafka_home, kafka_broker, topic, RECORDS * factor)
        peaks[factor], verified = run(kafka_broker, topic, tmp_path / topic)
        assert verified == RECORDS * factor
        record_property(f"peak_kb_{factor}", peaks[factor])
    assert peaks[1] > 200 * MB, "that was no driver"
    assert peaks[10] <= 1.15 * peaks[1], peaks
    assert peaks[10] <= 650 * MB, peaks
