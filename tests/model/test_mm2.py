"""MirrorMaker 2's file, checked by an independent statement of its rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirror_model import kafka_names, permissions
from mirror_model import report as reports
from mirror_model.connectors import names as mm2_names
from mirror_model.connectors import settable
from mirror_model.connectors import settings as mm2_settings
from mirror_model.engines.mm2 import keys as mm2_keys
from mirror_model.keys import ModelError
from mirror_model.process import Process
from mirror_model.render import text_of, to_java_properties

from tests.model.conftest import Site
from tests.model.test_render import read_by_java

VERSION = {"3.9": "3.9.2", "4.3": "4.3.1"}


def made(site: Site, **node: Any) -> Process:
    return site.process(**node)


def rendered(site: Site, **node: Any) -> dict[str, Any]:
    return dict(made(site, **node).properties["mm2.properties"])


def reported(site: Site) -> dict[str, Any]:
    model = reports.mirror_report_model(
        site.model,
        "report",
        "orders",
    )
    flow: dict[str, Any] = model["flows"][0]
    return flow


# The process


def test_an_instance_knows_what_it_runs(mm2_site: Site) -> None:
    process = made(mm2_site)
    assert process.engine == "mm2"
    assert process.kafka_version == "4.3.1"
    assert process.script == "connect-mirror-maker.sh"
    assert process.arguments == [("", "MM_CONFIG"), ("--clusters", "MM_CLUSTERS")]
    assert process.environment == {
        "MM_CONFIG": "/etc/mirrormaker/mm2.properties", "MM_CLUSTERS": "west"
    }  # fmt: skip
    assert process.description == "orders, clicks into west"
    assert process.positions == (
        "topics mm2-offsets.east.internal and mm2-offsets.north.internal on west"
    )
    assert process.identity == {
        "engine": "mm2", "flows": ["orders", "clicks"], "sources": ["east", "north"],
        "target": "west", "policy": "prefix", "separator": ".",
    }  # fmt: skip
    assert "CANARY-east" in str(process.credentials)
    assert "CANARY" not in str(process)


def test_nothing_is_written_to_a_source(mm2_site: Site) -> None:
    properties = rendered(mm2_site)
    assert properties["emit.heartbeats.enabled"] is False
    for source in ("east", "north"):
        assert properties[f"{source}->west.enabled"] is True
        assert properties[f"{source}->west.offset-syncs.topic.location"] == "target"
        assert properties[f"{source}->west.emit.heartbeats.enabled"] is False
        assert properties[f"west->{source}.enabled"] is False
        assert properties[f"west->{source}.emit.heartbeats.enabled"] is False


def test_groups_follow_only_where_they_are_named(mm2_site: Site) -> None:
    properties = rendered(mm2_site)
    assert properties["east->west.groups"] == ["billing"]
    for flow, follows in (("east->west", True), ("north->west", False)):
        assert properties[f"{flow}.sync.group.offsets.enabled"] is follows
        assert properties[f"{flow}.emit.checkpoints.enabled"] is follows


def test_the_report_knows_what_is_left_out_and_what_is_synced(mm2_site: Site) -> None:
    flow = reported(mm2_site)
    assert flow["groups_exclude"] == ["console-consumer-.*", "connect-.*", "__.*"]
    assert "min.insync.replicas" in flow["config_exclude"]
    assert (flow["sync_topic_configs"], flow["checkpoint_seconds"]) == (True, 60)
    mm2_site.flow["properties"] = {
        "groups.exclude": "old-.*, test", "config.properties.exclude": "retention.*",
        "sync.topic.configs.enabled": False, "emit.checkpoints.interval.seconds": 5,
    }  # fmt: skip
    flow = reported(mm2_site)
    assert flow["groups_exclude"] == ["old-.*", "test"]
    assert flow["config_exclude"] == ["retention.*"]
    assert (flow["sync_topic_configs"], flow["checkpoint_seconds"]) == (False, 5)


@pytest.mark.parametrize(
    ("policy", "topics", "properties", "synced"),
    [
        ("identity", ["orders", "p.*"], {}, False),
        ("identity", ["orders", "payments.eu"], {}, True),
        ("prefix", [".*"], {}, True),
        ("identity", [".*"], {"sync.topic.configs.enabled": True}, True),
        ("identity", [".*"], {"sync.topic.configs.enabled": None}, True),
    ],
)
def test_a_name_that_somebody_may_choose_sets_no_topic_of_the_target(
    mm2: Site, policy: str, topics: list[str], properties: dict[str, Any], synced: bool
) -> None:
    mm2.flow.update(replication_policy=policy, topics=topics, properties=properties)
    key = "east->west.sync.topic.configs.enabled"
    # Kafka's own default sets them.
    assert str(rendered(mm2).get(key, True)).lower() == str(synced).lower()
    assert reported(mm2)["sync_topic_configs"] is synced
    rows = permissions.mirror_permissions(mm2.model)
    assert any(row["operation"] == "ALTER_CONFIGS" for row in rows) is synced


@pytest.mark.parametrize(("brokers", "factor"), [(None, 3), (1, 1), (2, 2), (9, 3)])
def test_replication_factors_follow_the_brokers(
    mm2_site: Site, brokers: int | None, factor: int
) -> None:
    properties = rendered(mm2_site, brokers=brokers)
    factors = {key: value for key, value in properties.items() if "replication.factor" in key}
    assert len(factors) == 2 * len(mm2_settings.FLOW_FACTORS) + len(mm2_settings.WORKER_FACTORS)
    assert set(factors.values()) == {factor}


def test_replication_factors_can_be_set(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"replication.factor": 2}
    mm2_site.instance["worker_properties"] = {"offset.storage.replication.factor": 5}
    properties = rendered(mm2_site, brokers=1)
    assert properties["east->west.replication.factor"] == 2
    assert properties["north->west.replication.factor"] == 1
    assert properties["west.offset.storage.replication.factor"] == 5
    assert reported(mm2_site)["replication_factors"] == {
        "replication.factor": 2, "offset.storage.replication.factor": 5
    }  # fmt: skip


def test_nodes_of_one_instance_reach_each_other(mm2_site: Site) -> None:
    assert "listeners" not in rendered(mm2_site, address="10.0.0.1")
    mm2_site.instance["hosts"] = ["mirror1", "mirror2"]
    properties = rendered(mm2_site, address="10.0.0.1")
    assert properties["dedicated.mode.enable.internal.rest"] is True
    assert properties["listeners"] == "http://10.0.0.1:8083"
    assert properties["rest.advertised.host.name"] == "10.0.0.1"
    assert rendered(mm2_site, address="2001:db8::1")["listeners"] == "http://[2001:db8::1]:8083"
    mm2_site.instance["worker_properties"] = {"listeners": "http://:8090"}
    properties = rendered(mm2_site, address="10.0.0.1")
    assert properties["listeners"] == "http://:8090"
    assert properties["rest.advertised.host.name"] == "10.0.0.1"


def test_security_of_a_cluster_stands_once_and_the_rest_with_its_clients(mm2_site: Site) -> None:
    mm2_site["clusters"]["east"]["properties"] = {
        "ssl.endpoint.identification.algorithm": "", "request.timeout.ms": 1,
        "max.poll.records": 7, "my.plugin": "x",
    }  # fmt: skip
    properties = rendered(mm2_site)
    directory = "/run/credentials/mirrormaker.service"
    assert properties["east.sasl.jaas.config"] == f"${{dir:{directory}:east.mirror.jaas}}"
    assert properties["config.providers.dir.param.allowed.paths"] == directory
    assert properties["east.ssl.endpoint.identification.algorithm"] == ""
    assert "east.consumer.ssl.endpoint.identification.algorithm" not in properties
    assert properties["east.consumer.request.timeout.ms"] == 1
    assert properties["east.admin.request.timeout.ms"] == 1
    assert properties["east.consumer.max.poll.records"] == 7
    assert "east.admin.max.poll.records" not in properties
    assert properties["east.admin.my.plugin"] == "x"


def test_later_layers_win_and_null_removes(mm2_site: Site) -> None:
    name = "north.consumer.fetch.min.bytes"
    assert rendered(mm2_site)[name] == 65536
    mm2_site["clusters"]["north"]["properties"] = {"fetch.min.bytes": 1}
    assert rendered(mm2_site)[name] == 1
    mm2_site["flows"][1]["properties"] = {"consumer.fetch.min.bytes": 2}
    assert rendered(mm2_site)[name] == 2
    mm2_site["flows"][1]["properties"] = {"consumer.fetch.min.bytes": None}
    assert name not in rendered(mm2_site)
    mm2_site["clusters"]["west"]["properties"] = {"linger.ms": 1}
    assert rendered(mm2_site)["west.producer.linger.ms"] == 1
    mm2_site.instance["worker_properties"] = {"producer.linger.ms": 2}
    assert rendered(mm2_site)["west.producer.linger.ms"] == 2
    mm2_site.instance["worker_properties"] = {"producer.linger.ms": None}
    assert "west.producer.linger.ms" not in rendered(mm2_site)


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_flow_starts_where_it_says(mm2_site: Site, start: str) -> None:
    mm2_site.flow["start"] = start
    assert rendered(mm2_site)["east.consumer.auto.offset.reset"] == start


def test_plug_ins_are_looked_for_twice_in_the_same_way(mm2_site: Site) -> None:
    properties = rendered(mm2_site)
    assert properties["plugin.discovery"] == "service_load"
    assert properties["west.plugin.discovery"] == "service_load"
    mm2_site.instance["worker_properties"] = {"plugin.discovery": None, "plugin.path": "/opt/a"}
    properties = rendered(mm2_site)
    assert properties["plugin.path"] == properties["west.plugin.path"] == "/opt/a"
    assert not {"plugin.discovery", "west.plugin.discovery"} & set(properties)


def test_without_offset_syncs_their_topic_is_not_mentioned(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"emit.offset-syncs.enabled": False}
    assert not any(key.startswith("east->west.offset-syncs.") for key in rendered(mm2_site))


@pytest.mark.parametrize("change", [{"target": "north"}, {"engine": "mm1"},
                                    {"replication_policy": "identity"}])  # fmt: skip
def test_flows_that_no_process_could_run(mm2_site: Site, change: dict[str, Any]) -> None:
    mm2_site["flows"][1] |= change
    with pytest.raises(ModelError, match="differ"):
        made(mm2_site)


# The prefixes


def is_read(key: str, aliases: set[str], pairs: set[str], line: str) -> bool:
    """Whether MirrorMaker 2 reads a key where it stands; an independent statement of the rule.

    What stands at the top reaches workers only as replication policy, and connectors as their own
    key; what begins with a cluster reaches that cluster's clients, and workers if it is the
    target; what begins with a pair reaches the connectors of the pair.
    """
    first, _, rest = key.partition(".")
    if first in pairs:
        client, _, name = rest.partition(".")
        if client == "producer" and name.startswith("override."):
            return name.removeprefix("override.") in kafka_names.PRODUCER[line]
        return rest in mm2_names.CONNECTOR[line]
    if first in aliases:
        client, _, name = rest.partition(".")
        tables = {"consumer": kafka_names.CONSUMER, "producer": kafka_names.PRODUCER,
                  "admin": kafka_names.ADMIN}  # fmt: skip
        if client in tables and name in tables[client][line]:
            return any(pair.startswith(f"{first}->") for pair in pairs) or first == "west"
        if rest in kafka_names.SECURITY[line]:
            return True
        return first == "west" and rest in mm2_names.WORKER[line]
    return key in mm2_names.REST or bool(re.match(
        r"(clusters|dedicated\.mode\.enable\.internal\.rest|listeners\.https\.ssl\..+"
        r"|plugin\.(discovery|path)|replication\.policy\..+|config\.providers(\..+)?"
        r"|emit\.heartbeats\.enabled)$", key
    ))  # fmt: skip


def test_the_rule_calls_ignored_what_is_ignored() -> None:
    for key in ("producer.acks", "consumer.max.poll.records", "offset.flush.interval.ms",
                "group.id", "exactly.once.source.support", "east.offset.flush.interval.ms",
                "east->west.offset.flush.interval.ms", "east->west.producer.acks",
                "source.cluster.max.poll.records", "west.topics"):  # fmt: skip
        assert not is_read(key, {"east", "west"}, {"east->west", "west->east"}, "4.3")


def anything(line: str) -> st.SearchStrategy[dict[str, Any]]:
    """Whatever a user may set for a site of one release line, plug-ins' own names apart."""
    client = {"consumer": kafka_names.CONSUMER, "producer": kafka_names.PRODUCER,
              "admin": kafka_names.ADMIN}  # fmt: skip
    taken = kafka_names.SECURITY[line] | set(settable.OWNED_CLIENT_KEYS)

    def under(prefix: str, names: frozenset[str]) -> list[str]:
        return [prefix + name for name in names - taken]

    flow = sorted(settable.connector_keys(line, mm2_keys.OWNED_FLOW_KEYS)) + under(
        "consumer.", client["consumer"][line] - {"auto.offset.reset"}
    ) + under("producer.override.", client["producer"][line])  # fmt: skip
    worker = sorted(mm2_keys.worker_keys(line) - mm2_names.AGREED) + [
        key for name in client for key in under(f"{name}.", client[name][line])
    ]
    cluster = sorted(frozenset().union(*(names[line] for names in client.values())) - taken)
    value = st.sampled_from(["a value", 7, True, "\\d=:#é", None])
    return st.fixed_dictionaries({
        "flow": st.dictionaries(st.sampled_from(sorted(flow)), value, max_size=4),
        "worker": st.dictionaries(st.sampled_from(sorted(worker)), value, max_size=4),
        "east": st.dictionaries(st.sampled_from(cluster), value, max_size=3),
        "west": st.dictionaries(st.sampled_from(cluster), value, max_size=3),
        "hosts": st.sampled_from([["mirror1"], ["mirror1", "mirror2"]]),
    })  # fmt: skip


