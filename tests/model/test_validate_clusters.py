"""What a cluster is refused for: its alias, its identities and its security."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.conftest import PAIR, Site, refused


def test_unknown_key_of_a_cluster(site: Site) -> None:
    site["clusters"]["west"]["bootstrap_server"] = ["x:1"]
    refused(site, "kafka_clusters.west", "did you mean 'bootstrap_servers'?")


def test_unknown_key_of_an_identity(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["pasword"] = "CANARY"
    refused(site, "kafka_clusters.east.identities.mirror", "did you mean 'password'?")


@pytest.mark.parametrize("alias", ["eu.west", "eu west", "", "öst", "a:b"])
def test_alias_that_no_property_name_could_carry(site: Site, alias: str) -> None:
    site["clusters"][alias] = {"bootstrap_servers": ["x:1"]}
    refused(site, f"kafka_clusters.{alias}", "letters, digits")


@pytest.mark.parametrize("alias", ["producer", "consumer", "Admin", "topics", "ssl"])
def test_alias_that_begins_kafkas_own_properties(site: Site, alias: str) -> None:
    site["clusters"][alias] = {"bootstrap_servers": ["x:1"]}
    refused(site, f"kafka_clusters.{alias}", "Kafka's own property names")


def test_sasl_without_an_identity(site: Site) -> None:
    site["clusters"]["west"]["security_protocol"] = "SASL_PLAINTEXT"
    refused(site, "kafka_clusters.west.identities.mirror", "sasl_mechanism")


@pytest.mark.parametrize("key", ["sasl_mechanism", "username", "password"])
def test_sasl_with_half_an_identity(site: Site, key: str) -> None:
    del site["clusters"]["east"]["identities"]["report"][key]
    refused(site, "kafka_clusters.east.identities.report", key)


@pytest.mark.parametrize("password", ["CANARY\n", "CANARY\rx", "CANARY\0"])
def test_password_that_no_login_can_carry(site: Site, password: str) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = password
    refused(site, "kafka_clusters.east.identities.mirror.password", "line break")


def test_password_that_is_a_number(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = 12345
    assert "12345" not in refused(site, "identities.mirror.password", "quote numbers")


@pytest.mark.parametrize(("key", "value"), [("security_protocol", "TLS"),
                                            ("security_protocol", "sasl_ssl")])  # fmt: skip
def test_unknown_protocol(site: Site, key: str, value: str) -> None:
    site["clusters"]["west"][key] = value
    refused(site, "kafka_clusters.west.security_protocol", "SASL_SSL")


def test_a_protocol_of_null_is_the_default_by_its_name(site: Site) -> None:
    site["clusters"]["west"] |= {"security_protocol": None, "identities": {"mirror": PAIR}}
    refused(site, "kafka_clusters.west.identities.mirror.ssl_certificate", "PLAINTEXT does not")


def test_unknown_mechanism(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["sasl_mechanism"] = "SCRAM"
    refused(site, "identities.mirror.sasl_mechanism", "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("mechanism", "needs"),
    [("GSSAPI", "keytab"), ("gssapi", "keytab"), ("OAUTHBEARER", "tokens"),
     ("AWS_MSK_IAM", "Amazon's library")],
)  # fmt: skip
def test_a_mechanism_that_is_not_offered_says_what_it_would_need(
    site: Site, mechanism: str, needs: str
) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["sasl_mechanism"] = mechanism
    refused(site, "identities.mirror.sasl_mechanism: ", needs, "use SCRAM-SHA-512")


def test_a_client_certificate(site: Site) -> None:
    site["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": PAIR}}
    assert site.validate()["errors"] == []


@pytest.mark.parametrize("key", sorted(PAIR))
def test_half_a_client_certificate(site: Site, key: str) -> None:
    site["clusters"]["east"]["identities"]["mirror"][key] = PAIR[key]
    refused(site, "kafka_clusters.east.identities.mirror", "belong together")


def test_a_client_certificate_without_encryption(site: Site) -> None:
    site["clusters"]["west"]["identities"] = {"mirror": PAIR}
    refused(site, "kafka_clusters.west.identities.mirror.ssl_certificate", "SASL_SSL")


def test_a_key_that_java_cannot_read(site: Site) -> None:
    rsa = PAIR["ssl_key"].replace("PRIVATE", "RSA PRIVATE")
    site["clusters"]["east"]["identities"]["mirror"] |= {**PAIR, "ssl_key": rsa}
    refused(site, "kafka_clusters.east.identities.mirror.ssl_key", "openssl pkcs8")


def test_certificate_authority_without_encryption(site: Site) -> None:
    site["clusters"]["west"]["ssl_ca"] = site["clusters"]["east"]["ssl_ca"]
    refused(site, "kafka_clusters.west.ssl_ca", "SASL_SSL")


def test_certificate_authority_given_as_a_path(site: Site) -> None:
    site["clusters"]["east"]["ssl_ca"] = "/etc/ssl/east.pem"
    refused(site, "kafka_clusters.east.ssl_ca", "PEM")


@pytest.mark.parametrize("servers", [[], ["east1"], ["east1:x"], "east1:9092", [7]])
def test_bootstrap_servers(site: Site, servers: Any) -> None:
    site["clusters"]["north"]["bootstrap_servers"] = servers
    refused(site, "kafka_clusters.north.bootstrap_servers")


@pytest.mark.parametrize(
    "servers", [["[2001:db8::1]:9092"], ["10.0.0.1:9092", "a-b.example.com:1"]]
)
def test_forms_of_bootstrap_servers(site: Site, servers: list[str]) -> None:
    site["clusters"]["north"]["bootstrap_servers"] = servers
    assert site.validate()["errors"] == []
