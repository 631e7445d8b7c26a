"""Many runs over everything that may happen to a sound mirror: nothing is made up.

``MIRROR_REPLAY_SEED`` repeats a replay; every one prints its own.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from parity_mirror import Mirror, eventually
from parity_records import jars_directory
from pyspark.sql import SparkSession
from real_mirrors import Engine, MirrorMaker1, MirrorMaker2, Truth, until

from mirror_report.config import Budget, Cluster, Flow, Settings
from mirror_report.engines import MM2
from mirror_report.model import CLASSES, ParityResult, Positions
from mirror_report.observe import Snapshots

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

HOUR = 3_600_000
PARTITIONS = 2
FLOWS = ("loose", "kept")
KEYS = 3
"""Of a compacted topic."""


class GivenPositions(Snapshots):
    """Real snapshots, and the positions of the replay's own mirrors."""

    def __init__(self, settings: Settings, positions: dict[str, Positions]) -> None:
        super().__init__(settings)
        self.committed = positions

    def positions(self, flow: Flow) -> Positions:
        """Give the positions of a flow."""
        return {topic: dict(parts) for topic, parts in self.committed[flow.name].items()}


class Replay(Mirror):
    """A flow of each engine from a to b; what happens to them is chosen by chance.

    Topics: ``busy`` (bursts, repetitions, aborted transactions, more partitions), ``cut`` (deleted
    from the source behind the mirror), ``still`` (expires on both sides), ``table`` (compacted).
    """

    def __init__(
        self, spark: SparkSession, brokers: tuple[str, str], state: Path, seed: int
    ) -> None:
        super().__init__(spark, brokers, state)
        self.chance = random.Random(seed)  # noqa: S311
        flows = self.flows()
        # A compacted topic is read as a whole by every run.
        self.settings = replace(
            self.settings,
            flows=flows,
            # What stays open is counted by slices from the first run on.
            budget=Budget(scrub_bytes=0, compacted_hours=0, open_minutes=0),
        )
        self.committed: dict[str, Positions] = {flow: {} for flow in FLOWS}
        self.copied: dict[str, dict[int, int]] = {}
        self.again: Counter[str] = Counter()
        self.produced: dict[str, int] = {}
        self.paused = 0
        self.now = int(time.time() * 1000) - 12 * HOUR
        self.topics = {
            name: self.topic(name, PARTITIONS)
            for flow in FLOWS
            for name in (f"{flow}-busy", f"{flow}-cut", f"{flow}-still")
        }
        self.tables = {
            f"{flow}-table": self.topic(
                f"{flow}-table", 1, cleanup_policy="compact", segment_ms="100",
                min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="100",
            )
            for flow in FLOWS
        }  # fmt: skip
        self.transactional = KafkaProducer(
            bootstrap_servers=brokers[0], transactional_id=self.prefix, metadata_max_age_ms=500
        )
        self.transactional.init_transactions()

    def flows(self) -> tuple[Flow, ...]:
        """Make the flow of each engine."""
        loose = replace(self.settings.flows[0], name="loose", include=f"{self.prefix}\\.loose-.*")
        return loose, replace(loose, name="kept", engine=MM2, include=f"{self.prefix}\\.kept-.*")

    def repeated(self, topic: str) -> int:
        """How many records of the target are there once more than on the source."""
        return self.again[topic]

    def positions(self, flow: str, topic: str) -> dict[int, int]:
        """What a mirror has committed."""
        return dict(self.committed[flow].get(topic, {}))

    # -- what happens -----------------------------------------------------------------------------

    def timestamp(self) -> int:
        """Event time: mostly in order, now and then equal, late, ahead or missing."""
        kind = self.chance.random()
        if kind < 0.6:
            self.now += self.chance.randrange(4000)
            return self.now
        if kind < 0.8:
            return self.now
        if kind < 0.9:
            return self.now - self.chance.randrange(3 * HOUR)
        if kind < 0.97:
            return int(time.time() * 1000) + self.chance.randrange(HOUR // 2)
        return -1

    def fill(self, name: str, count: int, producer: KafkaProducer | None = None) -> None:
        """Produce records."""
        topic = self.topics[name]
        writer = producer or self.producers[0]
        for _ in range(count):
            number = self.produced[topic] = self.produced.get(topic, 0) + 1
            writer.send(
                topic,
                key=None if self.chance.random() < 0.3 else b"%d" % self.chance.randrange(20),
                value=b"%d" % number,
                timestamp_ms=self.timestamp(),
            )
        writer.flush()

    def abort(self, name: str) -> None:
        """Produce records of a transaction that is given up: mirrors copy them like others."""
        self.transactional.begin_transaction()
        self.fill(name, self.chance.randrange(1, 20), self.transactional)
        self.transactional.abort_transaction()

    def mirror(self, flow: str, name: str, *, drain: bool = False) -> None:
        """Copy from where the mirror stands; it may die before it commits and begin again."""
        topic = (self.topics | self.tables)[name]
        known = self.committed[flow].setdefault(topic, {})
        written = self.copied.setdefault(topic, {})
        begun = dict(known)
        records = [
            record
            for record in self.read(0, topic)
            if record.offset >= known.get(record.partition, 0)
        ]
        share = {record.partition: 2.0 if drain else self.chance.random() for record in records}
        last = {record.partition: record.offset for record in records}
        for record in records:
            begin = begun.get(record.partition, 0)
            if record.offset > begin + share[record.partition] * (last[record.partition] - begin):
                continue
            if record.offset < written.get(record.partition, 0):
                self.again[topic] += 1
            self.producers[1].send(
                topic, key=record.key, value=record.value, headers=list(record.headers),
                timestamp_ms=record.timestamp,
                partition=record.partition if flow == "kept" else None,
            )  # fmt: skip
            written[record.partition] = max(written.get(record.partition, 0), record.offset + 1)
            known[record.partition] = record.offset + 1
        self.producers[1].flush()
        if drain:
            # Past the marker of a transaction at the end too.
            known.update(
                {partition.partition: end for partition, end in self.ends(0, topic).items()}
            )
        elif name.endswith(("busy", "table")) and self.chance.random() < 0.3:
            for partition, end in known.items():
                known[partition] = self.chance.randint(begun.get(partition, 0), end)

    def ends(self, side: int, topic: str) -> dict[TopicPartition, int]:
        """End of each partition."""
        consumer = self.consumer(side)
        parts = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
        found: dict[TopicPartition, int] = consumer.end_offsets(parts)
        consumer.close()
        return found

    def starts(self, side: int, topic: str) -> dict[TopicPartition, int]:
        """Start of each partition."""
        consumer = self.consumer(side)
        parts = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
        found: dict[TopicPartition, int] = consumer.beginning_offsets(parts)
        consumer.close()
        return found

    def delete(self, name: str) -> None:
        """Delete records of the source that the report has read and the mirror has copied."""
        topic = self.topics[name]
        sides = self.store.load("parity").get("sides", [])
        read = {
            int(p): offset
            for state in sides if (state["side"], state["origin"]) == ("source", topic)
            for p, offset in state["next"].items()
        }  # fmt: skip
        committed = self.positions(name.partition("-")[0], topic)
        upto = {
            TopicPartition(topic, p): min(offset, committed.get(p, 0)) // 2
            for p, offset in read.items()
        }
        first = self.starts(0, topic)
        wanted = {
            partition: offset
            for partition, offset in upto.items()
            if offset > first.get(partition, 0)
        }
        if wanted:
            self.admins[0].delete_records(wanted)

    def configure(self, side: int, topic: str, **configs: str) -> None:
        """Set configuration of a topic."""
        plain = {key.replace("_", "."): value for key, value in configs.items()}
        self.admins[side].alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, configs=plain)]
        )

    def expire(self, name: str) -> None:
        """Let retention remove all of a topic, on both sides."""
        topic = self.topics[name]
        for side in (0, 1):
            self.configure(side, topic, retention_ms="1000")
        for side in (0, 1):
            eventually(lambda at=side: self.starts(at, topic) == self.ends(at, topic))

    def grow(self, name: str) -> None:
        """Add a partition on both sides, first where the mirror writes."""
        topic = self.topics[name]
        for side in (1, 0):
            now = len(self.ends(side, topic)) + 1
            self.admins[side].create_partitions({topic: now})
            eventually(
                lambda at=side, wanted=now: len(self.producers[at].partitions_for(topic)) == wanted
            )

    def compact(self, flow: str) -> None:
        """Write the same keys again and again; brokers keep the newest of each."""
        name = f"{flow}-table"
        table = self.tables[name]
        for _ in range(30):
            number = self.produced[table] = self.produced.get(table, 0) + 1
            value = b"%d" % number
            self.producers[0].send(table, key=b"%d" % (number % KEYS), value=value)
        self.producers[0].flush()
        self.mirror(flow, name)

    # -- steps ------------------------------------------------------------------------------------

    def step(self, number: int) -> ParityResult:
        """Let things happen, then run."""
        rare = {
            1: self._first, 3: self._expire, 4: self._die, 5: self._grow, 6: self._keep_longer
        }  # fmt: skip
        rare.get(number % 10, lambda: None)()
        for flow in FLOWS:
            name = f"{flow}-busy"
            self.fill(name, self.chance.choice((0, 3, 40)))
            if self.chance.random() < 0.4:
                self.abort(name)
            self.fill(f"{flow}-cut", 5)
            if self.paused == 0:
                self.mirror(flow, name)
                self.mirror(flow, f"{flow}-cut")
            if self.chance.random() < 0.4:
                self.delete(f"{flow}-cut")
        self.paused = max(0, self.paused - 1) or (3 if self.chance.random() < 0.15 else 0)
        for flow in FLOWS:
            self.compact(flow)
        return self.compare()

    def _first(self) -> None:
        for flow in FLOWS:
            topic = self.topics[f"{flow}-still"]
            for i in range(30):
                at = int(time.time() * 1000) - 2 * HOUR + i * 1000
                value = b"%d" % at
                self.producers[0].send(topic, key=b"%d" % i, value=value, timestamp_ms=at)
            self.producers[0].flush()
            self.mirror(flow, f"{flow}-still", drain=True)

    def _expire(self) -> None:
        for flow in FLOWS:
            self.expire(f"{flow}-still")

    def _die(self) -> None:
        for flow in FLOWS:
            self.fill(f"{flow}-busy", 20)
            self.mirror(flow, f"{flow}-busy", drain=True)
            known = self.committed[flow][self.topics[f"{flow}-busy"]]
            known.update({partition: max(0, end - 5) for partition, end in known.items()})

    def _keep_longer(self) -> None:
        for side in (0, 1):
            for flow in FLOWS:
                self.configure(side, self.topics[f"{flow}-still"], retention_ms="604800000")

    def _grow(self) -> None:
        for flow in FLOWS:
            if len(self.ends(0, self.topics[f"{flow}-busy"])) < 4:
                self.grow(f"{flow}-busy")

    def compare(self) -> ParityResult:
        """Run once."""
        return self.run(GivenPositions(self.settings, self.committed))

    def close(self) -> None:
        """Close all clients."""
        self.transactional.close()
        super().close()


