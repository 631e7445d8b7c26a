"""Where verification of a flow starts.

A baseline cuts by offsets, from what is observed in this order: committed positions, ends of the
target, ends of the source, committed positions again until they tell enough. Source records from
the first positions on are read, and target records from those ends on. A mirror at work has copied
some of the former before; which, its commits tell: one that changes for the second time since was
computed after the first change, so after the target was observed, and every record from it on is
copied later than that. So is every record from the position of a mirror that does not run, for it
continues there. Nothing from the end of the source on was copied before it was written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirror_report.config import Flow
from mirror_report.model import (
    ClusterSnapshot,
    Place,
    Positions,
    SideBaseline,
    TopicBaseline,
    TopicSnapshot,
)
from mirror_report.parity.plan.lost_tails import LastLook

# Of a position, until it is past all that was copied when the target was observed.
CHANGES = 2
# Target offsets below its ends that are kept in reach, per partition: what was copied past the
# positions, twice, for a mirror may repeat itself, and this slack; never more than the most.
SLACK = 10_000
MOST_SOUGHT = 1_000_000


@dataclass(frozen=True)
class Observation:
    """One flow, and the topics of its source that verification starts for.

    :param positions: committed, observed before the target.
    :param alive: the mirror's group had members then.
    :param source: observed after the target.
    """

    flow: Flow
    positions: Positions
    alive: bool
    target: ClusterSnapshot
    source: ClusterSnapshot

    def on_target(self, name: str) -> TopicSnapshot | None:
        """The target's topic that a topic of the source is copied to."""
        return self.target.topics.get(self.flow.target_topic(name))

    def starts(self) -> dict[Place, int]:
        """First source offset to read, by topic and partition."""
        waits = self.flow.start == "latest" and not self.alive
        return {
            (name, number): self.positions.get(name, {}).get(
                number, log.end if waits else log.log_start
            )
            for name, topic in self.source.topics.items()
            for number, log in topic.partitions.items()
        }

    def looks(self) -> tuple[dict[str, LastLook], dict[str, LastLook]]:
        """Up to where each topic of the source, and of the target, counts as read."""
        starts = self.starts()
        return (
            {
                name: LastLook(topic.topic_id, {p: starts[name, p] for p in topic.partitions})
                for name, topic in self.source.topics.items()
            },
            {
                name: LastLook(topic.topic_id, {p: log.end for p, log in topic.partitions.items()})
                for name, topic in self.target.topics.items()
            },
        )

    def ends(self) -> dict[Place, int]:
        """End of the source, by topic and partition."""
        return {
            (name, number): log.end
            for name, topic in self.source.topics.items()
            for number, log in topic.partitions.items()
        }


class Watch:
    """Committed positions of a mirror, and from where on each record is copied again."""

    def __init__(self, observation: Observation) -> None:
        self._starts = observation.starts()
        self._ends = observation.ends()
        self._last: dict[Place, int | None] = {}
        self._changes: dict[Place, int] = {}
        self.required = {
            place: start
            for place, start in self._starts.items()
            if start >= self._ends[place] or _starts_empty(observation, *place)
        }

    @property
    def waits(self) -> bool:
        """Whether something is not decided yet."""
        return len(self.required) < len(self._starts)

    def saw(self, positions: Positions, *, alive: bool) -> None:
        """Take in positions that were committed now.

        :param alive: the mirror's group had members, asked before the positions.
        """
        for place in self._starts.keys() - self.required.keys():
            position = positions.get(place[0], {}).get(place[1])
            if place in self._last and position != self._last[place]:
                self._changes[place] = self._changes.get(place, 0) + 1
            self._last[place] = position
            start, end = self._starts[place], self._ends[place]
            now = start if position is None else position
            if not alive or now >= end or self._changes.get(place, 0) >= CHANGES:
                self.required[place] = max(start, min(now, end))

    def decided(self) -> dict[Place, int]:
        """First source offset that has to be on the target; what is not decided: the end."""
        return self._ends | self.required


def _starts_empty(observation: Observation, name: str, number: int) -> bool:
    """Whether nothing was committed and nothing is on the target, so that all is to come."""
    on_target = observation.on_target(name)
    logs = on_target.partitions.values() if on_target else ()
    return number not in observation.positions.get(name, {}) and all(
        log.end <= log.log_start for log in logs
    )


def entries(
    observation: Observation, required: Mapping[Place, int], feeding: Iterable[Observation]
) -> dict[str, TopicBaseline]:
    """A baseline from now on, by topic of the source.

    :param required: :meth:`Watch.decided`.
    :param feeding: all flows that were observed; some may feed the same topics.
    """
    starts, ends = observation.starts(), observation.ends()
    baselines = {}
    for name, topic in observation.source.topics.items():
        on_target = observation.on_target(name)
        logs = on_target.partitions if on_target else {}
        ahead = _ahead(observation, name, feeding)
        baselines[name] = TopicBaseline(
            observation.source.taken_at_ms,
            _side(topic, {p: starts[name, p] for p in topic.partitions}),
            _side(on_target, {p: log.end for p, log in logs.items()}),
            required={p: required[name, p] for p in topic.partitions},
            untouched={p: ends[name, p] for p in topic.partitions},
            sought={
                p: max(log.log_start, log.end - _reach(ahead[None] + ahead[p]))
                for p, log in logs.items()
            },
            log_start={p: log.log_start for p, log in topic.partitions.items()},
        )
    return baselines


def full_entries(observation: Observation) -> dict[str, TopicBaseline]:
    """A baseline of everything both logs hold, as :func:`entries`.

    What the source dropped above the committed position is no part of what is accepted.
    """
    baselines = {}
    for name, topic in observation.source.topics.items():
        on_target = observation.on_target(name)
        logs = on_target.partitions if on_target else {}
        begins = {p: log.log_start for p, log in topic.partitions.items()}
        positions = observation.positions.get(name, {})
        baselines[name] = TopicBaseline(
            observation.source.taken_at_ms,
            _side(topic, begins),
            _side(on_target, {p: log.log_start for p, log in logs.items()}),
            required=begins,
            older={p: log.end for p, log in logs.items()} if any(begins.values()) else {},
            log_start={p: min(start, positions.get(p, start)) for p, start in begins.items()},
        )
    return baselines


def _side(topic: TopicSnapshot | None, start: Mapping[int, int]) -> SideBaseline:
    if topic is None:
        return SideBaseline()
    return SideBaseline(
        topic.topic_id,
        start,
        {p: log.epochs for p, log in topic.partitions.items()},
        {p: log.contents for p, log in topic.partitions.items()},
    )


def _ahead(
    observation: Observation, name: str, feeding: Iterable[Observation]
) -> Counter[int | None]:
    """How many records past the positions may be in each partition of the target.

    :returns: by partition; ``None``: in any of them.
    """
    counts: Counter[int | None] = Counter()
    for other in (other for other in feeding if other.flow.target == observation.flow.target):
        ends = other.ends()
        for place, start in other.starts().items():
            if other.flow.target_topic(place[0]) == observation.flow.target_topic(name):
                # A mirror that keeps no partitions may have put them all into other.
                number = place[1] if other.flow.engine.keeps_partitions else None
                counts[number] += max(0, ends[place] - start)
    return counts


def _reach(ahead: int) -> int:
    return min(2 * ahead + SLACK, MOST_SOUGHT) if ahead else 0
