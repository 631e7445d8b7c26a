"""Aligning topics whose timestamps say nothing: the cuts of their logs, by offset syncs.

A sync is good when both logs were observed beyond it; the others wait for the next run. What lies
after the last cut is in flight: the next sync closes it, or the ends of both logs do when the
mirror is drained, which takes a second snapshot of the source to know.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mirror_report.config import Flow
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    OffsetSync,
    Place,
    TopicSnapshot,
    another_topic,
)
from mirror_report.parity.plan import cuts, strategies
from mirror_report.parity.plan.snapshots import FlowSnapshot
from mirror_report.parity.state import Alignment, Cut, Manifest, Track

STRATEGY = "offset_syncs"


@dataclass(frozen=True)
class SyncsRead:
    """Offset syncs that were read to align the topics of a flow.

    :param syncs: newer ones, by topic and partition of the source.
    :param read: what the next run has to know to go on.
    :param source: a second snapshot, taken after the target; ``None``: it was not needed.
    :param problem: why the syncs could not be read.
    """

    syncs: Mapping[Place, list[OffsetSync]] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)
    source: ClusterSnapshot | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Aligned:
    """The cuts of one flow's topics.

    :param topics: to be kept, by topic on the target.
    :param rebuild: topics that have to be read again, because their buckets are others.
    :param problem: why the syncs could not be read.
    """

    flow: Flow
    topics: Mapping[str, Alignment]
    rebuild: frozenset[str]
    problem: str | None = None


def to_align(
    manifest: Manifest, snapshot: FlowSnapshot
) -> dict[str, tuple[TopicSnapshot, TopicSnapshot]]:
    """Topics of a flow to align: name on the target -> its only source topic, and itself."""
    flow, pairs = snapshot.flow, {}
    for name, ours in snapshot.source.topics.items():
        theirs = snapshot.target.topics.get(flow.target_topic(name))
        if theirs is None or not flow.matches(name):
            continue
        untimed = manifest.untimed(flow.name, theirs.name)
        if strategies.choose(flow, [ours], theirs, untimed=untimed).strategy == STRATEGY:
            pairs[theirs.name] = (ours, theirs)
    return pairs


def seems_drained(manifest: Manifest, snapshot: FlowSnapshot) -> bool:
    """Whether a mirror is at the end of a log of which something lies after the last cut."""
    flow = snapshot.flow
    alignments = manifest.alignments.get(flow.name, {})
    for topic, pair in to_align(manifest, snapshot).items():
        for partition in _partitions(pair):
            ends = _ends(flow, pair, partition)
            closed = track_of(alignments.get(topic), partition).cuts
            last = closed[-1][:2] if closed else (0, 0)
            if _position(snapshot, pair, partition) == ends[0] and last != ends:
                return True
    return False


def align(
    manifest: Manifest,
    snapshot: FlowSnapshot,
    baseline: Baseline,
    read: SyncsRead,
    bucket_ms: int,
) -> Aligned:
    """Bring the cuts of a flow's topics up to date.

    :param snapshot: its source was taken before the positions, its target after them.
    """
    flow = snapshot.flow
    alignments = manifest.alignments.get(flow.name, {})
    pairs = to_align(manifest, snapshot)
    compared = {
        flow.target_topic(origin)
        for origin in snapshot.source.topics
        if (flow.name, "source", origin) in manifest.sides
    }
    rebuild = {topic for topic in compared if (topic in alignments) != (topic in pairs)}
    topics = {topic: state for topic, state in alignments.items() if topic in pairs}
    if read.problem is not None:
        return Aligned(flow, topics, frozenset(rebuild), read.problem)
    for topic, pair in pairs.items():
        state, again = _align_topic(
            alignments.get(topic), pair, snapshot, baseline, read, bucket_ms
        )
        topics[topic] = replace(state, untimed=manifest.untimed(flow.name, topic))
        rebuild |= {topic} if again else set()
    return Aligned(flow, topics, frozenset(rebuild))


def _align_topic(
    alignment: Alignment | None,
    pair: tuple[TopicSnapshot, TopicSnapshot],
    snapshot: FlowSnapshot,
    baseline: Baseline,
    read: SyncsRead,
    bucket_ms: int,
) -> tuple[Alignment, bool]:
    """State of a topic, and whether it has to be read again."""
    ids = tuple(topic.topic_id for topic in pair)
    renewed = alignment is not None and any(map(another_topic, alignment.ids, ids))
    recreated = renewed or (alignment is not None and alignment.anew)
    begin = {} if recreated else _exact_start(*pair, baseline)
    tracks: dict[int, Track] = {}
    pending: dict[int, tuple[Cut, ...]] = {}
    again = renewed
    for partition in _partitions(pair):
        ends = _ends(snapshot.flow, pair, partition)
        track = track_of(alignment, partition)
        waiting = _waiting(alignment, partition, read.syncs.get((pair[0].name, partition), []))
        if renewed:
            waiting, track = _since(track, waiting), Track()
        usable = [
            sync for sync in waiting if sync.upstream <= ends[0] and sync.downstream <= ends[1]
        ]
        pending[partition] = tuple(sync for sync in waiting if sync not in usable)
        if not track.cuts and partition in begin:
            times = [snapshot.source.taken_at_ms, *(sync.label for sync in usable[:1])]
            first = Cut(*begin[partition], min(times) - 1)
            track = Track((first,), first)
        further = cuts.advance(
            track, usable, bucket_ms, repeats=snapshot.flow.target_isolation != "read_committed"
        )
        if further is None:
            again = True
            further = cuts.advance(Track(), usable[-1:], bucket_ms) or Track()
        if further.cuts and _drained(snapshot, pair, partition, read.source):
            further = cuts.closed(further, *ends, snapshot.source.taken_at_ms)
        tracks[partition] = further
    return Alignment(ids, recreated, tracks, pending), again


def track_of(state: Alignment | None, partition: int) -> Track:
    """The cuts of a partition of a topic that is aligned; none if nothing is known."""
    return state.tracks.get(partition, Track()) if state else Track()


def _partitions(pair: tuple[TopicSnapshot, TopicSnapshot]) -> list[int]:
    return sorted(pair[0].partitions.keys() & pair[1].partitions.keys())


def _ends(flow: Flow, pair: tuple[TopicSnapshot, TopicSnapshot], partition: int) -> tuple[int, int]:
    return (
        pair[0].partitions[partition].end_for(flow.isolation("source")),
        pair[1].partitions[partition].end_for(flow.isolation("target")),
    )


def _position(
    snapshot: FlowSnapshot, pair: tuple[TopicSnapshot, TopicSnapshot], partition: int
) -> int | None:
    return snapshot.positions.get(pair[0].name, {}).get(partition)


def _waiting(alignment: Alignment | None, partition: int, newer: list[OffsetSync]) -> list[Cut]:
    """Syncs not used yet, in their order."""
    before = alignment.pending.get(partition, ()) if alignment else ()
    return [*before, *(Cut(sync.upstream, sync.downstream, sync.timestamp_ms) for sync in newer)]


def _since(track: Track, syncs: list[Cut]) -> list[Cut]:
    """Syncs of a recreated topic: from the first on that does not go on from the former ones."""
    if (newest := track.newest) is None:
        return syncs
    return list(
        itertools.dropwhile(
            lambda sync: sync.upstream >= newest.upstream and sync.downstream >= newest.downstream,
            syncs,
        )
    )


def _exact_start(
    ours: TopicSnapshot, theirs: TopicSnapshot, baseline: Baseline
) -> dict[int, tuple[int, int]]:
    """Where both logs begin alike, by partition: nothing from there on was mirrored before."""
    recorded = baseline.topics.get(ours.name)
    if recorded is None:
        whole = baseline.exists or all(
            log.log_start == 0 for topic in (ours, theirs) for log in topic.partitions.values()
        )
        return dict.fromkeys(ours.partitions, (0, 0)) if whole else {}
    sides = ((recorded.source, ours), (recorded.target, theirs))
    if any(another_topic(side.topic_id, present.topic_id) for side, present in sides):
        return {}
    source, target = recorded.source.start, recorded.target.start
    return {
        partition: (source.get(partition, 0), target.get(partition, 0))
        for partition in ours.partitions
        if recorded.required.get(partition, 0) == source.get(partition, 0)
    }


def _drained(
    snapshot: FlowSnapshot,
    pair: tuple[TopicSnapshot, TopicSnapshot],
    partition: int,
    later: ClusterSnapshot | None,
) -> bool:
    """Whether nothing was on its way when the target was observed."""
    end, _ = _ends(snapshot.flow, pair, partition)
    now = later.topics.get(pair[0].name) if later is not None else None
    return (
        now is not None
        and not another_topic(now.topic_id, pair[0].topic_id)
        and partition in now.partitions
        and now.partitions[partition].end_for(snapshot.flow.isolation("source")) == end
        and _position(snapshot, pair, partition) == end
    )
