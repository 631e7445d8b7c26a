"""A compacted topic on two real clusters, after compaction that really happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kafka import TopicPartition
from parity_mirror import T0, Mirror, counts, eventually
from parity_records import jars_directory

from mirror_report.config import Budget, Flow
from mirror_report.engines import MM2
from mirror_report.model import ClusterSnapshot, Finding, ParityResult, Positions, TopicParity
from mirror_report.observe import Snapshots

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

EAGER = {
    "cleanup_policy": "compact", "segment_bytes": "1048576", "segment_ms": "200",
    "min_cleanable_dirty_ratio": "0", "delete_retention_ms": "0",
}  # fmt: skip


class Scenario:
    """A topic of twenty keys with faults, one without, and what each run says of them."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        mirror.settings = replace(mirror.settings, budget=Budget(compacted_hours=0))
        self.results: list[ParityResult] = []
        for name in ("faulty", "whole"):
            mirror.topic(name, partitions=1, **EAGER)
            self.fill(name)
        self.copy("whole")
        self.copy("faulty", missing=b"key-3", stale=b"key-4")
        mirror.producers[1].send(self.topic("faulty"), key=b"alien", value=b"?").get(30)
        for name in ("faulty", "whole"):
            self.compact(name)
        self.found = {name: self.logs(name) for name in ("faulty", "whole")}
        self.run()
        self.run()
        mirror.producers[0].send(
            self.topic("whole"), key=b"key-5", value=b"new", timestamp_ms=T0 + 900_000
        ).get(30)
        self.run()

    def topic(self, name: str) -> str:
        """Name of one of them on both clusters."""
        return f"{self.mirror.prefix}.{name}"

    def fill(self, name: str) -> None:
        """Three rounds of values, and tombstones for the last five keys."""
        for i in range(60):
            self.mirror.producers[0].send(
                self.topic(name), key=b"key-%d" % (i % 20), value=b"%d" % i, timestamp_ms=T0 + i
            )
        for i in range(15, 20):
            self.mirror.producers[0].send(
                self.topic(name), key=b"key-%d" % i, value=None, timestamp_ms=T0 + 60 + i
            )
        self.mirror.producers[0].flush()

    def copy(self, name: str, missing: bytes = b"", stale: bytes = b"") -> None:
        """Mirror all but one key, and but the last value of another."""
        for record in self.mirror.read(0, self.topic(name)):
            last = int(record.value or 60) >= 40
            if record.key != missing and not (record.key == stale and last):
                self.mirror.write(record)
        self.mirror.producers[1].flush()
        self.mirror.commit(self.topic(name))

    def compact(self, name: str) -> None:
        """Wait until both logs hold no key twice; a filler ends their segments."""
        for side in (0, 1):
            eventually(lambda side=side: self.is_compacted(side, name), 60)
        self.mirror.commit(self.topic(name))

    def is_compacted(self, side: int, name: str) -> bool:
        """Write the filler, and see whether only it has several records."""
        self.mirror.producers[side].send(
            self.topic(name), key=b"filler", value=b"same", timestamp_ms=T0 + 700_000
        ).get(30)
        keys = [record.key for record in self.mirror.read(side, self.topic(name))]
        return all(keys.count(key) == 1 for key in set(keys) - {b"filler"})

    def logs(self, name: str) -> tuple[int, int]:
        """Records left on both sides, without what only ended segments."""
        left = [
            [
                record
                for record in self.mirror.read(side, self.topic(name))
                if record.key != b"filler"
            ]
            for side in (0, 1)
        ]
        return len(left[0]), len(left[1])

    def run(self) -> None:
        """Compare."""
        self.results.append(self.mirror.run())

    def of(self, run: int, name: str) -> TopicParity:
        """What a run says of a topic."""
        (found,) = [topic for topic in self.results[run].topics if topic.topic == self.topic(name)]
        return found


@pytest.fixture(scope="module")
def scenario(one_mirror: Mirror) -> Scenario:
    return Scenario(one_mirror)


def test_a_topic_whose_sides_were_compacted_is_whole(scenario: Scenario) -> None:
    assert max(scenario.found["whole"]) <= 20, "compaction really happened: 75 records were written"
    found = scenario.of(0, "whole")
    assert (found.strategy, found.status, counts(found)) == ("latest_by_key", "verified", {})
    assert found.verified_records == 16, "five keys were deleted, and a filler was added"
    assert found.source_records == found.target_records == 16
    assert found.verified_through_ms is not None
    assert found.verified_through_ms > (found.newest_due_ms or 0) > T0


def test_a_missing_key_a_stale_value_and_a_foreign_key_are_each_found(scenario: Scenario) -> None:
    assert max(scenario.found["faulty"]) <= 21
    found = scenario.of(0, "faulty")
    assert (found.status, counts(found)) == (
        "mismatch", {"missing": 1, "corrupt_value": 1, "extra": 1},
    )  # fmt: skip
    assert (found.verified_records, found.source_records, found.target_records) == (14, 16, 16)
    assert {kind: [sample.side for sample in some] for kind, some in found.samples.items()} == {
        "missing": ["source"], "corrupt_value": ["source", "target"], "extra": ["target"],
    }  # fmt: skip


