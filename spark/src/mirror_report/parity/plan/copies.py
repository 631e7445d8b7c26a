"""Where the copy of a record may lie: target offsets by the looks between which it was copied.

A look takes committed positions, then the ends of the target, then those of the source. Whatever
the source holds below the positions has copies on the target below its ends, and whatever the
source did not hold yet has copies at or past the ends that were taken before. So the copy of a
record lies between the ends of two looks, and what somebody writes later is none, however equal.

Only a mirror that was set back copies a record once more: what it copies again, no earlier look
has seen below the position.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mirror_report.parity.plan import boundaries
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import (
    BEHIND_ALL,
    Look,
    Manifest,
    Offsets,
    TopicKey,
    changes,
    topic_value,
)

# Per topic, of the looks that no known loss needs, and of those that one does.
MOST, MOST_NEEDED = 8, 64


def note(
    manifest: Manifest,
    topics: Iterable[TopicPlan],
    snapshots: FlowSnapshots,
    *,
    source_last: bool = False,
) -> Manifest:
    """Keep this look at some topics.

    :param source_last: the source was observed after the target.
    """
    kept = manifest.looks
    for topic in topics:
        # What waits for a transaction to commit is on the target already.
        now = boundaries.observed(snapshots, topic, readable=False)
        if now is None:
            continue
        ends = _ends(snapshots, topic)
        looks = [look.before(now, ends) for look in topic_value(manifest.looks, topic.key, ())]
        # Where several flows feed a topic, the target was observed again after the first of them.
        alone = len({via for via, _ in topic.feeds}) == 1
        if not looks or looks[-1].boundary != now:
            looks.append(Look(now))
        if source_last and alone:
            looks[-1] = replace(looks[-1], following=looks[-1].following or ends)
        kept = changes.with_topic(kept, *topic.key, _few(looks))
    return replace(manifest, looks=kept)


def need(manifest: Manifest, needed: Mapping[TopicKey, Collection[int]]) -> Manifest:
    """Keep the looks that known losses rest on.

    :param needed: their numbers, by topic; the oldest has 0. That of what no look has seen,
        such as of a mirror whose positions are gone, is behind them all.
    """
    kept = manifest.looks
    for topic, numbers in needed.items():
        looks = tuple(
            replace(look, needed=look.needed or number in numbers)
            for number, look in enumerate(topic_value(manifest.looks, topic, ()))
        )
        kept = changes.with_topic(kept, *topic, looks)
    return replace(manifest, looks=kept)


def without_losses(manifest: Manifest, topics: Iterable[TopicPlan]) -> Manifest:
    """Let go what was kept for losses of topics that have none any more."""
    kept = manifest.looks
    for topic in topics:
        now = manifest.numbers(topic.key)
        looks = topic_value(manifest.looks, topic.key, ())
        if not now.get("missing") and any(look.needed for look in looks):
            free = [replace(look, needed=False) for look in looks]
            kept = changes.with_topic(kept, *topic.key, _few(free))
    return replace(manifest, looks=kept)


def rows(manifest: Manifest, topics: Iterable[TopicPlan]) -> list[dict[str, Any]]:
    """Rows of :data:`frames.reach.LOOKS_SCHEMA`: the looks at some topics."""
    of_logs: list[dict[str, Any]] = []
    for topic in topics:
        taken = topic_value(manifest.looks, topic.key, ())
        for origin in topic.origins:
            numbers = {p for look in taken for p in look.boundary.source.get(origin, {})}
            numbers |= {p for look in taken for p in (look.following or {}).get(origin, {})}
            of_logs += [
                {
                    "flow": topic.flow, "side": "source", "origin": origin, "partition": p,
                    "looks": [look.boundary.source.get(origin, {}).get(p, 0) for look in taken],
                    "following": [_following(look, origin, p) for look in taken],
                    "ends": [look.boundary.target.get(p, 0) for look in taken],
                }
                for p in sorted(numbers)
            ]  # fmt: skip
        of_logs += [
            {
                "flow": topic.flow, "side": "target", "origin": topic.topic, "partition": p,
                "looks": [look.boundary.target.get(p, 0) for look in taken],
            }
            for p in sorted({p for look in taken for p in look.boundary.target})
        ]  # fmt: skip
    return of_logs


def _following(look: Look, origin: str, partition: int) -> int:
    """First offset that was written after the look, as far as known."""
    ends = (look.following or {}).get(origin)
    # A partition that was not there then had no record.
    return BEHIND_ALL if ends is None else ends.get(partition, 0)


def _ends(snapshots: FlowSnapshots, topic: TopicPlan) -> Offsets:
    topics = {origin: find(snapshots, topic.flow, "source", origin) for origin in topic.origins}
    return {
        origin: {p: log.end for p, log in source.partitions.items()}
        for origin, source in topics.items()
        if source is not None
    }


def _few(looks: Sequence[Look]) -> tuple[Look, ...]:
    """Not too many: without one, the copies of some records may lie in a longer range."""
    given_up = set()
    for needed, most in ((False, MOST), (True, MOST_NEEDED)):
        numbers = [n for n, look in enumerate(looks[:-1]) if look.needed == needed]
        if len(numbers) >= most:
            given_up |= set(numbers[1 : len(numbers) // 2 : 2])
    return tuple(look for number, look in enumerate(looks) if number not in given_up)
