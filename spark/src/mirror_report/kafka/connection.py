"""Connecting to a cluster with kafka-python, and what its errors mean.

kafka-python raises the same timeout for a host that is down and for a wrong password; only its log
tells them apart. So the log is captured per cluster and quoted.
"""

import contextlib
import logging
import os
import ssl
from collections.abc import Iterator
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)

from mirror_report.config import Cluster, Credentials
from mirror_report.model import ReportError

BOOTSTRAP_TIMEOUT_MS = 5_000
REQUEST_TIMEOUT_MS = 10_000

_DENIED = (
    TopicAuthorizationFailedError,
    GroupAuthorizationFailedError,
    ClusterAuthorizationFailedError,
)


class ClusterError(ReportError):
    """A cluster did not answer as it should."""


class UnreachableError(ClusterError):
    """No broker of the cluster could be reached."""

    kind = "unreachable"


class AuthenticationError(ClusterError):
    """The cluster answers and refuses our identity."""

    kind = "authentication"


class DeniedError(ClusterError):
    """Our identity lacks a permission; the message names it."""

    kind = "permission"


class UnreadableError(ClusterError):
    """The cluster answers, and what it sends of a topic cannot be read."""

    kind = "unreadable"


class _Captured(logging.Handler):
    """What kafka-python logs about one client; never printed by itself."""

    def __init__(self, client_id: str) -> None:
        super().__init__(logging.WARNING)
        self._thread = f"kafka-io-{client_id}"
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.threadName == self._thread and len(self.lines) < 1000:
            self.lines.append(record.getMessage())


def client_options(cluster: Cluster, credentials: Credentials) -> dict[str, Any]:
    """kafka-python's connection options for one cluster; contains the password."""
    options: dict[str, Any] = {
        "bootstrap_servers": list(cluster.bootstrap_servers),
        "security_protocol": cluster.security_protocol,
        "client_id": f"mirror-report-{cluster.alias}",
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
    }
    if cluster.security_protocol.startswith("SASL"):
        options |= {
            "sasl_mechanism": cluster.sasl_mechanism,
            "sasl_plain_username": cluster.username,
            "sasl_plain_password": credentials.read(cluster.credential("password")),
        }
    if cluster.uses_tls:
        options["ssl_context"] = tls_context(cluster, credentials)
    return options


def tls_context(cluster: Cluster, credentials: Credentials) -> ssl.SSLContext:
    """Whom to trust, and the identity's own certificate; host names are verified.

    :raises AuthenticationError: what should be PEM text is not.
    """
    authority = credentials.read(cluster.credential("ca.pem")) if cluster.ssl_ca else None
    try:
        context = ssl.create_default_context(cadata=authority)
    except ssl.SSLError as error:
        raise AuthenticationError(
            f"clusters.{cluster.alias}.ssl_ca holds no PEM certificate: {error.reason}"
        ) from error
    if cluster.ssl_certificate:
        # Python takes a key from a file alone; this one is nowhere but in memory.
        with os.fdopen(os.memfd_create("pair"), "w", encoding="utf-8") as pair:
            pair.writelines(
                credentials.read(cluster.credential(kind)) + "\n"
                for kind in ("key.pem", "cert.pem")
            )
            pair.flush()
            try:
                context.load_cert_chain(f"/proc/self/fd/{pair.fileno()}")
            except ssl.SSLError as error:
                raise AuthenticationError(
                    f"clusters.{cluster.alias}: ssl_certificate and ssl_key of {cluster.identity} "
                    f"are no PEM text, or not one pair: {error.reason}"
                ) from error
    return context


@contextlib.contextmanager
def open_admin(cluster: Cluster, credentials: Credentials) -> Iterator[Any]:
    """Open kafka-python's admin client for one cluster.

    :raises UnreachableError: no broker answered in time.
    :raises AuthenticationError: a broker answered and refused the identity.
    """
    options = client_options(cluster, credentials)
    logger = logging.getLogger("kafka")
    # Below WARNING kafka-python logs its whole configuration, password included.
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    captured = _Captured(options["client_id"])
    logger.addHandler(captured)
    try:
        try:
            admin = KafkaAdminClient(**options)
        except KafkaError as error:
            raise _connection_error(cluster, captured.lines) from error
        with contextlib.closing(admin):
            yield admin
    finally:
        logger.removeHandler(captured)


