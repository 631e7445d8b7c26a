"""What may be the copy of a record: target offsets by the looks between which it was copied.

A look takes committed positions, then the ends of the target, then those of the source. Whatever
the source holds below the positions has copies on the target below its ends, and whatever the
source did not hold yet has copies at or past the ends that were taken before. So the copy of a
record lies between the ends of two looks, and what somebody writes later is none, however equal.

Only a mirror that was set back copies a record once more: what it copies again, no earlier look
has seen below the position.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from mirror_report.parity.plan import boundaries
from mirror_report.parity.plan.boundaries import Boundary
from mirror_report.parity.plan.moments import Offsets
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import BEHIND_ALL, Manifest, TopicKey, changes
from mirror_report.state.partitions import offsets, texts

# Per topic, of the looks that no known loss needs, and of those that one does.
MOST, MOST_NEEDED = 8, 64


@dataclass(frozen=True)
class Look:
    """One look at a topic.

    :param boundary: committed positions, and the ends of the target that were taken after them.
    :param following: ends of the source that were taken after these; ``None``: not known yet.
    :param needed: a known loss was found at it, or not before it.
    """

    boundary: Boundary
    following: Offsets | None = None
    needed: bool = False

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What the manifest holds."""
        ends = plain["following"]
        if ends is not None:
            ends = {origin: offsets(parts) for origin, parts in ends.items()}
        return cls(Boundary.load(plain), ends, plain["needed"])

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        following = None
        if self.following is not None:
            following = {origin: texts(parts) for origin, parts in self.following.items()}
        return {**self.boundary.dump(), "following": following, "needed": self.needed}

    def before(self, now: Boundary, ends: Offsets) -> Self:
        """The same look, after another one.

        :param ends: of the source, at that one.
        """
        positions: dict[str, Mapping[int, int]] = {}
        for origin, parts in self.boundary.source.items():
            again = now.source.get(origin, {})
            positions[origin] = {p: min(at, again.get(p, 0)) for p, at in parts.items()}
        following = ends if self.following is None else self.following
        return replace(self, boundary=replace(self.boundary, source=positions), following=following)


def of_topic(manifest: Manifest, topic: TopicKey) -> list[Look]:
    """Looks at a topic, the oldest first."""
    flow, name = topic
    return [Look.load(plain) for plain in manifest.looks.get(flow, {}).get(name, ())]


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
    for topic in topics:
        # What waits for a transaction to commit is on the target already.
        now = boundaries.observed(snapshots, topic, readable=False)
        if now is None:
            continue
        ends = _ends(snapshots, topic)
        looks = [look.before(now, ends) for look in of_topic(manifest, topic.key)]
        # Where several flows feed a topic, the target was observed again after the first of them.
        alone = len({via for via, _ in topic.feeds}) == 1
        if not looks or looks[-1].boundary != now:
            looks.append(Look(now))
        if source_last and alone:
            looks[-1] = replace(looks[-1], following=looks[-1].following or ends)
        manifest = _with(manifest, topic.key, _few(looks))
    return manifest


def need(manifest: Manifest, needed: Mapping[TopicKey, Iterable[int]]) -> Manifest:
    """Keep the looks that known losses rest on.

    :param needed: their numbers, by topic, as :func:`of_topic` lists them; that of what no look has
        seen, such as of a mirror whose positions are gone, is behind them all.
    """
    for topic, numbers in needed.items():
        needed_ones = set(numbers)
        looks = [
            replace(look, needed=look.needed or number in needed_ones)
            for number, look in enumerate(of_topic(manifest, topic))
        ]
        manifest = _with(manifest, topic, looks)
    return manifest


def without_losses(manifest: Manifest, topics: Iterable[TopicPlan]) -> Manifest:
    """Let go what was kept for losses of topics that have none any more."""
    for topic in topics:
        now = manifest.numbers(topic.key)
        looks = of_topic(manifest, topic.key)
        if not now.get("missing") and any(look.needed for look in looks):
            free = [replace(look, needed=False) for look in looks]
            manifest = _with(manifest, topic.key, _few(free))
    return manifest


def rows(looks: Mapping[TopicKey, Sequence[Look]], topics: Iterable[TopicPlan]) -> list[Any]:
    """Rows of :data:`frames.reach.LOOKS_SCHEMA`."""
    of_logs: list[dict[str, Any]] = []
    for topic in topics:
        taken = looks.get(topic.key, ())
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


def _few(looks: Sequence[Look]) -> list[Look]:
    """Not too many: without one, the copies of some records may lie in a longer range."""
    given_up = set()
    for needed, most in ((False, MOST), (True, MOST_NEEDED)):
        numbers = [n for n, look in enumerate(looks[:-1]) if look.needed == needed]
        if len(numbers) >= most:
            given_up |= set(numbers[1 : len(numbers) // 2 : 2])
    return [look for number, look in enumerate(looks) if number not in given_up]


def _with(manifest: Manifest, topic: TopicKey, looks: Sequence[Look]) -> Manifest:
    plain = [look.dump() for look in looks]
    return replace(manifest, looks=changes.with_topic(manifest.looks, *topic, plain))
