"""Filters that judge inputs: certificate and key of the web view, and who could reach Spark."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError
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


def mirror_report_spark_problems(
    master: str, properties: Mapping[str, Any], secrets: Mapping[str, Any]
) -> list[str]:
    """Why others than the report could reach Spark's processes, or see its secrets.

    :param secrets: Spark's keys that nobody may see, SECRET.
    :returns: messages that name the variable and the cure, and hold no secret.
    """
    rules = _rules()
    found: list[str] = rules.problems(str(master), properties)
    if rules.takes_secret(str(master)) and not secrets.get(rules.SECRET):
        found.append(
            f"mirror_report_spark_secrets: {rules.SECRET} is missing, which {master} must ask for; "
            "take it from a vault"
        )
    return found


def _rules() -> Any:
    """The report's own rules, so that inventory and configuration are judged alike."""
    source = Path(__file__).resolve().parents[3] / "spark/src/mirror_report/spark_security.py"
    spec = importlib.util.spec_from_file_location("mirror_report_spark_security", source)
    if spec is None or spec.loader is None:
        raise AnsibleFilterError(f"cannot load {source}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            "mirror_report_spark_problems": mirror_report_spark_problems,
            "web_certificate_problems": web_certificate_problems,
        }
