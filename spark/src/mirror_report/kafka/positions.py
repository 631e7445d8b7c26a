"""Where MirrorMaker 1 stands: its consumer group's commits and members."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka.snapshot import ClusterClient, ClusterError, client_options, explained
from mirror_report.model import GroupMember, GroupSnapshot, Positions

COORDINATOR_TIMEOUT_SECONDS = 15
_STARTING = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)

Place = tuple[str, int]
"""Topic and partition."""


def committed(client: ClusterClient, group_id: str) -> Positions:
    """Committed offsets of a group: topic -> partition -> next offset to mirror."""
    positions: Positions = {}
    with explained(
        client.cluster, f"read the offsets of group {group_id}", f"DESCRIBE on group {group_id}"
    ):
        answer = _with_coordinator(lambda: client.admin.list_group_offsets({group_id: None}))
    for at, one in answer.get(group_id, {}).items():
        if one.offset >= 0:
            positions.setdefault(at.topic, {})[at.partition] = int(one.offset)
    return positions


def group(client: ClusterClient, group_id: str) -> GroupSnapshot:
    """Members and state of a group; a group that does not exist is ``Dead`` and empty."""
    with explained(client.cluster, f"describe group {group_id}", f"DESCRIBE on group {group_id}"):
        found = _with_coordinator(lambda: _described(client, group_id))
    if found["error"] and found["group_state"] != "Dead":
        raise ClusterError(f"cluster {client.cluster.alias}: group {group_id}: {found['error']}")
    members = []
    for one in found["members"]:
        assignment = one["member_assignment"] or {}
        assigned = assignment.get("assigned_partitions", []) if assignment else []
        members.append(
            GroupMember(
                client_id=one["client_id"],
                host=one["client_host"].lstrip("/"),
                partitions=tuple(
                    (topic["topic"], int(number))
                    for topic in assigned
                    for number in topic["partitions"]
                ),
            )
        )
    return GroupSnapshot(group_id, found["group_state"] or "Dead", tuple(members))


def _described(client: ClusterClient, group_id: str) -> Any:
    found = client.admin.describe_groups([group_id])[group_id]
    # The client hands this error over as text.
    for starting in _STARTING:
        if starting.__name__ in str(found["error"] or ""):
            raise starting(found["error"])
    return found


def oldest_waiting(
    cluster: Cluster,
    credentials: Credentials,
    waiting: Mapping[Place, tuple[int, int]],
    timeout_seconds: float = 5,
) -> dict[Place, int | None]:
    """Timestamp (ms) of the first record at or after each position.

    :param waiting: topic and partition -> position and log end, the position below the end.
    :returns: ``None`` where no record is left before the end (transaction markers only); a
        partition that did not answer in time is left out, its age is unknown.
    """
    ages: dict[Place, int | None] = {}
    if not waiting:
        return ages
    options = client_options(cluster, credentials) | {
        "client_id": f"mirror-report-{cluster.alias}-age",
        "group_id": None,
        "isolation_level": "read_committed",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_partition_fetch_bytes": 65_536,
        "max_poll_records": 5_000,
    }
    left = {TopicPartition(*at): ends for at, ends in waiting.items()}
    deadline = time.monotonic() + timeout_seconds
    with explained(cluster, "read records", "READ on the topics"):
        consumer = KafkaConsumer(**options)
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


def addresses(host: str, cluster: Cluster) -> set[str]:
    """Addresses under which a broker may see a host.

    A name of this very host often resolves to a loopback address; then the address that leads
    to the brokers is added.
    """
    try:
        found = {str(one[4][0]) for one in socket.getaddrinfo(host, None)}
    except OSError:
        found = set()
    local = socket.gethostname()
    if host in (local, local.partition(".")[0], socket.getfqdn()) or any(
        one.startswith("127.") or one == "::1" for one in found
    ):
        found |= _own_addresses(cluster.bootstrap_servers)
    return found | {host}


def _own_addresses(servers: Collection[str]) -> set[str]:
    found: set[str] = set()
    for server in servers:
        host, _, port = server.rpartition(":")
        with contextlib.suppress(OSError):
            for family, _, _, _, address in socket.getaddrinfo(
                host.strip("[]"), int(port), type=socket.SOCK_DGRAM
            ):
                # Connecting a datagram socket sends nothing; it only chooses a route.
                with socket.socket(family, socket.SOCK_DGRAM) as probe:
                    probe.connect(address)
                    found.add(str(probe.getsockname()[0]))
    return found


def _with_coordinator(ask: Callable[[], Any]) -> Any:
    """Ask again while a fresh cluster still creates its offsets topic."""
    deadline = time.monotonic() + COORDINATOR_TIMEOUT_SECONDS
    while True:
        try:
            return ask()
        except _STARTING:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
