"""Whether a server can work with a certificate."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from .keys import ModelError

# ``certificate``, ``key`` and ``authorities`` to their PEM texts, or to their variables.
Credentials = Mapping[str, str]


def server_certificate_problems(
    texts: Credentials,
    hosts: Mapping[str, str],
    named: Credentials,
    *,
    pkcs8: bool = False,
    client: bool = False,
) -> list[str]:
    """Why a server could not work with a certificate.

    :param texts: PEM texts of :data:`Credentials`: the server's certificate and what leads to its
        authority, its private key, SECRET, and those who are trusted.
    :param hosts: name that clients connect to -> what says so.
    :param named: what an inventory calls these :data:`Credentials`.
    :param pkcs8: whether the server reads no other form of a key.
    :param client: whether it shows the certificate to other servers as well.
    :returns: messages that name the variable and the cure, and hold nothing of the key.
    :raises ModelError: a text holds no certificate.
    """
    chain = _certificates(named["certificate"], texts["certificate"])
    return [
        *_of_key(chain[0], texts["key"], named, pkcs8=pkcs8),
        *_of_time(chain[0], datetime.datetime.now(datetime.UTC), named),
        *_of_names(chain[0], hosts, named),
        *_of_purpose(chain[0], named, client=client),
        *_of_issuer(chain, _certificates(named["authorities"], texts["authorities"]), named),
    ]


def _certificates(name: str, text: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise ModelError(
            f"{name}: holds no certificate as PEM text; look the file up instead of naming it"
        ) from None


def _of_key(
    certificate: x509.Certificate, key: str, named: Credentials, *, pkcs8: bool
) -> Iterator[str]:
    if pkcs8 and "-----BEGIN PRIVATE KEY-----" not in key:
        yield (
            f"{named['key']}: is not an unencrypted PKCS#8 key as PEM text (BEGIN PRIVATE KEY), "
            "which is all Kafka reads; convert it with openssl pkcs8 -topk8 -nocrypt"
        )
        return
    try:
        public: Any = serialization.load_pem_private_key(key.encode(), None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        yield f"{named['key']}: cannot be read; look the whole file up"
        return
    if public != certificate.public_key():
        yield (
            f"{named['key']}: does not belong to {named['certificate']}; set both to those of one "
            "pair"
        )


def _of_time(
    certificate: x509.Certificate, now: datetime.datetime, named: Credentials
) -> Iterator[str]:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if end <= now:
        yield f"{named['certificate']}: expired on {end:%F %R} UTC; renew it"
    if begin > now:
        yield (
            f"{named['certificate']}: is not valid before {begin:%F %R} UTC; wait, or correct the "
            "controller's clock"
        )


def _of_names(
    certificate: x509.Certificate, hosts: Mapping[str, str], named: Credentials
) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = extension.value.get_values_for_type(x509.DNSName)
        names += map(str, extension.value.get_values_for_type(x509.IPAddress))
    except x509.ExtensionNotFound:
        names = []
    certified = {name.lower() for name in names}
    for host, why in hosts.items():
        if not {host.lower(), f"*.{host.partition('.')[2].lower()}"} & certified:
            yield (
                f"{named['certificate']}: does not name {host} ({why}), but "
                f"{', '.join(names) or 'nobody'}; issue it with the subject alternative name "
                f"{host}"
            )


def _of_purpose(
    certificate: x509.Certificate, named: Credentials, *, client: bool
) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        return
    usages = {"serverAuth": ExtendedKeyUsageOID.SERVER_AUTH}
    if client:
        usages["clientAuth"] = ExtendedKeyUsageOID.CLIENT_AUTH
    if not set(usages.values()) <= set(extension.value):
        yield (
            f"{named['certificate']}: may not be used for what the server does with it; issue it "
            f"with the extended key usage {' and '.join(usages)}, or without any"
        )


def _of_issuer(
    chain: Sequence[x509.Certificate], authorities: Sequence[x509.Certificate], named: Credentials
) -> Iterator[str]:
    current = chain[0]
    for _ in chain:
        if current in authorities or any(_issued(current, authority) for authority in authorities):
            return
        current = next(
            (certificate for certificate in chain[1:] if _issued(current, certificate)), current
        )
    yield (
        f"{named['certificate']}: was issued by '{current.issuer.rfc4514_string()}', who is not in "
        f"{named['authorities']}; add that authority there, or the certificates between to "
        f"{named['certificate']}"
    )


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
