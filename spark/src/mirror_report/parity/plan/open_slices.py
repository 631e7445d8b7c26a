"""Slices of buckets that stay open: which offsets of them are to be counted.

They begin where both sides had been read to when the bucket was last seen closed, or was not there
yet: all that is open of it lies behind, on either side. Where that is unknown, they begin with
its first record. What is too much for one run is counted in parts over several. Then the buckets
of a topic that are counted up to the last run go on by themselves, and those that are not yet
there go on together until they are; a bucket is decided where both of its sides are counted up to
their ends.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from mirror_report.parity import BUCKET, Key, grouped, partition_key
from mirror_report.parity.plan.open_buckets import (
    LogOffsets,
    OpenBucket,
    OpenTopic,
    how_far,
    of_topic,
)
from mirror_report.parity.plan.ranges import Range, joined, record_bytes, total_records
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import Manifest, changes

Log = tuple[str, str, int]
# The log of a bound, an extent, or the fields of a range.
_log: Callable[[Mapping[str, Any]], Log] = itemgetter("side", "origin", "partition")


@dataclass(frozen=True)
class Slices:
    """New offsets of open buckets of a topic that are counted together.

    :param buckets: those that can be counted; ``left_out``: those that can not.
    :param bounds: rows of :data:`frames.slices.BOUNDS_SCHEMA`; ``ranges``: where they lie.
    :param ends: up to where both sides are counted then.
    :param whole: these are their ends, so the buckets can be decided.
    :param gone: records of a bucket that left the source before they were counted, at most.
    """

    topic: TopicPlan
    buckets: tuple[OpenBucket, ...]
    left_out: tuple[OpenBucket, ...]
    bounds: Sequence[Mapping[str, Any]]
    ranges: Sequence[Range]
    ends: LogOffsets
    gone: Mapping[tuple[int, int], int]
    whole: bool = True

    @property
    def sliced(self) -> bool:
        """Whether earlier runs have counted them up to their ends."""
        return any(bucket.sliced for bucket in (*self.buckets, *self.left_out))

    @property
    def since_ms(self) -> int:
        """Since when the first of them is open."""
        return min(bucket.since_ms for bucket in (*self.buckets, *self.left_out))


def slices(
    manifest: Manifest,
    snapshots: FlowSnapshots,
    topic: TopicPlan,
    buckets: Sequence[OpenBucket],
    positions: Mapping[Key, Mapping[str, Any]],
    extents: Mapping[Key, Sequence[Mapping[str, Any]]],
) -> list[Slices]:
    """New offsets of some buckets: of the source below its positions, of the target as read.

    A bucket of which records may have left the target before they were counted is left out.

    :param positions: partition of the source -> row of :data:`frames.compare.POSITIONS_SCHEMA`.
    :param extents: bucket -> where its digested records lie, by partition, and how many.
    :returns: none: what is read of the topic does not allow it.
    """
    open_topic = of_topic(manifest, topic.key)
    read = how_far(manifest, topic)
    reached = {
        log: max(counted.get(log, 0) for counted in (open_topic.counted, open_topic.partly))
        for log in read
    }
    # Of a backlog: the target was counted beyond what is read of it by now.
    if any(offset < reached[log] for log, offset in read.items()):
        return []
    # What was committed once stays so where a position was set back.
    ends = {
        log: max(_end(topic, log, offset, positions), reached[log]) for log, offset in read.items()
    }
    bounds = {
        bucket.key: [
            bound
            for extent in extents[*topic.key, *bucket.key]
            if (bound := _bound(open_topic, bucket, extent, ends, positions)) is not None
        ]
        for bucket in buckets
        if not _expired(manifest, topic, open_topic, bucket)
    }
    return [_to_count(snapshots, topic, group, bounds, ends) for group in _groups(buckets)]


def _groups(buckets: Sequence[OpenBucket]) -> list[list[OpenBucket]]:
    """Buckets counted up to the last run, and those that have to come so far; others wait."""
    sliced = [bucket for bucket in buckets if bucket.sliced]
    begun = [bucket for bucket in buckets if bucket.begun]
    behind = begun or [bucket for bucket in buckets if not bucket.sliced]
    return [group for group in (sliced, behind) if group]


def _to_count(
    snapshots: FlowSnapshots,
    topic: TopicPlan,
    group: Sequence[OpenBucket],
    bounds: Mapping[tuple[int, int], Sequence[Mapping[str, Any]]],
    ends: LogOffsets,
) -> Slices:
    """Slices of buckets that are counted together.

    :param bounds: bucket -> what is new of it, by partition; none of one whose records expired.
    """
    countable = {
        bucket: bounds[bucket.key]
        for bucket in group
        if bucket.key in bounds and all(_is_there(snapshots, bound) for bound in bounds[bucket.key])
    }
    chosen = [bound for of_bucket in countable.values() for bound in of_bucket]
    return Slices(
        topic, tuple(countable), tuple(bucket for bucket in group if bucket not in countable),
        chosen, _ranges(snapshots, topic, chosen), ends,
        {
            bucket.key: sum(_gone(snapshots, bound) for bound in of_bucket)
            for bucket, of_bucket in countable.items()
        },
    )  # fmt: skip


def _bound(
    open_topic: OpenTopic,
    bucket: OpenBucket,
    extent: Mapping[str, Any],
    ends: LogOffsets,
    positions: Mapping[Key, Mapping[str, Any]],
) -> dict[str, Any] | None:
    """Offsets of a bucket to count in one partition; ``None``: nothing is new there."""
    log = _log(extent)
    start = max(extent["off_min"], _begin(open_topic, bucket, log))
    if extent["side"] == "source":
        # What may have been copied before the baseline proves nothing.
        start = max(start, positions.get(partition_key(extent), {}).get("required") or 0)
    end = min(extent["off_max"] + 1, ends.get(log, 0))
    if start >= end:
        return None
    names = (*BUCKET, "side", "origin", "partition", "n")
    return {**{name: extent[name] for name in names}, "start": start, "end": end}


def part(new: Slices, share: float) -> tuple[Slices, Slices | None]:
    """The next part of each log, at least one offset, and the rest; ``None``: that was all.

    Both sides in equal shares: where they match, nothing of them is kept one by one.
    """
    cuts = _cuts(new.ranges, share)
    if not cuts:
        return new, None
    ends = [(piece, cuts.get(_log(vars(piece)), piece.end)) for piece in new.ranges]
    bounds = [(bound, cuts.get(_log(bound), bound["end"])) for bound in new.bounds]
    return (
        replace(
            new, ends={**new.ends, **cuts}, whole=False,
            ranges=[replace(piece, end=min(piece.end, cut))
                    for piece, cut in ends if piece.start < cut],
            bounds=[{**bound, "end": min(bound["end"], cut)}
                    for bound, cut in bounds if bound["start"] < cut],
        ),
        replace(
            new,
            ranges=[replace(piece, start=max(piece.start, cut))
                    for piece, cut in ends if piece.end > cut],
            bounds=[{**bound, "start": max(bound["start"], cut)}
                    for bound, cut in bounds if bound["end"] > cut],
        ),
    )  # fmt: skip


def _cuts(ranges: Iterable[Range], share: float) -> dict[Log, int]:
    """Log -> where the part of it that is read next ends, of those that are not read to an end."""
    in_order = sorted(ranges, key=lambda part: part.start)
    cuts: dict[Log, int] = {}
    for log, its in grouped(in_order, lambda part: _log(vars(part))).items():
        left = max(1, math.floor(total_records(its) * share))
        for piece in its:
            if left < piece.records:
                cuts[log] = piece.start + left
                break
            left -= piece.records
    return cuts


def newer(counted: Slices, snapshots: FlowSnapshots) -> Slices | None:
    """New offsets of the target since it was counted.

    :param snapshots: fresh ones.
    :returns: ``None``: it cannot be seen.
    """
    topic = counted.topic
    target = find(snapshots, topic.flow, "target", topic.topic)
    if target is None:
        return None
    isolation = snapshots[topic.flow].flow.target_isolation
    ends = {
        ("target", topic.topic, partition): log.end_for(isolation)
        for partition, log in target.partitions.items()
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
    """Keep up to where open buckets of a topic are counted by now."""
    open_topic = of_topic(manifest, done.topic.key)
    here, out = ({bucket.key for bucket in group} for group in (done.buckets, done.left_out))
    buckets = tuple(
        replace(
            bucket, sliced=done.sliced, begun=not done.sliced, judged=done.whole,
            gone=bucket.gone + done.gone[bucket.key],
        ) if bucket.key in here
        else replace(bucket, sliced=False, begun=False, gone=0) if bucket.key in out
        else bucket
        for bucket in open_topic.buckets
    )  # fmt: skip
    open_topic = replace(open_topic, buckets=buckets)
    open_topic = (
        replace(open_topic, counted=done.ends)
        if done.sliced
        else replace(open_topic, partly=done.ends)
    )
    by_topic = changes.with_topic(
        manifest.open_buckets, *done.topic.key, _together(open_topic).dump()
    )
    return replace(manifest, open_buckets=by_topic)


def _together(open_topic: OpenTopic) -> OpenTopic:
    """Let buckets that were behind go on with the others, if they have come as far."""
    begun = [bucket for bucket in open_topic.buckets if bucket.begun]
    others = any(bucket.sliced for bucket in open_topic.buckets)
    if not all(bucket.judged for bucket in begun) or (
        others and open_topic.partly != open_topic.counted
    ):
        return open_topic
    buckets = tuple(
        replace(bucket, sliced=True, begun=False) if bucket.begun else bucket
        for bucket in open_topic.buckets
    )
    counted = open_topic.partly if begun else open_topic.counted
    return replace(open_topic, buckets=buckets, counted=counted, partly={})


def _begin(open_topic: OpenTopic, bucket: OpenBucket, log: tuple[str, str, int]) -> int:
    """From where on a bucket was not counted in one partition; 0: not known."""
    counted = open_topic.counted if bucket.sliced else open_topic.partly if bucket.begun else {}
    begins = {} if bucket.from_first else open_topic.begins.get(bucket.since_ms, {})
    # A position that was set back may lie before where the bucket was closed.
    return max(counted.get(log, 0), begins.get(log, 0))


def _expired(
    manifest: Manifest, topic: TopicPlan, open_topic: OpenTopic, bucket: OpenBucket
) -> bool:
    """Whether records left the target before they were read, where those of a bucket may lie."""
    return any(
        gap.end > _begin(open_topic, bucket, ("target", gap.origin, gap.partition))
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
    target = find(snapshots, bound["flow"], "target", bound["topic"])
    log = target.partitions.get(bound["partition"]) if target else None
    return log is not None and log.log_start <= bound["start"]


def _gone(snapshots: FlowSnapshots, bound: Mapping[str, Any]) -> int:
    """How many of the records to count have left the source, at most."""
    if bound["side"] == "target":
        return 0
    source = find(snapshots, bound["flow"], "source", bound["origin"])
    log = source.partitions.get(bound["partition"]) if source else None
    first = log.log_start if log else bound["end"]
    gone: int = min(bound["n"], min(first, bound["end"]) - bound["start"])
    return max(0, gone)


def _ranges(
    snapshots: FlowSnapshots, topic: TopicPlan, bounds: Iterable[Mapping[str, Any]]
) -> list[Range]:
    pieces = []
    for bound in bounds:
        side, origin = bound["side"], bound["origin"]
        observed = find(snapshots, topic.flow, side, origin)
        log = observed.partitions.get(bound["partition"]) if observed else None
        start = max(bound["start"], log.log_start) if log else bound["end"]
        pieces.append(
            Range(
                topic.flow, side, origin, topic.topic, bound["partition"], start, bound["end"],
                record_bytes(observed),
            )
        )  # fmt: skip
    return joined(pieces)
