"""A manifest out of another one: what a run begins with, reads and forgets. No Spark, no I/O."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from mirror_report.parity.state.manifest import Manifest
from mirror_report.parity.state.manifest_records import Origin, TopicKey

# Runs of a flow in a row without a report of which the findings are kept.
UNREPORTED_KEPT = 100
# What is known of a topic by its numbers, by flow and topic.
NUMBERS = (
    "summaries", "scans", "totals", "verified_again", "boundaries", "fatal", "looks",
    "open_buckets",
)  # fmt: skip
# What is known of records that left a topic.
LOST = ("gone", "removals")
# What is forgotten with a topic beside its numbers.
FORGOTTEN = (*LOST, "gaps", "unreadable", "new_findings")
# Numbers of a topic that sealed hours add to.
SEALED = ("source_records", "target_records", "verified_records", "buckets_verified")

T = TypeVar("T")


def begin_run(
    manifest: Manifest, run_id: str, flows: Iterable[str], was_reported: Callable[[str], bool]
) -> Manifest:
    """Begin a run of some flows.

    What was found since the last report of a flow stays new: those runs ended before their report.
    """
    unreported, finished = dict(manifest.unreported), dict(manifest.finished)
    findings = manifest.new_findings
    for flow in flows:
        runs = unreported.get(flow, ())
        reported = max((at for at, run in enumerate(runs) if was_reported(run)), default=-1)
        before = (run for run in runs[reported + 1 :] if run != run_id)
        unreported[flow] = (*[*before][-UNREPORTED_KEPT:], run_id)
        if (last := finished.pop(flow, None)) is not None and was_reported(last):
            findings = tuple(finding for finding in findings if finding.flow != flow)
    return replace(manifest, unreported=unreported, finished=finished, new_findings=findings)


def without_report(manifest: Manifest, run_id: str, flows: Iterable[str]) -> Manifest:
    """Leave a run out of the unreported ones of flows that its report does not cover."""
    unreported = dict(manifest.unreported) | {
        flow: tuple(run for run in manifest.unreported[flow] if run != run_id) for flow in flows
    }
    return replace(manifest, unreported=unreported)


def with_topic(
    values: Mapping[str, Mapping[str, T]], flow: str, topic: str, value: T
) -> dict[str, Mapping[str, T]]:
    """Values by flow and topic with another one of a topic."""
    return {**values, flow: {**values.get(flow, {}), topic: value}}


def with_timestamps(manifest: Manifest, topics: Iterable[TopicKey]) -> Manifest:
    """Forget that no record of some topics carried a timestamp, until the next are compared."""
    summaries = manifest.summaries
    for flow, topic in topics:
        summary = summaries[flow][topic]
        now = {**summary.now, "newest_due_ms": None}
        summaries = with_topic(summaries, flow, topic, replace(summary, now=now))
    return replace(manifest, summaries=summaries)


def read_up_to(manifest: Manifest, ends: Iterable[tuple[Origin, int, int]]) -> Manifest:
    """Go on reading from elsewhere.

    :param ends: side of a topic, partition, next offset to read.
    """
    sides = dict(manifest.sides)
    for key, partition, end in ends:
        sides[key] = replace(sides[key], next={**sides[key].next, partition: end})
    return replace(manifest, sides=sides)


def forget_flow(manifest: Manifest, flow: str) -> Manifest:
    """Drop all that is known of a flow, except for its rows."""
    changes: dict[str, Any] = {
        name: {key: value for key, value in getattr(manifest, name).items() if key != flow}
        for name in (
            *NUMBERS,
            "topic_baselines",
            "positions",
            "alignments",
            "baselines",
            "spread",
        )
    } | {
        name: tuple(record for record in getattr(manifest, name) if record.flow != flow)
        for name in FORGOTTEN
    }
    sides = {key: side for key, side in manifest.sides.items() if key[0] != flow}
    return replace(manifest, sides=sides, **changes)


def forget_topic(manifest: Manifest, flow: str, topic: str, origins: Collection[str]) -> Manifest:
    """Drop all that is known of one topic of the target, except for its rows.

    :param origins: the topics of the source that feed it.
    """
    forgotten = {(flow, "target", topic), *((flow, "source", origin) for origin in origins)}
    sides = {key: side for key, side in manifest.sides.items() if key not in forgotten}
    manifest = forget_values(forget_numbers(manifest, flow, topic), ("spread",), flow, topic)
    return _without(replace(manifest, sides=sides), FORGOTTEN, flow, topic)


def forget_numbers(manifest: Manifest, flow: str, topic: str) -> Manifest:
    """Drop what was reported of one topic of the target."""
    return _without(forget_values(manifest, NUMBERS, flow, topic), LOST, flow, topic)


def compare_by_hours(
    manifest: Manifest, topics: Mapping[TopicKey, str], digests: str, results: str | None
) -> Manifest:
    """Go on with hours instead of minutes of some topics.

    :param topics: with their values of :attr:`Manifest.spread`.
    :param digests: name of all digest rows, with these buckets; ``results``: likewise.
    """
    for (flow, topic), how in topics.items():
        open_topic = manifest.open_buckets.get(flow, {}).get(topic)
        # Open buckets are known by their names, and these are others now.
        if open_topic is not None and (open_topic["buckets"] or not open_topic["whole"]):
            manifest = forget_values(manifest, ("open_buckets",), flow, topic)
        manifest = replace(manifest, spread=with_topic(manifest.spread, flow, topic, how))
    return replace(manifest, digests=(digests,), results=results)


def forget_values(manifest: Manifest, names: Iterable[str], flow: str, topic: str) -> Manifest:
    """Drop the values of one topic of the target in some fields that are by flow and topic."""
    changes: dict[str, Any] = {}
    for name in names:
        values = getattr(manifest, name)
        if topic in values.get(flow, {}):
            changes[name] = {**values, flow: {k: v for k, v in values[flow].items() if k != topic}}
    return replace(manifest, **changes)


def _without(manifest: Manifest, names: Iterable[str], flow: str, topic: str) -> Manifest:
    changes: dict[str, Any] = {
        name: tuple(
            record
            for record in getattr(manifest, name)
            if (record.flow, record.topic) != (flow, topic)
        )
        for name in names
    }
    return replace(manifest, **changes)


def seal_numbers(manifest: Manifest, row: Mapping[str, Any]) -> Manifest:
    """Move numbers of a topic from what is compared in every run to what is sealed.

    :param row: flow, topic, :data:`SEALED`, through_ms, newest_ms.
    """
    flow, topic = row["flow"], row["topic"]
    total = manifest.totals.get(flow, {}).get(topic, {})
    summary = manifest.summaries[flow][topic]
    now, following = (
        {**numbers, **{name: numbers[name] - row[name] for name in SEALED}}
        for numbers in (summary.now, summary.next)
    )
    sums = {name: total.get(name, 0) + row[name] for name in SEALED}
    newest = {
        name: max(total.get(name, row[name]), row[name]) for name in ("through_ms", "newest_ms")
    }
    return replace(
        manifest,
        totals=with_topic(manifest.totals, flow, topic, {**total, **sums, **newest}),
        summaries=with_topic(
            manifest.summaries, flow, topic, replace(summary, now=now, next=following)
        ),
    )
