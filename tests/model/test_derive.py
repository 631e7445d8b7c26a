"""What follows from an inventory: instances, credentials, clients, the report's model."""

from __future__ import annotations

from typing import Any

import pytest
from mirror_model import derive, plain
from mirror_model.errors import ModelError

from tests.model.conftest import ROOT, Site


def instance(site: Site, name: str = "mirrormaker") -> dict[str, Any]:
    return derive.mm1_instance(site["clusters"], site["flows"], site["instances"], name)


def report(site: Site, only: Any = None, **more: Any) -> dict[str, Any]:
    return derive.mirror_report_model(
        site["clusters"], site["flows"], site["instances"], "report", only, **more
    )


def test_an_instance_knows_what_it_runs(site: Site) -> None:
    made = instance(site)
    assert made["name"] == "mirrormaker"
    assert made["engine"] == "mm1"
    assert made["state"] == "started"
    assert made["heap"] == "1g"
    assert made["num_streams"] == 1
    assert made["group_id"] == "mirrormaker-orders"
    assert made["include"] == r"orders|payments\..*"
    assert made["options"] == {"offset.commit.interval.ms": 10000, "abort.on.send.failure": True}
    assert made["identity"] == {
        "engine": "mm1", "flows": ["orders"], "source": "east", "target": "west",
        "group_id": "mirrormaker-orders", "policy": "identity",
    }  # fmt: skip


def test_the_consumer_reads_the_source(site: Site) -> None:
    consumer = instance(site)["consumer"]
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
    producer = instance(site)["producer"]
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
    assert instance(site)["consumer"][name] == 65536
    site["clusters"]["east"]["properties"] = {name: 1}
    assert instance(site)["consumer"][name] == 1
    site.flow["properties"] = {f"consumer.{name}": 2, "producer.linger.ms": 5}
    assert instance(site)["consumer"][name] == 2
    assert instance(site)["producer"]["linger.ms"] == 5
    site.instance["consumer_properties"] = {name: 3}
    assert instance(site)["consumer"][name] == 3
    site.instance["consumer_properties"] = {name: None}
    assert name not in instance(site)["consumer"]


def test_properties_of_a_cluster_reach_its_own_clients_only(site: Site) -> None:
    site["clusters"]["west"]["properties"] = {"request.timeout.ms": 1}
    made = instance(site)
    assert made["producer"]["request.timeout.ms"] == 1
    assert "request.timeout.ms" not in made["consumer"]


def test_options_of_mirrormaker_can_be_set_and_removed(site: Site) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": None, "message.handler": "a.B"}
    assert instance(site)["options"] == {
        "offset.commit.interval.ms": 10000,
        "message.handler": "a.B",
    }


def test_a_flow_goes_on_from_an_existing_group(site: Site) -> None:
    site.flow["group_id"] = "old-mirror"
    site.flow["start"] = "latest"
    made = instance(site)
    assert made["consumer"]["group.id"] == made["identity"]["group_id"] == "old-mirror"
    assert made["consumer"]["auto.offset.reset"] == "latest"


def test_null_means_the_default(site: Site) -> None:
    site.instance.update({"heap": None, "consumer_properties": None})
    site.flow.update({"group_id": None, "topics_exclude": None, "start": None})
    site["clusters"]["west"] |= {"security_protocol": None, "identities": None, "properties": None}
    made = instance(site)
    assert (made["heap"], made["group_id"]) == ("1g", "mirrormaker-orders")


def test_an_absent_instance_can_still_be_asked_for(site: Site) -> None:
    site["instances"]["mirrormaker"] = {"state": "absent"}
    made = instance(site)
    assert made["state"] == "absent"
    assert made["flow"] is None
    assert made["credentials"] == {}


@pytest.mark.parametrize("name", ["mirrormaker-bak", ""])
def test_an_unknown_instance_is_named(site: Site, name: str) -> None:
    with pytest.raises(ModelError, match="mirrormaker_instances"):
        instance(site, name)


def test_credentials_are_files(site: Site) -> None:
    files = derive.kafka_credentials(site["clusters"], "east", "report")
    assert set(files) == {"east.report.jaas", "east.report.password", "east.report.ca.pem"}
    assert files["east.report.password"] == "CANARY-report"
    assert files["east.report.jaas"].endswith('password="CANARY-report";')
    assert derive.kafka_credentials(site["clusters"], "west", "report") == {}


def test_mirror_stands_in_for_an_identity_that_is_not_defined(site: Site) -> None:
    files = derive.kafka_credentials(site["clusters"], "east", "admin")
    assert files["east.admin.password"] == "CANARY-east"


def test_a_login_that_cannot_work_names_the_variable_and_no_secret(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = "CANARY\n"
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities") as problem:
        derive.kafka_credentials(site["clusters"], "east", "mirror")
    assert "CANARY" not in str(problem.value)


def test_client_of_kafka_python(site: Site) -> None:
    assert derive.kafka_python_client(site["clusters"], "east", "report") == {
        "bootstrap_servers": ["east1:9092", "east2:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "username": "mirror-report",
        "password": "CANARY-report",
        "ssl_ca": site["clusters"]["east"]["ssl_ca"],
    }
    assert derive.kafka_python_client(site["clusters"], "west", "report") == {
        "bootstrap_servers": ["west1:9092"],
        "security_protocol": "PLAINTEXT",
    }


def test_the_report_gets_what_runs(site: Site) -> None:
    site.instance["mm1_options"] = {"offset.commit.interval.ms": 2000}
    model = report(site, accept=["identity:mirrormaker", "enable.auto.commit:orders"])
    assert [flow["name"] for flow in model["flows"]] == ["orders", "back"]
    assert model["flows"][0] == {
        "name": "orders", "engine": "mm1", "source": "east", "target": "west",
        "topics": ["orders", r"payments\..*"], "topics_exclude": [],
        "include": r"orders|payments\..*", "start": "earliest", "group_id": "mirrormaker-orders",
        "instance": "mirrormaker", "hosts": ["mirror1"], "commit_interval_ms": 2000,
        "sysconfig": "/etc/sysconfig/mirrormaker", "accept": ["enable.auto.commit:orders"],
    }  # fmt: skip
    assert model["clusters"]["east"] == {
        "bootstrap_servers": ["east1:9092", "east2:9092"], "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN", "username": "mirror-report", "identity": "report",
        "ssl_ca": True,
    }  # fmt: skip
    assert "north" not in model["clusters"]


def test_the_report_understands_its_model(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "spark/src")
    from mirror_report.config import parse

    site.flow["topics"].append("payments.eu")
    model = report(site, accept=["regex-without-auto-creation:orders"])
    files = {
        name: content
        for alias in model["clusters"]
        for name, content in derive.kafka_credentials(site["clusters"], alias, "report").items()
    }
    settings = parse({"version": 1, **model, "credentials": files})
    assert [flow.name for flow in settings.flows] == ["orders", "back"]
    assert settings.flows[0].matches("payments.eu")
    assert settings.flows[0].accept == ("regex-without-auto-creation:orders",)
    assert settings.flows[0].is_regex
    assert not settings.flows[1].is_regex


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
