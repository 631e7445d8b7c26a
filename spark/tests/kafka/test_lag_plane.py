"""The lag plane against real brokers: what several observations, or a transaction, show."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import kafka.codec
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from pairs import Pair, admin, kinds, member

from mirror_report.baseline.record import record_baselines
from mirror_report.check.flows import check_flows
from mirror_report.config import Cluster, Credentials
from mirror_report.kafka.records import oldest_waiting
from mirror_report.lag.measure import LagResult, measure_lag
from mirror_report.model import PartitionLag, ReportError
from mirror_report.report.make import make_report


def measured(pair: Pair, **changes: Any) -> LagResult:
    return measure_lag(pair.settings(**changes), pair.store())


def first(result: LagResult) -> PartitionLag:
    return next(row for row in result.rows if row.partition == 0)


def truncate(pair: Pair, offset: int) -> None:
    with admin(pair.source) as client:
        client.delete_records({TopicPartition(pair.topic, 0): offset})


@pytest.fixture
def transactional(pair: Pair) -> Iterator[Any]:
    """A producer with a transaction open on a topic of one partition; one is committed before."""
    pair.create("source", partitions=1)
    pair.create("target", partitions=1)
    producer = KafkaProducer(bootstrap_servers=pair.source, transactional_id=pair.topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(pair.topic, value=b"committed")
    producer.commit_transaction()
    pair.mirror(1)
    producer.begin_transaction()
    producer.send(pair.topic, value=b"open")
    producer.flush()
    yield producer
    producer.close()


def test_hung_transaction_is_no_stuck_mirror(pair: Pair, transactional: Any) -> None:
    pair.flow = {"source_isolation": "read_committed", "commit_interval_ms": 100}
    with member(pair):
        measured(pair, warn={"stalled_seconds": 1})
        time.sleep(1.2)
        result = measured(pair, warn={"stalled_seconds": 1})
        row = first(result)
        assert (row.state, row.lag_records) == ("IDLE", 0)
        assert row.open_transaction_seconds is not None
        assert 1 <= row.open_transaction_seconds < 60
        (found,) = result.findings
        assert (found.kind, found.topic, found.partition) == ("hung_transaction", pair.topic, 0)
        assert f"of {pair.topic} is open" in found.message
        # Behind the committed record lies the marker of its transaction.
        assert "--partition 0 --start-offset 2" in found.action
        transactional.abort_transaction()
        result = measured(pair, warn={"stalled_seconds": 1})
        assert first(result).open_transaction_seconds is None
        assert (first(result).lag_records, result.findings) == (0, [])


def test_what_is_not_committed_waits_for_a_mirror_that_copies_it(
    pair: Pair, transactional: Any
) -> None:
    assert first(measured(pair)).lag_records == 2, "the marker before it is an offset too"
    transactional.abort_transaction()
    row = first(measured(pair))
    assert row.state == "STOPPED"
    pair.mirror(1)
    row = first(measured(pair))
    assert (row.lag_records, row.state) == (0, "IDLE"), "the marker is no record"


def test_certain_loss_stays_after_the_mirror_moved_on_until_a_new_baseline(mirrored: Pair) -> None:
    record_baselines(mirrored.settings(), None, full_history=False, renew=False)
    measured(mirrored)
    truncate(mirrored, 9)
    result = measured(mirrored)
    assert {finding.kind: finding.count for finding in result.findings} == {
        "truncated": 2,
        "stopped": 1,
    }
    assert (first(result).state, first(result).lost, first(result).lost_at_most) == (
        "TRUNCATED", 2, None,
    )  # fmt: skip
    mirrored.mirror(1)
    result = measured(mirrored)
    assert {finding.kind: finding.count for finding in result.findings} == {
        "truncated": 2,
        "not_running": None,
    }
    assert (first(result).state, first(result).lag_records) == ("IDLE", 0)
    record_baselines(mirrored.settings(), None, full_history=False, renew=True)
    assert kinds(measured(mirrored).findings) == ["not_running"]


def test_new_baseline_accepts_a_loss_the_mirror_has_not_passed_yet(mirrored: Pair) -> None:
    truncate(mirrored, 9)
    assert "truncated" in kinds(measured(mirrored).findings)
    record_baselines(mirrored.settings(), None, full_history=False, renew=True)
    assert kinds(measured(mirrored).findings) == ["stopped"]


def test_mirror_that_jumped_over_a_truncation_between_two_observations_is_bounded(
    mirrored: Pair,
) -> None:
    measured(mirrored)
    truncate(mirrored, 9)
    mirrored.mirror(1)
    result = measured(mirrored)
    assert [(finding.severity, finding.kind, finding.count) for finding in result.findings] == [
        ("warning", "possible_loss", 2),
        ("warning", "not_running", None),
    ]
    row = first(result)
    assert (row.state, row.lost, row.lost_at_most) == ("IDLE", 0, 2)


def test_observations_give_rates_and_when_the_mirror_is_through(mirrored: Pair) -> None:
    mirrored.flow = {"commit_interval_ms": 100}
    measured(mirrored)
    mirrored.produce(20)
    time.sleep(0.3)
    with member(mirrored):
        row = first(measured(mirrored))
    assert row.produce_rate is not None
    assert row.produce_rate > 0
    assert (row.mirror_rate, row.eta_seconds, row.catches_up) == (0.0, None, False)
    mirrored.mirror(22)
    with member(mirrored):
        row = first(measured(mirrored))
    assert row.mirror_rate is not None
    assert row.mirror_rate > 0
    assert row.catches_up
    assert row.eta_seconds is not None
    assert row.lag_bytes is not None
    assert row.lag_bytes > 0
    assert row.waiting_seconds is not None
    assert row.waiting_seconds >= 0


def test_lag_over_time_is_in_the_report(mirrored: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_report.report.make._parity", lambda *_: (None, []))
    measured(mirrored)
    mirrored.mirror(1)
    report = make_report(mirrored.settings(), None, lambda _: None)
    assert [(point.topic, point.lag_records) for point in report.history][-1] == (mirrored.topic, 2)


def test_topic_that_is_gone_by_now_is_not_made_by_asking_for_it(auto_creating_broker: str) -> None:
    cluster = Cluster("east", (auto_creating_broker,))
    with contextlib.suppress(ReportError):
        oldest_waiting(cluster, Credentials(), {("gone", 0): (0, 1)}, 1)
    with admin(auto_creating_broker) as client:
        assert "gone" not in client.list_topics()


def test_newest_heartbeat_is_of_the_targets_topic_whatever_the_policy(mirrored: Pair) -> None:
    mirrored.mirror(3)
    topic = "east.heartbeats"
    document = {
        "engine": "mm2",
        "offset_topic": "o",
        "status_topic": "s",
        "offset_syncs_topic": "y",
    }
    with admin(mirrored.target) as client:
        client.create_topics([NewTopic(name, 1, 1) for name in (topic, "o", "s", "y")])
        client.wait_for_topics([topic, "o", "s", "y"])
    try:
        producer = KafkaProducer(bootstrap_servers=mirrored.target, acks="all")
        minutes_ago = int(time.time() * 1000) - 600_000
        producer.send(topic, value=b"x", timestamp_ms=minutes_ago).get(30)
        producer.close()
        mirrored.flow = document
        result = measured(mirrored)
        age = result.flows[0].heartbeat_age_seconds
        assert age is not None
        assert 600 <= age < 700
        assert "heartbeat" in kinds(result.findings)
    finally:
        with admin(mirrored.target) as client:
            client.delete_topics([topic, "o", "s", "y"])


def test_lag_names_what_stops_the_mirror(pair: Pair) -> None:
    pair.create("source", partitions=2)
    pair.produce(1)
    with member(pair):
        found = [each for each in measured(pair).findings if each.kind == "topic_missing"]
        assert [(each.topic, each.severity) for each in found] == [(pair.topic, "critical")]
        pair.create("target", partitions=1)
        found = [each for each in measured(pair).findings if each.kind == "partitions_fewer"]
        assert [each.topic for each in found] == [pair.topic]


def test_a_mirror_that_is_not_running_is_said_also_at_rest(pair: Pair) -> None:
    for side in ("source", "target"):
        pair.create(side)
    pair.produce(2)
    pair.mirror(2)
    assert kinds(measured(pair).findings) == ["not_running"]
    with member(pair):
        assert kinds(measured(pair).findings) == []


def test_lag_is_told_from_the_source_while_the_target_is_away(pair: Pair) -> None:
    pair.create("source")
    pair.create("target")
    pair.produce(5)
    pair.mirror(2)
    pair.clusters = {"west": {"bootstrap_servers": ["127.0.0.1:1"]}}
    with member(pair):
        result = measured(pair)
    assert (first(result).lag_records, first(result).state) == (3, "OK")
    assert kinds(result.findings) == ["unreachable"]
    (status,) = result.flows
    assert (status.group_state, status.target_cluster_id) == ("Stable", None)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_age_of_compressed_records_is_known(pair: Pair, codec: str) -> None:
    pair.create("source", 1, **{"compression.type": codec})
    pair.create("target", 1)
    pair.produce(3)
    result = measured(pair)
    assert kinds(result.findings) == ["stopped"]
    age = first(result).lag_seconds
    assert age is not None
    assert 0 <= age < 60


def segment(pair: Pair, partition: int) -> Path:
    """The file that holds the source's records of a partition."""
    with admin(pair.source) as client:
        (log,) = client.describe_log_dirs()
    (path,) = [directory["log_dir"] for directory in log["log_dirs"]]
    return Path(path) / f"{pair.topic}-{partition}" / f"{0:020}.log"


