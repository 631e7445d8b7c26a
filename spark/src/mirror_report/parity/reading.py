"""Reading what is new, piece by piece; each piece is remembered as soon as it is digested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config import Settings
from mirror_report.parity import aligning, alignment, digest, ranges, source
from mirror_report.parity.deadline import READING_SHARE, Deadline, OutOfTimeError
from mirror_report.parity.ranges import Range
from mirror_report.parity.session import table
from mirror_report.parity.shelf import Shelf

if TYPE_CHECKING:
    from mirror_report.parity.engine import Run

CHUNK_BYTES = 1024**3


def fetch(session: SparkSession, settings: Settings, wanted: Iterable[Range]) -> DataFrame:
    """All records of some ranges, whatever the flow and side.

    :returns: :data:`mirror_report.parity.digest.RECORD_COLUMNS`.
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


class Reader:
    """Records of both clusters, for one run."""

    def __init__(self, run: Run, session: SparkSession, shelf: Shelf, deadline: Deadline) -> None:
        self.run = run
        self.deadline = deadline
        self.session = session
        self.shelf = shelf

    def records(self, wanted: Iterable[Range]) -> DataFrame:
        """All records of some ranges with their buckets, whatever the flow and side."""
        wanted = list(wanted)
        rows = aligning.spans(self.run, wanted)
        spans = table(self.session, alignment.SPANS_SCHEMA, rows) if rows else None
        fetched = fetch(self.session, self.run.settings, wanted)
        return alignment.place(fetched, self.run.bucket_ms, spans)

    def read(self, wanted: list[Range]) -> None:
        """Digest what is new, piece by piece; each piece is remembered when it is done."""
        run = self.run
        total = sum(one.records for one in wanted)
        done = 0
        pieces = ranges.chunks(wanted, CHUNK_BYTES)
        lost: set[tuple[str, str]] = set()
        for number, planned in enumerate(pieces):
            piece = [one for one in planned if (one.flow, one.topic) not in lost]
            if number and self.deadline.over(READING_SHARE):
                self._leave(pieces[number:])
                break
            run.progress(f"reading {done} of {total} records")
            name = f"digest-{number}"
            known_as = ""
            try:
                with self.deadline.step(self.session):
                    known_as = self.shelf.write(self._increment(piece), name)
            except OutOfTimeError:
                self._leave(pieces[number:])
                break
            except (PySparkException, Py4JError):
                vanished = self._vanished(piece)
                if not vanished:
                    raise
                lost |= vanished
                piece = [one for one in piece if (one.flow, one.topic) not in lost]
                if piece:
                    known_as = self.shelf.write(self._increment(piece), name)
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

    def _increment(self, piece: list[Range]) -> DataFrame:
        return digest.digest(self.records(piece)).coalesce(1)

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
        for look in self.run.looks:
            look.plan.topics = [
                replace(one, unknown="it changed or vanished while it was read")
                if (one.flow, one.topic) in found
                else one
                for one in look.plan.topics
            ]
        return found
