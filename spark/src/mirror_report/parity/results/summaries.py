"""What a topic's summary means: its status, its findings, and what the next run says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mirror_report.model.content import CLASSES, ParityStatus, Sample, TopicParity
from mirror_report.model.findings import Finding
from mirror_report.parity.plan.sides import Reopened
from mirror_report.parity.state.manifest import Gap

WHOLE = "*"
"""What stands for the partitions of a topic whose mirror does not keep them."""
STATUSES: tuple[ParityStatus, ...] = (
    "verified", "skipped", "in_flight", "unverifiable", "mismatch",
)  # fmt: skip
"""Statuses of a bucket, the worst last."""
HARMLESS = ("unverifiable", "expired")
"""Classes that do not make a topic differ."""
LASTING = ("missing", "corrupt_value", "corrupt_headers", "moved", "deleted_early")
"""Classes that are wrong until they are mended or a new baseline is recorded."""
TOLD_ONCE = ("duplicate", "extra", "altered_timestamp")
"""Classes that raise the verdict in the run that finds them and are accounted afterwards."""
BY_LANE = "reordered"
"""Lasts where the mirror keeps partitions and with them the order; else it is told once."""
NEWS = (*TOLD_ONCE, BY_LANE)
ADDED = (
    "source_records", "target_records", "verified_records", "in_flight_records", "skipped_records",
    "older_records", *CLASSES, *(f"accounted_{name}" for name in NEWS), "unmatched_records",
    *(f"buckets_{name}" for name in (*STATUSES, "accountable")), "candidates",
)  # fmt: skip
NEWEST = ("newest_due_ms", "verified_through_ms", "verified_through_next_ms")
OLDEST = ("in_flight_since_ms",)
"""Numbers of a lane that add up to those of its topic, those of which the newest counts, and those
of which the oldest does. ``unmatched_records``: what buckets that cannot be decided hold more of
on the target."""


def by_topic(lanes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Numbers of each topic out of those of its lanes.

    :param lanes: rows of :func:`frames.totals.summarise`.
    :returns: the same numbers by flow and topic, with ``lanes``: partition (``*`` for a topic as a
        whole) -> ``counts`` of what is not 0, ``unmatched`` (records) and ``hours``.
    """
    topics: dict[tuple[str, str], dict[str, Any]] = {}
    for row in lanes:
        flow, topic = row["flow"], row["topic"]
        one = topics.setdefault(
            (flow, topic),
            {"flow": flow, "topic": topic, "lanes": {}}
            | dict.fromkeys(ADDED, 0) | dict.fromkeys((*NEWEST, *OLDEST)),
        )  # fmt: skip
        for name in ADDED:
            one[name] += row[name]
        for name in NEWEST:
            one[name] = max((x for x in (one[name], row[name]) if x is not None), default=None)
        for name in OLDEST:
            one[name] = min((x for x in (one[name], row[name]) if x is not None), default=None)
        one["lanes"][str(row["lane"]) if row["lane"] >= 0 else WHOLE] = {
            "counts": {name: row[name] for name in CLASSES if row[name]},
            "unmatched": row["unmatched_records"],
            "hours": [list(hour) for hour in row["hours"]],
        }
    return list(topics.values())


def as_next(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the next run says if nothing changes: news have become accounted."""
    following = dict(row)
    once = NEWS if WHOLE in row["lanes"] else TOLD_ONCE
    for name in once:
        following[f"accounted_{name}"] += following[name]
        following[name] = 0
    following["lanes"] = {
        lane: {
            "counts": {name: n for name, n in one["counts"].items() if name not in once},
            "unmatched": one.get("unmatched", 0),
            "hours": [[hour, then, then] for hour, _, then in one["hours"]],
        }
        for lane, one in row["lanes"].items()
    }
    following["buckets_verified"] += following["buckets_accountable"]
    following["buckets_mismatch"] -= following["buckets_accountable"]
    following["buckets_accountable"] = 0
    following["verified_through_ms"] = following["verified_through_next_ms"]
    return following


def filled(empty: TopicParity, row: Mapping[str, Any], samples: Mapping[str, Any]) -> TopicParity:
    """A topic's row of :func:`by_topic`, as the report tells it."""
    counts = (
        "source_records", "target_records", "verified_records", "in_flight_records",
        "skipped_records", "verified_through_ms", "newest_due_ms",
    )  # fmt: skip
    lanes = sorted(row["lanes"].items(), key=lambda one: (one[0] == WHOLE, len(one[0]), one[0]))
    partitions = {
        name: found
        for name in CLASSES
        if (found := {lane: one["counts"][name] for lane, one in lanes
                      if lane != WHOLE and name in one["counts"]})
    }  # fmt: skip
    return replace(
        empty,
        **{name: row[name] for name in counts},
        counts={name: row[name] for name in CLASSES},
        accounted={name: row[f"accounted_{name}"] for name in NEWS}
        | {"unverifiable": row["older_records"]},
        partitions=partitions,
        buckets={name: row[f"buckets_{name}"] for name in STATUSES},
        samples={
            name: [Sample(**one) for one in some] for name, some in samples.items() if row[name]
        },
        strip={
            lane: [(hour, STATUSES[worst]) for hour, worst, _ in one["hours"]]
            for lane, one in lanes
            if one["hours"]
        },
    )


def status(topic: TopicParity, unread: int, expired: int) -> dict[str, Any]:
    """Status and reason of a topic.

    :param unread: offsets left for a later run.
    :param expired: records that were gone before they were read.
    """
    if any(topic.counts.get(name) for name in CLASSES if name not in HARMLESS):
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
    if topic.buckets["verified"]:
        return {"status": "verified", "reason": ""}
    if topic.skipped_records and not topic.buckets["in_flight"]:
        reason = "all its records were mirrored about when the baseline was recorded"
        return {"status": "skipped", "reason": reason}
    return {"status": "in_flight", "reason": "nothing is below the committed position yet"}


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
