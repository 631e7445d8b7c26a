"""Minutes that never close: what is lost in one is told although the flow never rests."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from parity_mirror import T0, Mirror, counts, only
from parity_records import MINUTE, Content, Record, jars_directory, placed
from parity_world import World, no_kafka
from pyspark.sql import SparkSession
from test_replay import GivenPositions

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import Positions, TopicParity
from mirror_report.parity.frames import compare, slices, totals
from mirror_report.parity.frames.sql import table
from mirror_report.parity.plan.ranges import RECORD_BYTES
from mirror_report.parity.steps import slices as steps

ROUND = 30
PARTITIONS = 2
LOOSE = Flow(name="loose", source="a", target="z", include="loose", group_id="g")
KEPT = Flow(
    name="kept",
    source="a",
    target="z",
    include="kept",
    group_id="h",
    engine=MM2,
    replication_policy="identity",
)
"""The flows of a world: the mirror of the second keeps partitions."""


# -- by hand ---------------------------------------------------------------------------------------


def test_records_that_are_counted_bit_by_bit_are_those_that_multisets_say(
    spark: SparkSession,
) -> None:
    """Whatever the order in which slices of both sides come."""
    chance = random.Random(7)  # noqa: S311
    contents = [(b"k", b"%d" % chance.randrange(12), T0 + 30 * chance.randrange(2), None)
                for _ in range(40)]  # fmt: skip
    sides: dict[str, list[Content]] = {
        "source": contents,
        "target": [content for content in contents for _ in range(chance.randrange(3))],
    }
    known = table(spark, slices.SCHEMA, [])
    counted = {"source": 0, "target": 0}
    for _ in range(4):
        before = dict(counted)
        counted = {side: chance.randint(at, len(sides[side])) for side, at in before.items()}
        new = slices.count(spark, _read(spark, sides), _bounds(before, counted))
        known = slices.add(known, new).localCheckpoint()
        (seen,) = slices.by_bucket(known).collect() or [None]
        ours, theirs = (Counter(sides[side][: counted[side]]) for side in ("source", "target"))
        lost = ours - theirs
        assert seen is not None
        assert (seen["counted"], seen["lost"]) == (counted["source"], lost.total())
        differ = (ours - theirs) + (theirs - ours)
        assert known.filter("h1 is not null").count() == len(differ), "the rest is one row"
    assert lost.total() > 0, "enough happened"
    assert slices.samples(known).count() == len(lost)


def _read(spark: SparkSession, sides: dict[str, list[Content]]) -> Any:
    records = [
        Record("loose", side, 0, offset, content)
        for side, contents in sides.items()
        for offset, content in enumerate(contents)
    ]
    return compare.with_lanes(placed(spark, records), [])


def _bounds(before: dict[str, int], counted: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "flow": "loose", "topic": "t", "lane": -1, "bucket": T0 - T0 % MINUTE, "side": side,
            "origin": "t", "partition": 0, "start": before[side], "end": counted[side],
        }
        for side in counted
    ]  # fmt: skip


def test_no_more_open_buckets_are_followed_than_fit_and_those_that_were_go_on(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they grow in turn; what is left out is counted."""
    monkeypatch.setattr(totals, "MOST_OPEN", 3)
    monkeypatch.setattr(totals, "MOST_OPEN_OF_LANE", 1)

    def followed(below: dict[int, int], before: list[Any]) -> list[Any]:
        rows = [
            {**bucket, "below": below[bucket["bucket"]], "due": False, "equal": False}
            for bucket in _buckets(below)
        ]
        closed = {**_buckets([99])[0], "below": 5, "due": True, "equal": True}
        schema = f"{compare.BUCKET_SCHEMA}, below bigint, due boolean, equal boolean"
        judged = table(spark, schema, [*rows, closed])
        return totals.still_open(judged, compare.some_buckets(spark, before)).collect()

    first = followed({1: 0, 2: 10, 3: 20, 4: 30, 5: 40, 6: 50}, [])
    assert sorted(row["bucket"] for row in first) == [2, 3, 4]
    assert {(row["n_open"], row["n_below"]) for row in first} == {(6, 150)}
    again = followed({1: 5, 2: 1, 3: 20, 4: 30, 5: 99, 6: 99}, [row.asDict() for row in first])
    assert sorted(row["bucket"] for row in again) == [2, 3, 4]
    waiting = followed({1: 0, 2: 0, 3: 0}, [])
    assert len(waiting) == 1, "of those without records below the position: one of each lane"


def _buckets(buckets: Iterable[int]) -> list[dict[str, Any]]:
    return [{"flow": "f", "topic": "t", "lane": -1, "bucket": bucket} for bucket in buckets]


