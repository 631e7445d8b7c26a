"""One topic of a real MirrorMaker 2 between two clusters, and what the report says of it."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from mirror_report.config import Settings
from mirror_report.config.load import parse
from mirror_report.lag.measure import LagResult, measure_lag
from mirror_report.model import ClusterSnapshot, Observed
from mirror_report.observe import observe_flow, open_clients
from mirror_report.state.store import Store

PATIENCE = 120


class Counts(NamedTuple):
    """Sums over a topic's partitions."""

    source: int
    committed: int
    target: int


@dataclass
class Lab:
    """Both clusters, one topic of the source's, and the report's configuration for it."""

    mirror: Any
    source: str
    target: str
    directory: Path
    policy: str
    topic: str

    @property
    def mirrored(self) -> str:
        """Name on the target."""
        return f"east.{self.topic}" if self.policy == "prefix" else self.topic

    def settings(
        self,
        changes: Mapping[str, Any] | None = None,
        *,
        west: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Settings:
        """The configuration, with some keys of the flow and of the target replaced."""
        flow = {
            "name": self.topic, "engine": "mm2", "source": "east", "target": "west",
            "topics": [self.topic], "include": self.topic, "group_id": "east-mm2",
            "replication_policy": self.policy, "offset_topic": "mm2-offsets.east.internal",
            "status_topic": "mm2-status.east.internal", "config_topic": "mm2-configs.east.internal",
            "offset_syncs_topic": "mm2-offset-syncs.east.internal",
            "checkpoints_topic": "east.checkpoints.internal", "commit_interval_ms": 2000,
            "permissions": [
                {"cluster": "west", "resource": "group", "name": "east-mm2", "pattern": "literal",
                 "operation": "READ"},
            ],
        }  # fmt: skip
        return parse(
            {
                "version": 1,
                "clusters": {
                    "east": {"bootstrap_servers": [self.source]},
                    "west": {"bootstrap_servers": [self.target], **(west or {})},
                },
                "flows": [{**flow, **(changes or {})}],
                "state_directory": str(self.directory / "state"),
                "credentials": secrets,
            }
        )

    def create(self, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        """Create the topic on the source."""
        with admin(self.source) as client:
            client.create_topics([NewTopic(self.topic, partitions, 1, topic_configs=configs)])
            client.wait_for_topics([self.topic])

    def recreate(self) -> None:
        """Delete the topic on the source and create another of that name."""
        with admin(self.source) as client:
            client.delete_topics([self.topic])
            until(lambda: self.topic not in client.list_topics())
        self.create()

    def truncate(self, offset: int) -> None:
        """Delete the records before an offset on the source."""
        with admin(self.source) as client:
            client.delete_records({TopicPartition(self.topic, 0): offset})

    def produce(self, count: int, size: int = 10) -> None:
        """Write records on the source, each with a value of its own, to its partitions in turn."""
        with admin(self.source) as client:
            partitions = len(client.describe_topics([self.topic])[0]["partitions"])
        with contextlib.closing(
            KafkaProducer(
                bootstrap_servers=self.source, acks="all", linger_ms=5, max_request_size=4_000_000
            )
        ) as producer:
            for number in range(count):
                value = b"%0*d" % (size, number)
                producer.send(self.topic, value=value, partition=number % partitions)
            producer.flush(60)

    def observe(self) -> Observed:
        """Everything as it is now."""
        settings = self.settings()
        with open_clients(settings, ["east", "west"]) as clients:
            return observe_flow(clients, settings.flows[0], {})

    def lag(self) -> LagResult:
        """Measure lag, remembering what a second observation needs."""
        settings = self.settings()
        return measure_lag(settings, Store(settings.state_directory))

    def counts(self) -> Counts:
        """Where both logs and the mirror stand."""
        seen = self.observe()
        return Counts(
            ends(seen.source, self.topic),
            sum(seen.positions.get(self.topic, {}).values()),
            ends(seen.target, self.mirrored),
        )

    def copied_past(self, end: int) -> bool:
        """Whether the target has got more."""
        return self.counts().target > end

    def drained(self, markers: int = 0) -> None:
        """Wait until the mirror has committed everything but so many markers at the end."""

        def through() -> bool:
            counts = self.counts()
            return counts.committed == counts.source - markers

        until(through)


def ends(snapshot: ClusterSnapshot, name: str) -> int:
    topic = snapshot.topics.get(name)
    return sum(partition.log_end for partition in topic.partitions.values()) if topic else 0


def admin(bootstrap: str) -> Any:
    return contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap))


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that has to come."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.5)
