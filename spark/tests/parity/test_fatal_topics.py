"""Records that cost a reader far more than their producer: none hides another topic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaProducer
from parity_mirror import T0, Mirror
from parity_records import jars_directory

from mirror_report.config import Flow, Spark
from mirror_report.lag.measure import measure_lag
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import FlowSnapshot, RunPlan, TopicPlan
from mirror_report.parity.plan.fatal_topics import TRIED_AGAIN_MS, Search, remember, without
from mirror_report.parity.state import Manifest

HEAP = "512m"
HUGE = 600 * 1024 * 1024
HEADERS = 1_000_000


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
    assert set(search.fatal) == wrong
    assert read == set(topics) - wrong, "every other topic is read"
    assert tried <= 1 + 2 * max(1, len(wrong)) * count.bit_length()


def test_a_topic_that_ends_the_jvm_is_left_alone_until_something_may_help() -> None:
    def begun(at: int) -> RunPlan:
        source, target = (
            ClusterSnapshot(alias, alias, 0, {
                "t": TopicSnapshot("t", "id", {0: PartitionSnapshot(start, 100)}, {}, None)})
            for alias, start in (("a", at), ("z", 0))
        )  # fmt: skip
        flow = Flow(name="f", source="a", target="z", include=".*")
        topics = (TopicPlan("f", "t", ("t",)), TopicPlan("f", "u", ("u",)))
        return RunPlan({"f": FlowSnapshot(flow, {}, source, target)}, topics)

    known = remember(Manifest(60_000), begun(3), [("f", "t")], HEAP, 7)
    assert known.fatal["f"]["t"].starts == {("source", "t"): {0: 3}, ("target", "t"): {0: 0}}
    why = {topic.topic: topic.unknown for topic in without(known, begun(3)).topics}
    assert "does not fit into spark.heap (512m)" in (why["t"] or "")
    assert why["u"] is None
    assert remember(known, begun(3), [], HEAP, 8) == known
    assert remember(known, replace(begun(3), topics=()), [], "4g", 8) == known, "it is not there"
    for plan, heap, at_ms in (
        (begun(4), HEAP, 8), (begun(3), "4g", 8), (begun(3), HEAP, 7 + TRIED_AGAIN_MS),
    ):  # fmt: skip
        assert remember(known, plan, [], heap, at_ms).fatal == {"f": {}}


def neighbours(mirror: Mirror, *names: str) -> None:
    """Mirror some records of each topic."""
    for name in names:
        topic = mirror.topic(name, 1)
        mirror.produce(topic, 60)
        mirror.copy(topic)


def send(broker: str, topic: str, codec: str, value: bytes, headers: Any = None) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker, compression_type=codec, max_request_size=2 * HUGE
    )
    producer.send(topic, value=value, headers=headers, timestamp_ms=T0).get(120)
    producer.close()


@pytest.fixture
def poisoned(mirror: Mirror, request: pytest.FixtureRequest) -> Mirror:
    """Three topics, one of which has a record that decompresses to more than the heap."""
    neighbours(mirror, "a", "huge", "z")
    send(mirror.brokers[0], f"{mirror.prefix}.huge", request.param, bytes(HUGE))
    return mirror


CODECS = pytest.mark.parametrize("poisoned", ["gzip", "zstd"], indirect=True)


def run(mirror: Mirror, directory: Path, heap: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, document and progress of a run by its own process."""
    config = directory / "config.yaml"
    config.write_text(yaml.safe_dump({
        "version": 1,
        "state_directory": str(directory / "state"),
        "clusters": {alias: {"bootstrap_servers": [address]}
                     for alias, address in zip("ab", mirror.brokers, strict=True)},
        "flows": [{"name": "flow", "engine": "mm1", "source": "a", "target": "b",
                   "include": f"{mirror.prefix}\\..*", "topics": [f"{mirror.prefix}\\..*"],
                   "group_id": mirror.group}],
        "spark": {"master": "local[1]", "heap": heap, "jars_directory": str(jars_directory())},
        "budget": {"scrub_bytes": 0},
    }))  # fmt: skip
    (directory / "state").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "mirror_report.cli", "--config", str(config), "run", "--json"],
        capture_output=True, text=True, timeout=1800, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )  # fmt: skip
    assert done.stdout, done.stderr[-3000:]
    return done.returncode, json.loads(done.stdout), done.stderr


def verified(document: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Topic -> status, and how many records are verified."""
    return {
        topic["topic"].partition(".")[2]: (topic["status"], topic["verified_records"])
        for topic in document["parity"]
    }


@pytest.mark.long
@CODECS
@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
def test_a_record_larger_than_the_heap_is_named_and_remembered_and_the_others_are_judged(
    poisoned: Mirror, tmp_path: Path
) -> None:
    status, document, progress = run(poisoned, tmp_path, HEAP)
    assert (status, verified(document)) == (
        2, {"a": ("verified", 60), "huge": ("unknown", 0), "z": ("verified", 60)}
    )  # fmt: skip
    (reason,) = (t["reason"] for t in document["parity"] if t["status"] == "unknown")
    assert "does not fit into spark.heap (512m)" in reason
    assert "its heap was full" in progress
    for name in ("a", "z"):
        poisoned.produce(f"{poisoned.prefix}.{name}", 10, start=60)
        poisoned.copy_since(f"{poisoned.prefix}.{name}", 0)
    _, document, progress = run(poisoned, tmp_path, HEAP)
    assert verified(document)["huge"] == ("unknown", 0)
    assert "its heap was full" not in progress, "it is remembered"


@pytest.mark.long
@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
def test_a_record_of_a_million_headers_is_compared_within_the_default_heap(
    mirror: Mirror, tmp_path: Path
) -> None:
    neighbours(mirror, "a", "wide")
    headers = [(f"h{number % 10}", b"") for number in range(HEADERS)]
    for broker in mirror.brokers:
        send(broker, f"{mirror.prefix}.wide", "gzip", b"v", headers)
    mirror.commit(f"{mirror.prefix}.wide")
    _, document, _ = run(mirror, tmp_path, Spark().heap)
    assert verified(document) == {"a": ("verified", 60), "wide": ("verified", 61)}
    assert document["coverage"] == 1.0
    result = measure_lag(mirror.settings, mirror.store)
    assert {row.lag_records for row in result.rows} == {0}


@pytest.mark.long
@CODECS
def test_lag_is_known_of_all_and_takes_no_memory(poisoned: Mirror) -> None:
    result = measure_lag(poisoned.settings, poisoned.store)
    lags = {row.topic.partition(".")[2]: row.lag_records for row in result.rows}
    assert lags == {"a": 0, "huge": 1, "z": 0}
    (row,) = [row for row in result.rows if row.lag_records]
    assert row.lag_seconds is None
    (found,) = [finding for finding in result.findings if finding.kind == "not_checked"]
    assert "takes more memory than there is" in found.message
    assert "--offset" in found.action
