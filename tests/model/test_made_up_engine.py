"""An engine that mixes properties of the others: shared code assumes none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from mirror_model import acls, advisories, engines, permissions
from mirror_model import report as reports
from mirror_model.engine import Engine
from mirror_model.keys import ModelError
from mirror_model.layout import Placed
from mirror_model.process import Process
from mirror_model.validation import Validation

from tests.model.conftest import CONTROL, Site, refused

Flow = Mapping[str, Any]
HOST_NAMES = "ssl.endpoint.identification.algorithm"


def validate(validation: Validation, flows: Sequence[Flow]) -> None:
    for flow in flows:
        if "slow" in flow["properties"]:
            path = validation.paths[flow["name"]]
            validation.danger("errors.tolerance", flow["name"], f"{path}: is slow")


def render(clusters: Mapping[str, Any], process: Process, node: Mapping[str, Any]) -> Process:
    sources = [flow["source"] for flow in process.flows]
    return replace(
        process,
        script="copier.sh",
        arguments=[("--node", "NODE")],
        environment={"NODE": node, "HOME": Placed("{configuration}")},
        properties={"copier.properties": {"clusters": sorted(clusters)}},
        identity={**process.identity, "sources": sources},
        positions="a file",
    )


# Prefix names and several flows as of one engine; a chosen group, streams and a client's
# properties as of the other; the group is on the target, and a release can be too old.
COPIER = Engine(
    name="copier",
    title="The Copier",
    kafka_version="4.2.0",
    oldest="4.1.2",
    older="loses headers",
    several_flows=True,
    policies=("prefix", "identity"),
    flow_keys=frozenset(("consumer_groups", "group_id")),
    owner_keys=frozenset(("consumer_properties", "num_streams")),
    layers={"consumer_properties": "source"},
    flow_clients={"consumer": "source"},
    fill=lambda flow: {"group_id": flow["group_id"] or f"copier-{flow['name']}"},
    group=lambda flow: (flow["target"], flow["group_id"]),
    prefix=lambda flow, _: f"{flow['source']}~" if flow["replication_policy"] == "prefix" else "",
    unmirrored=lambda *_: ("hidden",),
    validate=validate,
    render=render,
    permissions=lambda flow, _: acls.rows(
        flow["target"], "group", acls.literal(flow["group_id"]), {"READ": "it ends"}
    ),
    report_permissions=lambda flow, _: acls.rows(
        flow["target"], "group", acls.literal(flow["group_id"]), {"DESCRIBE": "nobody knows"}
    ),
    report=lambda _clusters, _flow, owner: {"parallelism": owner.settings["num_streams"] or 1},
)


@pytest.fixture
def copied(mm2_site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Two flows of the made-up engine in one instance, beside a flow of another engine."""
    monkeypatch.setitem(engines.ENGINES, COPIER.name, COPIER)
    for flow in mm2_site["flows"]:
        flow["engine"] = COPIER.name
    mm2_site["flows"].append({"name": "refunds", "engine": "mm1", "source": "west",
                              "target": "north", "topics": ["refunds"]})  # fmt: skip
    mm2_site["instances"]["mirrormaker-refunds"] = {"hosts": ["mirror2"], "flows": ["refunds"]}
    return mm2_site


def made(site: Site, name: str = "mirrormaker", **node: Any) -> Process:
    return site.process(name, **node)


def test_a_sound_site_passes_without_a_word(copied: Site) -> None:
    assert copied.validate() == {"errors": [], "warnings": []}


# Judging


def test_its_own_validation_sees_its_own_flows(copied: Site) -> None:
    copied["flows"][2]["properties"] = {"consumer.max.poll.records": 1}
    copied.flow["properties"] = {"slow": 1}
    refused(copied, "mirror_flows[orders]: is slow", "list 'errors.tolerance:orders'")
    copied["accept"] = ["errors.tolerance:orders"]
    assert copied.validate()["errors"] == []


@pytest.mark.parametrize("key", ["worker_properties", "mm1_options"])
def test_a_key_of_another_engine(copied: Site, key: str) -> None:
    copied.instance[key] = {"offset.commit.interval.ms": 1}
    refused(copied, f"mirrormaker.{key}", "means nothing to engine copier")


