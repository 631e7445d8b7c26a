"""Buckets that have not closed yet: since when, and which offsets of them nobody has judged.

A bucket is closed when it is due and both sides are equal. One that stays open for long is judged
by slices of offsets (:mod:`frames.slices`). These begin where both sides had been read to when it
was last seen closed, or was not there yet: all that is open of it lies behind, on either side. Of
one that was open when the report first looked they begin at its first record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mirror_report.parity import BUCKET, Key, partition_key
from mirror_report.parity.plan import offset_syncs
from mirror_report.parity.plan.ranges import Range, joined, record_bytes
from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import Manifest, TopicKey, changes

MINUTE_MS = 60_000

# (side, topic there, partition) -> offset.
LogOffsets = Mapping[tuple[str, str, int], int]


@dataclass(frozen=True)
class OpenBucket:
    """A bucket that was open at the last comparison.

    :param since_ms: when it was first seen open.
    :param below: of the source, records below the committed position, if it is not due; at most.
    :param sliced: slices have counted it, up to where they have of its topic.
    :param judged: they have done so since the last comparison.
    """

    lane: int
    bucket: int
    since_ms: int
    below: int = 0
    sliced: bool = False
    judged: bool = False

    def is_late(self, now_ms: int, open_minutes: float) -> bool:
        """Whether slices have to judge it."""
        return self.below > 0 and now_ms - self.since_ms >= open_minutes * MINUTE_MS

    def may_lie_in(self, partition: int) -> bool:
        """Whether a partition of the target may hold records of it."""
        return self.lane < 0 or self.lane == partition


@dataclass(frozen=True)
class OpenTopic:
    """The open buckets of a topic.

    :param whole: whether these are all.
    :param compared: how far both sides had been read when they were compared last.
    :param begins: when buckets were first seen open -> how far both sides had been read before;
        without an entry: not known.
    :param counted: how far slices have counted.
    """

    buckets: tuple[OpenBucket, ...] = ()
    whole: bool = False
    compared: LogOffsets = field(default_factory=dict)
    begins: Mapping[int, LogOffsets] = field(default_factory=dict)
    counted: LogOffsets = field(default_factory=dict)

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> OpenTopic:
        """What :meth:`dump` made."""
        return cls(
            tuple(OpenBucket(**bucket) for bucket in plain["buckets"]),
            plain["whole"],
            _offsets(plain["compared"]),
            {int(since): _offsets(some) for since, some in plain["begins"].items()},
            _offsets(plain["counted"]),
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "buckets": [asdict(bucket) for bucket in self.buckets],
            "whole": self.whole,
            "compared": _plain(self.compared),
            "begins": {str(since): _plain(some) for since, some in self.begins.items()},
            "counted": _plain(self.counted),
        }


def of_topic(manifest: Manifest, topic: TopicKey) -> OpenTopic:
    """What is known of the open buckets of a topic; nothing before it was compared."""
    flow, name = topic
    plain = manifest.open_buckets.get(flow, {}).get(name)
    return OpenTopic.load(plain) if plain else OpenTopic()


def with_topic(manifest: Manifest, topic: TopicKey, known: OpenTopic) -> Manifest:
    """Keep what is known of the open buckets of a topic."""
    changed = changes.with_topic(manifest.open_buckets, *topic, known.dump())
    return replace(manifest, open_buckets=changed)


def read_since(manifest: Manifest, topic: TopicPlan) -> int:
    """Offsets of a topic that were read since it was compared last, of both sides."""
    known = of_topic(manifest, topic.key).compared
    return sum(
        offset - known.get((side, origin, partition), begun.first.get(partition, offset))
        for side, origin in topic.sides
        if (begun := manifest.sides.get((topic.flow, side, origin))) is not None
        for partition, offset in begun.next.items()
    )


def timed(plan: RunPlan) -> list[TopicPlan]:
    """Topics whose buckets are spans of time; what is cut by offsets closes by itself."""
    return [topic for topic in plan.judged if topic.strategy != offset_syncs.STRATEGY]


def note(
    manifest: Manifest,
    plan: RunPlan,
    lanes: Iterable[Mapping[str, Any]],
    now_ms: int,
) -> Manifest:
    """Keep which buckets are open by now.

    :param lanes: rows of :func:`frames.totals.summarise`.
    """
    of_topics: dict[TopicKey, list[Mapping[str, Any]]] = {}
    for lane in lanes:
        of_topics.setdefault((lane["flow"], lane["topic"]), []).append(lane)
    for topic in timed(plan):
        before = of_topic(manifest, topic.key)
        same = {(known.lane, known.bucket): known for known in before.buckets}
        its = of_topics.get(topic.key, [])
        found = tuple(
            replace(
                same.get((lane["lane"], row["bucket"]))
                or OpenBucket(lane["lane"], row["bucket"], now_ms),
                below=row["below"],
                judged=False,
            )
            for lane in its
            for row in lane["open"]
        )
        # Of a bucket that was not followed nobody knows whether it was closed.
        begins = {**before.begins, **({now_ms: before.compared} if before.whole else {})}
        used = {bucket.since_ms for bucket in found}
        known = OpenTopic(
            found,
            all(lane["n_open"] == len(lane["open"]) for lane in its),
            _read(manifest, topic),
            {since: some for since, some in begins.items() if since in used},
            before.counted if any(bucket.sliced for bucket in found) else {},
        )
        manifest = with_topic(manifest, topic.key, known)
    return manifest


def late(
    manifest: Manifest, plan: RunPlan, now_ms: int, open_minutes: float
) -> dict[TopicKey, list[OpenBucket]]:
    """Buckets that slices have to count, of topics that have one which they have to judge."""
    found: dict[TopicKey, list[OpenBucket]] = {}
    for topic in timed(plan):
        known = of_topic(manifest, topic.key).buckets
        waiting = [bucket for bucket in known if bucket.is_late(now_ms, open_minutes)]
        if waiting:
            # What was counted once goes on with the others.
            found[topic.key] = [b for b in known if b.sliced or b in waiting]
    return found


def waits(manifest: Manifest, plan: RunPlan, now_ms: int, open_minutes: float) -> bool:
    """Whether there is a bucket that slices have to judge and have not yet."""
    found = late(manifest, plan, now_ms, open_minutes)
    return any(b.below and not b.judged for some in found.values() for b in some)


@dataclass(frozen=True)
class Open:
    """What a topic has in buckets that have been open for long.

    :param records: of the source, below the committed position; at most.
    :param since_ms: since when the first of them is open; ``None``: there is none.
    :param unjudged: of the records, those that slices have not judged.
    """

    records: int = 0
    since_ms: int | None = None
    unjudged: int = 0


def open_for_long(known: OpenTopic, now_ms: int, open_minutes: float) -> Open:
    """What a topic has in buckets that slices have to judge."""
    some = [bucket for bucket in known.buckets if bucket.is_late(now_ms, open_minutes)]
    return Open(
        sum(bucket.below for bucket in some),
        min((bucket.since_ms for bucket in some), default=None),
        sum(bucket.below for bucket in some if not bucket.judged),
    )


@dataclass(frozen=True)
class Slices:
    """What is new of the open buckets of a topic.

    :param buckets: those that can be counted.
    :param bounds: rows of :data:`frames.slices.BOUNDS_SCHEMA`; ``ranges``: where they lie.
    :param ends: up to where both sides are counted then.
    """

    topic: TopicPlan
    buckets: tuple[OpenBucket, ...]
    bounds: Sequence[Mapping[str, Any]]
    ranges: Sequence[Range]
    ends: LogOffsets


def slices(
    manifest: Manifest,
    snapshots: FlowSnapshots,
    topic: TopicPlan,
    some: Sequence[OpenBucket],
    positions: Mapping[Key, Mapping[str, Any]],
    extents: Mapping[Key, Sequence[Mapping[str, Any]]],
) -> Slices:
    """What is new of some buckets: the source below its positions, the target as far as read.

    A bucket of which records may have left the target before they were counted is left out.

    :param positions: partition of the source -> row of :data:`frames.compare.POSITIONS_SCHEMA`.
    :param extents: bucket -> where its digested records lie, by partition.
    """
    known = of_topic(manifest, topic.key)
    read = _read(manifest, topic)
    if any(offset < known.counted.get(log, 0) for log, offset in read.items()):
        # Of a backlog: the target was looked at beyond what is read of it by now.
        return Slices(topic, (), (), (), read)
    # What was committed once stays so where a position was set back.
    ends = {
        log: max(_end(topic, log, offset, positions), known.counted.get(log, 0))
        for log, offset in read.items()
    }
    chosen: list[OpenBucket] = []
    bounds: list[dict[str, Any]] = []
    for bucket in some:
        key = (*topic.key, bucket.lane, bucket.bucket)
        its = [
            bound for extent in extents[key]
            if (bound := _bound(known, bucket, extent, ends, positions)) is not None
        ]  # fmt: skip
        expired = _expired(manifest, topic, known, bucket)
        if not expired and all(_is_there(snapshots, bound) for bound in its):
            chosen.append(bucket)
            bounds += its
    return Slices(topic, tuple(chosen), bounds, _ranges(snapshots, topic, bounds), ends)


def newer(counted: Slices, snapshots: FlowSnapshots) -> Slices | None:
    """What came to the target since it was counted.

    :param snapshots: fresh ones.
    :returns: ``None``: it cannot be seen.
    """
    topic = counted.topic
    there = find(snapshots, topic.flow, "target", topic.topic)
    if there is None:
        return None
    isolation = snapshots[topic.flow].flow.target_isolation
    ends = {
        ("target", topic.topic, partition): log.end_for(isolation)
        for partition, log in there.partitions.items()
    }
    bounds = [
        {
            **dict(zip(BUCKET, (*topic.key, bucket.lane, bucket.bucket), strict=True)),
            "side": "target", "origin": topic.topic, "partition": log[2],
            "start": counted.ends.get(log, 0), "end": end,
        }
        for bucket in counted.buckets
        for log, end in ends.items()
        if bucket.may_lie_in(log[2]) and end > counted.ends.get(log, 0)
    ]  # fmt: skip
    if not all(_is_there(snapshots, bound) for bound in bounds):
        return None
    return replace(
        counted, bounds=bounds, ranges=_ranges(snapshots, topic, bounds),
        ends={**counted.ends, **ends},
    )  # fmt: skip


def with_counted(manifest: Manifest, done: Slices) -> Manifest:
    """Keep up to where the open buckets of a topic are counted by now."""
    known = of_topic(manifest, done.topic.key)
    now = {(bucket.lane, bucket.bucket) for bucket in done.buckets}
    buckets = tuple(
        replace(bucket, sliced=here, judged=here)
        for bucket in known.buckets
        for here in [(bucket.lane, bucket.bucket) in now]
    )
    return with_topic(manifest, done.topic.key, replace(known, buckets=buckets, counted=done.ends))


def _bound(
    known: OpenTopic,
    bucket: OpenBucket,
    extent: Mapping[str, Any],
    ends: LogOffsets,
    positions: Mapping[Key, Mapping[str, Any]],
) -> dict[str, Any] | None:
    """What has to be counted of a bucket in one partition."""
    log = (extent["side"], extent["origin"], extent["partition"])
    start = max(extent["off_min"], _begin(known, bucket, log))
    if extent["side"] == "source":
        # What may have been copied before the baseline proves nothing.
        start = max(start, positions.get(partition_key(extent), {}).get("required") or 0)
    end = min(extent["off_max"] + 1, ends.get(log, 0))
    if start >= end:
        return None
    where = {name: extent[name] for name in (*BUCKET, "side", "origin", "partition")}
    return {**where, "start": start, "end": end}


def _begin(known: OpenTopic, bucket: OpenBucket, log: tuple[str, str, int]) -> int:
    """From where on nobody has judged a bucket in one partition; 0: not known."""
    counted = known.counted.get(log, 0) if bucket.sliced else 0
    # A position that was set back may lie before where the bucket was closed.
    return max(counted, known.begins.get(bucket.since_ms, {}).get(log, 0))


def _expired(manifest: Manifest, topic: TopicPlan, known: OpenTopic, bucket: OpenBucket) -> bool:
    """Whether records left the target before they were read, where those of a bucket may lie."""
    return any(
        gap.end > _begin(known, bucket, ("target", gap.origin, gap.partition))
        for gap in manifest.gaps
        if (gap.flow, gap.topic, gap.side) == (*topic.key, "target")
        and bucket.may_lie_in(gap.partition)
    )


def _end(
    topic: TopicPlan,
    log: tuple[str, str, int],
    read: int,
    positions: Mapping[Key, Mapping[str, Any]],
) -> int:
    """Up to where a partition is counted: of the source, what must be on the target by now."""
    if log[0] == "target":
        return read
    row = positions.get((topic.flow, *log), {})
    boundary = row.get("boundary")
    committed: int = row.get("position", 0) if boundary is None else boundary
    return min(read, committed)


def _is_there(snapshots: FlowSnapshots, bound: Mapping[str, Any]) -> bool:
    """Whether nothing of the target is gone of what has to be counted; the source may lose some."""
    if bound["side"] == "source":
        return True
    there = find(snapshots, bound["flow"], "target", bound["topic"])
    log = there.partitions.get(bound["partition"]) if there else None
    return log is not None and log.log_start <= bound["start"]


def _ranges(
    snapshots: FlowSnapshots, topic: TopicPlan, bounds: Iterable[Mapping[str, Any]]
) -> list[Range]:
    found = []
    for bound in bounds:
        side, origin = bound["side"], bound["origin"]
        there = find(snapshots, topic.flow, side, origin)
        log = there.partitions.get(bound["partition"]) if there else None
        start = max(bound["start"], log.log_start) if log else bound["end"]
        found.append(
            Range(
                topic.flow, side, origin, topic.topic, bound["partition"], start, bound["end"],
                record_bytes(there),
            )
        )  # fmt: skip
    return joined(found)


def _read(manifest: Manifest, topic: TopicPlan) -> dict[tuple[str, str, int], int]:
    """How far both sides of a topic have been read."""
    return {
        (side, origin, partition): offset
        for side, origin in topic.sides
        if (state := manifest.sides.get((topic.flow, side, origin))) is not None
        for partition, offset in state.next.items()
    }


def _plain(some: LogOffsets) -> list[list[Any]]:
    return [[*log, offset] for log, offset in sorted(some.items())]


def _offsets(plain: Iterable[Sequence[Any]]) -> dict[tuple[str, str, int], int]:
    return {(side, origin, partition): offset for side, origin, partition, offset in plain}
