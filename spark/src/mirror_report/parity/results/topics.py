"""What is said of each topic, and what is kept so that a run without news can say it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mirror_report.config.flow import Flow
from mirror_report.model.content import CLASSES, ParityStatus, TopicParity
from mirror_report.model.findings import Finding
from mirror_report.parity.plan import offset_syncs, scans, unreadable
from mirror_report.parity.plan.ranges import feeder
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.results import retention, summaries
from mirror_report.parity.state.manifest import Unreadable, offsets

if TYPE_CHECKING:
    from mirror_report.parity.run import Run

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
        news = run.memory.is_news(flow, str(known.get("run_id")))
        merged = {}
        for name in CLASSES:
            found = fresh.get((flow, topic), {}).get(name, [])
            told = name in summaries.TOLD_ONCE and not news
            old = [] if told else known.get("samples", {}).get(name, [])
            both = [*found, *(one for one in old if one not in found)]
            if row[name] and both:
                merged[name] = both[:SAMPLES]
        run.memory.summaries[flow][topic] = {
            "run_id": run.request.run_id,
            "now": row,
            "next": summaries.as_next(row),
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
        accounted=dict.fromkeys((*summaries.NEWS, "unverifiable"), 0),
        buckets=dict.fromkeys(summaries.STATUSES, 0),
        verified_through_ms=None, newest_due_ms=None, reason="", samples={},
        strategy=plan.strategy,
    )  # fmt: skip
    if plan.unknown is not None:
        return replace(empty, reason=plan.unknown)
    if plan.skip is not None:
        return replace(empty, status="skipped", reason=plan.skip)
    here = (plan.flow, plan.topic)
    beyond = [one for one in run.memory.unreadable if (one.flow, one.topic) == here]
    if plan.strategy == "latest_by_key":
        last = scans.last_of(run.memory.scans, plan.flow, plan.topic)
        untold = run.memory.untold.get(plan.flow, [])
        return _covered(_placed(scans.told(empty, last, untold, plan.why), beyond), 0)
    if not plan.judged:
        return _covered(_unproved(run, plan, empty), 0)
    known = run.memory.summaries.get(plan.flow, {}).get(plan.topic)
    unread = sum(one.records for one in run.backlog if (one.flow, one.topic) == here)
    keeps = run.settings.flow(plan.flow).engine.keeps_partitions
    gone: Counter[str] = Counter()
    for gap in run.memory.gaps:
        if (gap.flow, gap.topic, gap.side) == (*here, "source"):
            gone[str(gap.partition) if keeps else summaries.WHOLE] += gap.end - gap.start
    expired = gone.total()
    # What is on the source and was not compared, by lane.
    uncompared = gone + Counter(unreadable.by_lane(beyond, keeps_partitions=keeps))
    below = retention.unread_below(
        [one for one in run.backlog if (one.flow, one.topic) == here],
        {look.flow.name: look.positions for look in run.looks},
    )
    if known is None:
        reason = f"{unread} offsets not read yet" if unread else "no record since the baseline"
        status: ParityStatus = "unverifiable" if uncompared else "in_flight"
        found = _more(replace(empty, status=status, reason=reason), "unverifiable", uncompared)
        found = _placed(found, beyond)
        return _covered(_beside_cuts(run, plan, found), expired + below)
    said = known["now" if run.memory.is_news(plan.flow, known["run_id"]) else "next"]
    filled = _with_sealed(run, summaries.filled(empty, said, known["samples"]))
    # Copies of what expired unread are on the target still: each record counts once.
    whole = said["unmatched_records"]
    twice = Counter(
        {
            lane: min(uncompared[lane], one.get("unmatched", whole * (lane == summaries.WHOLE)))
            for lane, one in said["lanes"].items()
        }
    )
    filled = _more(filled, "unverifiable", uncompared - twice)
    filled = _watched(run, plan, filled, said.get("in_flight_since_ms"))
    since = said.get("in_flight_since_ms")
    if unread and since is not None and filled.verified_through_ms is not None:
        # What waits is not older than what was read last, but for records that come late.
        filled = replace(filled, verified_through_ms=min(filled.verified_through_ms, since))
    told = replace(filled, **summaries.status(filled, unread, expired))
    told = _placed(told, beyond, f"{told.reason}; " if expired else "")
    return _covered(_beside_cuts(run, plan, told), expired + below)


def _beside_cuts(run: Run, plan: TopicPlan, told: TopicParity) -> TopicParity:
    """Add what lies in no bucket of a topic that is cut by offsets."""
    if plan.strategy != offset_syncs.STRATEGY:
        return told
    look = next(one for one in run.looks if one.flow.name == plan.flow)
    beside = offset_syncs.outside(run, plan, look.source)
    harmless = told.status in ("verified", "in_flight", "skipped")
    unaligned = f"{beside.unaligned} records were mirrored before anything aligned them"
    return replace(
        _more(told, "unverifiable", beside.partitions),
        source_records=told.source_records + beside.straddling + beside.unaligned + beside.open,
        skipped_records=told.skipped_records + beside.straddling,
        in_flight_records=told.in_flight_records + beside.open,
        status="unverifiable" if harmless and beside.unaligned else told.status,
        reason=unaligned if harmless and beside.unaligned else told.reason or plan.why,
    )


def _more(topic: TopicParity, kind: str, lanes: Mapping[str, int]) -> TopicParity:
    """A topic with more records of a class.

    :param lanes: partition (``*`` for a topic as a whole) -> records.
    """
    known = topic.partitions.get(kind, {})
    added = {lane: known.get(lane, 0) + n for lane, n in lanes.items() if lane != summaries.WHOLE}
    merged = dict(sorted({**known, **added}.items(), key=lambda one: int(one[0])))
    return replace(
        topic,
        counts={**topic.counts, kind: (topic.counts[kind] or 0) + sum(lanes.values())},
        partitions={**topic.partitions, **({kind: merged} if merged else {})},
    )


def _placed(topic: TopicParity, beyond: Collection[Unreadable], also: str = "") -> TopicParity:
    """Say of a topic where the records are that cannot be read, and count them on their sides.

    :param also: what else its reason says.
    """
    if not beyond:
        return topic
    some = [*unreadable.samples(beyond), *topic.samples.get("unverifiable", [])]
    counted = topic.strategy != "latest_by_key"
    there = unreadable.by_side(beyond)
    return replace(
        topic,
        source_records=topic.source_records + counted * there["source"],
        target_records=topic.target_records + counted * there["target"],
        samples={**topic.samples, "unverifiable": some[:SAMPLES]},
        reason=f"{also}{unreadable.reason(beyond)}"
        if topic.status == "unverifiable"
        else topic.reason,
    )


def _covered(topic: TopicParity, uncompared: int) -> TopicParity:
    """Say how much of what is due is verified.

    :param uncompared: what is due and was never compared: expired, or not read yet.
    """
    settled = topic.source_records - topic.in_flight_records - topic.skipped_records
    due = max(topic.verified_records, settled) + uncompared
    return replace(topic, due_records=due, coverage=topic.verified_records / due if due else None)


def _with_sealed(run: Run, topic: TopicParity) -> TopicParity:
    """Add what was sealed to what is judged in every run."""
    total = run.memory.totals.get(topic.flow, {}).get(topic.topic)
    if not total:
        return topic
    through, newest = (
        max((one for one in pair if one is not None), default=None)
        for pair in (
            (topic.verified_through_ms, total["through_ms"]),
            (topic.newest_due_ms, total["newest_ms"]),
        )
    )
    return replace(
        topic,
        source_records=topic.source_records + total["source_records"],
        target_records=topic.target_records + total["target_records"],
        verified_records=topic.verified_records + total["verified_records"],
        buckets={**topic.buckets,
                 "verified": topic.buckets["verified"] + total["buckets_verified"]},
        verified_through_ms=through,
        newest_due_ms=newest,
    )  # fmt: skip


def _watched(run: Run, plan: TopicPlan, topic: TopicParity, oldest: int | None) -> TopicParity:
    """Add what became of verified records, and the time that is left for the others.

    :param oldest: of what is not verified yet, in milliseconds.
    """
    here = (plan.flow, plan.topic)
    entries = [one for one in run.memory.gone if (one.flow, one.topic) == here]
    early, expired = retention.gone(entries, run.now_ms)
    keeps = run.settings.flow(plan.flow).engine.keeps_partitions
    if early:
        lanes: Counter[str] = Counter()
        for partition, count in early.items():
            lanes[str(partition) if keeps else summaries.WHOLE] += count
        topic = _more(topic, "deleted_early", lanes)
    looks = {look.flow.name: look for look in run.looks}
    sources = [
        looks[via].source.topics[name]
        for via, name in (feeder(plan.flow, origin) for origin in plan.origins)
        if via in looks and name in looks[via].source.topics
    ]
    on_target = looks[plan.flow].target.topics.get(plan.topic)
    left = retention.breach_seconds(oldest, sources, on_target, run.now_ms)
    return replace(
        topic,
        breach_seconds=left,
        expired_records=sum(expired.values()),
    )


def _unproved(run: Run, plan: TopicPlan, empty: TopicParity) -> TopicParity:
    """A topic that no strategy compares: all that was mirrored since the baseline is unverifiable.

    Numbers are numbers of offsets, at most so many records.
    """
    look = next(one for one in run.looks if one.flow.name == plan.flow)
    recorded = (run.baselines.get(plan.flow) or {}).get("topics", {})
    there = mirrored = 0
    for origin in plan.origins:
        if feeder(plan.flow, origin)[0] != plan.flow:
            continue
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


def renewed(flow: Flow, topic: str) -> Finding:
    """A topic that begins again because a further flow has come to feed it, told once."""
    return Finding(
        "warning", "skipped", flow.name, topic, None, None,
        f"{flow.name}/{topic}: another flow feeds it too since a baseline was recorded for that "
        "one; what was verified before does not count any more",
        "Nothing; from that baseline on the topic is compared with all that feeds it",
    )  # fmt: skip


def departed(plan: TopicPlan) -> Finding:
    """A topic that a flow no longer brings, told once."""
    return Finding(
        "warning", "skipped", plan.flow, plan.topic, None, None,
        f"{plan.flow}/{plan.topic}: {', '.join(plan.origins)} is no longer on the source, or no "
        "longer mirrored: nothing is left to compare with",
        "Nothing, if that was meant; the next report says no more of it",
    )  # fmt: skip


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
