"""The engine on two real clusters, with a small copier in the place of the mirror."""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import NewTopic
from parity_mirror import RECORDS, T0, Mirror, Scenario, counts, eventually, only
from parity_records import jars_directory

from mirror_report.baseline.record import record_baselines
from mirror_report.config import Flow, Settings
from mirror_report.model import ClusterSnapshot, Positions, ReportError
from mirror_report.observe import Snapshots

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")


FAULTS = {
    "missing": {"missing": 7},
    "duplicate": {"duplicate": 5},
    "corrupt_value": {"corrupt_value": 3},
    "corrupt_headers": {"corrupt_headers": 2},
    "altered_timestamp": {"altered_timestamp": 4},
    "reordered": {"reordered": 1},
    "extra": {"extra": 4},
    "mixed": {"missing": 2, "duplicate": 2, "corrupt_value": 1, "extra": 1},
    "swapped": {"corrupt_value": 2},
    "all": {"missing": 1, "duplicate": 1, "corrupt_value": 1, "corrupt_headers": 1,
            "altered_timestamp": 1, "extra": 1, "reordered": 1},
}  # fmt: skip
"""Topic -> how many records of each class are to be found; only two swap their values."""
CRITICAL = ("missing", "corrupt_value", "corrupt_headers")
PAIRS = ("corrupt_value", "corrupt_headers", "altered_timestamp")
REPORTED_ONCE = ("duplicate", "extra", "altered_timestamp", "reordered")


class FaultyTopics(Scenario):
    """Topics with a fate each, all of one flow, and what each run says of them.

    Run 0 sees them first, 1 finds nothing new, 2 what went on, 3 what had gone wrong since.
    """

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(mirror)
        for name in ("whole", "missing", "duplicate", "extra", "mixed", "behind", "late", "again",
                     "gone"):  # fmt: skip
            mirror.topic(name)
        # In one partition keys keep their order for certain.
        for name in (*FAULTS.keys() - {"missing", "duplicate", "extra", "mixed"}, "expired", "old"):
            mirror.topic(name, partitions=1)
        mirror.topic("table", cleanup_policy="compact")
        self.first()
        self.run()
        self.run()
        self.more()
        self.run()
        self.upset()
        self.run()

    def first(self) -> None:
        """Fill and mirror everything, more or less well."""
        mirror = self.mirror
        mirror.produce(self.topic("whole"))
        mirror.copy(self.topic("whole"))
        for name, faults in FAULTS.items():
            mirror.produce(self.topic(name), 200)
            mirror.copy(self.topic(name), faults={"swapped": 2} if name == "swapped" else faults)
        mirror.produce(self.topic("behind"))
        mirror.copy(self.topic("behind"), limit=10)
        for name in ("late", "again", "gone", "expired"):
            mirror.produce(self.topic(name), 120)
        self.lost = [
            record
            for record in mirror.copy(self.topic("late"), faults={"missing": 2})
            if record.value
        ][:2]
        for name in ("again", "gone", "expired"):
            mirror.copy(self.topic(name))
        mirror.admins[0].delete_records({TopicPartition(self.topic("expired"), 0): 50})
        mirror.producers[0].send(self.topic("table"), key=b"k", value=b"v").get(30)
        old = self.topic("old")
        mirror.produce(old, 90)
        # The target holds other things from before; only what comes after the baseline counts.
        for _ in range(7):
            mirror.producers[1].send(old, value=b"before", timestamp_ms=T0).get(30)
        begun = {"source": {"0": 30}, "required": {"0": 30}, "target": {"0": 7},
                 "recorded_at_ms": 1, "source_id": None, "target_id": None}  # fmt: skip
        mirror.store.commit("baseline", {"flow": {"recorded_at_ms": 1, "topics": {old: begun}}})
        mirror.copy_since(old, T0 + 30_000)

    def more(self) -> None:
        """Go on with one topic, and add another."""
        self.mirror.produce(self.topic("whole"), 60, start=RECORDS)
        self.mirror.copy_since(self.topic("whole"), T0 + RECORDS * 1000)
        self.mirror.produce(self.mirror.topic("other"), 1)

    def upset(self) -> None:
        """Mirror what was lost; create one topic again on the target, and one on the source."""
        mirror = self.mirror
        for record in self.lost:
            mirror.write(record)
        mirror.producers[1].flush()
        for side, name in enumerate(("gone", "again")):
            topic = self.topic(name)
            mirror.admins[side].delete_topics([topic])
            eventually(lambda at=side, topic=topic: topic not in mirror.admins[at].list_topics())
            mirror.admins[side].create_topics([NewTopic(topic, 3, 1)])
        mirror.produce(self.topic("gone"), 120, start=600)
        mirror.copy_since(self.topic("gone"), 0)


