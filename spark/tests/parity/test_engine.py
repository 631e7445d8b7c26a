"""The engine on two real clusters, with a small copier in the place of the mirror."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from kafka.structs import OffsetAndMetadata
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report.config import Cluster, Flow, Settings
from mirror_report.config import Spark as SparkSettings
from mirror_report.model import ClusterSnapshot, ParityResult, Positions, TopicParity
from mirror_report.observe import Take
from mirror_report.parity import source
from mirror_report.parity.engine import ParityRequest, run_parity
from mirror_report.parity.plan import Range
from mirror_report.state.store import Store

CLASSES = ("missing", "duplicate", "corrupt", "extra", "unverifiable")
# Recent, or retention would remove the records at once.
T0 = (int(time.time()) // 60 - 40) * 60_000
RECORDS = 600

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")


class Mirror:
    """Two clusters, a flow, and what a test does to them. Topics are new for every test."""

    def __init__(self, spark: SparkSession, brokers: tuple[str, str], state: Path) -> None:
        self.spark = spark
        self.brokers = brokers
        self.prefix = "t" + uuid.uuid4().hex[:8]
        self.group = f"mirrormaker-{self.prefix}"
        flow = Flow(
            name="flow", source="a", target="b", include=f"{self.prefix}\\..*",
            topics=(f"{self.prefix}\\..*",), group_id=self.group,
        )  # fmt: skip
        self.settings = Settings(
            clusters={
                alias: Cluster(alias, (address,))
                for alias, address in zip("ab", brokers, strict=True)
            },
            flows=(flow,),
            state_directory=state,
            spark=SparkSettings(master="local[2]"),
        )
        self.store = Store(state)
        self.runs = 0
        self.said: list[str] = []
        self.admins = [KafkaAdminClient(bootstrap_servers=one) for one in brokers]
        self.producers = [
            KafkaProducer(bootstrap_servers=one, acks="all", linger_ms=5) for one in brokers
        ]

    def topic(self, name: str, partitions: int = 3, **configs: str) -> str:
        """Create a topic on both clusters."""
        full = f"{self.prefix}.{name}"
        for admin in self.admins:
            admin.create_topics(
                [NewTopic(full, partitions, 1, topic_configs={k.replace("_", "."): v for k, v in
                                                              configs.items()})]
            )  # fmt: skip
        return full

    def produce(self, topic: str, count: int = RECORDS, start: int = 0) -> None:
        """Keyed, null-key, headers and tombstones, over ten minutes."""
        for i in range(start, start + count):
            self.producers[0].send(
                topic,
                key=None if i % 5 == 0 else b"key-%d" % (i % 50),
                value=None if i % 11 == 0 and i % 5 else b"value-%d-" % i + b"x" * (i % 300),
                headers=[("n", b"%d" % i), ("empty", b"")] if i % 3 == 0 else [],
                timestamp_ms=T0 + i * 1000,
            )
        self.producers[0].flush()

    def copy(
        self, topic: str, limit: int | None = None, faults: dict[str, Any] | None = None
    ) -> list[Any]:
        """Mirror everything (or ``limit`` records per partition) and commit the position.

        :param faults: class -> how many of the topic's first records get that fault.
        """
        records = self.read(0, topic)
        chosen = [one for one in records if limit is None or one.offset < limit]
        fate: dict[int, str] = {}
        for kind, count in (faults or {}).items():
            free = [n for n in range(len(chosen)) if n not in fate and chosen[n].value]
            fate |= dict.fromkeys(free[:count], kind)
        for number, one in enumerate(chosen):
            kind = fate.get(number)
            if kind == "missing":
                continue
            self.write(one, value=b"altered" if kind == "corrupt" else one.value)
            if kind == "duplicate":
                self.write(one)
            if kind == "extra":
                self.write(one, key=b"foreign")
        self.producers[1].flush()
        self.commit(topic, limit)
        return chosen

    def write(self, record: Any, **changes: Any) -> None:
        """Write a copy of a record, or an altered one, to the target."""
        self.producers[1].send(
            record.topic,
            key=changes.get("key", record.key),
            value=changes.get("value", record.value),
            headers=list(record.headers),
            timestamp_ms=record.timestamp,
        )

    def commit(self, topic: str, limit: int | None = None) -> None:
        """Commit the mirror's position: the end, or ``limit``."""
        with contextlib.closing(self.consumer(0)) as consumer:
            partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            ends = consumer.end_offsets(partitions)
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.brokers[0], group_id=self.group, enable_auto_commit=False
            )
        ) as consumer:
            consumer.assign(partitions)
            consumer.commit(
                {
                    one: OffsetAndMetadata(end if limit is None else min(end, limit), "", -1)
                    for one, end in ends.items()
                }
            )

    def read(self, side: int, topic: str) -> list[Any]:
        """Read all records of one side."""
        with contextlib.closing(self.consumer(side)) as consumer:
            partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            found: list[Any] = []
            while any(consumer.position(one) < end for one, end in ends.items()):
                for some in consumer.poll(timeout_ms=500).values():
                    found += some
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def consumer(self, side: int) -> KafkaConsumer:
        """Make a consumer of one side."""
        return KafkaConsumer(
            bootstrap_servers=self.brokers[side], enable_auto_commit=False,
            auto_offset_reset="earliest",
        )  # fmt: skip

    def run(self, take: Any = None, max_bytes: int | None = None) -> ParityResult:
        """Make one parity run."""
        self.runs += 1
        request = ParityRequest(
            self.settings, take or Take(self.settings), self.store, f"run-{self.runs}",
            max_bytes, 1000,
        )  # fmt: skip

        @contextlib.contextmanager
        def ours(_settings: SparkSettings, _small: bool) -> Iterator[SparkSession]:
            yield self.spark

        return run_parity(request, self.said.append, ours)

    def close(self) -> None:
        """Close all clients."""
        for one in (*self.admins, *self.producers):
            one.close()


@pytest.fixture
def mirror(spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path) -> Iterator[Mirror]:
    one = Mirror(spark, two_brokers, tmp_path)
    yield one
    one.close()


def only(result: ParityResult) -> TopicParity:
    (topic,) = result.topics
    return topic


def counts(topic: TopicParity) -> dict[str, int]:
    return {name: n for name in CLASSES if (n := getattr(topic, name))}


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
    _eventually(lambda: topic not in mirror.admins[1].list_topics())
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
    _eventually(lambda: topic not in mirror.admins[0].list_topics())
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


def _eventually(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


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
