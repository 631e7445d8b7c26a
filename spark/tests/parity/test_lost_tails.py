"""Logs that lost their newest records and grew past them: found by leader epochs, or by records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import parity_mirror
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import KafkaProducer
from parity_mirror import Mirror, counts, only
from parity_records import jars_directory
from parity_world import T0, World, no_kafka
from pyspark.sql import SparkSession

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.kafka.leader_epochs import walked
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    EpochsAsked,
    Finding,
    ParityResult,
    PartitionSnapshot,
    TopicParity,
    TopicSnapshot,
)
from mirror_report.parity.plan import CompactedTopic, ComparedTopic, FlowSnapshot, Scan, scans
from mirror_report.parity.plan.lost_tails import (
    OLDER,
    LastLook,
    contents_wanted,
    epochs_wanted,
    is_doubtful,
    kept,
    last_scan,
    looks,
    lost_from,
    with_answers,
)
from mirror_report.parity.plan.topics import FlowPlan, plan_flow
from mirror_report.parity.results import findings
from mirror_report.parity.results import scans as results
from mirror_report.parity.state import Manifest
from mirror_report.parity.state.changes import read_up_to
from mirror_report.parity.steps import log_identity

RECORDS = 40
LOST = 10


@dataclass
class Replica:
    """One copy of a log: records, each with its epoch, and where each epoch begins."""

    records: list[tuple[int, int]] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)

    def cut(self, at: int) -> None:
        """Drop records from an offset on."""
        del self.records[at:]
        self.epochs = [known for known in self.epochs if known[1] < at]

    def append(self, record: tuple[int, int]) -> None:
        """Take a record of an epoch that is not older than the last one."""
        if not self.epochs or self.epochs[-1][0] < record[0]:
            self.epochs.append((record[0], len(self.records)))
        self.records.append(record)

    def lead(self, epoch: int) -> None:
        """Become the leader; an epoch without a record is forgotten then."""
        self.epochs = [known for known in self.epochs if known[1] < len(self.records)]
        self.epochs.append((epoch, len(self.records)))

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Answer where an epoch ends, as a leader does."""
        later = [known for known in self.epochs if known[0] > epoch]
        if epoch == self.epochs[-1][0]:
            return epoch, len(self.records)
        if not later:
            return -1, -1
        return max((e for e, _ in self.epochs if e <= epoch), default=epoch), later[0][1]


class Partition:
    """Two replicas, of which any may be elected, whatever it has."""

    def __init__(self) -> None:
        self.replicas = [Replica(), Replica()]
        self.led, self.epoch, self.written = 0, 0, 0
        self.leader.lead(0)

    @property
    def leader(self) -> Replica:
        """The replica that leads."""
        return self.replicas[self.led]

    def write(self, count: int) -> None:
        """Append records to the leader alone."""
        for _ in range(count):
            self.written += 1
            self.leader.append((self.epoch, self.written))

    def follow(self, count: int) -> None:
        """Let the other replica fetch: what the leader does not have goes first."""
        follower, records = self.replicas[1 - self.led], self.leader.records
        same = [ours == theirs for ours, theirs in zip(follower.records, records, strict=False)]
        follower.cut(same.index(False) if False in same else len(same))
        for record in records[len(follower.records) :][:count]:
            follower.append(record)

    def elect(self, number: int) -> None:
        """Elect a replica, the same one or the other."""
        self.epoch += 1
        self.led = number
        self.leader.lead(self.epoch)

    def look(self, last: LastLook, *, silent: bool = False) -> PartitionSnapshot | None:
        """What a run sees of it; ``None``: it does not go on here.

        :param silent: the leader does not tell its epochs.
        """
        log = PartitionSnapshot(0, len(self.leader.records), None, self.epoch)
        now = ClusterSnapshot("a", "a", 1, {"t": TopicSnapshot("t", "id", {0: log}, {}, None)})
        wanted = epochs_wanted(now, {"t": last})
        found = walked(
            wanted,
            lambda asked: {
                at: self.leader.end_of(epoch) for at, epoch in asked.items() if not silent
            },
        )
        topic = with_answers(now, {"t": last}, found, {}).topics.get("t")
        return topic.partitions[0] if topic else None


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "follow", "elect", "look", "silence"]), st.integers(0, 5)),
    min_size=5, max_size=30,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_what_was_read_is_there_unless_it_is_told(steps: list[tuple[str, int]]) -> None:
    partition = Partition()
    last, read = LastLook("id"), list[tuple[int, int]]()
    for step, count in [*steps, ("look", 0)]:
        if step == "elect":
            partition.elect(count % 2)
        elif step not in {"look", "silence"}:
            getattr(partition, step)(count)
        # A log that never told its epochs is known by its records.
        elif log := partition.look(last, silent=step == "silence" and bool(last.epochs)):
            now = partition.leader.records
            differs = [n for n, one in enumerate(read) if now[n : n + 1] != [one]]
            assert lost_from(last, 0, log) == (differs[0] if differs else None)
            # The next run goes on from somewhere between.
            following = len(now) if not count else len(read) + (len(now) - len(read)) // count
            following = 0 if differs else max(0, following)
            epochs, _ = kept(LastLook("id") if differs else last, 0, log, following)
            last, read = LastLook("id", {0: following}, {0: epochs}), now[:following]


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_what_was_read_of_a_compacted_log_is_there_unless_it_is_told(
    steps: list[tuple[str, int]],
) -> None:
    partition = Partition()
    last, read = LastLook("id", compacted=True), list[tuple[int, int]]()
    for step, count in [*steps, ("look", 0)]:
        if step == "elect":
            partition.elect(count % 2)
        elif step not in {"look", "silence"}:
            getattr(partition, step)(count)
        elif log := partition.look(last):
            now = partition.leader.records
            differs = [n for n, one in enumerate(read) if now[n : n + 1] != [one]]
            lost = lost_from(last, 0, log)
            assert (lost is not None or is_doubtful(last, 0, log)) == bool(differs)
            assert lost is None or lost >= differs[0]
            epochs, _ = kept(LastLook(), 0, log, len(now))
            last, read = replace(last, read={0: len(now)}, epochs={0: epochs}), [*now]
            last = replace(last, leaders={0: partition.epoch})