@pytest.fixture(scope="module")
def scenario(one_mirror: Mirror) -> FaultyTopics:
    return FaultyTopics(one_mirror)


def test_a_faithful_mirror_is_verified_and_then_left_alone(scenario: FaultyTopics) -> None:
    found = scenario.of(0, "whole")
    assert (found.status, counts(found), scenario.findings(0, "whole")) == ("verified", {}, {})
    assert found.source_records == found.target_records == found.verified_records == RECORDS
    assert found.buckets["verified"] == 10
    assert found.newest_due_ms == T0 + (RECORDS - 1) * 1000
    assert found.verified_through_ms is not None
    assert found.verified_through_ms > found.newest_due_ms
    result, again, third, _ = scenario.results
    assert (result.spark_started, result.backlog_records) == (True, 0)
    assert again.spark_started is False, "nothing is new"
    assert scenario.of(1, "whole") == found
    assert third.spark_started is True
    found = scenario.of(2, "whole")
    assert (found.status, found.verified_records, counts(found)) == ("verified", RECORDS + 60, {})


@pytest.mark.parametrize("name", FAULTS)
def test_each_class_is_counted_exactly_and_then_accounted(
    scenario: FaultyTopics, name: str
) -> None:
    expected = FAULTS[name]
    critical = {kind: n for kind, n in expected.items() if kind in CRITICAL}
    found = scenario.of(0, name)
    assert (found.status, found.source_records, counts(found)) == ("mismatch", 200, expected)
    assert found.verified_records == 200 - sum(critical.values())
    assert found.partitions == {}, "MirrorMaker 1 keeps none"
    assert {kind: len(some) for kind, some in found.samples.items()} == {
        kind: count * (2 if kind in PAIRS else 1) for kind, count in expected.items()
    }
    assert {
        kind: (finding.count, finding.severity)
        for kind, finding in scenario.findings(0, name).items()
    } == {
        kind: (count, "critical" if kind in CRITICAL else "warning")
        for kind, count in expected.items()
    }
    for run in (1, 2, 3):
        found = scenario.of(run, name)
        assert counts(found) == critical
        assert found.accounted == {
            kind: expected.get(kind, 0) for kind in (*REPORTED_ONCE, "unverifiable")
        }
        assert found.status == ("mismatch" if critical else "verified")
        findings = scenario.findings(run, name)
        assert {kind: finding.accounted for kind, finding in findings.items()} == {
            kind: kind in REPORTED_ONCE for kind in expected
        }


def test_the_newest_hours_show_their_worst_minute(scenario: FaultyTopics) -> None:
    hour = T0 - T0 % 3_600_000
    for name, worst in (("whole", "verified"), ("missing", "mismatch"), ("duplicate", "mismatch")):
        strip = scenario.of(0, name).strip
        assert strip.keys() == {"*"}
        assert strip["*"][0] == (hour, worst)
    assert scenario.of(1, "duplicate").strip["*"][0] == (hour, "verified"), "accounted by then"


