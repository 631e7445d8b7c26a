"""Leader epochs as real brokers tell them, with DESCRIBE on the topic and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from pairs import Pair, admin

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka import leader_epochs
from mirror_report.kafka.metadata import connect
from mirror_report.model import Epochs, EpochsAsked

RECORDS = 30
LEFT = 20


def epochs(bootstrap: str, topic: str) -> tuple[int | None, Epochs]:
    """Epoch of the leader of partition 0, and all of its log."""
    with connect(Cluster("east", (bootstrap,)), Credentials()) as client:
        log = client.snapshot(None, [topic], settings=False).topics[topic].partitions[0]
        wanted = {(topic, 0): EpochsAsked(log.leader_epoch or 0, log.log_start)}
        return log.leader_epoch, leader_epochs.of_logs(client, wanted)[topic, 0]


def test_what_comes_instead_of_a_lost_tail_has_another_epoch(
    broker_processes: Any, tmp_path: Path
) -> None:
    address = broker_processes.start().bootstrap
    pair = Pair(address, address, tmp_path, "lost", "g")
    pair.create("source", partitions=1)
    pair.produce(LEFT)
    assert epochs(address, pair.topic) == (0, ((0, 0),))
    size = broker_processes.log(address, pair.topic).stat().st_size
    pair.produce(RECORDS - LEFT)
    broker_processes.crash(address, {pair.topic: size})
    pair.produce(RECORDS)
    leader, found = epochs(address, pair.topic)
    assert found == ((0, 0), (leader, LEFT))


@pytest.mark.parametrize("allowed", [True, False])
def test_describe_on_the_topic_is_enough(
    pair: Pair, source_broker: Any, sasl_users: dict[str, str], allowed: bool
) -> None:
    pair.create("source", partitions=1)
    pair.produce(1)
    with connect(Cluster("east", (pair.source,)), Credentials()) as client:
        wanted = {(pair.topic, 0): EpochsAsked(0, 0)}
        assert leader_epochs.of_logs(client, wanted) == {(pair.topic, 0): ((0, 0),)}
    if allowed:
        with admin(pair.source) as client:
            client.create_acls([
                ACL("User:mirror", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType.TOPIC, pair.topic)),
            ])  # fmt: skip
    login = Cluster(
        "east", (source_broker.sasl,), security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
        username="mirror", identity="mirror",
    )  # fmt: skip
    with connect(login, Credentials({"east.mirror.password": sasl_users["mirror"]})) as client:
        found = leader_epochs.of_logs(client, {(pair.topic, 0): EpochsAsked(0, 0)})
    assert found == ({(pair.topic, 0): ((0, 0),)} if allowed else {})
