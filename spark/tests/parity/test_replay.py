"""Many runs over everything that may happen to a sound mirror: nothing is made up.

``MIRROR_REPLAY_SEED`` repeats a replay; every one prints its own.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from parity_mirror import Mirror, eventually
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report.config import Flow, Settings
from mirror_report.engines import MM2
from mirror_report.model import CLASSES, ParityResult, Positions
from mirror_report.observe import Snapshots

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

HOUR = 3_600_000
PARTITIONS = 2


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
        loose = replace(self.settings.flows[0], name="loose", include=f"{self.prefix}\\.loose-.*")
        kept = replace(loose, name="kept", engine=MM2, include=f"{self.prefix}\\.kept-.*")
        self.settings = replace(self.settings, flows=(loose, kept))
        self.committed: dict[str, Positions] = {"loose": {}, "kept": {}}
        self.copied: dict[str, dict[int, int]] = {}
        self.repeated: dict[str, int] = {}
        self.produced: dict[str, int] = {}
        self.paused = 0
        self.now = int(time.time() * 1000) - 12 * HOUR
        self.topics = {
            name: self.topic(name, PARTITIONS)
            for flow in ("loose", "kept")
            for name in (f"{flow}-busy", f"{flow}-cut", f"{flow}-still")
        }
        self.table = self.topic(
            "kept-table", 1, cleanup_policy="compact", segment_ms="100",
            min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="100",
        )  # fmt: skip
        self.transactional = KafkaProducer(
            bootstrap_servers=brokers[0], transactional_id=self.prefix, metadata_max_age_ms=500
        )
        self.transactional.init_transactions()

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
        topic = self.topics[name]
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
                self.repeated[topic] = self.repeated.get(topic, 0) + 1
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
        elif name.endswith("busy") and self.chance.random() < 0.3:
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
        committed = self.committed["kept" if name.startswith("kept") else "loose"].get(topic, {})
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
        """Add a partition on both sides."""
        topic = self.topics[name]
        for side in (0, 1):
            now = len(self.ends(side, topic)) + 1
            self.admins[side].create_partitions({topic: now})
            eventually(
                lambda at=side, wanted=now: len(self.producers[at].partitions_for(topic)) == wanted
            )

    def compact(self) -> None:
        """Write the same keys again and again, on both sides."""
        for side in (0, 1):
            for i in range(30):
                self.producers[side].send(self.table, key=b"%d" % (i % 3), value=b"%d" % i)
            self.producers[side].flush()

    # -- steps ------------------------------------------------------------------------------------

    def step(self, number: int) -> ParityResult:
        """Let things happen, then run."""
        rare = {
            1: self._first, 3: self._expire, 4: self._die, 5: self._grow, 6: self._keep_longer
        }  # fmt: skip
        rare.get(number % 10, lambda: None)()
        for flow in ("loose", "kept"):
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
        self.compact()
        return self.compare()

    def _first(self) -> None:
        for flow in ("loose", "kept"):
            topic = self.topics[f"{flow}-still"]
            for i in range(30):
                at = int(time.time() * 1000) - 2 * HOUR + i * 1000
                self.producers[0].send(topic, key=b"%d" % i, value=b"still", timestamp_ms=at)
            self.producers[0].flush()
            self.mirror(flow, f"{flow}-still", drain=True)

    def _expire(self) -> None:
        for flow in ("loose", "kept"):
            self.expire(f"{flow}-still")

    def _die(self) -> None:
        for flow in ("loose", "kept"):
            self.fill(f"{flow}-busy", 20)
            self.mirror(flow, f"{flow}-busy", drain=True)
            known = self.committed[flow][self.topics[f"{flow}-busy"]]
            known.update({partition: max(0, end - 5) for partition, end in known.items()})

    def _keep_longer(self) -> None:
        for side in (0, 1):
            for flow in ("loose", "kept"):
                self.configure(side, self.topics[f"{flow}-still"], retention_ms="604800000")

    def _grow(self) -> None:
        for flow in ("loose", "kept"):
            if len(self.ends(0, self.topics[f"{flow}-busy"])) < 4:
                self.grow(f"{flow}-busy")

    def compare(self) -> ParityResult:
        """Run once."""
        return self.run(GivenPositions(self.settings, self.committed))

    def close(self) -> None:
        """Close all clients."""
        self.transactional.close()
        super().close()


@pytest.fixture
def replay(spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path) -> Iterator[Replay]:
    seed = int(os.environ.get("MIRROR_REPLAY_SEED") or time.time_ns() % 2**32)
    print(f"MIRROR_REPLAY_SEED={seed}")
    created = Replay(spark, two_brokers, tmp_path, seed)
    yield created
    created.close()


@pytest.mark.parametrize("steps", [10, pytest.param(40, marks=pytest.mark.long)])
def test_a_sound_mirror_is_never_accused(replay: Replay, steps: int) -> None:
    reported: dict[str, int] = {}
    table = f"{replay.prefix}.kept-table"
    for number in range(1, steps + 1):
        result = replay.step(number)
        for row in result.topics:
            if row.topic == table:
                continue
            wrong = {name: row.counts[name] for name in CLASSES if row.counts[name]}
            reported[row.topic] = reported.get(row.topic, 0) + wrong.pop("duplicate", 0)
            # Order is that of the copies as well: a repeated one comes late.
            if replay.repeated.get(row.topic):
                wrong.pop("reordered", None)
            assert (number, row.topic, wrong) == (number, row.topic, {}), row.reason
            assert reported[row.topic] <= replay.repeated.get(row.topic, 0)
    for name in replay.topics:
        replay.mirror(name.split("-")[0], name, drain=True)
    for _ in range(2):
        result = replay.compare()
    found = {row.topic: row for row in result.topics}
    assert len(result.topics) == len(replay.topics) + 1
    for name, topic in replay.topics.items():
        row = found[topic]
        wrong = {
            kind: n for kind, n in row.counts.items() if n and kind not in ("reordered",)
        }  # fmt: skip
        assert (name, row.status, wrong, row.in_flight_records) == (name, "verified", {}, 0)
        accounted: Any = row.accounted.get("duplicate", 0)
        assert (name, accounted) == (name, replay.repeated.get(topic, 0))
    for flow in ("loose", "kept"):
        assert replay.repeated[replay.topics[f"{flow}-busy"]] > 0, "each mirror died"
    assert sum(replay.produced.values()) > 20 * steps // 2, "enough happened"
    busy = found[replay.topics["kept-busy"]]
    assert busy.verified_records == busy.source_records == replay.produced[busy.topic]
    still = found[replay.topics["kept-still"]]
    assert (still.verified_records, still.expired_records) == (
        30 * ((steps + 8) // 10),
        30 * ((steps + 6) // 10),
    )
