"""Buckets that have not closed yet: which are followed, since when, and what is not counted.

A bucket is closed when it is due and both sides are equal. One that stays open for long is counted
by slices of offsets (:mod:`plan.open_slices`). Of a topic with very many of them not all are
followed; what lies in the others is not counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from typing import Any, Self

from mirror_report.parity import grouped
from mirror_report.parity.plan import offset_syncs
from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import Manifest, TopicKey, changes, topic_value

MINUTE_MS = 60_000

# (side, topic there, partition) -> offset.
LogOffsets = Mapping[tuple[str, str, int], int]


@dataclass(frozen=True)
class OpenBucket:
    """A bucket that was open at the last comparison.

    :param since_ms: when it was first seen open.
    :param below: of the source, records below the committed position, if it is not due; at most.
    :param sliced: slices have counted it, up to where they have of its topic; ``begun``: a part of
        it, up to where they have of those of its topic that are begun.
    :param judged: since the last comparison they have counted both sides up to their ends.
    :param gone: records that left the source before slices counted them, at most.
    :param from_first: slices begin with its first record: when it was closed last is unknown.
    """

    lane: int
    bucket: int
    since_ms: int
    below: int = 0
    sliced: bool = False
    judged: bool = False
    begun: bool = False
    gone: int = 0
    from_first: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """Its name within its topic."""
        return self.lane, self.bucket

    @property
    def unjudged(self) -> int:
        """Records below the position that slices have not counted, at most."""
        return min(self.gone, self.below) if self.judged else self.below

    def is_late(self, now_ms: int, open_minutes: float) -> bool:
        """Whether slices have to count it."""
        return self.below > 0 and now_ms - self.since_ms >= open_minutes * MINUTE_MS

    def may_lie_in(self, partition: int) -> bool:
        """Whether a partition of the target may hold records of it."""
        return self.lane < 0 or self.lane == partition


@dataclass(frozen=True)
class OpenTopic:
    """The open buckets of a topic.

    :param buckets: those that are followed.
    :param whole: whether these are all.
    :param compared: how far both sides had been read when they were compared last.
    :param begins: when buckets were first seen open -> how far both sides had been read before;
        without an entry: not known.
    :param counted: how far slices have counted those that are sliced; ``partly``: those that are
        begun.
    :param more: records below the position in buckets that are not followed, at most.
    :param more_since_ms: since when there are such buckets.
    """

    buckets: tuple[OpenBucket, ...] = ()
    whole: bool = False
    compared: LogOffsets = field(default_factory=dict)
    begins: Mapping[int, LogOffsets] = field(default_factory=dict)
    counted: LogOffsets = field(default_factory=dict)
    partly: LogOffsets = field(default_factory=dict)
    more: int = 0
    more_since_ms: int | None = None

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        return cls(
            tuple(OpenBucket(**bucket) for bucket in plain["buckets"]),
            plain["whole"],
            _offsets(plain["compared"]),
            {int(since): _offsets(offsets) for since, offsets in plain["begins"].items()},
            _offsets(plain["counted"]),
            # Kept by later releases only.
            _offsets(plain.get("partly", ())),
            plain.get("more", 0),
            plain.get("more_since_ms"),
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "buckets": [asdict(bucket) for bucket in self.buckets],
            "whole": self.whole,
            "compared": _plain(self.compared),
            "begins": {str(since): _plain(offsets) for since, offsets in self.begins.items()},
            "counted": _plain(self.counted),
            "partly": _plain(self.partly),
            "more": self.more,
            "more_since_ms": self.more_since_ms,
        }


def of_topic(manifest: Manifest, topic: TopicKey) -> OpenTopic:
    """The open buckets of a topic; none before it was compared."""
    plain = topic_value(manifest.open_buckets, topic, None)
    return OpenTopic.load(plain) if plain else OpenTopic()


def read_since(manifest: Manifest, topic: TopicPlan) -> int:
    """Offsets of a topic that were read since it was compared last, of both sides."""
    compared = of_topic(manifest, topic.key).compared
    return sum(
        offset - compared.get((side, origin, partition), begun.first.get(partition, offset))
        for side, origin in topic.sides
        if (begun := manifest.sides.get((topic.flow, side, origin))) is not None
        for partition, offset in begun.next.items()
    )


def timed(plan: RunPlan) -> list[TopicPlan]:
    """Topics whose buckets are spans of time; what is cut by offsets closes by itself."""
    return [topic for topic in plan.compared if topic.strategy != offset_syncs.STRATEGY]


def note(
    manifest: Manifest, plan: RunPlan, still_open: Iterable[Mapping[str, Any]], now_ms: int
) -> Manifest:
    """Keep which buckets are open by now.

    :param still_open: rows of :func:`frames.totals.still_open`.
    """
    of_topics = grouped(still_open, itemgetter("flow", "topic"))
    by_topic = manifest.open_buckets
    for topic in timed(plan):
        before, read = of_topic(manifest, topic.key), how_far(manifest, topic)
        noted = _noted(before, of_topics.get(topic.key, []), read, now_ms)
        by_topic = changes.with_topic(by_topic, *topic.key, noted.dump())
    return replace(manifest, open_buckets=by_topic)


def _noted(
    before: OpenTopic, rows: Sequence[Mapping[str, Any]], read: LogOffsets, now_ms: int
) -> OpenTopic:
    same = {bucket.key: bucket for bucket in before.buckets}
    # One that was not followed may have been among those that were not.
    since = now_ms if before.more_since_ms is None else before.more_since_ms
    followed = tuple(
        replace(
            same.get((row["lane"], row["bucket"]))
            or OpenBucket(row["lane"], row["bucket"], since, from_first=not before.whole),
            below=row["below"],
            judged=False,
        )
        for row in rows
    )
    # Whether a bucket that was not followed was closed is unknown.
    begins = {**before.begins, **({now_ms: before.compared} if before.whole else {})}
    used = {bucket.since_ms for bucket in followed}
    more = rows[0]["n_below"] - sum(row["below"] for row in rows) if rows else 0
    return OpenTopic(
        followed,
        not rows or rows[0]["n_open"] == len(rows),
        read,
        {first: offsets for first, offsets in begins.items() if first in used},
        before.counted if any(bucket.sliced for bucket in followed) else {},
        before.partly if any(bucket.begun for bucket in followed) else {},
        more,
        since if more else None,
    )


def late(
    manifest: Manifest, plan: RunPlan, now_ms: int, open_minutes: float
) -> dict[TopicKey, list[OpenBucket]]:
    """Buckets that slices have to count, of topics that have one which has been open for long."""
    of_topics: dict[TopicKey, list[OpenBucket]] = {}
    for topic in timed(plan):
        buckets = of_topic(manifest, topic.key).buckets
        waiting = [bucket for bucket in buckets if bucket.is_late(now_ms, open_minutes)]
        if waiting:
            # What was counted once goes on with the others.
            others = (b for b in buckets if b.sliced or b.begun)
            of_topics[topic.key] = list({b.key: b for b in (*waiting, *others)}.values())
    return of_topics


def waits(manifest: Manifest, plan: RunPlan, now_ms: int, open_minutes: float) -> bool:
    """Whether there is a bucket that slices have to count and have not yet."""
    of_topics = late(manifest, plan, now_ms, open_minutes)
    return any(b.below and not b.judged for buckets in of_topics.values() for b in buckets)


def open_for_long(open_topic: OpenTopic, now_ms: int, open_minutes: float) -> list[OpenBucket]:
    """The buckets of a topic that slices have to count, followed or not."""
    every = [*open_topic.buckets]
    if open_topic.more_since_ms is not None:
        # Those that are not followed, as if they were one.
        every.append(OpenBucket(-1, 0, open_topic.more_since_ms, below=open_topic.more))
    return [bucket for bucket in every if bucket.is_late(now_ms, open_minutes)]


def how_far(manifest: Manifest, topic: TopicPlan) -> dict[tuple[str, str, int], int]:
    """How far both sides of a topic have been read."""
    return {
        (side, origin, partition): offset
        for side, origin in topic.sides
        if (state := manifest.sides.get((topic.flow, side, origin))) is not None
        for partition, offset in state.next.items()
    }


def _plain(offsets: LogOffsets) -> list[list[Any]]:
    return [[*log, offset] for log, offset in sorted(offsets.items())]


def _offsets(plain: Iterable[Sequence[Any]]) -> dict[tuple[str, str, int], int]:
    return {(side, origin, partition): offset for side, origin, partition, offset in plain}
