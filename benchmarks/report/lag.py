"""How far 200 topics of six partitions are mirrored, over TLS, in a process of its own."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import Any

from clusters import PARTITIONS, Lab, commit, create, over_tls
from common import Node, properties_text, wait_for
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from trials import Trial

TOPICS = [f"lag-{number}" for number in range(200)]
RECORDS = 10  # of each partition, before and after the mirrors stopped


def lag(lab: Lab, variant: str) -> Trial:
    """The command ``lag``, with the history of the trials before it.

    :param variant: ``mm1`` and ``mm2`` have mirrored half of each partition, ``idle`` all of it.
    """
    if "lag" not in lab.filled:
        lab.filled.add("lag")
        _prepare(lab)
    clusters = {alias: over_tls(address) for alias, address in zip("ab", lab.tls, strict=True)}
    flow: dict[str, Any] = {
        "name": variant, "source": "a", "target": "b", "include": "lag-.*",
        "group_id": f"mirrormaker-{variant}",
    }  # fmt: skip
    if variant == "mm2":
        flow |= {
            "engine": "mm2", "group_id": "a-mm2", "replication_policy": "identity",
            "offset_topic": "mm2-offsets.a.internal", "status_topic": "mm2-status.a.internal",
            "config_topic": "mm2-configs.a.internal",
            "offset_syncs_topic": "mm2-offset-syncs.a.internal",
            "checkpoints_topic": "a.checkpoints.internal",
        }  # fmt: skip
    trial, said = lab.report(lab.configured(f"lag-{variant}", flow, clusters), "lag", "--json")
    behind = sum(row["lag_records"] > 0 for row in said["lag"])
    return {**trial, "partitions": len(said["lag"]), "lagging": behind}


def _prepare(lab: Lab) -> None:
    """Mirror everything, commit as MirrorMaker 1 does, and write as much again."""
    for address in (lab.source, lab.target):
        create(address, TOPICS)
    _write(lab)
    _mirror(lab)
    commit(lab.source, "mirrormaker-mm1", TOPICS)
    _write(lab)
    commit(lab.source, "mirrormaker-idle", TOPICS)


def _write(lab: Lab) -> None:
    with closing(KafkaProducer(bootstrap_servers=lab.source, acks="all", linger_ms=50)) as producer:
        for topic in TOPICS:
            for number in range(RECORDS * PARTITIONS):
                producer.send(topic, b"v" * lab.record_bytes, partition=number % PARTITIONS)
        producer.flush(120)


def _mirror(lab: Lab) -> None:
    """Run a MirrorMaker 2 until it has copied everything, and end it as systemd does."""
    factors = (
        "", "offset-syncs.topic.", "checkpoints.topic.", "offset.storage.", "config.storage.",
        "status.storage.",
    )  # fmt: skip
    properties = {
        "clusters": "a,b",
        "a.bootstrap.servers": lab.source,
        "b.bootstrap.servers": lab.target,
        "a->b.enabled": "true",
        "a->b.topics": "lag-.*",
        "a->b.tasks.max": "2",
        "a->b.offset-syncs.topic.location": "target",
        "a->b.emit.heartbeats.enabled": "false",
        "b->a.enabled": "false",
        "b->a.emit.heartbeats.enabled": "false",
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        **{f"{prefix}replication.factor": "1" for prefix in factors},
    }
    configuration = lab.directory / "lag.properties"
    configuration.write_text(properties_text(properties))
    node = Node(
        [f"{lab.kafka}/bin/connect-mirror-maker.sh", str(configuration), "--clusters", "b"],
        lab.directory / "lag.log", KAFKA_HEAP_OPTS="-Xmx1g", LOG_DIR=str(lab.directory),
    )  # fmt: skip
    try:
        parts = [TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
        with closing(KafkaConsumer(bootstrap_servers=lab.target)) as consumer:
            wait_for(
                "the mirror",
                lambda: all(end >= RECORDS for end in consumer.end_offsets(parts).values()),
            )
        node.end(signal.SIGTERM)
    finally:
        node.process.kill()
        node.process.wait(30)
