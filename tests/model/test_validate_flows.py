"""What a flow is refused for: its keys, its engine, its ends and its patterns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.conftest import Site, refused


def test_unknown_key_of_a_flow(site: Site) -> None:
    site.flow["topic"] = ["x"]
    refused(site, "mirror_flows[orders]", "did you mean 'topics'?")


@pytest.mark.parametrize("side", ["source", "target"])
def test_undefined_cluster(site: Site, side: str) -> None:
    site.flow[side] = "nort"
    refused(site, f"mirror_flows[orders].{side}", "did you mean 'north'?")


def test_flow_defined_twice(site: Site) -> None:
    site["flows"].append({**site.flow, "topics": ["other"]})
    refused(site, "mirror_flows[orders]", "used twice")


def test_source_is_target(site: Site) -> None:
    site.flow["target"] = "east"
    refused(site, "mirror_flows[orders].target", "name another cluster")


def test_two_aliases_of_one_cluster(site: Site) -> None:
    site["clusters"]["west"]["bootstrap_servers"] = ["EAST2:9092"]
    site["flows"].pop()
    del site["instances"]["mirrormaker-back"]
    refused(site, "mirror_flows[orders]", "east2:9092")


def test_unknown_engine(site: Site) -> None:
    site.flow["engine"] = "mm3"
    refused(site, "mirror_flows[orders].engine", "mm1, mm2, mm2-connect")


@pytest.mark.parametrize(("key", "value"), [("tasks_max", 2), ("consumer_groups", ["a"]),
                                            ("connect", "main")])  # fmt: skip
def test_flow_key_of_another_engine(site: Site, key: str, value: Any) -> None:
    site.flow[key] = value
    refused(site, f"mirror_flows[orders].{key}", "remove it")


def test_mirrormaker_1_cannot_rename_topics(site: Site) -> None:
    site.flow["replication_policy"] = "prefix"
    refused(site, "mirror_flows[orders].replication_policy", "identity")


def test_starting_at_the_end_is_mentioned(site: Site) -> None:
    site.flow["start"] = "latest"
    found = site.validate()
    assert found["errors"] == []
    assert "mirror_flows[orders].start" in found["warnings"][0]


@pytest.mark.parametrize("topics", [[], "orders", [""], [7]])
def test_topics(site: Site, topics: Any) -> None:
    site.flow["topics"] = topics
    assert "mirror_flows[orders].topics" in site.validate()["errors"][0]


def test_pattern_out_of_the_portable_subset(site: Site) -> None:
    site.flow["topics_exclude"] = ["(?=x)y"]
    refused(site, "mirror_flows[orders].topics_exclude", "lookahead")
