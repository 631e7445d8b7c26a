"""How many bytes partitions take on the brokers' disks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafka.errors import KafkaError

from mirror_report.model.cluster import Place


def of_partitions(admin: Any, topics: Collection[str]) -> dict[Place, int]:
    """Bytes of the partitions' logs, of the largest replica; empty if it may not be asked."""
    sizes: dict[Place, int] = {}
    for _, place, size in _replicas(admin, topics):
        sizes[place] = max(size, sizes.get(place, 0))
    return sizes


def of_leaders(admin: Any, described: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Bytes of the leaders' logs by topic; empty without DESCRIBE on the cluster."""
    if not described:
        return {}
    leaders = {
        (name, one["partition_index"]): one["leader_id"]
        for name, topic in described.items()
        for one in topic["partitions"]
    }
    sizes: dict[str, int] = {}
    for broker, place, size in _replicas(admin, described):
        if leaders.get(place) == broker:
            sizes[place[0]] = sizes.get(place[0], 0) + size
    return sizes


def _replicas(admin: Any, topics: Collection[str]) -> list[tuple[int, Place, int]]:
    """Broker, partition and bytes of every replica; empty without DESCRIBE on the cluster."""
    if not topics:
        return []
    try:
        brokers = admin.describe_log_dirs(sorted(topics))
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