# -- in a world ------------------------------------------------------------------------------------


class Restless(World):
    """Topics of records with few times, whose source never rests; what happens is chosen."""

    def __init__(self, spark: SparkSession, state: Path, seed: int) -> None:
        super().__init__(spark, state, LOOSE, KEPT)
        self.chance = random.Random(seed)  # noqa: S311
        self.copied: dict[tuple[str, int], int] = {}
        self.numbers = 0
        self.mended = 0

    def live(self, flow: Flow, *, rest: bool) -> None:
        """Copy and commit; lose, repeat, start again and write more meanwhile."""
        name = flow.name
        if self.chance.random() < 0.5:
            for partition, content in list(self.missing(flow))[:1]:
                self.write("z", name, partition, content)
                self.mended += 1
        self._produce(name)
        for partition in self.log("a", name).partitions:
            if self.chance.random() < 0.2:  # it is killed, and goes on where it has committed
                self.copied[name, partition] = self._committed(flow, partition)
            self._copy(name, partition, everything=rest)
            self.committed[name].setdefault(name, {})[partition] = self.copied[name, partition]
        if not rest:
            self._produce(name)
            for partition in self.log("a", name).partitions:
                self._copy(name, partition, everything=False)

    def _committed(self, flow: Flow, partition: int) -> int:
        return self.committed[flow.name].get(flow.name, {}).get(partition, 0)

    def _produce(self, name: str) -> None:
        for partition in self.log("a", name).partitions:
            for _ in range(self.chance.randint(3, 12)):
                self.numbers += 1
                content = (b"k", b"%d" % self.numbers, T0 + MINUTE * self.chance.choice((0, 0, 1)))
                self.write("a", name, partition, (*content, None))

    def _copy(self, name: str, partition: int, *, everything: bool) -> None:
        records = self.log("a", name).partitions[partition]
        begin = self.copied.get((name, partition), 0)
        end = len(records) if everything else self.chance.randint(begin, len(records))
        for content in records[begin:end]:
            fate = self.chance.random()
            times = 0 if fate < 0.1 else 2 if fate > 0.95 else 1
            self.write("z", name, partition, *[content] * times)
        self.copied[name, partition] = end

    def missing(self, flow: Flow) -> Counter[tuple[int, Content]]:
        """Records below the committed position that are not on the target, by where they belong."""
        sides: list[Counter[tuple[int, Content]]] = []
        for alias in ("a", "z"):
            logs = self.log(alias, flow.name).partitions
            ends = {p: self._committed(flow, p) if alias == "a" else None for p in logs}
            sides.append(
                Counter(
                    (0 if flow is LOOSE else partition, content)
                    for partition, some in logs.items()
                    for content in some[: ends[partition]]
                )
            )
        return sides[0] - sides[1]


@pytest.mark.parametrize("runs", [6, pytest.param(40, marks=pytest.mark.long)])
def test_losses_of_a_flow_that_never_rests_are_counted_exactly_in_each_run(
    spark: SparkSession, tmp_path: Path, runs: int
) -> None:
    """Duplicates, restarts and what is under way are none; what is copied at last is mended."""
    seed = int(os.environ.get("MIRROR_REPLAY_SEED") or time.time_ns() % 2**32)
    print(f"MIRROR_REPLAY_SEED={seed}")
    world = Restless(spark, tmp_path, seed)
    enough: Counter[str] = Counter()
    with no_kafka(world):
        for number in range(runs):
            for flow in (LOOSE, KEPT):
                world.live(flow, rest=number % 3 == 2)
            result = world.run(open_minutes=0)
            found = {topic.topic: topic for topic in result.topics}
            for flow in (LOOSE, KEPT):
                topic, lost = found[flow.name], world.missing(flow).total()
                assert topic.counts["missing"] == lost, (number, flow.name)
                enough[f"{flow.name}, {'open' if topic.in_flight_records else 'closed'}"] += lost
    assert len(enough) == 4, enough
    assert all(enough.values()), enough
    assert world.mended, "enough happened"


