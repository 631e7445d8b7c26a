"""Aligning topics whose timestamps say nothing, in one run: their cuts, and what these leave out.

A sync is good when both logs were looked at beyond it; the others wait for the next run. What lies
after the last cut is in flight: the next sync closes it, or the ends of both logs do when the
mirror is drained, which takes a second look at the source to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mirror_report.config.flow import Flow
from mirror_report.model.cluster import ClusterSnapshot, Positions, TopicSnapshot
from mirror_report.model.errors import ReportError
from mirror_report.model.mirror import OffsetSync
from mirror_report.parity.plan import cuts, strategies
from mirror_report.parity.plan.cuts import Cut, Track
from mirror_report.parity.plan.ranges import Range, Side
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.plan.topics import FlowPlan, TopicPlan
from mirror_report.parity.state.manifest import Memory, SideMemory, Unreadable, offsets

if TYPE_CHECKING:
    from mirror_report.parity.run import Run

STRATEGY = "offset_syncs"


@dataclass
class Aligned:
    """What a run knows of the cuts of one flow's topics.

    :param anew: topics (on the target) that have to be read anew, because their buckets are others.
    :param problem: why the syncs could not be read.
    """

    flow: Flow
    anew: set[str] = field(default_factory=set)
    problem: str | None = None


def align(
    run: Run,
    flow: Flow,
    baseline: Mapping[str, Any],
    source: ClusterSnapshot,
    positions: Positions,
    target: ClusterSnapshot,
) -> Aligned:
    """Bring the cuts of a flow's topics up to date.

    :param source: taken before ``positions``, ``target`` after them.
    """
    found = Aligned(flow)
    known = run.memory.alignments.setdefault(flow.name, {})
    chosen = _chosen(run.memory, flow, source, target)
    for origin in source.topics:
        topic = flow.target_topic(origin)
        compared = (flow.name, "source", origin) in run.memory.sides
        if compared and (topic in known) != (topic in chosen):
            found.anew.add(topic)
    for topic in [one for one in known if one not in chosen]:
        del known[topic]
    if not chosen:
        return found
    try:
        syncs, read = run.request.take.syncs(flow, run.memory.syncs.get(flow.name, {}))
        again = run.request.take.source(flow) if _open(flow, chosen, known, positions) else None
    except ReportError as error:
        found.problem = str(error)
        return found
    for topic, (ours, theirs) in chosen.items():
        state = known.get(topic)
        ids = [ours.topic_id, theirs.topic_id]
        renewed = state is not None and state["ids"] != ids
        if renewed:
            found.anew.add(topic)
        anew = renewed or (state is not None and bool(state["anew"]))
        begin = {} if anew else _exact_start(ours, theirs, baseline)
        tracks: dict[str, Any] = {}
        pending: dict[str, Any] = {}
        for partition in sorted(ours.partitions.keys() & theirs.partitions.keys()):
            ends = _ends(flow, ours, theirs, partition)
            some = _waiting(state, partition, syncs.get((ours.name, partition), []))
            track = _track(state, partition)
            if renewed:
                some = _since(track, some)
                track = Track()
            usable = [one for one in some if one.upstream <= ends[0] and one.downstream <= ends[1]]
            pending[str(partition)] = [list(one) for one in some if one not in usable]
            if not track.cuts and partition in begin:
                now_ms = min([source.taken_at_ms, *(one.label for one in usable[:1])]) - 1
                first = Cut(*begin[partition], now_ms)
                track = Track((first,), first)
            further = cuts.advance(
                track, usable, run.bucket_ms, repeats=flow.target_isolation != "read_committed"
            )
            if further is None:
                found.anew.add(topic)
                further = cuts.advance(Track(), usable[-1:], run.bucket_ms) or Track()
            drained = again is not None and _drained(flow, ours, partition, positions, again)
            if drained and further.cuts:
                further = cuts.closed(further, *ends, source.taken_at_ms)
            tracks[str(partition)] = further.dump()
        known[topic] = {
            "ids": ids, "anew": anew, "untimed": run.memory.untimed(flow.name, topic),
            "tracks": tracks, "pending": pending,
        }  # fmt: skip
    run.memory.syncs[flow.name] = read
    return found


def cap(run: Run, aligned: Aligned, plan: FlowPlan, source: ClusterSnapshot,
        target: ClusterSnapshot) -> None:  # fmt: skip
    """Let a plan read nothing but closed buckets, and those anew whose cuts are others."""
    flow = aligned.flow
    if aligned.problem is not None:
        plan.topics = [
            replace(one, unknown=f"target: {aligned.problem}") if one.strategy == STRATEGY else one
            for one in plan.topics
        ]
    for topic in plan.topics:
        if topic.topic in aligned.anew:
            run.memory.forget_numbers(flow.name, topic.topic)
            run.reopened.append((flow.name, topic.topic))
        for side, origin, snapshot in _sides(topic, source, target):
            key = (flow.name, side, origin)
            if topic.topic in aligned.anew:
                plan.drops.append(Drop(flow.name, side, origin))
            if key not in plan.begin or snapshot is None:
                continue
            begun = plan.begin[key]
            if topic.topic in aligned.anew:
                begun = SideMemory(begun.topic_id, begun.first, dict(begun.first))
                plan.begin[key] = begun
            if topic.topic in aligned.anew or topic.strategy == STRATEGY:
                bytes_ = next((one.record_bytes for one in plan.ranges
                               if (one.side, one.origin) == (side, origin)), None)  # fmt: skip
                plan.ranges = [
                    one for one in plan.ranges if (one.side, one.origin) != (side, origin)
                ]
                plan.ranges += _ranges(
                    run.memory, flow, topic, side, origin, begun, snapshot, bytes_
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


def outside(run: Run, plan: TopicPlan, source: ClusterSnapshot) -> Outside:
    """What the cuts of a topic leave out."""
    state = run.memory.alignments.get(plan.flow, {}).get(plan.topic)
    baseline = run.baselines.get(plan.flow) or {}
    straddling = after = 0
    unaligned: Counter[str] = Counter()
    for origin in plan.origins:
        topic = source.topics.get(origin)
        begun = run.memory.sides.get((plan.flow, "source", origin))
        floors = offsets(baseline.get("topics", {}).get(origin, {}).get("source", {}))
        for partition, log in (topic.partitions if topic else {}).items():
            first = (begun.first if begun else {}).get(partition, log.log_start)
            track = _track(state, partition)
            if not track.cuts:
                after += max(0, log.end - first)
                continue
            before = max(0, track.cuts[0].upstream - first)
            if floors.get(partition) == first and not (state and state["anew"]):
                straddling += before
            else:
                unaligned[str(partition)] += before
            after += max(0, log.end - track.cuts[-1].upstream)
    return Outside(straddling, unaligned.total(), after, +unaligned)


def labels(run: Run, known: Iterable[Unreadable]) -> dict[Unreadable, int]:
    """In which bucket records are, as far as their topics are cut by offsets."""
    found = {}
    for one in known:
        state = run.memory.alignments.get(one.flow, {}).get(one.topic)
        track = _track(state, one.partition)
        for span in cuts.spans(track.cuts, one.side, one.offset, one.offset + 1):
            found[one] = span.label
    return found


def spans(run: Run, wanted: list[Range] | None = None) -> list[dict[str, Any]]:
    """Rows of :data:`frames.align.SPANS_SCHEMA`.

    :param wanted: only what touches these ranges; ``None``: all there are.
    """
    rows: list[dict[str, Any]] = []
    for look in run.looks:
        for topic in look.plan.topics:
            if topic.strategy != STRATEGY:
                continue
            state = run.memory.alignments.get(topic.flow, {}).get(topic.topic, {"tracks": {}})
            for number, plain in state["tracks"].items():
                track = Track.load(plain)
                for side, origin in (*(("source", one) for one in topic.origins),
                                     ("target", topic.topic)):  # fmt: skip
                    rows += _spans_of(topic.flow, side, origin, int(number), track, wanted)
    return rows


def _spans_of(
    flow: str, side: str, origin: str, partition: int, track: Track, wanted: list[Range] | None
) -> list[dict[str, Any]]:
    where = (flow, side, origin, partition)
    bounds = [(0, 2**62)]
    if wanted is not None:
        bounds = [
            (one.start, one.end)
            for one in wanted
            if (one.flow, one.side, one.origin, one.partition) == where
        ]
    found = {one for start, end in bounds for one in cuts.spans(track.cuts, side, start, end)}
    # A log without spans is cut too: an empty one says so.
    some = sorted(found) or [cuts.Span(0, 0, 0)] * bool(bounds)
    return [
        {
            "flow": flow, "side": side, "origin": origin, "partition": partition,
            "span_start": one.start, "span_end": one.end, "label": one.label,
        }
        for one in some
    ]  # fmt: skip


def _chosen(
    memory: Memory, flow: Flow, source: ClusterSnapshot, target: ClusterSnapshot
) -> dict[str, tuple[TopicSnapshot, TopicSnapshot]]:
    """Topics to align: name on the target -> both of its sides."""
    found = {}
    for name, ours in source.topics.items():
        theirs = target.topics.get(flow.target_topic(name))
        if theirs is None or not flow.matches(name):
            continue
        untimed = memory.untimed(flow.name, theirs.name)
        if strategies.choose(flow, [ours], theirs, untimed=untimed).strategy == STRATEGY:
            found[theirs.name] = (ours, theirs)
    return found


def _ends(
    flow: Flow, ours: TopicSnapshot, theirs: TopicSnapshot, partition: int
) -> tuple[int, int]:
    return (
        ours.partitions[partition].end_for(flow.isolation("source")),
        theirs.partitions[partition].end_for(flow.isolation("target")),
    )


def _waiting(state: Mapping[str, Any] | None, partition: int, fresh: list[OffsetSync]) -> list[Cut]:
    """Syncs not used yet, in their order."""
    before = state["pending"].get(str(partition), []) if state else []
    new = [Cut(one.upstream, one.downstream, one.timestamp_ms) for one in fresh]
    return [*(Cut(*one) for one in before), *new]


def _since(track: Track, syncs: list[Cut]) -> list[Cut]:
    """Syncs of a topic made anew: from the first on that does not go on from the former ones."""
    if track.seen is None:
        return syncs
    for number, one in enumerate(syncs):
        if one.upstream < track.seen.upstream or one.downstream < track.seen.downstream:
            return syncs[number:]
    return []


def _exact_start(
    ours: TopicSnapshot, theirs: TopicSnapshot, baseline: Mapping[str, Any]
) -> dict[int, tuple[int, int]]:
    """Where both logs begin alike, by partition: nothing from there on was mirrored before."""
    recorded = baseline.get("topics", {}).get(ours.name)
    if recorded is None:
        whole = bool(baseline) or all(
            log.log_start == 0 for one in (ours, theirs) for log in one.partitions.values()
        )
        return dict.fromkeys(ours.partitions, (0, 0)) if whole else {}
    if recorded["source_id"] not in (None, ours.topic_id):
        return {}
    if recorded["target_id"] not in (None, theirs.topic_id):
        return {}
    here, there = offsets(recorded["source"]), offsets(recorded["target"])
    required = offsets(recorded["required"])
    return {
        partition: (here.get(partition, 0), there.get(partition, 0))
        for partition in ours.partitions
        if required.get(partition, 0) == here.get(partition, 0)
    }


def _track(state: Mapping[str, Any] | None, partition: int) -> Track:
    plain = state["tracks"].get(str(partition)) if state else None
    return Track.load(plain) if plain else Track()


def _open(
    flow: Flow,
    chosen: Mapping[str, tuple[TopicSnapshot, TopicSnapshot]],
    known: Mapping[str, Any],
    positions: Positions,
) -> bool:
    """Whether something mirrored lies after the last cut of a mirror that seems to be drained."""
    for topic, (ours, theirs) in chosen.items():
        for partition in ours.partitions.keys() & theirs.partitions.keys():
            ends = _ends(flow, ours, theirs, partition)
            state = known.get(topic)
            track = _track(state, partition)
            last = track.cuts[-1][:2] if track.cuts else (0, 0)
            at_end = positions.get(ours.name, {}).get(partition) == ends[0]
            if at_end and last != ends:
                return True
    return False


def _drained(
    flow: Flow, ours: TopicSnapshot, partition: int, positions: Positions, again: ClusterSnapshot
) -> bool:
    """Whether nothing was on its way when the target was looked at."""
    end = ours.partitions[partition].end_for(flow.isolation("source"))
    now = again.topics.get(ours.name)
    return (
        now is not None
        and now.topic_id == ours.topic_id
        and partition in now.partitions
        and now.partitions[partition].end_for(flow.isolation("source")) == end
        and positions.get(ours.name, {}).get(partition) == end
    )


def _sides(
    topic: TopicPlan, source: ClusterSnapshot, target: ClusterSnapshot
) -> list[tuple[Side, str, TopicSnapshot | None]]:
    sources: list[tuple[Side, str, TopicSnapshot | None]] = [
        ("source", one, source.topics.get(one)) for one in topic.origins
    ]
    return [*sources, ("target", topic.topic, target.topics.get(topic.topic))]


def _ranges(
    memory: Memory,
    flow: Flow,
    topic: TopicPlan,
    side: Side,
    origin: str,
    begun: SideMemory,
    snapshot: TopicSnapshot,
    record_bytes: float | None,
) -> list[Range]:
    state = memory.alignments.get(flow.name, {}).get(topic.topic)
    at = 0 if side == "source" else 1
    found = []
    for partition, log in sorted(snapshot.partitions.items()):
        start = max(begun.next.get(partition, log.log_start), log.log_start)
        end = log.end_for(flow.isolation(side))
        if topic.strategy == STRATEGY:
            track = _track(state, partition)
            if not track.cuts:
                continue
            start, end = max(start, track.cuts[0][at]), min(end, track.cuts[-1][at])
        if start < end:
            one = Range(flow.name, side, origin, topic.topic, partition, start, end)
            found.append(one if record_bytes is None else replace(one, record_bytes=record_bytes))
    return found
