"""Verified records that left the target, and the time that is left for the others."""

from collections import Counter
from collections.abc import Iterable, Mapping

from mirror_report.checks import remedies
from mirror_report.config import Flow
from mirror_report.model import Finding, Positions, TopicSnapshot
from mirror_report.parity.plan import Range
from mirror_report.parity.state import Gone, TopicKey, fed_by


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


def doubted(entries: Iterable[Gone], flows: Iterable[Flow], now_ms: int) -> list[Finding]:
    """Records that may have left the target because of its log's size, or against its retention."""
    of_name = {flow.name: flow for flow in flows}
    counts: Counter[TopicKey] = Counter()
    for entry in (entry for entry in entries if entry.flow in of_name and not entry.certain):
        early, _ = gone([entry], now_ms)
        counts[entry.flow, entry.topic] += early.total()
    return [
        Finding(
            "warning", "unverifiable", flow, topic, None, count,
            f"{flow}/{topic}: {count} verified records left the target, and whether its "
            "retention.bytes had to remove them cannot be told: the size of the leader's log is "
            "not known, or parts of it are in remote storage",
            f"Grant the report's identity DESCRIBE on the cluster {of_name[flow].target}, and find "
            "out who deletes records there; "
            f"{remedies.renew(of_name[flow], of_name[flow].origin(topic) or topic)} accepts it",
        )
        for (flow, topic), count in sorted((+counts).items())
    ]  # fmt: skip


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
    unread = 0
    for waiting in (waiting for waiting in backlog if waiting.side == "source"):
        via, name = fed_by(waiting.flow, waiting.origin)
        position = positions.get(via, {}).get(name, {}).get(waiting.partition, 0)
        unread += max(0, min(waiting.end, position) - waiting.start)
    return unread
