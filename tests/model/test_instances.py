"""Settings of a process, and changes of its identity."""

from __future__ import annotations

from typing import Any

import pytest
from mirror_model import instances, keys
from mirror_model import report as reports
from mirror_model.keys import ModelError
from mirror_model.process import Process

from tests.model.conftest import Site


def instance(site: Site, name: str = "mirrormaker") -> Process:
    return site.process(name)


def report(site: Site, only: Any = None, **more: Any) -> dict[str, Any]:
    return reports.mirror_report_model(
        site.model,
        "report",
        only,
        **more,
    )


def test_an_instance_knows_what_it_runs(site: Site) -> None:
    made = instance(site)
    assert made.name == "mirrormaker"
    assert made.engine == "mm1"
    assert made.state == "started"
    assert made.heap == "192m"
    assert made.kafka_version == "3.9.2"
    assert made.target == "west"
    assert made.description == "orders from east to west"
    assert made.positions == "group mirrormaker-orders on east"
    assert [flow["name"] for flow in made.flows] == ["orders"]
    assert made.identity == {
        "engine": "mm1", "flows": ["orders"], "source": "east", "target": "west",
        "group_id": "mirrormaker-orders", "policy": "identity",
    }  # fmt: skip


def test_no_secret_outside_credentials(site: Site) -> None:
    made = instance(site)
    assert "CANARY-east" in str(made.credentials)
    assert "CANARY" not in str(made)
    assert "CANARY" not in str(report(site))


def test_the_release_of_an_instance_is_its_own(site: Site) -> None:
    site.instance["kafka_version"] = "3.9.3"
    assert instance(site).kafka_version == "3.9.3"
    assert instance(site, "mirrormaker-back").kafka_version == "3.9.2"


@pytest.mark.parametrize(("heap", "limit"), [("1g", 2048), ("512m", 1280), ("3G", 5120)])
def test_the_memory_of_a_process_is_bounded_by_its_heap(site: Site, heap: str, limit: int) -> None:
    site.instance["heap"] = heap
    assert instance(site).memory_mib == limit


def test_null_means_the_default(site: Site) -> None:
    site.instance.update({"heap": None, "consumer_properties": None})
    site.flow.update({"group_id": None, "topics_exclude": None, "start": None})
    site["clusters"]["west"] |= {"security_protocol": None, "identities": None, "properties": None}
    made = instance(site)
    assert (made.heap, made.identity["group_id"]) == ("192m", "mirrormaker-orders")


def test_an_absent_instance_can_still_be_asked_for(site: Site) -> None:
    site["instances"]["mirrormaker"] = {"state": "absent"}
    made = instance(site)
    assert made.state == "absent"
    assert made.flows == ()
    assert made.properties == {}
    assert made.credentials == {}


@pytest.mark.parametrize("name", ["mirrormaker-bak", ""])
def test_an_unknown_instance_is_named(site: Site, name: str) -> None:
    with pytest.raises(ModelError, match="mirrormaker_instances"):
        instance(site, name)


REMEMBERED = {
    "engine": "mm1", "flows": ["orders"], "source": "east", "target": "west",
    "group_id": "mirrormaker-orders", "policy": "identity", "source_cluster_id": "E",
    "target_cluster_id": "W",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group_id": "other"}, ["group_id mirrormaker-orders -> other"]),
        ({"engine": "mm2"}, ["engine mm1 -> mm2"]),
        ({"policy": "prefix"}, ["policy identity -> prefix"]),
        ({"source_cluster_id": "X"}, ["source_cluster_id E -> X"]),
        ({"target_cluster_id": "X"}, ["target_cluster_id W -> X"]),
        ({"target_cluster_id": None, "source": "ost", "flows": ["orders2"]}, []),
        ({}, []),
    ],
)
def test_changes_of_an_identity(change: dict[str, Any], words: list[str]) -> None:
    assert instances.mirror_identity_changes(REMEMBERED, {**REMEMBERED, **change}) == words
    assert instances.mirror_identity_changes({}, {**REMEMBERED, **change}) == []


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"east": "E", "north": "N"}, []),
        ({"east": "E"}, []),
        ({"east": "E", "north": "N", "south": "S"}, []),
        ({"east": "E", "north": None}, []),
        ({"east": "E", "north": "X"}, ["cluster id of source north N -> X"]),
        ({"east": "E", "nord": "N"}, ["alias of source cluster N north -> nord"]),
    ],
)
def test_changes_of_the_sources(now: dict[str, str], words: list[str]) -> None:
    remembered = {"engine": "mm2", "separator": ".", "source_cluster_ids":
                  {"east": "E", "north": "N"}}  # fmt: skip
    current = {**remembered, "source_cluster_ids": now}
    assert instances.mirror_identity_changes(remembered, current) == words


def test_plain_values_carry_nothing_along() -> None:
    class Tagged(str):
        __slots__ = ()

    made = keys.plain({Tagged("a"): (Tagged("b"), True, 1.5, None)})
    assert made == {"a": ["b", True, 1.5, None]}
    assert type(made["a"][0]) is str
    assert type(next(iter(made))) is str
