"""Scans of compacted topics: when one is due, and what it reads.

What compaction leaves cannot be added up run by run, so such a topic is compared as a whole, every
so often.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror_report.config import Flow
from mirror_report.model import Positions, TopicSnapshot
from mirror_report.parity.plan import strategies
from mirror_report.parity.plan.ranges import Range, record_bytes, total_bytes, total_records
from mirror_report.parity.plan.snapshots import FlowSnapshot
from mirror_report.parity.state import Side, TopicKey, offsets

HOUR_MS = 3_600_000
# What retention is about to remove may be gone before it is read.
MARGIN_MS = HOUR_MS


@dataclass(frozen=True)
class Scan:
    """What the last scan of a topic found; JSON types only.

    :param state: :func:`CompactedTopic.state` of the topic then.
    :param keys: class -> partition (``-1``: of a topic as a whole) -> keys.
    :param accounted: class -> keys an earlier run has reported.
    """

    run_id: str
    at_ms: int
    state: list[Any]
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    source_keys: int = 0
    target_keys: int = 0
    newest_ms: int | None = None
    accounted: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def total(self, name: str) -> int:
        """Keys of a class."""
        return sum(self.keys.get(name, {}).values())

    def known(self, name: str, unreported: Collection[str]) -> int:
        """Keys of a class that were reported.

        :param unreported: runs whose report was not written.
        """
        return self.accounted.get(name, 0) if self.run_id in unreported else self.total(name)


@dataclass(frozen=True)
class CompactedTopic:
    """A compacted topic, both sides of it at one moment, and the mirror's positions.

    :param sources: the topics that feed it; ``target``: ``None`` if it does not exist.
    :param recorded: the flow's topics in its baseline.
    """

    flow: Flow
    topic: str
    sources: tuple[TopicSnapshot, ...]
    target: TopicSnapshot | None
    positions: Positions
    taken_at_ms: int
    recorded: Mapping[str, Any]

    @classmethod
    def seen(
        cls,
        snapshot: FlowSnapshot,
        topic: str,
        origins: Iterable[str],
        recorded: Mapping[str, Any],
    ) -> CompactedTopic | None:
        """One topic of a snapshot; ``None`` if it is no longer on the source."""
        topics = [snapshot.source.topics.get(origin) for origin in origins]
        present = tuple(source for source in topics if source is not None)
        if len(present) < len(topics):
            return None
        return cls(
            snapshot.flow, topic, present, snapshot.target.topics.get(topic), snapshot.positions,
            snapshot.source.taken_at_ms, recorded,
        )  # fmt: skip

    @property
    def key(self) -> TopicKey:
        """Its flow and name."""
        return self.flow.name, self.topic

    @property
    def keeps_time(self) -> bool:
        """Whether timestamps have to be the same on both sides."""
        return self.target is None or strategies.keeps_time(self.target)

    def sides(self) -> list[tuple[Side, TopicSnapshot]]:
        """All topics of both sides."""
        found: list[tuple[Side, TopicSnapshot]] = [("source", topic) for topic in self.sources]
        return found if self.target is None else [*found, ("target", self.target)]

    def state(self) -> list[Any]:
        """What has to change before another scan can find anything else; JSON types only."""
        return [
            [side, topic.name, topic.topic_id,
             {str(p): log.end for p, log in topic.partitions.items()}]
            for side, topic in self.sides()
        ]  # fmt: skip

    def ranges(self) -> list[Range]:
        """Everything both sides hold."""
        return [
            Range(
                self.flow.name, side, topic.name, self.topic, partition, log.log_start,
                log.end_for(self.flow.isolation(side)), record_bytes(topic, 0.0),
            )
            for side, topic in self.sides()
            for partition, log in topic.partitions.items()
            if log.end_for(self.flow.isolation(side)) > log.log_start
        ]  # fmt: skip

    def places(self) -> list[dict[str, Any]]:
        """Rows of :data:`frames.latest_by_key.PLACES_SCHEMA`."""
        rows: list[dict[str, Any]] = []
        for side, topic in self.sides():
            origins = [topic.name] if side == "source" else [each.name for each in self.sources]
            known = [self.recorded[name] for name in origins if name in self.recorded]
            floors = offsets((known[-1] if known else {}).get(side))
            committed = self.positions.get(topic.name, {})
            rows += [
                {
                    "flow": self.flow.name, "side": side, "origin": topic.name,
                    "partition": p, "floor": floors.get(p, 0),
                    "position": committed.get(p, log.log_start) if side == "source" else None,
                }
                for p, log in topic.partitions.items()
            ]  # fmt: skip
        return rows

    def expiry(self) -> dict[str, Any]:
        """Row of :data:`frames.latest_by_key.EXPIRY_SCHEMA`."""
        row: dict[str, Any] = {"flow": self.flow.name, "topic": self.topic}
        for side, topic in self.sides():
            if (until := _expired_ms(topic, self.taken_at_ms)) is not None:
                row[f"{side}_expired_ms"] = max(until, row.get(f"{side}_expired_ms", until))
        return row


def last_of(
    known: Mapping[str, Mapping[str, Mapping[str, Any]]], flow: str, topic: str
) -> Scan | None:
    """What is known of a topic.

    :param known: scans of the manifest.
    """
    plain = known.get(flow, {}).get(topic)
    return None if plain is None else Scan(**plain)


def waiting(
    topics: Iterable[CompactedTopic],
    known: Mapping[str, Mapping[str, Mapping[str, Any]]],
    every_ms: float,
) -> list[CompactedTopic]:
    """Topics whose scan is due, those first that were scanned longest ago."""
    scanned = [(last_of(known, *topic.key), topic) for topic in topics]
    found = [(last.at_ms if last else 0, now) for last, now in scanned if due(last, now, every_ms)]
    return [topic for _, topic in sorted(found, key=lambda pair: pair[0])]


def due(last: Scan | None, now: CompactedTopic, every_ms: float) -> bool:
    """Whether a topic has to be scanned: something is new, and the last scan is old enough."""
    if last is None:
        return True
    changed = last.state != now.state() or last.total("in_flight") > 0
    return changed and now.taken_at_ms - last.at_ms >= every_ms


def affordable(
    topics: Sequence[CompactedTopic], max_bytes: float | None, max_records: float | None = None
) -> list[CompactedTopic]:
    """Those that fit into what a run may still read, in their order."""
    chosen = []
    left = [max_bytes, max_records]
    for topic in topics:
        ranges = topic.ranges()
        sizes = (total_bytes(ranges), total_records(ranges))
        if all(have is None or size <= have for size, have in zip(sizes, left, strict=True)):
            chosen.append(topic)
            left = [have and have - size for size, have in zip(sizes, left, strict=True)]
    return chosen


def _expired_ms(topic: TopicSnapshot, now_ms: int) -> int | None:
    """Records up to which timestamp retention may have removed; ``None``: none."""
    if "delete" not in topic.configs.get("cleanup.policy", ""):
        return None
    by_size = int(topic.configs.get("retention.bytes", -1)) >= 0
    if by_size and any(log.log_start for log in topic.partitions.values()):
        return now_ms
    kept_ms = int(topic.configs.get("retention.ms", -1))
    return None if kept_ms < 0 else now_ms - kept_ms + MARGIN_MS
