"""MirrorMaker 1's clients, options and command."""

from __future__ import annotations

from typing import Any

from tests.model.conftest import CONTROL, Site
from tests.model.test_instances import instance


def consumer_of(site: Site) -> dict[str, Any]:
    return dict(instance(site).properties["consumer.properties"])


def producer_of(site: Site) -> dict[str, Any]:
    return dict(instance(site).properties["producer.properties"])


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
    assert made.script == "kafka-mirror-maker.sh"
    assert made.arguments == [
        ("--consumer.config", "MM_CONSUMER_CONFIG"),
        ("--producer.config", "MM_PRODUCER_CONFIG"),
        ("--include", "MM_INCLUDE"),
        ("--num.streams", "MM_NUM_STREAMS"),
        ("--abort.on.send.failure", "MM_ABORT_ON_SEND_FAILURE"),
        ("--offset.commit.interval.ms", "MM_OFFSET_COMMIT_INTERVAL_MS"),
    ]
    assert made.environment == {
        "MM_CONSUMER_CONFIG": "/etc/mirrormaker/consumer.properties",
        "MM_PRODUCER_CONFIG": "/etc/mirrormaker/producer.properties",
        "MM_INCLUDE": rf"(?!(?:{'|'.join(CONTROL)})$)(?:orders|payments\..*)",
        "MM_NUM_STREAMS": 1,
        "MM_ABORT_ON_SEND_FAILURE": True,
        "MM_OFFSET_COMMIT_INTERVAL_MS": 10000,
    }


def test_options_of_mirrormaker_can_be_set_and_removed(site: Site) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": None, "message.handler": "a.B"}
    made = instance(site)
    assert ("--message.handler", "MM_MESSAGE_HANDLER") in made.arguments
    assert made.environment["MM_MESSAGE_HANDLER"] == "a.B"
    assert "MM_ABORT_ON_SEND_FAILURE" not in made.environment


def test_a_flow_goes_on_from_an_existing_group(site: Site) -> None:
    site.flow["group_id"] = "old-mirror"
    site.flow["start"] = "latest"
    assert instance(site).identity["group_id"] == "old-mirror"
    assert consumer_of(site)["group.id"] == "old-mirror"
    assert consumer_of(site)["auto.offset.reset"] == "latest"
