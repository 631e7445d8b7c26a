"""Filters about certificates: whether a broker can use one, and as whom Kafka knows its holder."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE = "kafka_broker_ssl_certificate"
KEY = "kafka_broker_ssl_key"
AUTHORITIES = "kafka_broker_ssl_ca"
# What Java writes as a word; anything else it writes as a number and an encoded value.
WORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
}
ESCAPED = frozenset(',=+<>#;"\\')


def _certificates(name: str, text: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(str(text).encode())
    except ValueError:
        raise AnsibleFilterError(
            f"{name}: holds no certificate as PEM text; look the file up instead of naming it"
        ) from None


def certificate_principal(certificate: str) -> str:
    """The principal Kafka gives to whoever holds a certificate.

    :param certificate: PEM text.
    :returns: ``User:`` and the subject as ``X500Principal.getName()`` of Java writes it.
    """
    parts = []
    for rdn in reversed(_certificates("certificate", certificate)[0].subject.rdns):
        attributes = list(rdn)
        value = str(attributes[0].value)
        if (
            len(attributes) > 1
            or attributes[0].oid not in WORDS
            or ESCAPED & set(value)
            or value != value.strip()
        ):
            raise AnsibleFilterError(
                f"the certificate's subject holds '{rdn.rfc4514_string()}', for which Kafka's "
                "super.users has no plain word; use a subject of CN, OU, O, L, ST and C without "
                'any of , = + < > # ; " \\'
            )
        parts.append(f"{WORDS[attributes[0].oid]}={value}")
    return f"User:{','.join(parts)}"


def certificate_problems(certificate: str, key: str, authorities: str, host: str) -> list[str]:
    """Why a broker could not work with a certificate.

    :param certificate: PEM text of the broker's certificate and what leads to its authority.
    :param key: PEM text of its private key, SECRET.
    :param authorities: PEM text of those who are trusted.
    :param host: the name clients are told to connect to.
    :returns: messages that name the variable and the cure, and hold nothing of the key.
    """
    chain = _certificates(CERTIFICATE, certificate)
    return [
        *_of_key(chain[0], key),
        *_of_time(chain[0], datetime.datetime.now(datetime.UTC)),
        *_of_names(chain[0], host),
        *_of_purpose(chain[0]),
        *_of_issuer(chain, _certificates(AUTHORITIES, authorities)),
    ]


def _of_key(certificate: x509.Certificate, key: str) -> Iterator[str]:
    if "-----BEGIN PRIVATE KEY-----" not in key:
        yield (
            f"{KEY}: is not an unencrypted PKCS#8 key as PEM text (BEGIN PRIVATE KEY), which is "
            "all Kafka reads; convert it with openssl pkcs8 -topk8 -nocrypt"
        )
        return
    try:
        public: Any = serialization.load_pem_private_key(str(key).encode(), None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        yield f"{KEY}: cannot be read; look the whole file up"
        return
    if public != certificate.public_key():
        yield f"{KEY}: does not belong to {CERTIFICATE}; set both to those of one pair"


def _of_time(certificate: x509.Certificate, now: datetime.datetime) -> Iterator[str]:
    if certificate.not_valid_after_utc <= now:
        yield f"{CERTIFICATE}: expired on {certificate.not_valid_after_utc:%F %R} UTC; renew it"
    if certificate.not_valid_before_utc > now:
        yield (
            f"{CERTIFICATE}: is not valid before {certificate.not_valid_before_utc:%F %R} UTC; "
            "wait, or correct the controller's clock"
        )


def _of_names(certificate: x509.Certificate, host: str) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = extension.value.get_values_for_type(x509.DNSName)
        names += map(str, extension.value.get_values_for_type(x509.IPAddress))
    except x509.ExtensionNotFound:
        names = []
    known = {name.lower() for name in names}
    for wanted, why in ((host, "kafka_broker_host"), ("localhost", "the broker's own connections")):
        if not {wanted.lower(), f"*.{wanted.partition('.')[2].lower()}"} & known:
            yield (
                f"{CERTIFICATE}: does not name {wanted} ({why}), but {', '.join(names) or 'nobody'}"
                f"; issue it with the subject alternative name {wanted}"
            )


def _of_purpose(certificate: x509.Certificate) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        return
    if not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH} <= set(
        extension.value
    ):
        yield (
            f"{CERTIFICATE}: is not for both ends of a connection; issue it with the extended key "
            "usages serverAuth and clientAuth, or without any"
        )


def _of_issuer(
    chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate]
) -> Iterator[str]:
    current = chain[0]
    for _ in chain:
        if current in authorities or any(_issued(current, authority) for authority in authorities):
            return
        current = next(
            (certificate for certificate in chain[1:] if _issued(current, certificate)), current
        )
    yield (
        f"{CERTIFICATE}: was issued by '{current.issuer.rfc4514_string()}', who is not in "
        f"{AUTHORITIES}; add that authority there, or the certificates between to {CERTIFICATE}"
    )


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            function.__name__: function
            for function in (certificate_principal, certificate_problems)
        }
