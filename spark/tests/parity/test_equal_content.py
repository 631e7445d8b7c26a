"""Records without anything of their own, as heartbeats are: which of them may stand for a loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from kafka import TopicPartition
from parity_mirror import T0, Mirror, Scenario, counts
from parity_records import jars_directory
from pyspark.sql import SparkSession
from test_replay import GivenPositions

from mirror_report.engines import MM2
from mirror_report.model import Positions

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

FLOWS = ("loose", "kept")
"""MirrorMaker 1, and MirrorMaker 2, which keeps partitions."""
KINDS = ("written-later", "repaired", "set-back", "there-before", "outlived")
BEATS = range(40, 50)
"""Numbers of the heartbeats among the first hundred records."""
LATER = 1_000_000
"""Milliseconds: another minute."""


class EqualContent(Scenario):
    """Topics of both engines whose heartbeats are lost, and what somebody writes in their stead.

    Run 0 sees them first, 1 what was written then, 2 and 3 what comes after.
    """

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(mirror)
        loose = replace(
            mirror.settings.flows[0], name="loose", include=f"{mirror.prefix}\\.loose-.*"
        )
        kept = replace(loose, name="kept", engine=MM2, include=f"{mirror.prefix}\\.kept-.*")
        mirror.settings = replace(mirror.settings, flows=(loose, kept))
        self.committed: dict[str, Positions] = {flow: {} for flow in FLOWS}
        for flow in FLOWS:
            for kind in KINDS:
                mirror.topic(f"{flow}-{kind}", partitions=1)
        for step in (self.first, self.second, self.third, self.fourth):
            step()
            for producer in mirror.producers:
                producer.flush()
            self.results.append(mirror.run(GivenPositions(mirror.settings, self.committed)))

    # -- what happens -----------------------------------------------------------------------------

    def produce(self, name: str, numbers: Iterable[int]) -> None:
        """Write records that are all different, but for the heartbeats among them."""
        self._write(0, name, numbers)

    def copy(self, name: str, numbers: Iterable[int], later: int = 0) -> None:
        """Write copies of them to the target, whoever does.

        :param later: added to their timestamps.
        """
        self._write(1, name, numbers, later)

    def _write(self, side: int, name: str, numbers: Iterable[int], later: int = 0) -> None:
        for number in numbers:
            key, value = (b"beat", b"") if number in BEATS else (b"%d" % number, b"value")
            self.mirror.producers[side].send(
                self.topic(name), key=key, value=value, timestamp_ms=T0 + number * 1000 + later
            )

    def commit(self, name: str, position: int) -> None:
        """Commit how far the mirror is."""
        flow = name.partition("-")[0]
        self.committed[flow][self.topic(name)] = {0: position}

    def first(self) -> None:
        """Of a hundred records ten heartbeats are lost; elsewhere nothing is, yet."""
        for flow in FLOWS:
            for kind in ("written-later", "repaired", "set-back", "outlived"):
                name = f"{flow}-{kind}"
                self.produce(name, range(100))
                if kind == "outlived":
                    # The target has such ones from a time that the source has forgotten.
                    self.copy(name, range(30))
                    self.copy(name, BEATS, later=-30_000)
                    self.mirror.producers[0].flush()
                    self.mirror.admins[0].delete_records({TopicPartition(self.topic(name), 0): 30})
                lost = {*BEATS, *(range(30) if kind == "outlived" else ())}
                self.copy(name, (number for number in range(100) if number not in lost))
                self.commit(name, 100)
            name = f"{flow}-there-before"
            self.produce(name, range(30))
            self.copy(name, range(30))
            self.copy(name, BEATS, later=LATER)
            self.commit(name, 30)

    def second(self) -> None:
        """Somebody writes heartbeats with other times, or with the same, or lets them be copied."""
        for flow in FLOWS:
            self.copy(f"{flow}-written-later", BEATS, later=LATER)
            self.copy(f"{flow}-repaired", BEATS)
            self.commit(f"{flow}-set-back", 40)
            name = f"{flow}-there-before"
            self.produce(name, range(30, 100))
            self.copy(name, (number for number in range(30, 100) if number not in BEATS))
            self.commit(name, 100)

    def third(self) -> None:
        """A mirror that was set back copies again, and something on the way alters times."""
        for flow in FLOWS:
            self.copy(f"{flow}-set-back", range(40, 100), later=LATER)
            self.commit(f"{flow}-set-back", 100)

    def fourth(self) -> None:
        """It goes on, everywhere."""
        for flow in FLOWS:
            for kind in KINDS:
                name = f"{flow}-{kind}"
                self.produce(name, range(100, 110))
                self.copy(name, range(100, 110))
                self.commit(name, 110)

    # -- what is said -----------------------------------------------------------------------------

    def found(self, flow: str, kind: str) -> list[dict[str, int]]:
        """Classes with records, run by run."""
        return [counts(self.of(run, f"{flow}-{kind}")) for run in range(len(self.results))]


@pytest.fixture(scope="module")
def scenario(
    spark: SparkSession, two_brokers: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> EqualContent:
    mirror = Mirror(spark, two_brokers, tmp_path_factory.mktemp("equal"))
    try:
        return EqualContent(mirror)
    finally:
        mirror.close()


@pytest.mark.parametrize("flow", FLOWS)
def test_what_others_write_after_a_loss_was_found_does_not_close_it(
    scenario: EqualContent, flow: str
) -> None:
    lost = {"missing": 10}
    assert scenario.found(flow, "written-later") == [lost, {**lost, "extra": 10}, lost, lost]
    assert scenario.of(3, f"{flow}-written-later").accounted["extra"] == 10


@pytest.mark.parametrize("flow", FLOWS)
def test_what_was_there_before_a_record_was_written_is_no_copy_of_it(
    scenario: EqualContent, flow: str
) -> None:
    lost = {"missing": 10}
    assert scenario.found(flow, "there-before") == [{"extra": 10}, lost, lost, lost]


@pytest.mark.parametrize("flow", FLOWS)
def test_records_that_are_equal_to_the_timestamp_mend_a_loss_and_that_is_said(
    scenario: EqualContent, flow: str
) -> None:
    name = f"{flow}-repaired"
    assert scenario.found(flow, "repaired") == [{"missing": 10}, {}, {}, {}]
    assert scenario.of(1, name).verified_records == 100
    said = [scenario.findings(run, name).get("repaired") for run in range(4)]
    assert [found and (found.count, found.severity) for found in said] == [
        None, (10, "ok"), None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("flow", FLOWS)
def test_a_mirror_that_was_set_back_may_copy_what_was_lost_and_alter_its_times(
    scenario: EqualContent, flow: str
) -> None:
    first, second, *later = scenario.found(flow, "set-back")
    assert (first, second) == ({"missing": 10}, {"missing": 10})
    assert later == [{"altered_timestamp": 10, "extra": 50}, {}]
    assert scenario.of(3, f"{flow}-set-back").accounted["altered_timestamp"] == 10


def test_what_the_source_has_outlived_is_never_taken_for_what_it_has_lost_since(
    scenario: EqualContent,
) -> None:
    """MirrorMaker 2 keeps the order of a partition; of MirrorMaker 1 nobody can say."""
    kept, loose = (scenario.found(flow, "outlived") for flow in FLOWS[::-1])
    assert kept == [{"missing": 10}] * 4
    assert loose == [{"unverifiable": 10}] * 4
    assert scenario.of(3, "loose-outlived").verified_records == 50, "nothing of their minute"
