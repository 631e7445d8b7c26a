"""Scans of compacted topics: when one is due, and what it reads.

What compaction leaves cannot be added up run by run, so such a topic is compared as a whole, every
so often, and in between what is new of it (:mod:`plan.moments`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from mirror_report.config import Budget, Flow
from mirror_report.model import (
    PartitionSnapshot,
    Positions,
    TopicBaseline,
    TopicSnapshot,
    another_topic,
)
from mirror_report.parity import HOUR_MS, LASTING, WRONG_KEYS
from mirror_report.parity.plan import moments, strategies
from mirror_report.parity.plan.lost_tails import LastLook, is_doubtful, kept, last_scan
from mirror_report.parity.plan.moments import Moment
from mirror_report.parity.plan.ranges import Range, Spent, record_bytes
from mirror_report.parity.plan.snapshots import FlowSnapshot
from mirror_report.parity.state import BEHIND_ALL, SIDES, Offsets, Side, TopicKey, topic_value
from mirror_report.state.partitions import offsets

# What retention is about to remove may be gone before it is read.
MARGIN_MS = HOUR_MS


@dataclass(frozen=True)
class Scan:
    """The result of the last scan of a topic; JSON types only.

    :param state: :func:`CompactedTopic.state` of the topic then.
    :param keys: class -> partition (``-1``: of a topic as a whole) -> keys.
    :param accounted: class -> keys an earlier run has reported.
    :param replaced: everything it was to read had been replaced by then: nothing was compared.
    :param newer: source offsets that came while it read.
    :param moments: of the topic (:class:`plan.moments.Moment`), the newest last: everything below
        its positions was compared.
    :param looked_at_ms: when its new records were compared last (0: never).
    :param wrong: keys of the source that are wrong, both sides of each, as far as they are kept;
        rows of :data:`frames.new_records.WRONG_SCHEMA` with the class.
    :param uncompared: records that a look since could not compare.
    :param logs: :attr:`CompactedTopic.logs` of what was read last, by a scan or a look.
    """

    run_id: str
    at_ms: int
    state: list[Any]
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    source_keys: int = 0
    target_keys: int = 0
    newest_ms: int | None = None
    accounted: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    replaced: bool = False
    newer: int = 0
    moments: list[dict[str, Any]] = field(default_factory=list)
    looked_at_ms: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)
    uncompared: int = 0
    logs: list[Any] = field(default_factory=list)

    def total(self, name: str) -> int:
        """Keys of a class."""
        return sum(self.keys.get(name, {}).values())

    def reported(self, name: str, unreported: Collection[str]) -> int:
        """Keys of a class that were reported.

        :param unreported: runs whose report was not written.
        """
        return self.accounted.get(name, 0) if self.run_id in unreported else self.total(name)


@dataclass(frozen=True)
class CompactedTopic:
    """A compacted topic, both sides of it at one moment, and the mirror's positions.

    :param sources: the topics that feed it; ``target``: ``None`` if it does not exist.
    :param recorded: the flow's topics in its baseline.
    :param last: what is known of it; ``None``: nothing.
    :param moments: earlier ones of it.
    :param first: as this run observed it first, if it observed it again.
    """

    flow: Flow
    topic: str
    sources: tuple[TopicSnapshot, ...]
    target: TopicSnapshot | None
    positions: Positions
    taken_at_ms: int
    recorded: Mapping[str, TopicBaseline]
    last: Scan | None = None
    moments: Sequence[Moment] = ()
    first: CompactedTopic | None = None

    @classmethod
    def of_snapshot(
        cls,
        snapshot: FlowSnapshot,
        topic: str,
        origins: Iterable[str],
        recorded: Mapping[str, TopicBaseline],
    ) -> CompactedTopic | None:
        """One topic of a snapshot; ``None`` if it is no longer on the source."""
        topics = [snapshot.source.topics.get(origin) for origin in origins]
        present = tuple(source for source in topics if source is not None)
        if len(present) < len(topics):
            return None
        return cls(
            snapshot.flow, topic, present, snapshot.target.topics.get(topic), snapshot.positions,
            snapshot.source.taken_at_ms, recorded,
        )  # fmt: skip

    @property
    def key(self) -> TopicKey:
        """Its flow and name."""
        return self.flow.name, self.topic

    @property
    def keeps_time(self) -> bool:
        """Whether timestamps have to be the same on both sides."""
        return self.target is None or strategies.keeps_time(self.target)

    def sides(self) -> list[tuple[Side, TopicSnapshot]]:
        """All topics of both sides."""
        topics: list[tuple[Side, TopicSnapshot]] = [("source", topic) for topic in self.sources]
        return topics if self.target is None else [*topics, ("target", self.target)]

    def state(self) -> list[Any]:
        """Logs and their ends, which change before a scan finds anything else; JSON types only."""
        return [
            [side, topic.name, topic.topic_id,
             {str(p): log.end for p, log in topic.partitions.items()}]
            for side, topic in self.sides()
        ]  # fmt: skip

    @property
    def logs(self) -> list[Any]:
        """The identity of its logs, rows of :func:`plan.lost_tails.last_scan`.

        Of each partition the end that was read up to, the epoch of the leader that answered it, and
        the epochs by then; JSON types only.
        """
        begun = {(side, topic.name): topic for side, topic in (self.first or self).sides()}
        return [
            [side, topic.name, topic.topic_id, {
                str(p): _known_log(p, log, topic.partitions.get(p, log))
                for p, log in begun[side, topic.name].partitions.items()
            }]
            for side, topic in self.sides() if (side, topic.name) in begun
        ]  # fmt: skip

    def ranges(self) -> list[Range]:
        """Everything both sides hold."""
        return [
            Range(
                self.flow.name, side, topic.name, self.topic, partition, log.log_start,
                log.end_for(self.flow.isolation(side)), record_bytes(topic, 0.0),
            )
            for side, topic in self.sides()
            for partition, log in topic.partitions.items()
            if log.end_for(self.flow.isolation(side)) > log.log_start
        ]  # fmt: skip

    def places(self) -> list[dict[str, Any]]:
        """Rows of :data:`frames.latest_by_key.PLACES_SCHEMA`."""
        rows: list[dict[str, Any]] = []
        for side, topic in self.sides():
            origins = [topic.name] if side == "source" else [each.name for each in self.sources]
            recorded = [self.recorded[name] for name in origins if name in self.recorded]
            floors = recorded[-1].side(side).start if recorded else {}
            committed = self.positions.get(topic.name, {})
            rows += [
                {
                    "flow": self.flow.name, "side": side, "origin": topic.name,
                    "partition": p, "floor": floors.get(p, 0),
                    "position": committed.get(p, log.log_start) if side == "source" else None,
                }
                for p, log in topic.partitions.items()
            ]  # fmt: skip
        return rows

    def ends_seen(self) -> list[dict[str, Any]]:
        """Rows of :data:`frames.latest_by_key.ENDS_SCHEMA`: where it ended at its moments."""
        followed = [moment for moment in self.moments if moment.following]
        return [
            {
                "flow": self.flow.name, "topic": self.topic, "side": side, "origin": topic.name,
                "partition": p, "ends": [
                    (moment.ends if side == "target" else moment.following.get(topic.name, {}))
                    .get(p, 0)
                    for moment in followed
                ],
            }
            for side, topic in self.sides() for p in topic.partitions
        ]  # fmt: skip

    def lost(self) -> list[dict[str, Any]]:
        """Rows of :data:`frames.latest_by_key.LOST_SCHEMA`: what the target was found to lack."""
        return [
            {
                "flow": self.flow.name, "topic": self.topic,
                **{name: key[name] for name in ("lane", "k1", "k2")},
                **{f"lost_{name}": key["source"][name]
                   for name in ("origin", "partition", "offset")},
            }
            for key in (self.last.wrong if self.last else ())
            if key["class"] in LASTING or key.get("lost")
        ]  # fmt: skip

    def wrong_records(self) -> list[dict[str, Any]]:
        """Rows of :data:`frames.new_records.WRONG_SCHEMA`: both sides of keys that were wrong."""
        return [
            {
                "flow": self.flow.name, "topic": self.topic, "side": side,
                **{name: key[name] for name in ("lane", "k1", "k2")},
                **key[side], "counts": True, "below": side == "source",
            }
            for key in (self.last.wrong if self.last else ())
            for side in SIDES if key[side] is not None
        ]  # fmt: skip

    def after(self, last: Scan | None) -> CompactedTopic:
        """It with its last scan, and with its moments unless they are of other logs of its name."""
        plain = last.moments if last and self.goes_on_from(last) else []
        earlier = [Moment.load(moment) for moment in plain]
        return replace(self, last=last, moments=moments.followed(earlier, self.source_ends()))

    def goes_on_from(self, last: Scan) -> bool:
        """Whether its logs are those of a scan, and as far as is known hold what they held.

        A run that confirms what it found has seen later ends than those it began with.
        """
        present = {(side, topic.name): topic for side, topic in self.sides()}
        later = self.taken_at_ms > max(last.at_ms, last.looked_at_ms)
        for side, name, topic_id, ends in last.state:
            now = present.get((side, name))
            if now is None or another_topic(topic_id, now.topic_id):
                return False
            present_ends = {str(p): log.end for p, log in now.partitions.items()}
            if later and any(present_ends.get(p, 0) < end for p, end in ends.items()):
                return False
            look = last_scan(side, name, last.logs)
            if later and any(is_doubtful(look, p, log) for p, log in now.partitions.items()):
                return False
        return len(last.state) == len(present)

    @property
    def reached(self) -> Offsets:
        """Below which everything was compared; earlier releases kept the ends of the source."""
        if self.moments or self.last is None or not self.goes_on_from(self.last):
            return self.moments[-1].positions if self.moments else {}
        return {name: offsets(ends) for side, name, _, ends in self.last.state if side == "source"}

    def unlooked(self, ends: Callable[[PartitionSnapshot], int] = attrgetter("end")) -> int:
        """Source offsets that were mirrored and not compared.

        :param ends: of what counts: all of a log, or what has expired of it.
        """
        return sum(
            max(0, min(position, ends(log)) - self.reached.get(source.name, {}).get(p, 0))
            for source in self.sources
            for p, position in self.positions.get(source.name, {}).items()
            if (log := source.partitions.get(p)) is not None
        )

    def has_news(self) -> bool:
        """Whether there is something to look at: new records, or maybe a key that was mended."""
        if self.target is None or self.last is None or not self.moments:
            return False
        ends = self.moments[-1].ends
        grown = any(end > ends.get(p, 0) for p, end in self.moment().ends.items())
        return self.unlooked() > 0 or (bool(self.last.wrong) and grown)

    def new_ranges(self) -> list[Range]:
        """Ranges that are new on the source, and those of the target that hold their copies."""
        kept = self.flow.engine.keeps_partitions
        begin = {
            ("source", source.name, p): self.reached.get(source.name, {}).get(p, 0)
            for source in self.sources for p in source.partitions
        } | {
            ("target", self.topic, p): moments.start(
                self.moments, self.reached, p, keeps_partitions=kept)[0]
            for p in (self.target.partitions if self.target else ())
        }  # fmt: skip
        return [
            replace(part, start=start)
            for part in self.ranges()
            if (start := max(part.start, begin[part.side, part.origin, part.partition])) < part.end
        ]

    def keeps_tombstones(self) -> bool:
        """Whether none can have been removed of what :meth:`new_ranges` reads of the target."""
        if self.target is None or not strategies.is_compacted(self.target):
            return self.target is not None and bool(self.target.configs)
        kept_ms = int(self.target.configs.get("delete.retention.ms", 0))
        since = [
            moments.start(self.moments, self.reached, p,
                        keeps_partitions=self.flow.engine.keeps_partitions)[1]
            for p in self.target.partitions
        ]  # fmt: skip
        oldest = min((at or 0 for at in since), default=0)
        return self.taken_at_ms - oldest + MARGIN_MS < kept_ms

    def moment(self) -> Moment:
        """This moment of it."""
        target = {} if self.target is None else self.target.partitions
        isolation = self.flow.isolation("target")
        committed = {
            source.name: {
                # A mirror at work commits beyond what the source held when it was observed.
                p: min(position, source.partitions[p].end_for(self.flow.isolation("source")))
                for p, position in self.positions.get(source.name, {}).items()
                if p in source.partitions
            }
            for source in self.sources
        }
        return Moment(
            self.taken_at_ms,
            committed,
            {p: log.end_for(isolation) for p, log in target.items()},
        )  # fmt: skip

    def source_ends(self) -> dict[str, dict[int, int]]:
        """Ends of all that a mirror may have copied by now."""
        return {
            source.name: {p: log.end for p, log in source.partitions.items()}
            for source in self.sources
        }

    def retained(self, firsts: Mapping[int, tuple[int, int]]) -> list[dict[str, Any]]:
        """Rows of :data:`frames.latest_by_key.RETAINED_SCHEMA`: where retention was at work.

        Only where a log begins later than it did can something have gone. Partitions keep the
        order of records: of what follows a key that both sides hold, neither side has lost any.

        :param firsts: partition -> lowest offsets on source and target of keys that are verified.
        """
        if self.target is None:
            return []
        kept = self.flow.engine.keeps_partitions
        ordered = firsts if kept and len(self.sources) == 1 else {}
        rows = []
        limit = _expired_ms([self.target], self.taken_at_ms)
        all_moments = [*self.moments, self.moment()]
        for source in self.sources:
            for p in _moved(source, [self.target], kept=kept) if limit is not None else ():
                args = (all_moments, _starts(self.target), source.name, p)
                rows.append(self._row("source", source.name, p, limit) | {
                    "gone": moments.gone_below(*args, keeps_partitions=kept),
                    "kept": min(
                        moments.kept_from(*args, keeps_partitions=kept),
                        ordered.get(p, (BEHIND_ALL, BEHIND_ALL))[0],
                    ),
                })  # fmt: skip
        limit = _expired_ms(self.sources, self.taken_at_ms)
        for p in _moved(self.target, self.sources, kept=kept) if limit is not None else ():
            # A key that only the target has is no loss: it has expired where it may have.
            bound = ordered.get(p, (BEHIND_ALL, BEHIND_ALL))[1]
            rows.append(self._row("target", self.topic, p, limit) | {"gone": bound, "kept": bound})
        return rows

    def _row(
        self, side: Side, origin: str, partition: int, expired_ms: int | None
    ) -> dict[str, Any]:
        return {
            "flow": self.flow.name, "topic": self.topic, "side": side, "origin": origin,
            "partition": partition, "expired_ms": expired_ms,
        }  # fmt: skip


@dataclass(frozen=True)
class ComparedTopic:
    """The result of a scan or a look of one topic.

    :param rows: of :func:`frames.latest_by_key.count`; ``samples``: of its ``samples``.
    :param wrong: keys that are, as :class:`Scan` keeps them.
    :param later: the topic after it was read; ``None``: it was gone.
    """

    topic: CompactedTopic
    rows: Sequence[Mapping[str, Any]] = ()
    samples: Sequence[Mapping[str, Any]] = ()
    wrong: Sequence[dict[str, Any]] = ()
    later: CompactedTopic | None = None

    @property
    def newer(self) -> int:
        """Source offsets that came while it was read."""
        ends = self.topic.source_ends()
        return sum(
            max(0, end - ends.get(origin, {}).get(partition, 0))
            for origin, parts in (self.later.source_ends() if self.later else {}).items()
            for partition, end in parts.items()
        )

    @property
    def replaced(self) -> bool:
        """Whether nothing was left of what it held, because newer records had come."""
        return self.newer > 0 and not self.rows

    @property
    def differs(self) -> bool:
        """Whether keys of it are wrong, or everything had been replaced."""
        return self.replaced or any(row["class"] in WRONG_KEYS for row in self.rows)

    @property
    def moments(self) -> list[Moment]:
        """Moments of the topic; the ends that it had after it was read follow all of them."""
        if self.topic.target is None:
            return list(self.topic.moments)
        noted = moments.noted(self.topic.moments, self.topic.moment())
        return moments.followed(noted, self.later.source_ends()) if self.later else noted


def last_of(scans: Mapping[str, Mapping[str, Mapping[str, Any]]], topic: TopicKey) -> Scan | None:
    """The last scan of a topic.

    :param scans: scans of the manifest.
    """
    plain = topic_value(scans, topic, None)
    return None if plain is None else Scan(**plain)


def waiting(topics: Iterable[CompactedTopic], every_ms: float) -> list[CompactedTopic]:
    """Topics whose scan is due, those first that were scanned longest ago."""
    late = (topic for topic in topics if due(topic.last, topic, every_ms))
    return sorted(late, key=lambda topic: topic.last.at_ms if topic.last else 0)


def due(last: Scan | None, now: CompactedTopic, every_ms: float) -> bool:
    """Whether a topic has to be scanned: something is new, and the last scan is old enough.

    What was found in other logs of that name, or in what they have lost since, does not count.
    """
    if last is None or last.replaced or not now.goes_on_from(last):
        return True
    changed = last.state != now.state() or last.total("in_flight") > 0
    return changed and now.taken_at_ms - last.at_ms >= every_ms


def affordable(
    topics: Iterable[CompactedTopic],
    spent: Spent,
    budget: Budget,
    ranges_of: Callable[[CompactedTopic], Sequence[Range]] = CompactedTopic.ranges,
) -> list[CompactedTopic]:
    """Topics that fit into what a run may still read, in their order.

    :param spent: what it reads before.
    :param ranges_of: what is to be read of one.
    """
    chosen = []
    for topic in topics:
        ranges = ranges_of(topic)
        if spent.allows(budget, ranges):
            chosen.append(topic)
            spent = spent.plus(ranges)
    return chosen


def _known_log(number: int, begun: PartitionSnapshot, now: PartitionSnapshot) -> list[Any]:
    """The identity of a log that was read up to an end, as far as its leader answers for it."""
    end = now.end if now.leader_epoch == begun.leader_epoch else begun.end
    epochs, _ = kept(LastLook(), number, begun, end)
    return [end, begun.leader_epoch, [list(epoch) for epoch in epochs]]


def _starts(topic: TopicSnapshot) -> dict[int, int]:
    return {p: log.log_start for p, log in topic.partitions.items()}


def _moved(topic: TopicSnapshot, others: Iterable[TopicSnapshot], *, kept: bool) -> list[int]:
    """Partitions of a topic whose records may have had partners in a log that begins later by now.

    :param others: of the other side; ``kept``: whether partners are in the same partition.
    """
    moved = [p for other in others for p, start in _starts(other).items() if start]
    return [p for p in topic.partitions if (p in moved if kept else moved)]


def _expired_ms(topics: Iterable[TopicSnapshot], now_ms: int) -> int | None:
    """Records up to which timestamp retention may have removed; ``None``: none."""
    limits = []
    for configs in (topic.configs for topic in topics):
        if "delete" in configs.get("cleanup.policy", ""):
            kept_ms = int(configs.get("retention.ms", -1))
            if int(configs.get("retention.bytes", -1)) >= 0:
                limits.append(now_ms)
            elif kept_ms >= 0:
                limits.append(now_ms - kept_ms + MARGIN_MS)
    return max(limits, default=None)
