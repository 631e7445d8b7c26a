"""Scans of compacted topics, as they are kept and as they are reported."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from operator import attrgetter, itemgetter
from typing import Any

from mirror_report.model import CLASSES, ParityStatus, Sample, TopicParity
from mirror_report.parity import HARMLESS, REPORTED_ONCE, SAMPLES, WRONG_KEYS, grouped
from mirror_report.parity.plan import CompactedTopic, ComparedTopic, Scan, scans
from mirror_report.parity.state import Manifest, changes

# What a look can find out about a key no more than that it has to be scanned.
NOT_COMPARED = ("unverifiable", "not_compared")


def keep(
    manifest: Manifest, compared: Iterable[ComparedTopic], run_id: str, *, new: bool
) -> Manifest:
    """Keep what was found of some topics.

    :param new: by looks, not by scans.
    """
    kept = manifest.scans
    for each in compared:
        flow, topic = each.topic.key
        last = scans.last_of(kept, each.topic.key)
        unreported = manifest.unreported.get(flow, ())
        scan = (
            after_look(each, run_id, last, unreported)
            if new and last is not None
            else after_scan(each, run_id, last, unreported)
        )
        scan = replace(
            scan, newer=each.newer, moments=[moment.dump() for moment in each.moments],
            logs=each.topic.logs,
        )  # fmt: skip
        kept = changes.with_topic(kept, flow, topic, asdict(scan))
    return replace(manifest, scans=kept)


def after_scan(
    compared: ComparedTopic, run_id: str, last: Scan | None, unreported: Collection[str] = ()
) -> Scan:
    """The state of a topic after a scan, to be kept.

    :param last: the scan before it; ``unreported``: runs whose report was not written.
    """
    scan = Scan(
        run_id, compared.topic.taken_at_ms, compared.topic.state(), _keys(compared.rows),
        source_keys=sum(row["source_keys"] for row in compared.rows),
        target_keys=sum(row["target_keys"] for row in compared.rows),
        newest_ms=_newest(compared.rows), samples=_samples(compared.samples),
        replaced=compared.replaced, wrong=list(compared.wrong),
    )  # fmt: skip
    return replace(scan, accounted=_accounted(scan, last, unreported))


def after_look(
    compared: ComparedTopic, run_id: str, last: Scan, unreported: Collection[str] = ()
) -> Scan:
    """The state of a topic after a look, to be kept.

    Which of the last scan's keys are among those looked at is not known. So keys that are wrong
    are taken off those that were verified, and of new keys only what the look saw counts: at least
    so many are verified.

    :param last: what was known before; ``unreported``: runs whose report was not written.
    """
    keys_now = _keys(compared.rows)
    before: Mapping[str, Mapping[str, int]] = _keys_of(last.wrong)
    lanes = {lane for keys in (*keys_now.values(), *last.keys.values()) for lane in keys}
    keys = {name: dict(of_lanes) for name, of_lanes in last.keys.items()}
    for lane in lanes:
        for name in (*WRONG_KEYS, "expired"):
            same = _of(before, name, lane)
            _set(keys, name, lane, _of(last.keys, name, lane) - same + _of(keys_now, name, lane))
        _set(keys, "in_flight", lane, _of(keys_now, "in_flight", lane))
        total = sum(_of(last.keys, name, lane) for name in ("verified", "in_flight", *WRONG_KEYS))
        left = total - sum(_of(keys, name, lane) for name in ("in_flight", *WRONG_KEYS))
        _set(keys, "verified", lane, max(left, _of(keys_now, "verified", lane)))
    scan = replace(last, run_id=run_id, keys=keys, looked_at_ms=compared.topic.taken_at_ms)
    on_source = sum(scan.total(name) for name in ("verified", "in_flight", *WRONG_KEYS))
    newest = (ms for ms in (last.newest_ms, _newest(compared.rows)) if ms is not None)
    return replace(
        scan,
        source_keys=max(last.source_keys, on_source - scan.total("extra")),
        target_keys=max(last.target_keys, scan.total("verified")),
        newest_ms=max(newest, default=None),
        accounted=_accounted(scan, last, unreported),
        samples=_more_samples(last, scan, _samples(compared.samples)),
        wrong=list(compared.wrong),
        uncompared=last.uncompared + compared.topic.unlooked(attrgetter("log_start"))
        + sum(sum(keys_now.get(name, {}).values()) for name in NOT_COMPARED),
    )  # fmt: skip


def _keys(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    return {
        name: {str(row["lane"]): row["keys"] for row in of_class}
        for name, of_class in grouped(rows, itemgetter("class")).items()
    }


def _keys_of(wrong: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Keys of some classes that are kept one by one, by class and lane."""
    return {
        name: Counter(str(key["lane"]) for key in of_class)
        for name, of_class in grouped(wrong, itemgetter("class")).items()
    }


