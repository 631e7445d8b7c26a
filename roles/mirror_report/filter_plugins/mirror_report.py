"""Filters that judge inputs: the web view's certificate, the report's memory, Spark's doors."""

from __future__ import annotations

import datetime
import importlib.util
import re
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


MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
BESIDE_HEAP_MIB = 768
"""Java's classes, compiled code and threads; Python and what it holds (docs/sizing.md)."""


def report_memory_max(heap: str, properties: Mapping[str, Any]) -> str:
    """What a report may hold in all, as systemd's ``MemoryMax``: its heap by half again, and more.

    :param heap: ``mirror_report_heap``.
    :param properties: ``mirror_report_spark_properties``; those about the driver's memory win, as
        Spark has it. Executors elsewhere do not count.
    :returns: mebibytes, such as ``2304M``.
    :raises AnsibleFilterError: a size that Java would not take; the message names the variable.
    """
    of_spark = "mirror_report_spark_properties['{}']".format
    own = properties.get("spark.driver.memory")
    total = 1.5 * (
        _mebibytes(of_spark("spark.driver.memory"), own, "m")
        if own is not None
        else _mebibytes("mirror_report_heap", heap, "b")
    )
    if str(properties.get("spark.memory.offHeap.enabled", "")).lower() == "true":
        name = "spark.memory.offHeap.size"
        total += _mebibytes(of_spark(name), properties.get(name, "0"), "b")
    return f"{int(total) + BESIDE_HEAP_MIB}M"


def _mebibytes(name: str, size: object, unit: str) -> float:
    """A size in mebibytes.

    :param unit: of a number that names none.
    """
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", str(size).strip().lower())
    if found is None:
        raise AnsibleFilterError(f"{name}: {size!r} is no size such as 512m or 2g; set one")
    return int(found[1]) * {**MIB, "b": 1 / 1024**2}[found[2] or unit]


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
            "report_memory_max": report_memory_max,
            "mirror_report_spark_problems": mirror_report_spark_problems,
            "web_certificate_problems": web_certificate_problems,
        }
