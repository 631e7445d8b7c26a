"""Up to where a backlog can be compared: below it the target must hold what was mirrored.

A run takes the committed positions first and the ends of the target afterwards. Whatever the source
holds below those positions is on the target below those ends, also when a later run comes to read
it. So runs that cannot read everything keep such pairs, called boundaries, and as soon as the
target was read up to one of them, what was read of the source below it is compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mirror_report.config import Budget
from mirror_report.parity import Key, grouped, thinned
from mirror_report.parity.plan.ranges import Range, Spent, split, total_bytes, total_records
from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import (
    SIDES,
    Boundary,
    Manifest,
    TopicKey,
    changes,
    fed_by,
    topic_value,
)

# The rest of a budget that does not suffice is for confirming what differs.
READING_SHARE = 0.9
# Per topic (:func:`parity.thinned`).
MOST = 32


def reached(manifest: Manifest, topic: TopicKey) -> Boundary | None:
    """The newest one up to which the target was read."""
    flow, name = topic
    begun = manifest.sides.get((flow, "target", name))
    following = begun.next if begun is not None else {}
    return next(
        (
            boundary
            for boundary in reversed(topic_value(manifest.boundaries, topic, ()))
            if all(following.get(partition, -1) >= end
                   for partition, end in boundary.target.items())
        ),
        None,
    )  # fmt: skip


def note(manifest: Manifest, plan: RunPlan) -> Manifest:
    """Keep the boundaries of this run; older ones than the one that is reached say no more."""
    for topic in plan.compared:
        kept = list(topic_value(manifest.boundaries, topic.key, ()))
        if (at := reached(manifest, topic.key)) is not None:
            kept = kept[kept.index(at) :]
        now = observed(plan.snapshots, topic)
        if now is not None and now not in kept:
            kept.append(now)
        manifest = _with(manifest, topic.key, thinned(kept, MOST))
    return manifest


def without_read(manifest: Manifest, plan: RunPlan) -> Manifest:
    """Forget those of topics that were read to their ends."""
    for topic in plan.compared:
        if topic.key not in plan.unread:
            manifest = _with(manifest, topic.key, [])
    return manifest


def _with(manifest: Manifest, topic: TopicKey, kept: Sequence[Boundary]) -> Manifest:
    if tuple(kept) == topic_value(manifest.boundaries, topic, ()):
        return manifest
    changed = changes.with_topic(manifest.boundaries, *topic, tuple(kept))
    return replace(manifest, boundaries=changed)


def observed(
    snapshots: FlowSnapshots, topic: TopicPlan, *, readable: bool = True
) -> Boundary | None:
    """The boundary of some snapshots; ``None``: not everything that feeds a topic was observed.

    :param readable: up to what can be read of the target, not up to what is on it.
    """
    source: dict[str, Mapping[int, int]] = {}
    target: dict[int, int] = {}
    for origin in topic.origins:
        via, name = fed_by(topic.flow, origin)
        snapshot = snapshots.get(via)
        on_target = find(snapshots, via, "target", topic.topic)
        if snapshot is None or on_target is None:
            return None
        source[origin] = dict(snapshot.positions.get(name, {}))
        # Of several flows, each end that was taken after the positions of its own.
        for partition, log in on_target.partitions.items():
            end = log.end_for(snapshot.flow.target_isolation) if readable else log.end
            target[partition] = max(end, target.get(partition, 0))
    return Boundary(source, target)


def within_budget(
    ranges: Sequence[Range],
    budget: Budget,
    boundaries: Mapping[TopicKey, Sequence[Boundary]] = MappingProxyType({}),
) -> tuple[list[Range], list[Range]]:
    """Ranges to read now and to read later: of each topic the same share, oldest records first.

    From boundary to boundary the target of a topic goes first, so that what is read of its source
    can be compared at once.

    :returns: (now, backlog); of each topic at least one record is read, so every run gets on.
    """
    share = Spent().share_of(budget, ranges)
    if share == 1:
        return list(ranges), []
    now: list[Range] = []
    later: list[Range] = []
    for key, parts in grouped(ranges, lambda part: part.topic_key).items():
        ends = _ends(parts, share * READING_SHARE, boundaries.get(key, ()))
        for whole in parts:
            end = ends.get((*whole.key, whole.partition), whole.start)
            now += [replace(whole, end=end)] if end > whole.start else []
            later += [replace(whole, start=end)] if end < whole.end else []
    return now, later


def _ends(ranges: Sequence[Range], share: float, boundaries: Sequence[Boundary]) -> dict[Key, int]:
    """Up to where to read a share of a topic; partitions of which nothing is read are missing."""
    room_bytes, room_records = share * total_bytes(ranges), share * total_records(ranges)
    ends: dict[Key, int] = {}
    for step in _steps(ranges, boundaries):
        fraction = min(1.0, room_bytes / total_bytes(step), room_records / total_records(step))
        read, _ = split(step, fraction)
        ends |= {(*part.key, part.partition): part.end for part in read}
        room_bytes -= total_bytes(read)
        room_records -= total_records(read)
        if fraction < 1 or room_records <= 0:
            break
    return ends


def _end(boundary: Boundary, part: Range) -> int:
    """Up to where a boundary asks for a range; of one that it does not know, for nothing."""
    ends = boundary.target if part.side == "target" else boundary.source.get(part.origin, {})
    return ends.get(part.partition, 0)


def _steps(ranges: Sequence[Range], boundaries: Sequence[Boundary]) -> Iterator[list[Range]]:
    """Ranges of one topic in the order in which to read them."""
    left = list(ranges)
    for boundary in (*boundaries, None):
        for side in SIDES[::-1]:
            step = []
            for number, part in enumerate(left):
                end = part.end if boundary is None else min(part.end, _end(boundary, part))
                if part.side == side and end > part.start:
                    step.append(replace(part, end=end))
                    left[number] = replace(part, start=end)
            if step:
                yield step