class RealReplay(Replay):
    """The same between a real MirrorMaker 1 and a real MirrorMaker 2, which are killed at work.

    :param kafka3: the distribution that has MirrorMaker 1; ``process``: the MirrorMaker 2.
    """

    def __init__(
        self,
        spark: SparkSession,
        brokers: tuple[str, str],
        state: Path,
        seed: int,
        kafka3: Path,
        process: Any,
    ) -> None:
        self.truths: dict[str, tuple[Truth, Truth]] = {}
        super().__init__(spark, brokers, state, seed)
        loose, kept = self.settings.flows
        self.engines: dict[str, Engine] = {
            "loose": MirrorMaker1(kafka3, state, brokers, loose),
            "kept": MirrorMaker2(process, brokers, kept),
        }
        for engine in self.engines.values():
            engine.start()

    def timestamp(self) -> int:
        """Event time; never missing, for real mirrors write another one then."""
        at = super().timestamp()
        return at if at >= 0 else self.now

    def topic(self, name: str, partitions: int = PARTITIONS, **configs: str) -> str:
        """Create a topic on both clusters, first where MirrorMaker 2 would create it."""
        full = self.called(name)
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        for admin in reversed(self.admins):
            wanted = [NewTopic(full, partitions, 1, topic_configs=settings)]
            admin.create_topics(wanted, wait_for_metadata=True)
        source, target = (Truth(broker, full) for broker in self.brokers)
        self.truths[full] = source, target
        return full

    def called(self, name: str) -> str:
        """Name of a topic; MirrorMaker 2 mirrors those that begin with its policy."""
        return f"{'identity-' if name.startswith('kept') else ''}{self.prefix}.{name}"

    def flows(self) -> tuple[Flow, ...]:
        """Make the flow of each engine, between the clusters as MirrorMaker 2 calls them."""
        clusters = {
            alias: Cluster(alias, (address,))
            for alias, address in zip(("east", "west"), self.brokers, strict=True)
        }
        self.settings = replace(self.settings, clusters=clusters)
        loose = replace(
            self.settings.flows[0], name="loose", source="east", target="west",
            include=f"{self.prefix}\\.loose-.*", commit_interval_ms=1000,
        )  # fmt: skip
        return loose, replace(
            loose, name="kept", engine=MM2, include=f"identity-{self.prefix}\\.kept-.*",
            group_id="east-mm2", commit_interval_ms=2000,
            offset_topic="mm2-offsets.east.internal", status_topic="mm2-status.east.internal",
            config_topic="mm2-configs.east.internal",
            offset_syncs_topic="mm2-offset-syncs.east.internal",
        )  # fmt: skip

    def positions(self, flow: str, topic: str) -> dict[int, int]:
        """What a mirror has committed."""
        found = Snapshots(self.settings).positions(self.settings.flow(flow))
        return dict(found.get(topic, {}))

    def see(self) -> None:
        """Read what is there, before it goes."""
        for truth in (truth for both in self.truths.values() for truth in both):
            truth.catch_up()

    def repeated(self, topic: str) -> int:
        """How many records of the target were there once more than on the source."""
        source, target = self.truths[topic]
        target.catch_up()
        return (target.values({}) - source.values({})).total()

    def mirror(self, flow: str, name: str, *, drain: bool = False) -> None:
        """Let the mirror work, wait until it is done, or kill it and start it again."""
        topic = (self.topics | self.tables)[name]
        if drain:
            self.see()
            ends = self.truths[topic][0].ends()
            until(
                lambda: all(
                    self.positions(flow, topic).get(partition, 0) >= end
                    for partition, end in ends.items()
                )
            )
        elif name.endswith("busy") and self.chance.random() < 0.3:
            self.engines[flow].end(signal.SIGKILL)
            self.engines[flow].start()

    def _die(self) -> None:
        for flow in FLOWS:
            self.fill(f"{flow}-busy", 20)
            # What is copied now and not committed, is copied again.
            topic = self.topics[f"{flow}-busy"]
            copied = self.truths[topic][1]
            copied.catch_up()
            before = copied.ends()
            self.fill(f"{flow}-busy", 200)

            def more(copied: Truth = copied, before: dict[int, int] = before) -> bool:
                copied.catch_up()
                return copied.ends() != before

            until(more)
            self.engines[flow].end(signal.SIGKILL)
            self.engines[flow].start()

    def delete(self, name: str) -> None:
        """Delete records of the source that the report has read and the mirror has copied."""
        self.see()
        super().delete(name)

    def expire(self, name: str) -> None:
        """Let retention remove all of a topic, on both sides."""
        self.see()
        super().expire(name)

    def compare(self) -> ParityResult:
        """Run once."""
        result = self.run()
        self.see()
        return result

    def close(self) -> None:
        """End the mirrors, and close all clients."""
        for engine in self.engines.values():
            engine.end(signal.SIGKILL)
        super().close()


