"""Topics that Spark cannot survive reading: found by halves, and left alone afterwards.

One record may be larger than the heap, however small it was compressed. When the JVM ends, the
topics of that run are read in halves, each by a JVM of its own, until those are known that end it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.snapshots import find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import FatalTopic, Manifest, TopicKey, changes

# After so long a topic is read once more: what ended the JVM may have been something else.
TRIED_AGAIN_MS = 86_400_000
REASON = (
    "reading it ends Spark's JVM: a record, or a batch of them, does not fit into spark.heap "
    "({heap}). Raise it (mirror_report_heap), or delete what is so large"
)


@dataclass(frozen=True)
class Search:
    """The state of the search while groups of topics are read.

    :param waiting: groups that were not read yet, the next one last.
    :param fatal: topics that end the JVM alone.
    """

    waiting: tuple[tuple[TopicKey, ...], ...] = ()
    fatal: tuple[TopicKey, ...] = ()

    def ended(self, topics: Iterable[TopicKey]) -> Self:
        """The JVM ended while it read some topics."""
        group = tuple(sorted(topics))
        if len(group) <= 1:
            return replace(self, fatal=(*self.fatal, *group))
        half = len(group) // 2
        return replace(self, waiting=(*self.waiting, group[half:], group[:half]))

    def next(self) -> tuple[tuple[TopicKey, ...], Self]:
        """The group to read next, and what waits then."""
        *waiting, group = self.waiting
        return group, replace(self, waiting=tuple(waiting))


NOTHING_FATAL = Search()


def at_work(plan: RunPlan) -> list[TopicKey]:
    """Topics that Spark reads or may read."""
    return [topic.key for topic in plan.topics if not (topic.skip or topic.unknown)]


def without(manifest: Manifest, plan: RunPlan, only: Collection[TopicKey] | None = None) -> RunPlan:
    """A plan that leaves alone what ends the JVM.

    :param only: leave all other topics alone as well.
    """
    others = at_work(plan) if only is not None else []
    waiting = {key: "its turn comes" for key in others if key not in (only or ())}
    fatal = {
        (flow, name): REASON.format(heap=entry.heap)
        for flow, topics in manifest.fatal.items()
        for name, entry in topics.items()
    }
    return plan.without(waiting | fatal)


def remember(
    manifest: Manifest, plan: RunPlan, ended_by: Iterable[TopicKey], heap: str, now_ms: int
) -> Manifest:
    """Keep topics that end the JVM, and forget those that may no longer do so."""
    topics = {topic.key: topic for topic in plan.topics}
    fatal: dict[str, Mapping[str, FatalTopic]] = {
        flow: {
            name: entry
            for name, entry in entries.items()
            if (topic := topics.get((flow, name))) is None
            or _holds(entry, plan, topic, heap, now_ms)
        }
        for flow, entries in manifest.fatal.items()
    }
    for flow, name in ended_by:
        entry = FatalTopic(heap, now_ms, _starts(plan, topics[flow, name]))
        fatal = changes.with_topic(fatal, flow, name, entry)
    return replace(manifest, fatal=fatal)


def _holds(entry: FatalTopic, plan: RunPlan, topic: TopicPlan, heap: str, now_ms: int) -> bool:
    """Whether nothing has changed that could help."""
    recent = now_ms - entry.at_ms < TRIED_AGAIN_MS
    return recent and entry.heap == heap and entry.starts == _starts(plan, topic)


def _starts(plan: RunPlan, topic: TopicPlan) -> dict[tuple[str, str], dict[int, int]]:
    """Where the logs of a topic begin."""
    topics = {
        (side, origin): find(plan.snapshots, topic.flow, side, origin)
        for side, origin in topic.sides
    }
    return {
        where: {p: log.log_start for p, log in (observed.partitions if observed else {}).items()}
        for where, observed in topics.items()
    }  # fmt: skip