def test_a_replica_made_after_cleaning_knows_fewer_epochs_and_lost_nothing() -> None:
    last = LastLook("id", {0: 100}, {0: ((1, 50), (2, 90))}, leaders={0: 2}, compacted=True)

    def found(end: int, *epochs: tuple[int, int]) -> tuple[int | None, bool]:
        log = PartitionSnapshot(0, end, None, epochs[-1][0] if epochs else 4, epochs=epochs)
        return lost_from(last, 0, log), is_doubtful(last, 0, log)

    assert found(170, (0, 3), (2, 97), (3, 104), (4, 160)) == (None, False)
    # A cleaner has removed all that the epochs 1 and 2 wrote, or the log never had it.
    assert found(170, (0, 3), (3, 104), (4, 160)) == (None, True)
    assert found(170, (0, 3), (2, 90), (3, 95), (4, 160)) == (95, False)
    assert found(170) == (None, True)
    assert found(95) == (95, True)


def test_elections_alone_prove_nothing_and_are_asked_for_once() -> None:
    partition, last = Partition(), LastLook("id")
    partition.write(20)
    for _ in range(3 * OLDER):
        log = partition.look(last)
        assert log
        assert lost_from(last, 0, log) is None
        epochs, _ = kept(last, 0, log, 20)
        last = LastLook("id", {0: 20}, {0: epochs})
        partition.elect(0)
    assert len(last.epochs[0]) <= OLDER + 2
    log = partition.look(last)
    assert log
    assert lost_from(last, 0, log) is None
    (epochs, _), topic = kept(last, 0, log, 20), TopicSnapshot("t", "id", {0: log}, {}, None)
    now = ClusterSnapshot("a", "a", 1, {"t": topic})
    assert epochs_wanted(now, {"t": LastLook("id", {0: 20}, {0: epochs})}) == {}


def test_what_a_new_leader_does_not_tell_is_unknown_and_no_loss() -> None:
    """Else what was read on from there would be held against epochs that it is not of."""
    partition, last = Partition(), LastLook("id")
    partition.write(20)
    log = partition.look(last)
    assert log
    last = LastLook("id", {0: 20}, {0: kept(last, 0, log, 20)[0]})
    partition.follow(20)
    partition.elect(1)
    partition.write(20)
    assert partition.look(last, silent=True) is None
    log = partition.look(last)
    assert log
    assert lost_from(last, 0, log) is None


@pytest.mark.parametrize(
    ("answer", "found"), [(None, {}), ((-1, -1), {("t", 0): ()})], ids=["no answer", "no epochs"]
)
@pytest.mark.parametrize("leader", [0, 7])
def test_a_log_without_epochs_differs_from_one_that_does_not_answer(
    leader: int, answer: Any, found: Any
) -> None:
    wanted = {("t", 0): EpochsAsked(leader, 0)}
    assert walked(wanted, lambda asked: dict.fromkeys(asked, answer) if answer else {}) == found


