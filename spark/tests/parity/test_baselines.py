"""Baselines of real mirrors under load, at any moment: each later loss is reported, none invented.

``MIRROR_BASELINES_SEED`` repeats a series; every one prints its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from parity_records import jars_directory
from pyspark.sql import SparkSession
from real_mirrors import MINUTE, Engine, Load, MirrorMaker1, MirrorMaker2, Truth, until

from mirror_report.baseline.record import record_baselines
from mirror_report.config import Budget, Cluster, Flow, Settings
from mirror_report.config import Spark as SparkSettings
from mirror_report.engines import MM2
from mirror_report.model import CLASSES, TopicParity
from mirror_report.observe import Snapshots, open_clients
from mirror_report.parity.context import ParityRequest
from mirror_report.parity.run import run_parity
from mirror_report.state.store import Store

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

PARTITIONS = 2
ROUNDS = 25
"""Baselines per engine, of which the first of five is followed by a kill."""


@dataclass
class Series:
    """One flow of a real mirror, and one baseline after the other."""

    spark: SparkSession
    settings: Settings
    engine: Engine
    brokers: tuple[str, str]
    topic: str
    seed: int
    stamp: int | None = None
    missing: int = 0
    skipped: int = 0
    optional: int = 0
    runs: int = 0
    sides: tuple[Truth, Truth] = field(init=False)
    load: Load = field(init=False)

    def __post_init__(self) -> None:
        """Create the topic on both sides."""
        for broker in self.brokers:
            with contextlib.closing(KafkaAdminClient(bootstrap_servers=broker)) as admin:
                admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])
                admin.wait_for_topics([self.topic])
        source, target = (Truth(broker, self.topic) for broker in self.brokers)
        self.sides = source, target
        self.load = Load(self.brokers[0], self.topic, self.seed, self.stamp)
        self.chance = random.Random(self.seed)  # noqa: S311
        self.store = Store(self.settings.state_directory)

    @property
    def flow(self) -> Flow:
        """The only one."""
        return self.settings.flows[0]

    def positions(self) -> dict[int, int]:
        """What the mirror has committed."""
        return Snapshots(self.settings).positions(self.flow).get(self.topic, {})

    def drained(self) -> bool:
        """Whether the mirror has committed everything."""
        self.sides[0].catch_up()
        return self.positions() == self.sides[0].ends()

    def nobody(self) -> bool:
        """Whether the mirror's group has no members."""
        with open_clients(self.settings, self.settings.clusters) as clients:
            return not clients.worker_group(self.flow).members

    def round(self, *, killed: bool) -> None:
        """Take a baseline while records flow, damage what comes after it, and check the report.

        :param killed: the mirror crashes after the baseline.
        """
        with self.load.going():
            before = self.positions()
            until(lambda: self.positions() != before)
            time.sleep(self.chance.random())  # any moment between two commits
            record_baselines(self.settings, None, full_history=False, renew=True)
            stood, to = self.skip(signal.SIGKILL if killed else signal.SIGTERM)
            self._alter(stood)
            self.engine.start()
            until(lambda: self.passed(to))
        until(self.drained)
        self.sides[1].catch_up()
        self._hold(self.run())

    def skip(self, number: signal.Signals) -> tuple[dict[int, int], dict[int, int]]:
        """End the mirror, and set it past some records of each partition that it has not copied.

        :returns: from where to where, by partition.
        """
        self.engine.end(number)
        until(self.nobody)
        stood = self._copied()
        to = {
            partition: offset + self.chance.randrange(2, 9) for partition, offset in stood.items()
        }
        until(lambda: all(end > to[partition] for partition, end in self.ends().items()))
        self.engine.move({self.topic: to})
        return stood, to

    def passed(self, at: dict[int, int]) -> bool:
        """Whether the mirror has committed more than given, by partition."""
        return all(offset > at[partition] for partition, offset in self.positions().items())

    def _copied(self) -> dict[int, int]:
        """How far each partition is on the target, committed or not."""
        for side in self.sides:
            side.catch_up()
        there = self.sides[1].values({})
        found = self.positions()
        for partition, some in self.sides[0].records.items():
            copied = [offset for offset, record in some.items() if there[record.value]]
            found[partition] = max(found.get(partition, 0), max(copied, default=-1) + 1)
        return found

    def ends(self) -> dict[int, int]:
        """Where the source ends."""
        self.sides[0].catch_up()
        return self.sides[0].ends()

    def _alter(self, stood: dict[int, int]) -> None:
        """Write one of the skipped records with another value, as if the mirror had altered it."""
        record = self.sides[0].records[0][stood[0]]
        with contextlib.closing(KafkaProducer(bootstrap_servers=self.brokers[1])) as producer:
            producer.send(
                self.topic, key=record.key, value=b"altered", partition=0,
                timestamp_ms=record.timestamp,
            ).get(30)  # fmt: skip

    def run(self) -> TopicParity:
        """Compare."""
        self.runs += 1
        request = ParityRequest(
            self.settings, Snapshots(self.settings), self.store, f"run-{self.runs:03}"
        )

        @contextlib.contextmanager
        def ours(*_: Any) -> Iterator[SparkSession]:
            yield self.spark

        result = run_parity(request, lambda _: None, ours)
        self.store.write_report(f"{request.run_id}.json", "{}")
        (found,) = result.topics
        return found

    def _hold(self, found: TopicParity) -> None:
        """Compare what was reported with what both sides hold."""
        recorded = self.store.load("baseline")[self.flow.name]["topics"][self.topic]
        start, required, ends = (
            {int(p): offset for p, offset in recorded[name].items()}
            for name in ("source", "required", "target")
        )
        whole, later = self.sides[1].values({}), self.sides[1].values(ends)
        records = [
            (partition, offset, record.value)
            for partition, some in self.sides[0].records.items()
            for offset, record in some.items()
            if offset >= start[partition]
        ]
        lost = [record for record in records if not whole[record[2]]]
        must = [record for record in lost if record[1] >= required[record[0]]]
        may = len(lost) - len(must)
        values = {value for _, _, value in records}
        reported = {name: found.counts[name] for name in CLASSES if found.counts[name]}
        expected = {
            "missing": len(must) - 1,
            "corrupt_value": 1,
            "duplicate": sum(later[value] - 1 for value in values if later[value] > 1),
        }
        where = f"seed {self.seed}, run {self.runs}: {recorded}"
        assert must, where
        assert reported == {name: n for name, n in expected.items() if n}, where
        open_ = sum(required[partition] - start[partition] for partition in required)
        assert found.skipped_records == may <= open_, where
        assert found.source_records == len(records), where
        assert found.verified_records == len(records) - len(lost), where
        assert found.status == "mismatch"
        self.missing += len(must)
        self.optional += open_
        self.skipped += may


