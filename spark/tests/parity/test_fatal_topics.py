"""A record that is larger than Spark's heap: its topic is unknown, and hides no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaProducer
from parity_mirror import Mirror
from parity_records import jars_directory

from mirror_report.commands.lag import measure_lag
from mirror_report.parity.plan.fatal import Search

HEAP = "512m"
HUGE = 300 * 1024 * 1024


@given(st.sets(st.integers(0, 20)), st.integers(1, 21))
def test_halves_find_every_topic_that_ends_the_jvm(fatal: set[int], count: int) -> None:
    topics = [("f", f"t{number:02}") for number in range(count)]
    wrong = {topics[number] for number in fatal if number < count}
    tried, search = 0, Search()
    groups = [tuple(topics)]
    read: set[tuple[str, str]] = set()
    while groups:
        group = groups.pop()
        tried += 1
        if wrong & set(group):
            search = search.ended(group)
        else:
            read |= set(group)
        if search.waiting:
            group, search = search.next()
            groups.append(group)
    assert set(search.found) == wrong
    assert read == set(topics) - wrong, "every other topic is read"
    assert tried <= 1 + 2 * max(1, len(wrong)) * count.bit_length()


@pytest.fixture
def poisoned(mirror: Mirror) -> Mirror:
    """Three topics, one of which has a record that decompresses to more than the heap."""
    for name in ("a", "huge", "z"):
        topic = mirror.topic(name, 1)
        mirror.produce(topic, 60)
        mirror.copy(topic)
    producer = KafkaProducer(
        bootstrap_servers=mirror.brokers[0], compression_type="gzip",
        max_request_size=2 * HUGE,
    )  # fmt: skip
    producer.send(f"{mirror.prefix}.huge", value=bytes(HUGE)).get(120)
    producer.close()
    return mirror


@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
def test_it_is_found_named_and_remembered_and_the_others_are_judged(
    poisoned: Mirror, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({
        "version": 1,
        "state_directory": str(tmp_path / "state"),
        "clusters": {alias: {"bootstrap_servers": [address]}
                     for alias, address in zip("ab", poisoned.brokers, strict=True)},
        "flows": [{"name": "flow", "engine": "mm1", "source": "a", "target": "b",
                   "include": f"{poisoned.prefix}\\..*", "topics": [f"{poisoned.prefix}\\..*"],
                   "group_id": poisoned.group}],
        "spark": {"master": "local[1]", "heap": HEAP, "jars_directory": str(jars_directory())},
        "budget": {"scrub_bytes": 0},
    }))  # fmt: skip
    (tmp_path / "state").mkdir()

    def run() -> tuple[dict[str, tuple[str, int]], str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "mirror_report.cli", "--config", str(config), "run", "--json"],
            capture_output=True, text=True, timeout=300, check=False,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        )  # fmt: skip
        assert done.returncode == 2, done.stderr[-3000:]
        assert done.stdout, done.stderr[-3000:]
        document = json.loads(done.stdout)
        told = {topic["topic"].partition(".")[2]: (topic["status"], topic["verified_records"])
                for topic in document["parity"]}  # fmt: skip
        unknown = [topic for topic in document["parity"] if topic["status"] == "unknown"]
        assert unknown, str([f for f in document["findings"] if f["severity"] == "unknown"])
        (reason,) = (topic["reason"] for topic in unknown)
        return told, reason, done.stderr

    told, reason, progress = run()
    assert told == {"a": ("verified", 60), "huge": ("unknown", 0), "z": ("verified", 60)}
    assert "does not fit into spark.heap (512m)" in reason
    assert "its heap was full" in progress
    for name in ("a", "z"):
        poisoned.produce(f"{poisoned.prefix}.{name}", 10, start=60)
        poisoned.copy_since(f"{poisoned.prefix}.{name}", 0)
    told, reason, progress = run()
    assert told["huge"] == ("unknown", 0)
    assert "its heap was full" not in progress, "it is remembered"


def test_lag_is_known_of_all_and_takes_no_memory(poisoned: Mirror) -> None:
    result = measure_lag(poisoned.settings, poisoned.store)
    lags = {row.topic.partition(".")[2]: row.lag_records for row in result.rows}
    assert lags == {"a": 0, "huge": 1, "z": 0}
    (row,) = [row for row in result.rows if row.lag_records]
    assert row.lag_seconds is None
    (found,) = [finding for finding in result.findings if finding.kind == "not_checked"]
    assert "takes more memory than there is" in found.message
    assert "--offset" in found.action