def test_the_message_for_another_engine_names_it_as_reader_of_a_key(copied: Site) -> None:
    copied["flows"][2]["consumer_groups"] = ["billing"]
    refused(copied, "engine mm1, only to mm2 and mm2-connect and copier")


def test_an_unknown_engine_and_one_of_other_owners(copied: Site) -> None:
    copied.flow["engine"] = "coper"
    refused(copied, "is not one of mm1, mm2, mm2-connect, copier")
    with pytest.raises(ModelError, match="use mm1 or mm2 or mm2-connect or copier"):
        made(copied)
    copied.flow["engine"] = "mm2-connect"
    copied.flow["connect"] = "connect"
    errors = copied.validate()["errors"]
    assert any("name one of kafka_connect_clusters in connect of the flow" in e for e in errors)


def test_a_policy_that_it_does_not_have(copied: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = {**vars(COPIER), "policies": ("identity",), "several_flows": False}
    monkeypatch.setitem(engines.ENGINES, COPIER.name, Engine(**keeps))
    copied.flow["replication_policy"] = "prefix"
    first, second = copied.validate()["errors"]
    assert "The Copier keeps topic names; write identity" in first
    assert "The Copier runs exactly one flow; give every flow its own instance" in second


def test_one_group_on_one_cluster_for_two_flows(copied: Site) -> None:
    for flow in copied["flows"][:2]:
        flow["group_id"] = "copies"
    refused(copied, "mirror_flows[clicks].group_id", "'orders' on 'west'")
    copied["flows"][1]["target"] = "east"
    copied["instances"]["mirrormaker"]["flows"] = ["orders"]
    copied["instances"]["mirrormaker-clicks"] = {"hosts": ["mirror2"], "flows": ["clicks"]}
    assert copied.validate()["errors"] == []


def test_a_group_on_the_target_is_none_on_the_source(copied: Site) -> None:
    copied.flow["group_id"] = copied["flows"][2]["group_id"] = "mirror"
    refused(copied, "mirror_flows[refunds].group_id", "'orders' on 'west'")
    copied["flows"][2] |= {"source": "north", "target": "east"}
    assert copied.validate()["errors"] == []


def test_what_it_leaves_out_overlaps_nothing(copied: Site) -> None:
    copied["flows"][2] |= {"source": "east", "target": "west", "topics": ["hidden"]}
    copied.flow["topics"] = [".*"]
    assert copied.validate()["errors"] == []
    copied["flows"][2]["topics"] = ["seen"]
    refused(copied, "mirror_flows[refunds].topics", "'seen'", "arrive twice")


def test_a_circle_needs_the_same_names(copied: Site) -> None:
    copied["flows"][2] |= {"target": "east", "topics": ["orders"]}
    assert copied.validate()["errors"] == []
    for flow in copied["flows"][:2]:
        flow["replication_policy"] = "identity"
    refused(copied, "'orders', 'refunds'", "in a circle")


def test_a_release_in_which_it_does_not_work(copied: Site) -> None:
    copied.instance["kafka_version"] = "4.0.2"
    refused(copied, "The Copier of Kafka 4.0.2 loses headers; set it to 4.1.2 or newer")


def test_an_advisory_against_its_process(copied: Site) -> None:
    table = [{"cve": "CVE-1", "text": "x", "processes": {"copier": "refused"}, "fixed": ["9.0.0"]}]
    [found] = advisories.kafka_advisories("4.2.0", "copier", [], advisories=table)
    assert found["refused"]
    assert copied.validate()["errors"] == []


def test_a_client_of_several_sources_is_about_each(copied: Site) -> None:
    copied.instance["consumer_properties"] = {HOST_NAMES: ""}
    errors = copied.validate()["errors"]
    assert [error.rpartition("list ")[2] for error in errors] == [
        f"'{HOST_NAMES}:{alias}' in mirror_accept" for alias in ("east", "north")
    ]


@pytest.mark.parametrize("layer", ["flow", "instance", "cluster"])
def test_a_reference_that_comes_to_nothing(copied: Site, layer: str) -> None:
    key, value = "ssl.truststore.certificates", "${dir:/etc/kafka:ca.pem}"
    if layer == "flow":
        copied.flow["properties"] = {f"consumer.{key}": value}
    elif layer == "instance":
        copied.instance["consumer_properties"] = {key: value}
    else:
        copied["flows"].pop()
        del copied["instances"]["mirrormaker-refunds"]
        copied["clusters"]["north"]["properties"] = {key: value}
    refused(copied, key, "'/etc/kafka' is not where mirrormaker may read")


# Rendering, permissions and the report


def test_it_is_filled_in_and_rendered(copied: Site) -> None:
    process = made(copied, address="10.0.0.1")
    assert (process.engine, process.kafka_version) == ("copier", "4.2.0")
    assert [flow["group_id"] for flow in process.flows] == ["copier-orders", "copier-clicks"]
    assert {flow["replication_policy"] for flow in process.flows} == {"prefix"}
    assert process.description == "orders, clicks into west"
    assert (process.script, process.arguments) == ("copier.sh", [("--node", "NODE")])
    assert process.environment == {"NODE": {"address": "10.0.0.1"}, "HOME": "/etc/mirrormaker"}
    assert process.properties == {"copier.properties": {"clusters": ["east", "north", "west"]}}
    assert process.identity == {
        "engine": "copier", "flows": ["orders", "clicks"], "target": "west",
        "sources": ["east", "north"],
    }  # fmt: skip
    assert "east.mirror.jaas" in process.credentials
    assert made(copied, "mirrormaker-refunds").engine == "mm1"


def test_a_process_without_flows_names_what_runs(copied: Site) -> None:
    copied.instance["flows"] = []
    with pytest.raises(ModelError, match="engine mm1, or flows of engine mm2, or flows of engine "):
        made(copied)


def test_permissions_by_the_names_on_the_target(copied: Site) -> None:
    copied.flow["topics"] = ["orders", "hidden"]
    identities = copied["clusters"]["east"]["identities"]
    copied["clusters"]["west"] |= {"security_protocol": "SASL_SSL", "identities": identities}
    copied["flows"] = copied["flows"][:2]
    found = permissions.mirror_permissions(copied.model)
    rows = [
        f"{row['cluster']} {row['identity']} {row['resource']} {row['name']} {row['operation']}"
        for row in found
        if row["flows"] == ["orders"]
    ]
    assert rows == [
        "west mirror group copier-orders READ",
        "east report topic orders READ",
        "east report topic orders DESCRIBE_CONFIGS",
        "west report topic east~orders READ",
        "west report topic east~orders DESCRIBE_CONFIGS",
        "east report cluster kafka-cluster DESCRIBE",
        "west report group copier-orders DESCRIBE",
    ]


def test_what_the_report_has_to_know(copied: Site) -> None:
    copied.instance["num_streams"] = 3
    model = reports.mirror_report_model(
        copied.model,
        "report",
    )
    orders = model["flows"][0]
    assert orders.pop("permissions")
    assert orders == {
        "name": "orders", "engine": "copier", "source": "east", "target": "west",
        "topics": ["orders", r"payments\..*"], "topics_exclude": [],
        "left_out": [*CONTROL, ".{245}.*"], "worker_principal": "User:ANONYMOUS",
        "identity": "mirror",
        "start": "earliest",
        "include": rf"(?!(?:{'|'.join(CONTROL)}|.{{245}}.*|hidden)$)(?:orders|payments\..*)",
        "group_id": "copier-orders",
        "instance": "mirrormaker", "hosts": ["mirror1"], "sysconfig": "/etc/sysconfig/mirrormaker",
        "accept": [], "round_trips_ms": {}, "parallelism": 3,
    }  # fmt: skip
    assert [flow["engine"] for flow in model["flows"]] == ["copier", "copier", "mm1"]


def test_flows_for_which_somebody_else_creates_topics(
    copied: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names() -> list[str]:
        flows = reports.mirror_topic_flows(copied.model)
        return [flow["name"] for flow in flows]

    assert names() == ["orders", "clicks", "refunds"]
    monkeypatch.setitem(
        engines.ENGINES, COPIER.name, Engine(**{**vars(COPIER), "creates_topics": True})
    )
    assert names() == ["refunds"]