def test_broken_batch_leaves_the_age_of_its_partition_alone_unknown(pair: Pair) -> None:
    pair.create("source", 6)
    pair.create("target", 6)
    for partition in range(6):
        pair.produce(3, partition)
    for partition in (1, 4):
        # The length of the first record: its batch is damaged, however many the producer made.
        with segment(pair, partition).open("r+b") as log:
            log.seek(61)
            log.write(b"\xff")
    result = measured(pair)
    assert {row.partition for row in result.rows if row.lag_seconds is None} == {1, 4}
    assert [row.lag_records for row in result.rows] == [3] * 6
    assert kinds(result.findings) == ["not_checked", "stopped"]
    (found,) = [each for each in result.findings if each.kind == "not_checked"]
    assert (found.severity, found.topic, found.count) == ("warning", pair.topic, 2)
    assert "in partition 1 behind offset 0" in found.message
    assert "failed crc check" in found.message


def test_codec_that_is_not_installed_is_named(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.create("source", 1, **{"compression.type": "snappy"})
    pair.create("target", 1)
    pair.produce(3)
    monkeypatch.setattr(kafka.codec, "snappy", None)
    result = measured(pair)
    assert kinds(result.findings) == ["not_checked", "stopped"]
    (said,) = [each.message for each in result.findings if each.kind == "not_checked"]
    assert "python-snappy is not installed" in said


def test_paused_connector_is_said_though_nothing_waits(pair: Pair) -> None:
    own = {name: f"{pair.topic}-{name}" for name in ("offsets", "status", "syncs")}
    for side in ("source", "target"):
        pair.create(side, 1)
    with admin(pair.target) as client:
        client.create_topics([
            NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact"})
            for name in own.values()
        ])  # fmt: skip
        client.wait_for_topics(list(own.values()))
    pair.produce(3)
    pair.flow = {
        "engine": "mm2-connect", "offset_topic": own["offsets"], "status_topic": own["status"],
        "offset_syncs_topic": own["syncs"],
        "connectors": ["orders", "orders-groups", "orders-beats"],
    }  # fmt: skip
    place = {"cluster": "east", "partition": 0, "topic": pair.topic}

    def write(topic: str, key: str, value: dict[str, Any]) -> None:
        with contextlib.closing(KafkaProducer(bootstrap_servers=pair.target)) as producer:
            producer.send(topic, key=key.encode(), value=json.dumps(value).encode()).get(30)

    def state(state: str) -> None:
        said = {"state": state, "trace": None, "worker_id": "w1:8083", "generation": 4}
        write(own["status"], "status-connector-orders", said)

    write(own["offsets"], json.dumps(["orders", place]), {"offset": 2})
    with member(replace(pair, source=pair.target)):
        state("RUNNING")
        assert kinds(measured(pair).findings) == []
        for word in ("PAUSED", "STOPPED"):
            state(word)
            for found in (measured(pair).findings, check_flows(pair.settings()).findings):
                said = [each for each in found if each.kind == "not_running"]
                assert [each.severity for each in said] == ["warning"]
                assert f"connector orders is {word}" in said[0].message
        assert first(measured(pair)).lag_records == 0
