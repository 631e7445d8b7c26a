"""Reading what is new, piece by piece; each piece is remembered as soon as it is digested."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config.settings import Settings
from mirror_report.kafka.records import fetched_at
from mirror_report.model.errors import ReportError
from mirror_report.parity.frames import align, digest
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import offset_syncs, ranges, unreadable
from mirror_report.parity.plan.ranges import Range
from mirror_report.parity.spark import source
from mirror_report.parity.spark.deadline import READING_SHARE, Deadline, OutOfTimeError
from mirror_report.parity.spark.errors import MALFORMED
from mirror_report.parity.spark.rows import Shelf
from mirror_report.parity.state.manifest import Unreadable

if TYPE_CHECKING:
    from mirror_report.parity.run import Run

CHUNK_BYTES = 1024**3
T = TypeVar("T")


def fetch(session: SparkSession, settings: Settings, wanted: Iterable[Range]) -> DataFrame:
    """All records of some ranges, whatever the flow and side.

    :returns: :data:`frames.digest.RECORD_COLUMNS`.
    """
    frames = []
    for group in ranges.join(wanted):
        via = ranges.feeder(group[0].flow, group[0].origin)[0]
        flow = settings.flow(via)
        alias = flow.source if group[0].side == "source" else flow.target
        connect = source.connection(
            settings.spark, settings.clusters[alias], settings.credentials.directory, group
        )
        connect["kafka.isolation.level"] = flow.isolation(group[0].side)
        named = [replace(one, origin=ranges.feeder(one.flow, one.origin)[1]) for one in group]
        rows = source.read(session, named, connect)
        if via != group[0].flow:
            rows = rows.withColumn("origin", F.concat(F.lit(f"{via}/"), F.col("origin")))
        frames.append(rows)
    if not frames:
        frames.append(session.createDataFrame([], source.RECORD_SCHEMA))
    return digest.union(frames)


class Around:
    """Reads that leave out what Spark cannot read.

    :param known: unreadable records; those that are met are added.
    :param topic_id: of the topic a range is in.
    :param give_up: told of topics with too many, and why nothing is said of them.
    """

    def __init__(
        self,
        settings: Settings,
        session: SparkSession,
        known: list[Unreadable],
        progress: Callable[[str], None],
        topic_id: Callable[[Range], str] = lambda _: "",
        give_up: Callable[[Mapping[unreadable.Topic, str]], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.session = session
        self.known = known
        self.full = unreadable.full(known)
        self._progress = progress
        self._topic_id = topic_id
        self._give_up = give_up
        self._asked: list[Range] = []
        self._keys: dict[Unreadable, bytes | None] = {}

    def fetch(self, wanted: Iterable[Range]) -> DataFrame:
        """:func:`fetch` of what can be read, without topics that are :attr:`full`."""
        chosen = [one for one in wanted if (one.flow, one.topic) not in self.full]
        self._asked += chosen
        return fetch(self.session, self.settings, unreadable.spared(chosen, self.known))

    def read(self, action: Callable[[], T]) -> T:
        """What an action returns, done again for as long as it meets what cannot be read.

        Each time it meets at least one such record, and of each topic no more than
        :data:`plan.unreadable.MOST` and one.

        :param action: calls :meth:`fetch` and lets Spark work; what it returns says nothing of
            topics that are :attr:`full` by then.
        """
        while True:
            self._asked = []
            try:
                return action()
            except (PySparkException, Py4JError) as error:
                met = self._met(str(error))
                if not met:
                    raise
            self.known += met
            self._progress(
                f"reading around {len(met)} record(s) that Spark cannot read, "
                f"{unreadable.first_of(met)}"
            )
            full = self.full | unreadable.full(self.known)
            if full.keys() != self.full.keys():
                self.full = full
                self._give_up(full)

    def keys(self, some: Collection[Unreadable]) -> dict[Unreadable, bytes | None]:
        """Keys of unreadable records; one whose place is empty by now is forgotten.

        A topic is given up if such a key cannot be read by other means either.
        """
        for one in some:
            if one in self._keys:
                continue
            try:
                records = self._fetched(one, one.offset)
            except ReportError as error:
                self.full |= {(one.flow, one.topic): f"{unreadable.reason([one])}; {error}"}
                self._give_up(self.full)
                continue
            if records and records[0].offset == one.offset:
                self._keys[one] = records[0].key
            elif records:
                self.known.remove(one)
        return {one: self._keys[one] for one in some if one in self._keys}

    def _met(self, text: str) -> list[Unreadable]:
        """What an error of Spark's is about, and what follows it that cannot be read either."""
        said = MALFORMED.search(text)
        if said is None:
            return []
        name, partition, offset, timestamp = said[1], int(said[2]), int(said[3]), int(said[4])
        logs = {
            (one.flow, one.side, one.origin): one
            for one in self._asked
            if (ranges.feeder(one.flow, one.origin)[1], one.partition) == (name, partition)
            and one.start <= offset < one.end
        }
        # Several clusters may have a topic of one name, and Spark does not say which it has read.
        chosen = [one for one in logs.values() if len(logs) == 1 or self._stumbles(one, offset)]
        found = {}
        for one in chosen:
            met = {offset: timestamp} | self._following(one, offset)
            for at in sorted(met)[: unreadable.MOST + 1]:
                found[one.flow, one.side, one.origin, at] = Unreadable(
                    one.flow, one.side, one.topic, one.origin, partition, at, met[at],
                    self._topic_id(one),
                )  # fmt: skip
        return [one for one in found.values() if one not in self.known]

    def _stumbles(self, one: Range, offset: int) -> bool:
        """Whether the record at an offset of a range is one that Spark cannot read."""
        alone = replace(one, start=offset, end=offset + 1)
        try:
            fetch(self.session, self.settings, [alone]).select("offset").collect()
        except (PySparkException, Py4JError) as error:
            if MALFORMED.search(str(error)) is None:
                raise
            return True
        return False

    def _following(self, one: Range, offset: int) -> dict[int, int]:
        """Timestamps that do not fit, by offset, from an offset of a range on.

        As far as one fetch tells, or none: so a producer that writes many of them costs few reads.
        """
        with contextlib.suppress(ReportError):
            return {
                each.offset: unreadable.timestamp(each.timestamp)
                for each in self._fetched(one, offset)
                if offset <= each.offset < one.end and not unreadable.fits(each.timestamp)
            }
        return {}

    def _fetched(self, one: Range | Unreadable, offset: int) -> list[Any]:
        via, name = ranges.feeder(one.flow, one.origin)
        flow = self.settings.flow(via)
        cluster = self.settings.clusters[flow.source if one.side == "source" else flow.target]
        return fetched_at(
            cluster, self.settings.credentials, (name, one.partition), offset,
            flow.isolation(one.side),
        )  # fmt: skip


