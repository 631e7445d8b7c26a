"""The Spark job of a parity run: read what is new, digest, compare, look closely at what differs.

Only imported when something has to be compared: a run without news costs no JVM.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import Finding, PartitionSnapshot, Positions, ReportError
from mirror_report.parity import alignment, compare, digest, drill, source, summary
from mirror_report.parity import plan as planning
from mirror_report.parity.plan import Range
from mirror_report.parity.session import table

if TYPE_CHECKING:
    from mirror_report.parity.engine import Look, Run

CHUNK_BYTES = 1024**3
MAX_CANDIDATES = 10_000
MAX_DIGEST_DIRECTORIES = 8
SAMPLES = 20


class Job:
    """The part of a run that has a session."""

    def __init__(self, run: Run, session: SparkSession) -> None:
        self.run = run
        self.session = session
        self.flows = {one.name: one for one in run.settings.flows}
        self.by_partition = [one.name for one in run.settings.flows if one.engine == "mm2"]
        self.base = Path(run.request.run_id)

    def read(self, ranges: list[Range]) -> None:
        """Digest what is new, piece by piece; each piece is remembered when it is done."""
        run = self.run
        for look in run.looks:
            for key, side in look.plan.begin.items():
                run.memory.sides[key] = side
        total = sum(one.records for one in ranges)
        done = 0
        if run.drops:
            self._drop()
        pieces = planning.chunks(ranges, CHUNK_BYTES)
        lost: set[tuple[str, str]] = set()
        for number, planned in enumerate(pieces):
            piece = [one for one in planned if (one.flow, one.topic) not in lost]
            if number and time.monotonic() - run.started > run.request.deadline_seconds:
                left = [one for rest in pieces[number:] for one in rest]
                run.backlog = [one for group in planning.join([*left, *run.backlog])
                               for one in group]  # fmt: skip
                run.progress(f"deadline reached: {total - done} records wait for the next run")
                break
            run.progress(f"reading {done} of {total} records")
            name = str(self.base / f"digest-{number}")
            try:
                self.write(self.increment(piece), name)
            except (PySparkException, Py4JError):
                vanished = self.vanished(piece)
                if not vanished:
                    raise
                lost |= vanished
                piece = [one for one in piece if (one.flow, one.topic) not in lost]
                if piece:
                    self.write(self.increment(piece), name)
            if not piece:
                continue
            run.memory.digests.append(name)
            run.remember_read(piece)
            run.memory.open_work = True
            run.commit()
            done += sum(one.records for one in piece)
        run.progress(f"read {done} of {total} records")

    def increment(self, ranges: list[Range]) -> DataFrame:
        """Digest rows of some ranges."""
        return digest.digest(self.records(ranges)).coalesce(1)

    def vanished(self, ranges: Iterable[Range]) -> set[tuple[str, str]]:
        """Topics that changed under the reader: they are unknown in this run, others go on."""
        found: set[tuple[str, str]] = set()
        wanted = list(ranges)
        for look in self.run.looks:
            now = {
                "source": self.run.request.take.source(look.flow),
                "target": self.run.request.take.target(look.flow),
            }
            for one in wanted:
                if one.flow != look.flow.name:
                    continue
                topic = now[one.side].topics.get(one.origin)
                known = look.plan.begin[one.flow, one.side, one.origin].topic_id
                log = topic.partitions.get(one.partition) if topic else None
                if (
                    topic is None
                    or log is None
                    or topic.topic_id != known
                    or log.log_start > one.start
                    or log.end < one.end
                ):
                    found.add((one.flow, one.topic))
            look.plan.topics = [
                replace(one, unknown="it changed or vanished while it was read")
                if (one.flow, one.topic) in found
                else one
                for one in look.plan.topics
            ]
        return found

    def _drop(self) -> None:
        """Leave out digests that no longer describe what is there."""
        run = self.run
        topics = [one for look in run.looks for one in look.plan.reopened]
        flows = [one for one in run.drops if one.side is None]
        rows = self.load_digests()
        results = self.load_results()
        for drop in run.drops:
            of_drop = F.col("flow") == drop.flow
            if drop.side is not None:
                of_drop &= (F.col("side") == drop.side) & (F.col("origin") == drop.origin)
            rows = rows.filter(~of_drop)
        for flow in flows:
            results = results.filter(F.col("flow") != flow.flow)
        for one in topics:
            results = results.filter(~((F.col("flow") == one.flow) & (F.col("topic") == one.topic)))
        self.write(rows, str(self.base / "digest-kept"))
        self.write(results, str(self.base / "results-kept"))
        run.memory.digests = [str(self.base / "digest-kept")]
        run.memory.results = str(self.base / "results-kept")

    def judge(self) -> None:
        """Compare all digests, drill where they differ, and put the result in place."""
        run = self.run
        run.progress("comparing digests")
        rows = self.load_digests()
        if len(run.memory.digests) > MAX_DIGEST_DIRECTORIES:
            name = str(self.base / "digest-merged")
            self.write(digest.merge(rows).coalesce(1), name)
            run.memory.digests = [name]
            rows = self.load_digests()
        merged = compare.with_lanes(digest.merge(rows), self.by_partition)
        positions = {look.flow.name: self.positions(look, look.positions) for look in run.looks}
        buckets = compare.by_bucket(merged, self.position_table(positions)).persist()
        topics = table(self.session, compare.TOPICS_SCHEMA, self.topic_rows())
        old = self.load_results()
        judged = compare.judge(buckets, topics, old, run.request.run_id).persist()
        results, samples = self.drill(judged, merged, old)
        final = compare.judge(buckets, topics, results, run.request.run_id)
        summaries = compare.summarise(final, run.bucket_ms).collect()
        self.remember([row.asDict() for row in summaries], samples)
        run.memory.open_work = bool(run.backlog) or bool(
            sum(row["candidates"] for row in summaries)
        )
        run.remember_positions()
        run.commit()

    def drill(
        self, judged: DataFrame, merged: DataFrame, old: DataFrame
    ) -> tuple[DataFrame, list[dict[str, Any]]]:
        """Results with those of this run in them, and samples of what was found."""
        run = self.run
        differing = judged.filter("candidate").orderBy("bucket").limit(MAX_CANDIDATES + 1)
        rows = [row.asDict() for row in differing.collect()]
        if len(rows) > MAX_CANDIDATES:
            run.left_candidates = judged.filter("candidate").count() - MAX_CANDIDATES
            rows = rows[:MAX_CANDIDATES]
        # Results of buckets that agree by now are history.
        still = judged.filter(~F.col("equal")).select(*compare.BUCKET)
        elsewhere = table(
            self.session, "flow string, topic string",
            [{"flow": one["flow"], "topic": one["topic"]} for one in self.topic_rows()],
        )  # fmt: skip
        kept = old.join(still, on=list(compare.BUCKET), how="left_semi").unionByName(
            old.join(F.broadcast(elsewhere), on=["flow", "topic"], how="left_anti")
        )
        if not rows and run.memory.results is None:
            return old, []
        if not rows:
            name = str(self.base / "results")
            self.write(kept.coalesce(1), name)
            run.memory.results = name
            return self.load_results(), []
        run.progress(f"{len(rows)} minutes differ: reading them again with fresh offsets")
        looks = self.sandwich({row["flow"] for row in rows})
        rows = [row for row in rows if row["flow"] in looks]
        chosen = table(
            self.session, compare.BUCKET_SCHEMA,
            [{name: row[name] for name in compare.BUCKET} for row in rows],
        )  # fmt: skip
        extents = (
            merged.join(F.broadcast(chosen), on=list(compare.BUCKET), how="left_semi")
            .groupBy("flow", "side", "topic", "origin", "partition")
            .agg(F.min("off_min").alias("start"), F.max("off_max").alias("last"))
            .collect()
        )
        ranges, gone = self.drill_ranges([row.asDict() for row in extents], looks)
        hidden = self.hidden(merged, chosen, gone)
        gaps = self.gaps()
        candidates = table(
            self.session, drill.CANDIDATES_SCHEMA,
            [
                {
                    **{
                        name: row[name]
                        for name in (*compare.BUCKET, "pair", "n_source", "n_target")
                    },
                    "known_duplicate": row["duplicate"],
                    "known_extra": row["extra"],
                    **{
                        f"{side}_gap": row["bucket"]
                        <= gaps.get((row["flow"], row["topic"], side), -(2**62))
                        for side in planning.SIDES
                    },
                    **{
                        f"{side}_gone": (*(row[name] for name in compare.BUCKET), side) in hidden
                        for side in planning.SIDES
                    },
                }
                for row in rows
            ],
        )  # fmt: skip
        fresh = {name: self.positions(look, look.positions) for name, look in looks.items()}
        if ranges:
            run.progress(f"looking at {sum(one.records for one in ranges)} records one by one")
            records = self.records(ranges)
        else:
            records = self.no_records()
        left = drill.leftovers(
            compare.with_lanes(records, self.by_partition),
            candidates,
            self.position_table(fresh),
        ).persist()
        outcome = drill.outcome(left, candidates, run.request.run_id)
        samples = [row.asDict() for row in drill.samples(left).collect()]
        name = str(self.base / "results")
        self.write(
            kept.join(F.broadcast(chosen), on=list(compare.BUCKET), how="left_anti")
            .unionByName(outcome)
            .coalesce(1),
            name,
        )
        left.unpersist()
        run.memory.results = name
        return self.load_results(), samples

    def sandwich(self, flows: set[str]) -> dict[str, Look]:
        """Fresh looks: positions, then target, then source. A flow that fails is left out."""
        run = self.run
        found = {}
        for look in run.looks:
            if look.flow.name not in flows:
                continue
            try:
                positions = run.request.take.positions(look.flow)
                on_target = run.request.take.target(look.flow)
                on_source = run.request.take.source(look.flow)
            except ReportError as error:
                run.findings.append(
                    Finding(
                        "unknown", "parity_unavailable", look.flow.name, None, None, None,
                        f"differences of flow {look.flow.name} were not confirmed: {error}",
                        "mirror-report run again",
                    )
                )  # fmt: skip
                continue
            positions = planning.of_present_topics(positions, on_source)
            found[look.flow.name] = replace(
                look, positions=positions, target=on_target, source=on_source
            )
        return found

    def drill_ranges(
        self, extents: list[dict[str, Any]], looks: Mapping[str, Look]
    ) -> tuple[list[Range], dict[tuple[str, str, str, int], int]]:
        """What covers the differing buckets, and what is new since the digests.

        :returns: ranges, and (flow, side, origin, partition) -> first offset still there.
        """
        reach = {
            (one["flow"], one["side"], one["origin"], one["partition"]): one for one in extents
        }
        touched = {(one["flow"], one["topic"]) for one in extents}
        wanted: list[Range] = []
        starts: dict[tuple[str, str, str, int], int] = {}
        for look in looks.values():
            for topic in look.plan.topics:
                if (topic.flow, topic.topic) not in touched:
                    continue
                places: list[tuple[planning.Side, str]] = [
                    *(("source", one) for one in topic.origins),
                    ("target", topic.topic),
                ]
                for side, origin in places:
                    logs, following = self.logs_now(look, side, origin)
                    for partition in following.keys() - logs.keys():
                        starts[topic.flow, side, origin, partition] = 2**62
                    for partition, log in logs.items():
                        key = (topic.flow, side, origin, partition)
                        end = log.end
                        starts[key] = log.log_start
                        begin = max(log.log_start, following.get(partition, log.log_start))
                        new = Range(topic.flow, side, origin, topic.topic, partition, begin, end)
                        wanted.append(new)
                        if key in reach:
                            first = max(log.log_start, reach[key]["start"])
                            last = min(end, reach[key]["last"] + 1)
                            wanted.append(replace(new, start=first, end=last))
        return [one for group in planning.join(wanted) for one in group], starts

    def logs_now(
        self, look: Look, side: planning.Side, origin: str
    ) -> tuple[dict[int, PartitionSnapshot], dict[int, int]]:
        """Partitions of a topic now (none if it was created again), and how far each was read."""
        snapshot = (look.source if side == "source" else look.target).topics.get(origin)
        begun = self.run.memory.sides.get((look.flow.name, side, origin))
        following = begun.next if begun is not None else {}
        if snapshot is None or (begun is not None and snapshot.topic_id != begun.topic_id):
            return {}, following
        return snapshot.partitions, following

    def hidden(
        self,
        merged: DataFrame,
        chosen: DataFrame,
        starts: Mapping[tuple[str, str, str, int], int],
    ) -> set[tuple[Any, ...]]:
        """Differing buckets of which digested records are gone: the bucket's key and the side."""
        logs = table(
            self.session,
            "flow string, side string, origin string, partition int, log_start bigint",
            [
                dict(zip(("flow", "side", "origin", "partition", "log_start"),
                         (*key, start), strict=True))
                for key, start in starts.items()
            ],
        )  # fmt: skip
        gone = (
            merged.join(F.broadcast(chosen), on=list(compare.BUCKET), how="left_semi")
            .join(F.broadcast(logs), on=["flow", "side", "origin", "partition"], how="inner")
            .filter(F.col("off_min") < F.col("log_start"))
            .groupBy(*compare.BUCKET, "side")
            .count()
        )
        return {tuple(row[name] for name in (*compare.BUCKET, "side")) for row in gone.collect()}

    # -- tables --------------------------------------------------------------------------------

    def records(self, ranges: Iterable[Range]) -> DataFrame:
        """All records of some ranges with their buckets, whatever the flow and side."""
        frames = []
        for group in planning.join(ranges):
            flow = self.flows[group[0].flow]
            alias = flow.source if group[0].side == "source" else flow.target
            settings = self.run.settings
            connect = source.connection(
                settings.spark, settings.clusters[alias], settings.credentials.directory, group
            )
            frames.append(source.read(self.session, group, connect))
        return alignment.place(digest.union(frames), self.run.bucket_ms)

    def no_records(self) -> DataFrame:
        """An empty frame of records."""
        none = self.session.createDataFrame([], source.RECORD_SCHEMA)
        return alignment.place(none, self.run.bucket_ms)

    def positions(self, look: Look, taken: Positions) -> list[dict[str, Any]]:
        """Rows of one flow; without a commit, mirroring begins where the report's reading did."""
        rows = []
        for (flow, side, origin), begun in self.run.memory.sides.items():
            if (flow, side) != (look.flow.name, "source"):
                continue
            committed = taken.get(origin, {})
            rows += [
                {
                    "flow": flow,
                    "origin": origin,
                    "partition": partition,
                    "position": committed.get(partition, first),
                }
                for partition, first in begun.first.items()
            ]
        return rows

    def position_table(self, rows: Mapping[str, list[dict[str, Any]]]) -> DataFrame:
        """Positions of all flows as a small table."""
        return table(
            self.session, compare.POSITIONS_SCHEMA, [row for some in rows.values() for row in some]
        )

    def topic_rows(self) -> list[dict[str, Any]]:
        """Topics whose content is compared in this run."""
        run = self.run
        unread = {(one.flow, one.topic) for one in run.backlog}
        gaps = self.gaps()
        return [
            {
                "flow": one.flow,
                "topic": one.topic,
                "unread": (one.flow, one.topic) in unread,
                "skip_through": one.skip_through_ms,
                "source_gap": gaps.get((one.flow, one.topic, "source")),
                "target_gap": gaps.get((one.flow, one.topic, "target")),
            }
            for look in run.looks
            for one in look.plan.topics
            if one.judged
        ]

    def gaps(self) -> dict[tuple[str, str, str], int]:
        """(flow, topic, side) -> until when records expired before they were read."""
        found: dict[tuple[str, str, str], int] = {}
        for gap in self.run.memory.gaps:
            key = (gap.flow, gap.topic, gap.side)
            found[key] = max(gap.until_ms, found.get(key, gap.until_ms))
        return found

    def write(self, rows: DataFrame, name: str) -> None:
        """Write rows below the parity directory and make them durable."""
        path = self.run.directory / name
        rows.write.mode("overwrite").parquet(str(path))
        for one in path.iterdir():
            descriptor = os.open(one, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def load_digests(self) -> DataFrame:
        """All digest rows; those of one key add up."""
        paths = [str(self.run.directory / one) for one in self.run.memory.digests]
        if not paths:
            return table(self.session, digest.SCHEMA, [])
        return self.session.read.schema(digest.SCHEMA).parquet(*paths)

    def load_results(self) -> DataFrame:
        """All drill results."""
        if self.run.memory.results is None:
            return table(self.session, compare.RESULTS_SCHEMA, [])
        path = str(self.run.directory / self.run.memory.results)
        return self.session.read.schema(compare.RESULTS_SCHEMA).parquet(path)

    # -- remembering ---------------------------------------------------------------------------

    def remember(self, rows: list[dict[str, Any]], samples: list[dict[str, Any]]) -> None:
        """Numbers of each topic, now and as the next run may repeat them."""
        run = self.run
        fresh: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
        for one in samples:
            by_class = fresh.setdefault((one.pop("flow"), one.pop("topic")), {})
            by_class.setdefault(one.pop("class"), []).append(one)
        for look in run.looks:
            kept = {one.topic for one in look.plan.topics}
            known = run.memory.summaries.get(look.flow.name, {})
            run.memory.summaries[look.flow.name] = {
                topic: one for topic, one in known.items() if topic in kept
            }
        for row in rows:
            flow, topic = row.pop("flow"), row.pop("topic")
            known = run.memory.summaries[flow].get(topic, {}).get("samples", {})
            merged = {}
            for name in ("missing", "corrupt_value", "duplicate", "extra"):
                old = known.get(name, []) if name in ("missing", "corrupt_value") else []
                both = [*fresh.get((flow, topic), {}).get(name, []), *old]
                if row[name] and both:
                    merged[name] = both[:SAMPLES]
            run.memory.summaries[flow][topic] = {
                "run_id": run.request.run_id,
                "now": row,
                "next": summary.as_next(row),
                "samples": merged,
                "buckets_in_flight": row["buckets_in_flight"],
            }
