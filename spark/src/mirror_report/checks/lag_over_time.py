"""Lag of a topic over time, as a line that is short enough to be drawn: no I/O."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from mirror_report.model import LagPoint, PartitionLag

SPAN_MS = 24 * 3_600_000
# Of one topic at most.
POINTS = 200
# Without an observation for so long, lag was not known.
GAP_MS = 45 * 60_000
# Of the time shown; a gap has a point of its own.
SHARES = POINTS - SPAN_MS // GAP_MS - 2

# Topic -> records; absent: none; ``None``: not known.
Lags = Mapping[str, int | None]


def topic_lags(rows: Sequence[PartitionLag]) -> dict[str, int | None]:
    """Lag of each topic; a sum with an unknown part is unknown."""
    lags: dict[str, int | None] = {}
    for row in rows:
        total, lag = lags.get(row.topic, 0), row.lag_records
        lags[row.topic] = None if lag is None or total is None else total + lag
    return lags


def points(
    flow: str, lags: Sequence[tuple[int, Lags]], topics: Collection[str], now_ms: int
) -> list[LagPoint]:
    """Lag of some topics over the last 24 hours, oldest first within each.

    The time between the first observation and the last is cut into equal shares, as many as may be
    drawn: observations within one become a point with their lowest and highest lag and the last
    one's. Where lag stays the same only its beginning and end are kept.

    :param lags: when (ms), and the lag then, oldest first.
    """
    recent = [observed for observed in lags if observed[0] >= now_ms - SPAN_MS]
    return [point for topic in sorted(topics) for point in _turns(_line(flow, topic, recent))]


def _line(flow: str, topic: str, lags: Sequence[tuple[int, Lags]]) -> list[LagPoint]:
    """At most one point per share of the time, and one for each gap."""
    line: list[LagPoint] = []
    if not lags:
        return line
    first, span = lags[0][0], lags[-1][0] - lags[0][0] + 1
    share = None
    for at_ms, by_name in lags:
        lag = by_name.get(topic, 0)
        if line and at_ms - line[-1].at_ms > GAP_MS:
            line.append(LagPoint(flow, topic, line[-1].at_ms + 1, None, line[-1].at_ms + 1))
            share = None
        now = (at_ms - first) * SHARES // span
        point = LagPoint(flow, topic, at_ms, lag, at_ms, lag, lag)
        line.append(_joined(line.pop(), point) if now == share else point)
        share = now
    return line


def _joined(point: LagPoint, other: LagPoint) -> LagPoint:
    """Two neighbours as one point: the later lag, and the range of both."""
    return dataclasses.replace(
        other,
        since_ms=point.since_ms,
        lowest=min((lag for lag in (point.lowest, other.lowest) if lag is not None), default=None),
        highest=max(
            (lag for lag in (point.highest, other.highest) if lag is not None), default=None
        ),
    )


def _turns(line: Sequence[LagPoint]) -> list[LagPoint]:
    """Without the points between two of the same lag."""
    flat = [
        (point.lowest, point.highest) == (point.lag_records, point.lag_records) for point in line
    ]
    return [
        point
        for at, point in enumerate(line)
        if at in (0, len(line) - 1)
        or not all(flat[at - 1 : at + 2])
        or not line[at - 1].lag_records == point.lag_records == line[at + 1].lag_records
    ]
