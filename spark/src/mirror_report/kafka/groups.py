"""Groups of a mirror, of both kinds: consumers, and workers of Kafka Connect."""

import contextlib
import socket
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest

from mirror_report.config import Cluster
from mirror_report.kafka.connection import ClusterError, explained
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.model import GroupMember, GroupSnapshot, Positions

COORDINATOR_TIMEOUT_SECONDS = 15
# Kafka's word where no state is told.
UNKNOWN = "Unknown"
_STARTING = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)


def consumers(client: ClusterClient, group_id: str) -> GroupSnapshot:
    """Members and state of a consumer group; a group that does not exist is ``Dead`` and empty."""
    with explained(client.cluster, f"describe group {group_id}", f"DESCRIBE on group {group_id}"):
        found = with_coordinator(lambda: _described(client, group_id))
    if found["error"] and found["group_state"] != "Dead":
        raise ClusterError(f"cluster {client.cluster.alias}: group {group_id}: {found['error']}")
    return GroupSnapshot(
        group_id,
        found["group_state"] or "Dead",
        tuple(
            GroupMember(
                client_id=member["client_id"],
                host=member["client_host"].lstrip("/"),
                partitions=tuple(
                    (topic["topic"], int(number))
                    for topic in (member["member_assignment"] or {}).get("assigned_partitions", [])
                    for number in topic["partitions"]
                ),
            )
            for member in found["members"]
        ),
    )


def workers(client: ClusterClient, group_id: str) -> GroupSnapshot:
    """Members and state of a group of Kafka Connect's workers, as :func:`consumers`."""
    found = described(client, group_id)
    return GroupSnapshot(
        group_id,
        found.group_state or "Dead",
        tuple(
            GroupMember(member.client_id, member.client_host.lstrip("/"), ())
            for member in found.members
        ),
    )


def described(client: ClusterClient, group_id: str) -> Any:
    """A group as the broker describes it, with what our identity may do with it.

    What its members were assigned is left alone: Kafka Connect has a format of its own for that.
    kafka-python's public call takes it for a consumer's and fails, so the request is sent without
    it, in a version whose answer treats a group that does not exist as dead and not as an error.

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
    (found,) = answer.groups
    if found.error_code:
        raise for_code(found.error_code)()
    return found


def _described(client: ClusterClient, group_id: str) -> Any:
    found = client.admin.describe_groups([group_id])[group_id]
    # The client hands this error over as text.
    for starting in _STARTING:
        if starting.__name__ in str(found["error"] or ""):
            raise starting(found["error"])
    return found


def states(client: ClusterClient) -> dict[str, str]:
    """Consumer groups our identity may see -> Kafka's word for their state."""
    with explained(client.cluster, "list groups", "DESCRIBE on the groups"):
        return {
            group["group_id"]: str(group.get("group_state") or UNKNOWN)
            for group in client.admin.list_groups()
            if group["protocol_type"] in ("consumer", "")
        }


def known_states(
    client: ClusterClient, listed: Mapping[str, str], wanted: Collection[str]
) -> dict[str, str]:
    """The same states, with those of the wanted groups that the list does not tell.

    Brokers below 2.6 list groups without their states, and describe them with it.
    """
    untold = sorted(name for name in wanted if listed.get(name) == UNKNOWN)
    return {**listed, **{name: described(client, name).group_state for name in untold}}


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
    found: dict[str, Positions] = {}
    for group, offsets in answer.items():
        positions = found.setdefault(group, {})
        for at, committed in offsets.items():
            if committed.offset >= 0:
                positions.setdefault(at.topic, {})[at.partition] = int(committed.offset)
    return found


def addresses(host: str, cluster: Cluster) -> set[str]:
    """Addresses under which a broker may see a host.

    A name of this very host often resolves to a loopback address; then the address that leads
    to the brokers is added.
    """
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        found = set()
    local = socket.gethostname()
    if host in (local, local.partition(".")[0], socket.getfqdn()) or any(
        address.startswith("127.") or address == "::1" for address in found
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
