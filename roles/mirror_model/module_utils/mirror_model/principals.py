"""Whom a broker takes a client for: the principal that permissions are given to."""

from typing import Any

from .clusters import cluster_of, identity_of, uses_sasl
from .keys import Clusters, ModelError

ANONYMOUS = "User:ANONYMOUS"
# Attribute types that RFC 2253 has a word for; any other is written as a number.
WORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# What stands in a subject that ``super.users`` cannot misread.
PLAIN = ("CN", "C", "L", "O", "OU", "ST")
ESCAPED = frozenset(',=+<>#;"\\')
BMP_STRING, UNIVERSAL_STRING = 30, 28
ENCODINGS = {BMP_STRING: "utf-16-be", UNIVERSAL_STRING: "utf-32-be"}
KEYSTORES = ("ssl.keystore.location", "ssl.keystore.certificate.chain")


def principal_of(clusters: Clusters, alias: str, identity: str) -> str | None:
    """The principal by which a cluster's brokers know an identity.

    :param clusters: ``kafka_clusters``.
    :param alias: which cluster.
    :param identity: for which purpose; ``mirror`` stands in for what is not defined.
    :returns: such as ``User:mirror``. ``None``: only a key store knows, of which the inventory has
        the path at most.
    :raises ModelError: an unknown alias, or a certificate that cannot be read.
    """
    cluster = cluster_of(clusters, alias)
    who = identity_of(clusters, alias, identity)
    if who["principal"]:
        return str(who["principal"])
    if uses_sasl(cluster):
        return f"User:{who['username']}" if who["username"] else None
    if cluster["security_protocol"] != "SSL":
        return ANONYMOUS
    if who["ssl_certificate"]:
        try:
            return f"User:{subject_of(who['ssl_certificate'])}"
        except ModelError as problem:
            raise ModelError(f"kafka_clusters.{alias}.identities: {problem}") from None
    return None if any(key in cluster["properties"] for key in KEYSTORES) else ANONYMOUS


def subject_of(certificate: str) -> str:
    """The subject of a certificate as Java's ``X500Principal.getName()`` writes it.

    :param certificate: PEM text; the first certificate counts.
    :raises ModelError: it cannot be read, or Java would garble it.

    Format: RFC 2253, with the choices of ``sun.security.x509.AVA`` (Java 17): ``=`` and ``#`` are
    escaped everywhere, and a type without a word has its encoded value in hexadecimal digits.
    """
    problem = "ssl_certificate: holds no certificate that can be read"
    return ",".join(
        "+".join(
            _attribute(attribute.oid.dotted_string, attribute.value, attribute._type.value)
            for attribute in rdn
        )
        for rdn in _names(certificate, problem)
    )


def certificate_principal(certificate: str) -> str:
    """The principal of whoever holds a certificate, as Kafka's ``super.users`` can list it.

    :param certificate: PEM text; the first certificate counts.
    :raises ModelError: it cannot be read, or ``super.users`` could misread its subject.
    """
    for rdn in _names(certificate, "certificate: holds no certificate as PEM text"):
        attribute, *others = rdn
        value, word = str(attribute.value), WORDS.get(attribute.oid.dotted_string)
        if others or word not in PLAIN or ESCAPED & set(value) or value != value.strip():
            raise ModelError(
                f"the certificate's subject holds '{rdn.rfc4514_string()}', for which Kafka's "
                "super.users has no plain word; use a subject of CN, OU, O, L, ST and C without "
                'any of , = + < > # ; " \\'
            )
    return f"User:{subject_of(certificate)}"


def _names(certificate: str, problem: str) -> list[Any]:
    """The relative names in the subject of a certificate, the last one first.

    :raises ModelError: it cannot be read; ``problem`` says so.
    """
    # Ansible depends on it; the hosts' interpreters never come here.
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.load_pem_x509_certificates(certificate.encode())[0].subject.rdns[::-1]
    except ValueError:
        raise ModelError(problem) from None


def _attribute(oid: str, value: str | bytes, tag: int) -> str:
    if isinstance(value, bytes) or oid not in WORDS or tag == UNIVERSAL_STRING:
        return f"{WORDS.get(oid, oid)}=#{_encoded(value, tag).hex()}"
    if tag == BMP_STRING:
        # Java reads its pairs of bytes as UTF-8.
        raise ModelError("ssl_certificate: its subject is a BMPString; set principal instead")
    text = "".join(
        "\\00" if char == "\0" else f"\\{char}" if char in ESCAPED else char for char in value
    )
    inner = text.strip(" \r")
    lead = len(text) - len(text.lstrip(" \r"))
    ends = text[:lead], text[lead + len(inner) :]
    before, after = ("".join(f"\\{char}" for char in end) for end in ends)
    return f"{WORDS[oid]}={before}{inner}{after}"


def _encoded(value: str | bytes, tag: int) -> bytes:
    """A value as it stands in the certificate: tag, length, content."""
    content = value if isinstance(value, bytes) else value.encode(ENCODINGS.get(tag, "utf-8"))
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + content
