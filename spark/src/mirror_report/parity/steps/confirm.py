"""Reading again, with fresh offsets, what differs, and saying record by record what it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model.cluster import PartitionSnapshot
from mirror_report.model.errors import ReportError
from mirror_report.model.findings import Finding
from mirror_report.parity.frames import classify, compare, digest
from mirror_report.parity.frames.extents import Key, bounded, key, part
from mirror_report.parity.frames.retention import SLACK_MS
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import offset_syncs, ranges, unreadable
from mirror_report.parity.plan import topics as planning
from mirror_report.parity.plan.ranges import Range, Side, feeder
from mirror_report.parity.plan.sides import record_bytes
from mirror_report.parity.spark.deadline import OutOfTimeError
from mirror_report.parity.steps.read import CHUNK_BYTES
from mirror_report.parity.steps.step import Step

if TYPE_CHECKING:
    from mirror_report.parity.plan.cofed import Look

MAX_CANDIDATES = 2_000
"""Buckets looked at in one run; the oldest of them first."""


class Driller(Step):
    """A closer look at the buckets that differ, in one run."""

    def drill(
        self, judged: DataFrame, digests: DataFrame, old: DataFrame
    ) -> tuple[DataFrame | None, list[dict[str, Any]]]:
        """Look closely at what differs.

        :returns: results with those of this run in them (``None``: nothing had to be looked at),
            and samples of what was found.
        :param judged: :func:`frames.compare.judge`; ``digests``: those with lanes;
            ``old``: results of earlier runs.
        """
        run = self.run
        differing = (
            judged.filter("candidate").orderBy("settled", "bucket").limit(MAX_CANDIDATES + 1)
        )
        rows = [row.asDict() for row in differing.collect()]
        if len(rows) > MAX_CANDIDATES:
            run.left_candidates = judged.filter("candidate").count() - MAX_CANDIDATES
            rows = rows[:MAX_CANDIDATES]
        kept = self._valid(judged, old)
        if not rows:
            if run.memory.results is not None:
                run.memory.results = self.shelf.write(kept.coalesce(1), "results")
            return None, []
        run.progress(f"{len(rows)} minutes differ: reading them again with fresh offsets")
        looks = self.sandwich({row["flow"] for row in rows})
        rows = sorted((row for row in rows if row["flow"] in looks), key=lambda row: row["bucket"])
        extents = self._extents(digests, rows)
        rows = self._readable(rows, extents, looks)
        done: list[dict[str, Any]] = []
        samples: list[dict[str, Any]] = []
        outcomes = [kept]
        for number, batch in enumerate(self._batches(rows, extents, looks)):
            try:
                outcome, some = self.reader.around.read(
                    partial(self._step, batch, extents, looks, f"drilled-{number}")
                )
            except OutOfTimeError:
                break
            outcomes.append(outcome)
            samples += some
            done += self._told(batch)
        run.left_candidates += len(rows) - len(done)
        outcomes[0] = kept.join(F.broadcast(self._chosen(done)), on=list(compare.BUCKET),
                                how="left_anti")  # fmt: skip
        run.memory.results = self.shelf.write(digest.union(outcomes).coalesce(1), "results")
        return self.shelf.results(), samples

    def _valid(self, judged: DataFrame, old: DataFrame) -> DataFrame:
        """Earlier results without those of buckets that agree by now: these are history."""
        still = judged.filter(~F.col("equal")).select(*compare.BUCKET)
        topics = table(
            self.session, "flow string, topic string",
            [{"flow": one["flow"], "topic": one["topic"]} for one in self.standing.topic_rows()],
        )  # fmt: skip
        return old.join(still, on=list(compare.BUCKET), how="left_semi").unionByName(
            old.join(F.broadcast(topics), on=["flow", "topic"], how="left_anti")
        )

    def _chosen(self, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
        return table(
            self.session, compare.BUCKET_SCHEMA,
            [{name: row[name] for name in compare.BUCKET} for row in rows],
        )  # fmt: skip

    def _extents(
        self, digests: DataFrame, rows: Sequence[Mapping[str, Any]]
    ) -> dict[Key, list[dict[str, Any]]]:
        """Bucket -> where its digested records lie."""
        found: dict[Key, list[dict[str, Any]]] = {key(row): [] for row in rows}
        extents = (
            digests.join(F.broadcast(self._chosen(rows)), on=list(compare.BUCKET), how="left_semi")
            .groupBy(*compare.BUCKET, "side", "origin", "partition")
            .agg(F.min("off_min").alias("off_min"), F.max("off_max").alias("off_max"))
        )
        for row in extents.collect():
            found[key(row.asDict())].append(row.asDict())
        return found

    def _readable(
        self,
        rows: Sequence[dict[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        looks: Mapping[str, Look],
    ) -> list[dict[str, Any]]:
        """All but what an earlier run saw and nobody can see again: that is not forgotten."""
        starts, _, _ = self._news({(row["flow"], row["topic"]) for row in rows}, looks)
        return [
            row
            for row in rows
            if not row["settled"]
            or all(one["off_min"] >= starts.get(part(one), -1) for one in extents[key(row)])
        ]

    def _batches(
        self,
        rows: Sequence[dict[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        looks: Mapping[str, Look],
    ) -> Iterable[list[dict[str, Any]]]:
        """Buckets to look at together, as long as time and budget last; at least one."""
        batch: list[dict[str, Any]] = []
        wanted: list[Range] = []
        begun = False
        for row in rows:
            more = self._ranges([row], extents, looks)
            if begun and not self.run.affords([*wanted, *more]):
                break
            if batch and sum(one.bytes for one in [*wanted, *more]) > CHUNK_BYTES:
                yield batch
                batch, wanted = [], []
                if self.deadline.over():
                    return
            batch.append(row)
            wanted += more
            begun = True
        if batch:
            yield batch

    def _step(
        self,
        batch: Sequence[dict[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        looks: Mapping[str, Look],
        name: str,
    ) -> tuple[DataFrame, list[dict[str, Any]]]:
        with self.deadline.step(self.session):
            return self._look(self._told(batch), extents, looks, name)

    def _told(self, batch: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Buckets without those of topics that nothing can be said of."""
        full = self.reader.around.full
        return [row for row in batch if (row["flow"], row["topic"]) not in full]

    def _look(
        self,
        rows: Sequence[dict[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        looks: Mapping[str, Look],
        name: str,
    ) -> tuple[DataFrame, list[dict[str, Any]]]:
        run = self.run
        topics = {(row["flow"], row["topic"]) for row in rows}
        starts, following, news = self._news(topics, looks)
        old = self._ranges(rows, extents, looks)
        wanted = [one for group in ranges.join([*old, *news]) for one in group]
        sought = self._sought(rows, extents, looks)
        run.spend([*wanted, *sought])
        count = sum(one.records for one in (*wanted, *sought))
        run.progress(f"looking at {count} records one by one")
        records = bounded(
            self.session, self._placed(wanted),
            [one for row in rows for one in extents[key(row)]], following,
        )  # fmt: skip
        if sought:
            records = records.unionByName(self._placed(sought))
        candidates = self._candidates(rows, extents, starts)
        fresh = {one: self.standing.positions(look, looks) for one, look in looks.items()}
        left = classify.leftovers(
            records, candidates, self.standing.position_table(fresh)
        ).persist()
        try:
            known_as = self.shelf.write(
                classify.outcome(left, candidates, run.request.run_id), name
            )
            samples = [row.asDict() for row in classify.samples(left).collect()]
        finally:
            left.unpersist()
        return self.shelf.read(known_as, compare.RESULTS_SCHEMA), samples

    def _placed(self, wanted: Sequence[Range]) -> DataFrame:
        return compare.with_lanes(self.reader.records(wanted), self.standing.by_partition)

    def _sought(
        self,
        rows: Iterable[Mapping[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        looks: Mapping[str, Look],
    ) -> list[Range]:
        """What was copied last before the baseline, where records of these buckets may be there."""
        sides = self.run.memory.sides
        topics = set()
        for row in rows:
            for one in extents[key(row)]:
                begun = sides.get((one["flow"], one["side"], one["origin"]))
                if begun and one["off_min"] < begun.untouched.get(one["partition"], 0):
                    topics.add((one["flow"], one["topic"]))
        found = []
        for flow, topic in sorted(topics):
            begun = sides.get((flow, "target", topic))
            logs, _ = self._logs_now(looks, flow, "target", topic)
            for partition, offset in (begun.sought if begun else {}).items():
                if partition in logs and begun is not None:
                    start = max(offset, logs[partition].log_start)
                    size = self._record_bytes(looks, flow, "target", topic)
                    found.append(
                        Range(flow, "target", topic, topic, partition, start,
                              begun.first[partition], size)
                    )  # fmt: skip
        return [one for one in found if one.records > 0]

    def _candidates(
        self,
        rows: Sequence[dict[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        starts: Mapping[Key, int],
    ) -> DataFrame:
        gaps = self.standing.gaps()
        beyond = unreadable.one_sided(offset_syncs.labels(self.run, self.run.memory.unreadable))
        gone = {
            (*key(one), one["side"])
            for some in extents.values()
            for one in some
            if one["off_min"] < starts.get(part(one), -1)
        }
        return table(
            self.session, classify.CANDIDATES_SCHEMA,
            [
                {
                    **classify.candidate(row),
                    **{
                        f"{side}_gap": (*key(row), side) in beyond
                        or row["bucket"]
                        <= gaps.get((row["flow"], row["topic"], side), -(2**62))
                        for side in ranges.SIDES
                    },
                    **{f"{side}_gone": (*key(row), side) in gone for side in ranges.SIDES},
                    "allowed_from_ms": self._kept_from(row),
                }
                for row in rows
            ],
        )  # fmt: skip

    def _kept_from(self, row: Mapping[str, Any]) -> int | None:
        """No record of the topic younger than this had to leave the target."""
        side = self.run.memory.sides.get((row["flow"], "target", row["topic"]))
        return None if side is None else side.kept_from_ms + SLACK_MS

    def sandwich(self, flows: set[str]) -> dict[str, Look]:
        """Fresh looks: positions, then target, then source. A flow that fails is left out.

        A flow whose topics others feed too is looked at together with these.
        """
        run = self.run
        together = {name: {name, *(one for one in run.feeders(name))} for name in flows}
        found: dict[str, Look] = {}
        failed: dict[str, ReportError] = {}
        for look in run.looks:
            if not any(look.flow.name in some for some in together.values()):
                continue
            try:
                positions = run.request.take.positions(look.flow)
                on_target = run.request.take.target(look.flow)
                on_source = run.request.take.source(look.flow)
            except ReportError as error:
                failed[look.flow.name] = error
                continue
            positions = planning.of_present_topics(positions, on_source)
            found[look.flow.name] = replace(
                look, positions=positions, target=on_target, source=on_source
            )
        for name, some in together.items():
            for other in sorted(some & failed.keys()):
                found.pop(name, None)
                run.findings.append(
                    Finding(
                        "unknown", "parity_unavailable", name, None, None, None,
                        f"differences of flow {name} were not confirmed: {failed[other]}",
                        "mirror-report run again",
                    )
                )  # fmt: skip
        return found

    def _news(
        self, touched: set[tuple[str, str]], looks: Mapping[str, Look]
    ) -> tuple[dict[Key, int], dict[Key, int], list[Range]]:
        """What the touched topics hold now.

        :returns: first offset still there, next offset to digest, both by flow, side, origin and
            partition; and ranges of what is new since the digests.
        """
        starts: dict[Key, int] = {}
        following: dict[Key, int] = {}
        news: list[Range] = []
        for flow, topic, side, origin in self._places(touched, looks):
            logs, known = self._logs_now(looks, flow, side, origin)
            isolation = self._isolation(looks, flow, side, origin)
            for partition, offset in known.items():
                following[flow, side, origin, partition] = offset
                if partition not in logs:
                    starts[flow, side, origin, partition] = 2**62
            for partition, log in logs.items():
                starts[flow, side, origin, partition] = log.log_start
                begin = max(log.log_start, known.get(partition, log.log_start))
                end = log.end_for(isolation)
                news.append(Range(flow, side, origin, topic, partition, begin, end))
        return starts, following, news

    def _ranges(
        self,
        rows: Sequence[Mapping[str, Any]],
        extents: Mapping[Key, list[dict[str, Any]]],
        looks: Mapping[str, Look],
    ) -> list[Range]:
        """What is still there of the records that the digests of some buckets stand for."""
        found = []
        for row in rows:
            for one in extents[key(row)]:
                flow, side, origin = one["flow"], one["side"], one["origin"]
                logs, _ = self._logs_now(looks, flow, side, origin)
                log = logs.get(one["partition"])
                if log is None:
                    continue
                end = log.end_for(self._isolation(looks, flow, side, origin))
                size = self._record_bytes(looks, flow, side, origin)
                found.append(
                    Range(
                        flow, side, origin, one["topic"], one["partition"],
                        max(log.log_start, one["off_min"]), min(end, one["off_max"] + 1), size,
                    )
                )  # fmt: skip
        return [one for one in found if one.records > 0]

    def _places(
        self, touched: set[tuple[str, str]], looks: Mapping[str, Look]
    ) -> Iterable[tuple[str, str, Side, str]]:
        for look in looks.values():
            for topic in look.plan.topics:
                if (topic.flow, topic.topic) in touched:
                    for origin in topic.origins:
                        yield topic.flow, topic.topic, "source", origin
                    yield topic.flow, topic.topic, "target", topic.topic

    def _logs_now(
        self, looks: Mapping[str, Look], flow: str, side: Side, origin: str
    ) -> tuple[dict[int, PartitionSnapshot], dict[int, int]]:
        """Partitions of a topic now (none if it was created again), and how far each was read."""
        via, name = feeder(flow, origin)
        look = looks[via]
        snapshot = (look.source if side == "source" else look.target).topics.get(name)
        begun = self.run.memory.sides.get((flow, side, origin))
        following = begun.next if begun is not None else {}
        if snapshot is None or (begun is not None and snapshot.topic_id != begun.topic_id):
            return {}, following
        return snapshot.partitions, following

    def _isolation(self, looks: Mapping[str, Look], flow: str, side: Side, origin: str) -> str:
        return looks[feeder(flow, origin)[0]].flow.isolation(side)

    def _record_bytes(self, looks: Mapping[str, Look], flow: str, side: Side, origin: str) -> float:
        via, name = feeder(flow, origin)
        look = looks[via]
        snapshot = (look.source if side == "source" else look.target).topics.get(name)
        return ranges.RECORD_BYTES if snapshot is None else record_bytes(snapshot)
