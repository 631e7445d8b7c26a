"""What is kept and reported of a scan of a compacted topic."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from mirror_report.model import CLASSES, ParityStatus, Sample, TopicParity
from mirror_report.parity import HARMLESS, REPORTED_ONCE
from mirror_report.parity.plan import CompactedTopic, Scan, scans
from mirror_report.parity.state import Manifest, changes


def keep(
    manifest: Manifest,
    topics: Iterable[CompactedTopic],
    rows: Iterable[Mapping[str, Any]],
    samples: Iterable[Mapping[str, Any]],
    run_id: str,
) -> Manifest:
    """Keep what a scan found.

    :param rows: of :func:`frames.latest_by_key.count`; ``samples``: of its ``samples``.
    """
    found = manifest.scans
    for topic in topics:
        of_topic, shown = (
            [row for row in some if (row["flow"], row["topic"]) == topic.key]
            for some in (rows, samples)
        )
        scan = result(
            topic, run_id, of_topic, shown, scans.last_of(found, *topic.key),
            manifest.unreported.get(topic.flow.name, ()),
        )  # fmt: skip
        found = changes.with_topic(found, *topic.key, asdict(scan))
    return replace(manifest, scans=found)


def result(
    topic: CompactedTopic,
    run_id: str,
    rows: Collection[Mapping[str, Any]],
    samples: Iterable[Mapping[str, Any]],
    last: Scan | None,
    unreported: Collection[str] = (),
) -> Scan:
    """What a scan found, to be kept.

    :param rows: of :func:`frames.latest_by_key.count`, this topic's.
    :param samples: of :func:`frames.latest_by_key.samples`, this topic's.
    :param last: the scan before it; ``unreported``: runs whose report was not written.
    """
    found = Scan(run_id, topic.taken_at_ms, topic.state())
    for row in rows:
        found.keys.setdefault(row["class"], {})[str(row["lane"])] = row["keys"]
    due = (row["newest_ms"] for row in rows if row["class"] != "in_flight")
    for sample in samples:
        found.samples.setdefault(sample["class"], []).append(
            {name: sample[name] for name in sample if name not in ("flow", "topic", "class")}
        )
    return replace(
        found,
        source_keys=sum(row["source_keys"] for row in rows),
        target_keys=sum(row["target_keys"] for row in rows),
        newest_ms=max((newest for newest in due if newest is not None), default=None),
        accounted={
            name: min(found.total(name), last.known(name, unreported) if last else 0)
            for name in REPORTED_ONCE
        },
    )


def reported(
    empty: TopicParity, scan: Scan | None, unreported: Collection[str], why: str
) -> TopicParity:
    """What a report says of a topic by its last scan.

    :param empty: the topic without numbers; ``why``: the reason of the strategy.
    :param unreported: runs whose report was not written, this one included: what they found is
        new.
    """
    if scan is None:
        return replace(
            empty, status="in_flight",
            reason=f"{why}: its first scan waits, it reads the whole topic",
        )  # fmt: skip
    accounted = {name: scan.known(name, unreported) for name in REPORTED_ONCE}
    counts = {name: scan.total(name) - accounted.get(name, 0) for name in CLASSES}
    status = _status(scan, counts)
    whole = status == "verified" and not scan.total("in_flight")
    return replace(
        empty,
        status=status,
        reason=f"{why}: compared by the latest record of each key",
        source_records=scan.source_keys,
        target_records=scan.target_keys,
        verified_records=scan.total("verified"),
        in_flight_records=scan.total("in_flight"),
        skipped_records=scan.total("skipped"),
        counts=counts,
        accounted={**empty.accounted, **accounted},
        partitions=_partitions(scan, counts),
        verified_through_ms=scan.at_ms if whole else None,
        newest_due_ms=scan.newest_ms,
        samples={
            name: [Sample(**sample) for sample in some]
            for name, some in scan.samples.items()
            if counts.get(name)
        },
    )


def _status(scan: Scan, counts: Mapping[str, int]) -> ParityStatus:
    if any(counts[name] for name in CLASSES if name not in HARMLESS):
        return "mismatch"
    if counts["unverifiable"]:
        return "unverifiable"
    if scan.total("in_flight") and not scan.total("verified"):
        return "in_flight"
    return "verified"


def _partitions(scan: Scan, counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """By class and partition; which partitions new ones are in is not known among reported ones."""
    lanes = {
        name: {lane: keys for lane, keys in scan.keys.get(name, {}).items() if int(lane) >= 0}
        for name in CLASSES
        if counts[name] and counts[name] == scan.total(name)
    }
    return {name: keys for name, keys in lanes.items() if keys}
