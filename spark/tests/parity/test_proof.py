"""``prove`` on two real clusters: topics at rest, whatever their timestamps."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from parity_mirror import RECORDS, T0, Mirror
from parity_records import forged, jars_directory
from pyspark.sql import SparkSession

from mirror_report.checks.verdict import verdict
from mirror_report.config import ConfigError, Flow
from mirror_report.model import ClusterSnapshot, ParityResult, Positions, ProofDocument, TopicParity
from mirror_report.observe import Snapshots
from mirror_report.parity.spark import session
from mirror_report.proof.prove import prove_topics

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

FORGED = 200
FAULTS = {"missing": 3, "duplicate": 2, "corrupt_value": 1, "extra": 4}


class Moving(Snapshots):
    """A target that gets a record between two observations."""

    def __init__(self, mirror: Mirror, topic: str) -> None:
        super().__init__(mirror.settings)
        self._mirror, self._topic = mirror, topic

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Observe, and write right after it."""
        seen = super().target(flow)
        self._mirror.producers[1].send(self._topic, value=b"late").get(30)
        return seen


class Past(Snapshots):
    """Positions of a topic that was there before, as MirrorMaker 2 keeps them."""

    def positions(self, flow: Flow) -> Positions:
        """Give positions past the end of every log."""
        source = self.source(flow)
        return {
            name: dict.fromkeys(topic.partitions, 10_000) for name, topic in source.topics.items()
        }


