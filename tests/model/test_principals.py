"""The principal of a client."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror_model import principals
from mirror_model.clusters import filled_clusters
from mirror_model.keys import ModelError

from tests.model.conftest import Site, certificate_of
from tests.model.test_permissions import rows


def name_of(*rdns: list[tuple[x509.ObjectIdentifier, str]]) -> x509.Name:
    return x509.Name([
        x509.RelativeDistinguishedName([x509.NameAttribute(oid, value) for oid, value in rdn])
        for rdn in rdns
    ])  # fmt: skip


CN, ORG, C = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.COUNTRY_NAME


SUBJECTS = {
    "CN=mirror": name_of([(CN, "mirror")]),
    "CN=mirror,OU=Data,O=Example Org,L=Ulm,ST=BW,C=DE": name_of(
        [(C, "DE")], [(NameOID.STATE_OR_PROVINCE_NAME, "BW")], [(NameOID.LOCALITY_NAME, "Ulm")],
        [(ORG, "Example Org")], [(NameOID.ORGANIZATIONAL_UNIT_NAME, "Data")], [(CN, "mirror")],
    ),
    r"CN=a\,b\+c\"d\\e\<f\>g\;h\#i\=j": name_of([(CN, r'a,b+c"d\e<f>g;h#i=j')]),
    r"CN=\ \ two\ ,O=Ä é 日": name_of([(ORG, "Ä é 日")], [(CN, "  two ")]),
    "UID=m,STREET=Weg 1,DC=example,DC=org": name_of(
        [(NameOID.DOMAIN_COMPONENT, "org")], [(NameOID.DOMAIN_COMPONENT, "example")],
        [(NameOID.STREET_ADDRESS, "Weg 1")], [(NameOID.USER_ID, "m")],
    ),
    "1.2.840.113549.1.9.1=#160b614065786d706c652e6f72,CN=m": name_of(
        [(CN, "m")], [(NameOID.EMAIL_ADDRESS, "a@exmple.or")]
    ),
    "2.5.4.5=#13023137": name_of([(NameOID.SERIAL_NUMBER, "17")]),
    "CN=m+O=x": name_of([(ORG, "x"), (CN, "m")]),
}  # fmt: skip


@pytest.mark.parametrize("written", SUBJECTS)
def test_a_subject_is_written_as_java_does(written: str) -> None:
    assert principals.subject_of(certificate_of(SUBJECTS[written])) == written


def java_name(java: Callable[[str], Any], certificate: str) -> str:
    factory = java("java.security.cert.CertificateFactory").getInstance("X.509")
    stream = java("java.io.ByteArrayInputStream")(certificate.encode())
    return str(factory.generateCertificate(stream).getSubjectX500Principal().getName())


def test_java_writes_these_subjects_so(java: Callable[[str], Any]) -> None:
    for written, subject in SUBJECTS.items():
        assert java_name(java, certificate_of(subject)) == written


PRINTABLE = string.ascii_letters + string.digits + " '()+,-./:=?"


@pytest.mark.filterwarnings("ignore:Attribute's length")
def test_java_and_we_agree_on_any_subject(java: Callable[[str], Any]) -> None:
    oids = [CN, ORG, NameOID.USER_ID, NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER, NameOID.TITLE]
    ours = ' ab\r\n\t\0,=+<>#;"\\/*@é日ß\u00a0😀'
    everything = st.sampled_from(ours) | st.characters(exclude_categories=["Cs"])
    kinds = {"UTF8String": everything, "UniversalString": everything,
             "PrintableString": st.sampled_from(PRINTABLE),
             "IA5String": st.characters(max_codepoint=127),
             "T61String": st.characters(max_codepoint=127)}  # fmt: skip
    values = st.one_of(*(
        st.tuples(st.just(kind), st.text(some, min_size=1, max_size=40) | st.just("x" * 300))
        for kind, some in kinds.items()
    ))  # fmt: skip

    @settings(max_examples=500, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(oids), values), min_size=1, max_size=4))
    def agree(attributes: list[tuple[x509.ObjectIdentifier, tuple[str, str]]]) -> None:
        certificate = certificate_of(x509.Name([
            x509.RelativeDistinguishedName(
                [x509.NameAttribute(oid, text, _type=_ASN1Type[kind], _validate=False)]
            )
            for oid, (kind, text) in attributes
        ]))  # fmt: skip
        assert principals.subject_of(certificate) == java_name(java, certificate)

    agree()


def test_a_subject_that_java_garbles_is_not_guessed() -> None:
    old = x509.NameAttribute(CN, "mirror", _type=_ASN1Type.BMPString)
    with pytest.raises(ModelError, match="set principal"):
        principals.subject_of(certificate_of(x509.Name([old])))


@pytest.mark.parametrize(
    ("cluster", "identity", "principal"),
    [
        ({"security_protocol": "PLAINTEXT"}, {"username": "u"}, "User:ANONYMOUS"),
        ({"security_protocol": "SASL_PLAINTEXT"}, {"username": "u"}, "User:u"),
        ({"security_protocol": "SASL_SSL"}, {"username": "u", "ssl_certificate": "x"}, "User:u"),
        ({"security_protocol": "SASL_SSL"}, {}, None),
        ({"security_protocol": "SSL"}, {}, "User:ANONYMOUS"),
        ({"security_protocol": "SSL", "properties": {"ssl.keystore.location": "/k"}}, {}, None),
        ({"security_protocol": "SSL"}, {"ssl_certificate": "x", "principal": "User:m"}, "User:m"),
    ],
)
def test_principal(
    cluster: dict[str, Any], identity: dict[str, Any], principal: str | None
) -> None:
    clusters = filled_clusters({"east": {**cluster, "identities": {"mirror": identity}}})
    assert principals.principal_of(clusters, "east", "mirror") == principal
    assert principals.principal_of(clusters, "east", "report") == principal


def test_permissions_go_to_the_subject_of_a_certificate(mm1: Site) -> None:
    pair = {
        "ssl_certificate": certificate_of(name_of([(ORG, "a, b")], [(CN, "m")])),
        "ssl_key": "x",
    }
    mm1["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": pair}}
    assert {row["principal"] for row in rows(mm1) if row["cluster"] == "east"} == {
        r"User:CN=m,O=a\, b"
    }


def test_a_certificate_that_cannot_be_read_is_named(mm1: Site) -> None:
    pair = {"ssl_certificate": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"}
    mm1["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": pair}}
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities: ssl_certificate"):
        rows(mm1)


def test_nobody_is_guessed(mm1: Site) -> None:
    mm1["clusters"]["east"] |= {
        "security_protocol": "SSL",
        "identities": {},
        "properties": {"ssl.keystore.location": "/etc/k.jks"},
    }
    with pytest.raises(ModelError, match=r"kafka_clusters\.east\.identities\.mirror\.principal"):
        rows(mm1)


@pytest.mark.parametrize("principal", ["mirror", "User:", 7])
def test_a_principal_without_its_kind_is_refused(mm1: Site, principal: object) -> None:
    mm1["clusters"]["east"]["identities"]["mirror"]["principal"] = principal
    assert any("identities.mirror.principal" in error for error in mm1.validate()["errors"])
