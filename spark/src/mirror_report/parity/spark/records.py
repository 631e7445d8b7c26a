"""Records of both clusters, read in time, without those that Spark cannot read."""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config import Settings
from mirror_report.kafka import guarded
from mirror_report.kafka.connection import ClusterError
from mirror_report.kafka.records import FETCHED_SECONDS, fetched_at
from mirror_report.model import ReportError
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, digest, sql
from mirror_report.parity.plan import Range, ranges, unreadable
from mirror_report.parity.spark import source
from mirror_report.parity.spark.errors import MALFORMED
from mirror_report.parity.state import TopicKey, Unreadable, Widths, fed_by

T = TypeVar("T")

# A job that was begun in time may go on for so long.
GRACE_SECONDS = 60.0


class OutOfTimeError(Exception):
    """A job was ended because the run's time was over; nothing of it counts."""


@contextlib.contextmanager
def limited(context: RunContext, session: SparkSession) -> Iterator[None]:
    """One job of Spark's, ended if it lasts past the grace.

    :raises OutOfTimeError: it was.
    """
    spark = session.sparkContext
    group = f"mirror-report-{context.run_id}-{time.monotonic_ns()}"
    left = context.settings.budget.deadline_seconds + GRACE_SECONDS - context.seconds
    ended = threading.Event()

    def end() -> None:
        ended.set()
        # What Spark cannot end any more has ended by itself.
        with contextlib.suppress(Exception):
            spark.cancelJobGroup(group)

    timer = threading.Timer(max(left, 1.0), end)
    timer.daemon = True
    spark.setJobGroup(group, "a step of the report", interruptOnCancel=True)
    timer.start()
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if ended.is_set():
            raise OutOfTimeError from error
        raise
    finally:
        timer.cancel()
        spark.setLocalProperty("spark.jobGroup.id", None)


def _fetch(session: SparkSession, settings: Settings, parts: Iterable[Range]) -> DataFrame:
    """All records of some ranges, whatever the flow and side.

    :returns: :data:`frames.digest.RECORD_COLUMNS`.
    """
    frames = []
    for group in ranges.join(parts):
        first = group[0]
        via = fed_by(first.flow, first.origin)[0]
        flow = settings.flow(via)
        cluster = settings.clusters[flow.alias(first.side)]
        connect = source.connection(settings.spark, cluster, settings.credentials.directory, group)
        connect["kafka.isolation.level"] = flow.isolation(first.side)
        named = [replace(part, origin=fed_by(part.flow, part.origin)[1]) for part in group]
        rows = source.read(session, named, connect)
        if via != first.flow:
            rows = rows.withColumn("origin", F.concat(F.lit(f"{via}/"), F.col("origin")))
        frames.append(rows)
    return digest.union(frames or [session.createDataFrame([], source.RECORD_SCHEMA)])


