"""What an instance is refused for: its name, its flows, its hosts and their groups."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.conftest import Site, refused


def test_unknown_key_of_an_instance(site: Site) -> None:
    site.instance["numstreams"] = 2
    refused(site, "mirrormaker_instances.mirrormaker", "did you mean 'num_streams'?")


def test_undefined_flow(site: Site) -> None:
    site.instance["flows"] = ["order"]
    refused(site, "mirrormaker_instances.mirrormaker.flows", "did you mean 'orders'?")


def test_undefined_host(site: Site) -> None:
    site.instance["hosts"] = ["mirror3"]
    refused(site, "mirrormaker_instances.mirrormaker.hosts", "did you mean 'mirror")


@pytest.mark.parametrize(
    "name",
    [
        "kafka-mirror",
        "mirrormaker_a",
        "mirrormaker-",
        "Mirrormaker",
        "mirrormaker-A",
        "mirrormaker.a",
        "mirrormaker-" + "x" * 21,
    ],
)
def test_instance_name_that_cannot_be_a_unit_and_user(site: Site, name: str) -> None:
    site["instances"][name] = {"hosts": ["mirror1"], "flows": []}
    refused(site, f"mirrormaker_instances.{name}", "rename it")


def test_instance_name_of_greatest_length(site: Site) -> None:
    site["instances"]["mirrormaker-" + "x" * 20] = site["instances"].pop("mirrormaker")
    assert site.validate()["errors"] == []


def test_overlapping_flow_that_nothing_runs_is_only_mentioned(site: Site) -> None:
    site["flows"].append({**site.flow, "name": "more"})
    found = site.validate()
    assert found["errors"] == []
    assert "mirror_flows[more]" in found["warnings"][0]


def test_one_group_under_two_aliases(site: Site) -> None:
    site["clusters"]["east-too"] = site["clusters"]["east"]
    site["flows"].append({**site.flow, "name": "more", "source": "east-too", "topics": ["more"],
                          "group_id": "mirrormaker-orders"})  # fmt: skip
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(site, "mirror_flows[more].group_id", "each flow needs its own")


def test_flow_in_two_instances(site: Site) -> None:
    site["instances"]["mirrormaker-copy"] = {"hosts": ["mirror2"], "flows": ["orders"]}
    refused(site, "mirrormaker_instances.mirrormaker-copy.flows", "list all hosts there")


def test_two_flows_in_one_consumer_group(site: Site) -> None:
    site["flows"].append({**site.flow, "name": "more", "target": "north",
                          "group_id": "mirrormaker-orders"})  # fmt: skip
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(site, "mirror_flows[more].group_id", "'mirrormaker-orders'")


def test_mirrormaker_1_runs_one_flow(site: Site) -> None:
    del site["instances"]["mirrormaker-back"]
    site.instance["flows"] = ["orders", "back"]
    refused(site, "mirrormaker_instances.mirrormaker.flows", "exactly one")


def test_instance_without_flows(site: Site) -> None:
    site.instance["flows"] = []
    refused(site, "mirrormaker_instances.mirrormaker.flows", "is empty")


def test_instance_with_flows_of_another_engine(site: Site) -> None:
    site["flows"][1] |= {"engine": "mm2", "source": "north", "target": "west"}
    site.instance["flows"] = ["orders", "back"]
    del site["instances"]["mirrormaker-back"]
    refused(site, "mirrormaker_instances.mirrormaker.flows", "several engines (mm1, mm2)")


def test_started_instance_without_hosts(site: Site) -> None:
    site.instance["hosts"] = []
    refused(site, "mirrormaker_instances.mirrormaker.hosts", "set state to absent")


def test_absent_instance_needs_neither_flow_nor_report(site: Site) -> None:
    site["flows"] = []
    site["instances"] = {"mirrormaker": {"hosts": ["mirror1"], "state": "absent"}}
    site["groups"] = {}
    assert site.validate()["errors"] == []


@pytest.mark.parametrize("groups", [{}, {"mirror_report": []}, {"mirrormaker": ["mirror1"]}])
def test_mirror_without_report_host(site: Site, groups: dict[str, Any]) -> None:
    site["groups"] = groups
    refused(site, "group mirror_report", "add a host")


def test_groups_are_not_validated_unless_given(site: Site) -> None:
    site["groups"] = None
    assert site.validate()["errors"] == []


def test_worker_properties_mean_nothing_to_mirrormaker_1(site: Site) -> None:
    site.instance["worker_properties"] = {"a": 1}
    refused(site, "mirrormaker_instances.mirrormaker.worker_properties", "mm2")


def test_host_that_the_playbooks_pass_by_is_mentioned(site: Site) -> None:
    site["groups"]["mirrormaker"] = ["mirror2"]
    found = site.validate()
    assert found["errors"] == []
    assert "group mirrormaker: 'mirror1'" in found["warnings"][0]


@pytest.mark.parametrize(
    ("key", "value"),
    [("heap", "1gb"), ("heap", "1"), ("heap", 1), ("num_streams", 0), ("num_streams", "2"),
     ("num_streams", True), ("state", "running"), ("hosts", "mirror1"),
     ("flows", ["orders", "orders"]), ("consumer_properties", ["a"])],
)  # fmt: skip
def test_value_of_an_instance(site: Site, key: str, value: Any) -> None:
    site.instance[key] = value
    assert f"mirrormaker_instances.mirrormaker.{key}" in site.validate()["errors"][0]


def test_property_that_is_a_map(site: Site) -> None:
    site.instance["consumer_properties"] = {"fetch": {"min": 1}}
    refused(site, "consumer_properties['fetch']", "must be text")
