"""Certificates of a lab: reads what is wanted as JSON, writes PEM files, prints what it made."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)
RENEWAL_DAYS = 30


@dataclasses.dataclass(frozen=True)
class Wanted:
    """One certificate: good for ``hosts`` until ``days`` from now, negative for an expired one."""

    name: str
    hosts: list[str]
    authority: str = "lab"
    days: int = 365


@dataclasses.dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def read(directory: Path, name: str) -> Pair | None:
    """Read ``<name>.pem`` and ``<name>.key``, if both are there and belong together."""
    try:
        certificate = x509.load_pem_x509_certificate((directory / f"{name}.pem").read_bytes())
        key = serialization.load_pem_private_key((directory / f"{name}.key").read_bytes(), None)
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    return Pair(certificate, key) if key.public_key() == certificate.public_key() else None


def write(directory: Path, name: str, pair: Pair) -> None:
    """Write ``<name>.key`` (PKCS#8, as Java wants it) and ``<name>.pem``, for the owner alone."""
    key = pair.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    certificate = pair.certificate.public_bytes(serialization.Encoding.PEM)
    for path, content in (
        (directory / f"{name}.key", key),
        (directory / f"{name}.pem", certificate),
    ):
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(content)


def signed(
    subject: str, days: int, extensions: list[tuple[x509.ExtensionType, bool]], issuer: Pair | None
) -> Pair:
    """Make a key and a certificate, signed by itself if there is no issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    end = NOW + days * DAY
    signer = issuer.key if issuer else key
    # Python 3.13 asks for the identifiers of both keys.
    extensions = [
        *extensions,
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), False),
    ]
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(NOW, end) - DAY)
        .not_valid_after(end)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return Pair(builder.sign(signer, hashes.SHA256()), key)


def authority(directory: Path, name: str) -> Pair:
    """Read an authority, or create it."""
    found = read(directory, f"{name}.ca")
    if found and found.certificate.not_valid_after_utc > NOW + RENEWAL_DAYS * DAY:
        return found
    usage = dict.fromkeys(
        ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
         "key_agreement", "encipher_only", "decipher_only"), False,
    )  # fmt: skip
    made = signed(
        f"{name} authority",
        3650,
        [
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), True),
        ],
        None,
    )
    write(directory, f"{name}.ca", made)
    return made


def is_good(certificate: x509.Certificate, wanted: Wanted, issuer: x509.Certificate) -> bool:
    """Whether a certificate is what is wanted, and will be for a while."""
    # What is wanted for a short time, or expired, is kept for a day.
    if certificate.not_valid_after_utc < NOW + min(RENEWAL_DAYS, wanted.days - 1) * DAY:
        return False
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, InvalidSignature):
        return False
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName) == wanted.hosts


def ensure(directory: Path, wanted: Wanted) -> bool:
    """Make one certificate unless a good one is there; returns whether it was made."""
    issuer = authority(directory, wanted.authority)
    found = read(directory, wanted.name)
    if found and is_good(found.certificate, wanted, issuer.certificate):
        return False
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.SubjectAlternativeName([x509.DNSName(host) for host in wanted.hosts]), False),
        (x509.ExtendedKeyUsage(purposes), False),
    ]
    write(directory, wanted.name, signed(wanted.name, wanted.days, extensions, issuer))
    return True


def main() -> None:
    """Make what standard input asks for: {directory, certificates}."""
    asked: dict[str, Any] = json.load(sys.stdin)
    directory = Path(asked["directory"])
    os.umask(0o077)
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for entry in asked["certificates"]:
        wanted = Wanted(**{"hosts": [entry["name"], "localhost"], **entry})
        if ensure(directory, wanted):
            made.append(wanted.name)
    print("\n".join(made))


if __name__ == "__main__":
    main()
