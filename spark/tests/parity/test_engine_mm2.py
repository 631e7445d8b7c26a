"""The engine on mirrors that keep partitions, with a copier in the place of MirrorMaker 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from parity_mirror import T0, Mirror, counts, eventually
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report.config import Cluster, Flow, Settings
from mirror_report.engines import MM2
from mirror_report.model import ParityResult, Positions, TopicParity
from mirror_report.observe import Snapshots
from mirror_report.parity import REPORTED_ONCE

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")


class GivenPositions(Snapshots):
    """Real snapshots, and the positions a test gives."""

    def __init__(self, settings: Settings, positions: dict[str, Positions]) -> None:
        super().__init__(settings)
        self.committed = positions

    def positions(self, flow: Flow) -> Positions:
        """Give the committed positions of a flow."""
        return self.committed[flow.name]


class Keeper(Mirror):
    """Flows east (a to b) and west (c to b) of MirrorMaker 2, loose and careful of MirrorMaker 1.

    Both of these are from a to b; careful only takes records of committed transactions. Cluster c
    is b under another alias: what comes from there must not be taken for a's.
    """

    def __init__(self, spark: SparkSession, brokers: tuple[str, str], state: Path) -> None:
        super().__init__(spark, brokers, state)
        kept = Flow(
            name="east", source="a", target="b", include=f"{self.prefix}\\..*", engine=MM2,
            replication_policy="prefix", group_id="a-mm2",
        )  # fmt: skip
        loose = Flow(
            name="loose", source="a", target="b", include=f"{self.prefix}-.*", group_id=self.group
        )
        careful = replace(
            loose, name="careful", include=f"{self.prefix}_.*", source_isolation="read_committed"
        )
        self.settings = replace(
            self.settings,
            clusters={**self.settings.clusters, "c": Cluster("c", (brokers[1],))},
            flows=(kept, replace(kept, name="west", source="c", group_id="c-mm2"), loose, careful),
        )
        self.committed: dict[str, Positions] = {flow.name: {} for flow in self.settings.flows}

    def side(self, flow: str) -> int:
        """Which broker is the flow's source."""
        return 1 if flow == "west" else 0

    def make(self, flow: str, name: str, partitions: int = 3) -> str:
        """Create a topic and its copy."""
        source = self.prefix + name
        target = self.settings.flow(flow).target_topic(source)
        self.admins[self.side(flow)].create_topics([NewTopic(source, partitions, 1)])
        self.admins[1].create_topics([NewTopic(target, partitions, 1)])
        return source

    def fill(self, flow: str, topic: str, count: int, start: int = 0, first: int = 0) -> None:
        """Write one record a second to the partitions from ``first`` on, in turn."""
        producer = self.producers[self.side(flow)]
        partitions = sorted(producer.partitions_for(topic))[first:]
        for i in range(start, start + count):
            producer.send(
                topic, key=b"%d" % i, value=b"%s-%d" % (flow.encode(), i),
                partition=partitions[i % len(partitions)], timestamp_ms=T0 + i * 1000,
            )  # fmt: skip
        producer.flush()

    def mirror(
        self,
        flow: str,
        topic: str,
        moved: int = 0,
        lost: int = 0,
        fates: Mapping[tuple[int, int], str] | None = None,
    ) -> None:
        """Copy from the position on, and move it to the end.

        :param lost: how many of the first records are not copied; ``moved``: how many of the
            following ones get to the next partition.
        :param fates: (partition, offset) -> class of the record that gets there.
        """
        known = self.committed[flow].setdefault(topic, {})
        records = [
            record for record in self.read(self.side(flow), topic)
            if record.offset >= known.get(record.partition, 0)
        ]  # fmt: skip
        target = self.settings.flow(flow).target_topic(topic)
        partitions = len(self.producers[1].partitions_for(target))
        late: list[Any] = []
        for number, record in enumerate(records):
            fate = (fates or {}).get((record.partition, record.offset), "")
            known[record.partition] = record.offset + 1
            if number < lost or fate == "missing":
                continue
            away = number < lost + moved or fate == "moved"
            for copy in self.copies(record, (record.partition + away) % partitions, fate):
                (late.append if fate == "reordered" else self.send)({"topic": target, **copy})
            while late and not fate:
                self.send(late.pop())
        self.producers[1].flush()

    def transact(self, flow: str) -> KafkaProducer:
        """Write ten records each in transactions that are committed, aborted, committed and open.

        The mirror has copied what counts for it.

        :returns: the producer of the last transaction.
        """
        topic = self.make(flow, "_tx" if flow == "careful" else "-tx", 1)
        producer = KafkaProducer(
            bootstrap_servers=self.brokers[0],
            transactional_id=topic,
            transaction_timeout_ms=600_000,
        )
        producer.init_transactions()
        for number, committed in enumerate((True, False, True, None)):
            if committed is None and flow == "loose":
                break
            producer.begin_transaction()
            for i in range(number * 10, number * 10 + 10):
                record = {"key": b"%d" % i, "value": b"v", "timestamp_ms": T0 + i}
                producer.send(topic, partition=0, **record)
                if committed or flow == "loose":
                    self.send({"topic": topic, "partition": 0, **record})
            producer.flush()
            if committed is not None:
                (producer.commit_transaction if committed else producer.abort_transaction)()
        self.producers[1].flush()
        self.committed[flow][topic] = {0: 33}  # thirty records and three markers
        return producer

    def copies(self, record: Any, partition: int, fate: str) -> list[dict[str, Any]]:
        """What becomes of a record."""
        copy = {"key": record.key, "value": record.value, "headers": [],
                "timestamp_ms": record.timestamp, "partition": partition}  # fmt: skip
        changes: dict[str, list[dict[str, Any]]] = {
            "duplicate": [{}, {}],
            "corrupt_value": [{"value": b"?"}],
            "corrupt_headers": [{"headers": [("new", b"?")]}],
            "altered_timestamp": [{"timestamp_ms": record.timestamp + 60_000}],
            "extra": [{}, {"key": b"foreign"}],
        }
        return [{**copy, **change} for change in changes.get(fate, [{}])]

    def send(self, record: Mapping[str, Any]) -> None:
        """Write a record to the target."""
        self.producers[1].send(**record)

    def compare(self) -> ParityResult:
        """Run once."""
        return self.run(GivenPositions(self.settings, self.committed))


