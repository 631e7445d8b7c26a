"""Filter that judges the certificate of the web view."""

import datetime
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

CERTIFICATE = "mirror_report_web_certificate"
KEY = "mirror_report_web_key"


def web_certificate_problems(certificate: str, key: str) -> list[str]:
    """Why a web server could not work with a certificate.

    :param certificate: PEM text of the certificate, then of the authorities between.
    :param key: PEM text of its private key, SECRET.
    :returns: messages that name the variable and the cure, and hold nothing of the key.
    """
    try:
        first = x509.load_pem_x509_certificates(str(certificate).encode())[0]
    except ValueError:
        return [f"{CERTIFICATE}: holds no certificate as PEM text; look the file up"]
    found = []
    if first.not_valid_after_utc <= datetime.datetime.now(datetime.UTC):
        found.append(f"{CERTIFICATE}: expired on {first.not_valid_after_utc:%F %R} UTC; renew it")
    try:
        public: Any = serialization.load_pem_private_key(str(key).encode(), None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return [*found, f"{KEY}: is no key as PEM text without a password; look the file up"]
    if public != first.public_key():
        found.append(f"{KEY}: does not belong to {CERTIFICATE}; set both to those of one pair")
    return found


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {"web_certificate_problems": web_certificate_problems}
