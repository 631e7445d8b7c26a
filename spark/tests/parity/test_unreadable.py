"""Records with timestamps that Spark cannot hold, on two real clusters."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import report_schema
from kafka import TopicPartition
from parity_mirror import T0, Mirror, Scenario, counts, only
from parity_records import assert_partitions_add_up, jars_directory
from pyspark.sql import SparkSession

from mirror_report.checks.verdict import verdict
from mirror_report.config import Flow
from mirror_report.digests.comparison import compare_bundles
from mirror_report.digests.side import digest_side
from mirror_report.engines import MM2
from mirror_report.kafka.connection import ClusterError
from mirror_report.lag.measure import measure_lag
from mirror_report.model import LagDocument, Positions
from mirror_report.observe import Snapshots
from mirror_report.parity.spark import records, session
from mirror_report.proof.prove import prove_topics
from mirror_report.render import html, nagios, prometheus, sections, terminal
from mirror_report.render import json as render_json
from mirror_report.render.formats import with_verdict
from mirror_report.report.make import make_report

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

FOREVER = {
    "message_timestamp_after_max_ms": str(2**63 - 1),
    "message_timestamp_before_max_ms": str(2**63 - 1),
    "retention_ms": "-1",
}
"""Or a broker refuses such timestamps, or removes what they are on at once."""
YEAR_9999 = 253_402_300_799_000
READABLE = (-5, -1, 0, YEAR_9999, 9_223_372_036_854_775, -9_223_372_036_854_775)
BEYOND = (9_300_000_000_000_000, -9_300_000_000_000_000, 2**63 - 1)


class Poisoned(Scenario):
    """Topics of one partition with a fate each, and what each run says of them.

    Run 0 sees them first, 1 when nothing has happened, 2 when what cannot be read was removed from
    ``beyond`` on both sides, and ``renewed`` was recreated on both.
    """

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(mirror)
        for name, timestamps in (
            ("readable", READABLE), ("beyond", BEYOND), ("lost", BEYOND[:1]), ("target", ()),
            ("many", [BEYOND[0] + i for i in range(21)]), ("renewed", BEYOND[2:]),
        ):  # fmt: skip
            mirror.topic(name, partitions=1, **FOREVER)
            self.fill(name, timestamps)
            mirror.copy(self.topic(name), faults={"missing": 5} if name == "lost" else None)
        self.send(1, "target", BEYOND[2])
        mirror.topic("table", partitions=1, cleanup_policy="compact", **FOREVER)
        self.fill("table", BEYOND[:1])
        # The one record of its key is on the source alone: nobody can say what it holds.
        for record in mirror.read(0, self.topic("table")):
            if record.timestamp != BEYOND[0]:
                mirror.write(record)
        mirror.producers[1].flush()
        mirror.commit(self.topic("table"))
        self.run()
        self.run()
        for side in (0, 1):
            end = 20 + len(BEYOND)
            mirror.admins[side].delete_records({TopicPartition(self.topic("beyond"), 0): end})
        mirror.renew(self.topic("renewed"), 0, 1)
        self.fill("renewed", ())
        mirror.copy(self.topic("renewed"))
        for side in (0, 1):
            self.send(side, "table", T0)
        mirror.commit(self.topic("table"))
        self.run()

    def send(self, side: int, name: str, timestamp: int) -> None:
        """Write one record in a batch of its own."""
        self.mirror.producers[side].send(
            self.topic(name), key=b"k%d" % timestamp, value=b"v", timestamp_ms=timestamp
        ).get(30)

    def fill(self, name: str, timestamps: Any) -> None:
        """Write twenty keyed records, these, and twenty more."""
        for count in (20, 40):
            for i in range(count - 20, count):
                self.mirror.producers[0].send(
                    self.topic(name), key=b"%d" % i, value=b"%d" % i, timestamp_ms=T0 + i * 1000
                )
            self.mirror.producers[0].flush()
            for timestamp in timestamps if count == 20 else ():
                self.send(0, name, timestamp)


@pytest.fixture(scope="module")
def scenario(one_mirror: Mirror) -> Poisoned:
    return Poisoned(one_mirror)


def test_timestamps_that_spark_can_hold_are_compared(scenario: Poisoned) -> None:
    found = scenario.of(0, "readable")
    assert (found.status, counts(found)) == ("verified", {})
    assert found.verified_records == 40 + len(READABLE)


def test_a_record_beyond_counts_once_and_has_its_place(scenario: Poisoned) -> None:
    found = scenario.of(0, "beyond")
    assert (found.status, counts(found)) == ("unverifiable", {"unverifiable": 3})
    assert (found.source_records, found.target_records, found.verified_records) == (43, 43, 40)
    assert {
        (sample.side, sample.partition, sample.offset, sample.timestamp_ms)
        for sample in found.samples["unverifiable"]
    } == {
        (side, 0, 20 + number, timestamp)
        for side in ("source", "target")
        for number, timestamp in enumerate(BEYOND)
    }
    finding = scenario.findings(0, "beyond")["unverifiable"]
    assert finding.count == 3
    assert "in partition 0 on the source at offset 20: 9300000000000000" in finding.message
    assert "--partition 0 --offset 20 " in finding.action


def test_a_loss_beside_it_is_reported(scenario: Poisoned) -> None:
    found = scenario.of(0, "lost")
    assert (found.status, counts(found)) == ("mismatch", {"missing": 5, "unverifiable": 1})
    places = {(sample.side, sample.offset) for sample in found.samples["unverifiable"]}
    assert places == {("source", 20), ("target", 15)}


def test_the_larger_number_of_both_sides_counts(scenario: Poisoned) -> None:
    found = scenario.of(0, "target")
    assert (found.status, counts(found)) == ("unverifiable", {"unverifiable": 1})
    assert [(sample.side, sample.offset) for sample in found.samples["unverifiable"]] == [
        ("target", 40)
    ]


def test_a_topic_with_more_than_twenty_alone_is_unknown(scenario: Poisoned) -> None:
    for run in (0, 1):
        found = scenario.of(run, "many")
        assert (found.status, counts(found)) == ("unknown", {})
        assert "more than 20 of its records" in found.reason
        assert scenario.findings(run, "many")["parity_unavailable"].severity == "unknown"
        assert {topic.status for topic in scenario.results[run].topics} >= {"verified", "mismatch"}


def test_of_a_compacted_topic_its_key_is_unverifiable(scenario: Poisoned) -> None:
    found = scenario.of(0, "table")
    assert (found.status, counts(found)) == ("unverifiable", {"unverifiable": 1})
    assert found.verified_records == 40
    assert [(sample.side, sample.offset) for sample in found.samples["unverifiable"]] == [
        ("source", 20)
    ]


def test_what_is_new_beside_it_is_compared(scenario: Poisoned) -> None:
    before, found = scenario.of(1, "table"), scenario.of(2, "table")
    assert found.scanned_at_ms == before.scanned_at_ms, "a look"
    assert (found.uncompared_records, counts(found)) == (0, counts(before))


def test_a_later_run_knows_them_and_does_not_stumble_again(scenario: Poisoned) -> None:
    assert [line for line in scenario.said[0] if "reading around" in line]
    assert [line for line in scenario.said[1] if "reading around" in line] == []
    for name in ("beyond", "lost", "target", "table"):
        assert counts(scenario.of(1, name)) == counts(scenario.of(0, name))


def test_what_expired_and_what_was_recreated_is_forgotten(scenario: Poisoned) -> None:
    assert counts(scenario.of(2, "beyond")) == {"deleted_early": 20}
    renewed = scenario.of(2, "renewed")
    assert counts(scenario.of(0, "renewed")) == {"unverifiable": 1}
    assert (renewed.status, counts(renewed), renewed.verified_records) == ("verified", {}, 40)


def test_what_was_verified_beside_it_is_read_again(scenario: Poisoned) -> None:
    mirror = scenario.mirror
    manifest = mirror.store.load("parity")
    mirror.store.commit("parity", {**manifest, "scrubbed_at_ms": 1})
    before = len(mirror.said)
    mirror.run(scrub_bytes=2**30)
    said = mirror.said[before:]
    assert [line for line in said if "verified records again" in line]
    assert [line for line in said if "could not be read again" in line
            or "not what they were" in line or "reading around" in line] == []  # fmt: skip


@pytest.fixture
def same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def ours(*_: Any) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "open_session", ours)


@pytest.mark.usefixtures("same_session")
def test_a_proof_reads_around_them(scenario: Poisoned) -> None:
    found = prove_topics(scenario.mirror.settings, "flow", None, scenario.mirror.said.append)
    assert_partitions_add_up(found.parity)
    reported = {topic.topic.rpartition(".")[2]: topic for topic in found.parity}
    assert counts(reported["lost"]) == {"missing": 5, "unverifiable": 1}
    assert reported["lost"].verified_records == 35
    assert counts(reported["target"]) == {"unverifiable": 1}
    assert (reported["many"].status, reported["readable"].status) == ("unknown", "verified")
    assert any("at offset 20: 9300000000000000" in finding.message for finding in found.findings)


@pytest.mark.usefixtures("same_session")
def test_bundles_say_what_their_digests_do_not_hold(scenario: Poisoned, tmp_path: Path) -> None:
    paths = []
    for side in ("source", "target"):
        path = tmp_path / side
        digest_side(
            scenario.mirror.settings, None, side, lambda _, path=path: path.open("wb"),
            scenario.mirror.said.append,
        )  # fmt: skip
        paths.append(path)
    document = compare_bundles(scenario.mirror.settings.spark, *paths, scenario.mirror.said.append)
    reported = {topic.topic.rpartition(".")[2]: topic for topic in document.topics}
    assert (reported["many"].status, reported["target"].status) == ("unknown", "unverifiable")
    assert reported["lost"].fewer == 5
    assert {
        finding.topic: finding.count
        for finding in document.findings
        if finding.kind == "unverifiable"
    } == {
        scenario.topic("lost"): 1,
        scenario.topic("target"): 1,
    }


@pytest.mark.usefixtures("same_session")
def test_a_report_is_written_in_every_form(scenario: Poisoned) -> None:
    report = make_report(scenario.mirror.settings, None, scenario.mirror.said.append)
    assert report.verdict.exit_code == 2, report.verdict
    plain = render_json.document(report)
    jsonschema.validate(json.loads(render_json.dumps(plain)), report_schema.packaged())
    assert "9300000000000000" in html.render(plain)
    assert nagios.summary(plain).startswith("MIRROR CRITICAL")
    shown = io.StringIO()
    terminal.write(with_verdict(report), shown, wide=True)
    assert "9300000000000000" in shown.getvalue()
    run = {"at": 1.0, "duration": 1.0, "interval": 60.0}
    assert 'class="unverifiable"' in prometheus.text(prometheus.run_samples(plain, run, "1"))


def test_lag_is_measured_whatever_the_timestamps(mirror: Mirror) -> None:
    timestamps = (-5, -1, 0, YEAR_9999, *BEYOND, -(2**63) + 1)
    names = [mirror.topic(f"t{i}", partitions=1, **FOREVER) for i in range(len(timestamps))]
    for name, timestamp in zip(names, timestamps, strict=True):
        mirror.producers[0].send(name, value=b"v", timestamp_ms=timestamp).get(30)
    for _ in range(2):
        measured = measure_lag(mirror.settings, mirror.store, None)
        assert [row.lag_records for row in measured.rows] == [1] * len(names)
    ages = {row.topic: row.lag_seconds for row in measured.rows}
    assert [ages[name] for name in names if ages[name] == 0] == [0] * 3, "they are of the future"
    result = verdict(measured.findings)
    document = LagDocument("2.0.0", result, measured.flows, measured.rows, measured.findings)
    plain = render_json.document(document)
    jsonschema.validate(
        json.loads(render_json.dumps(plain)),
        report_schema.packaged() | {"$ref": "#/$defs/LagDocument"},
    )
    shown = io.StringIO()
    sections.lag(plain["lag"], terminal.console(shown), wide=True)
    assert "t0" in shown.getvalue()
    run = {"at": 1.0, "duration": 1.0, "interval": 60.0}
    text = prometheus.text(prometheus.lag_samples(plain, run, "1", partitions=True))
    assert text.count("\nkafka_mirror_lag_records{") == len(names)
    assert nagios.summary(plain)


class Kept(Snapshots):
    """Real snapshots, and a MirrorMaker 2 that has committed everything."""

    def positions(self, flow: Flow) -> Positions:
        """Give the ends of the source."""
        topics = self.source(flow).topics
        return {
            name: {partition: log.end for partition, log in topic.partitions.items()}
            for name, topic in topics.items()
        }


def test_where_partitions_are_kept_each_of_them_counts(mirror: Mirror) -> None:
    (flow,) = mirror.settings.flows
    mirror.settings = replace(mirror.settings, flows=(replace(flow, engine=MM2),))
    topic = mirror.topic("t", partitions=2, **FOREVER)
    for side, beyond in ((0, (0, 0, 1)), (1, (0, 1))):
        for partition in (0, 1):
            for i in range(20):
                mirror.producers[side].send(
                    topic, value=b"%d" % i, partition=partition, timestamp_ms=T0 + i
                )
        mirror.producers[side].flush()
        for partition in beyond:
            mirror.producers[side].send(
                topic, value=b"v", partition=partition, timestamp_ms=BEYOND[0]
            ).get(30)
    found = only(mirror.run(Kept(mirror.settings)))
    assert (counts(found), found.verified_records) == ({"unverifiable": 3}, 40)
    assert found.partitions == {"unverifiable": {"0": 2, "1": 1}}


def test_spark_alone_suffices_to_read_around_them(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> list[Any]:
        raise ClusterError("cluster a: could not read records: no such codec")

    monkeypatch.setattr(records, "fetched_at", refuse)
    names = [
        mirror.topic(name, partitions=1, cleanup_policy=policy, **FOREVER)
        for name, policy in (("t", "delete"), ("table", "compact"))
    ]
    for side in (0, 1):
        for name in names:
            for timestamp in (T0, BEYOND[0], BEYOND[1], T0 + 1):
                mirror.producers[side].send(
                    name, key=b"%d" % timestamp, value=b"v", timestamp_ms=timestamp
                ).get(30)
    for name in names:
        mirror.commit(name)
    plain, table = sorted(mirror.run().topics, key=lambda row: row.topic)
    assert (counts(plain), plain.verified_records) == ({"unverifiable": 2}, 2)
    assert (table.status, "no such codec" in table.reason) == ("unknown", True)


def test_one_that_comes_while_a_difference_is_classified(mirror: Mirror) -> None:
    topic = mirror.topic("t", partitions=1, **FOREVER)
    mirror.produce(topic, 40)
    mirror.copy(topic, faults={"missing": 2})

    class Late(Snapshots):
        """A source that gets a record just before it is observed again."""

        observations = 0

        def positions(self, flow: Flow) -> Positions:
            self.observations += 1
            if self.observations == 2:
                mirror.producers[0].send(topic, value=b"v", timestamp_ms=BEYOND[0]).get(30)
            return super().positions(flow)

    (found,) = mirror.run(Late(mirror.settings)).topics
    assert counts(found) == {"missing": 2, "unverifiable": 1}
