"""The engine on mirrors that keep partitions, with a copier in the place of MirrorMaker 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import NewTopic
from parity_mirror import T0, Mirror, counts, eventually
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report.config import Cluster, Flow, Settings
from mirror_report.model import ParityResult, Positions, TopicParity
from mirror_report.observe import Take

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")


class Told(Take):
    """Real snapshots, and the positions a test tells."""

    def __init__(self, settings: Settings, positions: dict[str, Positions]) -> None:
        super().__init__(settings)
        self.told = positions

    def positions(self, flow: Flow) -> Positions:
        """Give the positions told for a flow."""
        return self.told[flow.name]


class Keeper(Mirror):
    """Flows east (a to b) and west (c to b) of MirrorMaker 2, and loose (a to b) of MirrorMaker 1.

    Cluster c is b under another alias: what comes from there must not be taken for a's.
    """

    def __init__(self, spark: SparkSession, brokers: tuple[str, str], state: Path) -> None:
        super().__init__(spark, brokers, state)
        kept = Flow(
            name="east", source="a", target="b", include=f"{self.prefix}\\..*", engine="mm2",
            replication_policy="prefix", group_id="a-mm2",
        )  # fmt: skip
        loose = Flow(
            name="loose", source="a", target="b", include=f"{self.prefix}-.*", group_id=self.group
        )
        self.settings = replace(
            self.settings,
            clusters={**self.settings.clusters, "c": Cluster("c", (brokers[1],))},
            flows=(kept, replace(kept, name="west", source="c", group_id="c-mm2"), loose),
        )
        self.told: dict[str, Positions] = {flow.name: {} for flow in self.settings.flows}

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

    def mirror(self, flow: str, topic: str, moved: int = 0, lost: int = 0) -> None:
        """Copy from the position on, and move it to the end.

        :param lost: how many of the first records are not copied; ``moved``: how many of the
            following ones get to the next partition.
        """
        known = self.told[flow].setdefault(topic, {})
        records = [
            one for one in self.read(self.side(flow), topic)
            if one.offset >= known.get(one.partition, 0)
        ]  # fmt: skip
        target = self.settings.flow(flow).target_topic(topic)
        partitions = len(self.producers[1].partitions_for(target))
        for number, one in enumerate(records):
            if number >= lost:
                self.producers[1].send(
                    target, key=one.key, value=one.value, timestamp_ms=one.timestamp,
                    partition=(one.partition + (number < lost + moved)) % partitions,
                )  # fmt: skip
            known[one.partition] = one.offset + 1
        self.producers[1].flush()

    def compare(self) -> tuple[dict[str, TopicParity], ParityResult]:
        """Run once: topic on the target without what is particular to the test, and all of it."""
        result = self.run(Told(self.settings, self.told))
        return {one.topic.replace(self.prefix, ""): one for one in result.topics}, result


@pytest.fixture
def keeper(spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path) -> Iterator[Keeper]:
    one = Keeper(spark, two_brokers, tmp_path)
    yield one
    one.close()


def wrong(found: dict[str, TopicParity]) -> dict[str, Any]:
    return {name: counts(one) for name, one in found.items() if counts(one)}


def test_flows_of_mirrormaker_2_are_compared_partition_by_partition(keeper: Keeper) -> None:
    for flow, name, count, moved in (
        ("east", ".whole", 120, 0), ("west", ".whole", 90, 0), ("east", ".moved", 120, 2),
        ("loose", "-spread", 120, 2), ("east", ".grown", 60, 0),
    ):  # fmt: skip
        topic = keeper.make(flow, name)
        keeper.fill(flow, topic, count)
        keeper.mirror(flow, topic, moved=moved)
    found, result = keeper.compare()
    assert {name: one.source_records for name, one in found.items()} == {
        "a..whole": 120, "c..whole": 90, "a..moved": 120, "-spread": 120, "a..grown": 60,
    }  # fmt: skip
    assert wrong(found) == {"a..moved": {"missing": 2, "extra": 2}}
    assert {one.status for name, one in found.items() if name != "a..moved"} == {"verified"}
    moved_samples = found["a..moved"].samples
    assert [(one.side, one.partition) for one in moved_samples["missing"]] == [("source", 0)] * 2
    assert [(one.side, one.partition) for one in moved_samples["extra"]] == [("target", 1)] * 2
    assert (found["a..whole"].buckets["verified"], found["-spread"].buckets["verified"]) == (6, 2)
    assert {(one.kind, one.count) for one in result.findings} == {("missing", 2), ("extra", 2)}

    grown = f"{keeper.prefix}.grown"
    for side, name in enumerate((grown, f"a.{grown}")):
        keeper.admins[side].create_partitions({name: 5})
        producer = keeper.producers[side]
        eventually(lambda one=producer, name=name: len(one.partitions_for(name)) == 5)
    keeper.fill("east", grown, 40, start=60, first=3)
    keeper.mirror("east", grown, lost=1)
    found, _ = keeper.compare()
    assert wrong(found) == {"a..moved": {"missing": 2}, "a..grown": {"missing": 1}}
    assert found["a..moved"].accounted == {"duplicate": 0, "extra": 2}
    assert (found["a..grown"].source_records, found["a..grown"].verified_records) == (100, 99)
    assert [(one.partition, one.offset) for one in found["a..grown"].samples["missing"]] == [(3, 0)]

    before = {name: one.source_records for name, one in found.items()}
    forget_lanes(keeper)
    found, _ = keeper.compare()
    assert wrong(found) == {"a..moved": {"missing": 2, "extra": 2}, "a..grown": {"missing": 1}}
    assert {name: one.source_records for name, one in found.items()} == before, "nothing twice"


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


def test_what_a_mirror_passed_over_is_told_with_its_number(keeper: Keeper) -> None:
    """The source was cut, or made anew, beyond the position while the mirror stood still."""
    again, fewer, read, unread = (
        keeper.make("east", f".{name}", 2) for name in ("again", "fewer", "read", "unread")
    )
    for topic in (again, fewer, read, unread):
        keeper.fill("east", topic, 100)
        keeper.mirror("east", topic)
    keeper.fill("east", read, 100, start=100)
    found, result = keeper.compare()
    assert (wrong(found), result.findings) == ({}, [])
    assert found["a..read"].source_records == 200

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
    found, result = keeper.compare()
    assert wrong(found) == {
        "a..again": {"missing": 100, "unverifiable": 100},
        "a..fewer": {"unverifiable": 100},
        "a..read": {"unverifiable": 60},
        "a..unread": {"unverifiable": 60},
    }
    assert (found["a..again"].source_records, found["a..again"].target_records) == (150, 150)
    assert found["a..again"].verified_records == 50
    assert found["a..fewer"].in_flight_records == 20
    assert {one.offset for one in found["a..again"].samples["missing"]} <= set(range(50))
    told = {(one.topic.replace(keeper.prefix, ""), one.kind, one.count) for one in result.findings}
    assert told == {
        ("a..again", "reset", None),
        ("a..again", "missing", 100),
        ("a..again", "unverifiable", 100),
        ("a..fewer", "reset", None),
        ("a..fewer", "unverifiable", 100),
        ("a..read", "unverifiable", 60),
        ("a..unread", "unverifiable", 60),
        ("a..unread", "unverifiable", 30),  # of each partition
    }
    later, result = keeper.compare()
    assert result.spark_started is False
    assert wrong(later) == wrong(found), "and the next runs say the same"
