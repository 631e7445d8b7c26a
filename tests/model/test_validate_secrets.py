"""Secrets in clear, references without a target, and stores that only Java reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mirror_model import kafka_names
from mirror_model.kafka_names import HIDDEN_KEYS, REFERENCE, SECRET_KEYS, exposed_properties

from tests.model.conftest import PAIR, Kafka, Site, mentioned, refused

OWN = "/run/credentials/mirrormaker.service"
NAME = "ssl.endpoint.identification.algorithm"


def of_cluster(site: Site, **properties: Any) -> str:
    """Set properties of the cluster east; the variable's name is given back."""
    site["clusters"]["east"]["properties"] = properties
    return "kafka_clusters.east.properties"


# Secrets in clear


@pytest.mark.parametrize("key", sorted(SECRET_KEYS))
@pytest.mark.parametrize("layer", ["cluster", "flow", "instance"])
def test_a_secret_in_clear_is_refused(site: Site, layer: str, key: str) -> None:
    if layer == "cluster":
        site["clusters"]["west"]["properties"] = {key: "CANARY"}
    elif layer == "flow":
        site.flow["properties"] = {f"producer.{key}": "CANARY"}
    else:
        site.instance["producer_properties"] = {key: "CANARY"}
    refused(site, key, "must not stand in clear", SECRET_KEYS[key])


def test_the_password_of_a_truststore_is_no_secret(site: Site) -> None:
    of_cluster(site, **{"ssl.truststore.password": "changeit"})
    del site["clusters"]["east"]["ssl_ca"]
    mentioned(site, "ssl.truststore.password", "only Java reads it")


@pytest.mark.parametrize("key", ["my.reporter.password", "my.reporter.sasl.jaas.config"])
def test_a_secret_of_a_plug_in_is_mentioned(site: Site, key: str) -> None:
    site.instance["consumer_properties"] = {key: "CANARY"}
    mentioned(site, f"mirrormaker_instances.mirrormaker.consumer_properties['{key}']", "--diff")


def test_a_secret_of_the_nodes_own_server_is_mentioned(mm2_site: Site) -> None:
    mm2_site.instance["hosts"] = ["mirror1", "mirror2"]
    key = "listeners.https.ssl.keystore.password"
    mm2_site.instance["worker_properties"] = {key: "CANARY"}
    mentioned(mm2_site, f"worker_properties['{key}']", "in clear")


def test_a_broker_s_properties_hold_neither_secrets_nor_references() -> None:
    listener = "listener.name.client."
    exposed = {
        f"{listener}plain.sasl.jaas.config": "CANARY",
        f"{listener}ssl.keystore.key": "CANARY",
        "log.dirs": "${env:HOME}",
        "metadata.log.dir": "${HOME}",
    }
    permitted = {"ssl.keystore.password": None, "log.retention.ms": -1, "ssl.keystore.type": "PEM"}
    assert exposed_properties(permitted | exposed) == sorted(exposed)


def test_kafka_hides_exactly_what_may_be_a_reference(kafka: Kafka) -> None:
    """Every other property of the two clients is printed when a client starts."""
    hidden = set()
    for kind in ("consumer.ConsumerConfig", "producer.ProducerConfig", "admin.AdminClientConfig"):
        keys = kafka.class_named(f"org.apache.kafka.clients.{kind}").configDef().configKeys()
        kind_of = keys["bootstrap.servers"].getClass().getField("type")
        hidden |= {name for name in keys if str(kind_of.get(keys[name])) == "PASSWORD"}
    assert hidden == HIDDEN_KEYS & kafka_names.SECURITY[kafka.line]


# References


def test_a_reference_to_a_credential_of_the_process(site: Site) -> None:
    reference = f"${{dir:{OWN}:east.mirror.ca.pem}}"
    site.instance["consumer_properties"] = {"ssl.truststore.certificates": reference}
    assert site.validate() == {"errors": [], "warnings": []}


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (f"${{dir:{OWN}:east.mirror.key.pem}}", ["has no credential", "east.mirror.ca.pem"]),
        (f"${{dir:{OWN}:east.mirror.password}}", ["has no credential", "east.mirror.jaas"]),
        ("${dir:/etc/kafka:ca.pem}", ["'/etc/kafka' is not where mirrormaker may read", OWN]),
        ("${dir:ca.pem}", ["is not where mirrormaker may read"]),
        ("${file:/etc/kafka/secrets:ca}", ["no config provider 'file'", "identities"]),
        ("${env:CA}", ["no config provider 'env'"]),
        (f"a ${{dir:{OWN}:east.mirror.ca.pem}} ${{vault:x:y}}", ["no config provider 'vault'"]),
    ],
)  # fmt: skip
def test_a_reference_that_comes_to_nothing(site: Site, reference: str, words: list[str]) -> None:
    site.instance["consumer_properties"] = {"ssl.truststore.certificates": reference}
    where = "mirrormaker_instances.mirrormaker.consumer_properties['ssl.truststore.certificates']"
    refused(site, where, "the literal text would be used", *words)


