"""Offset syncs: which source offset became which target offset, as the mirror wrote it.

They are fresher than committed positions; a lag check makes estimates of them, a comparison by
offset syncs reads every one, and the translation of a group's position needs old ones too.

Checkpoints hold where a consumer group's position on the source is on the target. They rest on
offset syncs, of which the mirror remembers the fewer the older they are, and so are kept low on
purpose. With the same syncs the report finds the place itself.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from mirror_report.config import Credentials, Flow
from mirror_report.kafka import record_formats
from mirror_report.kafka.connection import ClusterError, DeniedError
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.kafka.mirror_topics import (
    READ_SECONDS,
    Decode,
    Tail,
    Tails,
    catch_up,
    foreign_records,
    own_topics,
)
from mirror_report.model import GroupPlace, OffsetSync, Place, TopicSnapshot, Translation

# Offset syncs read from the end; a partition without one there has no estimate.
SYNCS_READ = 200_000
# Per partition at most twice as many are held before they are thinned out.
SYNCS_KEPT = 64


def skip_old(tail: Tail, topic: TopicSnapshot) -> None:
    """Leave out all but the newest :data:`SYNCS_READ` of each partition of the topic."""
    for number, log in topic.partitions.items():
        tail.next[number] = max(tail.next[number], (log.high_watermark or 0) - SYNCS_READ)


def newest(record: Any) -> tuple[str, Any]:
    """Decode into the newest sync of each partition."""
    place, offsets = record_formats.offset_sync(record.key, record.value)
    return json.dumps(place), [*offsets, record.timestamp]


def newest_by_partition(tail: Tail) -> dict[Place, OffsetSync]:
    """Newest syncs, as :func:`newest` decoded them."""
    return {_place(key): OffsetSync(*sync) for key, sync in sorted(tail.latest.items())}


def history(tail: Tail, record: Any) -> tuple[str, Any]:
    """Decode into lists of syncs, thinned out with age; a side that goes back begins a new one.

    The source does when the mirror was set back or the log lost its tail, the target when that one
    did or was created again; the first sync of such a list is marked.
    """
    key, sync = newest(record)
    syncs = tail.latest.get(key, [])
    upstream, downstream = syncs[-1][:2] if syncs else (-1, -1)
    if sync[:2] == [upstream, downstream]:
        return key, syncs
    if sync[0] == upstream and sync[1] > downstream:
        sync += syncs.pop()[3:]
    elif sync[0] <= upstream or sync[1] <= downstream:
        syncs, sync = [], [*sync, True]
    syncs.append(sync)
    return key, _thinned(syncs) if len(syncs) > 2 * SYNCS_KEPT else syncs


def by_partition(tail: Tail) -> dict[Place, list[OffsetSync]]:
    """Lists of syncs, as :func:`history` and :func:`since` decode them."""
    return {
        _place(key): [OffsetSync(*sync) for sync in syncs] for key, syncs in tail.latest.items()
    }


def _place(key: str) -> Place:
    topic, partition = json.loads(key)
    return topic, partition


def _thinned(syncs: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The oldest and the newest sync of each distance from the newest one; distances double.

    So much is left that every offset has a sync at most as far below it as it lies below the newest
    (``OffsetSyncStore`` keeps them alike).

    :param syncs: offset on the source, on the target, timestamp (ms), and whether a side went back
        before it, if it did; oldest first.
    """
    kept: dict[int, list[Sequence[int]]] = {}
    for sync in syncs:
        ends = kept.setdefault((syncs[-1][0] - sync[0]).bit_length(), [])
        ends[1:] = [sync]
    return sorted((sync for ends in kept.values() for sync in ends), key=lambda sync: sync[0])


