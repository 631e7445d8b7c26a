"""Lag of a topic over time, as a line that is short enough to be drawn: no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mirror_report.model import LagPoint, PartitionLag

SPAN_MS = 24 * 3_600_000
POINTS = 200
"""Of one topic at most."""
GAP_MS = 45 * 60_000
"""Without a look for so long, lag was not known."""

Lags = Mapping[str, int | None]
"""Topic -> records; absent: none; ``None``: not known."""


def by_topic(rows: Sequence[PartitionLag]) -> dict[str, int | None]:
    """Lag of each topic; a sum with an unknown part is unknown."""
    found: dict[str, int | None] = {}
    for row in rows:
        known = found.get(row.topic, 0)
        lag = row.lag_records
        found[row.topic] = None if lag is None or known is None else known + lag
    return found


def points(
    flow: str, looks: Sequence[tuple[int, Lags]], topics: Collection[str], now_ms: int
) -> list[LagPoint]:
    """Lag of some topics over the last 24 hours, oldest first within each.

    Looks close to each other become one, the highest lag of them; where lag stays the same only its
    beginning and end are kept.

    :param looks: when (ms) and what was seen, oldest first.
    """
    return [
        LagPoint(flow, topic, at_ms, lag)
        for topic in sorted(topics)
        for at_ms, lag in _turns(_line(looks, topic, now_ms - SPAN_MS))
    ]


def _line(
    looks: Sequence[tuple[int, Lags]], topic: str, since_ms: int
) -> list[tuple[int, int | None]]:
    """At most one point per share of the time, and one for each gap."""
    width = SPAN_MS // (POINTS - SPAN_MS // GAP_MS - 2)
    line: list[tuple[int, int | None]] = []
    share = None
    for at_ms, lags in looks:
        if at_ms < since_ms:
            continue
        lag = lags.get(topic, 0)
        if line and at_ms - line[-1][0] > GAP_MS:
            line.append((line[-1][0] + 1, None))
        elif line and (at_ms - since_ms) // width == share:
            earlier = line.pop()[1]
            lag = earlier if lag is None else lag if earlier is None else max(lag, earlier)
        share = (at_ms - since_ms) // width
        line.append((at_ms, lag))
    return line


def _turns(line: Sequence[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Without the points between two of the same lag."""
    return [
        one
        for at, one in enumerate(line)
        if at in (0, len(line) - 1) or not line[at - 1][1] == one[1] == line[at + 1][1]
    ]
