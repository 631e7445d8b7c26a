"""Clusters in memory: what the engine sees and reads of them, at any moment.

Flows keep the names of topics.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from parity_records import SCHEMA, Content, Record, assert_partitions_add_up, frame
from pyspark.sql import DataFrame, SparkSession

from mirror_report.config import Budget, Cluster, Flow, Settings
from mirror_report.config import Spark as SparkSettings
from mirror_report.kafka.leader_epochs import walked
from mirror_report.model import (
    ClusterSnapshot,
    Epochs,
    EpochsAsked,
    ParityResult,
    PartitionSnapshot,
    Place,
    Positions,
    ReportError,
    TopicSnapshot,
)
from mirror_report.parity.context import ParityRequest
from mirror_report.parity.plan import Range
from mirror_report.parity.run import run_parity
from mirror_report.parity.spark import source
from mirror_report.state.store import Store

T0 = (int(time.time()) // 3600 - 2) * 3_600_000
PARTITIONS = 2
RECORD_BYTES = 100
"""What each record takes of a log."""


@dataclass
class Log:
    """One topic: partition -> contents by offset; ``start``: first offset still there.

    :param epochs: partition -> leader epochs and where each begins; ``None``: its format keeps
        none.
    """

    ident: str
    partitions: dict[int, list[Content]] = field(
        default_factory=lambda: {p: [] for p in range(PARTITIONS)}
    )
    start: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, list[tuple[int, int]]] | None = field(default_factory=dict)
    configs: dict[str, str] = field(
        default_factory=lambda: {"retention.ms": "604800000", "retention.bytes": "-1"}
    )

    def snapshot(self, name: str) -> TopicSnapshot:
        """Make what a cluster says of it."""
        logs = {
            p: PartitionSnapshot(
                (start := self.start.get(p, 0)),
                len(some),
                len(some),
                self.led(p)[-1][0],
                bytes=RECORD_BYTES * (len(some) - start),
            )
            for p, some in self.partitions.items()
        }
        return TopicSnapshot(name, self.ident, logs, dict(self.configs), None)

    def led(self, partition: int) -> list[tuple[int, int]]:
        """Leader epochs of a partition, and where each begins."""
        return (self.epochs or {}).get(partition, [(0, 0)])

    def elect(self, partition: int, at: int | None = None) -> None:
        """Give a partition another leader, which has only what is below an offset."""
        some = self.partitions[partition]
        at = len(some) if at is None else at
        del some[at:]
        if self.epochs is not None:
            left = [led for led in self.led(partition) if led[1] < at]
            self.epochs[partition] = [*left, (self.led(partition)[-1][0] + 1, at)]

    def epoch_end(self, partition: int, epoch: int) -> tuple[int, int]:
        """Answer as a broker does where an epoch ends."""
        led = self.led(partition)
        if self.epochs is None or epoch > led[-1][0]:
            return -1, -1
        if epoch == led[-1][0]:
            return epoch, len(self.partitions[partition])
        known = [other for other, _ in led if other <= epoch]
        return max(known, default=epoch), min(start for other, start in led if other > epoch)


class World:
    """Clusters a, b (sources) and z (target), by alias; flows copy what tests tell them to."""

    def __init__(self, spark: SparkSession, state: Path, *flows: Flow) -> None:
        self.spark = spark
        self.logs: dict[str, dict[str, Log]] = {"a": {}, "b": {}, "z": {}}
        self.committed: dict[str, Positions] = {flow.name: {} for flow in flows}
        self.away: set[str] = set()
        self.reads: list[Range] = []
        self.said: list[str] = []
        self.runs = 0
        self.store = Store(state)
        self.settings = Settings(
            clusters={alias: Cluster(alias, ("nowhere:1",)) for alias in self.logs},
            flows=flows,
            state_directory=state,
            spark=SparkSettings(master="local[2]"),
            budget=Budget(scrub_bytes=0),
        )

    def log(self, alias: str, name: str) -> Log:
        """Get a topic, made on first use."""
        return self.logs[alias].setdefault(name, Log(f"{alias}-{name}-1"))

    def write(self, alias: str, name: str, partition: int, *contents: Content) -> None:
        """Append records."""
        self.log(alias, name).partitions[partition] += contents

    def copy(self, flow: Flow, name: str) -> None:
        """Mirror what is past the position, each record once, and commit."""
        known = self.committed[flow.name].setdefault(name, {})
        for partition, some in self.log(flow.source, name).partitions.items():
            target = self.log(flow.target, flow.target_topic(name))
            target.partitions.setdefault(partition, []).extend(some[known.get(partition, 0) :])
            known[partition] = len(some)

    # -- what the engine asks for -----------------------------------------------------------------

    def source(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the source."""
        return self._snapshot(flow.source)

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the target."""
        return self._snapshot(flow.target)

    def positions(self, flow: Flow) -> Positions:
        """Take the committed positions."""
        return {topic: dict(parts) for topic, parts in self.committed[flow.name].items()}

    def timed(self, flow: Flow, topics: Collection[str]) -> set[str]:
        """Tell which topics of the source hold records with timestamps."""
        return {
            name for name in topics
            if any(content[2] >= 0 for some in self.log(flow.source, name).partitions.values()
                   for content in some)
        }  # fmt: skip

    def epochs(self, alias: str, wanted: Mapping[Place, EpochsAsked]) -> dict[Place, Epochs]:
        """Tell leader epochs of some logs."""
        return walked(
            wanted,
            lambda asked: {
                place: self.log(alias, place[0]).epoch_end(place[1], epoch)
                for place, epoch in asked.items()
            },
        )

    def contents(self, alias: str, offsets: Mapping[Place, int]) -> dict[Place, str]:
        """Tell what single records hold."""
        return {
            (name, partition): repr(self.log(alias, name).partitions[partition][offset])
            for (name, partition), offset in offsets.items()
        }

    def _snapshot(self, alias: str) -> ClusterSnapshot:
        if alias in self.away:
            raise ReportError(f"{alias} does not answer")
        topics = {name: log.snapshot(name) for name, log in self.logs[alias].items()}
        return ClusterSnapshot(alias, alias, int(time.time() * 1000), topics)

    def read(
        self, session: SparkSession, ranges: Iterable[Range], connect: dict[str, str]
    ) -> DataFrame:
        """Read as Spark's Kafka source does."""
        wanted = list(ranges)
        self.reads += wanted
        alias = connect["alias"]
        records = [
            Record(
                piece.flow,
                piece.side,
                piece.partition,
                offset,
                content,
                piece.topic,
            )
            for piece in wanted
            for offset, content in enumerate(
                self.log(alias, piece.origin).partitions[piece.partition]
            )
            if piece.start <= offset < piece.end
        ]
        if not records:
            return session.createDataFrame([], SCHEMA)
        return frame(session, records)

    def run(self, flows: tuple[str, ...] | None = None, **budget: Any) -> ParityResult:
        """Make one parity run, and its report."""
        self.runs += 1
        settings = replace(self.settings, budget=replace(self.settings.budget, **budget))
        request = ParityRequest(settings, self, self.store, f"run-{self.runs:03}", flows)
        result = run_parity(request, self.said.append, self.session)
        self.store.write_report(f"{request.run_id}.json", "{}")
        assert_partitions_add_up(result.topics)
        return result

    @contextlib.contextmanager
    def session(self, *_asked: object) -> Iterator[SparkSession]:
        """Lend the session of all tests."""
        yield self.spark


@contextlib.contextmanager
def no_kafka(world: World) -> Iterator[None]:
    """Let the engine read from a world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "read", world.read)
        patch.setattr(source, "connection", lambda _spark, cluster, *_: {"alias": cluster.alias})
        yield
