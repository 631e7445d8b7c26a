"""What a topic's summary means: its status, its findings, and what the next run says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirror_report.model import Finding, Sample, TopicParity
from mirror_report.parity import strategies
from mirror_report.parity.memory import Gap
from mirror_report.parity.plan import Reopened

STATUSES = ("verified", "in_flight", "mismatch", "unverifiable", "skipped")
COUNTED = ("missing", "duplicate", "corrupt_value", "extra", "unverifiable")
ACCOUNTED = ("duplicate", "extra")
"""Classes that raise the verdict once, in the run that finds them."""


def as_next(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the next run says if nothing changes: news have become accounted."""
    following = dict(row)
    for name in ACCOUNTED:
        following[f"accounted_{name}"] += following[name]
        following[name] = 0
    following["buckets_verified"] += following["buckets_accountable"]
    following["buckets_mismatch"] -= following["buckets_accountable"]
    following["buckets_accountable"] = 0
    following["verified_through_ms"] = following["verified_through_next_ms"]
    return following


def filled(empty: TopicParity, row: Mapping[str, Any], samples: Mapping[str, Any]) -> TopicParity:
    """A topic's row of :func:`mirror_report.parity.compare.summarise`, as the report tells it."""
    counts = (
        "source_records", "target_records", "verified_records", "in_flight_records",
        "skipped_records", "verified_through_ms", "newest_due_ms",
    )  # fmt: skip
    return replace(
        empty,
        **{name: row[name] for name in counts},
        counts={name: row[name] for name in COUNTED},
        accounted={name: row[f"accounted_{name}"] for name in ACCOUNTED},
        buckets={name: row[f"buckets_{name}"] for name in STATUSES},
        samples={
            name: [Sample(**one) for one in some] for name, some in samples.items() if row[name]
        },
    )


def status(topic: TopicParity, unread: int, expired: int) -> dict[str, Any]:
    """Status and reason of a topic.

    :param unread: offsets left for a later run.
    :param expired: records that were gone before they were read.
    """
    if any(topic.counts.get(name) for name in COUNTED if name != "unverifiable"):
        return {"status": "mismatch", "reason": ""}
    if topic.counts["unverifiable"]:
        reason = (
            f"{expired} records expired before they were read"
            if expired
            else ("records that differ can no longer be read")
        )
        return {"status": "unverifiable", "reason": reason}
    if unread:
        return {"status": "in_flight", "reason": f"{unread} offsets not read yet"}
    if topic.buckets["verified"] or not topic.buckets["in_flight"]:
        if not topic.buckets["verified"] and topic.buckets["skipped"]:
            return {"status": "skipped", "reason": "all records are older than the baseline"}
        return {"status": "verified", "reason": ""}
    return {"status": "in_flight", "reason": "nothing is below the committed position yet"}


def findings(topic: TopicParity) -> list[Finding]:
    """What the report says of a topic; duplicates and extras of earlier runs are accounted."""
    name = f"{topic.flow}/{topic.topic}"
    again = "See the samples of mirror-report show --json"
    texts: dict[str, tuple[Any, int | None, str, str]] = {
        "missing": (
            "critical", topic.counts["missing"], "records of the source are not on the target",
            f"{again}; mirror them again by moving the group's offsets back while the mirror is "
            "stopped",
        ),
        "corrupt_value": (
            "critical", topic.counts["corrupt_value"],
            "records differ from the source's in value or headers",
            f"{again}; look for a second writer on the target or a message handler",
        ),
        "duplicate": (
            "warning", topic.counts["duplicate"], "records are on the target more than once",
            "Expected after the mirror was killed (at least once); the next run accounts for them",
        ),
        "extra": (
            "warning", topic.counts["extra"], "records on the target were never on the source",
            "Find the other writer of this topic; the next run accounts for them",
        ),
        "unverifiable": (
            "warning", topic.counts["unverifiable"], "records can no longer be compared",
            "Run the report more often than retention removes records; mirror-report baseline "
            f"--flow {topic.flow} --renew starts anew",
        ),
    }  # fmt: skip
    if topic.strategy == "none":
        texts["unverifiable"] = (
            "warning", topic.counts["unverifiable"],
            f"records cannot be compared while they move: {topic.reason}",
            "Stop the producers, wait until the mirror has caught up, then "
            + strategies.proof_command(topic.flow, topic.topic),
        )  # fmt: skip
    found = [
        Finding(severity, kind, topic.flow, topic.topic, None, count, f"{name}: {count} {text}",
                action)
        for kind, (severity, count, text, action) in texts.items()
        if count
    ]  # fmt: skip
    for kind in ("duplicate", "extra"):
        count = topic.accounted.get(kind, 0)
        if count:
            text = texts[kind][2]
            found.append(
                Finding("warning", kind, topic.flow, topic.topic, None, count,
                        f"{name}: {count} {text} (known)", "", accounted=True)
            )  # fmt: skip
    if topic.status == "skipped":
        found.append(
            Finding("warning", "skipped", topic.flow, topic.topic, None, None,
                    f"{name}: not compared: {topic.reason}", "Compare this topic by other means")
        )  # fmt: skip
    if topic.status == "unknown":
        found.append(
            Finding("unknown", "parity_unavailable", topic.flow, topic.topic, None, None,
                    f"{name}: not compared: {topic.reason}", "mirror-report run again")
        )  # fmt: skip
    return found


def reopened_finding(one: Reopened) -> Finding:
    """A topic whose past no longer counts, and why."""
    where = f"{one.flow}/{one.topic} on the {one.side}"
    if one.kind == "topic_reset":
        return Finding(
            "critical", "reset", one.flow, one.topic, None, None,
            f"{where}: the topic was deleted or created again ({one.detail})",
            "Find out who did; what it held is compared anew",
        )  # fmt: skip
    return Finding(
        "critical", "rewind", one.flow, one.topic, one.partition, None,
        f"{where}: partition {one.partition} lost records it had ({one.detail})",
        "Look for an unclean leader election; the topic is compared anew",
    )  # fmt: skip


def gap_finding(gap: Gap) -> Finding:
    """Records that were gone before they were read."""
    count = gap.end - gap.start
    return Finding(
        "warning", "unverifiable", gap.flow, gap.topic, gap.partition, count,
        f"{gap.flow}/{gap.topic} on the {gap.side}: {count} records of partition {gap.partition} "
        "expired before they were read",
        "Run the report more often than retention removes records",
    )  # fmt: skip