def _connection_error(cluster: Cluster, lines: list[str]) -> ClusterError:
    text = "\n".join(lines)
    where = f"cluster {cluster.alias} ({', '.join(cluster.bootstrap_servers)})"
    reason = _reason(lines)
    # A broker may close the connection before its refusal is read; by then its version is known.
    closed = cluster.security_protocol.startswith("SASL") and "broker_version=(" in text
    if closed and reason == "socket disconnected":
        reason = "it closes the connection during the login"
    if closed or any(
        word in text for word in ("AuthenticationFailed", "SaslState", "UnsupportedSasl")
    ):
        return AuthenticationError(
            f"{where} refuses identity {cluster.identity} (user {cluster.username}, "
            f"{cluster.security_protocol} {cluster.sasl_mechanism}): {reason}",
            "Compare user, password and mechanism in "
            f"kafka_clusters.{cluster.alias}.identities with the broker",
        )
    if "ALERT_CERTIFICATE" in text:
        return AuthenticationError(
            f"{where}: {reason}, said by the broker: it does not take the certificate of identity "
            f"{cluster.identity}",
            f"Correct ssl_certificate in kafka_clusters.{cluster.alias}.identities, or what the "
            "broker trusts",
        )
    if any(word in text for word in ("certificate", "CERTIFICATE")):
        if not cluster.ssl_ca:
            return AuthenticationError(
                f"{where}: {reason}",
                "No authority that this host trusts vouches for the broker's certificate, or it "
                "does not name this host. kafka-python needs PEM: set "
                f"kafka_clusters.{cluster.alias}.ssl_ca (a truststore in properties serves Java "
                "alone)",
            )
        return AuthenticationError(f"{where}: {reason}", _distrust(cluster, text))
    if any(word in text for word in ("socket disconnected", "Handshake failed", "SSL")):
        return UnreachableError(
            f"{where} closes the connection: {reason}",
            f"Does security_protocol {cluster.security_protocol} fit the listener?",
        )
    return UnreachableError(
        f"{where} is unreachable: {reason or 'no answer'}",
        "Check the address, the network and that the broker runs",
    )


def _distrust(cluster: Cluster, text: str) -> str:
    if "expired" in text or "not yet valid" in text:
        return "Give that broker a new certificate"
    if "mismatch" in text:
        return (
            "The broker's certificate does not name the address it is reached by: use a name it "
            f"has in kafka_clusters.{cluster.alias}.bootstrap_servers and advertised.listeners, or "
            "give that broker a certificate with this one"
        )
    return (
        f"kafka_clusters.{cluster.alias}.ssl_ca does not vouch for the broker's certificate: take "
        "the authority that signed it"
    )


def _reason(lines: list[str]) -> str:
    """Clearest line, without kafka-python's own object names."""
    of_connection = [
        line for line in lines if "Connection lost: " in line or "Connection failed: " in line
    ]
    with_reason = [line for line in of_connection if "socket disconnected" not in line]
    clearest = with_reason or of_connection or lines
    if not clearest:
        return ""
    text = clearest[0]
    for marker in ("Connection lost: ", "Connection failed: "):
        text = text.rpartition(marker)[2]
    parts = [part for part in text.split(": ") if not part.endswith(("Error", "Error "))]
    return ": ".join(parts).strip() or text


@contextlib.contextmanager
def explained(cluster: Cluster, what: str, permission: str) -> Iterator[None]:
    """Turn kafka-python's errors into ours.

    :param what: what was being done, for the message.
    :param permission: the ACL that allows it.
    """
    try:
        yield
    except _DENIED as error:
        raise DeniedError(
            f"cluster {cluster.alias}: identity {cluster.identity} "
            f"({cluster.username or 'anonymous'}) may not {what}",
            f"Grant it {permission}",
        ) from error
    except (KafkaTimeoutError, KafkaConnectionError) as error:
        raise UnreachableError(
            f"cluster {cluster.alias} stopped answering while we wanted to {what}"
        ) from error
    except KafkaError as error:
        raise ClusterError(f"cluster {cluster.alias}: could not {what}: {error}") from error
