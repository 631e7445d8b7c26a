"""What the engine goes on watching after it verified it, and what it leaves for later."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from parity_world import T0, World, no_kafka
from pyspark.sql import SparkSession

from mirror_report.config import Flow
from mirror_report.engines import MM1, MM2
from mirror_report.model import Finding, ParityResult, TopicParity
from mirror_report.parity.results import retention
from mirror_report.parity.state import Gone
from mirror_report.parity.steps import seal

EAST = Flow(name="east", source="a", target="z", include="e.*|shared", group_id="g", engine=MM2)
WEST = Flow(name="west", source="b", target="z", include="w.*|shared", group_id="g")
HOUR = 3_600_000
NOW = int(time.time() * 1000)


def fill(world: World, flow: Flow, name: str, count: int, *, begin: int = T0) -> None:
    """Write records a second apart and mirror them."""
    known = len(world.log(flow.source, name).partitions[0])
    for i in range(known, known + count):
        content = (b"%s-%d" % (flow.name.encode(), i), b"value", begin + i * 1000, None)
        world.write(flow.source, name, 0, content)
    world.copy(flow, name)


def scrubbed_before(world: World, ago_ms: int) -> None:
    """Let the last reading again be so long ago."""
    manifest = world.store.load("parity")
    world.store.commit("parity", {**manifest, "scrubbed_at_ms": NOW - ago_ms})


def counts(topic: TopicParity) -> dict[str, int]:
    return {name: count for name, count in topic.counts.items() if count}


class Scenario:
    """One topic per question; runs by what happened right before each."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.results: dict[str, ParityResult] = {}
        fill(world, EAST, "early", 120)
        fill(world, EAST, "aged", 120)
        fill(world, EAST, "raised", 120)
        for name in ("sized", "spared", "tiered"):
            fill(world, EAST, name, 120)
        for number in range(8):
            at = T0 + number % 2 * HOUR + number
            world.write("a", "mixed", 0, (b"%d" % number, b"value", at, None))
        world.copy(EAST, "mixed")
        fill(world, EAST, "etched", 60)
        fill(world, EAST, "ebbing", 60)
        fill(world, EAST, "leaving", 60)
        fill(world, WEST, "wide", 60)
        for flow in (EAST, WEST):
            fill(world, flow, "shared", 60)
        for name, size in (("sized", 1000), ("spared", 10**9), ("tiered", 10**9)):
            world.log("z", name).configs["retention.bytes"] = str(size)
        world.log("z", "tiered").configs["remote.storage.enable"] = "true"
        world.log("z", "raised").configs["retention.ms"] = str(HOUR)
        world.log("z", "aged").configs["retention.ms"] = str(HOUR)
        self.run("verified")
        # Records are at least an hour old: what goes now had to go only where an hour is kept.
        for name in ("early", "aged", "raised", "sized", "spared", "tiered"):
            world.log("z", name).start = {0: 75}
        world.log("z", "mixed").start = {0: 5}
        world.log("z", "raised").configs["retention.ms"] = "604800000"
        del world.logs["a"]["ebbing"]
        # The mirror passes over ten records.
        fill(world, EAST, "leaving", 10)
        del world.log("z", "leaving").partitions[0][-10:]
        target = world.log("z", "etched").partitions[0]
        key, _, at, headers = target[10]
        target[10] = (key, b"rot", at, headers)
        self.run("gone", scrub_bytes=10**6)
        del world.logs["a"]["leaving"]
        scrubbed_before(world, 25 * HOUR)
        self.run("scrubbed", scrub_bytes=10**6)
        world.away.add("b")
        fill(world, EAST, "shared", 5)
        self.run("half away")
        world.away.clear()
        self.run("only east", flows=("east",))
        self.run("both")
        fill(world, EAST, "early", 30)
        world.write("a", "early", 0, (b"behind", b"value", T0, None))
        world.write("a", "early", 0, (b"behind", b"value", T0, None))
        self.run("braked", max_lag_records=1)
        world.copy(EAST, "early")
        self.run("released", max_lag_records=1)
        world.store.commit("baseline", {"east": {"accepted": {"leaving": NOW + 100 * HOUR}}})
        self.run("accepted")
        world.store.commit("baseline", {})

    def run(self, name: str, **given: Any) -> None:
        """Compare, and keep what was said."""
        self.results[name] = self.world.run(**given)

    def of(self, run: str, topic: str, flow: str | None = None) -> TopicParity:
        """What a run says of a topic."""
        (found,) = [
            row for row in self.results[run].topics
            if row.topic == topic and flow in (None, row.flow)
        ]  # fmt: skip
        return found

    def findings(self, run: str, topic: str) -> list[Finding]:
        """What a run has to say against a topic."""
        return [finding for finding in self.results[run].findings if finding.topic == topic]