def test_epochs_that_retention_took_are_not_looked_for() -> None:
    """A leader names an epoch before its first one that nobody knows."""
    asked: list[int] = []

    def ask(epochs: Any) -> Any:
        asked.append(epochs["t", 0])
        return {("t", 0): (asked[-1], 50)}

    assert walked({("t", 0): EpochsAsked(7, 0)}, ask) == {("t", 0): ((7, 50),)}
    assert asked == [6, 5]


FLOWS = (
    Flow(name="kept", source="a", target="z", include="k-.*", group_id="g", engine=MM2),
    Flow(name="whole", source="b", target="z", include="w-.*", group_id="h"),
)
# Topics by what happens to them; logs of the old format keep no epochs.
LOSERS = {
    "source": ("source",), "old-source": ("source",),
    "target": ("target",), "old-target": ("target",),
    "calm": (), "old-calm": (),
}  # fmt: skip
TOPICS = [f"{flow.name[0]}-{case}" for flow in FLOWS for case in LOSERS]


def observed(world: World, flow: Flow, known: Manifest) -> list[ClusterSnapshot]:
    """What a run sees of both sides."""
    sides = {"source": world.source(flow), "target": world.target(flow)}
    return [
        log_identity.with_identity(world, now, looks(flow, side, known, Baseline(), now))  # type: ignore[arg-type]
        for side, now in sides.items()
    ]


def planned(world: World, flow: Flow, known: Manifest) -> tuple[FlowPlan, Manifest]:
    """What a run plans, and what is known when it has read all of that."""
    source, target = observed(world, flow, known)
    found = plan_flow(FlowSnapshot(flow, {}, source, target), known, {})
    ends = ((each.key, each.partition, each.end) for each in found.ranges)
    return found, read_up_to(replace(known, sides=found.begin), ends)


