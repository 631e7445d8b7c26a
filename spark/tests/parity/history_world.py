"""Topics of two real clusters, what a made-up mirror does to them, and a record of all of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from parity_clusters import CENTURY, SIDES, Connect, Message, World
from parity_mirror import eventually
from parity_records import Content


@dataclass
class Log:
    """One topic on one cluster: every record ever written to it, and what is still there.

    :param born: counts up each time the topic is created.
    :param starts: first offset still there, by partition; ``segments``: first one of the segment
        that is written to.
    """

    partitions: list[list[Content]]
    starts: list[int]
    segments: list[int]
    born: int = 0

    @classmethod
    def empty(cls, count: int, born: int = 0) -> Log:
        """A new one of some partitions."""
        return cls([[] for _ in range(count)], [0] * count, [0] * count, born)

    @property
    def ends(self) -> list[int]:
        """Next offset, by partition."""
        return [len(some) for some in self.partitions]


@dataclass
class Mirrored:
    """One topic, and how far its mirror is.

    :param keeps_partitions: MirrorMaker 2; otherwise MirrorMaker 1.
    :param copied: next offset that the process copies; ``committed``: what it has committed.
    :param limit_ms: retention of the target; ``None``: for ever.
    """

    flow: str
    name: str
    keeps_partitions: bool
    source: Log
    target: Log
    copied: list[int]
    committed: list[int | None]
    limit_ms: int | None = None

    def log(self, side: str) -> Log:
        """One side of it."""
        return self.source if side == "source" else self.target


class Clusters:
    """Both clusters, for all histories; each has topics of its own.

    :param brokers: address of the source and of the target.
    """

    def __init__(self, brokers: tuple[str, str]) -> None:
        self.world = World(brokers)
        self.connect = Connect(self.world, f"h{uuid.uuid4().hex[:8]}", "source")
        self.connect.create()

    def close(self) -> None:
        """Close all clients."""
        self.world.close()


@dataclass
class Stage:
    """What happens to the topics of one history.

    :param partitions: of each topic in the beginning.
    """

    clusters: Clusters
    partitions: int = 2
    topics: dict[str, Mirrored] = field(default_factory=dict)
    numbers: int = 0

    def __post_init__(self) -> None:
        """Create a topic for each engine."""
        prefix = f"h{uuid.uuid4().hex[:8]}"
        for flow in ("loose", "kept"):
            topic = Mirrored(
                flow, f"{prefix}-{flow}", flow == "kept",
                Log.empty(self.partitions), Log.empty(self.partitions),
                copied=[0] * self.partitions, committed=[None] * self.partitions,
            )  # fmt: skip
            for side in SIDES:
                self.clusters.world.create(side, topic.name, self.partitions)
            self.topics[flow] = topic

    # -- what producers do ------------------------------------------------------------------------

    def produce(self, topic: Mirrored, records: Iterable[tuple[int, Content]]) -> None:
        """Append to the source: partition, and content."""
        self._write(topic, "source", records)

    def _write(self, topic: Mirrored, side: str, records: Iterable[tuple[int, Content]]) -> None:
        written = list(records)
        self.clusters.world.write(
            side, topic.name,
            [Message(partition, key, value, at, headers or ())
             for partition, (key, value, at, headers) in written],
        )  # fmt: skip
        for partition, content in written:
            topic.log(side).partitions[partition].append(content)
        if side == "target":
            self._expire(topic)

    # -- what the mirror does ---------------------------------------------------------------------

    def waiting(self, topic: Mirrored) -> list[tuple[int, int]]:
        """Partition and offset of what the mirror copies next, a partition after the other."""
        return [
            (partition, offset)
            for partition, some in enumerate(topic.source.partitions)
            for offset in range(
                max(topic.copied[partition], topic.source.starts[partition]), len(some)
            )
        ]

    def copy(self, topic: Mirrored, some: Iterable[tuple[int, int]], **fault: Any) -> None:
        """Mirror records.

        :param fault: what the copy has instead, by name of :class:`Message`.
        """
        copies = []
        for partition, offset in some:
            content = topic.source.partitions[partition][offset]
            copies.append((self.place(topic, partition, content), altered(content, **fault)))
            self.skip(topic, partition, offset)
        self._write(topic, "target", copies)

    def skip(self, topic: Mirrored, partition: int, offset: int) -> None:
        """Let the mirror pass over a record."""
        topic.copied[partition] = offset + 1

    def place(self, topic: Mirrored, partition: int, content: Content) -> int:
        """Partition in which a copy arrives."""
        if topic.keeps_partitions:
            return partition
        return sum(content[0] or content[1] or b"") % len(topic.target.partitions)

    def intrude(self, topic: Mirrored, partition: int, content: Content) -> None:
        """Write to the target beside the mirror."""
        self._write(topic, "target", [(partition, content)])

    def commit(self, topic: Mirrored) -> None:
        """Commit how far the mirror has copied."""
        if topic.keeps_partitions:
            # Of a partition of which it has copied nothing, MirrorMaker 2 flushes nothing.
            pairs = zip(topic.copied, topic.committed, strict=True)
            topic.committed = [copied or before for copied, before in pairs]
            self.clusters.connect.position(topic.name, *topic.copied)
        else:
            topic.committed = list(topic.copied)
            self.clusters.world.commit("source", topic.name, topic.name, *topic.copied)

    def crash(self, topic: Mirrored) -> None:
        """Kill the mirror: it begins again where it has committed last, if that is in the log."""
        pairs = zip(topic.committed, topic.source.ends, strict=True)
        topic.copied = [offset if offset and offset <= end else 0 for offset, end in pairs]

    # -- what operators do ------------------------------------------------------------------------

    def delete(self, topic: Mirrored, side: str, partition: int, offset: int) -> None:
        """Remove the records before an offset."""
        self.clusters.world.delete_before(side, topic.name, partition, offset)
        topic.log(side).starts[partition] = offset

    def grow(self, topic: Mirrored) -> None:
        """Add a partition on both sides."""
        count = len(topic.source.partitions) + 1
        for side in SIDES:
            self.clusters.world.grow(side, topic.name, count)
            topic.log(side).partitions.append([])
            topic.log(side).starts.append(0)
            topic.log(side).segments.append(0)
        topic.copied.append(0)
        topic.committed.append(None)

    def recreate(self, topic: Mirrored, side: str) -> None:
        """Delete a topic and create it again; a mirror whose source it is begins at its start."""
        count = len(topic.log(side).partitions)
        kept = topic.limit_ms if side == "target" else None
        settings = {} if kept is None else {"retention_ms": str(kept)}
        self.clusters.world.create_again(side, topic.name, count, **settings)
        if side == "target":
            topic.target = Log.empty(count, topic.target.born + 1)
        else:
            topic.source = Log.empty(count, topic.source.born + 1)
            topic.copied = [0] * count
            if not topic.keeps_partitions:
                # Brokers forget what was committed of a topic that is deleted.
                topic.committed = [None] * count

    def keep(self, topic: Mirrored, limit_ms: int | None) -> None:
        """Set the retention of the target."""
        topic.limit_ms = limit_ms
        value = CENTURY if limit_ms is None else str(limit_ms)
        self.clusters.world.configure("target", topic.name, retention_ms=value)
        self._expire(topic)

    def _expire(self, topic: Mirrored) -> None:
        """Wait until the target's broker has removed what it may not keep: whole segments.

        Nothing ends a segment here but this. It removes them at a time of its own, so nothing else
        happens before it has.
        """
        if topic.limit_ms is None:
            return
        log, oldest = topic.target, int(time.time() * 1000) - topic.limit_ms
        for partition, some in enumerate(log.partitions):
            segment = some[log.segments[partition] :]
            if segment and all(at < oldest for _, _, at, _ in segment):
                log.segments[partition] = log.starts[partition] = len(some)
        wanted = dict(enumerate(log.starts))
        eventually(lambda: self.clusters.world.starts("target", topic.name) == wanted)


def altered(content: Content, **changes: Any) -> Content:
    """A record with other fields: key, value, at or headers."""
    key, value, at, headers = content
    return (
        changes.get("key", key), changes.get("value", value),
        changes.get("at", at), changes.get("headers", headers),
    )  # fmt: skip