def apply(site: Site, line: str, chosen: dict[str, Any]) -> None:
    site.flow["properties"] = chosen["flow"]
    site.instance.update({"worker_properties": chosen["worker"], "hosts": chosen["hosts"],
                      "kafka_version": VERSION[line]})  # fmt: skip
    for alias in ("east", "west"):
        site["clusters"][alias]["properties"] = chosen[alias]


@pytest.mark.parametrize("line", kafka_names.LINES)
def test_whatever_is_set_stands_where_it_is_read(mm2_site: Site, line: str) -> None:
    aliases = {"east", "north", "west"}
    pairs = {"east->west", "north->west", "west->east", "west->north"}

    @settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
    @given(anything(line))
    def all_read(chosen: dict[str, Any]) -> None:
        apply(mm2_site, line, chosen)
        ignored = [key for key in rendered(mm2_site, address="10.0.0.1", brokers=2)
                   if not is_read(key, aliases, pairs, line)]  # fmt: skip
        assert ignored == []

    all_read()


def test_java_reads_back_the_file(mm2_site: Site, java: Callable[[str], Any]) -> None:
    @settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))
    @given(anything("4.3"))
    def read_back(chosen: dict[str, Any]) -> None:
        apply(mm2_site, "4.3", chosen)
        properties = rendered(mm2_site, address="10.0.0.1", brokers=2)
        assert read_by_java(java, to_java_properties(properties)) == {
            key: text_of(key, value) for key, value in properties.items()
        }

    read_back()
