"""What a site with MirrorMaker 1 is refused for; every message has a cure."""

from __future__ import annotations

from typing import Any

import pytest
from mirror_model import client_names
from mirror_model.engines.mm1 import OPTIONS

from tests.model.conftest import Site, mentioned, refused


def test_unknown_option_of_mirrormaker(site: Site) -> None:
    site.instance["mm1_options"] = {"offset.comit.interval.ms": 1}
    refused(site, "mm1_options", "did you mean 'offset.commit.interval.ms'?")


@pytest.mark.parametrize("option", sorted(client_names.REMOVED_OPTIONS))
def test_removed_option(site: Site, option: str) -> None:
    site.instance["mm1_options"] = {option: 1}
    refused(site, f"mm1_options['{option}']", client_names.REMOVED_OPTIONS[option])


@pytest.mark.parametrize("key", sorted(client_names.CURES))
@pytest.mark.parametrize("side", ["consumer_properties", "producer_properties"])
def test_legacy_client_key(site: Site, key: str, side: str) -> None:
    site.instance[side] = {key: "x"}
    refused(site, f"{side}['{key}']", client_names.CURES[key])


def test_legacy_client_key_of_a_cluster_and_of_a_flow(site: Site) -> None:
    site["clusters"]["west"]["properties"] = {"metadata.broker.list": "x"}
    refused(site, "kafka_clusters.west.properties['metadata.broker.list']")
    site["clusters"]["west"]["properties"] = {}
    site.flow["properties"] = {"consumer.groupid": "x"}
    refused(site, "mirror_flows[orders].properties['consumer.groupid']", "group_id")


def test_flow_property_without_a_side(site: Site) -> None:
    site.flow["properties"] = {"max.poll.records": 1}
    refused(site, "properties['max.poll.records']", "'consumer.' or 'producer.'")


@pytest.mark.parametrize("option", sorted(OPTIONS))
@pytest.mark.parametrize("side", ["consumer_properties", "producer_properties"])
def test_command_line_option_among_properties(site: Site, option: str, side: str) -> None:
    site.instance[side] = {option: 1}
    refused(site, f"{side}['{option}']", "set mm1_options")


@pytest.mark.parametrize("key", sorted(client_names.OWNED_KEYS))
def test_property_that_the_model_writes(site: Site, key: str) -> None:
    site.instance["consumer_properties"] = {key: "CANARY"}
    refused(site, f"consumer_properties['{key}']", "written from the model")


def danger(site: Site, name: str, word: str) -> None:
    refused(site, word, f"list '{name}:orders' in mirror_accept")
    site["accept"] = [f"{name}:orders"]
    found = site.validate()
    assert found["errors"] == []
    assert word in found["warnings"][0]
    site["accept"] = [f"{name}:back"]
    refused(site, word)


@pytest.mark.parametrize("value", [True, "true", "True"])
@pytest.mark.parametrize("layer", ["instance", "flow", "cluster"])
def test_auto_commit(site: Site, value: Any, layer: str) -> None:
    if layer == "instance":
        site.instance["consumer_properties"] = {"enable.auto.commit": value}
    elif layer == "flow":
        site.flow["properties"] = {"consumer.enable.auto.commit": value}
    else:
        site["clusters"]["east"]["properties"] = {"enable.auto.commit": value}
    danger(site, "enable.auto.commit", "enable.auto.commit")


def test_dropping_records_that_cannot_be_written(site: Site) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": False}
    danger(site, "abort.on.send.failure", "drops records")


def test_producer_type(site: Site) -> None:
    site.instance["producer_properties"] = {"producer.type": "sync"}
    danger(site, "producer.type", "producer.type")


@pytest.mark.parametrize("value", ["false", 0, "no"])
def test_abort_on_send_failure_is_a_boolean(site: Site, value: Any) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": value}
    refused(site, "mm1_options['abort.on.send.failure']", "true or false")


@pytest.mark.parametrize("value", [0, -1, "10000", True, 1.5])
def test_commit_interval_is_a_number(site: Site, value: Any) -> None:
    site.instance["mm1_options"] = {"offset.commit.interval.ms": value}
    refused(site, "mm1_options['offset.commit.interval.ms']", "milliseconds")


@pytest.mark.parametrize(
    ("side", "name", "near"),
    [("consumer", "fetch.min.byte", "fetch.min.bytes"), ("producer", "linger.m", "linger.ms")],
)
def test_property_that_looks_mistyped_is_mentioned(
    site: Site, side: str, name: str, near: str
) -> None:
    site.instance[f"{side}_properties"] = {name: 1}
    mentioned(site, f"{side}_properties['{name}']", f"did you mean '{near}'?")


def test_property_of_a_plug_in_passes(site: Site) -> None:
    site.instance["consumer_properties"] = {"my.interceptor.level": 1}
    assert site.validate() == {"errors": [], "warnings": []}


def test_weak_acknowledgement_is_mentioned(site: Site) -> None:
    site.instance["producer_properties"] = {"acks": 1}
    mentioned(site, "producer_properties['acks']", "'west'")
