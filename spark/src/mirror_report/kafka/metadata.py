"""What a cluster reports of itself: brokers, topics with their offsets and settings, groups."""

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError
from kafka.protocol.consumer.offsets import OffsetSpec

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka import logs
from mirror_report.kafka.connection import REQUEST_TIMEOUT_MS, explained, open_admin
from mirror_report.model import ClusterSnapshot, TopicSnapshot

ROUND_TRIPS = 5
TOPIC_AUTHORIZATION_FAILED = 29
UNKNOWN_TOPIC = 3
NO_TOPIC_ID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class ClusterClient:
    """One open admin client.

    :param cluster: the cluster it talks to.
    :param admin: kafka-python's client.
    :param marks: topic -> what stands for its id where the cluster has none.
    """

    cluster: Cluster
    admin: Any
    marks: Mapping[str, str] = field(default_factory=dict)

    def release(self) -> tuple[int, ...]:
        """The release that the oldest broker asked so far answers as.

        Brokers do not report it. It is derived from the versions of requests that they support, so
        a later release that supports the same ones is taken for it.
        """
        manager = self.admin._manager
        asked = [manager, *manager._conns.values()]
        versions = [broker.broker_version for broker in asked if broker.broker_version is not None]
        return min(map(tuple, versions))

    def round_trip_ms(self) -> float:
        """The shortest of some round trips to a broker, in milliseconds, its own work included."""
        shortest = math.inf
        with explained(self.cluster, "describe the cluster", "DESCRIBE on the cluster"):
            for _ in range(ROUND_TRIPS):
                begun = time.perf_counter()
                self.admin.describe_cluster()
                shortest = min(shortest, time.perf_counter() - begun)
        return shortest * 1000

    def listeners(self) -> dict[str, tuple[str, int]]:
        """Name of each running broker -> host and port by which clients reach it."""
        with explained(self.cluster, "describe the cluster", "DESCRIBE on the cluster"):
            return {
                f"broker {broker['broker_id']} ({broker['host']}:{broker['port']})": (
                    broker["host"],
                    int(broker["port"]),
                )
                for broker in self.admin.describe_cluster()["brokers"]
                if not broker.get("is_fenced")
            }

    def names(self, matches: Callable[[str], bool]) -> list[str]:
        """Names of the topics our identity may see, as far as they match."""
        with explained(self.cluster, "list topics", "DESCRIBE on the topics"):
            return sorted(filter(matches, self.admin.list_topics()))

    def auto_creates_topics(self) -> bool | None:
        """Whether brokers create topics on first use; ``None`` if it may not be asked."""
        with explained(self.cluster, "describe the brokers", "DESCRIBE_CONFIGS on the cluster"):
            brokers = [
                str(broker["broker_id"]) for broker in self.admin.describe_cluster()["brokers"]
            ]
            key = "auto.create.topics.enable"
            answer = self.admin.describe_configs(
                [ConfigResource(ConfigResourceType.BROKER, broker, [key]) for broker in brokers],
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
        with explained(self.cluster, "describe the cluster", "DESCRIBE on the cluster"):
            cluster = self.admin.describe_cluster()
        taken_at_ms = time.time_ns() // 1_000_000
        described = self._described(matches, names)
        errors: dict[str, str] = {}
        refused: set[str] = set()
        readable = {topic["name"]: topic for topic in described if topic["error_code"] == 0}
        for topic in described:
            name, code = topic["name"], topic["error_code"]
            if code == TOPIC_AUTHORIZATION_FAILED:
                refused.add(name)
                errors[name] = (
                    f"permission DESCRIBE on topic {name} is missing for identity "
                    f"{self.cluster.identity} on cluster {self.cluster.alias}"
                )
            elif code not in (0, UNKNOWN_TOPIC):
                errors[name] = f"topic {name} is not readable now (Kafka error {code})"
        offsets = logs.log_offsets(self.cluster, self.admin, readable, errors, refused)
        configs = self._configs(offsets) if settings else {}
        sizes = logs.leader_sizes(self.admin, {n: readable[n] for n in offsets}) if settings else {}
        topics = {
            name: TopicSnapshot(
                name=name,
                topic_id=_topic_id(readable[name]) or self.marks.get(name, ""),
                partitions={
                    number: replace(log, bytes=sizes.get((name, number)))
                    for number, log in partitions.items()
                },
                configs={key: setting["value"] for key, setting in configs.get(name, {}).items()},
                bytes=_sum(sizes.get((name, number)) for number in partitions),
                operations=_operations(readable[name]),
                config_sources={
                    key: setting["config_source"] for key, setting in configs.get(name, {}).items()
                },
            )
            for name, partitions in sorted(offsets.items())
        }
        return ClusterSnapshot(
            self.cluster.alias,
            str(cluster["cluster_id"]),
            taken_at_ms,
            topics,
            errors,
            frozenset(refused),
            len(cluster["brokers"]),
        )

    def _described(
        self, matches: Callable[[str], bool] | None, names: Collection[str]
    ) -> list[dict[str, Any]]:
        """Topics as Kafka describes them: those of the cluster that match, and those named."""
        with explained(self.cluster, "describe topics", "DESCRIBE on the topics"):
            all_topics = self.admin.describe_topics() if matches else []
            topics = [topic for topic in all_topics if matches and matches(topic["name"])]
            if missing := sorted(set(names) - {topic["name"] for topic in topics}):
                topics += self.admin.describe_topics(missing)
        return topics

    def partition_counts(self) -> dict[str, int]:
        """Every topic our identity may see -> number of its partitions."""
        with explained(self.cluster, "describe topics", "DESCRIBE on the topics"):
            return {
                topic["name"]: len(topic["partitions"])
                for topic in self.admin.describe_topics()
                if topic["error_code"] == 0
            }

    def newest_record(self, topic: str) -> int | None:
        """Highest record timestamp of a topic (ms); ``None``: no record, no topic, or hidden."""
        try:
            (described,) = self.admin.describe_topics([topic])
            if described["error_code"]:
                return None
            newest = self.admin.list_partition_offsets(
                dict.fromkeys(_partitions(described), OffsetSpec.MAX_TIMESTAMP),
                timeout_ms=REQUEST_TIMEOUT_MS,
            )
        except KafkaError:
            # Brokers below 3.0 do not know the question.
            return None
        times = [int(result.timestamp) for result in newest.values()]
        return max((at for at in times if at >= 0), default=None)

    def has_timestamps(self, topic: str) -> bool:
        """Whether a record of a topic is known to carry a timestamp.

        :raises ClusterError: it cannot be asked.
        """
        with explained(self.cluster, f"ask for times of {topic}", f"DESCRIBE on topic {topic}"):
            (described,) = self.admin.describe_topics([topic])
            # The first record of 1970 or later: brokers of every release know it.
            first = self.admin.list_partition_offsets(
                dict.fromkeys(_partitions(described), 0), timeout_ms=REQUEST_TIMEOUT_MS
            )
        return any(result.offset >= 0 for result in first.values() if result is not None)

    def _configs(self, names: Collection[str]) -> dict[str, dict[str, dict[str, str]]]:
        """Effective settings by topic, each as Kafka describes it; none if we may not ask."""
        if not names:
            return {}
        with explained(self.cluster, "read topic settings", "DESCRIBE_CONFIGS on the topics"):
            answer = self.admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name) for name in names],
                config_filter="all",
            ).get("topic", {})
        # Sensitive settings come without a value.
        return {
            name: {key: setting for key, setting in configs.items() if setting["value"] is not None}
            for name, configs in answer.items()
        }


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Sum of the sizes that are known; ``None``: none is."""
    not_none = [size for size in sizes if size is not None]
    return sum(not_none) if not_none else None


def _partitions(described: Mapping[str, Any]) -> list[TopicPartition]:
    return [
        TopicPartition(described["name"], partition["partition_index"])
        for partition in described["partitions"]
    ]


def _topic_id(described: Mapping[str, Any]) -> str:
    """Id of a topic; brokers below 2.8 answer without, or with one that is all zero."""
    topic_id = str(described.get("topic_id") or "")
    return "" if topic_id == NO_TOPIC_ID else topic_id


def _operations(described: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Operations our identity may perform; brokers below 2.3 do not list them."""
    operations = described.get("authorized_operations")
    return None if operations is None else tuple(operations)


@contextlib.contextmanager
def connect(
    cluster: Cluster, credentials: Credentials, marks: Mapping[str, str] | None = None
) -> Iterator[ClusterClient]:
    """Open a client for one cluster.

    :param marks: as of :class:`ClusterClient`.
    :raises UnreachableError: no broker answered in time.
    :raises AuthenticationError: a broker answered and refused the identity.
    """
    with open_admin(cluster, credentials) as admin:
        yield ClusterClient(cluster, admin, marks or {})
