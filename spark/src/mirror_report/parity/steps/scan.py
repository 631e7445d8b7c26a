"""Scanning compacted topics: the latest record of every key, on both sides, in one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import TopicSnapshot
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import compare, latest_by_key, sql
from mirror_report.parity.plan import CompactedTopic, FlowSnapshots, Range, RunPlan, Unread
from mirror_report.parity.spark.records import Reader, limited
from mirror_report.parity.spark.rows import RowStorage
from mirror_report.parity.state import Manifest

NOWHERE = 2**62


@dataclass(frozen=True)
class Scanned:
    """What was found in some topics.

    :param topics: those of which something can be said.
    :param rows: of :func:`frames.latest_by_key.count`; ``samples``: of its ``samples``.
    """

    topics: Sequence[CompactedTopic] = ()
    rows: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    unread: Unread = field(default_factory=Unread)

    @property
    def differing(self) -> list[CompactedTopic]:
        """Topics that have keys that are wrong."""
        wrong = {
            (row["flow"], row["topic"]) for row in self.rows if row["class"] in latest_by_key.WRONG
        }
        return [topic for topic in self.topics if topic.key in wrong]

    def replaced(self, again: Scanned) -> Scanned:
        """With what was found when the topics that differ were scanned again."""
        former = {topic.key for topic in self.differing}
        topics = [topic for topic in self.topics if topic.key not in former]
        rows = [row for row in self.rows if (row["flow"], row["topic"]) not in former]
        return Scanned([*topics, *again.topics], rows + again.rows, again.samples, again.unread)


class Scanner:
    """Compacted topics, in one run."""

    def __init__(
        self, context: RunContext, storage: RowStorage, manifest: Manifest, plan: RunPlan
    ) -> None:
        self.context = context
        self.session = storage.session
        self.reader = Reader(
            context.settings, storage.session, context.progress, manifest.unreadable, plan.topic_id
        )

    def scan(self, topics: Sequence[CompactedTopic]) -> Scanned:
        """Compare some topics as a whole.

        :raises OutOfTimeError: the run's time is over.
        """
        self.context.progress(f"comparing {len(topics)} compacted topic(s) by key")
        rows = self.reader.read(partial(self._counted, topics))
        return Scanned(self._readable(topics), rows, unread=self.reader.unread)

    def confirm(self, topics: Iterable[CompactedTopic], snapshots: FlowSnapshots) -> Scanned:
        """Compare some topics again; what changes meanwhile is in flight.

        :param snapshots: fresh ones; topics that are gone there are left out.
        :raises OutOfTimeError: the run's time is over.
        """
        now = _now(topics, snapshots)
        rows, samples = self.reader.read(partial(self._confirmed, now))
        return Scanned(self._readable(now), rows, samples, self.reader.unread)

    def _readable(self, topics: Iterable[CompactedTopic]) -> list[CompactedTopic]:
        return self.reader.readable(topics, attrgetter("key"))

    def _counted(self, topics: Sequence[CompactedTopic]) -> list[dict[str, Any]]:
        with limited(self.context, self.session):
            judged = latest_by_key.collapse(self._judged(self._readable(topics)))
            return [row.asDict() for row in latest_by_key.count(judged).collect()]

    def _confirmed(
        self, topics: Sequence[CompactedTopic]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        chosen = self._readable(topics)
        if not chosen:
            return [], []
        with limited(self.context, self.session):
            collapsed = latest_by_key.collapse(self._judged(chosen)).persist()
            collapsed.count()
            final = collapsed
            if newer := self._newer(chosen):
                tail = compare.with_lanes(self.reader.fetch(newer), self.context.by_partition)
                changed = latest_by_key.with_keys(tail).select(*latest_by_key.KEY)
                final = latest_by_key.without(collapsed, changed)
            rows = [row.asDict() for row in latest_by_key.count(final).collect()]
            samples = [row.asDict() for row in latest_by_key.samples(final).collect()]
            collapsed.unpersist()
        return rows, samples

    def _newer(self, topics: Sequence[CompactedTopic]) -> list[Range]:
        """What the sources got since: compaction may have removed what it replaces."""
        flows = {topic.flow.name: topic.flow for topic in topics}
        now = {name: self.context.take.source(flow) for name, flow in flows.items()}
        return [
            newer
            for topic in topics
            for before in topic.sources
            for newer in _newer_than(before, now[topic.flow.name].topics.get(before.name), topic)
        ]

    def _judged(self, topics: Sequence[CompactedTopic]) -> DataFrame:
        beyond = self._unreadable(topics)
        topics = self._readable(topics)
        wanted = [each for topic in topics for each in topic.ranges()]
        records = self.reader.bucketed(wanted, self.context.bucket_ms)
        untimed = [topic.topic for topic in topics if not topic.keeps_time]
        timed = records.withColumn(
            "compared_ms", F.when(~F.col("topic").isin(*untimed), F.col("compared_ms"))
        )
        places = [row for topic in topics for row in topic.places()]
        keys = latest_by_key.by_key(
            compare.with_lanes(timed, self.context.by_partition),
            sql.table(self.session, latest_by_key.PLACES_SCHEMA, places),
        )
        expiry = [topic.expiry() for topic in topics]
        return latest_by_key.judge(
            keys, sql.table(self.session, latest_by_key.EXPIRY_SCHEMA, expiry), beyond
        )

    def _unreadable(self, topics: Sequence[CompactedTopic]) -> DataFrame | None:
        """Keys (:data:`frames.latest_by_key.KEY`) of records that cannot be read."""
        floors: Mapping[Any, int] = {
            (*topic.key, row["side"], row["origin"], row["partition"]): row["floor"]
            for topic in topics
            for row in topic.places()
        }
        some = [
            record
            for record in self.reader.unread.records
            if record.offset
            >= floors.get(
                (record.flow, record.topic, record.side, record.origin, record.partition), NOWHERE
            )
        ]
        rows = [
            {
                "flow": record.flow, "topic": record.topic, "partition": record.partition,
                "text": None if key is None else key.hex(),
            }
            for record, key in self.reader.keys(some).items()
        ]  # fmt: skip
        if not rows:
            return None
        keys = sql.table(
            self.session, "flow string, topic string, partition int, text string", rows
        ).withColumn("key", F.unhex("text"))
        return latest_by_key.with_keys(compare.with_lanes(keys, self.context.by_partition))


def _newer_than(
    before: TopicSnapshot, now: TopicSnapshot | None, topic: CompactedTopic
) -> Iterator[Range]:
    flow, isolation = topic.flow.name, topic.flow.isolation("source")
    for partition, log in (now.partitions if now else {}).items():
        begun = before.partitions.get(partition)
        start = max(begun.end_for(isolation) if begun else 0, log.log_start)
        end = log.end_for(isolation)
        if start < end:
            yield Range(flow, "source", before.name, topic.topic, partition, start, end)


def _now(topics: Iterable[CompactedTopic], snapshots: FlowSnapshots) -> list[CompactedTopic]:
    """The same topics as fresh snapshots show them; without those that are gone."""
    return [
        # When it was observed first: nothing since then is vouched for.
        replace(now, taken_at_ms=topic.taken_at_ms)
        for topic in topics
        if (snapshot := snapshots.get(topic.flow.name))
        and (
            now := CompactedTopic.seen(
                snapshot, topic.topic, [each.name for each in topic.sources], topic.recorded
            )
        )
    ]
