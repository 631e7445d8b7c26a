"""What is said of each topic, and what is kept so that a run without news can say it again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mirror_report.config import Flow
from mirror_report.model import CLASSES, Finding, ParityStatus, TopicParity
from mirror_report.parity import scans, summary
from mirror_report.parity.memory import offsets
from mirror_report.parity.plan import TopicPlan

if TYPE_CHECKING:
    from mirror_report.parity.engine import Run

SAMPLES = 20


def remember(run: Run, rows: list[dict[str, Any]], samples: list[dict[str, Any]]) -> None:
    """Keep the numbers of each topic, now and as the next run may repeat them."""
    fresh: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for one in samples:
        by_class = fresh.setdefault((one.pop("flow"), one.pop("topic")), {})
        by_class.setdefault(one.pop("class"), []).append(one)
    for look in run.looks:
        kept = {one.topic for one in look.plan.topics}
        known = run.memory.summaries.get(look.flow.name, {})
        run.memory.summaries[look.flow.name] = {
            topic: one for topic, one in known.items() if topic in kept
        }
    for row in rows:
        flow, topic = row.pop("flow"), row.pop("topic")
        known = run.memory.summaries[flow].get(topic, {})
        merged = {}
        for name in CLASSES:
            found = fresh.get((flow, topic), {}).get(name, [])
            told = name in summary.TOLD_ONCE and known.get("run_id", "") not in run.memory.untold
            old = [] if told else known.get("samples", {}).get(name, [])
            both = [*found, *(one for one in old if one not in found)]
            if row[name] and both:
                merged[name] = both[:SAMPLES]
        run.memory.summaries[flow][topic] = {
            "run_id": run.request.run_id,
            "now": row,
            "next": summary.as_next(row),
            "samples": merged,
            "buckets_in_flight": row["buckets_in_flight"],
        }


def tell(run: Run, plan: TopicPlan) -> TopicParity:
    """What the report says of one topic."""
    origin = plan.origins[0]
    empty = TopicParity(
        flow=plan.flow, source_topic=origin, topic=plan.topic, status="unknown",
        source_records=0, target_records=0, verified_records=0, in_flight_records=0,
        skipped_records=0, counts=dict.fromkeys(CLASSES),
        accounted=dict.fromkeys(summary.NEWS, 0),
        buckets=dict.fromkeys(summary.STATUSES, 0),
        verified_through_ms=None, newest_due_ms=None, reason="", samples={},
        strategy=plan.strategy,
    )  # fmt: skip
    if plan.unknown is not None:
        return replace(empty, reason=plan.unknown)
    if plan.skip is not None:
        return replace(empty, status="skipped", reason=plan.skip)
    if plan.strategy == "latest_by_key":
        last = scans.last_of(run.memory.scans, plan.flow, plan.topic)
        return scans.told(empty, last, run.memory.untold, plan.why)
    if not plan.judged:
        return _unproved(run, plan, empty)
    known = run.memory.summaries.get(plan.flow, {}).get(plan.topic)
    unread = sum(
        one.records for one in run.backlog if (one.flow, one.topic) == (plan.flow, plan.topic)
    )
    expired = sum(
        gap.end - gap.start
        for gap in run.memory.gaps
        if (gap.flow, gap.topic, gap.side) == (plan.flow, plan.topic, "source")
    )
    if known is None:
        reason = f"{unread} offsets not read yet" if unread else "no record since the baseline"
        status: ParityStatus = "unverifiable" if expired else "in_flight"
        return replace(
            empty,
            status=status,
            reason=reason,
            counts={**empty.counts, "unverifiable": expired},
        )
    said = known["now"] if known["run_id"] in run.memory.untold else known["next"]
    filled = summary.filled(empty, said, known["samples"])
    unverifiable = (filled.counts["unverifiable"] or 0) + expired
    filled = replace(filled, counts={**filled.counts, "unverifiable": unverifiable})
    return replace(filled, **summary.status(filled, unread, expired))


def _unproved(run: Run, plan: TopicPlan, empty: TopicParity) -> TopicParity:
    """A topic that no strategy compares: all that was mirrored since the baseline is unverifiable.

    Numbers are numbers of offsets, at most so many records.
    """
    look = next(one for one in run.looks if one.flow.name == plan.flow)
    recorded = (run.baselines.get(plan.flow) or {}).get("topics", {})
    there = mirrored = 0
    for origin in plan.origins:
        begun = offsets(recorded.get(origin, {}).get("source", {}))
        for partition, log in look.source.topics[origin].partitions.items():
            start = max(log.log_start, begun.get(partition, 0))
            position = look.positions.get(origin, {}).get(partition, start)
            there += max(0, log.end - start)
            mirrored += max(0, min(position, log.end) - start)
    return replace(
        empty,
        status="unverifiable" if mirrored else "in_flight",
        reason=plan.why,
        source_records=there,
        in_flight_records=there - mirrored,
        counts={**empty.counts, "unverifiable": mirrored},
    )


def braked(flow: Flow, behind: int, bound: int) -> Finding:
    """Content was left alone so that reading it does not hold up a mirror that is behind."""
    return Finding(
        "warning", "backlog", flow.name, None, None, behind,
        f"content of flow {flow.name} was left for a later run: its mirror is {behind} records "
        f"behind, the bound is {bound}",
        "See its lag: mirror-report lag; to compare all the same raise budget.max_lag_records "
        "(mirror-report run --max-lag N)",
    )  # fmt: skip


def backlog(run: Run, records: int) -> Finding:
    """What was left for the next run."""
    what = []
    if records:
        what.append(f"{records} records")
    if run.left_candidates:
        what.append(f"{run.left_candidates} differing minutes")
    return Finding(
        "warning", "backlog", None, None, None, records or run.left_candidates,
        f"{' and '.join(what)} were left for the next run",
        "mirror-report run again, or raise budget.max_bytes, budget.max_records and "
        "budget.deadline_seconds",
    )  # fmt: skip
