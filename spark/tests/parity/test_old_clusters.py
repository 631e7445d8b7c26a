"""Every command on old clusters that a real MirrorMaker mirrors between, records read by Spark."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata
from parity_commands import one_session
from parity_records import jars_directory
from pyspark.sql import SparkSession
from real_mirrors import MirrorMaker1, until

from mirror_report import cli
from mirror_report.config import Flow

sys.path.insert(0, str(Path(__file__).parent / "compatibility"))

pytestmark = [
    pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars"),
    pytest.mark.usefixtures("_commands"),
]

NUMBERS = itertools.count()
RECORDS = 300
GROUP = "follow-orders"
OLD_FORMAT = {"message.format.version": "0.10.2"}


class Host:
    """A flow between two clusters, and the report's command line for it."""

    def __init__(self, brokers: tuple[str, str], directory: Path, flow: dict[str, Any]) -> None:
        self.brokers = brokers
        self.admins = [KafkaAdminClient(bootstrap_servers=address) for address in brokers]
        self.topics: list[str] = flow["topics"]
        self.directory = directory
        self._configuration = directory / "config.json"
        self._configuration.write_text(json.dumps({
            "version": 1,
            "clusters": {
                alias: {"bootstrap_servers": [address]}
                for alias, address in zip(("east", "west"), brokers, strict=True)
            },
            "flows": [{"source": "east", "target": "west", "hosts": ["localhost"], **flow}],
            "state_directory": str(directory / "state"),
            "spark": {"master": "local[2]", "jars_directory": str(jars_directory())},
        }))  # fmt: skip

    def call(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run a command: its exit status and its document."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = cli.main(["--config", str(self._configuration), *arguments])
        text = printed.getvalue()
        return status, json.loads(text) if text.startswith("{") else {}

    def kinds(self, *arguments: str) -> set[str]:
        """What a command finds."""
        _, document = self.call(*arguments, "--json")
        return {found["kind"] for found in document["findings"]}

    def produce(self, topic: str, count: int = RECORDS) -> None:
        """Write keyed records on the source, of some minutes."""
        begin = int(time.time() * 1000) - count * 1000
        with contextlib.closing(
            # An idempotent one may not write in the format of 0.10.
            KafkaProducer(bootstrap_servers=self.brokers[0], acks="all", enable_idempotence=False)
        ) as producer:
            sent = [
                producer.send(
                    topic,
                    key=b"k%d" % (n % 20),
                    value=b"value %d" % n,
                    timestamp_ms=begin + n * 1000,
                )
                for n in range(count)
            ]
            for one in sent:
                one.get(30)

    def write(self, side: int, topic: str, value: bytes) -> None:
        """Write one record beside the mirror."""
        with contextlib.closing(KafkaProducer(bootstrap_servers=self.brokers[side])) as producer:
            producer.send(topic, value=value, partition=0).get(30)

    def follow(self, topic: str, offset: int) -> None:
        """Commit for a consumer group of the source."""
        with contextlib.closing(
            KafkaConsumer(
                bootstrap_servers=self.brokers[0], group_id=GROUP, enable_auto_commit=False
            )
        ) as consumer:
            at = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
            consumer.assign(list(at))
            consumer.commit(at)

    def create_again(self, side: int, topic: str) -> None:
        """Delete a topic, which takes a while, and create it again."""
        self.admins[side].delete_topics([topic])

        def created() -> bool:
            try:
                self.admins[side].create_topics([NewTopic(topic, 2, 1)])
            except TopicAlreadyExistsError:
                return False
            return True

        until(created)

    def groups(self) -> list[dict[str, Any]]:
        """Consumer groups that the mirror takes along."""
        _, document = self.call("groups", "--json")
        return list(document["groups"])

    def lag(self) -> int | None:
        """Records the mirror is behind, as the report says."""
        _, document = self.call("lag", "--json")
        rows = [row["lag_records"] for row in document["lag"]]
        return sum(rows) if rows and None not in rows else None

    def verified(self) -> int:
        """Records of the last run that were verified."""
        _, document = self.call("show", "--json")
        return sum(topic["verified_records"] for topic in document["parity"])

    def close(self) -> None:
        """Close all clients."""
        for admin in self.admins:
            admin.close()


@pytest.fixture(scope="module", params=["2.4.1", pytest.param("2.1.1", marks=pytest.mark.long)])
def old_brokers(
    request: pytest.FixtureRequest, start_old_broker: Callable[[str], Any]
) -> tuple[str, str]:
    """Addresses of two clusters of one release."""
    return start_old_broker(request.param).bootstrap, start_old_broker(request.param).bootstrap


@pytest.fixture
def _commands(spark: SparkSession) -> Iterator[None]:
    """Commands take the session of all tests."""
    with one_session(spark):
        yield


@pytest.fixture
def mm1(old_brokers: tuple[str, str], kafka3_home: Path, tmp_path: Path) -> Iterator[Host]:
    """Two topics, one of them in the format of 0.10, that MirrorMaker 1 has mirrored."""
    topics = [f"orders-{next(NUMBERS)}", f"old-{next(NUMBERS)}"]
    group, include = f"mirrormaker-{topics[0]}", "|".join(topics)
    host = Host(old_brokers, tmp_path, {
        "name": "orders", "topics": topics, "include": include, "group_id": group,
        "commit_interval_ms": 500,
    })  # fmt: skip
    for admin, configs in zip(host.admins, (OLD_FORMAT, {}), strict=True):
        admin.create_topics(
            [NewTopic(topics[0], 2, 1), NewTopic(topics[1], 2, 1, topic_configs=configs)]
        )
    known = Flow("orders", "east", "west", include, group_id=group, commit_interval_ms=500)
    engine = MirrorMaker1(kafka3_home, tmp_path, old_brokers, known)
    assert host.call("baseline", "--full-history")[0] == 0
    for topic in topics:
        host.produce(topic)
    engine.start()
    try:
        until(lambda: host.lag() == 0)
        yield host
    finally:
        engine.end(signal.SIGKILL)
        host.close()


def test_what_mirrormaker1_mirrors_is_verified_and_faults_are_told(mm1: Host) -> None:
    status, document = mm1.call("run", "--json")
    assert status == 0, [found["message"] for found in document["findings"]]
    assert mm1.verified() == 2 * RECORDS
    mm1.write(1, mm1.topics[0], b"written beside the mirror")
    assert mm1.kinds("run") == {"extra"}


@pytest.mark.long
def test_digests_and_proofs_of_old_clusters_agree(mm1: Host) -> None:
    assert mm1.call("prove", "--flow", "orders", "--json")[0] == 0
    bundles = [str(mm1.directory / side) for side in ("source", "target")]
    for side, path in zip(("source", "target"), bundles, strict=True):
        assert mm1.call("digest", "--side", side, "--output", path)[0] == 0
    status, document = mm1.call("compare", "--json", *bundles)
    assert status == 0, document["topics"]


@pytest.mark.long
def test_a_source_topic_created_again_is_a_reset_of_what_was_verified(mm1: Host) -> None:
    assert mm1.call("run", "--json")[0] == 0
    mm1.create_again(0, mm1.topics[0])
    mm1.produce(mm1.topics[0], 2 * RECORDS)
    assert "reset" in mm1.kinds("run")


@pytest.fixture
def mm2(
    request: pytest.FixtureRequest, old_brokers: tuple[str, str], tmp_path: Path,
    make_mirror_maker2: Callable[..., Any],
) -> Iterator[Host]:  # fmt: skip
    """A topic and a consumer group that MirrorMaker 2 has taken along, settings too if it can."""
    takes_settings = request.node.callspec.params["old_brokers"] != "2.1.1"
    host = Host(old_brokers, tmp_path, {
        "name": "orders", "engine": "mm2", "topics": ["identity-orders"],
        "include": "identity-.*", "group_id": "east-mm2", "replication_policy": "identity",
        "offset_topic": "mm2-offsets.east.internal", "status_topic": "mm2-status.east.internal",
        "config_topic": "mm2-configs.east.internal", "commit_interval_ms": 2000,
        "offset_syncs_topic": "mm2-offset-syncs.east.internal",
        "checkpoints_topic": "east.checkpoints.internal", "consumer_groups": ["follow-.*"],
        "sync_topic_configs": takes_settings,
    })  # fmt: skip
    host.admins[0].create_topics([NewTopic("identity-orders", 2, 1)])
    assert host.call("baseline", "--full-history")[0] == 0
    engine = make_mirror_maker2(
        *old_brokers, **{"sync.topic.configs.enabled": str(takes_settings).lower()}
    )
    engine.start("identity")
    host.produce("identity-orders")
    host.follow("identity-orders", 20)
    try:
        until(lambda: host.lag() == 0)
        yield host
    finally:
        engine.end()
        host.close()


@pytest.mark.long
def test_what_mirrormaker2_mirrors_is_verified_with_its_groups(mm2: Host) -> None:
    status, document = mm2.call("run", "--json")
    assert status < 2, [found["message"] for found in document["findings"]]
    assert mm2.verified() == RECORDS
    until(lambda: [row["state"] for row in mm2.groups()] == ["ready"])
    assert "reset" not in mm2.kinds("run")
