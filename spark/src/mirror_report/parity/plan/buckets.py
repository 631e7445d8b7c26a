"""Buckets of topics that are cut by offsets: what to read of them, and what lies in none."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mirror_report.model import Baseline, ClusterSnapshot, TopicSnapshot
from mirror_report.parity.plan import cuts
from mirror_report.parity.plan.offset_syncs import STRATEGY, Aligned, track_of
from mirror_report.parity.plan.ranges import Range
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.plan.snapshots import FlowSnapshot
from mirror_report.parity.plan.topics import FlowPlan, TopicPlan
from mirror_report.parity.state import (
    BEHIND_ALL,
    SIDES,
    Manifest,
    Side,
    SideState,
    Track,
    Unreadable,
    topic_value,
)


def limit(plan: FlowPlan, aligned: Aligned, snapshot: FlowSnapshot) -> FlowPlan:
    """A plan that reads nothing but closed buckets, and those again whose cuts are others."""
    topics = plan.topics
    if aligned.problem is not None:
        unknown = f"target: {aligned.problem}"
        topics = tuple(
            replace(topic, unknown=unknown) if topic.strategy == STRATEGY else topic
            for topic in topics
        )
    ranges, drops, begin = list(plan.ranges), list(plan.drops), dict(plan.begin)
    for topic in topics:
        rebuild = topic.topic in aligned.rebuild
        for side, origin in topic.sides:
            if rebuild:
                drops.append(Drop(topic.flow, side, origin))
            key, observed = (topic.flow, side, origin), snapshot.side(side).topics.get(origin)
            if key not in begin or observed is None:
                continue
            if rebuild:
                begun = begin[key]
                begin[key] = SideState(begun.topic_id, begun.first, dict(begun.first))
            if rebuild or topic.strategy == STRATEGY:
                same = [part for part in ranges if (part.side, part.origin) == (side, origin)]
                ranges = [part for part in ranges if part not in same]
                ranges += _closed(aligned, topic, side, observed, begin[key], same)
    return replace(plan, topics=topics, ranges=tuple(ranges), drops=tuple(drops), begin=begin)


def _closed(
    aligned: Aligned,
    topic: TopicPlan,
    side: Side,
    observed: TopicSnapshot,
    begun: SideState,
    new: Sequence[Range],
) -> Iterator[Range]:
    """Closed buckets of one side, from where it goes on.

    :param new: all that is new of it.
    """
    sized = {"record_bytes": new[0].record_bytes} if new else {}
    state = aligned.topics.get(topic.topic)
    for partition, log in sorted(observed.partitions.items()):
        start = max(begun.next.get(partition, log.log_start), log.log_start)
        end = log.end_for(aligned.flow.isolation(side))
        if topic.strategy == STRATEGY:
            bounds = [cut[SIDES.index(side)] for cut in track_of(state, partition).cuts]
            start, end = (max(start, bounds[0]), min(end, bounds[-1])) if bounds else (0, 0)
        if start < end:
            yield Range(
                topic.flow, side, observed.name, topic.topic, partition, start, end, **sized
            )


@dataclass(frozen=True)
class Outside:
    """Source offsets of a topic that lie in no bucket.

    :param straddling: between the baseline and the first cuts: some had been mirrored before it.
    :param unaligned: mirrored before anything aligned them.
    :param open: after the last cuts.
    :param partitions: ``unaligned`` by partition (as text).
    """

    straddling: int = 0
    unaligned: int = 0
    open: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict, compare=False)


def outside(
    manifest: Manifest, plan: TopicPlan, baseline: Baseline, source: ClusterSnapshot
) -> Outside:
    """Source offsets that the cuts of a topic leave out."""
    state = topic_value(manifest.alignments, plan.key, None)
    straddling = after = 0
    unaligned: Counter[str] = Counter()
    for origin in plan.origins:
        topic = source.topics.get(origin)
        begun = manifest.sides.get((plan.flow, "source", origin))
        floors = baseline.topic(origin).source.start
        for partition, log in (topic.partitions if topic else {}).items():
            first = (begun.first if begun else {}).get(partition, log.log_start)
            aligned_cuts = track_of(state, partition).cuts
            if not aligned_cuts:
                after += max(0, log.end - first)
                continue
            before = max(0, aligned_cuts[0].upstream - first)
            if floors.get(partition) == first and not (state and state.anew):
                straddling += before
            else:
                unaligned[str(partition)] += before
            after += max(0, log.end - aligned_cuts[-1].upstream)
    return Outside(straddling, unaligned.total(), after, +unaligned)


def labels(manifest: Manifest, records: Iterable[Unreadable]) -> dict[Unreadable, int]:
    """In which bucket records are, as far as their topics are cut by offsets."""
    tracks = {
        record: track_of(
            topic_value(manifest.alignments, (record.flow, record.topic), None), record.partition
        )
        for record in records
    }
    return {
        record: span.label
        for record, track in tracks.items()
        for span in cuts.spans(track.cuts, record.side, record.offset, record.offset + 1)
    }


def spans(
    manifest: Manifest, topics: Iterable[TopicPlan], parts: Sequence[Range] | None = None
) -> list[dict[str, Any]]:
    """Rows of :data:`frames.align.SPANS_SCHEMA`.

    :param parts: only what touches these ranges; ``None``: all there are.
    """
    rows: list[dict[str, Any]] = []
    for topic in topics:
        state = topic_value(manifest.alignments, topic.key, None)
        if topic.strategy != STRATEGY or state is None:
            continue
        for number, track in state.tracks.items():
            for side, origin in topic.sides:
                rows += _spans_of((topic.flow, side, origin, number), track, parts)
    return rows


def _spans_of(
    log: tuple[str, Side, str, int], track: Track, parts: Sequence[Range] | None
) -> list[dict[str, Any]]:
    flow, side, origin, partition = log
    bounds = [(0, BEHIND_ALL)]
    if parts is not None:
        bounds = [(part.start, part.end) for part in parts if (*part.key, part.partition) == log]
    within = {span for start, end in bounds for span in cuts.spans(track.cuts, side, start, end)}
    return [
        {
            "flow": flow, "side": side, "origin": origin, "partition": partition,
            "span_start": span.start, "span_end": span.end, "label": span.label,
        }
        # A log without spans is cut too: it has an empty one.
        for span in sorted(within) or [cuts.Span(0, 0, 0)] * bool(bounds)
    ]  # fmt: skip
