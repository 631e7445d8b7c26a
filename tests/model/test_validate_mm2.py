"""What a site with MirrorMaker 2 is refused for; every message has a cure."""

from __future__ import annotations

from typing import Any

import pytest
from mirror_model.connectors import names as mm2_names

from tests.model.conftest import Site, mentioned, refused

FLOW = "mirror_flows[orders].properties"


WORKER = "mirrormaker_instances.mirrormaker.worker_properties"


def test_a_sound_site_passes_without_a_word(mm2_site: Site) -> None:
    assert mm2_site.validate() == {"errors": [], "warnings": []}


# The graph


def test_two_flows_between_the_same_clusters(mm2_site: Site) -> None:
    mm2_site["flows"].append({**mm2_site.flow, "name": "more", "topics": ["other"]})
    mm2_site.instance["flows"].append("more")
    refused(mm2_site, "mirror_flows[more]", "'orders'", "in one flow")


def test_two_flows_into_one_cluster_under_two_aliases(mm2_site: Site) -> None:
    mm2_site["clusters"]["west2"] = mm2_site["clusters"]["west"]
    mm2_site["flows"].append({**mm2_site.flow, "name": "more", "topics": ["other"],
                              "target": "west2"})  # fmt: skip
    mm2_site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(mm2_site, "mirror_flows[more]", "'orders'", "in one flow")


def test_flows_into_several_targets(mm2_site: Site) -> None:
    mm2_site["flows"][1] |= {"source": "east", "target": "north"}
    refused(mm2_site, "mirrormaker_instances.mirrormaker.flows", "several targets (north, west)")


def test_flows_of_several_policies(mm2_site: Site) -> None:
    mm2_site.flow["replication_policy"] = "identity"
    refused(mm2_site, "mirrormaker_instances.mirrormaker.flows", "different replication_policy")


def test_a_circle_of_identity(mm2_site: Site) -> None:
    mm2_site["flows"] = [
        {**mm2_site.flow, "replication_policy": "identity"},
        {**mm2_site.flow, "name": "back", "source": "west", "target": "east",
         "replication_policy": "identity"},
    ]  # fmt: skip
    mm2_site["instances"] = {
        "mirrormaker": {"hosts": ["mirror1"], "flows": ["orders"]},
        "mirrormaker-back": {"hosts": ["mirror2"], "flows": ["back"]},
    }
    refused(mm2_site, "'back', 'orders'", "in a circle")
    for flow in mm2_site["flows"]:
        flow["replication_policy"] = "prefix"
    assert mm2_site.validate()["errors"] == []


def test_another_engine_mirrors_the_same(mm2_site: Site) -> None:
    mm2_site["flows"].append({**mm2_site.flow, "name": "old", "engine": "mm1",
                              "consumer_groups": []})  # fmt: skip
    mm2_site["instances"]["mirrormaker-old"] = {"hosts": ["mirror2"], "flows": ["old"]}
    refused(mm2_site, "mirror_flows[old].topics", "arrive twice")


@pytest.mark.parametrize("topic", ["__consumer_offsets", "mm2-offsets.east.internal", "a.replica",
                                   "orders.west.eu", "west.orders", ".hidden"])  # fmt: skip
def test_topic_that_mirrormaker_2_never_mirrors(mm2_site: Site, topic: str) -> None:
    mm2_site.flow["topics"] = ["orders", topic]
    refused(mm2_site, "mirror_flows[orders].topics", f"'{topic}'", "remove it")


def test_own_internal_topics_overlap_nothing(mm2_site: Site) -> None:
    mm2_site["flows"].append({**mm2_site.flow, "name": "old", "engine": "mm1",
                              "consumer_groups": [], "topics": ["a.replica"]})  # fmt: skip
    mm2_site["instances"]["mirrormaker-old"] = {"hosts": ["mirror2"], "flows": ["old"]}
    mm2_site.flow["topics"] = [".*"]
    assert mm2_site.validate()["errors"] == []


def two_instances(site: Site, listeners: str | None) -> None:
    site["instances"]["mirrormaker"] = {"hosts": ["mirror1", "mirror2"], "flows": ["orders"]}
    site["instances"]["mirrormaker-clicks"] = {
        "hosts": ["mirror2", "report1"], "flows": ["clicks"],
        "worker_properties": {"listeners": listeners},
    }  # fmt: skip
    site["groups"]["mirrormaker"] = ["mirror1", "mirror2", "report1"]


@pytest.mark.parametrize("listeners", [None, "http://:8083", "http://0.0.0.0:8090,http://:8083"])
def test_two_nodes_on_one_host_and_port(mm2_site: Site, listeners: str | None) -> None:
    two_instances(mm2_site, listeners)
    refused(mm2_site, "mirrormaker_instances.mirrormaker-clicks.worker_properties['listeners']",
            "port 8083 on 'mirror2'", "http://:8084")  # fmt: skip


def test_two_nodes_on_one_host(mm2_site: Site) -> None:
    two_instances(mm2_site, "http://:8084")
    assert mm2_site.validate() == {"errors": [], "warnings": []}


# Versions


