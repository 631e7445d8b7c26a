"""The engine on two real clusters, with a small copier in the place of the mirror."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from parity_mirror import RECORDS, T0, Mirror, counts, eventually, only
from parity_records import jars_directory

from mirror_report.config import Cluster, Flow, Settings
from mirror_report.model import ClusterSnapshot, Positions
from mirror_report.observe import Take
from mirror_report.parity import source
from mirror_report.parity.plan import Range

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")


def test_a_faithful_mirror_is_verified_and_then_left_alone(mirror: Mirror) -> None:
    topic = mirror.topic("whole")
    mirror.produce(topic)
    mirror.copy(topic)
    result = mirror.run()
    found = only(result)
    assert (found.status, counts(found), result.findings) == ("verified", {}, [])
    assert found.source_records == found.target_records == found.verified_records == RECORDS
    assert found.buckets["verified"] == 10
    assert found.newest_due_ms == T0 + (RECORDS - 1) * 1000
    assert found.verified_through_ms is not None
    assert found.verified_through_ms > found.newest_due_ms
    assert (result.spark_started, result.backlog_records) == (True, 0)
    again = mirror.run()
    assert again.spark_started is False
    assert again.topics == result.topics
    mirror.produce(topic, 60, start=RECORDS)
    for one in mirror.read(0, topic):
        if one.timestamp >= T0 + RECORDS * 1000:
            mirror.write(one)
    mirror.producers[1].flush()
    mirror.commit(topic)
    third = only(mirror.run())
    assert (third.status, third.verified_records, counts(third)) == ("verified", RECORDS + 60, {})


def test_each_class_is_counted_exactly_and_then_accounted(mirror: Mirror) -> None:
    faults = {
        "missing": {"missing": 7},
        "duplicate": {"duplicate": 5},
        "corrupt": {"corrupt": 3},
        "extra": {"extra": 4},
        "mixed": {"missing": 2, "duplicate": 2, "corrupt": 1, "extra": 1},
    }
    topics = {mirror.topic(name): expected for name, expected in faults.items()}
    for topic, expected in topics.items():
        mirror.produce(topic, 200)
        mirror.copy(topic, faults=expected)
    first = mirror.run()
    assert {one.topic: counts(one) for one in first.topics} == topics
    assert {one.status for one in first.topics} == {"mismatch"}
    assert all(one.source_records == 200 for one in first.topics)
    for one in first.topics:
        lost = one.missing + one.corrupt
        assert one.verified_records == 200 - lost
        for name, expected_count in topics[one.topic].items():
            sides = 2 if name == "corrupt" else 1
            assert len(one.samples[name]) == expected_count * sides
    assert {(one.kind, one.topic): one.count for one in first.findings} == {
        (kind, topic): count for topic, some in topics.items() for kind, count in some.items()
    }
    severities = {one.kind: one.severity for one in first.findings}
    assert severities == {
        "missing": "critical", "corrupt": "critical", "duplicate": "warning", "extra": "warning",
    }  # fmt: skip
    second = mirror.run()
    assert second.spark_started is False, "nothing is new"
    for one in second.topics:
        expected = topics[one.topic]
        critical = {k: n for k, n in expected.items() if k in ("missing", "corrupt")}
        assert counts(one) == critical
        assert one.accounted == {k: expected.get(k, 0) for k in ("duplicate", "extra")}
        assert one.status == ("mismatch" if critical else "verified")
    assert all(one.accounted == (one.kind in ("duplicate", "extra")) for one in second.findings)
    mirror.produce(mirror.topic("other"), 1)
    third = mirror.run()
    assert third.spark_started is True
    by_topic = {one.topic: one for one in third.topics}
    for topic, expected in topics.items():
        assert by_topic[topic].accounted == {k: expected.get(k, 0) for k in ("duplicate", "extra")}
        assert by_topic[topic].missing == expected.get("missing", 0)
        assert by_topic[topic].corrupt == expected.get("corrupt", 0)
    assert not any("differ" in line for line in mirror.said[-4:]), "settled buckets stay settled"


def test_what_lies_past_the_position_is_in_flight(mirror: Mirror) -> None:
    topic = mirror.topic("behind")
    mirror.produce(topic)
    mirror.copy(topic, limit=20)
    found = only(mirror.run())
    assert (found.status, counts(found)) == ("in_flight", {})
    assert found.in_flight_records == found.source_records == RECORDS
    assert found.target_records == 60


def test_a_mirror_that_runs_meanwhile_is_no_difference(mirror: Mirror) -> None:
    """Records that are produced, mirrored and committed between the looks."""
    topic = mirror.topic("live")
    mirror.produce(topic, 120)
    mirror.copy(topic)

    class Meanwhile(Take):
        def __init__(self, settings: Settings) -> None:
            super().__init__(settings)
            self.next = 120

        def target(self, flow: Flow) -> ClusterSnapshot:
            mirror.produce(topic, 30, start=self.next)
            for one in mirror.read(0, topic):
                if one.timestamp >= T0 + self.next * 1000:
                    mirror.write(one)
            mirror.producers[1].flush()
            self.next += 30
            return super().target(flow)

    found = only(mirror.run(Meanwhile(mirror.settings)))
    assert counts(found) == {}
    assert found.buckets["verified"] >= 1
    assert any("differ" in line for line in mirror.said), "the drill was needed"
    mirror.commit(topic)
    found = only(mirror.run())
    assert (found.status, found.verified_records, counts(found)) == ("verified", 180, {})


def test_a_budget_leaves_a_backlog_and_the_next_runs_finish_it(mirror: Mirror) -> None:
    topic = mirror.topic("large")
    mirror.produce(topic)
    mirror.copy(topic)
    first = mirror.run(max_bytes=20_000)
    assert 0 < first.backlog_records < 2 * RECORDS
    assert only(first).status == "in_flight"
    assert [one.kind for one in first.findings] == ["backlog"]
    last = mirror.run()
    assert (only(last).status, only(last).verified_records) == ("verified", RECORDS)
    assert last.findings == []


def test_records_that_arrive_late_are_no_longer_missing(mirror: Mirror) -> None:
    topic = mirror.topic("late")
    mirror.produce(topic, 120)
    chosen = mirror.copy(topic, faults={"missing": 2})
    assert only(mirror.run()).missing == 2
    late = [one for one in chosen if one.value][:2]
    for one in late:
        mirror.write(one)
    mirror.producers[1].flush()
    found = only(mirror.run())
    assert (found.status, counts(found), found.verified_records) == ("verified", {}, 120)


def test_a_compacted_topic_is_skipped_with_its_reason(mirror: Mirror) -> None:
    topic = mirror.topic("table", cleanup_policy="compact")
    mirror.producers[0].send(topic, key=b"k", value=b"v").get(30)
    result = mirror.run()
    found = only(result)
    assert (found.status, found.source_records) == ("skipped", 0)
    assert "compacted" in found.reason
    assert [(one.kind, one.severity) for one in result.findings] == [("skipped", "warning")]
    assert result.spark_started is False


def test_a_topic_created_again_is_told_and_compared_anew(mirror: Mirror) -> None:
    topic = mirror.topic("again")
    mirror.produce(topic, 120)
    mirror.copy(topic)
    assert only(mirror.run()).status == "verified"
    mirror.admins[1].delete_topics([topic])
    eventually(lambda: topic not in mirror.admins[1].list_topics())
    mirror.admins[1].create_topics([NewTopic(topic, 3, 1)])
    result = mirror.run()
    assert only(result).missing == 120
    assert {one.kind for one in result.findings} == {"reset", "missing"}


def test_a_source_created_again_leaves_what_it_held_unverifiable(mirror: Mirror) -> None:
    topic = mirror.topic("gone")
    mirror.produce(topic, 120)
    mirror.copy(topic)
    assert only(mirror.run()).status == "verified"
    mirror.admins[0].delete_topics([topic])
    eventually(lambda: topic not in mirror.admins[0].list_topics())
    mirror.admins[0].create_topics([NewTopic(topic, 3, 1)])
    mirror.produce(topic, 120, start=600)
    for one in mirror.read(0, topic):
        mirror.write(one)
    mirror.producers[1].flush()
    mirror.commit(topic)
    result = mirror.run()
    found = only(result)
    assert counts(found) == {"unverifiable": 120}
    assert (found.verified_records, found.buckets["verified"]) == (120, 2)
    assert {one.kind for one in result.findings} == {"reset", "unverifiable"}


def test_records_that_expired_unread_are_unverifiable(mirror: Mirror) -> None:
    topic = mirror.topic("expired", partitions=1)
    mirror.store.commit("baseline", {"flow": {"recorded_at_ms": 1, "topics": {}}})
    mirror.produce(topic, 120)
    mirror.copy(topic)
    mirror.admins[0].delete_records({TopicPartition(topic, 0): 50})
    result = mirror.run()
    found = only(result)
    assert found.source_records == 70
    assert (found.missing, found.extra, found.duplicate, found.corrupt) == (0, 0, 0, 0)
    assert found.status == "unverifiable"
    assert found.unverifiable >= 50


def test_a_baseline_leaves_out_what_lies_before_it(mirror: Mirror) -> None:
    topic = mirror.topic("old", partitions=1)
    mirror.produce(topic, 90)
    # The target holds other things from before; only what comes after the baseline counts.
    for _ in range(7):
        mirror.producers[1].send(topic, value=b"before", timestamp_ms=T0).get(30)
    mirror.commit(topic, 30)
    mirror.store.commit(
        "baseline",
        {
            "flow": {
                "recorded_at_ms": 1,
                "topics": {
                    topic: {
                        "source": {"0": 30},
                        "target": {"0": 7},
                        "skip_through_ms": T0 + 29_000,
                        "source_id": None,
                        "target_id": None,
                    }
                },
            }
        },
    )
    for one in mirror.read(0, topic)[30:]:
        mirror.write(one)
    mirror.producers[1].flush()
    mirror.commit(topic)
    found = only(mirror.run())
    assert (found.source_records, found.target_records) == (60, 60)
    assert (found.skipped_records, found.verified_records) == (30, 30)
    assert (found.status, counts(found)) == ("verified", {})


def test_a_run_that_dies_leaves_the_state_of_the_one_before(mirror: Mirror) -> None:
    topic = mirror.topic("dies")
    mirror.produce(topic, 120)
    mirror.copy(topic)
    assert only(mirror.run()).verified_records == 120
    before = mirror.store.load("parity")
    mirror.produce(topic, 60, start=120)

    class Killed(BaseException):
        pass

    real = mirror.store.commit

    def killed(*_: Any) -> None:
        raise Killed

    mirror.store.commit = killed  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        mirror.run()
    mirror.store.commit = real  # type: ignore[method-assign]
    assert mirror.store.load("parity") == before
    for one in mirror.read(0, topic):
        if one.timestamp >= T0 + 120_000:
            mirror.write(one)
    mirror.producers[1].flush()
    mirror.commit(topic)
    found = only(mirror.run())
    assert (found.status, found.verified_records, counts(found)) == ("verified", 180, {})
    left = {f"{run.name}/{one.name}" for run in mirror.store.parity_directory.iterdir()
            for one in run.iterdir()}  # fmt: skip
    manifest = mirror.store.load("parity")
    assert left == set(manifest["digests"]), "what nobody names is removed"


def test_a_cluster_that_is_away_is_unknown_and_nothing_is_forgotten(mirror: Mirror) -> None:
    from mirror_report.model import ReportError

    class Away(Take):
        def positions(self, flow: Flow) -> Positions:  # noqa: ARG002
            raise ReportError("a does not answer")

    result = mirror.run(Away(mirror.settings))
    assert [(one.kind, one.severity) for one in result.findings] == [
        ("parity_unavailable", "unknown")
    ]
    assert result.topics == []


def test_spark_logs_in_with_a_secret_it_never_sees(
    mirror: Mirror, source_broker: Any, sasl_users: dict[str, str], tmp_path: Path
) -> None:
    topic = mirror.topic("secured")
    mirror.produce(topic, 20)
    mirror.admins[0].create_acls(
        [
            ACL(
                "User:reader", "*", operation, ACLPermissionType.ALLOW,
                ResourcePattern(ResourceType.TOPIC, topic, ACLResourcePatternType.LITERAL),
            )
            for operation in (ACLOperation.DESCRIBE, ACLOperation.READ)
        ]
    )  # fmt: skip
    password = sasl_users["reader"]
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    (tmp_path / "east.report.jaas").write_text(
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="reader" password="{quoted}";',
        encoding="utf-8",
    )
    east = Cluster("east", (source_broker.sasl,), "SASL_PLAINTEXT", "PLAIN", "reader")
    ends = Take(mirror.settings).source(mirror.settings.flows[0]).topics[topic].partitions
    ranges = [
        Range("flow", "source", topic, topic, partition, 0, log.log_end)
        for partition, log in ends.items()
        if log.log_end
    ]
    rows = source.read(mirror.spark, ranges, source.options(east, tmp_path))
    assert rows.count() == 20
    plan = rows._jdf.queryExecution().toString()
    assert "kafka" in plan.lower()
    assert quoted not in plan
    assert password not in plan
