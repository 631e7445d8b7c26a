"""Comparing compacted topics: the latest record of every key, or of those that are new."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import PARTITION, grouped, partition_key
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import compare, latest_by_key, new_records, sql
from mirror_report.parity.plan import (
    CompactedTopic,
    ComparedTopic,
    FlowSnapshot,
    FlowSnapshots,
    Range,
    RunPlan,
)
from mirror_report.parity.spark.records import Reader, limited
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import BEHIND_ALL, Manifest, TopicKey, Widths

# Keys that are wrong of which a later look sees whether they were mended, of all topics of a run.
WRONG_KEPT = 2_000


class Scanner:
    """Compacted topics, in one run.

    :param new: compare what is new of them, not the whole.
    """

    def __init__(
        self,
        context: RunContext,
        storage: RowStorage,
        manifest: Manifest,
        plan: RunPlan,
        *,
        new: bool = False,
    ) -> None:
        self.context = context
        self.new = new
        self.session = storage.session
        self.reader = Reader(
            context.settings, storage.session, context.progress, manifest.unreadable, plan.topic_id
        )

    def scan(self, topics: Sequence[CompactedTopic]) -> list[ComparedTopic]:
        """Compare some topics; without those that are unknown.

        :raises OutOfTimeError: the run's time is over.
        """
        what = "new records of " if self.new else ""
        self.context.progress(f"comparing {what}{len(topics)} compacted topic(s) by key")
        return self.reader.read(partial(self._compared, topics))

    def confirm(
        self, topics: Iterable[CompactedTopic], snapshots: FlowSnapshots
    ) -> list[ComparedTopic]:
        """Compare some topics again; what changes meanwhile is in flight.

        :param snapshots: fresh ones; topics that are gone there are left out.
        :raises OutOfTimeError: the run's time is over.
        """
        now = [now for _, now in _seen(topics, snapshots)]
        return self.reader.read(partial(self._compared, now, confirm=True))

    def _readable(self, topics: Iterable[CompactedTopic]) -> list[CompactedTopic]:
        return self.reader.readable(topics, attrgetter("key"))

    def _compared(
        self, topics: Sequence[CompactedTopic], *, confirm: bool = False
    ) -> list[ComparedTopic]:
        """The results of the topics that can be read.

        :param confirm: leave aside what has changed since, and say which keys are wrong.
        """
        chosen = self._readable(topics)
        if not chosen:
            return []
        with limited(self.context, self.session):
            collapsed = latest_by_key.collapse(self._classes(chosen)).persist()
            collapsed.count()
            later = self._later(chosen)
            final = self._without_expired(collapsed, later.values())
            tails = [part for topic in chosen for part in _tails(topic, later)]
            if confirm and tails:
                tail = compare.with_lanes(self.reader.fetch(tails), self.context.by_partition)
                changed = latest_by_key.with_keys(tail).select(*latest_by_key.KEY, "side")
                final = latest_by_key.without(final, changed, new=self.new)
            rows = _by_topic(latest_by_key.count(final))
            samples = _by_topic(latest_by_key.samples(final)) if confirm else {}
            wrong = _by_topic(new_records.wrong(final, WRONG_KEPT)) if confirm else {}
            collapsed.unpersist()
        return [
            ComparedTopic(
                topic, rows.get(topic.key, ()), samples.get(topic.key, ()),
                wrong.get(topic.key, ()), later.get(topic.key),
            )
            for topic in self._readable(chosen)
        ]  # fmt: skip

    def _later(self, topics: Iterable[CompactedTopic]) -> dict[TopicKey, CompactedTopic]:
        """Some topics after they were read: what compaction or retention may have removed since."""
        flows = {topic.flow.name: topic.flow for topic in topics}
        snapshots = {
            name: FlowSnapshot(
                flow, {}, self.context.take.source(flow), self.context.take.target(flow)
            )
            for name, flow in flows.items()
        }
        return {
            topic.key: replace(now, positions=topic.positions)
            for topic, now in _seen(topics, snapshots)
        }

    def _without_expired(self, collapsed: DataFrame, topics: Iterable[CompactedTopic]) -> DataFrame:
        """:func:`frames.latest_by_key.with_retention`, where it was at work."""
        verified = {
            (row["flow"], row["topic"], row["lane"]): (row["source_first"], row["target_first"])
            for row in _plain(latest_by_key.count(collapsed.filter(F.col("class") == "verified")))
        }
        rows = [
            row
            for topic in topics
            for row in topic.retained(
                {lane: first for (*key, lane), first in verified.items() if tuple(key) == topic.key}
            )
        ]
        if not rows:
            return collapsed
        return latest_by_key.with_retention(
            collapsed, self._table(latest_by_key.RETAINED_SCHEMA, rows)
        )

    def _classes(self, topics: Sequence[CompactedTopic]) -> DataFrame:
        beyond = self._unreadable(topics)
        topics = self._readable(topics)
        records = self.reader.bucketed(self._ranges(topics), Widths(self.context.bucket_ms))
        untimed = [topic.topic for topic in topics if not topic.keeps_time]
        timed = compare.with_lanes(
            records.withColumn(
                "compared_ms", F.when(~F.col("topic").isin(*untimed), F.col("compared_ms"))
            ),
            self.context.by_partition,
        )
        places = self._table(
            latest_by_key.PLACES_SCHEMA, (row for topic in topics for row in topic.places())
        )
        if not self.new:
            keys = latest_by_key.by_key(timed, places)
            return latest_by_key.with_class(self._with_history(keys, topics), beyond)
        wrong = self._table(
            new_records.WRONG_SCHEMA, (row for topic in topics for row in topic.wrong_records())
        )
        tombstones = self._table(
            new_records.TOMBSTONES_SCHEMA,
            (
                {"flow": topic.flow.name, "topic": topic.topic,
                 "tombstones": topic.keeps_tombstones()}
                for topic in topics
            ),
        )  # fmt: skip
        keys = self._with_history(new_records.by_key(timed, wrong, places), topics)
        return new_records.with_class(keys, tombstones, beyond)

    def _with_history(self, keys: DataFrame, topics: Sequence[CompactedTopic]) -> DataFrame:
        ends = (row for topic in topics for row in topic.ends_seen())
        lost = (row for topic in topics for row in topic.lost())
        return latest_by_key.with_history(
            keys,
            self._table(latest_by_key.ENDS_SCHEMA, ends),
            self._table(latest_by_key.LOST_SCHEMA, lost),
        )

    def _ranges(self, topics: Iterable[CompactedTopic]) -> list[Range]:
        """Ranges to read of some topics."""
        return [
            part
            for topic in topics
            for part in (topic.new_ranges() if self.new else topic.ranges())
        ]

    def _table(self, schema: str, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
        return sql.table(self.session, schema, list(rows))

    def _unreadable(self, topics: Sequence[CompactedTopic]) -> DataFrame | None:
        """Keys (:data:`frames.latest_by_key.KEY`) of records that cannot be read."""
        floors = {partition_key(row): row["floor"] for topic in topics for row in topic.places()}
        starts = {
            (*part.key, part.partition): max(part.start, floors[*part.key, part.partition])
            for part in self._ranges(topics)
        }
        log = attrgetter(*PARTITION)
        records = [
            record
            for record in self.reader.unread.records
            if record.offset >= starts.get(log(record), BEHIND_ALL)
        ]
        rows = [
            {
                "flow": record.flow, "topic": record.topic, "partition": record.partition,
                "text": None if key is None else key.hex(),
            }
            for record, key in self.reader.keys(records).items()
        ]  # fmt: skip
        if not rows:
            return None
        keys = sql.table(
            self.session, "flow string, topic string, partition int, text string", rows
        ).withColumn("key", F.unhex("text"))
        return latest_by_key.with_keys(compare.with_lanes(keys, self.context.by_partition))


def _plain(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _by_topic(frame: DataFrame) -> dict[TopicKey, list[dict[str, Any]]]:
    """Topic -> its rows of a frame, without its names."""
    return {
        key: [{k: v for k, v in row.items() if k not in ("flow", "topic")} for row in of_topic]
        for key, of_topic in grouped(_plain(frame), itemgetter("flow", "topic")).items()
    }


def _tails(topic: CompactedTopic, later: Mapping[TopicKey, CompactedTopic]) -> Iterator[Range]:
    """Ranges that both sides got since: compaction may have removed what they replace."""
    now = {} if topic.key not in later else {
        (side, log.name): log for side, log in later[topic.key].sides()
    }  # fmt: skip
    for side, before in topic.sides():
        isolation = topic.flow.isolation(side)
        parts = now[side, before.name].partitions if (side, before.name) in now else {}
        for partition, log in parts.items():
            begun = before.partitions.get(partition)
            start = max(begun.end_for(isolation) if begun else 0, log.log_start)
            end = log.end_for(isolation)
            if start < end:
                yield Range(topic.flow.name, side, before.name, topic.topic, partition, start, end)


def _seen(
    topics: Iterable[CompactedTopic], snapshots: FlowSnapshots
) -> Iterator[tuple[CompactedTopic, CompactedTopic]]:
    """Topics, each with what snapshots show of it; without those that are gone."""
    for topic in topics:
        snapshot, origins = snapshots.get(topic.flow.name), [each.name for each in topic.sources]
        if snapshot and (
            now := CompactedTopic.of_snapshot(snapshot, topic.topic, origins, topic.recorded)
        ):
            # When it was observed first: nothing since then is vouched for.
            yield (
                topic,
                replace(
                    now,
                    taken_at_ms=topic.taken_at_ms,
                    last=topic.last,
                    moments=topic.moments,
                    first=topic.first or topic,
                ),
            )
