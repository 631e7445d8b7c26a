"""Log start, last stable offset and high watermark of topics' partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import IsolationLevel, TopicPartition
from kafka.protocol.consumer.offsets import OffsetSpec

from mirror_report.config.cluster import Cluster
from mirror_report.kafka.connection import REQUEST_TIMEOUT_MS, explained
from mirror_report.kafka.errors import ClusterError, DeniedError, UnreachableError
from mirror_report.model.cluster import PartitionSnapshot


def readable(
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
        name: sorted(one["partition_index"] for one in topic["partitions"])
        for name, topic in described.items()
    }
    try:
        return _listed(cluster, admin, partitions)
    except ClusterError:
        if len(partitions) == 1:
            raise
    found: dict[str, dict[int, PartitionSnapshot]] = {}
    for name, numbers in partitions.items():
        try:
            found |= _listed(cluster, admin, {name: numbers})
        except UnreachableError:
            raise
        except ClusterError as error:
            errors[name] = str(error)
            if isinstance(error, DeniedError):
                refused.add(name)
    return found


def _listed(
    cluster: Cluster, admin: Any, partitions: Mapping[str, list[int]]
) -> dict[str, dict[int, PartitionSnapshot]]:
    every = [TopicPartition(name, one) for name, some in partitions.items() for one in some]
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
            one: PartitionSnapshot(
                int(start[TopicPartition(name, one)].offset),
                int(end[TopicPartition(name, one)].offset),
                int(high[TopicPartition(name, one)].offset),
            )
            for one in some
        }
        for name, some in partitions.items()
    }
