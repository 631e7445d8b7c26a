"""What consumer groups would lose or read again if they moved to the target now: no I/O."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_report.checks.elections import SLACK_MS, Elections
from mirror_report.checks.translated_offsets import Image, holds, image
from mirror_report.config import Flow
from mirror_report.model import (
    ClusterSnapshot,
    GroupOffsets,
    GroupParity,
    GroupPartition,
    GroupPlace,
    GroupState,
    OffsetSync,
    PartitionSnapshot,
    Place,
    Translation,
)

INACTIVE = ("Empty", "Dead")
# A checkpoint is stale when it did not follow its group for so many of the mirror's intervals.
INTERVALS = 3
WORST: tuple[GroupState, ...] = (
    "skip", "unknown", "stale", "unmapped", "reread", "not_synced", "active_on_target", "ready",
)  # fmt: skip

# Of a log that is not looked at.
UNKNOWN = Elections(-1, -SLACK_MS - 1)

# Offsets read on either side of where a record should be, and before an end.
AROUND = 20

# Group, topic and partition (one text) -> its checkpoint, and since when (ms) the group is past it.
Late = dict[str, tuple[list[int] | None, int]]


@dataclass(frozen=True)
class Scene:
    """Everything the groups of one flow are judged by.

    :param source: taken after ``target``, and both after the groups' offsets; ``drained``: source
        partitions the mirror was through with before -> their log end then.
    :param shared: topics of the source whose copy others feed too: what those wrote lies between.
    :param proofs: places found by comparing records, instead of by syncs.
    :param source_elections: of the source's logs, ``target_elections``: of the target's.
    :param bound: records that may be read again in one partition; ``None``: any number.
    :param late: of the last report.
    """

    flow: Flow
    source: ClusterSnapshot
    target: ClusterSnapshot
    translation: Translation
    drained: Mapping[Place, int] = field(default_factory=dict)
    shared: Collection[str] = ()
    proofs: Mapping[GroupPlace, int] = field(default_factory=dict)
    source_elections: Mapping[Place, Elections] = field(default_factory=dict)
    target_elections: Mapping[Place, Elections] = field(default_factory=dict)
    bound: int | None = None
    late: Late = field(default_factory=dict)

    @property
    def now_ms(self) -> int:
        """When the source was observed."""
        return self.source.taken_at_ms

    def partitions(
        self, topic: str, number: int
    ) -> tuple[PartitionSnapshot | None, PartitionSnapshot | None]:
        """A partition of the source and its copy, as far as they are there."""
        ours = self.source.topics.get(topic)
        theirs = self.target.topics.get(self.flow.target_topic(topic))
        return (
            ours.partitions.get(number) if ours else None,
            theirs.partitions.get(number) if theirs else None,
        )

    def through(self, topic: str, number: int) -> bool:
        """Whether the mirror copied all of a partition, into a topic that no other flow feeds."""
        here, _ = self.partitions(topic, number)
        through = here is not None and self.drained.get((topic, number)) == here.end
        return through and topic not in self.shared

    def checkpoint(self, group: str, topic: str, number: int) -> OffsetSync | None:
        """What the mirror last wrote of a group, if that is known."""
        return (self.translation.checkpoints or {}).get((group, topic, number))

    def image(self, group: str, topic: str, number: int, offset: int) -> Image | None:
        """Where an offset of the source is on the target; ``None``: not all is known of it."""
        here, there = self.partitions(topic, number)
        known = self.translation.syncs
        if here is None or there is None or offset > here.end or known is None:
            return None
        offset = max(offset, here.log_start)
        ours = self.source_elections.get((topic, number), UNKNOWN)
        theirs = self.target_elections.get((self.flow.target_topic(topic), number), UNKNOWN)
        syncs = [
            sync
            for sync in known.get((topic, number), ())
            if ours.allow(sync.upstream, sync.timestamp_ms)
            and theirs.allow(sync.downstream, sync.timestamp_ms)
        ]
        proves_from_ms = max(ours.proves_from_ms, theirs.proves_from_ms)
        found = image(offset, syncs, here, there, proves_from_ms)
        if offset == here.end and self.through(topic, number):
            found = found.at_end(there)
        if found.exact:
            return found
        proof = self.proofs.get((group, topic, number))
        if proof is not None:
            return found.proved(proof)
        if (
            (checkpoint := self.checkpoint(group, topic, number)) is None
            or checkpoint.upstream > offset
            # It is of what comes before its offsets.
            or not ours.allow(checkpoint.upstream - 1, checkpoint.timestamp_ms)
            or not theirs.allow(checkpoint.downstream - 1, checkpoint.timestamp_ms)
            or not holds(checkpoint, syncs, there)
        ):
            return found
        # The mirror may have known nearer syncs when it wrote this, and never goes too far.
        return found.at_least(checkpoint.downstream)


def places(flow: Flow, groups: Iterable[GroupOffsets]) -> list[tuple[GroupOffsets, str, int, int]]:
    """Group, topic, partition and offset on the source of all that the flow mirrors."""
    return [
        (group, topic, number, offset)
        for group in groups
        for topic, some in sorted(group.source.items())
        if flow.matches(topic)
        for number, offset in sorted(some.items())
    ]


@dataclass(frozen=True)
class Probe:
    """Which records to compare to find one place.

    :param offset: what the group has committed on the source, within the log.
    :param ours: first offset on the source and the one behind the last; ``theirs``: on the target.
    :param end: where the group would go on if no record is left for it; ``None``: not known.
    """

    offset: int
    ours: tuple[int, int]
    theirs: tuple[int, int]
    end: int | None


def unproved(scene: Scene, groups: Iterable[GroupOffsets]) -> dict[GroupPlace, Probe]:
    """Places that comparing records may find.

    Those come first where the target's position may lie too far. A group at work on the target has
    positions of its own there.
    """
    found: list[tuple[int, GroupPlace, Probe]] = []
    for group, topic, number, offset in places(scene.flow, groups):
        known = scene.image(group.group, topic, number, offset)
        if known is None or known.exact or group.target_state not in (*INACTIVE, None):
            continue
        if (probe := _probe(scene, known, topic, number, offset)) is None:
            continue
        target = group.target.get(scene.flow.target_topic(topic), {}).get(number)
        beyond = target is not None and target > (known.offset or 0)
        found.append((0 if beyond else 1, (group.group, topic, number), probe))
    return {place: probe for _, place, probe in sorted(found, key=lambda item: item[:2])}


def _probe(scene: Scene, known: Image, topic: str, number: int, offset: int) -> Probe | None:
    here, there = scene.partitions(topic, number)
    if here is None or there is None:
        return None
    offset, least = max(offset, here.log_start), max(known.offset or 0, there.log_start)
    if scene.through(topic, number) and offset >= here.end - AROUND:
        # A group that reads committed records stays before the markers at the end.
        return Probe(
            offset,
            (max(here.log_start, here.end - AROUND), here.end),
            (max(least, there.end - AROUND), there.end),
            there.end,
        )
    at = known.candidate
    if offset >= here.end or at is None or at >= there.end:
        return None
    return Probe(
        offset,
        (offset, min(here.end, offset + AROUND)),
        (max(least, at - AROUND), min(there.end, at + AROUND)),
        None,
    )


def parities(scene: Scene, groups: Sequence[GroupOffsets]) -> tuple[list[GroupParity], Late]:
    """Rows of the groups, and what the next report has to know."""
    rows: dict[str, list[tuple[GroupPartition, bool | None]]] = {}
    late: Late = {}
    for group, topic, number, offset in places(scene.flow, groups):
        known = scene.image(group.group, topic, number, offset)
        checkpoint = scene.checkpoint(group.group, topic, number)
        target = group.target.get(scene.flow.target_topic(topic), {}).get(number)
        key = f"{group.group} {topic} {number}"
        if known is not None and _behind(scene, known, offset, checkpoint, target):
            said = [checkpoint.upstream, checkpoint.downstream] if checkpoint else None
            former = scene.late.get(key)
            late[key] = (said, former[1] if former and former[0] == said else scene.now_ms)
        waited_ms = scene.now_ms - late[key][1] if key in late else 0
        rows.setdefault(group.group, []).append(
            _partition(
                scene, group, topic, number, known,
                stale=waited_ms > INTERVALS * scene.flow.checkpoint_seconds * 1000,
            )
        )  # fmt: skip
    return [_group(scene.flow, name, some) for name, some in rows.items()], late


def _behind(
    scene: Scene, known: Image, offset: int, checkpoint: OffsetSync | None, target: int | None
) -> bool:
    """Whether the mirror has a checkpoint to write and has not written it yet.

    It writes a new checkpoint only where that moves the group on the target.
    """
    if known.translated is None or scene.translation.checkpoints is None:
        return False
    if checkpoint is None or target is None:
        return True
    return checkpoint.upstream < offset and checkpoint.downstream < known.translated


def _partition(
    scene: Scene,
    group: GroupOffsets,
    topic: str,
    number: int,
    known: Image | None,
    *,
    stale: bool,
) -> tuple[GroupPartition, bool | None]:
    """One row, and whether the group is ready there; ``None``: it is not judged."""
    there, checkpoint = scene.flow.target_topic(topic), scene.checkpoint(group.group, topic, number)
    target = group.target.get(there, {}).get(number)
    place = known.offset if known else None
    active = group.target_state not in (*INACTIVE, None)
    reread = skip = reread_most = skip_most = None
    if known is not None and place is not None and target is not None and not active:
        _, partition = scene.partitions(topic, number)
        # What has left the target's log cannot be read there any more.
        begins = max(target, partition.log_start if partition else 0)
        reread, skip = max(0, place - begins), _skip(known, place, begins)
        reread_most = max(0, (place if known.exact else known.at_most) - begins)
        skip_most = max(0, begins - place)
    ready = skip == 0 and (scene.bound is None or (reread_most or 0) <= scene.bound)
    reasons: list[tuple[bool, GroupState]] = [
        (active, "active_on_target"),
        (known is None, "unknown"),
        (place is None, "unmapped"),
        (stale and target is None, "stale"),
        (target is None, "not_synced"),
        (skip is None, "unknown"),
        (bool(skip), "skip"),
        (stale, "stale"),
        (not ready, "reread"),
        (True, "ready"),
    ]
    state = next(state for holds, state in reasons if holds)
    row = GroupPartition(
        topic, there, number, state, group.source[topic][number], place,
        known is not None and known.exact,
        (checkpoint.upstream, checkpoint.downstream) if checkpoint else None,
        max(0.0, (scene.now_ms - checkpoint.timestamp_ms) / 1000) if checkpoint else None,
        target, reread, skip,
        known.estimate if known and not known.exact else None, reread_most, skip_most,
    )  # fmt: skip
    return row, None if active else ready


def _skip(known: Image, place: int, begins: int) -> int | None:
    """Records that would never be read; where the place is not known exactly, at least so many."""
    if begins <= place:
        return 0
    if known.exact:
        return begins - place
    return begins - known.at_most if begins > known.at_most else None


def _group(
    flow: Flow, group: str, rows: Sequence[tuple[GroupPartition, bool | None]]
) -> GroupParity:
    partitions = tuple(row for row, _ in rows)
    judged = [ready for _, ready in rows if ready is not None]
    # Of a group at work there nothing is asked, and one that has read nothing can miss nothing.
    counted = [
        row
        for row in partitions
        if row.state != "active_on_target" and (row.target_offset is not None or row.source_offset)
    ]
    skip = _least([row.skip for row in counted])
    return GroupParity(
        flow.name,
        group,
        min((row.state for row in partitions), key=WORST.index),
        sum(judged) / len(judged) if judged else None,
        _least([row.reread for row in counted]),
        # That some partitions lose nothing says nothing of the others.
        skip if skip or all(row.skip is not None for row in counted) else None,
        partitions,
        _most([row.reread_at_most for row in counted]),
        _most([row.skip_at_most for row in counted]),
    )


def _least(some: Sequence[int | None]) -> int | None:
    """Sum of what is known; ``None``: nothing is."""
    known = [each for each in some if each is not None]
    return sum(known) if known else None


def _most(some: Sequence[int | None]) -> int | None:
    """Sum, if all of them are known."""
    known = [each for each in some if each is not None]
    return sum(known) if some and len(known) == len(some) else None
