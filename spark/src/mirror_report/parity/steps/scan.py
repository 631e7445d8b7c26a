"""Scanning compacted topics: the latest record of every key, on both sides, in one job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames import align, compare, latest_by_key
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import scans
from mirror_report.parity.plan.ranges import Range
from mirror_report.parity.plan.scans import Subject
from mirror_report.parity.spark.deadline import Deadline
from mirror_report.parity.steps.read import Around

if TYPE_CHECKING:
    from mirror_report.parity.plan.cofed import Look
    from mirror_report.parity.run import Run


class Scanner:
    """The compacted topics of one run."""

    def __init__(self, run: Run, session: SparkSession, around: Around, deadline: Deadline) -> None:
        self.run = run
        self.session = session
        self.around = around
        self.deadline = deadline
        self.by_partition = [one.name for one in run.settings.flows if one.engine.keeps_partitions]

    def scan(
        self, subjects: Sequence[Subject], confirm: Callable[[set[str]], Mapping[str, Look]]
    ) -> None:
        """Compare some topics as a whole and remember what was found.

        :param confirm: gives fresh looks of some flows, in the order positions, target, source.
        """
        run = self.run
        run.progress(f"comparing {len(subjects)} compacted topic(s) by key")
        rows = self.around.read(partial(self._counted, subjects))
        differing = {
            (row["flow"], row["topic"]) for row in rows if row["class"] in latest_by_key.WRONG
        }
        again = [one for one in subjects if (one.flow.name, one.topic) in differing]
        samples: list[dict[str, Any]] = []
        if again:
            run.progress(f"{len(again)} compacted topic(s) differ: reading them with fresh offsets")
            fresh = _fresh(again, confirm({one.flow.name for one in again}))
            rows = [row for row in rows if (row["flow"], row["topic"]) not in differing]
            confirmed, samples = self.around.read(partial(self._confirmed, fresh))
            rows += confirmed
            subjects = [*(one for one in subjects if one not in again), *fresh]
        for one in self._readable(subjects):
            last = scans.last_of(run.memory.scans, one.flow.name, one.topic)
            untold = run.memory.untold.get(one.flow.name, [])
            found = scans.result(
                one, run.request.run_id, _of(one, rows), _of(one, samples), last, untold
            )
            run.memory.scans.setdefault(one.flow.name, {})[one.topic] = asdict(found)

    def _readable(self, subjects: Iterable[Subject]) -> list[Subject]:
        return [one for one in subjects if (one.flow.name, one.topic) not in self.around.full]

    def _counted(self, subjects: Sequence[Subject]) -> list[dict[str, Any]]:
        """Numbers of topics."""
        with self.deadline.step(self.session):
            judged = self._judged(self._readable(subjects))
            return [
                row.asDict()
                for row in latest_by_key.count(latest_by_key.collapse(judged)).collect()
            ]

    def _confirmed(
        self, subjects: Sequence[Subject]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Numbers and samples of topics that differ; what changes meanwhile is in flight."""
        with self.deadline.step(self.session):
            return self._looked_at(self._readable(subjects))

    def _looked_at(
        self, subjects: Sequence[Subject]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        if not subjects:
            return [], []
        collapsed = latest_by_key.collapse(self._judged(subjects)).persist()
        collapsed.count()
        newer = self._newer(subjects)
        final = collapsed
        if newer:
            tail = compare.with_lanes(self.around.fetch(newer), self.by_partition)
            final = latest_by_key.without(
                collapsed, latest_by_key.with_keys(tail).select(*latest_by_key.KEY)
            )
        rows = [row.asDict() for row in latest_by_key.count(final).collect()]
        samples = [row.asDict() for row in latest_by_key.samples(final).collect()]
        collapsed.unpersist()
        return rows, samples

    def _newer(self, subjects: Sequence[Subject]) -> list[Range]:
        """What the sources got since: compaction may have removed what it replaces."""
        found = []
        for flow in {one.flow.name: one.flow for one in subjects}.values():
            now = self.run.request.take.source(flow)
            for one in subjects:
                for before in one.sources if one.flow is flow else ():
                    topic = now.topics.get(before.name)
                    for partition, log in (topic.partitions if topic else {}).items():
                        begun = before.partitions.get(partition)
                        start = begun.end_for(flow.isolation("source")) if begun else log.log_start
                        end = log.end_for(flow.isolation("source"))
                        if max(start, log.log_start) < end:
                            found.append(
                                Range(flow.name, "source", before.name, one.topic, partition,
                                      max(start, log.log_start), end)
                            )  # fmt: skip
        return found

    def _judged(self, subjects: Sequence[Subject]) -> DataFrame:
        beyond = self._unreadable(subjects)
        subjects = self._readable(subjects)
        wanted = [each for one in subjects for each in one.ranges()]
        placed = align.place(self.around.fetch(wanted), self.run.bucket_ms)
        untimed = [one.topic for one in subjects if not one.keeps_time]
        timed = placed.withColumn(
            "compared_ms", F.when(~F.col("topic").isin(*untimed), F.col("compared_ms"))
        )
        keys = latest_by_key.by_key(
            compare.with_lanes(timed, self.by_partition),
            table(self.session, latest_by_key.PLACES_SCHEMA,
                  [row for one in subjects for row in one.places()]),
        )  # fmt: skip
        expiry = table(
            self.session, latest_by_key.EXPIRY_SCHEMA, [one.expiry() for one in subjects]
        )
        return latest_by_key.judge(keys, expiry, beyond)

    def _unreadable(self, subjects: Sequence[Subject]) -> DataFrame | None:
        """Keys (:data:`frames.latest_by_key.KEY`) of records that cannot be read."""
        counting = {
            (one.flow.name, one.topic, row["side"], row["origin"], row["partition"]): row["floor"]
            for one in subjects
            for row in one.places()
        }
        some = [
            one
            for one in self.around.known
            if one.offset
            >= counting.get((one.flow, one.topic, one.side, one.origin, one.partition), 2**62)
        ]
        rows = [
            {
                "flow": one.flow, "topic": one.topic, "partition": one.partition,
                "text": None if key is None else key.hex(),
            }
            for one, key in self.around.keys(some).items()
        ]  # fmt: skip
        if not rows:
            return None
        keys = table(
            self.session, "flow string, topic string, partition int, text string", rows
        ).withColumn("key", F.unhex("text"))
        return latest_by_key.with_keys(compare.with_lanes(keys, self.by_partition))


def _fresh(subjects: Iterable[Subject], looks: Mapping[str, Look]) -> list[Subject]:
    """The same topics as fresh looks show them; without those that are gone."""
    found = []
    for one in subjects:
        look = looks.get(one.flow.name)
        if look is None:
            continue
        origins = [each.name for each in one.sources]
        now = Subject.seen(one.flow, one.topic, origins, look.source, look.positions, look.target,
                           one.recorded)  # fmt: skip
        if now is not None:
            # When it was looked at first: nothing since then is vouched for.
            found.append(replace(now, taken_at_ms=one.taken_at_ms))
    return found


def _of(subject: Subject, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        one for one in rows if (one["flow"], one["topic"]) == (subject.flow.name, subject.topic)
    ]
