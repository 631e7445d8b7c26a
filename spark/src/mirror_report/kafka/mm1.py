"""Where MirrorMaker 1 stands: the commits of its consumer group."""

from __future__ import annotations

from mirror_report.kafka.groups import with_coordinator
from mirror_report.kafka.snapshot import ClusterClient, explained
from mirror_report.model import Positions


def committed(client: ClusterClient, group_id: str) -> Positions:
    """Committed offsets of a group: topic -> partition -> next offset to mirror."""
    positions: Positions = {}
    with explained(
        client.cluster, f"read the offsets of group {group_id}", f"DESCRIBE on group {group_id}"
    ):
        answer = with_coordinator(lambda: client.admin.list_group_offsets({group_id: None}))
    for at, one in answer.get(group_id, {}).items():
        if one.offset >= 0:
            positions.setdefault(at.topic, {})[at.partition] = int(one.offset)
    return positions
