"""Offsets and sizes of partitions' logs, and transactions that are open in them."""

from collections.abc import Collection, Mapping
from typing import Any, cast

from kafka import IsolationLevel, TopicPartition
from kafka.errors import KafkaError
from kafka.protocol.consumer.offsets import OffsetSpec

from mirror_report.config import Cluster
from mirror_report.kafka.connection import (
    REQUEST_TIMEOUT_MS,
    ClusterError,
    DeniedError,
    UnreachableError,
    explained,
)
from mirror_report.model import ClusterSnapshot, OpenTransaction, PartitionSnapshot, Place

PARTITIONS_ASKED = 500
NONE = -1


def log_offsets(
    cluster: Cluster,
    admin: Any,
    described: Mapping[str, Mapping[str, Any]],
    errors: dict[str, str],
    refused: set[str],
) -> dict[str, dict[int, PartitionSnapshot]]:
    """Offsets of all topics at once; topic by topic only to find the one that refuses.

    :param described: topic name -> topic as the admin client describes it.
    :param errors: topic name -> why it is not in the result; added to, like ``refused``.
    :raises ClusterError: the only topic cannot be read.
    :raises UnreachableError: the cluster stopped answering.
    """
    partitions = {
        name: {
            partition["partition_index"]: partition.get("leader_epoch")
            for partition in topic["partitions"]
        }
        for name, topic in described.items()
    }
    try:
        return _listed(cluster, admin, partitions)
    except ClusterError:
        if len(partitions) == 1:
            raise
    logs: dict[str, dict[int, PartitionSnapshot]] = {}
    for name, numbers in partitions.items():
        try:
            logs |= _listed(cluster, admin, {name: numbers})
        except UnreachableError:
            raise
        except ClusterError as error:
            errors[name] = str(error)
            if isinstance(error, DeniedError):
                refused.add(name)
    return logs


def _listed(
    cluster: Cluster, admin: Any, partitions: Mapping[str, Mapping[int, int | None]]
) -> dict[str, dict[int, PartitionSnapshot]]:
    every = [TopicPartition(name, number) for name in partitions for number in partitions[name]]
    if not every:
        return {name: {} for name in partitions}
    with explained(
        cluster,
        f"list offsets of {', '.join(sorted(partitions)[:3])}",
        "DESCRIBE and READ on the topics",
    ):
        start, end, high = (
            admin.list_partition_offsets(
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
            partition: PartitionSnapshot(
                int(start[at].offset),
                int(end[at].offset),
                int(high[at].offset),
                # By the leader itself, of the log that ends there.
                leader_epoch if high[at].leader_epoch is None else int(high[at].leader_epoch),
            )
            for partition, leader_epoch in sorted(numbers.items())
            for at in (TopicPartition(name, partition),)
        }
        for name, numbers in partitions.items()
    }


def partition_sizes(admin: Any, topics: Collection[str]) -> dict[Place, int]:
    """Bytes of the partitions' logs, of the largest replica; empty if it may not be asked."""
    largest_last = sorted(_replicas(admin, topics), key=lambda replica: replica[2])
    return {place: size for _, place, size in largest_last}


def leader_sizes(admin: Any, described: Mapping[str, Mapping[str, Any]]) -> dict[Place, int]:
    """Bytes of the leaders' logs; empty without DESCRIBE on the cluster."""
    leaders = {
        (name, partition["partition_index"]): partition["leader_id"]
        for name, topic in described.items()
        for partition in topic["partitions"]
    }
    return {
        place: size
        for broker, place, size in _replicas(admin, described)
        if leaders.get(place) == broker
    }


def _replicas(admin: Any, topics: Collection[str]) -> list[tuple[int, Place, int]]:
    """Broker, partition and bytes of every replica; empty without DESCRIBE on the cluster."""
    if not topics:
        return []
    try:
        brokers = admin.describe_log_dirs(sorted(topics))
    except KafkaError:
        return []
    return [
        (
            broker["broker"],
            (topic["name"], partition["partition_index"]),
            int(partition["partition_size"]),
        )
        for broker in brokers
        for directory in broker["log_dirs"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    ]


def open_transactions(admin: Any, snapshot: ClusterSnapshot) -> dict[Place, OpenTransaction]:
    """The oldest open transaction of each partition that has one; absent: none, or not known.

    Asked only where the last stable offset lies below the high watermark, and answered as far as
    our identity may know: READ on a topic shows its producers, DESCRIBE on a transactional id since
    when its transaction is open.
    """
    places = [
        TopicPartition(name, number)
        for name, topic in snapshot.topics.items()
        for number, log in topic.partitions.items()
        if log.high_watermark is not None and log.log_end < log.high_watermark
    ][:PARTITIONS_ASKED]
    if not places:
        return {}
    held = _oldest(_producers(admin, places))
    owners = _owners(admin, {producer.producer_id for producer in held.values()})
    transactions: dict[Place, OpenTransaction] = {}
    for place, producer in held.items():
        name, started_ms = owners.get(producer.producer_id, (None, None))
        # Without that it has been open at least since its producer last wrote there.
        since = producer.last_timestamp if started_ms is None else started_ms
        transactions[place] = OpenTransaction(
            int(producer.current_transaction_start_offset),
            max(0.0, (snapshot.taken_at_ms - since) / 1000),
            started_ms is None,
            name,
        )
    return transactions


def _oldest(described: Mapping[Any, Any]) -> dict[Place, Any]:
    """The producer whose transaction begins first, by partition."""
    open_producers = {
        (at.topic, at.partition): [
            producer
            for producer in state.active_producers
            if producer.current_transaction_start_offset != NONE
        ]
        for at, state in described.items()
    }
    return {
        place: min(producers, key=lambda producer: int(producer.current_transaction_start_offset))
        for place, producers in open_producers.items()
        if producers
    }


def _producers(admin: Any, places: list[TopicPartition]) -> Mapping[Any, Any]:
    """The partitions' producers, of as many topics as brokers answer for."""
    try:
        return cast("Mapping[Any, Any]", admin.describe_producers(places))
    except KafkaError:
        # One partition that is refused fails the request for all.
        topics = sorted({at.topic for at in places})
    if len(topics) == 1:
        return {}
    parts = [[at for at in places if at.topic == name] for name in topics]
    return {at: state for part in parts for at, state in _producers(admin, part).items()}


def _owners(admin: Any, producers: set[int]) -> dict[int, tuple[str | None, int | None]]:
    """Producer id -> its transactional id, and since when its transaction is open (ms)."""
    try:
        names = {
            listing.transactional_id: listing.producer_id
            for listings in admin.list_transactions(producer_id_filters=sorted(producers)).values()
            for listing in listings
        }
        described = admin.describe_transactions(sorted(names)) if names else {}
    except KafkaError:
        return {}
    return {
        names[name]: (name, int(transaction.transaction_start_time_ms))
        for name, transaction in described.items()
        if transaction.transaction_start_time_ms > 0
    }
