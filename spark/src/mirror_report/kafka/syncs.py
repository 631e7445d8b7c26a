"""Every offset sync MirrorMaker 2 has written since the last look, in its order."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from mirror_report.config.credentials import Credentials
from mirror_report.config.flow import Flow
from mirror_report.kafka import formats
from mirror_report.kafka.mm2 import READ_SECONDS, SYNCS_READ
from mirror_report.kafka.records import Decode, Tail, catch_up
from mirror_report.kafka.snapshot import ClusterClient, ClusterError, DeniedError
from mirror_report.model.cluster import Place
from mirror_report.model.mirror import OffsetSync


def since(
    client: ClusterClient,
    credentials: Credentials,
    flow: Flow,
    memory: Mapping[str, Any],
    timeout_seconds: float = READ_SECONDS,
) -> tuple[dict[Place, list[OffsetSync]], dict[str, Any]]:
    """What was written since an earlier look; after a long pause, what is left of it all.

    :param memory: what that look returned; empty: there was none.
    :returns: syncs by place on the source, and what the next look has to be given. What does not
        come within the time comes with the next look.
    :raises ClusterError: the topic may not be read, or holds something else.
    """
    name = flow.offset_syncs_topic
    seen = client.snapshot(None, [name], settings=False)
    if name in seen.errors:
        raise ClusterError(f"cluster {client.cluster.alias}: {seen.errors[name]}")
    topic = seen.topics.get(name)
    if topic is None:
        return {}, dict(memory)
    if topic.operations is not None and "READ" not in topic.operations:
        raise DeniedError(
            f"cluster {client.cluster.alias}: identity {client.cluster.identity} may not read "
            f"{name}, by which contents are aligned. Grant it READ on topic {name}"
        )
    tail = Tail.load(memory) if memory else Tail()
    tail.fit(topic, time.time_ns() // 1_000_000)
    for number, one in topic.partitions.items():
        tail.next[number] = max(tail.next[number], (one.high_watermark or 0) - SYNCS_READ)
    catch_up(client.cluster, credentials, [(topic, tail, _into(tail))], timeout_seconds)
    found: dict[Place, list[OffsetSync]] = {}
    for key, some in tail.latest.items():
        origin, partition = json.loads(key)
        found[origin, partition] = [OffsetSync(*one) for one in some]
    tail.latest = {}
    return found, tail.dump()


def _into(tail: Tail) -> Decode:
    def decode(record: Any) -> tuple[str, Any]:
        found = formats.offset_sync(record.key, record.value)
        key = json.dumps([found.topic, found.partition])
        some = tail.latest.get(key) or []
        some.append([found.upstream, found.downstream, record.timestamp])
        return key, some

    return decode
