"""What consumer groups would lose or read again if they moved to the target now: no I/O."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_report.checks.elections import SLACK_MS, Elections
from mirror_report.checks.translated_offsets import Image, holds, translate
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

# Of a log that was not observed.
UNKNOWN = Elections(-1, -SLACK_MS - 1)

# Offsets read on either side of where a record should be, and before an end.
AROUND = 20

# Group, topic and partition (one text) -> its checkpoint, and since when (ms) the group is past it.
Late = dict[str, tuple[list[int] | None, int]]


@dataclass(frozen=True)
class Scene:
    """Everything that decides how the groups of one flow stand.

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
        """A partition of the source and its copy, as far as they exist."""
        return (
            self.source.log(topic, number),
            self.target.log(self.flow.target_topic(topic), number),
        )

    def through(self, topic: str, number: int) -> bool:
        """Whether the mirror copied all of a partition, into a topic that no other flow feeds."""
        log = self.source.log(topic, number)
        through = log is not None and self.drained.get((topic, number)) == log.end
        return through and topic not in self.shared

    def checkpoint(self, group: str, topic: str, number: int) -> OffsetSync | None:
        """What the mirror last wrote of a group, if that is known."""
        return (self.translation.checkpoints or {}).get((group, topic, number))

    def image(self, group: str, topic: str, number: int, offset: int) -> Image | None:
        """Where an offset of the source is on the target; ``None``: not all is known of it."""
        log, copy = self.partitions(topic, number)
        if log is None or copy is None or offset > log.end or self.translation.syncs is None:
            return None
        offset = max(offset, log.log_start)
        ours = self.source_elections.get((topic, number), UNKNOWN)
        theirs = self.target_elections.get((self.flow.target_topic(topic), number), UNKNOWN)
        syncs = [
            sync
            for sync in self.translation.syncs.get((topic, number), ())
            if ours.allow(sync.upstream, sync.timestamp_ms)
            and theirs.allow(sync.downstream, sync.timestamp_ms)
        ]
        proves_from_ms = max(ours.proves_from_ms, theirs.proves_from_ms)
        image = translate(offset, syncs, log, copy, proves_from_ms)
        if offset == log.end and self.through(topic, number):
            image = image.at_end(copy)
        if image.exact:
            return image
        proof = self.proofs.get((group, topic, number))
        if proof is not None:
            return image.proved(proof)
        if (
            (checkpoint := self.checkpoint(group, topic, number)) is None
            or checkpoint.upstream > offset
            # It is of what comes before its offsets.
            or not ours.allow(checkpoint.upstream - 1, checkpoint.timestamp_ms)
            or not theirs.allow(checkpoint.downstream - 1, checkpoint.timestamp_ms)
            or not holds(checkpoint, syncs, copy)
        ):
            return image
        # The mirror may have had nearer syncs when it wrote this, and never goes too far.
        return image.at_least(checkpoint.downstream)


