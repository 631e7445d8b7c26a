"""What became of records that were verified, and what time is left for the others."""

from collections import Counter
from collections.abc import Iterable, Mapping

from mirror_report.model import Positions, TopicSnapshot
from mirror_report.parity.plan import Range
from mirror_report.parity.state import Gone, fed_by


def gone(entries: Iterable[Gone], now_ms: int) -> tuple[Counter[int], Counter[int]]:
    """Records the target no longer holds, by partition: (early, as its retention allows).

    What was removed early is no longer reported once it would have expired by now.
    """
    early: Counter[int] = Counter()
    expired: Counter[int] = Counter()
    for entry in entries:
        lasting = entry.until_ms is None or entry.until_ms > now_ms
        early[entry.partition] += entry.early if lasting else 0
        expired[entry.partition] += entry.expired + (0 if lasting else entry.early)
    return +early, +expired


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
        kept_ms
        for topic in (*sources, target)
        if topic is not None
        and "delete" in topic.configs.get("cleanup.policy", "delete")
        and (kept_ms := int(topic.configs.get("retention.ms", -1))) >= 0
    ]
    if oldest_ms is None or oldest_ms < 0 or not bounds:
        return None
    return (oldest_ms + min(bounds) - now_ms) / 1000


def unread_below(backlog: Iterable[Range], positions: Mapping[str, Positions]) -> int:
    """Source offsets that the mirror has copied and the report has not read yet.

    :param positions: by flow.
    """
    found = 0
    for waiting in (waiting for waiting in backlog if waiting.side == "source"):
        via, name = fed_by(waiting.flow, waiting.origin)
        position = positions.get(via, {}).get(name, {}).get(waiting.partition, 0)
        found += max(0, min(waiting.end, position) - waiting.start)
    return found
