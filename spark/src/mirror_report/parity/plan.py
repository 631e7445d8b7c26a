"""What a run has to read, from what is remembered and what the clusters say now.

No Spark, no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, Positions, Strategy, TopicSnapshot
from mirror_report.parity import strategies
from mirror_report.parity.memory import NEVER, Gap, Memory, Origin, Removal, SideMemory, offsets
from mirror_report.parity.ranges import RECORD_BYTES, Range, Side, feeder


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


@dataclass(frozen=True)
class Feed:
    """A source topic that feeds a topic of the target.

    :param origin: its name, or a guest (:func:`mirror_report.parity.ranges.guest`).
    :param recorded: what the baseline holds of it; ``based``: whether its flow has a baseline.
    :param isolation: which of its records count.
    """

    origin: str
    topic: TopicSnapshot
    taken_at_ms: int
    recorded: Mapping[str, Any] | None
    based: bool
    isolation: str


@dataclass
class FlowPlan:
    """What one flow needs in this run.

    :param begin: how far each side of each topic had been read before, ids as they are now.
    :param removals: what the target no longer holds of what was read there.
    :param departed: topics that are no longer on the source, with what fed them.
    """

    topics: list[TopicPlan] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    reopened: list[Reopened] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    begin: dict[Origin, SideMemory] = field(default_factory=dict)
    removals: list[Removal] = field(default_factory=list)
    departed: list[TopicPlan] = field(default_factory=list)


def plan_flow(
    flow: Flow,
    memory: Memory,
    baseline: Mapping[str, Any],
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    *,
    guests: Mapping[str, Sequence[Feed]] | None = None,
    elsewhere: Collection[str] = (),
    doubtful: Mapping[str, str] | None = None,
) -> FlowPlan:
    """Ranges to read for one flow.

    :param baseline: the flow's entry of the manifest ``baseline``; empty if there is none.
    :param source: taken first; ``target`` after it and after the positions.
    :param guests: topic of the target -> what other flows bring there.
    :param elsewhere: topics of the target that another flow judges.
    :param doubtful: topic of the target -> why it cannot be judged now.
    """
    done = FlowPlan()
    feeds: dict[str, list[Feed]] = {}
    for name in sorted(filter(flow.matches, source.topics)):
        one = feed_of(flow, name, baseline, source)
        feeds.setdefault(flow.target_topic(name), []).append(one)
    for name in sorted(filter(flow.matches, source.errors)):
        if name not in source.topics:
            topic = flow.target_topic(name)
            done.topics.append(
                TopicPlan(flow.name, topic, (name,), unknown=f"source: {source.errors[name]}")
            )
            feeds.pop(topic, None)
    for topic, some in feeds.items():
        origins = tuple(one.origin for one in some)
        if topic in (doubtful or {}):
            unknown = (doubtful or {})[topic]
            done.topics.append(TopicPlan(flow.name, topic, origins, unknown=unknown))
        elif topic not in elsewhere:
            all_of_it = [*some, *(guests or {}).get(topic, ())]
            _plan_topic(done, flow, topic, all_of_it, memory, target)
    planned = {one.topic for one in done.topics} | set(elsewhere)
    left: dict[str, list[str]] = {}
    for owner, side, origin in sorted(memory.sides):
        if (owner, side) == (flow.name, "source") and feeder(owner, origin)[0] == owner:
            left.setdefault(flow.target_topic(origin), []).append(origin)
    for topic, names in left.items():
        if topic in planned:
            continue
        done.departed.append(TopicPlan(flow.name, topic, tuple(names)))
        done.drops += [Drop(flow.name, "source", name) for name in names]
        done.drops.append(Drop(flow.name, "target", topic))
    return done


def feed_of(
    flow: Flow, name: str, baseline: Mapping[str, Any], source: ClusterSnapshot, origin: str = ""
) -> Feed:
    """One source topic of a flow.

    :param origin: what the judging flow calls it, if that is another.
    """
    recorded = baseline.get("topics", {}).get(name)
    return Feed(
        origin or name, source.topics[name], source.taken_at_ms, recorded, bool(baseline),
        flow.source_isolation,
    )  # fmt: skip


def _plan_topic(
    done: FlowPlan,
    flow: Flow,
    topic: str,
    feeds: Sequence[Feed],
    memory: Memory,
    target: ClusterSnapshot,
) -> None:
    known = [one.recorded for one in feeds if one.recorded is not None]
    skips = [one["skip_through_ms"] for one in known if one.get("skip_through_ms") is not None]
    on_target = target.topics.get(topic)
    origins = tuple(one.origin for one in feeds)
    plan = TopicPlan(flow.name, topic, origins, skip_through_ms=max(skips, default=None))
    if topic in target.errors and on_target is None:
        done.topics.append(replace(plan, unknown=f"target: {target.errors[topic]}"))
        return
    chosen = strategies.choose(flow, [one.topic for one in feeds], on_target)
    plan = replace(plan, strategy=chosen.strategy, why=chosen.reason)
    if plan.strategy == "latest_by_key":
        plan = replace(plan, skip=f"{plan.why}: record counts legitimately differ")
    done.topics.append(plan)
    if not plan.judged:
        return
    sides = [
        _Side(
            _Place(flow.name, "source", one.origin, topic, one.isolation),
            one.topic, one.taken_at_ms, one.recorded, one.based,
        )
        for one in feeds
    ]  # fmt: skip
    deleted = on_target is None and (flow.name, "target", topic) in memory.sides
    if deleted:
        done.reopened.append(
            Reopened("topic_reset", flow.name, "target", topic, topic, None, "deleted")
        )
        done.drops.append(Drop(flow.name, "target", topic))
    if on_target is not None:
        place = _Place(flow.name, "target", topic, topic, flow.target_isolation)
        start = _on_target(known)
        based = any(one.based for one in feeds)
        sides.append(_Side(place, on_target, target.taken_at_ms, start, based))
    # Sealed rows of one side cannot be held against a new log of the other.
    sealed = bool(memory.totals.get(flow.name, {}).get(topic))
    anew = sealed and (deleted or any(_change(one, memory) for one in sides))
    for one in sides:
        _plan_side(done, one, memory, anew=anew)


@dataclass(frozen=True)
class _Place:
    flow: str
    side: Side
    origin: str
    topic: str
    isolation: str


@dataclass(frozen=True)
class _Side:
    """One side of a topic: where it is, what it is now, and what the baseline says of it."""

    place: _Place
    snapshot: TopicSnapshot
    taken_at_ms: int
    recorded: Mapping[str, Any] | None
    based: bool

    @property
    def key(self) -> Origin:
        return self.place.flow, self.place.side, self.place.origin

    @property
    def floor(self) -> dict[int, int]:
        return offsets((self.recorded or {}).get(self.place.side) or {})


def _change(one: _Side, memory: Memory) -> str | list[int]:
    """The former id of a topic made anew, or partitions whose log got shorter; else nothing."""
    remembered = memory.sides.get(one.key)
    known_id = (
        remembered.topic_id if remembered else (one.recorded or {}).get(f"{one.place.side}_id")
    )
    if known_id and known_id != one.snapshot.topic_id:
        return str(known_id)
    read = remembered.next if remembered else one.floor
    logs = one.snapshot.partitions
    return sorted(p for p, offset in read.items() if p in logs and logs[p].end < offset)


def _plan_side(done: FlowPlan, one: _Side, memory: Memory, *, anew: bool) -> None:
    place, snapshot = one.place, one.snapshot
    remembered = memory.sides.get(one.key)
    floor = one.floor
    change = _change(one, memory)
    reset = isinstance(change, str)
    if isinstance(change, str):
        done.reopened.append(
            Reopened("topic_reset", *_where(place), None, f"{change} → {snapshot.topic_id}")
        )
    else:
        for partition in change:
            read = (remembered.next if remembered else floor)[partition]
            end = snapshot.partitions[partition].end
            done.reopened.append(Reopened("rewind", *_where(place), partition, f"{read} → {end}"))
    if change:
        done.drops.append(Drop(place.flow, place.side, place.origin))
        if place.side == "source" and (reset or remembered is not None):
            # What the old log held may be on the target and can no longer be read here.
            done.gaps.append(Gap(*_where(place), -1, 0, 0, one.taken_at_ms))
        remembered = None
        if reset:
            floor = {}
    elif anew and remembered is not None:
        done.drops.append(Drop(place.flow, place.side, place.origin))
        floor, remembered = remembered.first, None
    first: dict[int, int] = {}
    following: dict[int, int] = {}
    for partition, log in sorted(snapshot.partitions.items()):
        # Without a baseline, history begins with what is there at the first look.
        begin = floor.get(partition, 0 if one.based and not reset else log.log_start)
        wanted = remembered.next.get(partition, begin) if remembered else min(begin, log.end)
        if log.log_start > wanted:
            done.gaps.append(Gap(*_where(place), partition, wanted, log.log_start, one.taken_at_ms))
        read = max(wanted, log.log_start)
        first[partition] = remembered.first.get(partition, read) if remembered else read
        following[partition] = read
        end = log.end_for(place.isolation)
        if end > read:
            done.ranges.append(
                Range(
                    place.flow, place.side, place.origin, place.topic, partition, read, end,
                    record_bytes(snapshot),
                )
            )  # fmt: skip
    now = SideMemory(snapshot.topic_id, first, following)
    if place.side == "target":
        now = _watched(now, one, remembered)
        if remembered is not None:
            done.removals += _removals(one, remembered, now)
    done.begin[one.key] = now


def _watched(now: SideMemory, one: _Side, before: SideMemory | None) -> SideMemory:
    """What has to be remembered of the target to tell whether records went too early.

    Between two looks the shorter retention of both may have been in force; what it allowed to go
    stays allowed when the retention grows.
    """
    configs = one.snapshot.configs
    size = configs.get("retention.bytes")
    retention = int(configs["retention.ms"]) if "retention.ms" in configs else None
    if size is None or int(size) >= 0:
        retention = None
    known = [retention] if before is None else [retention, before.retention_ms]
    if None in known:
        kept_from = one.taken_at_ms
    else:
        kept_from = max(
            (one.taken_at_ms - each for each in known if each is not None and each >= 0),
            default=NEVER,
        )
    return replace(
        now,
        log_start={p: log.log_start for p, log in one.snapshot.partitions.items()},
        retention_ms=retention,
        kept_from_ms=max(kept_from, before.kept_from_ms if before else NEVER),
    )


def _removals(one: _Side, before: SideMemory, now: SideMemory) -> list[Removal]:
    """What went since the last look."""
    found = []
    for partition, start in sorted(now.log_start.items()):
        end = min(start, before.next.get(partition, 0))
        begin = before.log_start.get(partition, end)
        if begin < end:
            lasting = now.retention_ms is None or now.retention_ms < 0
            found.append(
                Removal(
                    one.place.flow, one.place.topic, partition, begin, end, now.kept_from_ms,
                    None if lasting else now.retention_ms,
                )
            )  # fmt: skip
    return found


def _on_target(known: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Where the target began by the baseline of all that feeds it: by the earliest of them."""
    if not known:
        return None
    begun: dict[str, int] = {}
    for one in known:
        for partition, offset in (one.get("target") or {}).items():
            begun[partition] = min(offset, begun.get(partition, offset))
    return {"target": begun, "target_id": known[-1].get("target_id")}


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


def _where(place: _Place) -> tuple[str, Side, str, str]:
    return place.flow, place.side, place.topic, place.origin
