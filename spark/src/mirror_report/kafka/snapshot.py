"""Topics and offsets of one cluster, read by kafka-python's admin client.

kafka-python raises the same timeout for a host that is down and for a wrong password; only its log
tells them apart. So the log is captured per cluster and quoted.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from kafka import IsolationLevel, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)
from kafka.protocol.consumer.offsets import OffsetSpec

from mirror_report.config.cluster import Cluster
from mirror_report.config.credentials import Credentials
from mirror_report.model.cluster import ClusterSnapshot, PartitionSnapshot, Place, TopicSnapshot
from mirror_report.model.errors import ReportError

BOOTSTRAP_TIMEOUT_MS = 5_000
REQUEST_TIMEOUT_MS = 10_000
TOPIC_AUTHORIZATION_FAILED = 29
UNKNOWN_TOPIC = 3

_DENIED = (
    TopicAuthorizationFailedError,
    GroupAuthorizationFailedError,
    ClusterAuthorizationFailedError,
)


class ClusterError(ReportError):
    """A cluster did not answer as it should."""


class UnreachableError(ClusterError):
    """No broker of the cluster could be reached."""


class AuthenticationError(ClusterError):
    """The cluster answers and refuses our identity."""


class DeniedError(ClusterError):
    """Our identity lacks a permission; the message names it."""


class _Captured(logging.Handler):
    """What kafka-python says about one client, errors first; never printed by itself."""

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
        options["sasl_mechanism"] = cluster.sasl_mechanism
        options["sasl_plain_username"] = cluster.username
        options["sasl_plain_password"] = credentials.read(cluster.credential("password"))
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
def connect(cluster: Cluster, credentials: Credentials) -> Iterator[ClusterClient]:
    """Open an admin client for one cluster.

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
        try:
            yield ClusterClient(cluster, admin)
        finally:
            admin.close()
    finally:
        logger.removeHandler(captured)


def _connection_error(cluster: Cluster, lines: list[str]) -> ClusterError:
    text = "\n".join(lines)
    servers = ", ".join(cluster.bootstrap_servers)
    where = f"cluster {cluster.alias} ({servers})"
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
            f"{cluster.security_protocol} {cluster.sasl_mechanism}): {reason}. Compare user, "
            f"password and mechanism in kafka_clusters.{cluster.alias}.identities with the broker"
        )
    if "ALERT_CERTIFICATE" in text:
        return AuthenticationError(
            f"{where}: {reason}, said by the broker: it does not take the certificate of identity "
            f"{cluster.identity}. Correct ssl_certificate in kafka_clusters.{cluster.alias}"
            ".identities, or what the broker trusts"
        )
    if any(word in text for word in ("certificate", "CERTIFICATE")):
        if not cluster.ssl_ca:
            return AuthenticationError(
                f"{where}: {reason}. No authority that this host trusts vouches for the broker's "
                "certificate, or it does not name this host. kafka-python needs PEM: set "
                f"kafka_clusters.{cluster.alias}.ssl_ca (a truststore in properties serves Java "
                "alone)"
            )
        return AuthenticationError(f"{where}: {reason}. {_distrust(cluster, text)}")
    if any(word in text for word in ("socket disconnected", "Handshake failed", "SSL")):
        return UnreachableError(
            f"{where} closes the connection: {reason}. Does security_protocol "
            f"{cluster.security_protocol} fit the listener?"
        )
    return UnreachableError(
        f"{where} is unreachable: {reason or 'no answer'}. Check the address, the network and "
        "that the broker runs"
    )


def _distrust(cluster: Cluster, text: str) -> str:
    """Why a broker's certificate is not good, and the cure."""
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
    """Most telling line, without kafka-python's own object names."""
    wanted = [one for one in lines if "Connection lost: " in one or "Connection failed: " in one]
    telling = [one for one in wanted if "socket disconnected" not in one] or wanted or lines
    if not telling:
        return ""
    text = telling[0]
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
            f"({cluster.username or 'anonymous'}) may not {what}. Grant it {permission}"
        ) from error
    except (KafkaTimeoutError, KafkaConnectionError) as error:
        raise UnreachableError(
            f"cluster {cluster.alias} stopped answering while we wanted to {what}"
        ) from error
    except KafkaError as error:
        raise ClusterError(f"cluster {cluster.alias}: could not {what}: {error}") from error


