"""Reading again, with fresh offsets, what differs, and saying record by record what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import Finding, PartitionSnapshot, ReportError
from mirror_report.parity import compare, drill, ranges
from mirror_report.parity import plan as planning
from mirror_report.parity.ranges import Range, Side
from mirror_report.parity.reading import Reader
from mirror_report.parity.session import table
from mirror_report.parity.shelf import Shelf
from mirror_report.parity.standing import Standing

if TYPE_CHECKING:
    from mirror_report.parity.engine import Look, Run

MAX_CANDIDATES = 10_000


class Driller:
    """A closer look at the buckets that differ, in one run."""

    def __init__(self, run: Run, session: SparkSession, shelf: Shelf, reader: Reader) -> None:
        self.run = run
        self.session = session
        self.shelf = shelf
        self.reader = reader
        self.standing = Standing(run, session)

    def drill(
        self, judged: DataFrame, merged: DataFrame, old: DataFrame
    ) -> tuple[DataFrame, list[dict[str, Any]]]:
        """Results with those of this run in them, and samples of what was found."""
        run = self.run
        differing = (
            judged.filter("candidate").orderBy("settled", "bucket").limit(MAX_CANDIDATES + 1)
        )
        rows = [row.asDict() for row in differing.collect()]
        if len(rows) > MAX_CANDIDATES:
            run.left_candidates = judged.filter("candidate").count() - MAX_CANDIDATES
            rows = rows[:MAX_CANDIDATES]
        # Results of buckets that agree by now are history.
        still = judged.filter(~F.col("equal")).select(*compare.BUCKET)
        elsewhere = table(
            self.session, "flow string, topic string",
            [{"flow": one["flow"], "topic": one["topic"]} for one in self.standing.topic_rows()],
        )  # fmt: skip
        kept = old.join(still, on=list(compare.BUCKET), how="left_semi").unionByName(
            old.join(F.broadcast(elsewhere), on=["flow", "topic"], how="left_anti")
        )
        if not rows and run.memory.results is None:
            return old, []
        if not rows:
            run.memory.results = self.shelf.write(kept.coalesce(1), "results")
            return self.shelf.results(), []
        run.progress(f"{len(rows)} minutes differ: reading them again with fresh offsets")
        looks = self._sandwich({row["flow"] for row in rows})
        rows = [row for row in rows if row["flow"] in looks]
        chosen = self._chosen(rows)
        extents = (
            merged.join(F.broadcast(chosen), on=list(compare.BUCKET), how="left_semi")
            .groupBy("flow", "side", "topic", "origin", "partition")
            .agg(F.min("off_min").alias("start"), F.max("off_max").alias("last"))
            .collect()
        )
        wanted, gone = self._drill_ranges([row.asDict() for row in extents], looks)
        hidden = self._hidden(merged, chosen, gone)
        # What was seen record by record is not forgotten for what can no longer be read.
        gone_somewhere = {key[:-1] for key in hidden}
        rows = [row for row in rows if not row["settled"] or _key(row) not in gone_somewhere]
        chosen = self._chosen(rows)
        gaps = self.standing.gaps()
        candidates = table(
            self.session, drill.CANDIDATES_SCHEMA,
            [
                {
                    **drill.candidate(row),
                    **{
                        f"{side}_gap": row["bucket"]
                        <= gaps.get((row["flow"], row["topic"], side), -(2**62))
                        for side in ranges.SIDES
                    },
                    **{
                        f"{side}_gone": (*_key(row), side) in hidden
                        for side in ranges.SIDES
                    },
                }
                for row in rows
            ],
        )  # fmt: skip
        fresh = {
            name: self.standing.positions(look, look.positions) for name, look in looks.items()
        }
        if wanted:
            run.progress(f"looking at {sum(one.records for one in wanted)} records one by one")
        records = self.reader.records(wanted)
        left = drill.leftovers(
            compare.with_lanes(records, self.standing.by_partition),
            candidates,
            self.standing.position_table(fresh),
        ).persist()
        outcome = drill.outcome(left, candidates, run.request.run_id)
        samples = [row.asDict() for row in drill.samples(left).collect()]
        run.memory.results = self.shelf.write(
            kept.join(F.broadcast(chosen), on=list(compare.BUCKET), how="left_anti")
            .unionByName(outcome)
            .coalesce(1),
            "results",
        )
        left.unpersist()
        return self.shelf.results(), samples

    def _chosen(self, rows: list[dict[str, Any]]) -> DataFrame:
        return table(
            self.session, compare.BUCKET_SCHEMA,
            [{name: row[name] for name in compare.BUCKET} for row in rows],
        )  # fmt: skip

    def _sandwich(self, flows: set[str]) -> dict[str, Look]:
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

    def _drill_ranges(
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
                places: list[tuple[Side, str]] = [
                    *(("source", one) for one in topic.origins),
                    ("target", topic.topic),
                ]
                for side, origin in places:
                    logs, following = self._logs_now(look, side, origin)
                    for partition in following.keys() - logs.keys():
                        starts[topic.flow, side, origin, partition] = 2**62
                    for partition, log in logs.items():
                        key = (topic.flow, side, origin, partition)
                        end = log.end_for(look.flow.isolation(side))
                        starts[key] = log.log_start
                        begin = max(log.log_start, following.get(partition, log.log_start))
                        new = Range(topic.flow, side, origin, topic.topic, partition, begin, end)
                        wanted.append(new)
                        if key in reach:
                            first = max(log.log_start, reach[key]["start"])
                            last = min(end, reach[key]["last"] + 1)
                            wanted.append(replace(new, start=first, end=last))
        return [one for group in ranges.join(wanted) for one in group], starts

    def _logs_now(
        self, look: Look, side: Side, origin: str
    ) -> tuple[dict[int, PartitionSnapshot], dict[int, int]]:
        """Partitions of a topic now (none if it was created again), and how far each was read."""
        snapshot = (look.source if side == "source" else look.target).topics.get(origin)
        begun = self.run.memory.sides.get((look.flow.name, side, origin))
        following = begun.next if begun is not None else {}
        if snapshot is None or (begun is not None and snapshot.topic_id != begun.topic_id):
            return {}, following
        return snapshot.partitions, following

    def _hidden(
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


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in compare.BUCKET)