def seed_of_this_run() -> int:
    seed = int(os.environ.get("MIRROR_REPLAY_SEED") or time.time_ns() % 2**32)
    print(f"MIRROR_REPLAY_SEED={seed}")
    return seed


@pytest.fixture
def replay(spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path) -> Iterator[Replay]:
    created = Replay(spark, two_brokers, tmp_path, seed_of_this_run())
    yield created
    created.close()


@pytest.fixture
def real_replay(
    spark: SparkSession,
    two_brokers: tuple[str, str],
    tmp_path: Path,
    kafka3_home: Path,
    mirror_maker2: Any,
) -> Iterator[RealReplay]:
    seed = seed_of_this_run()
    created = RealReplay(spark, two_brokers, tmp_path, seed, kafka3_home, mirror_maker2)
    yield created
    created.close()


@pytest.mark.parametrize("steps", [10, pytest.param(40, marks=pytest.mark.long)])
def test_a_sound_mirror_is_never_accused(replay: Replay, steps: int) -> None:
    play(replay, steps)
    busy = replay.topics["kept-busy"]
    assert sum(replay.produced.values()) > 20 * steps // 2, "enough happened"
    assert replay.repeated(busy) > 0


@pytest.mark.long
def test_real_mirrors_that_are_killed_are_never_accused(real_replay: RealReplay) -> None:
    play(real_replay, 10)
    assert sum(real_replay.repeated(topic) for topic in real_replay.topics.values()) > 0