class Reader:
    """Records of both clusters, for one run."""

    def __init__(self, run: Run, session: SparkSession, shelf: Shelf, deadline: Deadline) -> None:
        self.run = run
        self.deadline = deadline
        self.session = session
        self.shelf = shelf
        self.around = Around(
            run.settings, session, run.memory.unreadable, run.progress, run.topic_id,
            run.leave_unknown,
        )  # fmt: skip

    def records(self, wanted: Iterable[Range]) -> DataFrame:
        """All records of some ranges with their buckets, whatever the flow and side."""
        wanted = list(wanted)
        rows = offset_syncs.spans(self.run, wanted)
        spans = table(self.session, align.SPANS_SCHEMA, rows) if rows else None
        return align.place(self.around.fetch(wanted), self.run.bucket_ms, spans)

    def read(self, wanted: list[Range]) -> None:
        """Digest what is new, piece by piece; each piece is remembered when it is done."""
        run = self.run
        total = sum(one.records for one in wanted)
        done = 0
        pieces = ranges.chunks(wanted, CHUNK_BYTES)
        lost: set[unreadable.Topic] = set()
        for number, planned in enumerate(pieces):
            piece = _without(planned, lost)
            if number and self.deadline.over(READING_SHARE):
                self._leave(pieces[number:])
                break
            run.progress(f"reading {done} of {total} records")
            name = f"digest-{number}"
            known_as = ""
            try:
                known_as = self.around.read(partial(self._step, piece, name))
            except OutOfTimeError:
                self._leave(pieces[number:])
                break
            except (PySparkException, Py4JError):
                vanished = self._vanished(piece)
                if not vanished:
                    raise
                lost |= vanished
                piece = _without(piece, lost)
                if piece:
                    known_as = self.around.read(partial(self._write, piece, name))
            lost |= self.around.full.keys()
            piece = _without(piece, lost)
            if not piece:
                continue
            run.spend(piece)
            run.memory.digests.append(known_as)
            run.remember_read(piece)
            run.memory.open_work = True
            run.commit()
            done += sum(one.records for one in piece)
        run.progress(f"read {done} of {total} records")

    def _leave(self, pieces: list[list[Range]]) -> None:
        run = self.run
        left = [one for rest in pieces for one in rest]
        run.backlog = [one for group in ranges.join([*left, *run.backlog]) for one in group]
        run.progress(f"deadline: {sum(one.records for one in left)} records wait for the next run")

    def _step(self, piece: list[Range], name: str) -> str:
        with self.deadline.step(self.session):
            return self._write(piece, name)

    def _write(self, piece: list[Range], name: str) -> str:
        return self.shelf.write(digest.digest(self.records(piece)).coalesce(1), name)

    def _vanished(self, wanted: list[Range]) -> set[tuple[str, str]]:
        """Topics that changed under the reader: they are unknown in this run, others go on."""
        found: set[tuple[str, str]] = set()
        for look in self.run.looks:
            now = {
                "source": self.run.request.take.source(look.flow),
                "target": self.run.request.take.target(look.flow),
            }
            for one in wanted:
                if ranges.feeder(one.flow, one.origin)[0] != look.flow.name:
                    continue
                topic = now[one.side].topics.get(ranges.feeder(one.flow, one.origin)[1])
                known = self.run.memory.sides[one.flow, one.side, one.origin].topic_id
                log = topic.partitions.get(one.partition) if topic else None
                if (
                    topic is None
                    or log is None
                    or topic.topic_id != known
                    or log.log_start > one.start
                    or log.end < one.end
                ):
                    found.add((one.flow, one.topic))
        self.run.leave_unknown(dict.fromkeys(found, "it changed or vanished while it was read"))
        return found


def _without(wanted: Iterable[Range], topics: Collection[unreadable.Topic]) -> list[Range]:
    return [one for one in wanted if (one.flow, one.topic) not in topics]
