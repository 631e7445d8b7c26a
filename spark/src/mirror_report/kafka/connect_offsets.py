"""Positions of a mirror on Kafka Connect: the offsets topic on the target.

The last offset Connect committed, plus one, decides what has been mirrored.
"""

import json
from typing import Any

from mirror_report.kafka import formats
from mirror_report.kafka.tails import Decode, Tail
from mirror_report.model import Place, Positions


def decoder(source: str) -> Decode:
    """Decode offsets of one source cluster: partition -> last offset copied, and when (ms).

    :param source: alias of the cluster.
    """

    def decode(record: Any) -> tuple[str, Any] | None:
        found = formats.source_offset(record.key, record.value)
        if found is None or found.cluster != source:
            return None
        key = json.dumps([found.topic, found.partition])
        return key, None if found.offset is None else [found.offset, record.timestamp]

    return decode


def positions(tail: Tail) -> tuple[Positions, dict[Place, int]]:
    """Next offsets to mirror, and when (ms) each was committed."""
    found: Positions = {}
    committed_at_ms: dict[Place, int] = {}
    for key, (offset, at_ms) in sorted(tail.latest.items()):
        topic, partition = json.loads(key)
        found.setdefault(topic, {})[partition] = offset + 1
        committed_at_ms[topic, partition] = at_ms
    return found, committed_at_ms
