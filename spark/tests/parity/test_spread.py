"""Topics with too many minutes: they are compared by hours, and nothing else changes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from parity_records import MINUTE, Record, frame
from parity_world import T0, World, no_kafka
from pyspark.sql import SparkSession
from test_retention import EAST, HOUR, counts, fill

from mirror_report.model import TopicParity
from mirror_report.parity.frames import align, digest, hours
from mirror_report.parity.plan import spread
from mirror_report.parity.state import Manifest, SideState, Widths, changes

DAY = 24 * HOUR
MOST = 100
MOST_HOURS = 300
MOST_ROWS = 2000
# The start of a day that is past.
BEGIN = T0 - T0 % DAY - DAY


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "MOST_BUCKETS", MOST)
    monkeypatch.setattr(spread, "MOST_HOURS", MOST_HOURS)
    monkeypatch.setattr(spread, "MOST_ROWS", MOST_ROWS)


def scatter(
    world: World, topic: str, count: int, *, begin: int = BEGIN, each: int = MINUTE
) -> None:
    """Write records, each in a minute of its own."""
    world.write(
        "a", topic, 0, *((b"%d" % n, b"value", begin + n * each, None) for n in range(count))
    )


def of(world: World, topic: str) -> str | None:
    """How a topic with too many buckets is compared."""
    how: str | None = world.store.load("parity")["spread"].get("east", {}).get(topic)
    return how


# -- by hand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normal", "is_by_hour", "buckets", "hours", "rows", "expected"),
    [
        (MINUTE, False, MOST, 2, MOST_ROWS, None),
        (MINUTE, False, MOST, 2, MOST_ROWS + 1, "hours"),
        (MINUTE, False, MOST + 1, 2, 0, "hours"),
        (MINUTE, False, MOST_HOURS, MOST_HOURS, 0, "hours"),
        (MINUTE, False, MOST_HOURS + 1, MOST_HOURS + 1, 0, "none"),
        (MINUTE, True, MOST_HOURS, MOST_HOURS, MOST_ROWS + 1, None),
        (MINUTE, True, MOST_HOURS + 1, MOST_HOURS + 1, 0, "none"),
        (2 * HOUR, False, MOST_HOURS, MOST_HOURS, MOST_ROWS + 1, None),
        (2 * HOUR, False, MOST_HOURS + 1, MOST_HOURS + 1, 0, "none"),
    ],
)
def test_what_has_too_many_minutes_is_compared_by_hours_and_what_has_too_many_hours_is_not(
    normal: int, is_by_hour: bool, buckets: int, hours: int, rows: int, expected: str | None
) -> None:
    topic = ("east", "e1")
    known = Widths(normal, [topic] if is_by_hour else [])
    assert spread.how(known, topic, buckets, hours, rows) == expected


def test_rows_get_the_buckets_that_their_records_get(spark: SparkSession) -> None:
    """Also where an hour holds no whole number of buckets."""
    normal = 7 * MINUTE
    times = (-1, 0, 5 * HOUR + 3, *(T0 + n * MINUTE for n in range(200)))
    records = frame(
        spark,
        [
            Record(flow, "source", 0, offset, (b"k", b"%d" % at, at, None), topic)
            for flow in ("east", "west")
            for topic in ("e1", "e2")
            for offset, at in enumerate(times)
        ],
    )
    topics = [("east", "e1"), ("east", "e2")]
    minutes = digest.digest(align.place(records, Widths(normal)))
    expected = digest.digest(align.place(records, Widths(normal, topics)))
    assert sorted(hours.digests(minutes, topics).collect()) == sorted(expected.collect())
    of_west = {row["bucket"] % normal for row in expected.filter("flow = 'west'").collect()}
    assert of_west == {0}, "only what is named"


def test_what_is_known_of_a_topic_is_forgotten_with_it_and_its_flow_alone(tmp_path: Path) -> None:
    topics = {("east", "e1"): "hours", ("east", "e2"): "none", ("west", "w1"): "hours"}
    known = changes.compare_by_hours(Manifest(MINUTE), topics, "d", "r")
    known = Manifest.load(known.dump(), MINUTE, tmp_path)
    assert known.bucket_widths == Widths(MINUTE, [("east", "e1"), ("west", "w1")])
    known = replace(known, sides={("east", "source", "e2"): SideState(None, {}, {})})
    ((left_out, why),) = spread.not_compared(known, [EAST]).items()
    assert left_out == ("east", "e2")
    assert why.endswith("mirror-report baseline --flow east --topic e2 --renew")
    assert changes.forget_numbers(known, "east", "e1").spread == known.spread
    without = changes.forget_topic(known, "east", "e1", ["e1"])
    assert without.spread == {"east": {"e2": "none"}, "west": {"w1": "hours"}}
    assert changes.forget_flow(known, "east").spread == {"west": {"w1": "hours"}}
    older = {name: value for name, value in known.dump().items() if name != "spread"}
    assert Manifest.load(older, MINUTE, tmp_path).spread == {}


# -- in a world ------------------------------------------------------------------------------------


def test_a_topic_of_too_many_minutes_is_compared_by_hours(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, EAST)
    scatter(world, "e1", 2 * MOST)
    world.copy(EAST, "e1")
    fill(world, EAST, "e2", 2 * MOST)

    def run() -> tuple[TopicParity, TopicParity]:
        wide, fine = world.run().topics
        why = "its records lie in too many minutes, so it is compared by hours"
        assert wide.reason == why
        assert (fine.reason, of(world, "e2")) == ("", None), "others stay as they were"
        return wide, fine

    with no_kafka(world):
        wide, fine = run()
        assert (wide.status, wide.verified_records) == ("verified", 2 * MOST)
        assert (wide.buckets["verified"], of(world, "e1")) == (4, "hours")
        assert wide.verified_through_ms == BEGIN + (2 * MOST - 1) * MINUTE, "its newest record"
        assert (fine.status, fine.buckets["verified"]) == ("verified", 2 * MOST // 60 + 1)
        scatter(world, "e1", 4, begin=BEGIN + HOUR)
        world.copy(EAST, "e1")
        target = world.log("z", "e1").partitions[0]
        del target[-4]
        key, value, at, headers = target[-1]
        target[-1] = (key, value, at + MINUTE, headers)
        target.append((b"foreign", b"value", BEGIN + 1, None))
        key, _, at, headers = world.log("a", "e2").partitions[0][-1]
        world.write("a", "e2", 0, (key, b"more", at, headers))
        world.copy(EAST, "e2")
        wide, fine = run()
        assert counts(wide) == {"missing": 1, "altered_timestamp": 1, "extra": 1}
        assert (fine.status, fine.verified_records) == ("verified", 2 * MOST + 1)


def test_minutes_that_wait_for_a_stopped_mirror_are_put_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, EAST)
    scatter(world, "e1", 10)
    world.copy(EAST, "e1")
    with no_kafka(world):
        world.run()
        seen = []
        for number in range(1, 5):
            # Each time an hour's every other minute, at last hours that are far apart as well.
            scatter(world, "e1", 30, begin=BEGIN + number * HOUR, each=2 * MINUTE)
            if number == 4:
                scatter(world, "e1", MOST, begin=BEGIN - 40 * DAY, each=9 * HOUR)
            (found,) = world.run().topics
            assert counts(found) == {}
            seen.append((of(world, "e1"), found.verified_records, found.in_flight_records))
        assert seen == [(None, 10, 30), (None, 10, 60), (None, 10, 90), ("hours", 10, 120 + MOST)]
        assert found.breach_seconds is not None
        oldest = (time.time() * 1000 - (BEGIN - 40 * DAY)) / 1000
        assert found.breach_seconds == pytest.approx(7 * DAY / 1000 - oldest, abs=60)
        world.copy(EAST, "e1")
        lost = world.log("z", "e1").partitions[0].pop()
        (found,) = world.run().topics
        assert (found.verified_records, counts(found)) == (129 + MOST, {"missing": 1})
        world.log("z", "e1").partitions[0].append(lost)
        (found,) = world.run().topics
    assert (found.status, found.verified_records, counts(found)) == ("verified", 130 + MOST, {})


def test_what_was_known_and_what_expired_before_makes_no_difference(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing is read again to put minutes together."""
    world = World(spark, tmp_path, EAST)
    for topic in ("e1", "e2", "e3"):
        world.log("z", topic).configs["retention.ms"] = str(HOUR)
        scatter(world, topic, 90)
        world.copy(EAST, topic)
    # Lost by the mirror: what stays on the source, and what it removes later on.
    del world.log("z", "e1").partitions[0][80]
    del world.log("z", "e2").partitions[0][20]
    with no_kafka(world):
        first, second, third = world.run().topics
        assert counts(first) == counts(second) == {"missing": 1}
        assert counts(third) == {}
        for topic in ("e1", "e2", "e3"):
            world.log("a", topic).start = {0: 50}
            scatter(world, topic, 30, begin=BEGIN + 90 * MINUTE)
            # The newest of its day keeps nothing of that day on the target.
            world.write("a", topic, 0, (b"now", b"value", int(time.time() * 1000), None))
            world.copy(EAST, topic)
        world.log("z", "e3").start = {0: 70}
        first, second, third = world.run().topics
        assert {of(world, topic) for topic in ("e1", "e2", "e3")} == {"hours"}
        assert counts(first) == counts(second) == {"missing": 1}
        assert first.verified_records == second.verified_records == 120
        assert (third.status, counts(third), third.expired_records) == ("verified", {}, 70)
        # Whatever grows is classified again: what the source has removed stays as it was known.
        for topic in ("e1", "e2", "e3"):
            scatter(world, topic, 1, begin=BEGIN + 1)
            world.copy(EAST, topic)
        result = world.run()
        first, second, third = result.topics
        assert counts(first) == counts(second) == {"missing": 1}
        assert (third.status, counts(third)) == ("verified", {})
        again = world.run()
    assert [counts(found) for found in again.topics] == [counts(found) for found in result.topics]
    assert not [
        found for run in (result, again) for found in run.findings if "said once" in found.message
    ]


def test_a_topic_of_too_many_hours_is_not_compared_and_its_known_loss_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, EAST)
    for topic in ("e1", "e2"):
        scatter(world, topic, 10)
        world.copy(EAST, topic)
        del world.log("z", topic).partitions[0][5]
    with no_kafka(world):
        assert [counts(found) for found in world.run().topics] == [{"missing": 1}] * 2
        scatter(world, "e1", MOST_HOURS + 1, begin=BEGIN - 400 * DAY, each=HOUR)
        for _ in range(2):
            result = world.run()
            first, second = result.topics
            assert (first.status, counts(second)) == ("unknown", {"missing": 1})
            assert f"its records lie in more than {MOST_HOURS} hours" in first.reason
            (lost,) = [one for one in result.findings if (one.topic, one.kind) == ("e1", "missing")]
            assert (lost.severity, lost.count) == ("critical", 1)
            names = world.store.load("parity")["digests"]
            paths = [str(world.store.parity_directory / name) for name in names]
            assert spark.read.parquet(*paths).filter("topic = 'e1'").isEmpty(), "it costs nothing"
            scatter(world, "e1", 1, begin=BEGIN + HOUR)
