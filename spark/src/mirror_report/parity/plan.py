"""What a run has to read, from what is remembered and what the clusters say now.

No Spark, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, Positions, Strategy, TopicSnapshot
from mirror_report.parity import strategies
from mirror_report.parity.memory import Gap, Memory, SideMemory, offsets
from mirror_report.parity.ranges import RECORD_BYTES, Range, Side

GONE = "no longer on the source: nothing is left to compare with"


@dataclass(frozen=True)
class Reopened:
    """A side of a topic whose digests no longer describe what is there.

    :param kind: ``topic_reset`` (another topic of that name) or ``rewind`` (the log got shorter).
    """

    kind: Literal["topic_reset", "rewind"]
    flow: str
    side: Side
    topic: str
    origin: str
    partition: int | None
    detail: str


@dataclass(frozen=True)
class Drop:
    """Digest rows to leave out: a whole flow, or one side of one topic."""

    flow: str
    side: Side | None = None
    origin: str | None = None


@dataclass(frozen=True)
class TopicPlan:
    """One target topic and the source topics that feed it.

    :param strategy: how its content is compared; ``why``: if it is not the default, the reason.
    :param skip: why its content is not compared.
    :param unknown: why nothing can be said of it now.
    """

    flow: str
    topic: str
    origins: tuple[str, ...]
    skip_through_ms: int | None = None
    strategy: Strategy = "timestamp"
    why: str = ""
    skip: str | None = None
    unknown: str | None = None

    @property
    def judged(self) -> bool:
        """Whether digests are compared, bucket by bucket."""
        known = self.skip is None and self.unknown is None
        return known and self.strategy in strategies.BY_BUCKET


@dataclass
class FlowPlan:
    """What one flow needs in this run.

    :param begin: how far each side of each topic had been read before, ids as they are now.
    """

    topics: list[TopicPlan] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    reopened: list[Reopened] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    begin: dict[tuple[str, Side, str], SideMemory] = field(default_factory=dict)


def plan_flow(
    flow: Flow,
    memory: Memory,
    baseline: Mapping[str, Any],
    source: ClusterSnapshot,
    target: ClusterSnapshot,
) -> FlowPlan:
    """Ranges to read for one flow.

    :param baseline: the flow's entry of the manifest ``baseline``; empty if there is none.
    :param source: taken first; ``target`` after it and after the positions.
    """
    done = FlowPlan()
    feeds: dict[str, list[str]] = {}
    for name in sorted(source.topics):
        if flow.matches(name):
            feeds.setdefault(flow.target_topic(name), []).append(name)
    for name in sorted(source.errors):
        if flow.matches(name) and name not in source.topics:
            topic = flow.target_topic(name)
            done.topics.append(
                TopicPlan(flow.name, topic, (name,), unknown=f"source: {source.errors[name]}")
            )
            feeds.pop(topic, None)
    for topic, origins in feeds.items():
        _plan_topic(done, flow, topic, tuple(origins), memory, baseline, source, target)
    planned = {one.topic for one in done.topics}
    for name in sorted({key[2] for key in memory.sides if key[:2] == (flow.name, "source")}):
        topic = flow.target_topic(name)
        if topic not in planned and flow.matches(name):
            planned.add(topic)
            done.topics.append(TopicPlan(flow.name, topic, (name,), skip=GONE))
    return done


def _plan_topic(
    done: FlowPlan,
    flow: Flow,
    topic: str,
    origins: tuple[str, ...],
    memory: Memory,
    baseline: Mapping[str, Any],
    source: ClusterSnapshot,
    target: ClusterSnapshot,
) -> None:
    recorded = baseline.get("topics", {})
    known = [recorded[name] for name in origins if name in recorded]
    skips = [one["skip_through_ms"] for one in known if one.get("skip_through_ms") is not None]
    on_target = target.topics.get(topic)
    plan = TopicPlan(flow.name, topic, origins, skip_through_ms=max(skips, default=None))
    if topic in target.errors and on_target is None:
        done.topics.append(replace(plan, unknown=f"target: {target.errors[topic]}"))
        return
    chosen = strategies.choose(flow, [source.topics[name] for name in origins], on_target)
    plan = replace(plan, strategy=chosen.strategy, why=chosen.reason)
    done.topics.append(plan)
    if not plan.judged:
        return
    sides: list[tuple[Side, str, TopicSnapshot, int]] = [
        ("source", name, source.topics[name], source.taken_at_ms) for name in origins
    ]
    if on_target is None and (flow.name, "target", topic) in memory.sides:
        done.reopened.append(
            Reopened("topic_reset", flow.name, "target", topic, topic, None, "deleted")
        )
        done.drops.append(Drop(flow.name, "target", topic))
    if on_target is not None:
        sides.append(("target", topic, on_target, target.taken_at_ms))
    for side, origin, snapshot, taken_at_ms in sides:
        # Sources that share a target topic share its baseline there.
        start = (
            recorded.get(origin)
            if side == "source"
            else _latest([recorded.get(name) for name in origins])
        )
        _plan_side(
            done,
            _Place(flow.name, side, origin, topic, flow.isolation(side)),
            memory,
            baseline,
            start,
            snapshot,
            taken_at_ms,
        )


@dataclass(frozen=True)
class _Place:
    flow: str
    side: Side
    origin: str
    topic: str
    isolation: str


def _plan_side(
    done: FlowPlan,
    place: _Place,
    memory: Memory,
    baseline: Mapping[str, Any],
    start: Mapping[str, Any] | None,
    snapshot: TopicSnapshot,
    taken_at_ms: int,
) -> None:
    key = (place.flow, place.side, place.origin)
    remembered = memory.sides.get(key)
    floor = offsets((start or {}).get(place.side) or {})
    known_id = remembered.topic_id if remembered else (start or {}).get(f"{place.side}_id")
    reset = bool(known_id) and known_id != snapshot.topic_id
    shrunk = sorted(
        partition
        for partition, read in (remembered.next if remembered else floor).items()
        if partition in snapshot.partitions and snapshot.partitions[partition].end < read
    )
    if reset:
        done.reopened.append(
            Reopened("topic_reset", *_where(place), None, f"{known_id} → {snapshot.topic_id}")
        )
    elif shrunk:
        for partition in shrunk:
            read = (remembered.next if remembered else floor)[partition]
            end = snapshot.partitions[partition].end
            done.reopened.append(Reopened("rewind", *_where(place), partition, f"{read} → {end}"))
    if reset or shrunk:
        done.drops.append(Drop(place.flow, place.side, place.origin))
        if place.side == "source" and (reset or remembered is not None):
            # What the old log held may be on the target and can no longer be read here.
            done.gaps.append(Gap(*_where(place), -1, 0, 0, taken_at_ms))
        remembered = None
        if reset:
            floor = {}
    first: dict[int, int] = {}
    following: dict[int, int] = {}
    for partition, log in sorted(snapshot.partitions.items()):
        # Without a baseline, history begins with what is there at the first look.
        begin = floor.get(partition, 0 if baseline and not reset else log.log_start)
        wanted = remembered.next.get(partition, begin) if remembered else min(begin, log.end)
        if log.log_start > wanted:
            done.gaps.append(Gap(*_where(place), partition, wanted, log.log_start, taken_at_ms))
        read = max(wanted, log.log_start)
        first[partition] = remembered.first.get(partition, read) if remembered else read
        following[partition] = read
        end = log.end_for(place.isolation)
        if end > read:
            done.ranges.append(
                Range(
                    place.flow,
                    place.side,
                    place.origin,
                    place.topic,
                    partition,
                    read,
                    end,
                    record_bytes(snapshot),
                )
            )
    done.begin[key] = SideMemory(snapshot.topic_id, first, following)


def behind(
    flow: Flow, baseline: Mapping[str, Any], positions: Positions, source: ClusterSnapshot
) -> int:
    """Source offsets the mirror has not copied yet; without a commit all since the baseline."""
    recorded = baseline.get("topics", {})
    total = 0
    for name, topic in source.topics.items():
        if not flow.matches(name):
            continue
        begun = offsets((recorded.get(name) or {}).get("source") or {})
        for partition, log in topic.partitions.items():
            start = max(log.log_start, begun.get(partition, 0))
            position = positions.get(name, {}).get(partition, start)
            total += max(0, log.end_for(flow.source_isolation) - position)
    return total


def of_present_topics(positions: Positions, source: ClusterSnapshot) -> Positions:
    """Positions without those past the end of their log.

    MirrorMaker 2 keeps its position when a topic is deleted. Until it commits again, such a one is
    of the earlier topic of that name and says nothing of the present one.

    :param source: taken after the positions, or a mirror at work would seem to be past the end.
    """
    ends = {
        (topic.name, partition): log.end
        for topic in source.topics.values()
        for partition, log in topic.partitions.items()
    }
    return {
        topic: {
            partition: position
            for partition, position in parts.items()
            if position <= ends.get((topic, partition), position)
        }
        for topic, parts in positions.items()
    }


def record_bytes(snapshot: TopicSnapshot) -> float:
    """Expected size of one record of a topic, by the size of its logs."""
    records = sum(log.end - log.log_start for log in snapshot.partitions.values())
    if not snapshot.bytes or records <= 0:
        return RECORD_BYTES
    return max(1.0, snapshot.bytes / records)


def _latest(recorded: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    known = [one for one in recorded if one is not None]
    return known[-1] if known else None


def _where(place: _Place) -> tuple[str, Side, str, str]:
    return place.flow, place.side, place.topic, place.origin
