"""How far a mirror is behind, its pace and its state: snapshots in, rows out; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_report.checks.partition_history import FlowHistory, PartitionHistory
from mirror_report.checks.positions import Estimate, Position
from mirror_report.config import Flow, Warn
from mirror_report.model import (
    Baseline,
    LagState,
    MirrorStatus,
    Observed,
    OpenTransaction,
    PartitionLag,
    PartitionSnapshot,
    Place,
)

# What a mirror copies within so many commit intervals is no backlog, but how it works.
COMMITS_APART = 2


@dataclass(frozen=True)
class Evidence:
    """What one observation holds of a flow beside the offsets of its logs.

    :param positions: where the mirror is; absent: not known.
    :param ages: timestamp (ms) of the oldest record waiting; ``None``: only transaction markers
        are left, which are never mirrored; absent: not known.
    :param sizes: bytes of the partitions' logs; absent: not known.
    :param transactions: open ones that hold back readers of committed records.
    :param losses: offsets certainly lost since the baseline, and those that may be besides.
    :param truncated: partitions whose log begins past the mirror's next offset.
    :param estimates: probable positions; they decide nothing.
    :param reset_topics: topics whose id differs from the one remembered.
    """

    positions: Mapping[Place, Position]
    ages: Mapping[Place, int | None] = field(default_factory=dict)
    sizes: Mapping[Place, int] = field(default_factory=dict)
    transactions: Mapping[Place, OpenTransaction] = field(default_factory=dict)
    losses: Mapping[Place, tuple[int, int]] = field(default_factory=dict)
    truncated: frozenset[Place] = frozenset()
    estimates: Mapping[Place, Estimate] = field(default_factory=dict)
    reset_topics: frozenset[str] = frozenset()


def measure(
    flow: Flow,
    observed: Observed,
    evidence: Evidence,
    *,
    history: FlowHistory,
    baseline: Baseline,
    warn: Warn,
) -> list[PartitionLag]:
    """One row per source partition; a topic that could not be read is one of partition -1.

    :param history: earlier observations.
    """
    rows: list[PartitionLag] = []
    source, alive = observed.source, bool(observed.group.members)
    for name, topic in source.topics.items():
        for number, log in sorted(topic.partitions.items()):
            place = (name, number)
            if (position := evidence.positions.get(place)) is None:
                state: LagState = "RESET" if name in evidence.reset_topics else "UNKNOWN"
                end = log.end_for(flow.source_isolation)
                rows.append(
                    PartitionLag(flow.name, *place, state, log.log_start, end, None, None, None)
                )
            else:
                partition = _Partition(
                    flow, source.taken_at_ms, place, log, position, evidence, history, warn
                )
                rows.append(partition.row(observed.mirror, baseline, alive=alive))
    return rows + [
        PartitionLag(flow.name, name, -1, "UNKNOWN", None, None, None, None, None)
        for name in source.errors
    ]


@dataclass(frozen=True)
class _Partition:
    """One partition of one observation, and what is derived from it."""

    flow: Flow
    now_ms: int
    place: Place
    log: PartitionSnapshot
    position: Position
    evidence: Evidence
    history: FlowHistory
    warn: Warn

    @property
    def past(self) -> PartitionHistory:
        return self.history.at(self.place)

    @property
    def begin(self) -> int:
        """First offset that can still be mirrored."""
        return max(self.position.next_offset, self.log.log_start)

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

    def row(self, mirror: MirrorStatus, baseline: Baseline, *, alive: bool) -> PartitionLag:
        records = self.records
        seconds = self._seconds(records)
        waits, at_least = self._waits(records, seconds)
        size = self._bytes(records)
        base = self.history.flowed_since(self.place, self.now_ms)
        produced, mirrored = rates(
            self.past, base, self.now_ms, self.end, self.position.next_offset
        )
        # A mirror that is stopped has no pace.
        mirrored = mirrored if alive else None
        eta, catches_up = catching_up(
            records, produced, mirrored,
            measured_seconds=0.0 if base is None else (self.now_ms - base) / 1000,
            commit_seconds=self.flow.commit_interval_ms / 1000,
        )  # fmt: skip
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
                since_ms=baseline.recorded_at_ms or 0,
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
            position_age_seconds=self._position_age(mirror, baseline),
            open_transaction_seconds=transaction.seconds if transaction else None,
        )

    def _ago(self, at_ms: int) -> float:
        return max(0.0, (self.now_ms - at_ms) / 1000)

    def _seconds(self, records: int) -> float | None:
        if not records:
            return 0.0
        timestamp = self.evidence.ages.get(self.place)
        # -1 is Kafka's word for no timestamp; lower values have no meaning.
        return None if timestamp is None or timestamp < 0 else self._ago(timestamp)

    def _waits(self, records: int, seconds: float | None) -> tuple[float | None, bool]:
        """Age of the oldest record waiting, bounded by earlier observations."""
        if not records:
            return 0.0, False
        if not self.history.observed_at:
            return None, False
        first = self.past.first_seen(self.begin)
        least = self._ago(first) if first is not None else 0.0
        before = self.history.observation_before(self.now_ms if first is None else first)
        if before is None:
            return least, True
        return (least if seconds is None else min(max(seconds, least), self._ago(before))), False

    def _bytes(self, records: int) -> int | None:
        if not records:
            return 0
        size, held = self.evidence.sizes.get(self.place), self.log.end - self.log.log_start
        return None if size is None or held <= 0 else round(size * records / held)

    def _position_age(self, mirror: MirrorStatus, baseline: Baseline) -> float | None:
        at_ms = {
            "connect_offsets": mirror.committed_at_ms.get(self.place),
            "group_commit": self.past.moved_at(self.position.offset),
            "baseline": baseline.recorded_at_ms,
        }.get(self.position.source)
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
        # A record may be older than its arrival; earlier observations correct it.
        ages = [waits] if waits is not None and not at_least else [seconds, waits]
        age = max((each for each in ages if each is not None), default=None)
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
        first = self.past.first_seen(self.begin)
        since = self.past.unmoved_since(self.position.offset)
        return 0.0 if first is None or since is None else self._ago(max(first, since))

    def _state(self, records: int, behind: bool, *, alive: bool, since_ms: int) -> LagState:
        past, offset = self.past, self.position.offset
        idle = self.log.end == 0 or (bool(past.ends) and past.ends[-1][1] == self.end)
        # The first that holds is the state.
        candidates: tuple[tuple[bool, LagState], ...] = (
            (self.place[0] in self.evidence.reset_topics or offset > self.log.end, "RESET"),
            (self.place in self.evidence.truncated, "TRUNCATED"),
            (records == 0 and idle, "IDLE"),
            (records == 0, "OK"),
            (not alive, "STOPPED"),
            (self._still_seconds() >= self.warn.stalled_seconds, "STALLED"),
            (offset < past.highest(since_ms), "REWOUND"),
            (behind, "LAGGING"),
        )
        return next((state for holds, state in candidates if holds), "OK")


def rates(
    past: PartitionHistory, base: int | None, now_ms: int, end: int, next_offset: int
) -> tuple[float | None, float | None]:
    """Offsets per second of the source and of the mirror; ``None``: not known.

    :param base: time (ms) of the observation that rates start from.
    :param end: log end now; ``next_offset``: next one to copy now.
    """
    if base is None:
        return None, None
    seconds = (now_ms - base) / 1000
    former_end, former = past.end_at(base), past.next_offset_at(base)
    produced = None if former_end is None else (end - former_end) / seconds
    # A mirror that was set back has no rate.
    set_back = former is None or former > next_offset
    return produced, None if set_back else (next_offset - (former or 0)) / seconds


def catching_up(
    records: int,
    produced: float | None,
    mirrored: float | None,
    *,
    measured_seconds: float,
    commit_seconds: float,
) -> tuple[float | None, bool | None]:
    """Seconds until nothing waits at these rates, and whether that ever comes.

    :param records: those that wait.
    :param measured_seconds: for which the rates were measured; positions move once per commit.
    """
    if records == 0:
        return 0.0, True
    if produced is None or mirrored is None or measured_seconds < commit_seconds:
        return None, None
    if mirrored > 0 and records <= COMMITS_APART * commit_seconds * mirrored:
        return records / mirrored, True
    if mirrored > produced:
        return records / (mirrored - produced), True
    return None, False