FATES: dict[str, dict[tuple[int, int], str]] = {
    ".all": {
        (0, 0): "missing", (0, 5): "duplicate", (1, 0): "corrupt_value", (1, 3): "corrupt_headers",
        (1, 7): "altered_timestamp", (2, 2): "moved", (2, 10): "reordered", (2, 15): "extra",
    },
    ".swapped": {(1, 4): "reordered"},
    ".twice": {(2, offset): "duplicate" for offset in range(20)},
}  # fmt: skip
"""Topic -> what becomes of which record; ``.swapped`` keeps all sums, ``.twice`` is one minute."""


class Scenario:
    """Topics with a fate each, and what each run says of them.

    Run 0 sees them first, 1 what happened since, 2 nothing new, 3 a state without lanes.
    """

    def __init__(self, keeper: Keeper) -> None:
        self.prefix = keeper.prefix
        self.results: list[ParityResult] = []
        for flow, name, count, moved, partitions in (
            ("east", ".whole", 120, 0, 3), ("west", ".whole", 90, 0, 3),
            ("east", ".moved", 120, 2, 3), ("loose", "-spread", 120, 2, 3),
            ("east", ".grown", 60, 0, 3), ("east", ".again", 100, 0, 2),
            ("east", ".fewer", 100, 0, 2), ("east", ".read", 100, 0, 2),
            ("east", ".unread", 100, 0, 2),
        ):  # fmt: skip
            topic = keeper.make(flow, name, partitions)
            keeper.fill(flow, topic, count)
            keeper.mirror(flow, topic, moved=moved)
        for name, fates in FATES.items():
            topic = keeper.make("east", name)
            keeper.fill("east", topic, 120)
            keeper.mirror("east", topic, fates=fates)
        keeper.fill("east", f"{keeper.prefix}.read", 100, start=100)
        open_transactions = [keeper.transact(flow) for flow in ("loose", "careful")]
        self.results.append(keeper.compare())
        open_transactions[1].abort_transaction()
        for producer in open_transactions:
            producer.close()
        self.grow(keeper)
        self.pass_over(keeper)
        self.results.append(keeper.compare())
        self.results.append(keeper.compare())
        forget_lanes(keeper)
        self.results.append(keeper.compare())

    def grow(self, keeper: Keeper) -> None:
        """Give a topic more partitions, of which the mirror loses one record."""
        grown = f"{keeper.prefix}.grown"
        for side, name in enumerate((grown, f"a.{grown}")):
            keeper.admins[side].create_partitions({name: 5})
            producer = keeper.producers[side]
            eventually(lambda producer=producer, name=name: len(producer.partitions_for(name)) == 5)
        keeper.fill("east", grown, 40, start=60, first=3)
        keeper.mirror("east", grown, lost=1)

    def pass_over(self, keeper: Keeper) -> None:
        """Cut the source, or recreate it, beyond the position of a mirror that stands still."""
        again, fewer, read, unread = (
            f"{keeper.prefix}.{name}" for name in ("again", "fewer", "read", "unread")
        )
        keeper.fill("east", unread, 100, start=100)
        for topic in (read, unread):  # 50 mirrored of each partition, 30 more are cut away
            keeper.admins[0].delete_records({TopicPartition(topic, p): 80 for p in (0, 1)})
            keeper.mirror("east", topic)
        keeper.admins[0].delete_topics([again, fewer])
        eventually(lambda: not {again, fewer} & set(keeper.admins[0].list_topics()))
        keeper.admins[0].create_topics([NewTopic(again, 2, 1), NewTopic(fewer, 2, 1)])
        keeper.fill("east", again, 150, start=600)
        keeper.mirror("east", again)  # from offset 50 of each partition on
        keeper.fill("east", fewer, 20, start=600)  # and the position is still 50

    def found(self, run: int) -> dict[str, TopicParity]:
        """What a run says, by topic on the target without what is particular to the test."""
        return {topic.topic.replace(self.prefix, ""): topic for topic in self.results[run].topics}

    def wrong(self, run: int) -> dict[str, Any]:
        """What a run counts, where it counts anything."""
        return {name: counts(topic) for name, topic in self.found(run).items() if counts(topic)}

    def reported(self, run: int) -> set[tuple[str, str, int | None]]:
        """Topic, kind and count of what a run has to say."""
        return {
            ((finding.topic or "").replace(self.prefix, ""), finding.kind, finding.count)
            for finding in self.results[run].findings
            if not finding.accounted
        }