@pytest.mark.parametrize("version", ["3.7.2", "3.0.0"])
def test_release_that_translates_offsets_wrongly(mm2_site: Site, version: str) -> None:
    mm2_site["accept"] = ["CVE-2026-35554"]
    mm2_site.instance["kafka_version"] = version
    refused(mm2_site, "mirrormaker_instances.mirrormaker.kafka_version", "3.8.0 or newer")


def test_release_that_misroutes_records(mm2_site: Site) -> None:
    mm2_site.instance["kafka_version"] = "4.1.1"
    refused(mm2_site, "mirrormaker_instances.mirrormaker.kafka_version", "CVE-2026-35554")


# Keys of another engine


@pytest.mark.parametrize(
    "key", ["num_streams", "mm1_options", "consumer_properties", "producer_properties"]
)
def test_instance_key_of_mirrormaker_1(mm2_site: Site, key: str) -> None:
    mm2_site.instance[key] = 2 if key == "num_streams" else {"acks": "all"} if "prod" in key else {
        "max.poll.records": 1} if "cons" in key else {"offset.commit.interval.ms": 1}  # fmt: skip
    refused(mm2_site, f"mirrormaker_instances.mirrormaker.{key}", "only to mm1")


def test_group_of_mirrormaker_1(mm2_site: Site) -> None:
    mm2_site.flow["group_id"] = "old"
    refused(mm2_site, "mirror_flows[orders].group_id", "only to mm1")


@pytest.mark.parametrize("separator", ["/", "a", " ", ".*", "("])
def test_separator_that_no_topic_could_hold(mm2_site: Site, separator: str) -> None:
    mm2_site.instance["worker_properties"] = {"replication.policy.separator": separator}
    refused(mm2_site, f"{WORKER}['replication.policy.separator']", "use '.'")


@pytest.mark.parametrize("side", ["source", "target"])
def test_alias_that_holds_the_separator(mm2_site: Site, side: str) -> None:
    mm2_site["flows"].pop()
    mm2_site.instance.update(
        {"flows": ["orders"], "worker_properties": {"replication.policy.separator": "_"}}
    )
    mm2_site["clusters"]["eu_1"] = {"bootstrap_servers": ["eu1:9092"]}
    mm2_site.flow[side] = "eu_1"
    refused(mm2_site, f"mirror_flows[orders].{side}", "'eu_1'", "another")
    mm2_site.instance["worker_properties"] = {"replication.policy.separator": "."}
    assert mm2_site.validate()["errors"] == []


@pytest.mark.parametrize("value", ["10000", True, 0, 1.5])
def test_flush_interval_is_a_number(mm2_site: Site, value: Any) -> None:
    mm2_site.instance["worker_properties"] = {"offset.flush.interval.ms": value}
    refused(mm2_site, f"{WORKER}['offset.flush.interval.ms']", "whole number")


@pytest.mark.parametrize("value", ["3", True, 0, -1])
def test_replication_factor_is_a_number(mm2_site: Site, value: Any) -> None:
    mm2_site.flow["properties"] = {"replication.factor": value}
    refused(mm2_site, "replication.factor of 'orders'", "whole number")


def test_server_of_an_instance_on_one_host_is_mentioned(mm2_site: Site) -> None:
    mm2_site.instance["worker_properties"] = {"listeners": "http://:8090"}
    mentioned(mm2_site, f"{WORKER}['listeners']", "means nothing")


# Dangers


def test_dropping_records_that_cannot_be_written(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"errors.tolerance": "all"}
    refused(mm2_site, "drops records", "list 'errors.tolerance:orders' in mirror_accept")
    mm2_site["accept"] = ["errors.tolerance:orders"]
    mentioned(mm2_site, "drops records", "accepted")


def test_groups_need_offset_syncs(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"emit.offset-syncs.enabled": False}
    refused(mm2_site, f"{FLOW}['emit.offset-syncs.enabled']", "no group can follow")
    mm2_site.flow["consumer_groups"] = []
    mentioned(mm2_site, f"{FLOW}['emit.offset-syncs.enabled']", "cannot see")


@pytest.mark.parametrize("key", mm2_names.CONNECTOR_PLUGINS)
def test_records_that_change_on_their_way_are_mentioned(mm2_site: Site, key: str) -> None:
    mm2_site.flow["properties"] = {key: "one", f"{key}.one.type": "org.example.One"}
    mentioned(mm2_site, f"{FLOW}['{key}']", "altered")


@pytest.mark.parametrize("layer", ["cluster", "worker", "flow"])
def test_weak_acknowledgement_is_mentioned(mm2_site: Site, layer: str) -> None:
    if layer == "cluster":
        mm2_site["clusters"]["west"]["properties"] = {"acks": 1}
    elif layer == "worker":
        mm2_site.instance["worker_properties"] = {"producer.acks": 1}
    else:
        mm2_site.flow["properties"] = {"producer.override.acks": 1}
    mentioned(mm2_site, "acks']", "'west' fails")


@pytest.mark.parametrize("entry", ["takeover:orders", "errors.tolerance:clicks",
                                   "identity:mirrormaker"])  # fmt: skip
def test_known_acceptance(mm2_site: Site, entry: str) -> None:
    mm2_site["accept"] = [entry]
    assert mm2_site.validate() == {"errors": [], "warnings": []}
