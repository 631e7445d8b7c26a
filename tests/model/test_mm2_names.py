"""The key tables agree with the libraries."""

from __future__ import annotations

from typing import Any

from mirror_model import kafka_names
from mirror_model.connectors import names as mm2_names

from tests.model.conftest import Kafka

MIRROR = "org.apache.kafka.connect.mirror"
WORKER = "org.apache.kafka.connect.runtime.distributed.DistributedConfig"
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
BARE_WORKER = {
    "bootstrap.servers": "x:1", "group.id": "x", "config.storage.topic": "x",
    "offset.storage.topic": "x", "status.storage.topic": "x",
    "key.converter": CONVERTER, "value.converter": CONVERTER,
}  # fmt: skip


def names(kafka: Kafka, owner: str, field: str) -> set[str]:
    """Names of the configuration that a class keeps in a field of its own."""
    found = kafka.class_named("java.lang.Class").forName(owner).getDeclaredField(field)
    found.setAccessible(True)
    return set(found.get(None).names())


def test_clients(kafka: Kafka) -> None:
    tables = {
        "consumer.ConsumerConfig": kafka_names.CONSUMER,
        "producer.ProducerConfig": kafka_names.PRODUCER,
        "admin.AdminClientConfig": kafka_names.ADMIN,
    }
    for name, table in tables.items():
        config: Any = kafka.class_named(f"org.apache.kafka.clients.{name}")
        assert set(config.configNames()) == table[kafka.line]


def test_security(kafka: Kafka) -> None:
    known = names(kafka, f"{MIRROR}.MirrorClientConfig", "CLIENT_CONFIG_DEF")
    assert known == kafka_names.SECURITY[kafka.line]


def test_connectors(kafka: Kafka) -> None:
    known = set().union(
        *(names(kafka, f"{MIRROR}.Mirror{kind}Config", "CONNECTOR_CONFIG_DEF")
          for kind in ("Source", "Checkpoint", "Heartbeat"))
    )  # fmt: skip
    assert known - kafka_names.SECURITY[kafka.line] == mm2_names.CONNECTOR[kafka.line]


def test_workers(kafka: Kafka) -> None:
    known = set(kafka.class_named(WORKER)(kafka.map(BARE_WORKER)).values())
    assert known - kafka_names.SECURITY[kafka.line] == mm2_names.WORKER[kafka.line]
