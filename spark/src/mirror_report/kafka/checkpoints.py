"""Checkpoints: where a consumer group's position on the source is on the target.

They rest on offset syncs, of which the mirror remembers the fewer the older they are, and so are
kept low on purpose. With the same syncs the report finds the place itself.
"""

import json
import time
from collections.abc import Collection
from typing import Any

from mirror_report.config import Credentials, Flow
from mirror_report.kafka import formats, offset_syncs
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.kafka.tails import READ_SECONDS, Decode, Tail, Tails, catch_up, own_topics
from mirror_report.model import GroupPlace, OffsetSync, TopicSnapshot, Translation


def translation(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    tails: Tails,
    recreated: Collection[str],
    timeout_seconds: float = READ_SECONDS,
) -> Translation:
    """What the flow's checkpoints and offset syncs say now.

    :param tails: what earlier observations read; it is brought up to date.
    :param recreated: source topics that were recreated on either side since the last observation:
        what was written about the former ones is forgotten.
    """
    names = [one for one in (flow.offset_syncs_topic, flow.checkpoints_topic) if one]
    readable, problems = own_topics(client, names)
    reads: list[tuple[TopicSnapshot, Tail, Decode]] = []
    for name, topic in readable.items():
        tail = tails.setdefault(name, Tail())
        tail.fit(topic, time.time_ns() // 1_000_000)
        if name == flow.checkpoints_topic:
            reads.append((topic, tail, _checkpoint))
        else:
            offset_syncs.skip_old(tail, topic)
            reads.append((topic, tail, offset_syncs.history(tail)))
    catch_up(client.cluster, credentials, reads, timeout_seconds)
    _forget(flow, tails, recreated)
    checkpoints = tails.get(flow.checkpoints_topic)
    behind = flow.checkpoints_topic in problems or (
        checkpoints is not None
        and flow.checkpoints_topic in readable
        and checkpoints.left(readable[flow.checkpoints_topic]) > 0
    )
    return Translation(
        offset_syncs.by_partition(tails.get(flow.offset_syncs_topic, Tail())),
        None if behind else _checkpoints(flow, checkpoints),
        tuple(one.message for one in problems.values()),
    )


def _checkpoint(record: Any) -> tuple[str, Any]:
    found = formats.checkpoint(record.key, record.value)
    key = json.dumps([found.group, found.topic, found.partition])
    return key, [found.upstream, found.downstream, record.timestamp]


def _forget(flow: Flow, tails: Tails, recreated: Collection[str]) -> None:
    there = {flow.target_topic(name) for name in recreated}
    for name, at, topics in (
        (flow.offset_syncs_topic, 0, recreated),
        (flow.checkpoints_topic, 1, there),
    ):
        if name in tails:
            latest = tails[name].latest
            tails[name].latest = {
                key: one for key, one in latest.items() if json.loads(key)[at] not in topics
            }


def _checkpoints(flow: Flow, tail: Tail | None) -> dict[GroupPlace, OffsetSync]:
    found: dict[GroupPlace, OffsetSync] = {}
    for key, one in (tail.latest if tail else {}).items():
        group, there, partition = json.loads(key)
        topic = flow.source_topic(there)
        if topic is not None:
            found[group, topic, partition] = OffsetSync(*one)
    return found