def test_settled_buckets_stay_settled(scenario: FaultyTopics) -> None:
    differing = [any("differ" in line for line in said) for said in scenario.said]
    assert differing == [True, False, False, True]


def test_what_lies_past_the_position_is_in_flight(scenario: FaultyTopics) -> None:
    found = scenario.of(0, "behind")
    assert (found.status, counts(found)) == ("in_flight", {})
    assert found.in_flight_records == found.source_records == RECORDS
    assert found.target_records == 30


def test_records_that_arrive_late_are_no_longer_missing(scenario: FaultyTopics) -> None:
    assert [scenario.of(run, "late").counts["missing"] for run in range(3)] == [2, 2, 2]
    found = scenario.of(3, "late")
    assert (found.status, counts(found), found.verified_records) == ("verified", {}, 120)


def test_a_compacted_topic_is_compared_by_key(scenario: FaultyTopics) -> None:
    found = scenario.of(0, "table")
    assert (found.strategy, found.status, found.in_flight_records) == (
        "latest_by_key", "in_flight", 1,
    )  # fmt: skip
    assert "compacted" in found.reason
    assert scenario.findings(0, "table") == {}


def test_a_topic_created_again_is_reported_and_compared_again(scenario: FaultyTopics) -> None:
    assert scenario.of(2, "again").status == "verified"
    assert scenario.of(3, "again").counts["missing"] == 120
    assert scenario.findings(3, "again").keys() == {"reset", "missing"}


def test_a_source_created_again_leaves_what_it_held_unverifiable(scenario: FaultyTopics) -> None:
    assert scenario.of(2, "gone").status == "verified"
    found = scenario.of(3, "gone")
    assert counts(found) == {"unverifiable": 120}
    assert (found.verified_records, found.buckets["verified"]) == (120, 2)
    assert scenario.findings(3, "gone").keys() == {"reset", "unverifiable"}


def test_records_that_expired_unread_are_unverifiable(scenario: FaultyTopics) -> None:
    found = scenario.of(0, "expired")
    assert found.source_records == 70
    assert counts(found) == {"unverifiable": 50}
    assert found.status == "unverifiable"


@pytest.mark.long
def test_copies_of_unread_records_dated_ahead_are_unverifiable_and_later_ones_extra(
    mirror: Mirror,
) -> None:
    topic, ahead = mirror.topic("ahead"), round(time.time() - T0 / 1000) + 1800
    mirror.produce(topic, 60)
    mirror.copy(topic)
    assert only(mirror.run()).status == "verified"
    mirror.produce(topic, 30, start=ahead)
    mirror.copy_since(topic, T0 + ahead * 1000)
    copies = [record for record in mirror.read(0, topic) if record.timestamp >= T0 + ahead * 1000]
    gone = {TopicPartition(topic, p): -1 for p in range(3)}
    mirror.admins[0].delete_records(gone)
    found = only(mirror.run())
    assert (found.status, counts(found)) == ("unverifiable", {"unverifiable": 30})
    mirror.write(copies[0], value=b"of somebody else")
    mirror.producers[1].flush()
    assert counts(only(mirror.run())) == {"unverifiable": 30, "extra": 1}
    mirror.produce(topic, 30, start=ahead + 30)
    mirror.copy_since(topic, T0 + (ahead + 30) * 1000)
    assert counts(only(mirror.run())) == {"unverifiable": 30}, "the one is accounted"


def test_a_baseline_leaves_out_what_lies_before_it(scenario: FaultyTopics) -> None:
    found = scenario.of(0, "old")
    assert (found.source_records, found.target_records) == (60, 60)
    assert (found.skipped_records, found.verified_records) == (0, 60)
    assert (found.status, counts(found)) == ("verified", {})


