"""Scans of compacted topics: when one is due, what it reads, and what is told of the last.

What compaction leaves cannot be added up run by run, so such a topic is compared as a whole, every
so often. No Spark, no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mirror_report.config.flow import Flow
from mirror_report.model.cluster import ClusterSnapshot, Positions, TopicSnapshot
from mirror_report.model.content import CLASSES, ParityStatus, Sample, TopicParity
from mirror_report.model.findings import Finding
from mirror_report.parity.plan import strategies
from mirror_report.parity.plan.ranges import RECORD_BYTES, Range, Side
from mirror_report.parity.results.summaries import HARMLESS, TOLD_ONCE
from mirror_report.parity.state.manifest import offsets

if TYPE_CHECKING:
    from mirror_report.parity.run import Run

HOUR_MS = 3_600_000
MARGIN_MS = HOUR_MS
"""What retention is about to remove may be gone before it is read."""


@dataclass(frozen=True)
class Scan:
    """What the last scan of a topic found; JSON types only.

    :param state: :func:`state` of the topic then.
    :param keys: class -> partition (``-1``: of a topic as a whole) -> keys.
    :param accounted: class -> keys an earlier run has told of.
    """

    run_id: str
    at_ms: int
    state: list[Any]
    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    source_keys: int = 0
    target_keys: int = 0
    newest_ms: int | None = None
    accounted: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def total(self, name: str) -> int:
        """Keys of a class."""
        return sum(self.keys.get(name, {}).values())

    def known(self, name: str, untold: Collection[str]) -> int:
        """Keys of a class that a report has told of; ``untold``: runs whose report nobody got."""
        return self.accounted.get(name, 0) if self.run_id in untold else self.total(name)


@dataclass(frozen=True)
class Subject:
    """A compacted topic, both sides of it at one moment, and where the mirror stands.

    :param sources: the topics that feed it; ``target``: ``None`` if it does not exist.
    :param recorded: the flow's topics in its baseline.
    """

    flow: Flow
    topic: str
    sources: tuple[TopicSnapshot, ...]
    target: TopicSnapshot | None
    positions: Positions
    taken_at_ms: int
    recorded: Mapping[str, Any]

    @classmethod
    def seen(
        cls,
        flow: Flow,
        topic: str,
        origins: Iterable[str],
        source: ClusterSnapshot,
        positions: Positions,
        target: ClusterSnapshot,
        recorded: Mapping[str, Any],
    ) -> Subject | None:
        """One topic of some snapshots; ``None`` if it is no longer on the source."""
        topics = [source.topics.get(one) for one in origins]
        present = tuple(one for one in topics if one is not None)
        if len(present) < len(topics):
            return None
        at = source.taken_at_ms
        on_target = target.topics.get(topic)
        return cls(flow, topic, present, on_target, positions, at, recorded)

    @property
    def keeps_time(self) -> bool:
        """Whether timestamps have to be the same on both sides."""
        return self.target is None or strategies.keeps_time(self.target)

    def sides(self) -> list[tuple[Side, TopicSnapshot]]:
        """All topics of both sides."""
        found: list[tuple[Side, TopicSnapshot]] = [("source", one) for one in self.sources]
        return found if self.target is None else [*found, ("target", self.target)]

    def state(self) -> list[Any]:
        """What has to change before another scan can find anything else; JSON types only."""
        return [
            [side, one.name, one.topic_id, {str(p): log.end for p, log in one.partitions.items()}]
            for side, one in self.sides()
        ]

    def ranges(self) -> list[Range]:
        """Everything both sides hold."""
        return [
            Range(
                self.flow.name, side, one.name, self.topic, partition, log.log_start,
                log.end_for(self.flow.isolation(side)), _record_bytes(one),
            )
            for side, one in self.sides()
            for partition, log in one.partitions.items()
            if log.end_for(self.flow.isolation(side)) > log.log_start
        ]  # fmt: skip

    def places(self) -> list[dict[str, Any]]:
        """Rows of :data:`frames.latest_by_key.PLACES_SCHEMA`."""
        rows = []
        for side, one in self.sides():
            origins = [one.name] if side == "source" else [each.name for each in self.sources]
            known = [self.recorded[name] for name in origins if name in self.recorded]
            floors = offsets((known[-1] if known else {}).get(side) or {})
            for partition, log in one.partitions.items():
                committed = self.positions.get(one.name, {}).get(partition, log.log_start)
                rows.append(
                    {
                        "flow": self.flow.name, "side": side, "origin": one.name,
                        "partition": partition, "floor": floors.get(partition, 0),
                        "position": committed if side == "source" else None,
                    }
                )  # fmt: skip
        return rows

    def expiry(self) -> dict[str, Any]:
        """Row of :data:`frames.latest_by_key.EXPIRY_SCHEMA`."""
        row: dict[str, Any] = {"flow": self.flow.name, "topic": self.topic}
        for side, one in self.sides():
            until = _expired_ms(one, self.taken_at_ms)
            known = row.get(f"{side}_expired_ms")
            if until is not None:
                row[f"{side}_expired_ms"] = until if known is None else max(known, until)
        return row


def last_of(
    memory: Mapping[str, Mapping[str, Mapping[str, Any]]], flow: str, topic: str
) -> Scan | None:
    """What is remembered of a topic."""
    plain = memory.get(flow, {}).get(topic)
    return None if plain is None else Scan(**plain)


def wanted(run: Run, ranges: Iterable[Range]) -> list[Subject]:
    """Topics to scan in a run, those first that were scanned longest ago.

    :param ranges: what the run reads besides; a scan that does not fit into the rest of its budget
        waits, and is told.
    """
    every_ms = run.settings.budget.compacted_hours * HOUR_MS
    waiting: list[tuple[int, Subject]] = []
    for look in run.looks:
        recorded = (run.baselines.get(look.flow.name) or {}).get("topics", {})
        for plan in look.plan.topics:
            if plan.strategy != "latest_by_key" or plan.skip or plan.unknown:
                continue
            one = Subject.seen(look.flow, plan.topic, plan.origins, look.source, look.positions,
                               look.target, recorded)  # fmt: skip
            last = last_of(run.memory.scans, look.flow.name, plan.topic)
            if one is not None and due(last, one, every_ms):
                waiting.append((last.at_ms if last else 0, one))
    subjects = [one for _, one in sorted(waiting, key=lambda pair: pair[0])]
    budget = run.settings.budget
    free = [one for one in subjects if one.flow.name not in run.braked]
    left = [
        None if most is None else most - sum(spent)
        for most, spent in (
            (budget.max_bytes, (one.bytes for one in ranges)),
            (budget.max_records, (one.records for one in ranges)),
        )
    ]
    chosen = affordable(free, *left)
    run.findings += [_unaffordable(one) for one in free if one not in chosen]
    return chosen


def due(last: Scan | None, now: Subject, every_ms: float) -> bool:
    """Whether a topic has to be scanned: something is new, and the last scan is old enough."""
    if last is None:
        return True
    if last.state == now.state() and not last.total("in_flight"):
        return False
    return now.taken_at_ms - last.at_ms >= every_ms


def affordable(
    subjects: Iterable[Subject], max_bytes: float | None, max_records: float | None = None
) -> list[Subject]:
    """Those that fit into what a run may still read, in their order."""
    chosen = []
    left = [max_bytes, max_records]
    for one in subjects:
        ranges = one.ranges()
        sizes = (sum(each.bytes for each in ranges), sum(each.records for each in ranges))
        if all(have is None or size <= have for size, have in zip(sizes, left, strict=True)):
            chosen.append(one)
            left = [have and have - size for size, have in zip(sizes, left, strict=True)]
    return chosen


def result(
    subject: Subject,
    run_id: str,
    rows: Iterable[Mapping[str, Any]],
    samples: Iterable[Mapping[str, Any]],
    last: Scan | None,
    untold: Collection[str] = (),
) -> Scan:
    """What a scan found, to be remembered.

    :param rows: of :func:`frames.latest_by_key.count`, this topic's.
    :param samples: of :func:`frames.latest_by_key.samples`, this topic's.
    :param last: the scan before it; ``untold``: runs whose report nobody got.
    """
    found = Scan(run_id, subject.taken_at_ms, subject.state())
    newest: list[int] = []
    source_keys = target_keys = 0
    for row in rows:
        found.keys.setdefault(row["class"], {})[str(row["lane"])] = row["keys"]
        source_keys += row["source_keys"]
        target_keys += row["target_keys"]
        if row["class"] != "in_flight" and row["newest_ms"] is not None:
            newest.append(row["newest_ms"])
    for one in samples:
        plain = {name: one[name] for name in one if name not in ("flow", "topic", "class")}
        found.samples.setdefault(one["class"], []).append(plain)
    known = {
        name: min(found.total(name), last.known(name, untold) if last else 0) for name in TOLD_ONCE
    }
    return replace(
        found,
        source_keys=source_keys,
        target_keys=target_keys,
        newest_ms=max(newest, default=None),
        accounted=known,
    )


def told(empty: TopicParity, scan: Scan | None, untold: Collection[str], why: str) -> TopicParity:
    """What a report says of a topic by its last scan.

    :param empty: the topic without numbers; ``why``: the reason of the strategy.
    :param untold: runs whose report nobody got, this one included: what they found is news.
    """
    if scan is None:
        reason = f"{why}: its first scan waits, it reads the whole topic"
        return replace(empty, status="in_flight", reason=reason)
    totals = {name: scan.total(name) for name in CLASSES}
    accounted = {name: scan.known(name, untold) for name in TOLD_ONCE}
    counts = {name: number - accounted.get(name, 0) for name, number in totals.items()}
    wrong = any(counts[name] for name in CLASSES if name not in HARMLESS)
    in_flight = scan.total("in_flight")
    status: ParityStatus = "verified"
    if wrong:
        status = "mismatch"
    elif counts["unverifiable"]:
        status = "unverifiable"
    elif in_flight and not scan.total("verified"):
        status = "in_flight"
    whole = status == "verified" and not in_flight
    return replace(
        empty,
        status=status,
        reason=f"{why}: compared by the latest record of each key",
        source_records=scan.source_keys,
        target_records=scan.target_keys,
        verified_records=scan.total("verified"),
        in_flight_records=in_flight,
        skipped_records=scan.total("skipped"),
        counts=counts,
        accounted={**empty.accounted, **accounted},
        # Which partitions the news are in is not known once others have been told of.
        partitions={
            name: {lane: keys for lane, keys in scan.keys[name].items() if int(lane) >= 0}
            for name in CLASSES
            if counts[name]
            and counts[name] == totals[name]
            and any(int(lane) >= 0 for lane in scan.keys[name])
        },
        verified_through_ms=scan.at_ms if whole else None,
        newest_due_ms=scan.newest_ms,
        samples={
            name: [Sample(**one) for one in some]
            for name, some in scan.samples.items()
            if counts.get(name)
        },
    )


def _unaffordable(one: Subject) -> Finding:
    size = sum(each.bytes for each in one.ranges())
    return Finding(
        "warning", "backlog", one.flow.name, one.topic, None, None,
        f"{one.flow.name}/{one.topic}: a compacted topic is read as a whole, and its "
        f"{size / 1e6:.0f} MB are more than this run may still read",
        "mirror-report run again; if it stays, raise mirror_report_max_bytes or _max_records",
    )  # fmt: skip


def _expired_ms(topic: TopicSnapshot, now_ms: int) -> int | None:
    """Records up to which timestamp retention may have removed; ``None``: none."""
    if "delete" not in topic.configs.get("cleanup.policy", ""):
        return None
    by_size = int(topic.configs.get("retention.bytes", -1)) >= 0
    if by_size and any(log.log_start for log in topic.partitions.values()):
        return now_ms
    kept_ms = int(topic.configs.get("retention.ms", -1))
    return None if kept_ms < 0 else now_ms - kept_ms + MARGIN_MS


def _record_bytes(topic: TopicSnapshot) -> float:
    spanned = sum(log.end - log.log_start for log in topic.partitions.values())
    return RECORD_BYTES if not topic.bytes or not spanned else topic.bytes / spanned
