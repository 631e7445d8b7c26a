"""Where a mirror has got to, by what its engine keeps: the one place that knows each store.

Committed positions are in a consumer group on the source (:mod:`.groups`) or in Kafka Connect's
offsets topic on the target (:mod:`.connect_offsets`); nothing else decides. Workers are the members
of that group, or those of Connect's group, with connectors and tasks in its status topic
(:mod:`.connect_status`).
"""

import time
from collections.abc import Callable
from dataclasses import replace

from mirror_report.config import Credentials, Flow
from mirror_report.engines import PositionStore, WorkerStore
from mirror_report.kafka import connect_offsets, connect_status, groups, offset_syncs
from mirror_report.kafka.errors import ClusterError
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.kafka.tails import (
    READ_SECONDS,
    Decode,
    FlowTails,
    Tail,
    Tails,
    catch_up,
    own_topics,
)
from mirror_report.model import GroupSnapshot, MirrorStatus

# Alias of a cluster -> its client.
ClientOf = Callable[[str], ClusterClient]


def worker_group(client_of: ClientOf, flow: Flow) -> GroupSnapshot:
    """The group of the mirror's processes: consumers of the source, or workers at the target.

    :raises ClusterError: it cannot be described.
    """
    client = client_of(flow.alias(flow.engine.workers_side))
    if flow.engine.workers is WorkerStore.GROUP_MEMBERS:
        return groups.consumers(client, flow.group_id)
    return groups.workers(client, flow.group_id)


def clusters(flow: Flow) -> set[str]:
    """Aliases of the clusters that :func:`mirror_status` asks."""
    own = {flow.target} if _decoders(flow) else set()
    return own | {flow.alias(flow.engine.positions_side)}


def mirror_status(
    client_of: ClientOf,
    credentials: Credentials,
    flow: Flow,
    tails: FlowTails,
    timeout_seconds: float = READ_SECONDS,
) -> MirrorStatus:
    """Committed positions, and what else the mirror says of itself.

    :param tails: what earlier observations read of the mirror's own topics; brought up to date.
    :raises ClusterError: the positions could not be read to their end; the next call goes on.
    """
    status = MirrorStatus({})
    if _decoders(flow):
        own = tails.setdefault(flow.name, {})
        status = _from_own_topics(client_of(flow.target), credentials, flow, own, timeout_seconds)
    if flow.engine.positions is PositionStore.SOURCE_GROUP:
        committed = groups.committed(client_of(flow.source), [flow.group_id])
        status = replace(status, positions=committed.get(flow.group_id, {}))
    return status


def _decoders(flow: Flow) -> dict[str, Decode]:
    """Topics on the target that the mirror keeps for itself, and how to decode their records."""
    engine = flow.engine
    found: dict[str, Decode] = {}
    if engine.positions is PositionStore.CONNECT_OFFSETS:
        found[flow.offset_topic] = connect_offsets.decoder(flow.source)
    if engine.workers is WorkerStore.STATUS_TOPIC:
        found[flow.status_topic] = connect_status.decode
    if engine.has_offset_syncs:
        found[flow.offset_syncs_topic] = offset_syncs.newest
    return found


def _from_own_topics(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    tails: Tails,
    timeout_seconds: float,
) -> MirrorStatus:
    decoders = _decoders(flow)
    readable, problems = own_topics(client, decoders)
    refused = problems.pop(flow.offset_topic, None)
    if refused is not None:
        raise refused
    for name, topic in readable.items():
        tails.setdefault(name, Tail()).fit(topic, time.time_ns() // 1_000_000)
        if name == flow.offset_syncs_topic:
            offset_syncs.skip_old(tails[name], topic)
    reads = [(topic, tails[name], decoders[name]) for name, topic in readable.items()]
    catch_up(client.cluster, credentials, reads, timeout_seconds)
    left = {name: tails[name].left(topic) for name, topic in readable.items()}
    for name in (flow.offset_topic, flow.status_topic):
        if left.get(name):
            raise ClusterError(
                f"cluster {client.cluster.alias}: {left[name]} records of {name} were not read "
                f"within {timeout_seconds:.0f} s",
                "Ask again: reading goes on where it ended; a smaller segment.bytes lets Kafka "
                "compact the topic",
            )
    # Not all of them read: what is newest so far may be old.
    complete = {name: tails[name] for name in readable if not left[name]}
    positions, committed_at_ms = connect_offsets.positions(complete.get(flow.offset_topic, Tail()))
    return MirrorStatus(
        positions,
        committed_at_ms,
        offset_syncs.newest_by_partition(complete.get(flow.offset_syncs_topic, Tail())),
        connect_status.workers(complete.get(flow.status_topic, Tail())),
        tuple(one.message for one in problems.values()),
    )