def test_what_comes_after_a_baseline_counts_whatever_the_times_of_records(mirror: Mirror) -> None:
    """A record from the future lies there; of 120 that follow none arrives, a newer one does."""
    topic = mirror.topic("ahead", 1)
    now = int(time.time() * 1000)
    mirror.producers[0].send(topic, value=b"ahead", timestamp_ms=now + 50 * 60_000).get(30)
    mirror.copy(topic)
    record_baselines(mirror.settings, None, full_history=False, renew=False)
    mirror.produce(topic, 120)
    newest = now + 55 * 60_000
    mirror.producers[0].send(topic, value=b"newest", timestamp_ms=newest).get(30)
    mirror.copy_since(topic, newest)
    for _ in range(2):
        found = only(mirror.run())
        assert (found.status, counts(found)) == ("mismatch", {"missing": 120})
        assert (found.verified_records, found.skipped_records) == (1, 0)


@pytest.mark.parametrize("full_history", [True, False])
def test_copies_of_what_the_source_removed_before_the_first_observation_are_no_alarm(
    mirror: Mirror, full_history: bool
) -> None:
    topic = mirror.topic("beheaded", 1)
    mirror.produce(topic, 60)
    mirror.copy(topic)
    mirror.admins[0].delete_records({TopicPartition(topic, 0): 30})
    if full_history:
        record_baselines(mirror.settings, None, full_history=True, renew=False)
    result = mirror.run()
    found = only(result)
    assert (found.status, counts(found), found.verified_records) == ("verified", {}, 30)
    assert found.accounted["unverifiable"] == 30
    assert [(finding.kind, finding.severity, finding.count) for finding in result.findings] == [
        ("unverifiable", "ok", 30)
    ]
    mirror.write(mirror.read(0, topic)[0], value=b"foreign", key=b"foreign")
    mirror.producers[1].flush()
    found = only(mirror.run())
    assert (counts(found), found.accounted["unverifiable"]) == ({"extra": 1}, 30)


def test_what_is_left_open_about_a_baseline_is_a_warning_that_counts_it(mirror: Mirror) -> None:
    """A record that may have been copied before the baseline, and is nowhere."""
    topic = mirror.topic("open", 1)
    mirror.produce(topic, 20)
    mirror.copy(topic, limit=10)
    record_baselines(mirror.settings, None, full_history=False, renew=False)
    recorded = mirror.store.load("baseline")
    recorded["flow"]["topics"][topic]["required"] = {"0": 15}
    mirror.store.commit("baseline", recorded)
    for record in mirror.read(0, topic)[12:]:
        mirror.write(record)
    mirror.producers[1].flush()
    mirror.commit(topic)
    result = mirror.run()
    found = only(result)
    assert (found.status, found.verified_records, found.skipped_records) == ("verified", 8, 2)
    (finding,) = result.findings
    assert (finding.kind, finding.severity, finding.count) == ("skipped", "warning", 2)


@pytest.mark.parametrize("again", [False, True], ids=["", "source created again"])
def test_a_loss_in_the_minute_of_a_known_one_is_told_once_the_position_is_past_it(
    mirror: Mirror, again: bool
) -> None:
    """Nothing but the position moves between the last two runs."""
    topic = mirror.topic("quiet", 1)
    mirror.produce(topic, 3)
    mirror.copy(topic)
    mirror.run()
    if again:
        mirror.renew(topic, 0)
    for lost in (1, 2):
        mirror.produce(topic, 1, start=20 + lost)
        assert counts(only(mirror.run())).get("missing", 0) == lost - 1
        mirror.commit(topic)
        found = only(mirror.run())
        expected = {"missing": lost} | ({"unverifiable": 3} if again else {})
        assert (counts(found), found.in_flight_records) == (expected, 0)


