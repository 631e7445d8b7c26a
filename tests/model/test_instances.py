"""What follows from an inventory: instances, credentials, clients, the report's model."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from mirror_model import clusters, instances, plain
from mirror_model import report as reports
from mirror_model.errors import ModelError

from tests.model.conftest import ROOT, Site, certificate_of


def instance(site: Site, name: str = "mirrormaker") -> dict[str, Any]:
    return instances.mirrormaker_instance(site["clusters"], site["flows"], site["instances"], name)


def consumer_of(site: Site) -> dict[str, Any]:
    made: dict[str, Any] = instance(site)["files"]["consumer.properties"]
    return made


def producer_of(site: Site) -> dict[str, Any]:
    made: dict[str, Any] = instance(site)["files"]["producer.properties"]
    return made


def report(site: Site, only: Any = None, **more: Any) -> dict[str, Any]:
    return reports.mirror_report_model(
        site["clusters"], site["flows"], site["instances"], "report", only, **more
    )


def test_an_instance_knows_what_it_runs(site: Site) -> None:
    made = instance(site)
    assert made["name"] == "mirrormaker"
    assert made["engine"] == "mm1"
    assert made["state"] == "started"
    assert made["heap"] == "1g"
    assert made["kafka_version"] == "3.9.2"
    assert made["target"] == "west"
    assert made["description"] == "orders from east to west"
    assert made["positions"] == "group mirrormaker-orders on east"
    assert [flow["name"] for flow in made["flows"]] == ["orders"]
    assert made["identity"] == {
        "engine": "mm1", "flows": ["orders"], "source": "east", "target": "west",
        "group_id": "mirrormaker-orders", "policy": "identity",
    }  # fmt: skip


def test_the_consumer_reads_the_source(site: Site) -> None:
    consumer = consumer_of(site)
    directory = "/run/credentials/mirrormaker.service"
    expected = {
        "bootstrap.servers": ["east1:9092", "east2:9092"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"${{dir:{directory}:east.mirror.jaas}}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": f"${{dir:{directory}:east.mirror.ca.pem}}",
        "config.providers": "dir",
        "config.providers.dir.param.allowed.paths": directory,
        "group.id": "mirrormaker-orders",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 10000,
    }
    assert expected.items() <= consumer.items()


def test_the_producer_writes_the_target(site: Site) -> None:
    producer = producer_of(site)
    expected = {
        "bootstrap.servers": ["west1:9092"], "security.protocol": "PLAINTEXT", "acks": "all",
        "enable.idempotence": True, "client.id": "mirrormaker-orders",
    }  # fmt: skip
    assert expected.items() <= producer.items()
    assert not any(name.startswith(("sasl.", "config.providers")) for name in producer)


def test_no_secret_outside_credentials(site: Site) -> None:
    made = instance(site)
    assert "CANARY-east" in str(made.pop("credentials"))
    assert "CANARY" not in str(made)
    assert "CANARY" not in str(report(site))


def test_later_layers_win_and_null_removes(site: Site) -> None:
    name = "fetch.min.bytes"
    assert consumer_of(site)[name] == 65536
    site["clusters"]["east"]["properties"] = {name: 1}
    assert consumer_of(site)[name] == 1
    site.flow["properties"] = {f"consumer.{name}": 2, "producer.linger.ms": 5}
    assert consumer_of(site)[name] == 2
    assert producer_of(site)["linger.ms"] == 5
    site.instance["consumer_properties"] = {name: 3}
    assert consumer_of(site)[name] == 3
    site.instance["consumer_properties"] = {name: None}
    assert name not in consumer_of(site)


def test_properties_of_a_cluster_reach_its_own_clients_only(site: Site) -> None:
    site["clusters"]["west"]["properties"] = {"request.timeout.ms": 1}
    assert producer_of(site)["request.timeout.ms"] == 1
    assert "request.timeout.ms" not in consumer_of(site)


def test_mirrormaker_1_is_started_with_variables_of_its_environment(site: Site) -> None:
    made = instance(site)
    assert made["script"] == "kafka-mirror-maker.sh"
    assert made["arguments"] == [
        "--consumer.config ${MM_CONSUMER_CONFIG}",
        "--producer.config ${MM_PRODUCER_CONFIG}",
        "--include ${MM_INCLUDE}",
        "--num.streams ${MM_NUM_STREAMS}",
        "--abort.on.send.failure ${MM_ABORT_ON_SEND_FAILURE}",
        "--offset.commit.interval.ms ${MM_OFFSET_COMMIT_INTERVAL_MS}",
    ]
    assert made["environment"] == {
        "MM_CONSUMER_CONFIG": "/etc/mirrormaker/consumer.properties",
        "MM_PRODUCER_CONFIG": "/etc/mirrormaker/producer.properties",
        "MM_INCLUDE": r"orders|payments\..*",
        "MM_NUM_STREAMS": 1,
        "MM_ABORT_ON_SEND_FAILURE": True,
        "MM_OFFSET_COMMIT_INTERVAL_MS": 10000,
    }


def test_options_of_mirrormaker_can_be_set_and_removed(site: Site) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": None, "message.handler": "a.B"}
    made = instance(site)
    assert "--message.handler ${MM_MESSAGE_HANDLER}" in made["arguments"]
    assert made["environment"]["MM_MESSAGE_HANDLER"] == "a.B"
    assert "MM_ABORT_ON_SEND_FAILURE" not in made["environment"]


def test_the_release_of_an_instance_is_its_own(site: Site) -> None:
    site.instance["kafka_version"] = "3.9.3"
    assert instance(site)["kafka_version"] == "3.9.3"
    assert instance(site, "mirrormaker-back")["kafka_version"] == "3.9.2"


def test_a_flow_goes_on_from_an_existing_group(site: Site) -> None:
    site.flow["group_id"] = "old-mirror"
    site.flow["start"] = "latest"
    assert instance(site)["identity"]["group_id"] == "old-mirror"
    assert consumer_of(site)["group.id"] == "old-mirror"
    assert consumer_of(site)["auto.offset.reset"] == "latest"


def test_null_means_the_default(site: Site) -> None:
    site.instance.update({"heap": None, "consumer_properties": None})
    site.flow.update({"group_id": None, "topics_exclude": None, "start": None})
    site["clusters"]["west"] |= {"security_protocol": None, "identities": None, "properties": None}
    made = instance(site)
    assert (made["heap"], made["identity"]["group_id"]) == ("1g", "mirrormaker-orders")


def test_an_absent_instance_can_still_be_asked_for(site: Site) -> None:
    site["instances"]["mirrormaker"] = {"state": "absent"}
    made = instance(site)
    assert made["state"] == "absent"
    assert made["flows"] == []
    assert made["files"] == {}
    assert made["credentials"] == {}


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


def test_credentials_are_files(site: Site) -> None:
    files = clusters.kafka_credentials(site["clusters"], "east", "report")
    assert set(files) == {"east.report.jaas", "east.report.password", "east.report.ca.pem"}
    assert files["east.report.password"] == "CANARY-report"
    assert files["east.report.jaas"].endswith('password="CANARY-report";')
    assert clusters.kafka_credentials(site["clusters"], "west", "report") == {}


def test_mirror_stands_in_for_an_identity_that_is_not_defined(site: Site) -> None:
    files = clusters.kafka_credentials(site["clusters"], "east", "admin")
    assert files["east.admin.password"] == "CANARY-east"


def test_a_login_that_cannot_work_names_the_variable_and_no_secret(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = "CANARY\n"
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities") as problem:
        clusters.kafka_credentials(site["clusters"], "east", "mirror")
    assert "CANARY" not in str(problem.value)


def test_client_of_kafka_python(site: Site) -> None:
    assert clusters.kafka_python_client(site["clusters"], "east", "report") == {
        "bootstrap_servers": ["east1:9092", "east2:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "username": "mirror-report",
        "password": "CANARY-report",
        "ssl_ca": site["clusters"]["east"]["ssl_ca"],
    }
    assert clusters.kafka_python_client(site["clusters"], "west", "report") == {
        "bootstrap_servers": ["west1:9092"],
        "security_protocol": "PLAINTEXT",
    }


PAIR = {
    "ssl_certificate": certificate_of(x509.Name.from_rfc4514_string("CN=mirror")),
    "ssl_key": "CANARY-key\n",
}


def test_a_client_certificate_reaches_every_client(site: Site) -> None:
    site["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": PAIR}}
    files = clusters.kafka_credentials(site["clusters"], "east", "mirror")
    assert set(files) == {"east.mirror.ca.pem", "east.mirror.cert.pem", "east.mirror.key.pem"}
    client = clusters.kafka_python_client(site["clusters"], "east", "mirror")
    assert PAIR.items() <= client.items()
    directory = clusters.credentials_directory("unit")
    assert directory == "/run/credentials/unit.service"
    properties = clusters.client_properties(site["clusters"], "east", "mirror", directory)
    assert {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": f"${{dir:{directory}:east.mirror.cert.pem}}",
        "ssl.keystore.key": f"${{dir:{directory}:east.mirror.key.pem}}",
    }.items() <= properties.items()
    east = report(site)["clusters"]["east"]
    assert (east["ssl_certificate"], east["principal"]) == (True, "User:CN=mirror")
    assert "CANARY" not in str((properties, report(site)))


def test_the_report_gets_what_runs(site: Site) -> None:
    site.instance["mm1_options"] = {"offset.commit.interval.ms": 2000}
    model = report(site, accept=["identity:mirrormaker", "enable.auto.commit:orders"])
    assert [flow["name"] for flow in model["flows"]] == ["orders", "back"]
    assert model["flows"][0].pop("permissions")
    assert model["flows"][0] == {
        "name": "orders", "engine": "mm1", "source": "east", "target": "west",
        "topics": ["orders", r"payments\..*"], "topics_exclude": [],
        "include": r"orders|payments\..*", "start": "earliest", "group_id": "mirrormaker-orders",
        "instance": "mirrormaker", "hosts": ["mirror1"], "commit_interval_ms": 2000,
        "sysconfig": "/etc/sysconfig/mirrormaker", "accept": ["enable.auto.commit:orders"],
        "parallelism": 1,
        "source_isolation": "read_uncommitted", "target_isolation": "read_uncommitted",
    }  # fmt: skip
    assert model["clusters"]["east"] == {
        "bootstrap_servers": ["east1:9092", "east2:9092"], "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN", "username": "mirror-report", "identity": "report",
        "ssl_ca": True, "ssl_certificate": False, "principal": "User:mirror-report",
    }  # fmt: skip
    assert "north" not in model["clusters"]


def test_the_report_understands_its_model(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "spark/src")
    from mirror_report.config.load import parse

    site.flow["topics"].append("payments.eu")
    model = report(site, accept=["regex-without-auto-creation:orders"])
    files = {
        name: content
        for alias in model["clusters"]
        for name, content in clusters.kafka_credentials(site["clusters"], alias, "report").items()
    }
    settings = parse({"version": 1, **model, "credentials": files})
    assert [flow.name for flow in settings.flows] == ["orders", "back"]
    assert settings.flows[0].matches("payments.eu")
    assert settings.flows[0].accept == ("regex-without-auto-creation:orders",)
    assert settings.flows[0].is_regex
    assert not settings.flows[1].is_regex


def test_the_report_reads_the_source_as_the_mirror_does(site: Site) -> None:
    level = {"consumer.isolation.level": "read_committed"}
    site["clusters"]["east"]["properties"] = {"isolation.level": "read_committed"}
    site["flows"][1]["properties"] = level
    model = report(site)["flows"]
    assert [flow["source_isolation"] for flow in model] == ["read_committed", "read_committed"]
    site.instance["consumer_properties"] = {"isolation.level": None}
    model = report(site)["flows"]
    assert [flow["source_isolation"] for flow in model] == ["read_uncommitted", "read_committed"]
    assert {flow["target_isolation"] for flow in model} == {"read_uncommitted"}


def test_the_report_of_one_flow(site: Site) -> None:
    site["flows"][1] |= {"source": "west", "target": "north"}
    assert report(site, "back") == report(site, ["back"])
    assert set(report(site, "back")["clusters"]) == {"west", "north"}
    assert len(report(site, "back")["flows"]) == 1


@pytest.mark.parametrize("change", [{"state": "absent"}, {"hosts": []}])
def test_the_report_leaves_out_what_has_no_place(site: Site, change: dict[str, Any]) -> None:
    site["instances"]["mirrormaker-back"] |= change
    assert [flow["name"] for flow in report(site)["flows"]] == ["orders"]


def test_plain_values_carry_nothing_along() -> None:
    class Tagged(str):
        __slots__ = ()

    made = plain.plain({Tagged("a"): (Tagged("b"), True, 1.5, None)})
    assert made == {"a": ["b", True, 1.5, None]}
    assert type(made["a"][0]) is str
    assert type(next(iter(made))) is str
