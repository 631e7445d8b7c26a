"""Where MirrorMaker 2 stands: its own topics on the target.

The offsets topic decides: the last offset Kafka Connect committed, plus one. Offset syncs are
fresher and only good for estimates; the status topic says which connector or task failed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from typing import Any

from mirror_report.config.credentials import Credentials
from mirror_report.config.flow import Flow
from mirror_report.kafka import formats
from mirror_report.kafka.records import Decode, Tail, catch_up
from mirror_report.kafka.snapshot import ClusterClient, ClusterError, DeniedError
from mirror_report.model.cluster import Place, Positions, TopicSnapshot
from mirror_report.model.mirror import OffsetSync, Standing, WorkerState

READ_SECONDS = 120.0
SYNCS_READ = 200_000
"""Offset syncs looked at from the end; a partition without one there has no estimate."""

Memory = dict[str, Tail]
"""Topic -> what was read of it; kept between looks, so that each reads only what is new."""


def standing(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    memory: Memory,
    timeout_seconds: float = READ_SECONDS,
) -> Standing:
    """What the flow's topics on the target say now.

    :param memory: what earlier looks read; it is brought up to date.
    :raises ClusterError: the positions could not be read to their end; the next look goes on.
    """
    decoders = {
        flow.offset_topic: _offsets_of(flow.source),
        flow.status_topic: _worker,
        flow.offset_syncs_topic: _sync,
    }
    readable, problems = own_topics(client, list(decoders))
    refused = problems.pop(flow.offset_topic, None)
    if refused is not None:
        raise refused
    _read(client, credentials, flow, memory, readable, decoders, timeout_seconds)
    return _standing(flow, memory, readable, [shortly(one) for one in problems.values()])


def shortly(error: ClusterError) -> str:
    """What is wrong, without the cure."""
    return str(error).partition(". ")[0]


def own_topics(
    client: ClusterClient, names: Collection[str]
) -> tuple[dict[str, TopicSnapshot], dict[str, ClusterError]]:
    """Topics MirrorMaker 2 keeps for itself, as far as we may read them, and why not the others.

    A topic that does not exist is in neither.
    """
    seen = client.snapshot(None, names, settings=False)
    who = f"identity {client.cluster.identity} ({client.cluster.username or 'anonymous'})"
    problems: dict[str, ClusterError] = {
        name: (DeniedError if name in seen.refused else ClusterError)(
            f"cluster {client.cluster.alias}: {why}"
        )
        for name, why in seen.errors.items()
    }
    readable: dict[str, TopicSnapshot] = {}
    for name, topic in seen.topics.items():
        if topic.operations is None or "READ" in topic.operations:
            readable[name] = topic
        else:
            problems[name] = DeniedError(
                f"cluster {client.cluster.alias}: {who} may not read {name}. Grant it READ on "
                f"topic {name}"
            )
    return readable, problems


def _read(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    memory: Memory,
    readable: dict[str, TopicSnapshot],
    decoders: dict[str, Decode],
    timeout_seconds: float,
) -> None:
    tails = []
    for name, topic in readable.items():
        tail = memory.setdefault(name, Tail())
        tail.fit(topic, time.time_ns() // 1_000_000)
        if name == flow.offset_syncs_topic:
            for number, one in topic.partitions.items():
                newest = (one.high_watermark or 0) - SYNCS_READ
                tail.next[number] = max(tail.next[number], newest)
        tails.append((topic, tail, decoders[name]))
    catch_up(client.cluster, credentials, tails, timeout_seconds)
    for name in (flow.offset_topic, flow.status_topic):
        left = memory[name].left(readable[name]) if name in readable else 0
        if left:
            raise ClusterError(
                f"cluster {client.cluster.alias}: {left} records of {name} were not read within "
                f"{timeout_seconds:.0f} s. Ask again: reading goes on where it ended; a smaller "
                "segment.bytes lets Kafka compact the topic"
            )


def _standing(
    flow: Flow,
    memory: Memory,
    readable: dict[str, TopicSnapshot],
    problems: list[str],
) -> Standing:
    positions: Positions = {}
    committed_at_ms: dict[Place, int] = {}
    for topic, partition, (offset, at_ms) in _latest(flow.offset_topic, memory, readable):
        positions.setdefault(topic, {})[partition] = offset + 1
        committed_at_ms[topic, partition] = at_ms
    syncs: dict[Place, OffsetSync] = {}
    name = flow.offset_syncs_topic
    if name in readable and not memory[name].left(readable[name]):
        syncs = {
            (topic, partition): OffsetSync(*sync)
            for topic, partition, sync in _latest(name, memory, readable)
        }
    workers = tuple(
        WorkerState(connector, task, state, error)
        for connector, task, (state, error) in _latest(flow.status_topic, memory, readable)
    )
    return Standing(positions, committed_at_ms, syncs, workers, tuple(problems))


def _latest(
    name: str, memory: Memory, readable: dict[str, TopicSnapshot]
) -> list[tuple[Any, Any, Any]]:
    if name not in readable:
        return []
    return [(*json.loads(key), value) for key, value in sorted(memory[name].latest.items())]


def _offsets_of(source: str) -> Decode:
    def decode(record: Any) -> tuple[str, Any] | None:
        found = formats.source_offset(record.key, record.value)
        if found is None or found.cluster != source:
            return None
        key = json.dumps([found.topic, found.partition])
        return key, None if found.offset is None else [found.offset, record.timestamp]

    return decode


def _sync(record: Any) -> tuple[str, Any]:
    found = formats.offset_sync(record.key, record.value)
    key = json.dumps([found.topic, found.partition])
    return key, [found.upstream, found.downstream, record.timestamp]


def _worker(record: Any) -> tuple[str, Any] | None:
    found = formats.status(record.key, record.value)
    if found is None:
        return None
    key = json.dumps([found.connector, found.task])
    if found.state is None:
        return key, None
    return key, [found.state, (found.trace or "").partition("\n")[0] or None]