def since(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    before: Mapping[str, Any],
    timeout_seconds: float = READ_SECONDS,
) -> tuple[dict[Place, list[OffsetSync]], dict[str, Any]]:
    """What was written since an earlier call; after a long pause, what is left of it all.

    :param before: what that call returned; empty: there was none.
    :returns: syncs by place on the source, and what the next call has to be given. What does not
        come within the time comes with the next call.
    :raises ClusterError: the topic may not be read.
    """
    name = flow.offset_syncs_topic
    snapshot = client.snapshot(None, [name], settings=False)
    if name in snapshot.errors:
        raise ClusterError(f"cluster {client.cluster.alias}: {snapshot.errors[name]}")
    if (topic := snapshot.topics.get(name)) is None:
        return {}, dict(before)
    if topic.operations is not None and "READ" not in topic.operations:
        raise DeniedError(
            f"cluster {client.cluster.alias}: identity {client.cluster.identity} may not read "
            f"{name}, by which contents are aligned",
            f"Grant it READ on topic {name}",
        )
    tail = Tail.load(before) if before else Tail()
    tail.fit(topic, time.time_ns() // 1_000_000)
    skip_old(tail, topic)
    reads = [(topic, tail, partial(_every, tail))]
    for problem in catch_up(client.cluster, credentials, reads, timeout_seconds).values():
        raise problem
    syncs = by_partition(tail)
    tail.latest = {}
    return syncs, tail.dump()


def _every(tail: Tail, record: Any) -> tuple[str, Any]:
    """Decode into lists of all syncs."""
    key, sync = newest(record)
    syncs = tail.latest.setdefault(key, [])
    syncs.append(sync)
    return key, syncs


def translation(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    tails: Tails,
    recreated: Collection[str],
    timeout_seconds: float = READ_SECONDS,
) -> Translation:
    """The flow's checkpoints and offset syncs as they are now.

    :param tails: what earlier observations read; it is brought up to date.
    :param recreated: source topics that were recreated on either side since the last observation:
        what was written about the former ones is forgotten.
    """
    readable, problems = own_topics(
        client, [name for name in (flow.offset_syncs_topic, flow.checkpoints_topic) if name]
    )
    reads: list[tuple[TopicSnapshot, Tail, Decode]] = []
    for name, topic in readable.items():
        tail = tails.setdefault(name, Tail())
        tail.fit(topic, time.time_ns() // 1_000_000)
        if name == flow.checkpoints_topic:
            reads.append((topic, tail, _checkpoint))
        else:
            skip_old(tail, topic)
            reads.append((topic, tail, partial(history, tail)))
    problems |= catch_up(client.cluster, credentials, reads, timeout_seconds)
    _forget(flow, tails, recreated)
    behind = {*problems, *(topic.name for topic, tail, _ in reads if tail.left(topic) > 0)}
    syncs, checkpoints = (tails.get(n) for n in (flow.offset_syncs_topic, flow.checkpoints_topic))
    return Translation(
        None if flow.offset_syncs_topic in behind else by_partition(syncs or Tail()),
        None if flow.checkpoints_topic in behind else _checkpoints(flow, checkpoints),
        tuple(problems.values()),
        # Foreign records among the offset syncs are reported with the lag.
        foreign_records(tails, [flow.checkpoints_topic]),
    )


def _checkpoint(record: Any) -> tuple[str, Any]:
    place, offsets = record_formats.checkpoint(record.key, record.value)
    return json.dumps(place), [*offsets, record.timestamp]


def _forget(flow: Flow, tails: Tails, recreated: Collection[str]) -> None:
    for name, at, topics in (
        (flow.offset_syncs_topic, 0, recreated),
        (flow.checkpoints_topic, 1, {flow.target_topic(name) for name in recreated}),
    ):
        if name in tails:
            tails[name].latest = {
                key: sync
                for key, sync in tails[name].latest.items()
                if json.loads(key)[at] not in topics
            }


def _checkpoints(flow: Flow, tail: Tail | None) -> dict[GroupPlace, OffsetSync]:
    latest = ((json.loads(key), sync) for key, sync in (tail.latest if tail else {}).items())
    return {
        (group, topic, partition): OffsetSync(*sync)
        for (group, target_topic, partition), sync in latest
        if (topic := flow.source_topic(target_topic)) is not None
    }
