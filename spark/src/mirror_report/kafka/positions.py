"""How far a mirror has got, by what its engine keeps: the one place that knows each store.

Committed positions are in a consumer group on the source (:mod:`.groups`) or in Kafka Connect's
offsets topic on the target, where the last offset Connect committed, plus one, decides what has
been mirrored; nothing else decides. Workers are the members of that group, or those of Connect's
group, with connectors and tasks in its status topic.
"""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from mirror_report.config import Credentials, Flow
from mirror_report.engines import PositionStore, WorkerStore
from mirror_report.kafka import groups, offset_syncs, record_formats
from mirror_report.kafka.connection import ClusterError
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.kafka.mirror_topics import (
    READ_SECONDS,
    Decode,
    FlowTails,
    Tail,
    Tails,
    catch_up,
    foreign_records,
    own_topics,
)
from mirror_report.model import GroupSnapshot, MirrorStatus, Place, Positions, WorkerState

# Alias of a cluster -> its client.
ClientOf = Callable[[str], ClusterClient]


def worker_group(client_of: ClientOf, flow: Flow) -> GroupSnapshot:
    """The group of the mirror's processes: consumers of the source, or workers at the target.

    :raises ClusterError: it cannot be described.
    """
    client = client_of(flow.alias(flow.engine.workers_side))
    consumers = flow.engine.workers is WorkerStore.GROUP_MEMBERS
    return groups.snapshot(client, flow.group_id, consumers=consumers)


def clusters(flow: Flow) -> set[str]:
    """Aliases of the clusters that :func:`mirror_status` asks."""
    return {flow.alias(flow.engine.positions_side), *([flow.target] if _decoders(flow) else [])}


def mirror_status(
    client_of: ClientOf,
    credentials: Credentials,
    flow: Flow,
    tails: FlowTails,
    timeout_seconds: float = READ_SECONDS,
) -> MirrorStatus:
    """Committed positions, and what else the mirror keeps of itself.

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
    topics: tuple[tuple[bool, str, Decode], ...] = (
        (
            engine.positions is PositionStore.CONNECT_OFFSETS,
            flow.offset_topic,
            partial(_offset, flow.source, flow.connectors[0]),
        ),
        (
            engine.workers is WorkerStore.STATUS_TOPIC,
            flow.status_topic,
            partial(_state, flow.connectors),
        ),
        (engine.has_offset_syncs, flow.offset_syncs_topic, offset_syncs.newest),
    )
    return {topic: decode for is_kept, topic, decode in topics if is_kept}


def _from_own_topics(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    tails: Tails,
    timeout_seconds: float,
) -> MirrorStatus:
    decoders = _decoders(flow)
    readable, problems = own_topics(client, decoders)
    if flow.offset_topic in problems:
        raise problems[flow.offset_topic]
    for name, topic in readable.items():
        tails.setdefault(name, Tail()).fit(topic, time.time_ns() // 1_000_000)
        if name == flow.offset_syncs_topic:
            offset_syncs.skip_old(tails[name], topic)
    problems |= catch_up(
        client.cluster,
        credentials,
        [(topic, tails[name], decoders[name]) for name, topic in readable.items()],
        timeout_seconds,
    )
    # The newest position of any partition may lie in records that cannot be read.
    if flow.offset_topic in problems:
        raise problems[flow.offset_topic]
    left = {name: tails[name].left(topic) for name, topic in readable.items()}
    for name in (flow.offset_topic, flow.status_topic):
        if left.get(name) and name not in problems:
            raise ClusterError(
                f"cluster {client.cluster.alias}: {left[name]} records of {name} were not read "
                f"within {timeout_seconds:.0f} s",
                "Ask again: reading goes on where it ended",
            )
    # Of a topic that is not read to its end, the newest so far may be old.
    complete = {name: tails[name] for name in readable if not left[name]}
    positions, committed_at_ms = _positions(complete.get(flow.offset_topic, Tail()))
    return MirrorStatus(
        positions,
        committed_at_ms,
        offset_syncs.newest_by_partition(complete.get(flow.offset_syncs_topic, Tail())),
        _workers(complete.get(flow.status_topic, Tail())),
        tuple(problems.values()),
        foreign_records(tails, readable),
    )


def _offset(source: str, connector: str, record: Any) -> tuple[str, Any] | None:
    """Decode an offset of one source cluster: partition, and last offset copied and when (ms).

    :param source: alias of the cluster.
    :param connector: what copies its records.
    """
    entry = record_formats.source_offset(record.key, record.value, connector, source)
    if entry is None:
        return None
    place, offset = entry
    return json.dumps(place), None if offset is None else [offset, record.timestamp]


def _positions(tail: Tail) -> tuple[Positions, dict[Place, int]]:
    """Next offsets to mirror, and when (ms) each was committed."""
    positions: Positions = {}
    committed_at_ms: dict[Place, int] = {}
    for key, (offset, at_ms) in sorted(tail.latest.items()):
        topic, partition = json.loads(key)
        positions.setdefault(topic, {})[partition] = offset + 1
        committed_at_ms[topic, partition] = at_ms
    return positions, committed_at_ms


def _state(connectors: Collection[str], record: Any) -> tuple[str, Any] | None:
    """Decode a state of a flow's connectors, beside which a Connect cluster may have others.

    Connector and task, and state with why it failed.
    """
    entry = record_formats.status(record.key, record.value)
    if entry is None:
        return None
    (connector, task), state = entry
    return (json.dumps([connector, task]), state) if connector in connectors else None


def _workers(tail: Tail) -> tuple[WorkerState, ...]:
    return tuple(
        WorkerState(*json.loads(key), *value) for key, value in sorted(tail.latest.items())
    )
