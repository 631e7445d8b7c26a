"""How two bundles of digests differ: sums in, findings out; no I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from mirror_report.checks.content import REPLACED, WRITE_UTF8
from mirror_report.checks.verdict import finding
from mirror_report.model import CompareTopic, Finding, ParityStatus, Severity

NOT_THERE = "not among the topics of the target"


def topic_outcome(
    sums: Mapping[str, Any] | None,
    *,
    on_source: bool,
    on_target: bool,
    unknown: Sequence[str],
    skips: Sequence[str],
) -> tuple[ParityStatus, str]:
    """Status of a topic of the target, and why it has it.

    :param sums: buckets by status; ``None``: there are none.
    :param unknown: why sides could not be read; ``skips``: why they were not.
    """
    buckets = sums or {}
    cases: Sequence[tuple[Any, ParityStatus, str]] = (
        (unknown, "unknown", unknown[0] if unknown else ""),
        (skips, "skipped", skips[0] if skips else ""),
        (not on_source, "skipped", "not among the topics of the source"),
        (not on_target, "mismatch", NOT_THERE),
        (sums is None, "in_flight", "no record on either side"),
        (buckets.get("buckets_mismatch"), "mismatch", ""),
        (buckets.get("buckets_verified"), "verified", ""),
        (buckets.get("buckets_in_flight"), "in_flight", "nothing is below the committed position"),
        (True, "skipped", "all of it reaches back to where a log begins"),
    )
    return next((status, reason) for applies, status, reason in cases if applies)


def findings(flow: str, topic: CompareTopic) -> list[Finding]:
    """What differs, and what was not compared."""
    where = f"{flow}/{topic.topic}"
    again = f"Run mirror-report run --flow {flow} where both clusters can be read: it tells which"
    if topic.reason == NOT_THERE:
        return [
            finding(
                "topic_missing", f"{where}: the target has no such topic",
                f"mirror-report check --flow {flow} tells what the mirror needs",
                flow=flow, topic=topic.topic,
            )
        ]  # fmt: skip
    not_compared = {
        "unknown": ("parity_unavailable", f"mirror-report digest --flow {flow} again"),
        "skipped": ("skipped", again),
    }
    gaps = []
    if topic.status in not_compared:
        kind, action = not_compared[topic.status]
        text = f"{where}: not compared: {topic.reason}"
        gaps.append(finding(kind, text, action, flow=flow, topic=topic.topic))
    differences: Sequence[tuple[str, int, str, Severity]] = (
        ("missing", topic.fewer,
         f"at least {topic.fewer} records of the source are not on the target", "critical"),
        ("differs", topic.buckets_same_number,
         f"{topic.buckets_same_number} buckets hold as many records on both sides, and others",
         "critical"),
        ("differs", topic.more,
         f"the target holds {topic.more} records more: duplicates, foreign ones, or some that "
         "reached the source after its bundle", "warning"),
    )  # fmt: skip
    return gaps + [
        finding(kind, f"{where}: {text}", again, flow=flow, topic=topic.topic, count=count)
        .rated(severity)
        for kind, count, text, severity in differences
        if count
    ]  # fmt: skip


def unverifiable(flow: str, topic: str, count: int, reason: str) -> Finding:
    """Records that no digest holds."""
    return finding(
        "unverifiable", f"{flow}/{topic}: {count} records cannot be compared: {reason}",
        "Make the producer of these records write timestamps in milliseconds",
        flow=flow, topic=topic, count=count,
    )  # fmt: skip


def replaced(flow: str, topic: str, count: int) -> Finding:
    """Records whose header keys are no UTF-8."""
    return finding(
        "unverifiable", f"{flow}/{topic}: {count} {REPLACED}: what arrived of them is not known",
        WRITE_UTF8, flow=flow, topic=topic, count=count,
    )  # fmt: skip


def nothing_compared(flow: str, topics: Sequence[CompareTopic]) -> list[Finding]:
    """A comparison that proves nothing."""
    if any(topic.buckets["verified"] or topic.buckets["mismatch"] for topic in topics):
        return []
    return [
        finding(
            "nothing_seen", f"{flow}: no record could be compared, so nothing is proved",
            "Make both bundles when records have been mirrored, the source's first", flow=flow,
        )
    ]  # fmt: skip
