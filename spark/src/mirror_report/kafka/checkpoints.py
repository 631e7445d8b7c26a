"""What MirrorMaker 2 keeps of consumer groups: checkpoints, and the offset syncs behind them.

A checkpoint says where a group's position on the source is on the target. It rests on offset syncs,
of which MirrorMaker 2 remembers the fewer the older they are, and so is kept low on purpose. With
the same syncs the report finds the place itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from typing import Any

from mirror_report.config.credentials import Credentials
from mirror_report.config.flow import Flow
from mirror_report.kafka import formats
from mirror_report.kafka.mm2 import READ_SECONDS, SYNCS_READ, Memory, own_topics, shortly
from mirror_report.kafka.records import Decode, Tail, catch_up
from mirror_report.kafka.snapshot import ClusterClient
from mirror_report.model.cluster import Place, TopicSnapshot
from mirror_report.model.groups import GroupPlace, Translation
from mirror_report.model.mirror import OffsetSync

SYNCS_KEPT = 64
"""Per partition at most twice as many are held before they are thinned out."""

Sync = Sequence[int]
"""Offset on the source, on the target, and timestamp (ms)."""


def translation(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    memory: Memory,
    anew: Collection[str],
    timeout_seconds: float = READ_SECONDS,
) -> Translation:
    """What the flow's checkpoints and offset syncs say now.

    :param memory: what earlier looks read; it is brought up to date.
    :param anew: source topics that were made anew on either side since the last look: what was
        written about the former ones is forgotten.
    """
    names = [one for one in (flow.offset_syncs_topic, flow.checkpoints_topic) if one]
    readable, problems = own_topics(client, names)
    tails: list[tuple[TopicSnapshot, Tail, Decode]] = []
    for name, topic in readable.items():
        tail = memory.setdefault(name, Tail())
        tail.fit(topic, time.time_ns() // 1_000_000)
        if name == flow.checkpoints_topic:
            tails.append((topic, tail, _checkpoint))
            continue
        for number, one in topic.partitions.items():
            tail.next[number] = max(tail.next[number], (one.high_watermark or 0) - SYNCS_READ)
        tails.append((topic, tail, _syncs_into(tail)))
    catch_up(client.cluster, credentials, tails, timeout_seconds)
    _forget(flow, memory, anew)
    checkpoints = memory.get(flow.checkpoints_topic)
    behind = flow.checkpoints_topic in problems or (
        checkpoints is not None
        and flow.checkpoints_topic in readable
        and checkpoints.left(readable[flow.checkpoints_topic]) > 0
    )
    return Translation(
        _syncs(memory.get(flow.offset_syncs_topic)),
        None if behind else _checkpoints(flow, checkpoints),
        tuple(shortly(one) for one in problems.values()),
    )


def thinned(syncs: Sequence[Sync]) -> list[Sync]:
    """Of each distance from the newest, doubling from one to the next, the oldest and the newest.

    So much is left that every offset has a sync at most as far below it as it lies below the newest
    (``OffsetSyncStore`` keeps them alike).
    """
    kept: dict[int, list[Sync]] = {}
    for one in syncs:
        some = kept.setdefault((syncs[-1][0] - one[0]).bit_length(), [])
        some[1:] = [one]
    return sorted((one for some in kept.values() for one in some), key=lambda one: one[0])


def _syncs_into(tail: Tail) -> Decode:
    """Decode syncs into growing lists; a source offset that goes back starts its list anew."""

    def decode(record: Any) -> tuple[str, Any]:
        found = formats.offset_sync(record.key, record.value)
        key = json.dumps([found.topic, found.partition])
        one = [found.upstream, found.downstream, record.timestamp]
        some = tail.latest.get(key, [])
        if some and found.upstream <= some[-1][0]:
            some = some[:-1] if found.upstream == some[-1][0] else []
        some.append(one)
        return key, thinned(some) if len(some) > 2 * SYNCS_KEPT else some

    return decode


def _checkpoint(record: Any) -> tuple[str, Any]:
    found = formats.checkpoint(record.key, record.value)
    key = json.dumps([found.group, found.topic, found.partition])
    return key, [found.upstream, found.downstream, record.timestamp]


def _forget(flow: Flow, memory: Memory, anew: Collection[str]) -> None:
    there = {flow.target_topic(name) for name in anew}
    for name, at, topics in (
        (flow.offset_syncs_topic, 0, anew),
        (flow.checkpoints_topic, 1, there),
    ):
        if name in memory:
            latest = memory[name].latest
            memory[name].latest = {
                key: one for key, one in latest.items() if json.loads(key)[at] not in topics
            }


def _syncs(tail: Tail | None) -> dict[Place, tuple[OffsetSync, ...]]:
    found: dict[Place, tuple[OffsetSync, ...]] = {}
    for key, some in (tail.latest if tail else {}).items():
        topic, partition = json.loads(key)
        found[topic, partition] = tuple(OffsetSync(*one) for one in some)
    return found


def _checkpoints(flow: Flow, tail: Tail | None) -> dict[GroupPlace, OffsetSync]:
    found: dict[GroupPlace, OffsetSync] = {}
    for key, one in (tail.latest if tail else {}).items():
        group, there, partition = json.loads(key)
        topic = flow.source_topic(there)
        if topic is not None:
            found[group, topic, partition] = OffsetSync(*one)
    return found