class ClusterClient:
    """One open admin client.

    :param cluster: the cluster it talks to.
    :param admin: kafka-python's client.
    """

    def __init__(self, cluster: Cluster, admin: Any) -> None:
        self.cluster = cluster
        self.admin = admin

    def cluster_id(self) -> str:
        """Kafka's own id of the cluster."""
        with explained(self.cluster, "describe the cluster", "DESCRIBE on the cluster"):
            return str(self.admin.describe_cluster()["cluster_id"])

    def brokers(self) -> int:
        """Number of registered brokers, those that are away included."""
        with explained(self.cluster, "describe the cluster", "DESCRIBE on the cluster"):
            return len(self.admin.describe_cluster()["brokers"])

    def listeners(self) -> dict[str, tuple[str, int]]:
        """How each running broker is called -> host and port by which clients reach it."""
        with explained(self.cluster, "describe the cluster", "DESCRIBE on the cluster"):
            return {
                f"broker {one['broker_id']} ({one['host']}:{one['port']})": (
                    one["host"],
                    int(one["port"]),
                )
                for one in self.admin.describe_cluster()["brokers"]
                if not one.get("is_fenced")
            }

    def names(self, matches: Callable[[str], bool]) -> list[str]:
        """Names of the topics our identity may see, as far as they match."""
        with explained(self.cluster, "list topics", "DESCRIBE on the topics"):
            return sorted(filter(matches, self.admin.list_topics()))

    def groups(self) -> list[str]:
        """Ids of the consumer groups our identity may see."""
        with explained(self.cluster, "list groups", "DESCRIBE on the groups"):
            return sorted(
                one["group_id"]
                for one in self.admin.list_groups()
                if one["protocol_type"] in ("consumer", "")
            )

    def auto_creates_topics(self) -> bool | None:
        """Whether brokers create topics on first use; ``None`` if it may not be asked."""
        with explained(self.cluster, "describe the brokers", "DESCRIBE_CONFIGS on the cluster"):
            brokers = [str(one["broker_id"]) for one in self.admin.describe_cluster()["brokers"]]
            key = "auto.create.topics.enable"
            answer = self.admin.describe_configs(
                [ConfigResource(ConfigResourceType.BROKER, one, [key]) for one in brokers],
                config_filter="all",
            ).get("broker", {})
        values = {configs[key]["value"] for configs in answer.values() if key in configs}
        return None if not values else values == {"true"}

    def snapshot(
        self,
        matches: Callable[[str], bool] | None,
        names: Collection[str] = (),
        *,
        settings: bool = True,
    ) -> ClusterSnapshot:
        """Topics, their offsets and settings at this moment.

        :param matches: which of the cluster's topics; ``None``: only those named.
        :param names: topics asked for by name, so that absent and forbidden differ.
        :param settings: ask for the topics' settings and sizes too.
        :raises ClusterError: the cluster as a whole could not be read.
        """
        cluster_id = self.cluster_id()
        taken_at_ms = time.time_ns() // 1_000_000
        with explained(self.cluster, "describe topics", "DESCRIBE on the topics"):
            described: list[dict[str, Any]] = []
            if matches is not None:
                described = [one for one in self.admin.describe_topics() if matches(one["name"])]
            missing = sorted(set(names) - {one["name"] for one in described})
            if missing:
                described += self.admin.describe_topics(missing)
        errors: dict[str, str] = {}
        refused: set[str] = set()
        readable: dict[str, dict[str, Any]] = {}
        for one in described:
            name, code = one["name"], one["error_code"]
            if code == TOPIC_AUTHORIZATION_FAILED:
                refused.add(name)
                errors[name] = (
                    f"permission DESCRIBE on topic {name} is missing for identity "
                    f"{self.cluster.identity} on cluster {self.cluster.alias}"
                )
            elif code not in (0, UNKNOWN_TOPIC):
                errors[name] = f"topic {name} is not readable now (Kafka error {code})"
            elif code == 0:
                readable[name] = one
        offsets = self._offsets(readable, errors, refused)
        configs, sources = self._configs(offsets) if settings else ({}, {})
        sizes = self._sizes({name: readable[name] for name in offsets}) if settings else {}
        topics = {
            name: TopicSnapshot(
                name=name,
                topic_id=str(readable[name]["topic_id"]),
                partitions=partitions,
                configs=configs.get(name, {}),
                bytes=sizes.get(name),
                operations=None
                if readable[name]["authorized_operations"] is None
                else tuple(readable[name]["authorized_operations"]),
                config_sources=sources.get(name, {}),
            )
            for name, partitions in sorted(offsets.items())
        }
        return ClusterSnapshot(
            self.cluster.alias, cluster_id, taken_at_ms, topics, errors, frozenset(refused)
        )

    def partition_counts(self) -> dict[str, int]:
        """Every topic our identity may see -> number of its partitions."""
        with explained(self.cluster, "describe topics", "DESCRIBE on the topics"):
            return {
                one["name"]: len(one["partitions"])
                for one in self.admin.describe_topics()
                if one["error_code"] == 0
            }

    def max_timestamps(self, topic: str, partitions: Collection[int]) -> dict[int, int]:
        """Highest record timestamp (ms) per partition; empty partitions are left out."""
        wanted = {TopicPartition(topic, one): OffsetSpec.MAX_TIMESTAMP for one in partitions}
        with explained(self.cluster, f"list offsets of {topic}", f"DESCRIBE on topic {topic}"):
            found = self.admin.list_partition_offsets(wanted, timeout_ms=REQUEST_TIMEOUT_MS)
        return {at.partition: int(one.timestamp) for at, one in found.items() if one.timestamp >= 0}

    def partition_sizes(self, topics: Collection[str]) -> dict[Place, int]:
        """Bytes of the partitions' logs, of the largest replica; empty if it may not be asked."""
        sizes: dict[Place, int] = {}
        for _, place, size in self._log_sizes(topics):
            sizes[place] = max(size, sizes.get(place, 0))
        return sizes

    def newest_record(self, topic: str) -> int | None:
        """Highest record timestamp of a topic (ms); ``None``: no record, no topic, or hidden."""
        try:
            (found,) = self.admin.describe_topics([topic])
            if found["error_code"]:
                return None
            numbers = [one["partition_index"] for one in found["partitions"]]
            newest = self.max_timestamps(topic, numbers)
        except (KafkaError, ClusterError):
            # Brokers before 3.0 do not know the question.
            return None
        return max(newest.values(), default=None)

    def _offsets(
        self,
        described: Mapping[str, Mapping[str, Any]],
        errors: dict[str, str],
        refused: set[str],
    ) -> dict[str, dict[int, PartitionSnapshot]]:
        """Offsets of all topics at once; topic by topic only to find the one that refuses."""
        partitions = {
            name: sorted(one["partition_index"] for one in topic["partitions"])
            for name, topic in described.items()
        }
        try:
            return self._list_offsets(partitions)
        except ClusterError:
            if len(partitions) == 1:
                raise
        found: dict[str, dict[int, PartitionSnapshot]] = {}
        for name, numbers in partitions.items():
            try:
                found |= self._list_offsets({name: numbers})
            except UnreachableError:
                raise
            except ClusterError as error:
                errors[name] = str(error)
                if isinstance(error, DeniedError):
                    refused.add(name)
        return found

    def _list_offsets(
        self, partitions: Mapping[str, list[int]]
    ) -> dict[str, dict[int, PartitionSnapshot]]:
        every = [TopicPartition(name, one) for name, some in partitions.items() for one in some]
        if not every:
            return {name: {} for name in partitions}
        with explained(
            self.cluster,
            f"list offsets of {', '.join(sorted(partitions)[:3])}",
            "DESCRIBE and READ on the topics",
        ):
            start, end, high = (
                self.admin.list_partition_offsets(
                    dict.fromkeys(every, spec), isolation, timeout_ms=REQUEST_TIMEOUT_MS
                )
                for spec, isolation in (
                    (OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED),
                    (OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED),
                    (OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED),
                )
            )
        return {
            name: {
                one: PartitionSnapshot(
                    int(start[TopicPartition(name, one)].offset),
                    int(end[TopicPartition(name, one)].offset),
                    int(high[TopicPartition(name, one)].offset),
                )
                for one in some
            }
            for name, some in partitions.items()
        }

    def _configs(
        self, names: Collection[str]
    ) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
        """Effective settings, and where each is from; a topic we may not ask about is empty."""
        if not names:
            return {}, {}
        with explained(self.cluster, "read topic settings", "DESCRIBE_CONFIGS on the topics"):
            answer = self.admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name) for name in names],
                config_filter="all",
            ).get("topic", {})
        # Sensitive settings come without a value.
        shown = {
            name: {key: one for key, one in some.items() if one["value"] is not None}
            for name, some in answer.items()
        }
        values, sources = (
            {name: {key: one[what] for key, one in some.items()} for name, some in shown.items()}
            for what in ("value", "config_source")
        )
        return values, sources

    def _sizes(self, described: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
        """Bytes of the leaders' logs; empty without DESCRIBE on the cluster."""
        if not described:
            return {}
        leaders = {
            (name, one["partition_index"]): one["leader_id"]
            for name, topic in described.items()
            for one in topic["partitions"]
        }
        sizes: dict[str, int] = {}
        for broker, place, size in self._log_sizes(described):
            if leaders.get(place) == broker:
                sizes[place[0]] = sizes.get(place[0], 0) + size
        return sizes

    def _log_sizes(self, topics: Collection[str]) -> list[tuple[int, Place, int]]:
        """Broker, partition and bytes of every replica; empty without DESCRIBE on the cluster."""
        if not topics:
            return []
        try:
            brokers = self.admin.describe_log_dirs(sorted(topics))
        except KafkaError:
            return []
        return [
            (broker["broker"], (topic["name"], one["partition_index"]), int(one["partition_size"]))
            for broker in brokers
            for directory in broker["log_dirs"]
            for topic in directory["topics"]
            for one in topic["partitions"]
            if not one["is_future_key"]
        ]
