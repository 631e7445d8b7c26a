"""How far a mirror is behind."""

from dataclasses import dataclass
from typing import Literal

LagState = Literal[
    "OK",
    "IDLE",
    "LAGGING",
    "STALLED",
    "STOPPED",
    "REWOUND",
    "TRUNCATED",
    "RESET",
    "UNKNOWN",
]


PositionSource = Literal["group_commit", "connect_offsets", "baseline", "log_start"]


@dataclass(frozen=True)
class PartitionLag:
    """How far the mirror is behind on one source partition.

    :param position: next offset to mirror, as committed.
    :param lag_seconds: age of the oldest record not yet mirrored, by its timestamp.
    :param lost: offsets the source certainly dropped before they were mirrored, since the baseline.
    :param lost_at_most: upper bound where it is not known how many; ``None``: ``lost`` is exact.
    :param lag_bytes: size of the records that wait, estimated from the size of the log on disk.
    :param waiting_seconds: for how long the oldest offset not yet mirrored has been in the log: its
        record's age, bounded by the log ends of earlier observations; at least so long if
        ``waiting_at_least``, because no observation goes back far enough.
    :param produce_rate: offsets per second the source grew by over the last five minutes, or since
        the observation before if that is longer ago, less the time before anything moved;
        ``mirror_rate``: by which the position did, unknown while the mirror is stopped.
    :param eta_seconds: until the mirror has caught up at these rates; ``catches_up``: false if it
        never will, ``None`` if not known.
    :param position_source: where the position is from; ``position_age_seconds``: age of that word.
    :param open_transaction_seconds: age of the oldest transaction that holds back readers of
        committed records in this partition.
    :param estimate: where the mirror probably is now, ahead of what it has committed; it
        decides nothing.
    :param estimate_source: what the estimate rests on.
    :param estimate_age_seconds: age of that.
    """

    flow: str
    topic: str
    partition: int
    state: LagState
    log_start: int | None
    log_end: int | None
    position: int | None
    lag_records: int | None
    lag_seconds: float | None
    lost: int = 0
    estimate: int | None = None
    estimate_source: Literal["offset_syncs", "connect_offsets"] | None = None
    estimate_age_seconds: float | None = None
    lost_at_most: int | None = None
    lag_bytes: int | None = None
    waiting_seconds: float | None = None
    waiting_at_least: bool = False
    produce_rate: float | None = None
    mirror_rate: float | None = None
    eta_seconds: float | None = None
    catches_up: bool | None = None
    position_source: PositionSource | None = None
    position_age_seconds: float | None = None
    open_transaction_seconds: float | None = None


@dataclass(frozen=True)
class LagPoint:
    """Lag of one topic over a stretch of time, for a line over time.

    :param at_ms: when the last observation of the stretch was.
    :param lag_records: lag at that observation; ``None``: not known then.
    :param since_ms: when the first observation of the stretch was.
    :param lowest: lag at least, and ``highest`` at most, of those that knew it; ``None``:
        none did.
    """

    flow: str
    topic: str
    at_ms: int
    lag_records: int | None
    since_ms: int | None = None
    lowest: int | None = None
    highest: int | None = None
