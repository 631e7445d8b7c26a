"""Connect Ansible modules to a Kafka cluster, with errors a person can act on.

Modules of roles that depend on ``kafka_client`` import this as
``ansible.module_utils.kafka_admin_client``. They run with a Python that has kafka-python.
"""

import contextlib
import logging
import os
import re
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

try:
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError
except ImportError:
    KafkaAdminClient = None

# A module's option that says how to reach a cluster: what the filter kafka_python_client returns.
CONNECTION: dict[str, Any] = {
    "type": "dict",
    "required": True,
    "options": {
        "bootstrap_servers": {"type": "list", "elements": "str", "required": True},
        "security_protocol": {
            "type": "str",
            "default": "PLAINTEXT",
            "choices": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        },
        "sasl_mechanism": {"type": "str"},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "ssl_ca": {"type": "str"},
        "ssl_certificate": {"type": "str"},
        "ssl_key": {"type": "str", "no_log": True},
    },
}


class ClusterError(Exception):
    """A cluster cannot be used; the message says which one and why."""


class AuthenticationRefusedError(ClusterError):
    """The cluster answered and refused the user or the password."""


# What kafka-python logs per failed attempt; the rest of its messages repeats or accompanies these.
_ATTEMPT = re.compile(r"^Bootstrap (?:connection|attempt) to \S+ failed: (.*?)(?: \(backoff .*)?$")
_REFUSED = re.compile(r"AuthenticationFailed|UnsupportedSaslMechanism")
# The broker sent its version and closed the connection afterwards.
_CLOSED = re.compile(r"broker_version=\(.*socket disconnected")


# Part of a reason to what it means.
HINTS = {
    "socket disconnected": "a listener of another security_protocol does that too",
    "ALERT_CERTIFICATE": "said by the broker: it does not take ssl_certificate",
    "mismatch": "the broker's certificate does not name the host of bootstrap_servers",
    "CERTIFICATE_VERIFY_FAILED": "ssl_ca does not vouch for the broker's certificate as it is now",
}


class _Reasons(logging.Handler):
    """Keeps what kafka-python says about connections: its exceptions do not carry the reason."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def texts(self) -> list[str]:
        """Reasons of failed attempts, each once, in the order they came."""
        attempts = [match[1] for m in self.messages if (match := _ATTEMPT.match(m))]
        lookups = [m for m in self.messages if m.startswith("DNS lookup failed")]
        return list(dict.fromkeys(lookups + attempts))

    def refusal(self) -> str | None:
        """Why the broker refused a login, if it did; some brokers only close the connection."""
        refused = next(filter(_REFUSED.search, self.texts()), None)
        if refused is None and any(map(_CLOSED.search, self.messages)):
            return "it closed the connection during the login, as brokers do on a wrong password"
        return refused


def tls_context(connection: Mapping[str, Any]) -> ssl.SSLContext:
    """Trust of a connection, and its own certificate if it has one; host names are verified.

    :param connection: a value of the option :data:`CONNECTION`.
    :raises ClusterError: what should be PEM text is not.
    """
    try:
        context = ssl.create_default_context(cadata=connection.get("ssl_ca") or None)
        if connection.get("ssl_certificate"):
            # Python takes a key from a file alone; this one is nowhere but in memory.
            with os.fdopen(os.memfd_create("pair"), "w", encoding="ascii") as pair:
                pair.write(f"{connection['ssl_key']}\n{connection['ssl_certificate']}")
                pair.flush()
                context.load_cert_chain(f"/proc/self/fd/{pair.fileno()}")
    except (ssl.SSLError, UnicodeError) as error:
        raise ClusterError(
            "ssl_ca, ssl_certificate or ssl_key is no PEM text, or the key belongs to another "
            f"certificate: {getattr(error, 'reason', None) or type(error).__name__}"
        ) from None
    return context


def client_settings(connection: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Translate a connection into settings of a kafka-python client.

    :param connection: a value of the option :data:`CONNECTION`.
    :param timeout: seconds until a cluster counts as unreachable.
    :returns: keyword arguments of ``KafkaAdminClient``.
    """
    settings: dict[str, Any] = {
        "bootstrap_servers": list(connection["bootstrap_servers"]),
        "security_protocol": connection.get("security_protocol") or "PLAINTEXT",
        "bootstrap_timeout_ms": int(timeout * 1000),
        "client_id": "kafka-mirror-ansible",
    }
    if connection.get("sasl_mechanism"):
        settings |= {
            "sasl_mechanism": connection["sasl_mechanism"],
            "sasl_plain_username": connection.get("username"),
            "sasl_plain_password": connection.get("password"),
        }
    if settings["security_protocol"].endswith("SSL"):
        settings["ssl_context"] = tls_context(connection)
    return settings


@contextlib.contextmanager
def admin_client(connection: Mapping[str, Any], timeout: float = 5) -> Iterator[Any]:
    """Open an admin client that really is connected and authenticated.

    :param connection: a value of the option :data:`CONNECTION`.
    :param timeout: seconds until the cluster counts as unreachable.
    :raises AuthenticationRefusedError: the cluster refused the user or the password.
    :raises ClusterError: kafka-python is missing, the cluster does not answer, or a request failed.
    """
    if KafkaAdminClient is None:
        raise ClusterError(
            f"{sys.executable} has no kafka-python: set ansible_python_interpreter of this task to "
            "the Python of the report (role mirror_report, entry point client)"
        )
    servers = ", ".join(connection["bootstrap_servers"])
    reasons = _Reasons()
    logger = logging.getLogger("kafka")
    logger.addHandler(reasons)
    try:
        try:
            client = KafkaAdminClient(**client_settings(connection, timeout))
        except (KafkaError, OSError, ValueError) as error:
            refusal = reasons.refusal() if connection.get("sasl_mechanism") else None
            if refusal:
                raise AuthenticationRefusedError(
                    f"{servers} refused user {connection.get('username')}: {refusal}"
                ) from error
            because = "; ".join(reasons.texts()[-3:]) or str(error)
            because += "".join(f" ({hint})" for part, hint in HINTS.items() if part in because)
            raise ClusterError(
                f"{servers} did not answer within {timeout:g} s: {because}"
            ) from error
        try:
            yield client
        except KafkaError as error:
            raise ClusterError(f"{servers}: {error}") from error
        finally:
            client.close()
    finally:
        logger.removeHandler(reasons)


def wait_for_cluster(
    connection: Mapping[str, Any], timeout: float, *, new_login: bool = False
) -> dict[str, Any]:
    """Wait until a cluster answers an authenticated request.

    :param connection: a value of the option :data:`CONNECTION`.
    :param timeout: seconds to keep trying.
    :param new_login: the login was just written: a refusal is no answer until the time is over.
    :returns: ``cluster_id`` and ``brokers`` (their ids).
    :raises ClusterError: the reason of the last attempt.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            with admin_client(connection, min(5.0, max(1.0, timeout))) as client:
                cluster = client.describe_cluster()
                return {
                    "cluster_id": cluster["cluster_id"],
                    "brokers": sorted(broker["broker_id"] for broker in cluster["brokers"]),
                }
        except ClusterError as error:
            refused = isinstance(error, AuthenticationRefusedError) and not new_login
            if refused or time.monotonic() >= deadline:
                raise
            time.sleep(0.5)