@pytest.fixture(scope="module")
def scenario(
    spark: SparkSession, two_brokers: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scenario]:
    keeper = Keeper(spark, two_brokers, tmp_path_factory.mktemp("scenario"))
    yield Scenario(keeper)
    keeper.close()


PASSED_OVER = {
    "a..again": {"missing": 100, "unverifiable": 100},
    "a..fewer": {"unverifiable": 100},
    "a..read": {"unverifiable": 60},
    "a..unread": {"unverifiable": 60},
}


def test_flows_of_mirrormaker_2_are_compared_partition_by_partition(scenario: Scenario) -> None:
    found = {name: topic for name, topic in scenario.found(0).items() if name[2:] not in FATES}
    assert {name: topic.source_records for name, topic in found.items()} == {
        "a..whole": 120, "c..whole": 90, "a..moved": 120, "-spread": 120, "a..grown": 60,
        "a..again": 100, "a..fewer": 100, "a..read": 200, "a..unread": 100, "-tx": 30, "_tx": 20,
    }  # fmt: skip
    assert {name: counts(topic) for name, topic in found.items() if counts(topic)} == {
        "a..moved": {"moved": 2}
    }
    assert {finding for finding in scenario.reported(0) if finding[0][2:] not in FATES} == {
        ("a..moved", "moved", 2)
    }
    assert {
        topic.status for name, topic in found.items() if name not in ("a..moved", "a..read")
    } == {"verified"}
    assert sorted(
        (sample.side, sample.partition) for sample in found["a..moved"].samples["moved"]
    ) == [
        *[("source", 0)] * 2, *[("target", 1)] * 2,
    ]  # fmt: skip
    assert (found["a..whole"].buckets["verified"], found["-spread"].buckets["verified"]) == (6, 2)