def _of(keys: Mapping[str, Mapping[str, int]], name: str, lane: str) -> int:
    return keys.get(name, {}).get(lane, 0)


def _set(keys: dict[str, dict[str, int]], name: str, lane: str, number: int) -> None:
    if number or lane in keys.get(name, {}):
        keys.setdefault(name, {})[lane] = max(0, number)


def _newest(rows: Iterable[Mapping[str, Any]]) -> int | None:
    due = (row["newest_ms"] for row in rows if row["class"] != "in_flight")
    return max((newest for newest in due if newest is not None), default=None)


def _accounted(scan: Scan, last: Scan | None, unreported: Collection[str]) -> dict[str, int]:
    return {
        name: min(scan.total(name), last.reported(name, unreported) if last else 0)
        for name in REPORTED_ONCE
    }


def _samples(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    keys = ("flow", "topic", "class")
    return {
        kind: [{name: sample[name] for name in sample if name not in keys} for sample in of_class]
        for kind, of_class in grouped(rows, itemgetter("class")).items()
    }


def _more_samples(
    last: Scan, scan: Scan, fresh: Mapping[str, list[dict[str, Any]]]
) -> dict[str, list[dict[str, Any]]]:
    """Samples of a look, and after them those of keys that it did not look at again."""
    kept = {name: sum(lanes.values()) for name, lanes in _keys_of(last.wrong).items()}
    samples = {}
    for name in filter(scan.total, WRONG_KEYS):
        all_again = kept.get(name, 0) == last.total(name)
        old = [] if all_again else last.samples.get(name, [])
        both = fresh.get(name, [])
        samples[name] = [*both, *(one for one in old if one not in both)][:SAMPLES]
    return samples


def reported(
    empty: TopicParity, scan: Scan | None, unreported: Collection[str], why: str
) -> TopicParity:
    """A topic as the report shows it by its last scan.

    :param empty: the topic without numbers; ``why``: the reason of the strategy.
    :param unreported: runs whose report was not written, this one included: what they found is
        new.
    """
    if scan is None:
        return replace(
            empty, status="in_flight",
            reason=f"{why}: its first scan waits, it reads the whole topic",
        )  # fmt: skip
    if scan.replaced or not scan.keys:
        reason = "what it held was replaced while it was read: the next run reads it again"
        return replace(
            empty, status="in_flight", in_flight_records=scan.newer,
            reason=f"{why}: {reason if scan.replaced else 'it holds no record'}",
        )  # fmt: skip
    accounted = {name: scan.reported(name, unreported) for name in REPORTED_ONCE}
    counts = {name: scan.total(name) - accounted.get(name, 0) for name in CLASSES}
    status = _status(scan, counts)
    in_flight = scan.total("in_flight") + scan.newer
    whole = status == "verified" and not in_flight
    return replace(
        empty,
        status=status,
        reason=f"{why}: compared by the latest record of each key",
        source_records=scan.source_keys + scan.newer,
        target_records=scan.target_keys,
        verified_records=scan.total("verified"),
        in_flight_records=in_flight,
        skipped_records=scan.total("skipped"),
        counts=counts,
        accounted={**empty.accounted, **accounted},
        partitions=_partitions(scan, counts),
        verified_through_ms=scan.at_ms if whole else None,
        newest_due_ms=scan.newest_ms,
        samples={
            name: [Sample(**sample) for sample in of_class]
            for name, of_class in scan.samples.items()
            if counts.get(name)
        },
    )


def with_new_records(
    topic: TopicParity, last: Scan | None, now: CompactedTopic | None
) -> TopicParity:
    """A topic as the report shows it, with what came since and was not compared.

    :param topic: :func:`reported`; ``last``: what it is of.
    :param now: the topic as this run observed it; ``None``: it was not there any more.
    """
    if last is None or last.replaced:
        return topic
    unlooked = now.unlooked() if now else 0
    uncompared = last.uncompared + unlooked
    looked_ms = last.looked_at_ms or last.at_ms
    parts = [f"as a whole {_ago(now, last.at_ms)}"] if now else []
    if now and last.looked_at_ms:
        parts.append(f"what came since {_ago(now, looked_ms)}")
    if uncompared:
        parts.append(f"{uncompared} records since were not compared")
    whole = topic.verified_through_ms is not None and not uncompared
    return replace(
        topic,
        status="in_flight" if unlooked and topic.status == "verified" else topic.status,
        reason=", ".join([topic.reason, *parts]),
        scanned_at_ms=last.at_ms,
        uncompared_records=uncompared,
        verified_through_ms=looked_ms if whole else None,
    )


def _ago(now: CompactedTopic, at_ms: int) -> str:
    minutes = max(0, now.taken_at_ms - at_ms) // 60_000
    return f"{minutes // 60} h ago" if minutes >= 120 else f"{minutes} min ago"


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
