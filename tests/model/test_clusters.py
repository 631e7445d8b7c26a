"""How clients reach a cluster: credentials, properties, kafka-python."""

from __future__ import annotations

import pytest
from cryptography import x509
from mirror_model import clusters
from mirror_model.keys import ModelError
from mirror_model.logins import kafka_credentials, kafka_python_client

from tests.model.conftest import Site, certificate_of
from tests.model.test_instances import report


def test_credentials_are_files(site: Site) -> None:
    files = kafka_credentials(site.model, "east", "report")
    assert set(files) == {"east.report.jaas", "east.report.password", "east.report.ca.pem"}
    assert files["east.report.password"] == "CANARY-report"
    assert files["east.report.jaas"].endswith('password="CANARY-report";')
    assert kafka_credentials(site.model, "west", "report") == {}


def test_mirror_stands_in_for_an_identity_that_is_not_defined(site: Site) -> None:
    files = kafka_credentials(site.model, "east", "admin")
    assert files["east.admin.password"] == "CANARY-east"


def test_a_login_that_cannot_work_names_the_variable_and_no_secret(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = "CANARY\n"
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities") as problem:
        kafka_credentials(site.model, "east", "mirror")
    assert "CANARY" not in str(problem.value)


def test_client_of_kafka_python(site: Site) -> None:
    assert kafka_python_client(site.model, "east", "report") == {
        "bootstrap_servers": ["east1:9092", "east2:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "username": "mirror-report",
        "password": "CANARY-report",
        "ssl_ca": site["clusters"]["east"]["ssl_ca"],
    }
    assert kafka_python_client(site.model, "west", "report") == {
        "bootstrap_servers": ["west1:9092"],
        "security_protocol": "PLAINTEXT",
    }


PAIR = {
    "ssl_certificate": certificate_of(x509.Name.from_rfc4514_string("CN=mirror")),
    "ssl_key": "CANARY-key\n",
}


def test_a_client_certificate_reaches_every_client(site: Site) -> None:
    site["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": PAIR}}
    files = kafka_credentials(site.model, "east", "mirror")
    assert set(files) == {"east.mirror.ca.pem", "east.mirror.cert.pem", "east.mirror.key.pem"}
    client = kafka_python_client(site.model, "east", "mirror")
    assert PAIR.items() <= client.items()
    directory = "/run/credentials/unit.service"
    properties = clusters.client_properties(site.model.clusters, "east", "mirror", directory)
    assert {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": f"${{dir:{directory}:east.mirror.cert.pem}}",
        "ssl.keystore.key": f"${{dir:{directory}:east.mirror.key.pem}}",
    }.items() <= properties.items()
    east = report(site)["clusters"]["east"]
    assert (east["ssl_certificate"], east["principal"]) == (True, "User:CN=mirror")
    assert "CANARY" not in str((properties, report(site)))
