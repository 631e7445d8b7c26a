"""Filters of the roles mirrormaker and mirror_report, without Ansible."""

from __future__ import annotations

from typing import Any

import pytest

from tests.loading import load

instance = load("roles/mirrormaker/filter_plugins/mirrormaker.py", "mirrormaker_filters")
host = load("roles/mirror_report/filter_plugins/mirror_report.py", "mirror_report_filters")


def flow(name: str, source: str = "east", **ids: Any) -> dict[str, Any]:
    unknown = {"source_cluster_id": None, "target_cluster_id": None, "target_brokers": None}
    return {"name": name, "source": source, **unknown, **ids}


def test_nothing_is_known_of_the_clusters_of_a_new_instance_that_was_not_checked() -> None:
    known = instance.mirrormaker_clusters([], ["orders"], {})
    assert known == {"source_ids": {}, "target_id": None, "brokers": None}
    assert instance.mirrormaker_identity({"source": "east"}, known, {}) == {
        "source": "east", "target_cluster_id": None, "source_cluster_id": None,
    }  # fmt: skip


def test_a_check_tells_the_ids_and_brokers_of_the_instances_own_flows_alone() -> None:
    seen = {"source_cluster_id": "E", "target_cluster_id": "W", "target_brokers": 5}
    flows = [flow("other", source_cluster_id="X", target_cluster_id="Y"), flow("orders", **seen)]
    known = instance.mirrormaker_clusters(flows, ["orders"], {})
    assert known == {"source_ids": {"east": "E"}, "target_id": "W", "brokers": 5}


def test_brokers_of_clusters_are_known_as_far_as_a_check_saw_them() -> None:
    seen = {"target": "west", "target_brokers": 5, "source_brokers": None}
    assert instance.mirrormaker_brokers([]) == {}
    assert instance.mirrormaker_brokers([flow("orders", **seen)]) == {"west": 5}
    assert instance.mirrormaker_brokers(
        [flow("orders", **seen), flow("back", **seen | {"source_brokers": 2})]
    ) == {"east": 2, "west": 5}


@pytest.mark.parametrize(("target", "brokers"), [("W", 1), ("V", 5)])
def test_brokers_are_remembered_of_the_same_target_alone(target: str, brokers: int) -> None:
    remembered = {"target_cluster_id": "W", "replication_factor": 1}
    flows = [flow("orders", target_cluster_id=target, target_brokers=5)]
    assert instance.mirrormaker_clusters(flows, ["orders"], remembered)["brokers"] == brokers


def test_a_former_source_stays_known_until_it_has_another_alias() -> None:
    remembered = {"source_cluster_ids": {"east": "E", "north": "N"}}
    clusters = {"source_ids": {"west": "E"}, "target_id": "T", "brokers": 5}
    assert instance.mirrormaker_identity({}, clusters, remembered) == {
        "target_cluster_id": "T",
        "source_cluster_ids": {"north": "N", "west": "E"},
        "replication_factor": 3,
    }


def unit(name: str, **state: str) -> str:
    on = {"ActiveState": "active", "SubState": "waiting", "UnitFileState": "enabled"} | state
    return "\n".join(f"{key}={value}" for key, value in {"Id": name, **on}.items())


@pytest.mark.parametrize(
    ("units", "as_wanted"),
    [
        ([unit("a.timer")], True),
        ([unit("a.timer", ActiveState="inactive")], False),
        ([unit("a.timer", UnitFileState="disabled")], False),
        ([unit("a.timer", SubState="elapsed")], False),
        ([unit("a.timer"), unit("a.service", NeedDaemonReload="yes")], False),
        ([], False),
    ],
)
def test_a_timer_is_as_wanted_if_it_waits_and_starts_with_the_host(
    units: list[str], as_wanted: bool
) -> None:
    assert host.timers_as_wanted("\n\n".join(units), {"a.timer": True}) == as_wanted


def test_a_timer_that_is_not_wanted_is_neither_active_nor_enabled() -> None:
    off = unit("a.timer", ActiveState="inactive", UnitFileState="disabled")
    assert host.timers_as_wanted(off, {"a.timer": False})
    assert not host.timers_as_wanted(unit("a.timer"), {"a.timer": False})


def test_an_elapsed_timer_is_named() -> None:
    shown = "\n\n".join([unit("a.timer", SubState="elapsed"), unit("b.timer")])
    assert host.timers_elapsed(shown) == ["a.timer"]


BACK = {"present": True, "restored": True}
FINE = {"problem": "", "works": "mirrors", "said": "2 members"}


@pytest.mark.parametrize(
    ("back", "problem", "answer", "words"),
    [
        ({"present": False}, "", FINE, "there is none to go back to"),
        ({"present": True, "restored": False}, "", FINE, "there is nothing to go back to"),
        (BACK, "", FINE, "is back and mirrors (2 members)"),
        (BACK, "exit status 1", FINE, "is back, and does not start: exit status 1"),
        (
            BACK, "", FINE | {"problem": "no member", "said": "the login is refused by east:9092"},
            "is back, and is not confirmed either (the login is refused by east:9092)",
        ),
        (BACK, "", FINE | {"problem": "no member", "said": ""}, "not confirmed either (no member)"),
    ],
)  # fmt: skip
def test_a_run_that_goes_back_says_whether_that_configuration_works(
    back: dict[str, Any], problem: str, answer: dict[str, str], words: str
) -> None:
    assert words in instance.mirrormaker_outcome(back, False, "started", problem, answer)


def test_a_run_that_checks_goes_back_to_nothing() -> None:
    said = instance.mirrormaker_outcome(BACK, True, "started", "", FINE)
    assert said == "Nothing was changed."