class Reader:
    """Reads that leave out what Spark cannot read.

    :param known: unreadable records.
    :param topic_id: of the topic a range is in.
    """

    def __init__(
        self,
        settings: Settings,
        session: SparkSession,
        progress: Callable[[str], None],
        unread_records: Collection[Unreadable] = (),
        topic_id: Callable[[Range], str] = lambda _: "",
    ) -> None:
        self.settings = settings
        self.session = session
        self._progress = progress
        self._topic_id = topic_id
        self._known = list(unread_records)
        self._full = unreadable.too_many(unread_records)
        self._asked: list[Range] = []
        self._keys: dict[Unreadable, bytes | None] = {}

    @property
    def unread(self) -> unreadable.Unread:
        """Records that could not be read up to now, and topics that are unknown for it."""
        return unreadable.Unread(tuple(self._known), dict(self._full))

    def fetch(self, parts: Iterable[Range]) -> DataFrame:
        """:func:`fetch` of what can be read, without topics that are unknown."""
        chosen = [part for part in parts if part.topic_key not in self._full]
        self._asked += chosen
        return _fetch(self.session, self.settings, unreadable.spared(chosen, self._known))

    def bucketed(
        self, parts: Iterable[Range], widths: Widths, spans: Collection[Mapping[str, Any]] = ()
    ) -> DataFrame:
        """:meth:`fetch`, each record with its bucket (:func:`frames.align.place`).

        :param spans: rows of :data:`frames.align.SPANS_SCHEMA`.
        """
        cuts = sql.table(self.session, align.SPANS_SCHEMA, list(spans)) if spans else None
        return align.place(self.fetch(parts), widths, cuts)

    def readable(
        self, topics: Iterable[T], key: Callable[[Any], TopicKey] = itemgetter("flow", "topic")
    ) -> list[T]:
        """Topics, or rows of them, without topics that are unknown."""
        return [topic for topic in topics if key(topic) not in self._full]

    def read(self, action: Callable[[], T]) -> T:
        """Do an action again for as long as it meets records that cannot be read.

        Each time it meets at least one such record, and of each topic no more than
        :data:`plan.unreadable.MOST` and one.

        :param action: calls :meth:`fetch` and lets Spark work; what it returns leaves out
            topics that are unknown by then.
        """
        while True:
            self._asked = []
            try:
                return action()
            except (PySparkException, Py4JError) as error:
                met = self._met(str(error))
                if not met:
                    raise
            self._known += met
            self._progress(
                f"reading around {len(met)} record(s) that Spark cannot read, "
                f"{unreadable.first_of(met)}"
            )
            self._full |= unreadable.too_many(self._known)

    def keys(self, unread_records: Collection[Unreadable]) -> dict[Unreadable, bytes | None]:
        """Keys of unreadable records; one that is not there any more is forgotten.

        A topic is unknown if such a key cannot be read by other means either.
        """
        for record in [record for record in unread_records if record not in self._keys]:
            try:
                records = self._fetched(record, record.offset)
            except ReportError as error:
                self._full[record.flow, record.topic] = f"{unreadable.reason([record])}; {error}"
            else:
                if records and records[0].offset == record.offset:
                    self._keys[record] = records[0].key
                elif records:
                    self._known.remove(record)
        return {record: self._keys[record] for record in unread_records if record in self._keys}

    def _met(self, text: str) -> list[Unreadable]:
        """The record that an error of Spark names, and unreadable ones that follow it."""
        if (match := MALFORMED.search(text)) is None:
            return []
        name, partition, offset, timestamp = match[1], int(match[2]), int(match[3]), int(match[4])
        logs = {
            (asked.flow, asked.side, asked.origin): asked
            for asked in self._asked
            if (fed_by(asked.flow, asked.origin)[1], asked.partition) == (name, partition)
            and asked.start <= offset < asked.end
        }
        # Several clusters may have a topic of one name, and Spark does not say which it has read.
        chosen = [log for log in logs.values() if len(logs) == 1 or self._fails(log, offset)]
        places = {}
        for log in chosen:
            met = {offset: timestamp} | self._following(log, offset)
            for at in sorted(met)[: unreadable.MOST + 1]:
                places[log.flow, log.side, log.origin, at] = Unreadable(
                    log.flow, log.side, log.topic, log.origin, partition, at, met[at],
                    self._topic_id(log),
                )  # fmt: skip
        return [record for record in places.values() if record not in self._known]

    def _fails(self, log: Range, offset: int) -> bool:
        """Whether the record at an offset of a range is one that Spark cannot read."""
        alone = [replace(log, start=offset, end=offset + 1)]
        try:
            _fetch(self.session, self.settings, alone).select("offset").collect()
        except (PySparkException, Py4JError) as error:
            if MALFORMED.search(str(error)) is None:
                raise
            return True
        return False

    def _following(self, log: Range, offset: int) -> dict[int, int]:
        """Timestamps that do not fit, by offset, from an offset of a range on.

        As far as one fetch reaches, or none: a producer that writes many costs few reads.
        """
        with contextlib.suppress(ReportError):
            return {
                record.offset: unreadable.timestamp(record.timestamp)
                for record in self._fetched(log, offset)
                if offset <= record.offset < log.end and not unreadable.fits(record.timestamp)
            }
        return {}

    def _fetched(self, log: Range | Unreadable, offset: int) -> list[Any]:
        via, name = fed_by(log.flow, log.origin)
        flow = self.settings.flow(via)
        cluster = self.settings.clusters[flow.alias(log.side)]
        place, credentials = (name, log.partition), self.settings.credentials
        isolation = flow.isolation(log.side)
        read = guarded.each(
            lambda offsets: fetched_at(cluster, credentials, place, offsets[place], isolation),
            {place: offset},
            FETCHED_SECONDS,
        )
        if why := read.failed.get(place):
            raise ClusterError(f"partition {place[1]} of {name} at offset {offset}: {why}")
        return read.answers[place]
