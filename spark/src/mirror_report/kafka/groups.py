"""Groups of a mirror, of both kinds: consumers, and workers of Kafka Connect."""

import contextlib
import socket
import time
from collections.abc import Callable, Collection
from typing import Any

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from mirror_report.config import Cluster
from mirror_report.kafka.connection import explained
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.model import GroupMember, GroupSnapshot, Place, Positions

COORDINATOR_TIMEOUT_SECONDS = 15
# Kafka's word for a state that a list of groups leaves out.
UNKNOWN = "Unknown"
_STARTING = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)


def snapshot(client: ClusterClient, group_id: str, *, consumers: bool) -> GroupSnapshot:
    """Members and state of a group; one that does not exist is ``Dead`` and empty.

    :param consumers: its members have partitions; otherwise they are workers of Kafka Connect.
    """
    group = described(client, group_id)
    return GroupSnapshot(
        group_id,
        group.group_state or "Dead",
        tuple(
            GroupMember(
                member.client_id,
                member.client_host.lstrip("/"),
                tuple(_assigned(member.member_assignment)) if consumers else (),
            )
            for member in group.members
        ),
    )


def _assigned(assignment: bytes) -> list[Place]:
    """Partitions of a consumer; one that has just joined has no assignment."""
    decoded = ConsumerProtocolAssignment.decode(assignment).partitions() if assignment else ()
    return [(at.topic, int(at.partition)) for at in decoded]


def described(client: ClusterClient, group_id: str) -> Any:
    """A group as the broker describes it, with what our identity may do with it.

    kafka-python's public call takes what members were assigned for a consumer's and fails, for
    Kafka Connect has a format of its own. So the request is sent without it, in a version whose
    answer treats a group that does not exist as dead and not as an error.

    :raises DeniedError: DESCRIBE is missing.
    """
    with explained(client.cluster, f"describe group {group_id}", f"DESCRIBE on group {group_id}"):
        return with_coordinator(lambda: client.admin._manager.run(_ask, client.admin, group_id))


async def _ask(admin: Any, group_id: str) -> Any:
    coordinators = await admin._find_coordinator_ids([group_id])
    answer = await admin._manager.send(
        DescribeGroupsRequest(groups=[group_id], include_authorized_operations=True, max_version=5),
        node_id=coordinators[group_id],
    )
    (group,) = answer.groups
    if group.error_code:
        raise for_code(group.error_code)()
    return group


def states(client: ClusterClient, needed: Collection[str] = ()) -> dict[str, str]:
    """Consumer groups our identity may see -> Kafka's word for their state.

    :param needed: groups whose states are needed. Brokers below 2.6 list groups without them, and
        describe them with it.
    """
    with explained(client.cluster, "list groups", "DESCRIBE on the groups"):
        listed = {
            group["group_id"]: str(group.get("group_state") or UNKNOWN)
            for group in client.admin.list_groups()
            if group["protocol_type"] in ("consumer", "")
        }
    for name in sorted(needed):
        if listed.get(name) == UNKNOWN:
            listed[name] = str(described(client, name).group_state)
    return listed


def committed(client: ClusterClient, group_ids: Collection[str]) -> dict[str, Positions]:
    """Offsets that groups have committed: group -> topic -> partition -> next offset to read.

    :raises DeniedError: DESCRIBE is missing on one of them.
    """
    if not group_ids:
        return {}
    shown = ", ".join(sorted(group_ids)[:3])
    with explained(
        client.cluster, f"read the offsets of groups {shown}", f"DESCRIBE on groups {shown}"
    ):
        answer = with_coordinator(lambda: client.admin.list_group_offsets(dict.fromkeys(group_ids)))
    positions: dict[str, Positions] = {group: {} for group in answer}
    for group, offsets in answer.items():
        for at, committed in offsets.items():
            if committed.offset >= 0:
                positions[group].setdefault(at.topic, {})[at.partition] = int(committed.offset)
    return positions


def addresses(host: str, cluster: Cluster) -> set[str]:
    """Addresses under which a broker may see a host.

    A name of this very host often resolves to a loopback address; then the address that leads
    to the brokers is added.
    """
    resolved: set[str] = set()
    with contextlib.suppress(OSError):
        resolved = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    local = socket.gethostname()
    if host in (local, local.partition(".")[0], socket.getfqdn()) or any(
        address.startswith("127.") or address == "::1" for address in resolved
    ):
        resolved |= _own_addresses(cluster.bootstrap_servers)
    return resolved | {host}


def _own_addresses(servers: Collection[str]) -> set[str]:
    own: set[str] = set()
    for server in servers:
        host, _, port = server.rpartition(":")
        with contextlib.suppress(OSError):
            for family, _, _, _, address in socket.getaddrinfo(
                host.strip("[]"), int(port), type=socket.SOCK_DGRAM
            ):
                # Connecting a datagram socket sends nothing; it only chooses a route.
                with socket.socket(family, socket.SOCK_DGRAM) as probe:
                    probe.connect(address)
                    own.add(str(probe.getsockname()[0]))
    return own


def with_coordinator(ask: Callable[[], Any]) -> Any:
    """Ask again while a fresh cluster still creates its offsets topic."""
    deadline = time.monotonic() + COORDINATOR_TIMEOUT_SECONDS
    while True:
        try:
            return ask()
        except _STARTING:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