def test_a_scan_is_not_made_again_while_nothing_is_new(scenario: Scenario) -> None:
    assert scenario.results[1].spark_started is False
    found = scenario.of(1, "faulty")
    assert (found.status, counts(found)) == ("mismatch", {"missing": 1, "corrupt_value": 1})
    assert found.accounted["extra"] == 1
    assert scenario.of(1, "whole").verified_records == 16


def test_a_key_with_a_newer_value_is_in_flight_until_that_is_mirrored(scenario: Scenario) -> None:
    found = scenario.of(2, "whole")
    assert (found.status, found.verified_records, found.in_flight_records) == ("verified", 15, 1)
    assert counts(scenario.of(2, "faulty")) == {"missing": 1, "corrupt_value": 1}


class Observed(Snapshots):
    """Real snapshots; flow ``kept`` is one of MirrorMaker 2, whose positions are given.

    :param meanwhile: called once, after the first snapshot of the target.
    """

    def __init__(self, table: Table, meanwhile: Any = None) -> None:
        super().__init__(table.mirror.settings)
        self.table = table
        self.meanwhile = meanwhile

    def positions(self, flow: Flow) -> Positions:
        """Give those of ``kept``, take those of the other."""
        return self.table.positions if flow.name == "kept" else super().positions(flow)

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot, and let time pass until the next."""
        found = super().target(flow)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


class Table:
    """A compacted topic of two partitions, mirrored by one of both engines."""

    def __init__(self, mirror: Mirror, engine: str, **configs: str) -> None:
        self.mirror = mirror
        (loose,) = mirror.settings.flows
        kept = replace(loose, name="kept", engine=MM2, replication_policy="identity")
        mirror.settings = replace(mirror.settings, flows=(kept if engine == "mm2" else loose,))
        self.name = mirror.topic(f"table-{engine}", 2, **({"cleanup_policy": "compact"} | configs))
        self.positions: Positions = {self.name: {}}
        self.wrote = 0
        self.told: list[Finding] = []

    def write(self, keys: range, lost: tuple[int, ...] = (), *, value: bytes | bool = True) -> None:
        """Write keys, each to the partition of its parity, and mirror all but those lost.

        :param value: of all of them; ``True``: each has another one; ``False``: tombstones.
        """
        for key in keys:
            self.wrote += 1
            record: dict[str, Any] = {
                "key": b"key-%d" % key,
                "value": (b"%d" % self.wrote if value is True else value) or None,
                "partition": key % 2, "timestamp_ms": T0 + self.wrote,
            }  # fmt: skip
            self.mirror.producers[0].send(self.name, **record)
            if key not in lost:
                self.mirror.producers[1].send(self.name, **record)
        for producer in self.mirror.producers:
            producer.flush()
        self.commit()

    def commit(self) -> None:
        """Say that all of it was mirrored."""
        self.mirror.commit(self.name)
        ends = self.mirror.consumer(0).end_offsets([TopicPartition(self.name, p) for p in (0, 1)])
        self.positions[self.name] = {place.partition: end for place, end in ends.items()}

    def compact(self) -> None:
        """Wait until no record is left that has a newer one, but for what ends segments."""
        eventually(lambda: all(map(self._is_compacted, (0, 1))), 60)
        self.commit()

    def _is_compacted(self, side: int) -> bool:
        for partition in (0, 1):
            self.mirror.producers[side].send(
                self.name, key=b"filler-%d" % partition, value=b"same", partition=partition,
                timestamp_ms=T0 + 700_000,
            ).get(30)  # fmt: skip
        keys = [record.key for record in self.mirror.read(side, self.name)]
        return all(keys.count(key) == 1 for key in keys if not key.startswith(b"filler"))

    def delete(self, side: int, partition: int, before: int) -> None:
        """Let a log begin later."""
        self.mirror.admins[side].delete_records({TopicPartition(self.name, partition): before})

    def run(self, meanwhile: Any = None, **budget: Any) -> TopicParity:
        """Compare."""
        found = self.mirror.run(Observed(self, meanwhile), **budget)
        self.told = [finding for finding in found.findings if finding.topic == self.name]
        (topic,) = [topic for topic in found.topics if topic.topic == self.name]
        return topic


ENGINES = pytest.mark.parametrize("engine", ["mm1", "mm2"])
LIMITED = {"cleanup_policy": "compact,delete", "retention_bytes": "1000000000"}


@pytest.mark.long
@ENGINES
def test_what_compaction_replaced_before_it_was_read_is_read_again(
    mirror: Mirror, engine: str
) -> None:
    table = Table(mirror, engine, **EAGER)
    table.write(range(20))

    def replaced() -> None:
        table.write(range(20))
        table.compact()

    found = table.run(replaced)
    assert (found.status, found.verified_records, counts(found)) == (
        "verified", 22, {},
    ), "the keys, and what ended segments"  # fmt: skip


@pytest.mark.long
@ENGINES
def test_retention_of_one_partition_hides_no_loss_of_another(mirror: Mirror, engine: str) -> None:
    table = Table(mirror, engine, **LIMITED)
    table.write(range(20), lost=(7, 9))
    table.delete(1, 0, 5)
    found = table.run()
    # Nobody knows in which partition copies of MirrorMaker 1 were, and the first five are gone.
    gone = {"unverifiable": 5} if engine == "mm2" else {"unverifiable": 7}
    assert counts(found) == ({"missing": 2} if engine == "mm2" else {}) | gone
    assert found.status == ("mismatch" if engine == "mm2" else "unverifiable")


@pytest.mark.long
@ENGINES
def test_what_the_target_held_below_its_log_start_has_expired(mirror: Mirror, engine: str) -> None:
    table = Table(mirror, engine, **LIMITED)
    table.write(range(20))
    assert table.run(compacted_hours=0).verified_records == 20
    table.delete(1, 0, 10)
    table.delete(1, 1, 10)
    table.write(range(20, 30), lost=(23, 24))
    found = table.run(compacted_hours=0)
    assert counts(found) == {"expired": 20, "missing": 2}
    assert (found.status, found.verified_records) == ("mismatch", 8)


@pytest.mark.long
@ENGINES
def test_keys_lost_after_the_scan_are_told_by_the_next_run_until_they_are_mended(
    mirror: Mirror, engine: str
) -> None:
    table = Table(mirror, engine)
    table.write(range(100))
    assert table.run().verified_records == 100
    table.write(range(90, 130), lost=tuple(range(100, 130)))
    lost = table.run()
    assert (lost.status, counts(lost)) == ("mismatch", {"missing": 30})
    assert sum(sample.side == "source" for sample in lost.samples["missing"]) == 20
    assert counts(table.run()) == {"missing": 30}, "nothing is new"
    # A later value is on the target, and so is the copy of one that had been lost.
    table.write(range(100, 110))
    assert counts(table.run()) == {"missing": 20}
    for record in mirror.read(0, table.name):
        if int(record.key[4:]) in range(110, 115):
            mirror.write(record, partition=record.partition)
    mirror.producers[1].flush()
    assert counts(table.run()) == {"missing": 15}
    table.write(range(115, 130))
    mended = table.run()
    assert (mended.status, counts(mended)) == ("verified", {})
    assert (mended.in_flight_records, mended.coverage) == (0, 1.0)
    whole = table.run(compacted_hours=0)
    assert (whole.verified_records, counts(whole)) == (130, {})


@pytest.mark.long
@ENGINES
def test_a_lost_value_that_a_later_one_replaced_is_no_loss(mirror: Mirror, engine: str) -> None:
    table = Table(mirror, engine)
    table.write(range(10))
    table.run()
    table.write(range(10), lost=(3, 4))
    table.write(range(3, 10), lost=(4,))
    found = table.run()
    assert counts(found) == {"missing": 1}, "key 4 has its older values at best"
    table.write(range(4, 5), value=False)
    assert counts(table.run()) == {}


@pytest.mark.long
@ENGINES
@pytest.mark.parametrize("looked", [True, False], ids=["a look first", "a scan first"])
def test_a_lost_value_is_closed_by_its_own_record_alone(
    mirror: Mirror, engine: str, looked: bool
) -> None:
    table = Table(mirror, engine)
    table.write(range(10), value=b"alive")
    assert table.run().verified_records == 10
    table.write(range(5), lost=(3,), value=b"alive")
    if looked:
        assert counts(table.run()) == {"missing": 1}
    assert counts(table.run(compacted_hours=0)) == {"missing": 1}, "the target has an older one"
    mirror.producers[1].send(
        table.name, key=b"key-3", value=b"alive", partition=1, timestamp_ms=T0 + 900_000
    ).get(30)
    for hours in (24, 0):
        assert counts(table.run(compacted_hours=hours)) == {"missing": 1}, "another wrote it"
        assert not [finding for finding in table.told if finding.kind == "repaired"]
    (own,) = [record for record in mirror.read(0, table.name)
              if record.key == b"key-3" and record.timestamp > T0 + 10]  # fmt: skip
    mirror.write(own, partition=1)
    mirror.producers[1].flush()
    assert counts(table.run(compacted_hours=24 if looked else 0)) == {}
    (repaired,) = [finding for finding in table.told if finding.kind == "repaired"]
    assert (repaired.count, "equal to the timestamp" in repaired.message) == (1, True)


@pytest.mark.long
@ENGINES
def test_a_lost_tombstone_is_told_while_the_target_would_still_hold_it(
    mirror: Mirror, engine: str
) -> None:
    day = Table(mirror, engine, delete_retention_ms="86400000")
    day.write(range(10))
    day.run()
    day.write(range(6), lost=(3,), value=False)
    assert counts(day.run()) == {"missing": 1}
    assert counts(day.run(compacted_hours=0)) == {"missing": 1}
