"""A target that replaces timestamps, aligned by the offset syncs of a MirrorMaker 2.

A copier stands in its place. It writes its syncs into a real topic, a minute apart by their
timestamps.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import NewTopic
from parity_mirror import T0, Mirror, counts
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report.config import Flow, Settings
from mirror_report.engines import MM2
from mirror_report.model import ParityResult, Positions, TopicParity
from mirror_report.observe import Snapshots

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

EVERY = 20
"""Records from sync to sync."""


class GivenPositions(Snapshots):
    """Real snapshots and syncs, and the positions a test gives."""

    def __init__(self, settings: Settings, positions: Positions) -> None:
        super().__init__(settings)
        self._committed = positions

    def positions(self, _flow: Flow) -> Positions:
        """Give the committed positions."""
        return self._committed


class Scenario:
    """Topics with a fate each, and what each run says of them.

    Run 0 sees a mirror that is behind its syncs, 1 the same drained, 2 nothing new, 3 one that has
    repeated itself after a crash.
    """

    def __init__(self, spark: SparkSession, brokers: tuple[str, str], state: Path) -> None:
        self.lab = Mirror(spark, brokers, state)
        self.syncs = f"{self.lab.prefix}-syncs"
        flow = Flow(
            name="east", source="a", target="b", include=f"{self.lab.prefix}\\..*", engine=MM2,
            replication_policy="prefix", group_id="a-mm2", offset_syncs_topic=self.syncs,
        )  # fmt: skip
        self.lab.settings = replace(self.lab.settings, flows=(flow,))
        self.positions: Positions = {}
        self.written: dict[tuple[str, int], int] = {}
        self.minute = 0
        self.results: list[ParityResult] = []
        self.lab.admins[1].create_topics([NewTopic(self.syncs, 1, 1)])
        for name in ("faulty", "whole", "late"):
            self.make(name)
            self.fill(name, 100)
        self.lab.admins[0].delete_records({TopicPartition(self.topic("late"), 1): 30})
        faults: dict[tuple[int, int], dict[str, Any]] = {
            (0, 5): {"copies": 0}, (0, 45): {"copies": 2}, (1, 65): {"value": b"altered"},
        }  # fmt: skip
        self.mirror("faulty", 0, 100, 80, faults)
        self.mirror("whole", 0, 100, 80)
        self.mirror("late", 0, 100, 80, first_sync=40)
        # Spark cannot read it on the source, and on the target it has the time of its arrival.
        self.make("beyond", {"message.timestamp.after.max.ms": str(2**63 - 1)})
        self.fill("beyond", 50)
        for partition in (0, 1):
            self.lab.producers[0].send(
                self.topic("beyond"), value=b"v", partition=partition, timestamp_ms=10**16
            ).get(30)
        self.fill("beyond", 50, start=50)
        self.mirror("beyond", 0, 101, 101)
        self.run()
        for name in ("faulty", "whole", "late"):
            self.positions[self.topic(name)] = {0: 100, 1: 100}
        self.run()
        self.run()
        self.fill("whole", 60, start=100)
        self.mirror("whole", 100, 140, 100)
        self.mirror("whole", 100, 160, 160)
        self.run()

    def topic(self, name: str) -> str:
        """Name of one of them on the source."""
        return f"{self.lab.prefix}.{name}"

    def make(self, name: str, configs: dict[str, str] | None = None) -> None:
        """Create a topic of two partitions, and its copy, which replaces timestamps."""
        self.lab.admins[0].create_topics([NewTopic(self.topic(name), 2, 1, topic_configs=configs)])
        stamped = {"message.timestamp.type": "LogAppendTime"}
        copy = NewTopic(f"a.{self.topic(name)}", 2, 1, topic_configs=stamped)
        self.lab.admins[1].create_topics([copy])

    def fill(self, name: str, count: int, start: int = 0) -> None:
        """Write as many records into each partition, all of one minute."""
        for i in range(start, start + count):
            for partition in (0, 1):
                self.lab.producers[0].send(
                    self.topic(name), key=b"%d" % (i % 7), value=b"%d" % i, partition=partition,
                    timestamp_ms=T0,
                )  # fmt: skip
        self.lab.producers[0].flush()

    def mirror(
        self, name: str, start: int, end: int, position: int,
        faults: dict[tuple[int, int], dict[str, Any]] | None = None, first_sync: int = 0,
    ) -> None:  # fmt: skip
        """Copy offsets of both partitions with a sync at the first and every so often."""
        topic = self.topic(name)
        self.positions[topic] = dict.fromkeys((0, 1), position)
        for record in self.lab.read(0, topic):
            if not start <= record.offset < end:
                continue
            at = (topic, record.partition)
            if (record.offset - start) % EVERY == 0 and record.offset >= first_sync:
                self.sync(*at, record.offset)
            fault = (faults or {}).get((record.partition, record.offset), {})
            for _ in range(fault.get("copies", 1)):
                self.lab.producers[1].send(
                    f"a.{topic}", key=record.key, value=fault.get("value", record.value),
                    partition=record.partition,
                )  # fmt: skip
                self.written[at] = self.written.get(at, 0) + 1
        self.lab.producers[1].flush()

    def sync(self, topic: str, partition: int, upstream: int) -> None:
        """Say where the next record of a source partition goes."""
        name = topic.encode()
        self.minute += 1
        self.lab.producers[1].send(
            self.syncs,
            key=struct.pack(">h", len(name)) + name + struct.pack(">i", partition),
            value=struct.pack(">qq", upstream, self.written.get((topic, partition), 0)),
            timestamp_ms=T0 + self.minute * 60_000,
        )

    def run(self) -> None:
        """Compare."""
        take = GivenPositions(
            self.lab.settings, {name: dict(offsets) for name, offsets in self.positions.items()}
        )
        self.results.append(self.lab.run(take))

    def of(self, run: int, name: str) -> TopicParity:
        """What a run says of a topic."""
        topic = f"a.{self.topic(name)}"
        (found,) = [row for row in self.results[run].topics if row.topic == topic]
        return found


@pytest.fixture(scope="module")
def scenario(
    spark: SparkSession, two_brokers: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scenario]:
    created = Scenario(spark, two_brokers, tmp_path_factory.mktemp("scenario"))
    yield created
    created.lab.close()


def test_each_fault_is_found_although_no_timestamp_is_the_same(scenario: Scenario) -> None:
    found = scenario.of(0, "faulty")
    assert (found.strategy, found.status) == ("offset_syncs", "mismatch")
    assert counts(found) == {"missing": 1, "duplicate": 1, "corrupt_value": 1}
    assert found.partitions == {
        "missing": {"0": 1}, "duplicate": {"0": 1}, "corrupt_value": {"1": 1},
    }  # fmt: skip
    assert (found.source_records, found.verified_records, found.in_flight_records) == (200, 158, 40)
    assert [(sample.partition, sample.offset) for sample in found.samples["missing"]] == [(0, 5)]


def test_what_lies_after_the_last_sync_is_in_flight_until_the_mirror_is_drained(
    scenario: Scenario,
) -> None:
    found = scenario.of(0, "whole")
    assert (found.status, counts(found)) == ("verified", {})
    assert (found.verified_records, found.in_flight_records) == (160, 40)
    assert "LogAppendTime" in found.reason
    found = scenario.of(1, "whole")
    assert (found.verified_records, found.in_flight_records) == (200, 0)
    found = scenario.of(1, "faulty")
    assert counts(found) == {"missing": 1, "corrupt_value": 1}
    assert (found.accounted["duplicate"], found.verified_records) == (1, 198)
    assert scenario.results[2].spark_started is False
    assert scenario.of(2, "whole").verified_records == 200


def test_what_was_mirrored_before_the_first_sync_is_counted_and_not_compared(
    scenario: Scenario,
) -> None:
    found = scenario.of(1, "late")
    # 40 records of one partition, and 10 of the other: of that the source had lost 30.
    assert counts(found) == {"unverifiable": 50}
    assert found.partitions == {"unverifiable": {"0": 40, "1": 10}}
    assert (found.status, found.verified_records, found.source_records) == (
        "unverifiable", 120, 170,
    )  # fmt: skip
    assert "before anything aligned them" in found.reason
    assert (found.due_records, found.coverage) == (170, 120 / 170)


def test_what_a_mirror_repeats_after_a_crash_is_a_duplicate_and_nothing_else(
    scenario: Scenario,
) -> None:
    found = scenario.of(3, "whole")
    assert (found.status, counts(found)) == ("mismatch", {"duplicate": 80})
    assert (found.verified_records, found.in_flight_records) == (320, 0)


def test_the_copy_of_a_record_that_cannot_be_read_is_not_foreign(scenario: Scenario) -> None:
    for run in (0, 3):
        found = scenario.of(run, "beyond")
        assert (found.status, counts(found)) == ("unverifiable", {"unverifiable": 2})
        assert found.partitions == {"unverifiable": {"0": 1, "1": 1}}
        # Of the 19 records beside each nobody can say which the copy is not.
        assert (found.source_records, found.target_records, found.verified_records) == (
            202, 202, 162,
        )  # fmt: skip
