"""Topics that would be mirrored twice, or in a circle."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.conftest import Site, refused


def test_two_flows_mirror_a_topic_twice(site: Site) -> None:
    site["flows"].append({**site.flow, "name": "more", "topics": [r"pay.*\.eu"]})
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(site, "mirror_flows[more].topics", "'payments.eu'", "'orders'", "arrive twice")


def test_two_flows_mirror_a_topic_twice_by_another_alias(site: Site) -> None:
    site["clusters"]["west2"] = {"bootstrap_servers": ["west2:9092", "west1:9092"]}
    site["flows"].append({**site.flow, "name": "more", "target": "west2", "group_id": "more"})
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(site, "mirror_flows[more].topics", "'orders'", "arrive twice")


@pytest.mark.parametrize(
    "change",
    [{"topics": ["orders2"]}, {"topics": ["payments"]}, {"target": "north"},
     {"topics": [r"pay.*\.eu"], "topics_exclude": [r"payments\..*"]}],
)  # fmt: skip
def test_flows_that_do_not_overlap(site: Site, change: dict[str, Any]) -> None:
    site["flows"].append({**site.flow, "name": "more", **change})
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    assert site.validate()["errors"] == []


def test_two_flows_carry_a_topic_to_and_fro(site: Site) -> None:
    site["flows"][1]["topics"] = ["refunds", "orders"]
    refused(site, "'back', 'orders'", "'orders' in a circle", "topics_exclude")


def test_circle_over_three_clusters(site: Site) -> None:
    site["flows"][1] |= {"source": "west", "target": "north", "topics": [".*"]}
    site["flows"].append({**site.flow, "name": "close", "source": "north", "target": "east",
                          "topics": [".*"]})  # fmt: skip
    site["instances"]["mirrormaker-close"] = {"hosts": ["mirror2"], "flows": ["close"]}
    refused(site, "west -> north -> east -> west", "in a circle")


def test_a_circle_over_a_second_alias(site: Site) -> None:
    site["clusters"]["west2"] = {"bootstrap_servers": ["west2:9092", "west1:9092"]}
    site["flows"][1] |= {"source": "west2", "topics": ["orders"]}
    refused(site, "'back', 'orders'", "'orders' in a circle")


def test_no_circle_where_no_topic_goes_all_the_way(site: Site) -> None:
    site["flows"][1] |= {"source": "west", "target": "north", "topics": ["orders"]}
    site["flows"].append({**site.flow, "name": "close", "source": "north", "target": "east",
                          "topics": [r"payments\..*"]})  # fmt: skip
    site["instances"]["mirrormaker-close"] = {"hosts": ["mirror2"], "flows": ["close"]}
    assert site.validate()["errors"] == []


@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_a_mirror_that_does_not_run_closes_no_circle(site: Site, state: str) -> None:
    site["flows"][1]["topics"] = ["orders"]
    site["instances"]["mirrormaker-back"]["state"] = state
    assert site.validate()["errors"] == []
