"""What became of records that were verified, and what time is left for the others. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mirror_report.model.cluster import Positions, TopicSnapshot
from mirror_report.parity.plan.ranges import Range, feeder
from mirror_report.parity.state.manifest import Gone


def gone(entries: Iterable[Gone], now_ms: int) -> tuple[dict[int, int], dict[int, int]]:
    """Records the target no longer holds, by partition: (early, as its retention allows).

    What went early is no longer told once it would have expired by now.
    """
    early: dict[int, int] = {}
    expired: dict[int, int] = {}
    for one in entries:
        lasting = one.until_ms is None or one.until_ms > now_ms
        if one.early and lasting:
            early[one.partition] = early.get(one.partition, 0) + one.early
        count = one.expired + (0 if lasting else one.early)
        if count:
            expired[one.partition] = expired.get(one.partition, 0) + count
    return early, expired


def breach_seconds(
    oldest_ms: int | None,
    sources: Iterable[TopicSnapshot],
    target: TopicSnapshot | None,
    now_ms: int,
) -> float | None:
    """Until retention removes the oldest record not verified yet, on the side that is first.

    :param oldest_ms: its timestamp at the earliest; ``None``: nothing waits.
    :returns: ``None`` if nothing waits, or nothing is removed by age, or it is not known.
    """
    bounds = [
        int(one.configs["retention.ms"])
        for one in (*sources, *([target] if target else []))
        if "delete" in one.configs.get("cleanup.policy", "delete") and "retention.ms" in one.configs
    ]
    bounded = [one for one in bounds if one >= 0]
    if oldest_ms is None or oldest_ms < 0 or not bounded:
        return None
    return (oldest_ms + min(bounded) - now_ms) / 1000


def unread_below(backlog: Sequence[Range], positions: Mapping[str, Positions]) -> int:
    """Source offsets that the mirror has copied and the report has not read yet.

    :param positions: by flow.
    """
    found = 0
    for one in backlog:
        if one.side == "source":
            via, name = feeder(one.flow, one.origin)
            position = positions.get(via, {}).get(name, {}).get(one.partition, 0)
            found += max(0, min(one.end, position) - one.start)
    return found