def test_a_mirror_that_runs_meanwhile_is_no_difference(mirror: Mirror) -> None:
    """Records that are produced, mirrored and committed between the observations."""
    topic = mirror.topic("live")
    mirror.produce(topic, 120)
    mirror.copy(topic)

    class Meanwhile(Snapshots):
        def __init__(self, settings: Settings) -> None:
            super().__init__(settings)
            self.next = 120

        def target(self, flow: Flow) -> ClusterSnapshot:
            mirror.produce(topic, 30, start=self.next)
            mirror.copy_since(topic, T0 + self.next * 1000, commit=False)
            self.next += 30
            return super().target(flow)

    found = only(mirror.run(Meanwhile(mirror.settings)))
    assert counts(found) == {}
    assert found.buckets["verified"] >= 1
    assert any("differ" in line for line in mirror.said), "classification was needed"
    mirror.commit(topic)
    found = only(mirror.run())
    assert (found.status, found.verified_records, counts(found)) == ("verified", 180, {})


def test_the_next_run_does_what_a_budget_or_a_death_left_undone(mirror: Mirror) -> None:
    topic = mirror.topic("large")
    mirror.produce(topic)
    mirror.copy(topic)
    first = mirror.run(max_bytes=20_000)
    assert 0 < first.backlog_records < 2 * RECORDS
    assert only(first).status == "in_flight"
    assert [finding.kind for finding in first.findings] == ["backlog"]
    before = mirror.store.load("parity")

    class Killed(BaseException):
        pass

    real = mirror.store.commit

    def killed(*_: Any) -> None:
        raise Killed

    mirror.store.commit = killed  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        mirror.run()
    mirror.store.commit = real  # type: ignore[method-assign]
    assert mirror.store.load("parity") == before
    last = mirror.run()
    assert last.findings == []
    found = only(last)
    assert (found.status, found.verified_records, counts(found)) == ("verified", RECORDS, {})
    left = {f"{run.name}/{path.name}" for run in mirror.store.parity_directory.iterdir()
            for path in run.iterdir()}  # fmt: skip
    manifest = mirror.store.load("parity")
    assert left == set(manifest["digests"]), "what nobody names is removed"


def test_a_budget_goes_to_what_is_new_before_what_is_known(mirror: Mirror) -> None:
    topic = mirror.topic("known")
    mirror.produce(topic, 300)
    for record in mirror.read(0, topic):
        if record.timestamp % 60_000 != 7_000:
            mirror.write(record)
    mirror.commit(topic)
    assert counts(only(mirror.run())) == {"missing": 5}
    mirror.produce(topic, 60, start=300)
    mirror.copy_since(topic, T0 + 302_000)
    # Both sides of one minute are read twice.
    found = mirror.run(max_records=260)
    assert counts(only(found)) == {"missing": 7}
    assert [finding.kind for finding in found.findings] == ["missing"]
    assert counts(only(mirror.run())) == {"missing": 7}


def test_what_no_report_holds_is_new_until_one_does(mirror: Mirror) -> None:
    topic = mirror.topic("new")
    mirror.produce(topic, 60)
    mirror.copy(topic, faults={"duplicate": 2, "missing": 1})
    unreported = [only(mirror.run(reported=False)), only(mirror.run(reported=False))]
    mirror.produce(topic, 60, start=120)
    mirror.copy_since(topic, T0 + 120_000)
    unreported.append(only(mirror.run(reported=False)))
    assert [counts(row) for row in unreported] == [{"duplicate": 2, "missing": 1}] * 3
    assert {len(row.samples["duplicate"]) for row in unreported} == {2}
    assert counts(only(mirror.run())) == {"duplicate": 2, "missing": 1}
    last = only(mirror.run())
    assert (counts(last), last.accounted["duplicate"]) == ({"missing": 1}, 2)


def test_a_cluster_that_is_away_is_unknown_and_nothing_is_forgotten(mirror: Mirror) -> None:
    class Away(Snapshots):
        def positions(self, flow: Flow) -> Positions:  # noqa: ARG002
            raise ReportError("a does not answer")

    result = mirror.run(Away(mirror.settings))
    assert [(finding.kind, finding.severity) for finding in result.findings] == [
        ("parity_unavailable", "unknown")
    ]
    assert result.topics == []