class Scenario:
    """Topics of a mirror that rewrites timestamps, a run over them, and a proof of each."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        kept = mirror.topic("kept")
        mirror.produce(kept)
        mirror.copy(kept, faults=FAULTS)
        for name in ("whole", "faulty", "behind", "moving"):
            topic = mirror.topic(name)
            self.rewrite(topic)
            mirror.produce(topic, 200)
            mirror.copy(topic, limit=20 if name == "behind" else None,
                        faults=FAULTS if name == "faulty" else None)  # fmt: skip
        expired = mirror.topic("expired", partitions=1)
        self.rewrite(expired)
        mirror.produce(expired, 100)
        mirror.copy(expired, faults={"missing": 2})
        mirror.admins[0].delete_records({TopicPartition(expired, 0): 50})
        self.forge()
        self.ran = self.run()
        self.proved = self.prove()

    def forge(self) -> None:
        """A topic whose copies differ in their values, and in no fingerprint."""
        mirror, topic = self.mirror, self.mirror.topic("forged", partitions=1)
        for i in range(FORGED):
            mirror.producers[0].send(
                topic, key=b"%d" % i, value=os.urandom(200 + i), timestamp_ms=T0 + i
            )
        mirror.producers[0].flush()
        for record in mirror.read(0, topic):
            mirror.write(record, value=forged((record.key, record.value, record.timestamp, None)))
        mirror.producers[1].flush()
        mirror.commit(topic)

    def rewrite(self, topic: str) -> None:
        """Let the target replace timestamps."""
        config = {"message.timestamp.type": "LogAppendTime"}
        self.mirror.admins[1].alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, configs=config)]
        )

    def run(self) -> ParityResult:
        """Make one run of the engine."""
        return self.mirror.run()

    def prove(
        self, name: str | None = None, take: Snapshots | None = None, *, sha256: bool = False
    ) -> ProofDocument:
        """Prove all topics, or one."""
        mirror = self.mirror

        @contextlib.contextmanager
        def ours(*_: Any) -> Iterator[SparkSession]:
            yield mirror.spark

        topic = None if name is None else f"{mirror.prefix}.{name}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "open_session", ours)
            return prove_topics(
                mirror.settings, "flow", topic, mirror.said.append, take, sha256=sha256
            )

    def of(self, found: ProofDocument | ParityResult, name: str) -> TopicParity:
        """What was said of a topic."""
        rows = found.parity if isinstance(found, ProofDocument) else found.topics
        (topic,) = [row for row in rows if row.topic == f"{self.mirror.prefix}.{name}"]
        return topic


@pytest.fixture(scope="module")
def scenario(one_mirror: Mirror) -> Scenario:
    return Scenario(one_mirror)


def found_in(topic: TopicParity) -> dict[str, int]:
    return {name: count for name, count in topic.counts.items() if count}


def test_a_run_says_that_rewritten_timestamps_leave_nothing_to_compare_by(
    scenario: Scenario,
) -> None:
    found = scenario.of(scenario.ran, "whole")
    assert (found.strategy, found.status, found_in(found)) == (
        "none", "unverifiable", {"unverifiable": 200},
    )  # fmt: skip
    assert "LogAppendTime" in found.reason
    (finding,) = [finding for finding in scenario.ran.findings if finding.topic == found.topic]
    assert finding.action.endswith(f"mirror-report prove --flow flow --topic {found.topic}")
    behind = scenario.of(scenario.ran, "behind")
    assert found_in(behind) == {"unverifiable": 60}
    assert behind.in_flight_records == 140
    assert (behind.due_records, behind.coverage) == (60, 0)
    assert scenario.of(scenario.ran, "kept").strategy == "timestamp"


@pytest.mark.parametrize(("name", "records"), [("kept", RECORDS), ("faulty", 200)])
def test_a_proof_finds_exactly_what_was_planted(
    scenario: Scenario, name: str, records: int
) -> None:
    found = scenario.of(scenario.proved, name)
    assert (found.strategy, found.status, found.source_records) == ("hash", "mismatch", records)
    assert found_in(found) == FAULTS

    assert found.target_records == records - 3 + 2 + 4
    assert found.verified_records == records - 3 - 1
    assert found.samples.keys() == FAULTS.keys()
    assert {sample.side for sample in found.samples["corrupt_value"]} == {"source", "target"}
    assert len(found.samples["extra"]) == 4


def test_forged_records_are_whole_by_their_fingerprints_and_corrupt_by_sha256(
    scenario: Scenario,
) -> None:
    by_fingerprint = scenario.of(scenario.proved, "forged")
    by_sha256 = scenario.of(scenario.prove("forged", sha256=True), "forged")
    assert (by_fingerprint.status, found_in(by_fingerprint)) == ("verified", {})
    assert (by_sha256.status, found_in(by_sha256)) == ("mismatch", {"corrupt_value": FORGED})
    assert "SHA-256" in by_sha256.reason
    (sample, *_) = by_sha256.samples["corrupt_value"]
    assert len(sample.record_hash) == len(sample.key_hash) == 64


@pytest.mark.parametrize(("name", "faults"), [("kept", FAULTS), ("whole", {})])
def test_sha256_finds_what_fingerprints_find(
    scenario: Scenario, name: str, faults: dict[str, int]
) -> None:
    assert found_in(scenario.of(scenario.prove(name, sha256=True), name)) == faults


def test_a_whole_topic_is_proved_whatever_its_timestamps(scenario: Scenario) -> None:
    found = scenario.of(scenario.proved, "whole")
    assert (found.status, found.verified_records, found_in(found)) == ("verified", 200, {})
    assert "timestamps are not compared" in found.reason
    assert not [finding for finding in scenario.proved.findings if finding.topic == found.topic]
    assert verdict(scenario.proved.findings).exit_code == 2


def test_a_topic_that_is_not_at_rest_is_not_proved(scenario: Scenario) -> None:
    found = scenario.of(scenario.proved, "behind")
    assert (found.status, found.reason) == ("in_flight", "140 records wait")
    name = f"{scenario.mirror.prefix}.moving"
    moved = scenario.prove("moving", Moving(scenario.mirror, name))
    (finding,) = moved.findings
    assert (moved.parity[0].status, finding.kind) == ("in_flight", "not_proved")
    assert verdict(moved.findings).exit_code == 1
    with pytest.raises(ConfigError, match="mirrors no topic"):
        scenario.prove("other")


def test_a_position_past_the_end_of_a_new_log_is_of_another_one(scenario: Scenario) -> None:
    found = scenario.of(scenario.prove("behind", Past(scenario.mirror.settings)), "behind")
    assert (found.status, found.reason) == ("in_flight", "200 records wait")


def test_what_expired_proves_nothing_of_the_other_side(scenario: Scenario) -> None:
    found = scenario.of(scenario.proved, "expired")
    # Of 98 copies 50 records less the 2 that were never copied are no longer on the source.
    assert (found.source_records, found.target_records) == (50, 98)
    assert (found.status, found_in(found)) == ("unverifiable", {"unverifiable": 48})
