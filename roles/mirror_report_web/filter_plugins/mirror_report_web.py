"""Filters that validate the certificate and the users of the web view."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

CERTIFICATE = "mirror_report_web_certificate"
KEY = "mirror_report_web_key"
USERS = "mirror_report_web_users"
SHORTEST = 12


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
    problems = []
    if first.not_valid_after_utc <= datetime.datetime.now(datetime.UTC):
        problems.append(
            f"{CERTIFICATE}: expired on {first.not_valid_after_utc:%F %R} UTC; renew it"
        )
    try:
        public: Any = serialization.load_pem_private_key(str(key).encode(), None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return [*problems, f"{KEY}: is no key as PEM text without a password; look the file up"]
    if public != first.public_key():
        problems.append(f"{KEY}: does not belong to {CERTIFICATE}; set both to those of one pair")
    return problems


def web_user_problems(users: Mapping[str, Any]) -> list[str]:
    """Why names and passwords could not be those of a web server's users.

    No browser sends a control character, and a line break would add a user to the server's file.

    :param users: name to password, SECRET.
    :returns: messages that name the variable and the cure, and hold no password.
    """
    problems = []
    for name, password in users.items():
        shown = ascii(str(name))[1:-1]
        if not str(name).isprintable() or not name or set(str(name)) & set(": "):
            problems.append(
                f"{USERS}: '{shown}' is no name; use printable characters, no colon or blank"
            )
        if not isinstance(password, str) or len(password) < SHORTEST:
            problems.append(f"{USERS}: the password of {shown} needs {SHORTEST} characters or more")
        elif not password.isprintable():
            problems.append(
                f"{USERS}: the password of {shown} holds a control or invisible character, such as "
                "a line break at its end; remove it"
            )
    return problems


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            "web_certificate_problems": web_certificate_problems,
            "web_user_problems": web_user_problems,
        }
