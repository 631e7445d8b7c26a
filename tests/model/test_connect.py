"""MirrorMaker 2 on Kafka Connect: workers and connectors, and what is refused of them."""

from __future__ import annotations

from typing import Any

import pytest
from mirror_model import instances, permissions
from mirror_model import report as reports
from mirror_model.connectors import names
from mirror_model.engines.connect import connectors, keys
from mirror_model.process import Process

from tests.model.conftest import SITE, Kafka, Site, mentioned, refused
from tests.model.test_mm2_names import MIRROR, WORKER
from tests.model.test_mm2_names import names as names_of

CA = SITE["clusters"]["east"]["ssl_ca"]


@pytest.fixture
def site(connect_site: Site) -> Site:
    return connect_site


def worker(site: Site, which: str = "connect-west", **node: Any) -> Process:
    return site.process(which, **node)


def made(site: Site, name: str = "connect-west") -> dict[str, dict[str, str]]:
    """Name to configuration of every connector of a Connect cluster."""
    found = instances.mirror_connectors(
        site.model,
        name,
        {"east": 1, "west": 1},
        {},
    )
    return {each["name"]: each["config"] for each in found}


def cluster(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = site["connect_clusters"]["connect-west"]
    return found


def test_the_site_is_sound(site: Site) -> None:
    assert site.validate() == {"errors": [], "warnings": []}


def test_a_flow_has_its_connectors(site: Site) -> None:
    assert list(made(site)) == ["orders-source", "orders-checkpoint"]
    assert list(made(site, "connect-east")) == ["back-source", "back-heartbeat"]


@pytest.mark.parametrize(
    ("asked", "typed", "factors"),
    [
        ({}, {}, ("3", "3")),
        ({"east": 1, "west": 2}, {}, ("1", "2")),
        ({"east": 5, "west": 5}, {"west": 1}, ("3", "1")),
    ],
)
def test_replicas_follow_the_brokers_of_the_cluster_that_is_written(
    site: Site, asked: dict[str, int], typed: dict[str, int], factors: tuple[str, str]
) -> None:
    """The way back writes to east, its heartbeats to west."""
    source, heartbeat = instances.mirror_connectors(
        site.model,
        "connect-east",
        asked,
        typed,
    )
    key = "heartbeats.topic.replication.factor"
    assert (source["config"]["replication.factor"], heartbeat["config"][key]) == factors
    assert "replication.factor" in source["kept"]
    assert bool(heartbeat["kept"]) is not bool(typed), "what is typed changes what exists"


def test_a_heartbeat_is_written_where_the_records_come_from(site: Site) -> None:
    heartbeat = made(site, "connect-east")["back-heartbeat"]
    assert heartbeat["target.cluster.alias"] == "west", "where its topic is made"
    assert heartbeat["target.cluster.bootstrap.servers"] == "west1:9092"
    assert heartbeat["producer.override.bootstrap.servers"] == "west1:9092"
    assert heartbeat["producer.override.sasl.jaas.config"] == (
        "${dir:/run/connect-east/kafka:west.mirror.jaas}"
    )
    assert (heartbeat["source.cluster.alias"], heartbeat["tasks.max"]) == ("east", "1")
    rows = permissions.mirror_permissions(site.model)
    assert {
        (row["cluster"], row["operation"]) for row in rows
        if row["name"] == "heartbeats" and row["identity"] == "mirror" and "task" in row["why"]
    } >= {("west", "CREATE"), ("west", "WRITE")}  # fmt: skip


def test_connectors_agree_and_each_has_only_what_it_reads(site: Site) -> None:
    site.flow["properties"] = {
        "offset.lag.max": 0, "emit.checkpoints.interval.seconds": 5, "topic.filter.class": "x.Y",
        "replication.policy.separator": "_", "my.filter": "z",
    }  # fmt: skip
    both = made(site)
    source, checkpoint = both["orders-source"], both["orders-checkpoint"]
    differing = {key for key in source if checkpoint.get(key) != source[key]}
    assert differing & set(names.OF_BOTH) == set()
    assert "replication.policy.separator" not in differing
    assert source["offset.lag.max"] == "0"
    assert "offset.lag.max" not in checkpoint
    assert checkpoint["emit.checkpoints.interval.seconds"] == "5"
    assert "emit.checkpoints.interval.seconds" not in source


def test_bytes_are_copied_and_secrets_are_references(site: Site) -> None:
    for config in (*made(site).values(), *made(site, "connect-east").values()):
        assert {config[f"{part}.converter"] for part in ("key", "value", "header")} == {
            connectors.CONVERTER
        }
        assert "CANARY" not in str(config)
    assert made(site)["orders-source"]["source.cluster.sasl.jaas.config"] == (
        "${dir:/run/connect-west/kafka:east.mirror.jaas}"
    )


def test_names_of_connectors_can_be_those_that_exist(site: Site) -> None:
    site.flow["connectors"] = {"source": "Old Source"}
    assert list(made(site)) == ["Old Source", "orders-checkpoint"]
    assert made(site)["Old Source"]["name"] == "Old Source"


def test_the_worker_lets_override_what_its_flows_do_and_no_more(site: Site) -> None:
    policy = "connector.client.config.override.policy"
    assert worker(site).properties["worker.properties"][policy] == "None"
    own = worker(site, "connect-east").properties["worker.properties"]
    assert own[policy] == "Allowlist"
    heartbeat = made(site, "connect-east")["back-heartbeat"]
    assert set(own["connector.client.config.override.allowlist"]) == {"linger.ms"} | {
        key.removeprefix("producer.override.")
        for key in heartbeat
        if key.startswith("producer.override.")
    }
    assert made(site, "connect-east")["back-source"]["producer.override.linger.ms"] == "7"


def test_the_rest_server_is_closed(site: Site) -> None:
    process = worker(site, name="mirror1")
    own = process.properties["worker.properties"]
    assert own["listeners"] == "https://0.0.0.0:8084"
    for address, listener in (("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "[2001:db8::1]")):
        bound = worker(site, name="mirror1", address=address).properties["worker.properties"]
        assert bound["listeners"] == f"https://{listener}:8084"
    assert own["rest.advertised.host.name"] == "mirror1"
    assert own["rest.extension.classes"].endswith("BasicAuthSecurityRestExtension")
    assert process.credentials["rest.users"] == "deployer=CANARY-rest-1\n"
    assert "CANARY" not in str(process)
    assert "/run/credentials/connect-west.service/rest.users" in process.texts["rest.jaas.conf"]


def test_references_lead_to_what_kafka_s_clients_need_alone(site: Site) -> None:
    process = worker(site, name="mirror1")
    own = process.properties["worker.properties"]
    assert own["config.providers.dir.param.allowed.paths"] == (
        "/run/connect-west/kafka,/run/connect-west/storepass"
    )
    assert "-Dorg.apache.kafka.automatic.config.providers=none" in process.jvm_options


def test_on_loopback_it_asks_for_a_user_too(site: Site) -> None:
    cluster(site).update(hosts=["mirror1"])
    cluster(site)["rest"] = {"listener": "loopback", "users": {"a": "b" * 12}, "client": "a"}
    assert site.validate()["errors"] == []
    process = worker(site, name="mirror1")
    own = process.properties["worker.properties"]
    assert own["listeners"] == "http://127.0.0.1:8084"
    assert own["rest.extension.classes"].endswith("BasicAuthSecurityRestExtension")
    assert process.credentials["rest.users"] == "a=bbbbbbbbbbbb\n"
    assert process.prepare == "worker-secrets.sh"
    cluster(site)["rest"] = {"listener": "loopback"}
    refused(site, ".rest.users", "everybody would be let in")


def test_each_cluster_of_a_host_has_its_own(site: Site) -> None:
    one, other = (worker(site, name) for name in ("connect-west", "connect-east"))
    for process in (one, other):
        own = process.properties["worker.properties"]
        assert own["group.id"] == process.name
        assert own["offset.storage.topic"] == f"{process.name}-offsets"
        assert process.environment["CONNECT_CONFIG"].startswith(f"/etc/{process.name}/")
    assert one.description == "orders from east to west"


def test_a_cluster_without_flows_has_workers(site: Site) -> None:
    site["flows"].pop()
    assert worker(site, "connect-east").target == "east"
    assert made(site, "connect-east") == {}


@pytest.fixture
def existing(site: Site) -> Site:
    """The first Connect cluster belongs to others."""
    site["connect_clusters"]["connect-west"] = {
        "kafka": "west", "group_id": "theirs",
        "topics": {"offsets": "o", "status": "s", "config": "c"},
        "rest": {"urls": ["https://theirs:8083"], "users": {"us": "CANARY-of-us"}, "client": "us"},
        "secrets": {"provider": "file", "path": "/opt/secrets", "keys": {"east.mirror.jaas": "e"}},
        "overrides": ["batch.size", "linger.ms"],
    }  # fmt: skip
    return site


def test_an_existing_cluster_is_sent_what_it_lets_through(existing: Site) -> None:
    assert existing.validate()["errors"] == []
    source = made(existing)["orders-source"]
    assert source["source.cluster.sasl.jaas.config"] == "${file:/opt/secrets:e}"
    assert source["target.cluster.sasl.jaas.config"] == "${file:/opt/secrets:west.mirror.jaas}"
    overridden = {key for key in source if key.startswith("producer.override.")}
    assert overridden == {"producer.override.batch.size", "producer.override.linger.ms"}


def test_the_report_knows_where_an_existing_cluster_keeps_what(existing: Site) -> None:
    model = reports.mirror_report_model(existing.model, "report")
    flow = model["flows"][0]
    assert (flow["offset_topic"], flow["status_topic"], flow["config_topic"]) == ("o", "s", "c")
    assert flow["connectors"] == ["orders-source", "orders-checkpoint", "orders-heartbeat"]
    assert flow["offset_syncs_topic"] == "mm2-offset-syncs.east.internal"


def test_permissions_name_the_workers_topics_and_group(site: Site) -> None:
    rows = permissions.mirror_permissions(site.model)
    found = {(row["cluster"], row["resource"], row["name"], row["operation"]) for row in rows}
    assert ("west", "group", "connect-west", "READ") in found
    assert ("west", "topic", "connect-west-offsets", "WRITE") in found
    assert ("east", "topic", "orders", "READ") in found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kafka": "wset"}, [".kafka", "did you mean 'west'?"]),
        ({"hosts": []}, [".topics", "offsets and status and config missing"]),
        ({"kafka": "east"}, ["mirror_flows[orders].connect", "whose kafka is the target"]),
        ({"rest": {"ssl_ca": CA}}, [".rest.users", "everybody would be let in"]),
        ({"rest": {"ssl_ca": CA, "users": {"a": ""}, "client": "a"}},
         [".rest.users.a", "lets everybody in"]),
        ({"rest": {"ssl_ca": CA, "users": {"a": "b" * 11}, "client": "a"}},
         [".rest.users.a", "11 characters", "at least 12"]),
        ({"rest": {"ssl_ca": CA, "users": {"a": "b" * 12}, "client": "c"}}, [".rest.client"]),
        ({"rest": {"users": {"a": "b" * 12}, "client": "a"}}, [".rest.ssl_ca", "is missing"]),
        ({"rest": {"listener": "loopback", "users": {"a": "b" * 12}, "client": "a"}},
         [".rest.listener", "several hosts"]),
        ({"rest": {"ssl_ca": CA, "users": {"a": "b" * 12}, "client": "a", "urls": ["http://h:1"]}},
         [".rest.urls", "in clear"]),
        ({"rest": {"ssl_ca": CA, "users": {"a": "b" * 12}, "client": "a",
                   "urls": ["http://localhost.example:1"]}},
         [".rest.urls", "in clear"]),
        ({"topics": {"offset": "x"}}, [".topics", "did you mean 'offsets'?"]),
        ({"worker_properties": {"listeners": "http://0.0.0.0:8083"}},
         ["worker_properties['listeners']", "set port and rest"]),
        ({"worker_properties": {"grup.id": "x"}}, ["worker_properties['grup.id']"]),
        ({"overrides": ["x"]}, [".overrides", "without hosts"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(site: Site, change: dict[str, Any], words: list[str]) -> None:
    cluster(site).update(change)
    if change == {"hosts": []}:
        cluster(site)["rest"] = {**cluster(site)["rest"], "urls": ["https://a:1"]}
        cluster(site)["secrets"] = {"provider": "env"}
    refused(site, *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"connect": None}, ["orders].connect", "is missing"]),
        ({"connect": "connect-wset"}, ["orders].connect", "did you mean 'connect-west'?"]),
        ({"connectors": {"sorce": "x"}}, ["orders].connectors", "did you mean 'source'?"]),
        ({"connectors": {"source": "orders-checkpoint"}},
         ["orders].connectors.checkpoint", "the source connector of flow 'orders'"]),
        ({"properties": {"whitelist": "x"}}, ["['whitelist']", "mirror_flows[].topics"]),
        ({"properties": {"name": "x"}}, ["['name']", "mirror_flows[].connectors"]),
    ],
)  # fmt: skip
def test_a_flow_that_cannot_be_is_refused(
    site: Site, change: dict[str, Any], words: list[str]
) -> None:
    site.flow.update(change)
    refused(site, *words)


BEATS = {"properties": {"emit.heartbeats.enabled": True}}


def test_heartbeats_that_nothing_mirrors_are_refused(site: Site) -> None:
    site.flow.update(BEATS)
    refused(site, "orders].properties['emit.heartbeats.enabled']", "add 'heartbeats' to topics")


@pytest.mark.parametrize(
    "properties", [BEATS["properties"], {"producer.override.linger.ms": 9}], ids=str
)
def test_overrides_need_workers_that_can_list_them(site: Site, properties: dict[str, Any]) -> None:
    site.flow.update({"properties": properties, "topics": ["orders", "heartbeats"]})
    assert site.validate()["errors"] == []
    cluster(site)["kafka_version"] = "4.1.2"
    refused(site, f"orders].properties['{next(iter(properties))}']", "to 4.2 or newer")


def test_heartbeats_of_a_cluster_that_forbids_them_are_refused(existing: Site) -> None:
    existing.flow.update({**BEATS, "topics": ["orders", "heartbeats"]})
    refused(existing, "['emit.heartbeats.enabled']", "does not let connectors override bootstrap")


def test_a_port_is_taken_once_on_a_host(site: Site) -> None:
    site["connect_clusters"]["connect-east"]["port"] = 8084
    refused(site, "connect-east.port", "'mirror1'", "8085")


def test_a_host_outside_of_the_group_is_mentioned(site: Site) -> None:
    site["groups"]["kafka_connect"].remove("mirror2")
    mentioned(site, "group kafka_connect", "mirror2")


def test_key_tables_are_those_of_the_plugins(kafka: Kafka) -> None:
    for kind, own in names.OF_KIND.items():
        known = names_of(kafka, f"{MIRROR}.Mirror{kind.title()}Config", "CONNECTOR_CONFIG_DEF")
        others = {key for other, some in names.OF_KIND.items() if other != kind for key in some}
        assert own & names.CONNECTOR[kafka.line] <= known
        assert not others & known


def test_kafka_reads_what_is_made(site: Site, kafka: Kafka) -> None:
    if kafka.line == "3.9":
        cluster(site)["kafka_version"] = kafka.version
    for name, config in made(site).items():
        kind = name.rpartition("-")[2].title()
        known = names_of(kafka, f"{MIRROR}.Mirror{kind}Config", "CONNECTOR_CONFIG_DEF")
        assert kafka.class_named(f"{MIRROR}.Mirror{kind}Config")(kafka.map(config))
        prefixes = ("source.", "target.", "consumer.", "producer.override.")
        unknown = {key for key in config if key not in known and not key.startswith(prefixes)}
        # Read by the topic filter, and by nobody.
        assert unknown <= {"topics", "topics.exclude", connectors.MARK}, name
    properties = {
        key: ",".join(map(str, value)) if isinstance(value, list) else str(value).lower()
        if isinstance(value, bool) else str(value)
        for key, value in worker(site, name="h").properties["worker.properties"].items()
        if not key.startswith("config.providers")
    }  # fmt: skip
    known = set(kafka.class_named(WORKER)(kafka.map(properties)).values())
    assert not keys.worker_keys(kafka.line) - known
