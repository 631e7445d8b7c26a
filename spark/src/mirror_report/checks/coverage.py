"""How much of what is due a run has verified: results in, findings out; no I/O."""

from collections.abc import Callable, Collection, Iterator, Sequence

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    Finding,
    ParityResult,
    SideBaseline,
    TopicParity,
)


def verified_share(topics: Sequence[TopicParity], flow: str | None = None) -> float | None:
    """Verified share of the records that are due, of one flow or of all.

    :returns: from 0 to 1; ``None`` if nothing is due.
    """
    of_flow = [topic for topic in topics if flow in (None, topic.flow)]
    due = sum(topic.due_records or 0 for topic in of_flow)
    return sum(topic.verified_records for topic in of_flow) / due if due else None


def findings(
    share: float | None, bound: float | None, parity: ParityResult | None, kinds: Collection[str]
) -> Iterator[Finding]:
    """Coverage below its bound, and what was left for the next run.

    :param bound: of the share; ``None``: none.
    :param kinds: of the findings so far, which are not repeated.
    """
    if share is not None and bound is not None and share < bound and "coverage" not in kinds:
        yield finding(
            "coverage",
            f"{100 * share:.2f} % of the records due are verified, the bound is "
            f"{100 * bound:.0f} %",
            "See the findings above; without any, run mirror-report run again or raise "
            "budget.max_bytes",
        )
    if parity is not None and parity.backlog_records and "backlog" not in kinds:
        yield finding(
            "backlog",
            f"{parity.backlog_records} records are due and were left for the next run",
            "mirror-report run again, or raise budget.max_bytes and budget.deadline_seconds",
            count=parity.backlog_records,
        )


def nothing_seen(
    flow: Flow, source: ClusterSnapshot, target: ClusterSnapshot, baseline: Baseline
) -> Iterator[Finding]:
    """A flow of which neither side holds a record since the baseline."""
    moved = _moved(source, lambda topic: baseline.topic(topic).source) or _moved(
        target, lambda topic: baseline.topic(flow.source_topic(topic) or "").target
    )
    if source.topics and not moved:
        yield finding(
            "nothing_seen",
            f"no record on {flow.source} or {flow.target} since the baseline, so nothing is proved",
            "Produce a record on the source and run mirror-report run again; if records exist, "
            f"check topics of flow {flow.name}",
            flow=flow.name,
        )


def _moved(snapshot: ClusterSnapshot, side: Callable[[str], SideBaseline]) -> bool:
    """Whether a partition has more than when its topic's side of the baseline was recorded."""
    return any(
        partition.end > side(name).start.get(number, 0)
        for name, topic in snapshot.topics.items()
        for number, partition in topic.partitions.items()
    )