@pytest.fixture(scope="module")
def scenario(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    east = replace(
        EAST, include="early|aged|raised|sized|spared|tiered|mixed|etched|ebbing|leaving|shared"
    )
    world = World(spark, tmp_path_factory.mktemp("scenario"), east, WEST)
    with no_kafka(world):
        yield Scenario(world)


def test_all_is_well_at_first(scenario: Scenario) -> None:
    result = scenario.results["verified"]
    assert {topic.status for topic in result.topics} == {"verified"}
    assert result.findings == []
    assert {topic.coverage for topic in result.topics} == {1.0}
    assert {topic.breach_seconds for topic in result.topics} == {None}, "nothing waits"


def test_records_that_leave_the_target_too_early_are_reported_until_they_would_have_expired(
    scenario: Scenario,
) -> None:
    for run in ("gone", "scrubbed", "both"):
        found = scenario.of(run, "early")
        assert (found.status, counts(found)) == ("mismatch", {"deleted_early": 75})
        assert found.partitions == {"deleted_early": {"0": 75}}
        findings = scenario.findings(run, "early")
        assert [(finding.kind, finding.severity, finding.count) for finding in findings] == [
            ("deleted_early", "critical", 75)
        ]
    lasting = [Gone("f", "t", 0, 5, 7, None), Gone("f", "t", 1, 0, 3, NOW + 1000)]
    assert retention.gone(lasting, NOW) == ({0: 7, 1: 3}, {0: 5})
    assert retention.gone(lasting, NOW + 2000) == ({0: 7}, {0: 5, 1: 3})


def test_records_that_the_size_of_the_log_cannot_have_removed_left_early(
    scenario: Scenario,
) -> None:
    for run in ("gone", "both"):
        assert counts(scenario.of(run, "spared")) == {"deleted_early": 75}


def test_records_of_which_nobody_can_say_whether_they_had_to_leave_are_said_to_be(
    scenario: Scenario,
) -> None:
    for run in ("gone", "both"):
        assert counts(scenario.of(run, "tiered")) == {}
        assert scenario.of(run, "tiered").expired_records == 0
        (found,) = scenario.findings(run, "tiered")
        assert (found.kind, found.severity, found.count) == ("unverifiable", "warning", 75)


def test_records_of_several_minutes_side_by_side_leave_once(scenario: Scenario) -> None:
    for run in ("gone", "both"):
        assert counts(scenario.of(run, "mixed")) == {"deleted_early": 5}


@pytest.mark.parametrize("topic", ["aged", "raised", "sized"])
def test_records_that_had_to_leave_are_counted_and_no_finding(
    scenario: Scenario, topic: str
) -> None:
    found = scenario.of("both", topic)
    assert (found.status, counts(found), found.expired_records) == ("verified", {}, 75)
    assert scenario.findings("gone", topic) == []


def test_what_was_verified_is_read_again_and_a_difference_is_classified(scenario: Scenario) -> None:
    found = [scenario.of(run, "etched") for run in ("gone", "scrubbed")]
    assert counts(found[-1]) == {"corrupt_value": 1}
    assert found[-1].verified_records == 59
    (sample, _) = found[-1].samples["corrupt_value"]
    assert sample.offset == 10
    assert counts(scenario.of("both", "etched")) == {"corrupt_value": 1}, "and stays so"


def test_a_topic_that_leaves_the_source_is_reported_once(scenario: Scenario) -> None:
    assert [finding.kind for finding in scenario.findings("gone", "ebbing")] == ["skipped"]
    assert scenario.findings("scrubbed", "ebbing") == []
    assert not [topic for topic in scenario.results["gone"].topics if topic.topic == "ebbing"]


def test_a_known_loss_stays_when_its_topic_leaves_the_source_until_it_is_accepted(
    scenario: Scenario,
) -> None:
    assert counts(scenario.of("gone", "leaving")) == {"missing": 10}
    for run in ("scrubbed", "half away", "both", "braked", "released"):
        found = [one for one in scenario.findings(run, "leaving") if one.kind != "skipped"]
        assert [(one.kind, one.severity, one.count) for one in found] == [
            ("missing", "critical", 10)
        ], run
        assert "leaving is no longer on the source" in found[0].message
        assert found[0].action.endswith("baseline --flow east --topic leaving --renew")
    assert scenario.findings("accepted", "leaving") == []


def test_a_topic_of_two_flows_is_judged_once_by_all_that_feeds_it(scenario: Scenario) -> None:
    found = scenario.of("verified", "shared")
    assert (found.flow, found.status, counts(found)) == ("west", "verified", {})
    assert found.source_records == found.target_records == found.verified_records == 120
    for run in ("half away", "only east"):
        found = scenario.of(run, "shared")
        assert (found.flow, found.status) == ("east", "unknown")
        assert "flow west feeds it too" in found.reason
    assert scenario.of("half away", "early").flow == "east", "and the others are judged"
    found = scenario.of("both", "shared")
    assert (found.flow, found.status, found.verified_records) == ("west", "verified", 125)
    assert counts(found) == {}


def test_content_is_left_alone_while_the_mirror_is_far_behind(scenario: Scenario) -> None:
    result = scenario.results["braked"]
    findings = [finding for finding in result.findings if finding.kind == "backlog"]
    assert [(finding.flow, finding.count) for finding in findings] == [("east", 2)]
    assert "--max-lag" in findings[0].action
    assert result.spark_started is False
    assert result.backlog_records == 62, "of both sides"
    found = scenario.of("braked", "early")
    assert found.source_records == 120
    assert (found.due_records, found.coverage) == (150, 120 / 150), "never compared, and due"
    found = scenario.of("released", "early")
    assert (found.source_records, found.verified_records) == (152, 152)


def test_time_is_left_until_retention_takes_what_waits(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, EAST)
    fill(world, EAST, "e1", 10)
    world.write("a", "e1", 0, (b"k", b"v", T0 + HOUR, None))
    world.log("a", "e1").configs["retention.ms"] = str(10 * HOUR)
    with no_kafka(world):
        (found,) = world.run().topics
    assert found.in_flight_records == 1
    assert found.breach_seconds is not None
    left = (T0 + HOUR + 10 * HOUR) / 1000 - time.time()
    assert abs(found.breach_seconds - left) < 60


def test_closed_hours_are_sealed_and_nothing_is_forgotten_that_decides(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "MAX_DIRECTORIES", 1)
    long_ago = T0 - 72 * HOUR
    world = World(spark, tmp_path, EAST)
    with no_kafka(world):
        for number in range(2):
            fill(world, EAST, "e1", 90, begin=long_ago + number * HOUR)
            (found,) = world.run().topics
            assert (found.status, found.verified_records) == ("verified", 90 * (number + 1))
        manifest = world.store.load("parity")
        assert manifest["totals"]["east"]["e1"]["verified_records"] > 0
        assert len(manifest["digests"]) == 1
        # A straggler of a sealed minute is judged by itself, and its loss is found.
        world.write("a", "e1", 0, (b"late", b"value", long_ago + 1000, None))
        world.committed["east"]["e1"][0] += 1
        (found,) = world.run().topics
        assert (counts(found), found.source_records) == ({"missing": 1}, 181)
        # Another topic on the target: all has to be compared again.
        world.log("z", "e1").ident = "another"
        world.log("z", "e1").partitions = {0: [], 1: []}
        (found,) = world.run().topics
    assert (counts(found), found.source_records) == ({"missing": 181}, 181)
    assert not world.store.load("parity")["totals"]["east"], "what was sealed no longer counts"


def test_minutes_beyond_those_of_the_newest_hours_are_compared_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A producer chooses the times of its records, and so how many minutes there are."""
    hours, each = 10 * seal.NEWEST_HOURS, 10
    world = World(spark, tmp_path, EAST)
    times = [T0 + number * HOUR // each for number in range(hours * each)]
    for topic in ("e1", "e2"):
        world.write("a", topic, 0, *((b"k", b"%d" % at, at, None) for at in times))
        world.copy(EAST, topic)
    with no_kafka(world):
        assert [found.verified_records for found in world.run().topics] == [len(times)] * 2
        manifest = world.store.load("parity")
        names = [str(world.store.parity_directory / name) for name in manifest["digests"]]
        kept = spark.read.parquet(*names).groupBy("topic").count().collect()
        most = 2 * each * seal.NEWEST_HOURS
        assert {row["topic"]: row["count"] for row in kept} == {"e1": most, "e2": most}
        # Nothing is forgotten: what comes with the times of closed hours is judged by itself.
        for topic in ("e1", "e2"):
            world.write(
                "a", topic, 0, (b"k", b"late", T0 + 1, None), (b"k", b"new", times[-1], None)
            )
            world.copy(EAST, topic)
        del world.log("z", "e2").partitions[0][-2]
        world.write("z", "e1", 0, (b"k", b"%d" % T0, T0, None))
        first, second = world.run().topics
    assert (first.verified_records, counts(first)) == (len(times) + 2, {"extra": 1})
    assert (second.verified_records, counts(second)) == (len(times) + 1, {"missing": 1})


def test_fewer_hours_of_a_topic_with_many_digests_are_left_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours, each, partitions, left = 12, 10, 2, 4
    monkeypatch.setattr(seal, "MANY_MINUTES", 0)
    monkeypatch.setattr(seal, "NEWEST_ROWS", 2 * each * partitions * left)
    world = World(spark, tmp_path, EAST)
    times = [T0 + number * HOUR // each for number in range(hours * each)]
    for partition in range(partitions):
        world.write("a", "e1", partition, *((b"k", b"%d" % at, at, None) for at in times))
    world.copy(EAST, "e1")
    with no_kafka(world):
        (found,) = world.run().topics
        manifest = world.store.load("parity")
    assert found.verified_records == partitions * len(times)
    names = [str(world.store.parity_directory / name) for name in manifest["digests"]]
    assert spark.read.parquet(*names).count() == seal.NEWEST_ROWS


def test_first_records_without_timestamps_do_not_decide_for_those_that_follow(
    spark: SparkSession, tmp_path: Path
) -> None:
    plain = replace(EAST, engine=MM1)
    world = World(spark, tmp_path, plain)
    world.write("a", "e1", 0, (b"k", b"untimed", -1, None))
    world.copy(plain, "e1")
    with no_kafka(world):
        world.run()
        assert world.run().topics[0].strategy == "none", "all that is known has no timestamp"
        fill(world, plain, "e1", 10)
        (found,) = world.run().topics
    assert (found.strategy, found.verified_records, found.source_records) == ("timestamp", 11, 11)


@pytest.mark.long
def test_nothing_new_for_a_day_is_read_again_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, EAST)
    fill(world, EAST, "e1", 10)
    with no_kafka(world):
        world.run(scrub_bytes=10**6)
        assert sum(wanted.records for wanted in world.reads) == 20, (
            "what it has just read is enough"
        )
        assert world.run(scrub_bytes=10**6).spark_started is False
        scrubbed_before(world, 25 * HOUR)
        world.reads.clear()
        result = world.run(scrub_bytes=10**6)
    assert (result.spark_started, result.findings) == (True, [])
    assert sum(wanted.records for wanted in world.reads) == 20