def play(replay: Replay, steps: int) -> None:
    """Take steps; each run may say what happened, and nothing else."""
    said: Counter[str] = Counter()
    for number in range(1, steps + 1):
        hold(replay, replay.step(number), said)
    for name in {**replay.topics, **replay.tables}:
        replay.mirror(name.partition("-")[0], name, drain=True)
    for _ in range(2):
        result = replay.compare()
        hold(replay, result, said)
    found = {row.topic: row for row in result.topics}
    assert found.keys() == {*replay.topics.values(), *replay.tables.values()}
    assert {row.status for row in result.topics} == {"verified"}
    assert {row.in_flight_records for row in result.topics} == {0}
    for topic in replay.topics.values():
        assert (topic, found[topic].accounted["duplicate"]) == (topic, replay.repeated(topic))
        assert said[topic] == replay.repeated(topic), "each was told once"
    for flow in FLOWS:
        busy = found[replay.topics[f"{flow}-busy"]]
        assert busy.verified_records == busy.source_records == replay.produced[busy.topic]
        still = found[replay.topics[f"{flow}-still"]]
        assert (still.verified_records, still.expired_records) == (
            30 * ((steps + 8) // 10),
            30 * ((steps + 6) // 10),
        )
        table = replay.tables[f"{flow}-table"]
        assert (found[table].strategy, found[table].verified_records) == ("latest_by_key", KEYS)
        for side in (0, 1):
            eventually(
                lambda side=side, table=table: (
                    len(replay.read(side, table)) < replay.produced[table] // 2
                )
            )


def hold(replay: Replay, result: ParityResult, said: Counter[str]) -> None:
    """A run says nothing but repetitions that are there, each once.

    :param said: repetitions by topic that runs have told, and tell now.
    """
    for row in result.topics:
        wrong = {name: row.counts[name] for name in CLASSES if row.counts[name]}
        said[row.topic] += wrong.pop("duplicate", 0)
        assert (replay.runs, row.topic, wrong) == (replay.runs, row.topic, {}), row.reason
        assert said[row.topic] <= replay.repeated(row.topic)
    told = {
        (found.kind, found.topic, found.count) for found in result.findings if not found.accounted
    }
    assert told == {
        ("duplicate", row.topic, count)
        for row in result.topics
        if (count := row.counts["duplicate"])
    }
    known = {(found.kind, found.topic) for found in result.findings if found.accounted}
    assert known <= {("duplicate", topic) for topic in said if said[topic]}