@pytest.mark.parametrize("name", FATES)
def test_each_class_is_found_in_its_partition_and_nothing_else(
    scenario: Scenario, name: str
) -> None:
    expected: dict[str, dict[str, int]] = {}
    for (partition, _), kind in FATES[name].items():
        of_kind = expected.setdefault(kind, {})
        of_kind[str(partition)] = of_kind.get(str(partition), 0) + 1
    lasting = {kind: some for kind, some in expected.items() if kind not in REPORTED_ONCE}
    first, later = (scenario.found(run)["a." + name] for run in (0, 2))
    assert (first.partitions, later.partitions) == (expected, lasting)
    assert counts(first) == {kind: sum(some.values()) for kind, some in expected.items()}
    assert counts(later) == {kind: sum(some.values()) for kind, some in lasting.items()}
    assert sum(later.accounted.values()) == sum(counts(first).values()) - sum(
        counts(later).values()
    )
    assert (first.status, later.status) == ("mismatch", "mismatch" if lasting else "verified")
    assert (first.source_records, first.verified_records) == (
        120,
        120 - sum(counts(later).values()),
    )
    findings = {
        finding.kind: finding
        for finding in scenario.results[0].findings
        if finding.topic == first.topic
    }
    assert {kind: finding.partition for kind, finding in findings.items()} == {
        kind: int(next(iter(some))) for kind, some in expected.items()
    }
    assert {
        kind for kind, finding in findings.items() if finding.severity == "critical"
    } == lasting.keys()


def test_aborted_records_are_expected_where_the_mirror_copies_them(scenario: Scenario) -> None:
    for run in (0, 1):
        found = scenario.found(run)
        assert {
            name: (found[name].status, found[name].source_records, found[name].target_records)
            for name in ("-tx", "_tx")
        } == {"-tx": ("verified", 30, 30), "_tx": ("verified", 20, 20)}


def test_partitions_that_are_new_are_compared_from_their_first_record(scenario: Scenario) -> None:
    found = scenario.found(1)
    assert counts(found["a..moved"]) == {"moved": 2}
    assert counts(found["a..grown"]) == {"missing": 1}
    assert (found["a..grown"].source_records, found["a..grown"].verified_records) == (100, 99)
    assert [
        (sample.partition, sample.offset) for sample in found["a..grown"].samples["missing"]
    ] == [(3, 0)]


def test_what_a_mirror_passed_over_is_reported_with_its_number(scenario: Scenario) -> None:
    found = scenario.found(1)
    assert {name: counts(found[name]) for name in PASSED_OVER} == PASSED_OVER
    again = found["a..again"]
    assert (again.source_records, again.target_records, again.verified_records) == (150, 150, 50)
    assert found["a..fewer"].in_flight_records == 20
    assert {sample.offset for sample in again.samples["missing"]} <= set(range(50))
    assert {finding for finding in scenario.reported(1) if finding[0] in PASSED_OVER} == {
        ("a..again", "reset", None),
        ("a..again", "missing", 100),
        ("a..again", "unverifiable", 100),
        ("a..fewer", "reset", None),
        ("a..fewer", "unverifiable", 100),
        ("a..read", "unverifiable", 60),
        ("a..unread", "unverifiable", 60),
        ("a..unread", "unverifiable", 30),  # of each partition
    }
    planted = {"a..moved", "a..grown", "a..all", "a..swapped"}
    assert scenario.wrong(1).keys() == PASSED_OVER.keys() | planted, "and nothing else"
    assert scenario.results[2].spark_started is False
    assert scenario.wrong(2) == scenario.wrong(1), "and the next runs say the same"


def test_a_state_without_lanes_is_read_again_and_counts_nothing_twice(scenario: Scenario) -> None:
    topics = ("a..whole", "c..whole", "a..moved", "-spread", "a..grown")
    before, found = scenario.found(2), scenario.found(3)
    assert {name: counts(found[name]) for name in topics if counts(found[name])} == {
        "a..moved": {"moved": 2}, "a..grown": {"missing": 1},
    }  # fmt: skip
    assert {name: found[name].source_records for name in topics} == {
        name: before[name].source_records for name in topics
    }


def forget_lanes(keeper: Keeper) -> None:
    """Make of the state what a release without lanes had written."""
    manifest = keeper.store.load("parity")
    results = keeper.store.parity_directory / manifest["results"]
    former = results.parent / "former"
    keeper.spark.read.parquet(str(results)).drop("lane").write.parquet(str(former))
    keeper.store.commit(
        "parity",
        {
            **manifest,
            "results": f"{former.parent.name}/{former.name}",
            "baselines": dict.fromkeys(manifest["baselines"]),
        },
    )