Factory = Callable[[str, Path, int, int | None], Series]


@pytest.fixture(scope="module")
def series(
    spark: SparkSession,
    two_brokers: tuple[str, str],
    kafka3_home: Path,
    mirror_maker2: Any,
) -> Factory:
    """Make a series for an engine."""

    def make(engine: str, directory: Path, seed: int, stamp: int | None) -> Series:
        topic = f"identity-{engine}-{seed}"
        flow = Flow(name="flow", source="east", target="west", include=topic, topics=(topic,),
                    group_id=f"mirrormaker-{seed}", commit_interval_ms=1000)  # fmt: skip
        process: Engine = MirrorMaker1(kafka3_home, directory, two_brokers, flow)
        if engine == "mm2":
            flow = replace(
                flow, engine=MM2, group_id="east-mm2", commit_interval_ms=2000,
                offset_topic="mm2-offsets.east.internal", status_topic="mm2-status.east.internal",
                config_topic="mm2-configs.east.internal",
                offset_syncs_topic="mm2-offset-syncs.east.internal",
            )  # fmt: skip
            process = MirrorMaker2(mirror_maker2, two_brokers, flow)
        settings = Settings(
            clusters={
                alias: Cluster(alias, (address,))
                for alias, address in zip(("east", "west"), two_brokers, strict=True)
            },
            flows=(flow,),
            state_directory=directory,
            spark=SparkSettings(master="local[2]"),
            # A minute that stays open is judged from the first run on.
            budget=Budget(scrub_bytes=0, open_minutes=0),
        )
        return Series(spark, settings, process, two_brokers, topic, seed, stamp)

    return make


@pytest.mark.long
@pytest.mark.parametrize("engine", ["mm1", "mm2"])
def test_no_loss_after_a_baseline_stays_unreported_and_none_is_made_up(
    series: Factory, tmp_path: Path, engine: str
) -> None:
    seed = int(os.environ.get("MIRROR_BASELINES_SEED", random.randrange(2**31)))  # noqa: S311
    print(f"seed {seed}")
    mirror = series(engine, tmp_path, seed, None)
    mirror.engine.start()
    try:
        for number in range(ROUNDS):
            mirror.round(killed=number % 5 == 0)
    finally:
        mirror.load.end()
        mirror.engine.end(signal.SIGKILL)
    assert mirror.missing >= ROUNDS, "losses were there to be reported"
    print(
        f"{ROUNDS} baselines: {mirror.missing} lost, {mirror.skipped} skipped of {mirror.optional}"
    )


@pytest.mark.long
@pytest.mark.parametrize("engine", ["mm1", "mm2"])
def test_what_a_real_mirror_loses_in_a_minute_that_never_closes_is_told(
    series: Factory, tmp_path: Path, engine: str
) -> None:
    """All records have one timestamp, and never stop coming."""
    # Records of days ago would leave both sides by retention.
    stamp = int(time.time() * 1000) - 10 * MINUTE
    mirror = series(engine, tmp_path, random.randrange(2**31), stamp)  # noqa: S311
    mirror.engine.start()
    try:
        with mirror.load.going():
            until(lambda: len(mirror.positions()) == PARTITIONS)
            record_baselines(mirror.settings, None, full_history=False, renew=False)
            ends = mirror.ends()
            until(lambda: mirror.passed(ends))
            sound = mirror.run()
            assert sound.counts["missing"] == 0, sound.reason
            stood, to = mirror.skip(signal.SIGTERM)
            mirror.engine.start()
            until(lambda: mirror.passed(to))
            rows = [mirror.run() for _ in range(2)]
    finally:
        mirror.load.end()
        mirror.engine.end(signal.SIGKILL)
    lost = sum(to[partition] - stood[partition] for partition in stood)
    assert [row.counts["missing"] for row in rows] == [lost] * 2, "it stays, and is counted once"
    assert [row.status for row in rows] == ["mismatch"] * 2
    # A commit between the looks at both sides lets one of them see the minute at rest.
    assert any(row.in_flight_records and row.open_records for row in rows), "the minute is open"
