"""Certificates of the TLS connections to a cluster: of brokers, authorities and our identity.

Python decodes only what its context has verified, and lists only authorities; so the few fields
that are needed are read from the DER text of each certificate (RFC 5280, section 4.1).
"""

import binascii
import re
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Literal

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka.connection import tls_context
from mirror_report.model import Certificate, ReportError, sentence

CONNECT_SECONDS = 5.0
AT_ONCE = 16
# OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED.
HAS_EXPIRED = 10

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_INTEGER, _SEQUENCE, _VERSION = 0x02, 0x30, 0xA0
_TIMES = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
_TEXTS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
_NAMES = {
    bytes([0x55, 4, 3]): "CN",
    bytes([0x55, 4, 6]): "C",
    bytes([0x55, 4, 7]): "L",
    bytes([0x55, 4, 8]): "ST",
    bytes([0x55, 4, 10]): "O",
    bytes([0x55, 4, 11]): "OU",
}


class CertificateError(ReportError):
    """These bytes are no X.509 certificate."""


def examine(
    cluster: Cluster, credentials: Credentials, brokers: Mapping[str, tuple[str, int]]
) -> list[Certificate]:
    """Read every certificate of a cluster; without TLS there is none, and nothing is opened.

    :param brokers: name of each -> host and port of the listener that clients use.
    """
    if not cluster.uses_tls:
        return []
    stored: list[Certificate] = []
    try:
        if cluster.ssl_ca:
            stored += _stored(cluster, "authority", credentials.read(cluster.credential("ca.pem")))
        if cluster.ssl_certificate:
            stored += _stored(cluster, "client", credentials.read(cluster.credential("cert.pem")))
        context = tls_context(cluster, credentials)
    except ReportError as error:
        return stored + [
            Certificate(cluster.alias, "broker", name, problem=error.message)
            for name in sorted(brokers)
        ]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return stored + list(
            pool.map(
                lambda broker: _shown(cluster.alias, context, *broker), sorted(brokers.items())
            )
        )


def bootstrap(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Brokers of the configuration, for a cluster that does not list its own."""
    split = {server: server.rpartition(":") for server in cluster.bootstrap_servers}
    return {server: (host.strip("[]"), int(port)) for server, (host, _, port) in split.items()}


def _stored(cluster: Cluster, role: Literal["authority", "client"], text: str) -> list[Certificate]:
    holder = "ssl_ca" if role == "authority" else f"identity {cluster.identity}"
    certificates = []
    for block in _PEM.findall(text):
        try:
            subject, ends_at_ms = read(binascii.a2b_base64(block))
        except (binascii.Error, CertificateError) as error:
            certificates.append(Certificate(cluster.alias, role, holder, problem=str(error)))
        else:
            certificates.append(Certificate(cluster.alias, role, holder, subject, ends_at_ms))
    return certificates or [Certificate(cluster.alias, role, holder, problem="no PEM certificate")]


def _shown(
    alias: str, context: ssl.SSLContext, holder: str, address: tuple[str, int]
) -> Certificate:
    """The certificate that a broker presents; nothing else is asked of it."""
    try:
        with (
            socket.create_connection(address, CONNECT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as secured,
        ):
            der = secured.getpeercert(binary_form=True)
        subject, ends_at_ms = read(der or b"")
    except ssl.SSLCertVerificationError as error:
        return Certificate(
            alias,
            "broker",
            holder,
            problem=error.verify_message,
            expired=error.verify_code == HAS_EXPIRED,
        )
    except (OSError, CertificateError) as error:
        return Certificate(alias, "broker", holder, problem=sentence(error))
    return Certificate(alias, "broker", holder, subject, ends_at_ms)


def read(der: bytes) -> tuple[str, int]:
    """Subject of a certificate, and when it ends (ms).

    :param der: one X.509 certificate.
    :raises CertificateError: it is none, or not whole.
    """
    try:
        ((_, certificate),) = _parts(der)
        (_, signed), *_ = _parts(certificate)
        fields = [part for part in _parts(signed) if part[0] != _VERSION]
        # serial number, signature algorithm, issuer, validity, subject
        if [kind for kind, _ in fields[:5]] != [_INTEGER, *[_SEQUENCE] * 4]:
            raise CertificateError("not an X.509 certificate")
        _, (kind, ends) = _parts(fields[3][1])
        at = datetime.strptime(ends.decode("ascii"), _TIMES[kind]).replace(tzinfo=UTC)
        return _subject(fields[4][1]), int(at.timestamp() * 1000)
    except (ValueError, IndexError, KeyError) as error:
        raise CertificateError("not an X.509 certificate") from error


def _subject(name: bytes) -> str:
    """A distinguished name, the part that names its owner first."""
    attributes = []
    for _, group in _parts(name):
        for _, attribute in _parts(group):
            (_, oid), (kind, value) = _parts(attribute)
            if oid in _NAMES:
                attributes.append(f"{_NAMES[oid]}={value.decode(_TEXTS.get(kind, 'latin-1'))}")
    return ",".join(reversed(attributes))


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """Tags and contents of the elements that follow each other.

    :raises IndexError: one of them is cut off.
    """
    parts, at = [], 0
    while at < len(der):
        kind, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        if at + length > len(der):
            raise IndexError(at + length)
        parts.append((kind, der[at : at + length]))
        at += length
    return parts