def committed_offsets(
    flow: Flow, groups: Iterable[GroupOffsets]
) -> list[tuple[GroupOffsets, str, int, int]]:
    """Group, topic, partition and offset on the source of all that the flow mirrors."""
    return [
        (group, topic, number, offset)
        for group in groups
        for topic, offsets in sorted(group.source.items())
        if flow.matches(topic)
        for number, offset in sorted(offsets.items())
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
    probes: list[tuple[bool, GroupPlace, Probe]] = []
    for group, topic, number, offset in committed_offsets(scene.flow, groups):
        image = scene.image(group.group, topic, number, offset)
        if image is None or image.exact or group.target_state not in (*INACTIVE, None):
            continue
        if (probe := _probe(scene, image, topic, number, offset)) is not None:
            target = group.target.get(scene.flow.target_topic(topic), {}).get(number)
            within = target is None or target <= (image.offset or 0)
            probes.append((within, (group.group, topic, number), probe))
    return {place: probe for _, place, probe in sorted(probes, key=lambda entry: entry[:2])}


def _probe(scene: Scene, image: Image, topic: str, number: int, offset: int) -> Probe | None:
    log, copy = scene.partitions(topic, number)
    if log is None or copy is None:
        return None
    offset, least = max(offset, log.log_start), max(image.offset or 0, copy.log_start)
    if scene.through(topic, number) and offset >= log.end - AROUND:
        # A group that reads committed records stays before the markers at the end.
        return Probe(
            offset,
            (max(log.log_start, log.end - AROUND), log.end),
            (max(least, copy.end - AROUND), copy.end),
            copy.end,
        )
    at = image.candidate
    if offset >= log.end or at is None or at >= copy.end:
        return None
    return Probe(
        offset,
        (offset, min(log.end, offset + AROUND)),
        (max(least, at - AROUND), min(copy.end, at + AROUND)),
        None,
    )


def parities(scene: Scene, groups: Sequence[GroupOffsets]) -> tuple[list[GroupParity], Late]:
    """Rows of the groups, and what the next report has to know."""
    rows: dict[str, list[tuple[GroupPartition, bool | None]]] = {}
    late: Late = {}
    for group, topic, number, offset in committed_offsets(scene.flow, groups):
        image = scene.image(group.group, topic, number, offset)
        checkpoint = scene.checkpoint(group.group, topic, number)
        target = group.target.get(scene.flow.target_topic(topic), {}).get(number)
        key = f"{group.group} {topic} {number}"
        if image is not None and _behind(scene, image, offset, checkpoint, target):
            written = [checkpoint.upstream, checkpoint.downstream] if checkpoint else None
            former = scene.late.get(key)
            late[key] = (written, former[1] if former and former[0] == written else scene.now_ms)
        waited_ms = scene.now_ms - late[key][1] if key in late else 0
        rows.setdefault(group.group, []).append(
            _partition(
                scene, group, topic, number, image,
                stale=waited_ms > INTERVALS * scene.flow.checkpoint_seconds * 1000,
            )
        )  # fmt: skip
    return [_group(scene.flow, name, partitions) for name, partitions in rows.items()], late


def _behind(
    scene: Scene, image: Image, offset: int, checkpoint: OffsetSync | None, target: int | None
) -> bool:
    """Whether the mirror has a checkpoint to write and has not written it yet.

    It writes a new checkpoint only where that moves the group on the target.
    """
    if image.translated is None or scene.translation.checkpoints is None:
        return False
    if checkpoint is None or target is None:
        return True
    return checkpoint.upstream < offset and checkpoint.downstream < image.translated


def _partition(
    scene: Scene,
    group: GroupOffsets,
    topic: str,
    number: int,
    image: Image | None,
    *,
    stale: bool,
) -> tuple[GroupPartition, bool | None]:
    """One row, and whether the group is ready there; ``None``: it is at work on the target."""
    target_topic = scene.flow.target_topic(topic)
    checkpoint = scene.checkpoint(group.group, topic, number)
    target = group.target.get(target_topic, {}).get(number)
    place = image.offset if image else None
    active = group.target_state not in (*INACTIVE, None)
    reread = skip = reread_most = skip_most = None
    if image is not None and place is not None and target is not None and not active:
        copy = scene.target.log(target_topic, number)
        # What has left the target's log cannot be read there any more.
        begins = max(target, copy.log_start if copy else 0)
        reread, skip = max(0, place - begins), _skip(image, place, begins)
        reread_most = max(0, (place if image.exact else image.at_most) - begins)
        skip_most = max(0, begins - place)
    ready = skip == 0 and (scene.bound is None or (reread_most or 0) <= scene.bound)
    reasons: list[tuple[bool, GroupState]] = [
        (active, "active_on_target"),
        (image is None, "unknown"),
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
        topic, target_topic, number, state, group.source[topic][number], place,
        image is not None and image.exact,
        (checkpoint.upstream, checkpoint.downstream) if checkpoint else None,
        max(0.0, (scene.now_ms - checkpoint.timestamp_ms) / 1000) if checkpoint else None,
        target, reread, skip,
        image.estimate if image and not image.exact else None, reread_most, skip_most,
    )  # fmt: skip
    return row, None if active else ready


def _skip(image: Image, place: int, begins: int) -> int | None:
    """Records that would never be read; where the place is not known exactly, at least so many."""
    if begins <= place:
        return 0
    if image.exact:
        return begins - place
    return begins - image.at_most if begins > image.at_most else None


def _group(
    flow: Flow, group: str, rows: Sequence[tuple[GroupPartition, bool | None]]
) -> GroupParity:
    partitions = tuple(row for row, _ in rows)
    ready = [is_ready for _, is_ready in rows if is_ready is not None]
    # A group at work on the target is not compared; one that has read nothing can miss nothing.
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
        sum(ready) / len(ready) if ready else None,
        _least([row.reread for row in counted]),
        # Partitions that lose nothing do not stand for the others.
        skip if skip or all(row.skip is not None for row in counted) else None,
        partitions,
        _most([row.reread_at_most for row in counted]),
        _most([row.skip_at_most for row in counted]),
    )


def _least(numbers: Sequence[int | None]) -> int | None:
    """Sum of what is known; ``None``: nothing is."""
    return None if set(numbers) <= {None} else sum(number or 0 for number in numbers)


def _most(numbers: Sequence[int | None]) -> int | None:
    """Sum, if all of them are known."""
    return None if not numbers or None in numbers else sum(number or 0 for number in numbers)
