"""Which certificates of servers are refused, and the principals of brokers' certificates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from mirror_model.certificates import server_certificate_problems
from mirror_model.keys import ModelError
from mirror_model.principals import certificate_principal

from tests.loading import certificates as lab

VARIABLES = {
    "certificate": "kafka_broker_ssl_certificate",
    "key": "kafka_broker_ssl_key",
    "authorities": "kafka_broker_ssl_ca",
}


def texts(certificate: str, key: str, authorities: str) -> dict[str, str]:
    """PEM texts, named as :data:`VARIABLES` are."""
    return dict(zip(VARIABLES, (certificate, key, authorities), strict=True))


class Files:
    """Certificates as PEM text."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.make("source1")

    def make(self, name: str, **wanted: Any) -> None:
        """Make a certificate, by default one that is good for source1."""
        lab.ensure(
            self.directory, lab.Wanted(name, **{"hosts": ["source1", "localhost"], **wanted})
        )

    def __getitem__(self, name: str) -> str:
        return (self.directory / name).read_text()

    def problems(
        self, name: str = "source1", key: str = "", host: str = "source1", *,
        authorities: str = "", pkcs8: bool = True,
    ) -> list[str]:  # fmt: skip
        """What is said of a broker's certificate, by default with its own key."""
        return server_certificate_problems(
            texts(
                self[f"{name}.pem"], key or self[f"{name}.key"], authorities or self["lab.ca.pem"]
            ),
            {host: "kafka_broker_host", "localhost": "the broker's own connections"}, VARIABLES,
            pkcs8=pkcs8,
        )  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_good_certificate_has_no_problem(files):
    assert files.problems() == []


def test_authorities_are_exchanged_with_both_in_one_file(files):
    files.make("other", authority="former")
    both = files["former.ca.pem"] + files["lab.ca.pem"]
    for name in ("source1", "other"):
        assert files.problems(name, authorities=both) == []


def test_a_wildcard_names_the_hosts_of_its_domain(files):
    files.make("all", hosts=["*.example.org", "localhost"])
    assert files.problems("all", host="source1.example.org") == []
    assert files.problems("all", host="a.source1.example.org")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"days": -1}, ["kafka_broker_ssl_certificate: expired on", "renew"]),
        ({"authority": "other"}, ["'CN=other authority'", "kafka_broker_ssl_ca"]),
        ({"hosts": ["elsewhere", "localhost"]}, ["does not name source1", "kafka_broker_host"]),
        ({"hosts": ["source1"]}, ["does not name localhost", "subject alternative name"]),
    ],
)
def test_a_certificate_that_cannot_work_is_reported_with_its_cure(files, wanted, words):
    files.make("wrong", **wanted)
    [problem] = files.problems("wrong")
    for word in words:
        assert word in problem


def test_a_key_of_another_certificate(files):
    files.make("other")
    [problem] = files.problems(key=files["other.key"])
    assert problem.startswith("kafka_broker_ssl_key: does not belong")


def test_a_key_in_a_form_that_kafka_does_not_read_is_not_quoted(files):
    key = serialization.load_pem_private_key(files["source1.key"].encode(), None)
    old = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()
    [problem] = files.problems(key=old)
    assert "openssl pkcs8" in problem
    assert old.splitlines()[1] not in problem
    assert files.problems(key=old, pkcs8=False) == []


def test_a_path_instead_of_a_certificate():
    with pytest.raises(ModelError, match=r"kafka_broker_ssl_certificate: .* look the file up"):
        server_certificate_problems(texts("/etc/ssl/source1.pem", "", ""), {}, VARIABLES)


@pytest.mark.parametrize(
    ("purposes", "client", "said"),
    [
        (["SERVER_AUTH"], False, []),
        (["SERVER_AUTH"], True, ["serverAuth and clientAuth"]),
        (["SERVER_AUTH", "CLIENT_AUTH"], True, []),
        (["CLIENT_AUTH"], False, ["serverAuth"]),
        ([], True, []),
    ],
)
def test_a_certificate_is_for_what_the_server_does_with_it(purposes, client, said):
    certificate, key = self_signed(purposes=[getattr(ExtendedKeyUsageOID, p) for p in purposes])
    problems = server_certificate_problems(
        texts(certificate, key, certificate), {}, VARIABLES, client=client
    )
    assert len(problems) == len(said)
    assert all(f"usage {words}, or" in each for words, each in zip(said, problems, strict=True))


def self_signed(
    *attributes: tuple[Any, str], purposes: Sequence[x509.ObjectIdentifier] = ()
) -> tuple[str, str]:
    """A certificate and its key."""
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    key = lab.ec.generate_private_key(lab.ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(lab.NOW).not_valid_after(lab.NOW + lab.DAY)
    )  # fmt: skip
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return (
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(serialization.Encoding.PEM, *form).decode(),
    )


def with_subject(*attributes: tuple[Any, str]) -> str:
    return self_signed(*attributes)[0]


def test_a_principal_is_the_subject_from_its_end():
    certificate = with_subject(
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.ORGANIZATION_NAME, "Example Org"),
        (NameOID.COMMON_NAME, "source1"),
    )
    assert certificate_principal(certificate) == "User:CN=source1,O=Example Org,C=DE"


@pytest.mark.parametrize(
    "attribute", [(NameOID.COMMON_NAME, "a;User:b"), (NameOID.EMAIL_ADDRESS, "a@example.org")]
)
def test_a_subject_that_super_users_could_misread_is_refused(attribute):
    with pytest.raises(ModelError, match="use a subject of CN"):
        certificate_principal(with_subject(attribute))