@pytest.mark.parametrize("keeps_epochs", [True, False], ids=["epochs", "old format"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_each_run_holds_both_sides_against_what_it_read(
    side: str, keeps_epochs: bool, tmp_path: Path
) -> None:
    flow, no_session = FLOWS[0], cast("SparkSession", None)
    world, known = World(no_session, tmp_path, flow), Manifest(60_000)
    logs = {alias: world.log(alias, "k-t") for alias in (flow.source, flow.target)}
    for log in logs.values():
        log.epochs = {} if keeps_epochs else None
    for number in range(4):
        if number == 2:
            logs[getattr(flow, side)].elect(0, 15)
        world.write(flow.source, "k-t", 0, *[(b"%d.%d" % (number, n), b"", T0, None)
                                            for n in range(10)])  # fmt: skip
        world.copy(flow, "k-t")
        found, known = planned(world, flow, known)
        lost = 15 if keeps_epochs else 19
        told = [("rewind", side, f"20 → {lost}")] if number == 2 else []
        assert [(each.kind, each.side, each.detail) for each in found.reopened] == told


@pytest.mark.parametrize("side", ["source", "target", "no side"])
def test_a_compacted_topic_that_lost_a_tail_is_scanned_at_once(side: str, tmp_path: Path) -> None:
    flow, known = FLOWS[0], Manifest(60_000)
    world = World(cast("SparkSession", None), tmp_path, flow)
    logs = {"source": world.log(flow.source, "k-t"), "target": world.log(flow.target, "k-t")}
    for log in logs.values():
        log.configs["cleanup.policy"] = "compact"
    for number in range(4):
        if number == 2:
            for name, log in logs.items():
                log.elect(0, 15 if name == side else None)
        world.write(flow.source, "k-t", 0, *[(b"%d" % n, b"", T0, None) for n in range(10)])
        world.copy(flow, "k-t")
        found, _ = planned(world, flow, known)
        told = [("rewind", side, "20 → 15", True)] if number == 2 and side != "no side" else []
        assert [
            (each.kind, each.side, each.detail, each.regrown) for each in found.reopened
        ] == told
        assert bool(findings.of_plan(found, ())) == bool(told)
        snapshot = FlowSnapshot(flow, {}, *observed(world, flow, known))
        topic = CompactedTopic.of_snapshot(snapshot, "k-t", ["k-t"], {})
        assert topic
        known = results.keep(known, [ComparedTopic(topic)], str(number), new=number % 2 > 0)
        assert Manifest.load(known.dump(), 60_000, tmp_path).scans == known.scans


@pytest.mark.parametrize(
    ("epochs", "waits"), [(((3, 9), (4, 90)), False), (((3, 9),), True), ((), True)],
    ids=["told", "no answer", "no epochs"],
)  # fmt: skip
def test_a_compacted_topic_whose_new_leader_tells_nothing_is_scanned_at_once(
    epochs: Any, waits: bool
) -> None:
    def topic(end: int, at_ms: int, leader: int, epochs: Any = ()) -> CompactedTopic:
        logs = {0: PartitionSnapshot(0, end, end, leader, epochs=epochs)}
        ours = TopicSnapshot("t", "id", logs, {"cleanup.policy": "compact"}, None)
        return CompactedTopic(FLOWS[0], "t", (ours,), ours, {}, at_ms, {})

    first = topic(90, 1, 3, ((3, 9),))
    scan = Scan("1", 1, first.state(), {"verified": {"0": 9}}, logs=first.logs)
    later = topic(120, 2, 4, epochs)
    assert scans.due(scan, later, 1000) == waits
    cluster = ClusterSnapshot("a", "a", 2, {"t": later.sources[0]})
    last = {"t": last_scan("source", "t", scan.logs)}
    assert with_answers(cluster, last, {}, {}).errors == {}
    assert contents_wanted(cluster, last, {}) == ({}, {}), "a cleaner may have removed them"


def test_what_an_earlier_release_kept_of_a_scan_accuses_nobody(tmp_path: Path) -> None:
    flow, known = FLOWS[0], Manifest(60_000)
    world = World(cast("SparkSession", None), tmp_path, flow)
    world.log(flow.target, "k-t")
    world.log(flow.source, "k-t").configs["cleanup.policy"] = "compact"
    world.write(flow.source, "k-t", 0, (b"key", b"", T0, None))
    scans = {"k": {"k-t": {"run_id": "1", "at_ms": 0, "state": []}}}
    found, _ = planned(world, flow, replace(known, scans=scans | {"kept": scans["k"]}))
    assert found.reopened == ()


def test_ends_that_another_leader_told_since_are_not_vouched_for() -> None:
    def topic(end: int, epoch: int) -> CompactedTopic:
        logs = {0: PartitionSnapshot(0, end, end, epoch, epochs=((epoch, 2),))}
        ours = TopicSnapshot("t", "id", logs, {}, None)
        return CompactedTopic(FLOWS[0], "t", (ours,), None, {}, 0, {})

    first = topic(10, 3)
    for leader, end in ((3, 20), (4, 10)):
        seen = replace(topic(20, leader), first=first)
        assert seen.logs == [["source", "t", "id", {"0": [end, 3, [[3, 2]]]}]]


class Scenario:
    """Topics whose leaders change between two runs, and with some of them the newest records."""

    def __init__(self, world: World) -> None:
        self.world = world
        for flow, name, _ in self.topics():
            for alias in (flow.source, flow.target):
                world.log(alias, name).epochs = None if "old" in name else {}
        self.write(0, RECORDS)
        self.before = world.run()
        for flow, name, losers in self.topics():
            for side, alias in (("source", flow.source), ("target", flow.target)):
                world.log(alias, name).elect(0, RECORDS - LOST * (side in losers))
        self.write(RECORDS, 3 * LOST)
        self.after, self.later = world.run(), world.run()

    def topics(self) -> Iterator[tuple[Flow, str, tuple[str, ...]]]:
        """All topics, with their flows, and the sides that lose records."""
        for flow in FLOWS:
            for case, losers in LOSERS.items():
                yield flow, f"{flow.name[0]}-{case}", losers

    def write(self, start: int, count: int) -> None:
        """Write records a second apart and mirror them from the position on, as a mirror does."""
        for flow, name, _ in self.topics():
            contents = [
                (b"%d" % n, b"value", T0 + n * 1000, None) for n in range(start, start + count)
            ]
            self.world.write(flow.source, name, 0, *contents)
            self.world.copy(flow, name)


@pytest.fixture(scope="module")
def scenario(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    world = World(spark, tmp_path_factory.mktemp("scenario"), *FLOWS)
    with no_kafka(world):
        return Scenario(world)


def of(result: ParityResult, name: str) -> tuple[TopicParity, dict[str, Finding]]:
    """What a run says of one topic."""
    (topic,) = (topic for topic in result.topics if topic.topic == name)
    return topic, {found.kind: found for found in result.findings if found.topic == name}


@pytest.mark.parametrize("name", TOPICS)
def test_all_is_verified_at_first(scenario: Scenario, name: str) -> None:
    topic, findings = of(scenario.before, name)
    assert (topic.verified_records, findings) == (RECORDS, {})


@pytest.mark.parametrize("name", [name for name in TOPICS if "source" in name])
def test_what_a_source_got_instead_of_its_tail_is_missing(scenario: Scenario, name: str) -> None:
    """The mirror goes on from its position, behind the records that came instead."""
    topic, findings = of(scenario.after, name)
    assert topic.counts["missing"] == LOST
    known = RECORDS - 1 if "old" in name else RECORDS - LOST
    assert f"({RECORDS} → {known}), and others are there" in findings["rewind"].message
    topic, findings = of(scenario.later, name)
    assert topic.counts["missing"] == LOST
    assert "rewind" not in findings, "it is told once"


@pytest.mark.parametrize("name", [name for name in TOPICS if "target" in name])
def test_verified_records_that_a_target_lost_are_missing(scenario: Scenario, name: str) -> None:
    topic, findings = of(scenario.after, name)
    assert counts(topic) == {"missing": LOST}
    assert set(findings) == {"rewind", "missing"}
    topic, findings = of(scenario.later, name)
    assert (counts(topic), set(findings)) == ({"missing": LOST}, {"missing"})


@pytest.mark.parametrize("name", [name for name in TOPICS if "calm" in name])
def test_another_leader_is_no_finding(scenario: Scenario, name: str) -> None:
    topic, findings = of(scenario.after, name)
    assert (topic.verified_records, findings) == (RECORDS + 3 * LOST, {})


def test_a_tail_that_a_compacted_topic_lost_is_compared_again_in_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = FLOWS[0]
    world = World(spark, tmp_path, flow)
    losers = {"k-calm": None, "k-source": flow.source, "k-target": flow.target}

    def write(start: int, count: int) -> None:
        keys = range(start, start + count)
        for name in losers:
            world.write(flow.source, name, 0, *[(b"%d" % n, b"v", T0 + n, None) for n in keys])
            world.copy(flow, name)

    for name in losers:
        for alias in (flow.source, flow.target):
            world.log(alias, name).configs["cleanup.policy"] = "compact"
    write(0, RECORDS)
    with no_kafka(world):
        assert {topic.verified_records for topic in world.run().topics} == {RECORDS}
        for name, loser in losers.items():
            for alias in (flow.source, flow.target):
                log = world.log(alias, name)
                log.elect(0, RECORDS - LOST * (alias == loser))
        write(RECORDS, 3 * LOST)
        after, later = world.run(), world.run()
    for run in (after, later):
        assert {topic.topic: counts(topic) for topic in run.topics} == {
            "k-calm": {},
            # The mirror passed over what came instead, and what was lost is on the target still.
            "k-source": {"missing": LOST} | ({"extra": LOST} if run is after else {}),
            "k-target": {"missing": LOST},
        }
    told = [(each.topic, each.kind) for each in after.findings if each.kind == "rewind"]
    assert sorted(told) == [("k-source", "rewind"), ("k-target", "rewind")]
    assert "rewind" not in {each.kind for each in later.findings}


@pytest.mark.long
@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
def test_what_a_broker_lost_in_a_crash_is_missing_on_either_side(
    spark: SparkSession, broker_processes: Any, two_brokers: tuple[str, str], tmp_path: Path
) -> None:
    crashing = broker_processes.start().bootstrap
    mirrors = [
        Mirror(spark, (crashing, two_brokers[1]), tmp_path / "source"),
        Mirror(spark, (two_brokers[0], crashing), tmp_path / "target"),
    ]
    names, left = [mirror.topic("lost", 1) for mirror in mirrors], {}
    for mirror, name in zip(mirrors, names, strict=True):
        mirror.produce(name, RECORDS - LOST)
        mirror.copy(name)
        left[name] = broker_processes.log(crashing, name).stat().st_size
        mirror.produce(name, LOST, start=RECORDS - LOST)
        mirror.copy_since(name, parity_mirror.T0 + (RECORDS - LOST) * 1000)
        assert only(mirror.run()).verified_records == RECORDS
    broker_processes.crash(crashing, left)
    for side, (mirror, name) in enumerate(zip(mirrors, names, strict=True)):
        mirror.producers[side].close()
        mirror.producers[side] = KafkaProducer(bootstrap_servers=crashing, acks="all")
        mirror.produce(name, 3 * LOST, start=RECORDS)
        # The mirror goes on from its position, which is behind what came instead of the tail.
        passed_over = LOST if side == 0 else 0
        mirror.copy_since(name, parity_mirror.T0 + (RECORDS + passed_over) * 1000)
        result = mirror.run()
        assert only(result).counts["missing"] == LOST
        (rewind,) = (found for found in result.findings if found.kind == "rewind")
        assert f"({RECORDS} → {RECORDS - LOST}), and others are there" in rewind.message
        mirror.close()
