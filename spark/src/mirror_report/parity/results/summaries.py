"""The summary of a topic: its numbers, its status, and what the next run repeats."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

from mirror_report.checks.content import REPLACED
from mirror_report.model import CLASSES, Sample, TopicParity
from mirror_report.parity import (
    ACCOUNTABLE,
    ADDED,
    FORETOLD,
    HARMLESS,
    NEWEST,
    OLDEST,
    REPORTED_ONCE,
    SAMPLES,
    STATUSES,
    WHOLE,
    grouped,
)
from mirror_report.parity.plan import RunPlan
from mirror_report.parity.state import Manifest, Numbers, Summary, changes


def by_topic(lanes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Numbers of each topic out of those of its lanes.

    :param lanes: rows of :func:`frames.totals.summarise`.
    :returns: the same numbers by flow and topic, with ``lanes``: partition (``*`` for a topic as a
        whole) -> ``counts`` of what is not 0, ``unmatched`` (records) and ``hours``.
    """
    topics: dict[tuple[str, str], dict[str, Any]] = {}
    for row in lanes:
        flow, topic = row["flow"], row["topic"]
        numbers = topics.setdefault(
            (flow, topic),
            {"flow": flow, "topic": topic, "lanes": {}}
            | dict.fromkeys(ADDED, 0) | dict.fromkeys((*NEWEST, *OLDEST)),
        )  # fmt: skip
        for name in ADDED:
            numbers[name] += row[name]
        for name in (*NEWEST, *OLDEST):
            values = (value for value in (numbers[name], row[name]) if value is not None)
            numbers[name] = (max if name in NEWEST else min)(values, default=None)
        numbers["lanes"][str(row["lane"]) if row["lane"] >= 0 else WHOLE] = {
            "counts": {name: row[name] for name in CLASSES if row[name]},
            "unmatched": row["unmatched_records"],
            "hours": [list(hour) for hour in row["hours"]],
        }
    return list(topics.values())


def newly_verified(manifest: Manifest, rows: Iterable[Mapping[str, Any]]) -> int:
    """How many more buckets are verified than after the last run.

    :param rows: :func:`by_topic`.
    """
    name = "buckets_verified"
    return sum(
        max(0, row[name] - manifest.numbers((row["flow"], row["topic"])).get(name, 0))
        for row in rows
    )


def as_next(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the next run reports if nothing changes: what is reported once has become accounted."""
    following = dict(row)
    once = ACCOUNTABLE if WHOLE in row["lanes"] else REPORTED_ONCE
    for name in once:
        following[f"accounted_{name}"] += following[name]
        following[name] = 0
    following["lanes"] = {
        lane: {
            "counts": {name: n for name, n in numbers["counts"].items() if name not in once},
            "unmatched": numbers.get("unmatched", 0),
            "hours": [[hour, then, then] for hour, _, then in numbers["hours"]],
        }
        for lane, numbers in row["lanes"].items()
    }
    following |= {name: following[f"next_{name}"] for name in FORETOLD}
    following["verified_through_ms"] = following["next_verified_through_ms"]
    return following


def filled(
    empty: TopicParity, row: Numbers, samples: Mapping[str, tuple[Sample, ...]]
) -> TopicParity:
    """A topic's row of :func:`by_topic`, as the report shows it."""
    counts = (
        "source_records", "target_records", "verified_records", "in_flight_records",
        "skipped_records", "replaced_records", "verified_through_ms", "newest_due_ms",
    )  # fmt: skip
    lanes = sorted(row["lanes"].items(), key=lambda lane: (lane[0] == WHOLE, len(lane[0]), lane[0]))
    partitions = {
        name: of_class
        for name in CLASSES
        if (of_class := {lane: of_lane["counts"][name] for lane, of_lane in lanes
                      if lane != WHOLE and name in of_lane["counts"]})
    }  # fmt: skip
    return replace(
        empty,
        **{name: row[name] for name in counts},
        counts={name: row[name] for name in CLASSES},
        accounted={name: row[f"accounted_{name}"] for name in ACCOUNTABLE}
        | {"unverifiable": row["older_records"]},
        partitions=partitions,
        buckets={name: row[f"buckets_{name}"] for name in STATUSES},
        samples={name: list(records) for name, records in samples.items() if row[name]},
        strip={
            lane: [(hour, STATUSES[worst]) for hour, worst, _ in of_lane["hours"]]
            for lane, of_lane in lanes
            if of_lane["hours"]
        },
    )


def status(topic: TopicParity, unread: int, expired: int, below: int = 0) -> dict[str, Any]:
    """Status and reason of a topic.

    :param below: records below the committed position in minutes that are still open, at most.
    :param unread: offsets left for a later run.
    :param expired: records that were gone before they were read.
    """
    if any(topic.counts.get(name) for name in CLASSES if name not in HARMLESS):
        return {"status": "mismatch", "reason": ""}
    if topic.counts["unverifiable"]:
        reason = (
            f"{expired} records expired before they were read" if expired
            else REPLACED if topic.replaced_records == topic.counts["unverifiable"]
            else "records that differ can no longer be read"
        )  # fmt: skip
        return {"status": "unverifiable", "reason": reason}
    if unread:
        return {"status": "in_flight", "reason": f"{unread} offsets not read yet"}
    if topic.buckets["verified"]:
        return {"status": "verified", "reason": ""}
    if topic.skipped_records and not topic.buckets["in_flight"]:
        return {
            "status": "skipped",
            "reason": "all its records were mirrored about when the baseline was recorded",
        }
    reason = "nothing is below the committed position yet"
    if below:
        reason = f"{below} records below the committed position are of minutes that are still open"
    return {"status": "in_flight", "reason": reason}


def keep(
    manifest: Manifest,
    plan: RunPlan,
    rows: Iterable[Mapping[str, Any]],
    samples: Iterable[Mapping[str, Any]],
    run_id: str,
) -> Manifest:
    """Keep the numbers of each topic, now and as the next run may repeat them.

    :param rows: :func:`by_topic`.
    :param samples: flow, topic, class, and the fields of a :class:`Sample`.
    """
    keys = ("flow", "topic", "class")
    fresh = grouped(samples, itemgetter(*keys))
    planned = {topic.key for topic in plan.topics}
    summaries: dict[str, Mapping[str, Summary]] = {
        flow: {
            topic: summary
            for topic, summary in manifest.summaries.get(flow, {}).items()
            if flow not in plan.snapshots or (flow, topic) in planned
        }
        for flow in {*manifest.summaries, *plan.snapshots}
    }
    for numbers in map(dict, rows):
        flow, topic = numbers.pop("flow"), numbers.pop("topic")
        earlier = summaries.get(flow, {}).get(topic)
        unreported = earlier is not None and manifest.is_unreported(flow, earlier.run_id)
        merged = {}
        for name in filter(numbers.get, CLASSES):
            new = [
                Sample(**{field: row[field] for field in row if field not in keys})
                for row in fresh.get((flow, topic, name), ())
            ]
            accounted = name in REPORTED_ONCE and not unreported
            old = () if accounted or earlier is None else earlier.samples.get(name, ())
            if both := (*new, *(sample for sample in old if sample not in new)):
                merged[name] = both[:SAMPLES]
        summary = Summary(run_id, numbers, as_next(numbers), merged)
        summaries = changes.with_topic(summaries, flow, topic, summary)
    return replace(manifest, summaries=summaries)
