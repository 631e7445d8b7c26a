"""How far a mirror is behind, and in which state it is: snapshots in, rows out; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_report.checks.estimates import Estimate
from mirror_report.checks.trails import Trail, Trails
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Warn
from mirror_report.model.cluster import (
    ClusterSnapshot,
    GroupSnapshot,
    OpenTransaction,
    PartitionSnapshot,
    Place,
    Positions,
    TopicSnapshot,
)
from mirror_report.model.lag import LagState, PartitionLag, PositionSource
from mirror_report.model.mirror import Standing

COMMITS_APART = 2
"""What a mirror copies within so many commit intervals is no backlog, but how it works."""


@dataclass(frozen=True)
class Position:
    """Where a mirror stands in one partition.

    :param offset: the committed position, or where it begins before the first commit.
    :param stands: next offset to copy: past transaction markers behind the position.
    """

    offset: int
    stands: int
    source: PositionSource


@dataclass(frozen=True)
class Evidence:
    """What one look found out about a flow beside offsets and positions.

    :param ages: timestamp (ms) of the oldest record waiting; ``None``: only transaction markers
        are left, which are never mirrored; absent: not known.
    :param sizes: bytes of the partitions' logs; absent: not known.
    :param transactions: open ones that hold back readers of committed records.
    :param losses: offsets certainly lost since the baseline, and those that may be besides.
    :param truncated: partitions whose log begins past where the mirror stands.
    :param estimates: probable positions; they decide nothing.
    :param reset_topics: topics whose id differs from the one remembered.
    """

    ages: Mapping[Place, int | None] = field(default_factory=dict)
    sizes: Mapping[Place, int] = field(default_factory=dict)
    transactions: Mapping[Place, OpenTransaction] = field(default_factory=dict)
    losses: Mapping[Place, tuple[int, int]] = field(default_factory=dict)
    truncated: frozenset[Place] = frozenset()
    estimates: Mapping[Place, Estimate] = field(default_factory=dict)
    reset_topics: frozenset[str] = frozenset()


def places(
    flow: Flow,
    source: ClusterSnapshot,
    positions: Positions,
    baseline: Mapping[str, Any],
    trails: Trails | None = None,
) -> dict[Place, Position]:
    """Where the mirror stands in every partition in which that is known.

    :param baseline: the flow's entry of the manifest ``baseline``, possibly empty.
    """
    found: dict[Place, Position] = {}
    for name, topic in source.topics.items():
        for number in topic.partitions:
            known = _offset(flow, topic, number, positions, baseline)
            if known is not None:
                offset, origin = known
                trail = (trails or Trails()).at((name, number))
                stands = trail.stands(offset) if origin in COMMITTED else offset
                found[name, number] = Position(offset, stands, origin)
    return found


COMMITTED = ("group_commit", "connect_offsets")


def _offset(
    flow: Flow,
    topic: TopicSnapshot,
    partition: int,
    positions: Positions,
    baseline: Mapping[str, Any],
) -> tuple[int, PositionSource] | None:
    """The committed position; before the first commit where the mirror begins, if that is known."""
    offset = positions.get(topic.name, {}).get(partition)
    if offset is not None:
        return offset, "connect_offsets" if flow.engine == "mm2" else "group_commit"
    recorded = baseline.get("topics", {}).get(topic.name)
    if recorded is not None:
        return int(recorded["source"].get(str(partition), 0)), "baseline"
    if flow.start != "earliest":
        return None
    # A topic younger than the baseline belongs to the mirror as a whole.
    return (0 if baseline else topic.partitions[partition].log_start), "log_start"


def waiting(
    flow: Flow, source: ClusterSnapshot, positions: Mapping[Place, Position]
) -> dict[Place, tuple[int, int]]:
    """Partitions with lag: topic and partition -> first readable position and log end."""
    found: dict[Place, tuple[int, int]] = {}
    for (name, number), one in positions.items():
        log = source.topics[name].partitions[number]
        end = log.end_for(flow.source_isolation)
        if one.stands < end:
            found[name, number] = (max(one.stands, log.log_start), end)
    return found


def drained(
    waiting: Mapping[Place, tuple[int, int]], ages: Mapping[Place, int | None]
) -> dict[Place, int]:
    """Log end of partitions in which nothing but transaction markers is left to mirror.

    :param waiting: as :func:`waiting` made it; ``ages``: timestamp (ms) of the oldest record.
    """
    return {at: end for at, (_, end) in waiting.items() if at in ages and ages[at] is None}


def oldest_first(
    waiting: Mapping[Place, tuple[int, int]], trails: Trails, limit: int
) -> dict[Place, tuple[int, int]]:
    """Those of the partitions with lag that have had it longest, and of these the largest lags."""

    def order(place: Place) -> tuple[float, int]:
        begin, end = waiting[place]
        return trails.at(place).first_seen(begin) or float("inf"), begin - end

    chosen = sorted(waiting, key=order)[:limit] if len(waiting) > limit else waiting
    return {place: waiting[place] for place in chosen}


def measure(
    flow: Flow,
    source: ClusterSnapshot,
    standing: Standing,
    group: GroupSnapshot,
    positions: Mapping[Place, Position],
    *,
    evidence: Evidence,
    trails: Trails,
    baseline: Mapping[str, Any],
    warn: Warn,
) -> list[PartitionLag]:
    """One row per source partition; a topic that could not be read is one of partition -1.

    :param trails: earlier looks.
    """
    rows: list[PartitionLag] = []
    for name, topic in source.topics.items():
        for number, log in sorted(topic.partitions.items()):
            place = (name, number)
            position = positions.get(place)
            if position is None:
                state: LagState = "RESET" if name in evidence.reset_topics else "UNKNOWN"
                known = (log.log_start, log.end_for(flow.source_isolation), None, None, None)
                rows.append(PartitionLag(flow.name, *place, state, *known))
                continue
            one = _Partition(flow, source.taken_at_ms, place, log, position, evidence, trails, warn)
            rows.append(one.row(standing, baseline, alive=bool(group.members)))
    rows += [
        PartitionLag(flow.name, name, -1, "UNKNOWN", None, None, None, None, None)
        for name in source.errors
    ]
    return rows


@dataclass(frozen=True)
class _Partition:
    """One partition of one look, and what is derived from it."""

    flow: Flow
    now_ms: int
    place: Place
    log: PartitionSnapshot
    position: Position
    evidence: Evidence
    trails: Trails
    warn: Warn

    @property
    def trail(self) -> Trail:
        return self.trails.at(self.place)

    @property
    def begin(self) -> int:
        """First offset that can still be mirrored."""
        return max(self.position.stands, self.log.log_start)

    @property
    def end(self) -> int:
        """End of what the mirror copies."""
        return self.log.end_for(self.flow.source_isolation)

    @property
    def records(self) -> int:
        ages = self.evidence.ages
        if self.place in ages and ages[self.place] is None:
            return 0
        return max(0, self.end - self.begin)

    def row(self, standing: Standing, baseline: Mapping[str, Any], *, alive: bool) -> PartitionLag:
        records = self.records
        seconds = self._seconds(records)
        waits, at_least = self._waits(records, seconds)
        size = self._bytes(records)
        produced, mirrored, over = self._rates()
        eta, catches_up = _eta(
            records, produced, mirrored, over, self.flow.commit_interval_ms / 1000
        )
        lost, maybe = self.evidence.losses.get(self.place, (0, 0))
        transaction = self.evidence.transactions.get(self.place)
        probable = self.evidence.estimates.get(self.place)
        return PartitionLag(
            flow=self.flow.name,
            topic=self.place[0],
            partition=self.place[1],
            state=self._state(
                records,
                self._behind(records, seconds, waits, size, at_least=at_least),
                alive=alive,
                since_ms=int(baseline.get("recorded_at_ms", 0)),
            ),
            log_start=self.log.log_start,
            log_end=self.end,
            position=self.position.offset,
            lag_records=records,
            lag_seconds=seconds,
            lost=lost,
            estimate=probable.position if probable else None,
            estimate_source=probable.basis if probable else None,
            estimate_age_seconds=self._ago(probable.at_ms) if probable else None,
            lost_at_most=lost + maybe if maybe else None,
            lag_bytes=size,
            waiting_seconds=waits,
            waiting_at_least=at_least,
            produce_rate=produced,
            mirror_rate=mirrored,
            eta_seconds=eta,
            catches_up=catches_up,
            position_source=self.position.source,
            position_age_seconds=self._position_age(standing, baseline),
            open_transaction_seconds=transaction.seconds if transaction else None,
        )

    def _ago(self, at_ms: int) -> float:
        return max(0.0, (self.now_ms - at_ms) / 1000)

    def _seconds(self, records: int) -> float | None:
        if not records:
            return 0.0
        timestamp = self.evidence.ages.get(self.place)
        # -1 is Kafka's word for no timestamp; nothing below says anything either.
        return None if timestamp is None or timestamp < 0 else self._ago(timestamp)

    def _waits(self, records: int, seconds: float | None) -> tuple[float | None, bool]:
        """Age of the oldest record waiting, held to what earlier looks saw."""
        if not records:
            return 0.0, False
        if not self.trails.looks:
            return None, False
        first = self.trail.first_seen(self.begin)
        least = self._ago(first) if first is not None else 0.0
        before = self.trails.look_before(self.now_ms if first is None else first)
        if before is None:
            return least, True
        return (least if seconds is None else min(max(seconds, least), self._ago(before))), False

    def _bytes(self, records: int) -> int | None:
        if not records:
            return 0
        size, held = self.evidence.sizes.get(self.place), self.log.end - self.log.log_start
        return None if size is None or held <= 0 else round(size * records / held)

    def _rates(self) -> tuple[float | None, float | None, float]:
        """Offsets per second of the source and of the mirror, and over how many seconds."""
        base = self.trails.base(self.now_ms)
        if base is None:
            return None, None, 0.0
        over = (self.now_ms - base) / 1000
        end, stood = self.trail.end_at(base), self.trail.stood_at(base)
        produced = None if end is None else (self.end - end) / over
        forward = stood is not None and stood <= self.position.stands
        mirrored = (self.position.stands - (stood or 0)) / over if forward else None
        return produced, mirrored, over

    def _position_age(self, standing: Standing, baseline: Mapping[str, Any]) -> float | None:
        at_ms: int | None = None
        if self.position.source == "connect_offsets":
            at_ms = standing.committed_at_ms.get(self.place)
        elif self.position.source == "group_commit":
            at_ms = self.trail.moved_at(self.position.offset)
        elif self.position.source == "baseline":
            at_ms = baseline.get("recorded_at_ms")
        return None if at_ms is None else self._ago(at_ms)

    def _behind(
        self,
        records: int,
        seconds: float | None,
        waits: float | None,
        size: int | None,
        *,
        at_least: bool,
    ) -> bool:
        """Whether lag is above one of its bounds."""
        # A record may be older than its arrival; what looks have seen corrects it.
        known = [waits] if waits is not None and not at_least else [seconds, waits]
        age = max((one for one in known if one is not None), default=None)
        return any(
            bound is not None and value is not None and value > bound
            for bound, value in (
                (self.warn.lag_records, records),
                (self.warn.lag_seconds, age),
                (self.warn.lag_bytes, size),
            )
        )

    def _still_seconds(self) -> float:
        """For how long records have waited while the position stayed where it is."""
        first = self.trail.first_seen(self.begin)
        since = self.trail.unmoved_since(self.position.offset)
        return 0.0 if first is None or since is None else self._ago(max(first, since))

    def _state(self, records: int, behind: bool, *, alive: bool, since_ms: int) -> LagState:
        trail, offset = self.trail, self.position.offset
        idle = self.log.end == 0 or (bool(trail.ends) and trail.ends[-1][1] == self.end)
        # The first that holds is the state.
        candidates: tuple[tuple[bool, LagState], ...] = (
            (self.place[0] in self.evidence.reset_topics or offset > self.log.end, "RESET"),
            (self.place in self.evidence.truncated, "TRUNCATED"),
            (records == 0 and idle, "IDLE"),
            (records == 0, "OK"),
            (not alive, "STOPPED"),
            (self._still_seconds() >= self.warn.stalled_seconds, "STALLED"),
            (offset < trail.highest(since_ms), "REWOUND"),
            (behind, "LAGGING"),
        )
        return next((state for holds, state in candidates if holds), "OK")


def _eta(
    records: int,
    produced: float | None,
    mirrored: float | None,
    over: float,
    commit_seconds: float,
) -> tuple[float | None, bool | None]:
    """Seconds until nothing waits at these rates, and whether that ever comes.

    :param over: seconds the rates were measured over; positions move once per commit.
    """
    if records == 0:
        return 0.0, True
    if produced is None or mirrored is None or over < commit_seconds:
        return None, None
    if mirrored > 0 and records <= COMMITS_APART * commit_seconds * mirrored:
        return records / mirrored, True
    if mirrored > produced:
        return records / (mirrored - produced), True
    return None, False


def changed_ids(
    remembered: Mapping[str, str], snapshot: ClusterSnapshot
) -> dict[str, tuple[str, str]]:
    """Topics whose id is not the remembered one: name -> (remembered, found)."""
    return {
        name: (remembered[name], topic.topic_id)
        for name, topic in snapshot.topics.items()
        if name in remembered and remembered[name] != topic.topic_id
    }
