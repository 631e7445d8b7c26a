"""What is found of the processes of this host, by what root recorded of them."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable

import pytest

from mirror_report import units
from mirror_report.checks import processes
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow, Settings
from mirror_report.engines import MM2
from mirror_report.model import Cause, Finding, PartitionLag, UnitRecord
from mirror_report.processes.findings import processes_of

FLOW = Flow("orders", "east", "west", "orders", instance="mirrormaker")
LOGIN = Cause("login_refused", "source1:9092")
ENDING = UnitRecord(
    "mirrormaker", "activating", "auto-restart", 1000.0,
    history=((0.0, 10), (1000.0, 22)), ended="exit status 255", cause=LOGIN,
)  # fmt: skip
HANGING = UnitRecord("mirrormaker", "active", "running", 1000.0, 9000.0, cause=LOGIN)


def judged(record, *kinds):
    return [
        (found.kind, found.severity, found.count)
        for found in processes.findings(FLOW, [record], kinds)
    ]


def test_a_process_that_ends_again_and_again_is_told_once_with_its_cause():
    assert judged(ENDING, "stopped") == [("restarting", "critical", 12)]
    (found,) = processes.findings(FLOW, [ENDING], ["stopped"])
    assert "ended 12 times since 00:00:00 UTC" in found.message
    assert "exit status 255: the login is refused by source1:9092" in found.message


def test_a_process_between_two_ends_is_a_warning_and_one_that_stays_up_is_none():
    young = dataclasses.replace(ENDING, active="active", sub="running", running_seconds=2.0)
    assert judged(young) == [("restarting", "warning", 12)]
    assert judged(dataclasses.replace(young, running_seconds=121.0)) == []


@pytest.mark.parametrize("kind", ["stopped", "not_running", "stalled", "task_failed"])
def test_why_a_mirror_stands_still_is_told(kind):
    assert judged(HANGING, kind) == [("hindered", "critical", None)]


def test_a_cause_that_was_said_long_ago_has_its_time():
    old = dataclasses.replace(HANGING, at=90_000, cause=dataclasses.replace(LOGIN, at=1000))
    (found,) = processes.findings(FLOW, [old], ["stalled"])
    assert found.message.endswith("refused by source1:9092, last said at 1970-01-01 00:16:40 UTC")


@pytest.mark.parametrize(
    ("flow", "copy"),
    [
        (FLOW, "orders"),
        (dataclasses.replace(FLOW, engine=MM2, replication_policy="prefix"), "east.orders"),
    ],
)
def test_a_record_that_the_target_refuses_is_told_with_where_it_lies(flow, copy):
    refused = dataclasses.replace(HANGING, cause=Cause("record_refused", topic=copy))
    lag = [
        PartitionLag("orders", topic, partition, "STALLED", 0, 9, 9 - behind, behind, None)
        for topic, partition, behind in [("orders", 0, 0), ("orders", 1, 4), ("other", 1, 5)]
    ]
    (found,) = processes.findings(flow, [refused], ["stalled"], lag)
    assert f"refuses a record (topic {copy})" in found.message
    assert found.message.endswith("in partition 1 from offset 5")


def test_what_a_mirror_that_moves_has_complained_of_is_nothing():
    assert judged(HANGING, "lagging", "duplicate") == []


def test_a_login_that_is_refused_is_told_though_the_process_still_has_one():
    refused = dataclasses.replace(HANGING, refused=("cluster east refuses identity mirror",))
    (found,) = processes.findings(FLOW, [refused], [])
    assert (found.kind, found.severity) == ("hindered", "critical")
    assert "cluster east refuses identity mirror" in found.message


def test_a_mirror_that_was_stopped_by_hand_has_no_cause():
    stopped = dataclasses.replace(HANGING, active="inactive", sub="dead", running_seconds=None)
    assert judged(stopped, "stopped") == []


@pytest.fixture
def recorded(tmp_path):
    """Settings whose record holds what is given."""

    def settings(*records, instances=("mirrormaker",)):
        path = tmp_path / "units.json"
        units.write_records(path, records)
        assert units.read_records(path) == records
        assert path.stat().st_mode & 0o7777 == 0o644
        clusters = {alias: Cluster(alias, ("a:1",)) for alias in ("east", "west")}
        return Settings(clusters, (FLOW,), units_file=str(path), instances=instances)

    return settings


def findings_in(settings: Settings, flow: Flow, kinds: Iterable[str]) -> list[Finding]:
    return processes_of(
        [flow],
        [finding(kind, "", "", flow="orders") for kind in kinds],
        units_file=settings.units_file,
        interval_seconds=settings.lag_interval_seconds,
        instances=settings.instances,
    )


def found_in(settings: Settings, *kinds: str) -> list[str]:
    return [each.kind for each in findings_in(settings, FLOW, kinds)]


def test_what_no_inventory_names_any_more_and_runs_is_told(recorded):
    now = time.time()
    other = UnitRecord("former", "active", "running", now)
    dead = UnitRecord("dead", "inactive", "dead", now)
    assert found_in(recorded(other, dead)) == ["undeclared"]
    assert found_in(recorded(other, dead, instances=("former",))) == []
    assert found_in(recorded(other, dead, instances=None)) == []


@pytest.mark.parametrize(
    ("hosts", "active", "kinds", "told"),
    [
        (("here", "there"), "inactive", [], ["not_running"]),
        (("here", "there"), "failed", ["lagging"], ["not_running"]),
        (("here", "there"), "active", [], []),
        # systemd starts it again: what ends again and again is told as that
        (("here", "there"), "activating", [], []),
        # nobody mirrors at all, which is said already
        (("here", "there"), "inactive", ["stopped"], []),
        (("here", "there"), "inactive", ["not_running"], []),
        # of a mirror on one host its group tells
        (("here",), "inactive", [], []),
    ],
)
def test_a_process_that_rests_here_is_told_while_another_host_mirrors(
    recorded, hosts, active, kinds, told
):
    settings = recorded(UnitRecord("mirrormaker", active, "dead", time.time()))
    flow = dataclasses.replace(FLOW, hosts=hosts)
    found = findings_in(settings, flow, kinds)
    assert [each.kind for each in found] == told
    assert all("not running on this host" in each.message for each in found)
    # A unit that was left where the inventory has none is meant to rest.
    elsewhere = dataclasses.replace(settings, instances=())
    assert "not_running" not in {one.kind for one in findings_in(elsewhere, flow, kinds)}


def test_a_record_that_is_not_renewed_is_not_known(recorded):
    now = dataclasses.replace(HANGING, at=time.time())
    assert found_in(recorded(now), "stalled") == ["hindered"]
    old = dataclasses.replace(now, at=now.at - 3600)
    assert found_in(recorded(old), "stalled") == ["not_checked"]
    assert found_in(recorded(), "stalled") == []


def test_a_unit_that_could_not_be_looked_at_is_told_and_hides_no_other(recorded):
    now = time.time()
    unknown = UnitRecord("mirrormaker", "unknown", "unknown", now, problem="journalctl is mute")
    other = UnitRecord("former", "active", "running", now)
    assert found_in(recorded(unknown, other), "stalled") == ["not_checked", "undeclared"]
    former = dataclasses.replace(unknown, name="former")
    assert found_in(recorded(former), "stalled") == ["not_checked"]


def test_a_record_of_the_former_release_is_read(recorded, tmp_path):
    settings = recorded(dataclasses.replace(HANGING, at=time.time()))
    (entry,) = json.loads((tmp_path / "units.json").read_text())
    del entry["problem"]
    (tmp_path / "units.json").write_text(json.dumps([entry]))
    assert found_in(settings, "stalled") == ["hindered"]


def test_a_record_that_cannot_be_read_is_not_known(recorded, tmp_path):
    settings = recorded()
    for text in (
        "",
        "{}",
        "[1]",
        '[{"name": "a"}]',
        '[{"cause": 1, "history": [], "refused": []}]',
    ):
        (tmp_path / "units.json").write_text(text)
        assert found_in(settings, "stalled") == ["not_checked"]
    (tmp_path / "units.json").unlink()
    assert found_in(settings, "stalled") == ["not_checked"]
