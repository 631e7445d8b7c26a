"""Findings on a run itself and on topics that begin again, beside differences of content."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mirror_report.config import Flow
from mirror_report.model import Finding
from mirror_report.parity.plan import (
    CompactedTopic,
    ComparedTopic,
    FlowPlan,
    Reopened,
    TopicPlan,
    offset_syncs,
    total_bytes,
)
from mirror_report.parity.results import losses
from mirror_report.parity.state import Gap, Loss, Manifest, TopicKey

# What a record that was missing may be instead of having arrived.
INSTEAD = (
    "moved", "reordered", "altered_timestamp", "corrupt_headers", "corrupt_value",
    "deleted_early", "expired", "unverifiable", "skipped_records",
)  # fmt: skip


def unavailable(flow: str, message: str, action: str) -> Finding:
    """A flow that could not be observed."""
    return Finding("unknown", "parity_unavailable", flow, None, None, None, message, action)


def of_plan(plan: FlowPlan, gone: Collection[Loss]) -> list[Finding]:
    """Findings on the topics of a flow that no later run makes again.

    :param gone: what was known of topics and is forgotten.
    """
    return [
        *(
            reopened(topic, [loss for loss in gone if (loss.flow, loss.topic) == topic.key])
            for topic in plan.reopened
        ),
        *(expired(gap) for gap in plan.gaps if gap.end > gap.start),
        *(departed(topic) for topic in plan.departed),
    ]


def reopened(topic: Reopened, gone: Collection[Loss] = ()) -> Finding:
    """A topic whose past no longer counts, and why.

    :param gone: what it was known to lack.
    """
    where = f"{topic.flow}/{topic.topic} on the {topic.side}"
    lacked = f"; known of it by then: {losses.text(gone)}" if gone else ""
    if topic.kind == "topic_reset":
        return Finding(
            "critical", "reset", topic.flow, topic.topic, None, None,
            f"{where}: the topic was deleted or created again ({topic.detail}){lacked}",
            "Find out who did; what it held is compared again",
        )  # fmt: skip
    others = ", and others are there by now" if topic.regrown else ""
    return Finding(
        "critical", "rewind", topic.flow, topic.topic, topic.partition, None,
        f"{where}: partition {topic.partition} lost records it had ({topic.detail}){others}"
        f"{lacked}",
        "Look for an unclean leader election (unclean.leader.election.enable, min.insync.replicas, "
        "acks of the producers); the topic is compared again",
    )  # fmt: skip


def expired(gap: Gap) -> Finding:
    """Records that were gone before they were read."""
    count = gap.end - gap.start
    return Finding(
        "warning", "unverifiable", gap.flow, gap.topic, gap.partition, count,
        f"{gap.flow}/{gap.topic} on the {gap.side}: {count} records of partition {gap.partition} "
        "expired before they were read",
        "Run the report more often than retention removes records",
    )  # fmt: skip


def repaired(before: Manifest, after: Manifest, topics: Iterable[TopicPlan]) -> list[Finding]:
    """Records that were missing and have arrived since, reported once.

    :param before: numbers of the last comparison; ``after``: of this one.
    """
    arrived = []
    for topic in topics:
        was, now = before.numbers(topic.key), after.numbers(topic.key)
        # What is called by another name than missing has not arrived.
        renamed = sum(max(0, _count(now, name) - _count(was, name)) for name in INSTEAD)
        count = _count(was, "missing") - _count(now, "missing") - renamed
        if count > 0:
            timed = topic.strategy != offset_syncs.STRATEGY
            what = f"{count} records that were missing are on the target by now"
            arrived.append(_arrived(topic.key, count, what, timed=timed))
    return arrived


def repaired_keys(compared: Iterable[ComparedTopic]) -> list[Finding]:
    """Keys of compacted topics whose own record had not arrived and has since, reported once."""
    return [
        _arrived(
            each.topic.key, count,
            f"{count} keys whose latest record was missing have it on the target by now",
            timed=each.topic.keeps_time,
        )
        for each in compared
        if (count := sum(row["repaired"] for row in each.rows))
    ]  # fmt: skip


def _count(numbers: Mapping[str, Any], name: str) -> int:
    return int(numbers.get(name, 0)) + int(numbers.get(f"accounted_{name}", 0))


def _arrived(topic: TopicKey, count: int, what: str, *, timed: bool) -> Finding:
    """Say what arrived.

    :param timed: whether timestamps are compared.
    """
    equal = "to the timestamp" if timed else "but for their timestamps, which are not compared"
    return Finding(
        "ok", "repaired", *topic, None, count, f"{'/'.join(topic)}: {what}, equal {equal}",
        "Nothing, if the mirror was set back to them or they were written again on purpose; else "
        "find out who else writes there",
    )  # fmt: skip


def renewed(flow: str, topic: str) -> Finding:
    """A topic that begins again because its baseline is another one, reported once."""
    return Finding(
        "warning", "skipped", flow, topic, None, None,
        f"{flow}/{topic}: its baseline was recorded again, for it alone or because another flow "
        "feeds it too; what was verified before does not count any more",
        "Nothing; from that baseline on the topic is compared with all that feeds it",
    )  # fmt: skip


def departed(plan: TopicPlan) -> Finding:
    """A topic that a flow no longer brings, reported once."""
    return Finding(
        "warning", "skipped", plan.flow, plan.topic, None, None,
        f"{plan.flow}/{plan.topic}: {', '.join(plan.origins)} is no longer on the source, or no "
        "longer mirrored: nothing is left to compare with",
        "Nothing, if that was meant; what was known to be lost of it stays until it is accepted",
    )  # fmt: skip


def deferred(flow: Flow, behind: int, bound: int) -> Finding:
    """Content was left alone so that reading it does not hold up a mirror that is behind."""
    return Finding(
        "warning", "backlog", flow.name, None, None, behind,
        f"content of flow {flow.name} was left for a later run: its mirror is {behind} records "
        f"behind, the bound is {bound}",
        "See its lag: mirror-report lag; to compare all the same raise budget.max_lag_records "
        "(mirror-report run --max-lag N)",
    )  # fmt: skip


def unaffordable(topic: CompactedTopic) -> Finding:
    """A compacted topic that is larger than what the run may still read."""
    return Finding(
        "warning", "backlog", topic.flow.name, topic.topic, None, None,
        f"{topic.flow.name}/{topic.topic}: a compacted topic is read as a whole, and its "
        f"{total_bytes(topic.ranges()) / 1e6:.0f} MB are more than this run may still read",
        "mirror-report run again; if it stays, raise mirror_report_max_bytes or _max_records",
    )  # fmt: skip


def backlog(records: int, buckets: int) -> Finding:
    """Records and buckets that were left for the next run.

    :param buckets: that differ and were not classified.
    """
    what = [f"{records} records"] if records else []
    what += [f"{buckets} differing minutes"] if buckets else []
    return Finding(
        "warning", "backlog", None, None, None, records or buckets,
        f"{' and '.join(what)} were left for the next run",
        "mirror-report run again, or raise budget.max_bytes, budget.max_records and "
        "budget.deadline_seconds",
    )  # fmt: skip
