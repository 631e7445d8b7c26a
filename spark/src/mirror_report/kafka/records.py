"""Reading records without a group: bounded, and nothing is committed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from mirror_report.config.cluster import Cluster
from mirror_report.config.credentials import Credentials
from mirror_report.kafka.connection import client_options, explained
from mirror_report.model.cluster import Place


def oldest_waiting(
    cluster: Cluster,
    credentials: Credentials,
    waiting: Mapping[Place, tuple[int, int]],
    timeout_seconds: float = 5,
    isolation: str = "read_uncommitted",
) -> dict[Place, int | None]:
    """Timestamp (ms) of the first record at or after each position.

    :param waiting: topic and partition -> position and log end, the position below the end.
    :param isolation: Kafka's word for whether records of transactions that did not commit count.
    :returns: ``None`` where no record is left before the end (transaction markers only); a
        partition that did not answer in time is left out, its age is unknown.
    """
    ages: dict[Place, int | None] = {}
    if not waiting:
        return ages
    options = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-age",
        "group_id": None,
        "isolation_level": isolation,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_partition_fetch_bytes": 65_536,
        "max_poll_records": 5_000,
    }
    left = {TopicPartition(*at): ends for at, ends in waiting.items()}
    deadline = time.monotonic() + timeout_seconds
    with explained(cluster, "read records", "READ on the topics"):
        consumer = reader(options)
        try:
            consumer.assign(list(left))
            for at, (position, _) in left.items():
                consumer.seek(at, position)
            while left and time.monotonic() < deadline:
                batches = consumer.poll(timeout_ms=200)
                for at, records in batches.items():
                    if records and at in left:
                        ages[at.topic, at.partition] = int(records[0].timestamp)
                        del left[at]
                for at, (_, end) in list(left.items()):
                    if consumer.position(at) >= end:
                        ages[at.topic, at.partition] = None
                        del left[at]
                consumer.pause(*(set(consumer.assignment()) - set(left)))
        finally:
            consumer.close(autocommit=False)
    return ages


def fetched_at(
    cluster: Cluster,
    credentials: Credentials,
    place: Place,
    offset: int,
    isolation: str,
    timeout_seconds: float = 15,
) -> list[Any]:
    """Records of a partition from an offset on, as many as one fetch brings.

    :param isolation: as for :func:`oldest_waiting`.
    :returns: consumer records, keys and values as bytes; none if none came in time.
    """
    options = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-look",
        "group_id": None,
        "isolation_level": isolation,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    at = TopicPartition(*place)
    deadline = time.monotonic() + timeout_seconds
    with explained(cluster, "read records", "READ on the topics"):
        consumer = reader(options)
        try:
            consumer.assign([at])
            consumer.seek(at, offset)
            while time.monotonic() < deadline:
                batch = consumer.poll(timeout_ms=200).get(at)
                if batch:
                    return list(batch)
        finally:
            consumer.close(autocommit=False)
    return []


def reader(options: Mapping[str, Any]) -> Any:
    """A consumer that asks for topics without making them.

    kafka-python has an option for that and does not hand it on to what sends the request.
    """
    consumer = KafkaConsumer(**options)
    consumer._cluster.config["allow_auto_create_topics"] = False
    return consumer