@pytest.mark.long
def test_what_is_too_much_for_one_run_is_told_by_the_next_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is told of half of it; what is not judged lowers the coverage until then."""
    monkeypatch.setattr(steps, "CHUNK_BYTES", 20 * RECORD_BYTES)
    world = Restless(spark, tmp_path, 7)
    with no_kafka(world):
        for partition in range(PARTITIONS):
            stamped: list[Content] = [(b"k", b"%d" % i, T0, None) for i in range(60)]
            world.write("a", "loose", partition, *stamped)
            world.write("z", "loose", partition, *stamped[:50], *stamped[55:])
            world.committed["loose"].setdefault("loose", {})[partition] = 60
            # The minute stays open.
            world.write("a", "loose", partition, (b"k", b"next", T0, None))
        world.run(open_minutes=60)
        told = []
        for _ in range(3):
            (topic,) = (t for t in world.run(open_minutes=0, max_records=100).topics
                        if t.topic == "loose")  # fmt: skip
            told.append((topic.open_unjudged, topic.counts["missing"]))
    # At first nothing is told, though a part of the source is counted: 230 offsets take 3 runs.
    assert told == [(120, 0), (120, 0), (0, 10)]


# -- on real brokers -------------------------------------------------------------------------------


class Stamped(Mirror):
    """A mirror whose records carry one time, and whose source is never at rest.

    :param loose: whether it chooses partitions of its own, as MirrorMaker 1 does.
    """

    def __init__(
        self, spark: SparkSession, brokers: tuple[str, str], state: Path, *, loose: bool
    ) -> None:
        super().__init__(spark, brokers, state)
        self.loose = loose
        if not loose:
            flow = replace(self.settings.flows[0], engine=MM2, replication_policy="identity")
            self.settings = replace(self.settings, flows=(flow,))
        self.stamped = self.topic("stamped", PARTITIONS)
        self.numbers = 0
        self.copied = dict.fromkeys(range(PARTITIONS), 0)
        self.committed: dict[str, Positions] = {"flow": {}}

    def fill(self, count: int = ROUND) -> None:
        """Produce records with equal times."""
        for _ in range(count):
            self.numbers += 1
            self.producers[0].send(
                self.stamped, key=b"%d" % (self.numbers % 3), value=b"%d" % self.numbers,
                partition=self.numbers % PARTITIONS, timestamp_ms=T0,
            )  # fmt: skip
        self.producers[0].flush()

    def go_on(self, *, lose: int = 0, repeat: int = 0) -> list[Any]:
        """Copy and commit what is there; then more comes, of which a little is copied.

        :returns: what was lost.
        """
        lost = self._copy(None, lose, repeat)
        self.committed["flow"][self.stamped] = dict(self.copied)
        self.fill()
        self._copy(3, 0, 0)
        return lost

    def mend(self, lost: list[Any]) -> None:
        """Copy what was lost after all."""
        for record in lost:
            self._write_to(record)
        self.producers[1].flush()

    def _copy(self, limit: int | None, lose: int, repeat: int) -> list[Any]:
        waiting = [
            record
            for record in self.read(0, self.stamped)
            if record.offset >= self.copied[record.partition]
        ][:limit]
        for record in (*waiting[lose:], *waiting[lose : lose + repeat]):
            self._write_to(record)
        self.producers[1].flush()
        for record in waiting:
            self.copied[record.partition] = record.offset + 1
        return waiting[:lose]

    def _write_to(self, record: Any) -> None:
        partition = int(record.value) % 7 % PARTITIONS if self.loose else record.partition
        self.producers[1].send(
            self.stamped, key=record.key, value=record.value, partition=partition,
            headers=list(record.headers), timestamp_ms=record.timestamp,
        )  # fmt: skip

    def compare(self) -> TopicParity:
        """Make a run."""
        return only(self.run(GivenPositions(self.settings, self.committed), open_minutes=0))

    @property
    def below(self) -> int:
        """How many records lie below the committed position."""
        return sum(self.committed["flow"][self.stamped].values())


@pytest.fixture(params=["MirrorMaker 1", "MirrorMaker 2"])
def stamped(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    two_brokers: tuple[str, str],
    tmp_path: Path,
) -> Iterator[Stamped]:
    created = Stamped(spark, two_brokers, tmp_path, loose=request.param == "MirrorMaker 1")
    yield created
    created.close()


@pytest.mark.long
@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
def test_what_is_lost_in_a_minute_that_never_closes_is_told_within_a_few_runs(
    stamped: Stamped,
) -> None:
    stamped.fill()
    stamped.go_on()
    stamped.go_on(repeat=4)
    assert counts(stamped.compare()) == {}, "a repetition or what is under way is no loss"
    lost = stamped.go_on(lose=10)
    told = [counts(stamped.compare())]
    stamped.go_on()
    told.append(counts(found := stamped.compare()))
    assert told == [{"missing": 10}] * 2, "it stays, and is counted once"
    assert found.verified_records == stamped.below - 10
    assert found.in_flight_records == stamped.numbers - stamped.below
    assert (found.open_records, found.coverage) == (stamped.below, 1 - 10 / stamped.below)
    assert len(found.samples["missing"]) == 10
    stamped.mend(lost)
    found = stamped.compare()
    assert (found.status, counts(found)) == ("in_flight", {})
    assert found.verified_records == stamped.below
    assert "below the committed position" in found.reason