def test_a_reference_of_a_cluster_has_to_suit_every_process(site: Site) -> None:
    reference = f"${{dir:{OWN}:east.mirror.ca.pem}}"
    del site["clusters"]["west"]
    site["clusters"]["west"] = {
        "bootstrap_servers": ["west1:9093"],
        "security_protocol": "SSL",
        "identities": {"mirror": PAIR},
        "properties": {"ssl.truststore.certificates": reference},
    }
    found = site.validate()
    assert len(found["errors"]) == 1
    assert "is not where mirrormaker-back may read" in found["errors"][0]


@pytest.mark.parametrize("layer", ["cluster", "flow", "instance", "mm2 flow", "mm2 worker"])
def test_a_reference_where_kafka_prints_the_value(site: Site, mm2_site: Site, layer: str) -> None:
    value = f"${{dir:{OWN}:east.mirror.jaas}}"
    chosen = mm2_site if layer.startswith("mm2") else site
    if layer == "cluster":
        of_cluster(site, **{"client.rack": value})
    elif layer == "flow":
        site.flow["properties"] = {"consumer.client.rack": value}
    elif layer == "instance":
        site.instance["consumer_properties"] = {"client.rack": value}
    elif layer == "mm2 flow":
        mm2_site.flow["properties"] = {"groups.exclude": value}
    else:
        mm2_site.instance["worker_properties"] = {"metric.reporters": ["a", value]}
    refused(chosen, "Kafka prints the value of this property")


def test_what_looks_like_a_reference_but_is_none(site: Site) -> None:
    site.instance["consumer_properties"] = {"client.rack": "${HOME} $x {a:b}"}
    assert site.validate() == {"errors": [], "warnings": []}


@pytest.mark.parametrize(
    "text", ["${dir:/a:b}", "${a:b}", "x${a:b:c}y", "${a}", "${:}", "${a:b:c:d}", "$ {a:b}"]
)
def test_references_are_read_as_kafka_reads_them(java: Callable[[str], Any], text: str) -> None:
    kafkas = java("org.apache.kafka.common.config.ConfigTransformer").DEFAULT_PATTERN
    assert bool(kafkas.matcher(text).find()) == bool(REFERENCE.search(text))


# Host names of brokers


@pytest.mark.parametrize("value", ["", " ", "none"])
@pytest.mark.parametrize("layer", ["cluster", "flow", "instance"])
def test_host_names_are_always_checked(site: Site, layer: str, value: str) -> None:
    if layer == "cluster":
        of_cluster(site, **{NAME: value})
    elif layer == "flow":
        site.flow["properties"] = {f"consumer.{NAME}": value}
    else:
        site["instances"]["mirrormaker-back"]["producer_properties"] = {NAME: value}
    refused(site, NAME, "pose as it", f"'{NAME}:east' in mirror_accept")
    site["accept"] = [f"{NAME}:east"]
    mentioned(site, NAME, "accepted by mirror_accept")


@pytest.mark.parametrize("value", ["https", "HTTPS", None])
def test_the_default_check_of_host_names_passes(site: Site, value: Any) -> None:
    of_cluster(site, **{NAME: value})
    assert site.validate() == {"errors": [], "warnings": []}


@pytest.mark.parametrize("key", [f"consumer.{NAME}", f"producer.override.{NAME}"])
def test_host_names_of_a_flow_of_mirrormaker_2(mm2_site: Site, key: str) -> None:
    mm2_site.flow["properties"] = {key: ""}
    refused(mm2_site, key, "kafka_clusters")


@pytest.mark.parametrize("key", [NAME, f"producer.{NAME}", f"admin.{NAME}"])
def test_host_names_of_a_worker(mm2_site: Site, key: str) -> None:
    mm2_site.instance["worker_properties"] = {key: ""}
    refused(mm2_site, key, "kafka_clusters")


def test_host_names_between_nodes(mm2_site: Site) -> None:
    mm2_site.instance["hosts"] = ["mirror1", "mirror2"]
    mm2_site.instance["worker_properties"] = {f"listeners.https.{NAME}": ""}
    assert "mirror_accept" not in refused(mm2_site, f"listeners.https.{NAME}", "remove it")


# Stores of Java


def test_a_truststore_of_java_passes_through_and_is_mentioned(site: Site) -> None:
    del site["clusters"]["east"]["ssl_ca"]
    of_cluster(site, **{"ssl.truststore.location": "/etc/ssl/east.jks",
                        "ssl.truststore.type": "JKS"})  # fmt: skip
    mentioned(site, "ssl.truststore.location", "report", "put the authority into ssl_ca")


def test_a_keystore_of_java_passes_through_and_is_mentioned(site: Site) -> None:
    of_cluster(site, **{"ssl.keystore.location": "/etc/ssl/mirror.pem",
                        "ssl.keystore.type": "PEM"})  # fmt: skip
    mentioned(site, "ssl.keystore.location", "report", "ssl_certificate and ssl_key")


def test_two_truststores(site: Site) -> None:
    of_cluster(site, **{"ssl.truststore.location": "/etc/ssl/east.jks"})
    refused(site, "ssl.truststore.location", "contradicts ssl_ca", "keep one")


def test_two_keystores(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"] |= PAIR
    of_cluster(site, **{"ssl.keystore.location": "/etc/ssl/east.jks"})
    refused(site, "ssl.keystore.location", "contradicts identities.mirror", "keep one")
