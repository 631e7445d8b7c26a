"""Reading again, a little every hour, what earlier runs verified."""

from __future__ import annotations

from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames import compare, digest, extents
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import ranges
from mirror_report.parity.plan.ranges import Range, feeder
from mirror_report.parity.plan.sides import record_bytes
from mirror_report.parity.spark.deadline import OutOfTimeError
from mirror_report.parity.steps.step import Step

MOST = 200
"""Buckets read again in one run."""
PAUSE_MS = 3_600_000
"""Between two times; in every run it would be the larger part of many a small one."""
CURSOR_SCHEMA = "flow string, topic string, cursor bigint"


class Scrubber(Step):
    """Buckets that agreed, read again in turn: each topic's oldest first, then the next."""

    def scrub(self, buckets: DataFrame, digests: DataFrame) -> bool:
        """Read some buckets again; what is not what it was is digested anew.

        :param buckets: :func:`frames.compare.by_bucket`.
        :param digests: those with lanes.
        :returns: whether digests have changed, so that the buckets have to be compared again.
        """
        run = self.run
        if not run.settings.budget.scrub_bytes or self.deadline.over():
            return False
        # What the first run verified it has just read.
        run.memory.scrubbed_at_ms = run.memory.scrubbed_at_ms or run.now_ms
        if run.now_ms - run.memory.scrubbed_at_ms < PAUSE_MS:
            return False
        # Where each topic has come to its end a new round begins.
        rows = self._next(buckets) or self._next(buckets)
        run.memory.scrubbed_at_ms = run.now_ms
        stored = self._stored(digests, rows)
        chosen = self._affordable(rows, stored)
        wanted = [one for bucket in chosen for one in bucket[1]]
        if not wanted:
            return False
        parts = [one for bucket in chosen for one in stored[extents.key(bucket[0])]]
        run.progress(f"reading {sum(one.records for one in wanted)} verified records again")
        try:
            fresh = self.reader.around.read(partial(self._digests, wanted, parts))
        except (OutOfTimeError, PySparkException, Py4JError):
            # What was verified stays so: a later run reads it again.
            run.progress("what was verified could not be read again")
            return False
        run.spend(wanted)
        full = self.reader.around.full
        before = {_place(one): one for one in parts if (one["flow"], one["topic"]) not in full}
        changed = [
            place for place, one in before.items()
            if any(fresh.get(place, {}).get(name) != one[name] for name in digest.COLUMNS)
        ]  # fmt: skip
        if changed:
            run.progress(f"{len(changed)} verified minutes are not what they were")
            self._replace([before[one] for one in changed],
                          [fresh[one] for one in changed if one in fresh])  # fmt: skip
        return bool(changed)

    def _next(self, buckets: DataFrame) -> list[dict[str, Any]]:
        """Whose turn it is; a topic that has come to its end begins again the next time."""
        judged = [one for one in self.standing.topic_rows() if not one["unread"]]
        cursors = table(
            self.session, CURSOR_SCHEMA,
            [
                {
                    "flow": one["flow"],
                    "topic": one["topic"],
                    "cursor": self.run.memory.scrubbed.get(one["flow"], {}).get(one["topic"],
                                                                               -(2**62)),
                }
                for one in judged
            ],
        )  # fmt: skip
        in_turn = Window.partitionBy("flow", "topic").orderBy("bucket", "lane")
        chosen = (
            buckets.filter("equal and mirrored and n_source > 0")
            .join(F.broadcast(cursors), on=["flow", "topic"], how="inner")
            .filter(F.col("bucket") > F.col("cursor"))
            .select(*compare.BUCKET, F.row_number().over(in_turn).alias("turn"))
            .orderBy("turn", "bucket", "flow", "topic")
            .limit(MOST)
        )
        rows = [row.asDict() for row in chosen.collect()]
        left = {(row["flow"], row["topic"]) for row in rows}
        for one in judged:
            if len(rows) < MOST and (one["flow"], one["topic"]) not in left:
                self.run.memory.scrubbed.get(one["flow"], {}).pop(one["topic"], None)
        return rows

    def _stored(
        self, digests: DataFrame, rows: list[dict[str, Any]]
    ) -> dict[extents.Key, list[dict[str, Any]]]:
        """Bucket -> its digest rows."""
        names = [{name: row[name] for name in compare.BUCKET} for row in rows]
        found: dict[extents.Key, list[dict[str, Any]]] = {extents.key(row): [] for row in rows}
        if not rows:
            return found
        chosen = table(self.session, compare.BUCKET_SCHEMA, names)
        wanted = digests.join(F.broadcast(chosen), on=list(compare.BUCKET), how="left_semi")
        merged = compare.with_lanes(digest.merge(wanted), self.standing.by_partition)
        for row in merged.collect():
            found[extents.key(row.asDict())].append(row.asDict())
        return found

    def _affordable(
        self, rows: list[dict[str, Any]], stored: dict[extents.Key, list[dict[str, Any]]]
    ) -> list[tuple[dict[str, Any], list[Range]]]:
        """Buckets that are still there as a whole, as many as the budget allows; cursors move."""
        found: list[tuple[dict[str, Any], list[Range]]] = []
        spent: list[Range] = []
        for row in rows:
            wanted = [self._range(one) for one in stored[extents.key(row)]]
            there = [one for one in wanted if one is not None]
            size = sum(one.bytes for one in [*spent, *there])
            if size > self.run.settings.budget.scrub_bytes and found:
                break
            if not self.run.affords([*spent, *there]):
                break
            topics = self.run.memory.scrubbed.setdefault(row["flow"], {})
            topics[row["topic"]] = row["bucket"]
            if len(there) == len(wanted):
                found.append((row, there))
                spent += there
        return found

    def _range(self, one: dict[str, Any]) -> Range | None:
        """Where a digest row was read; ``None``: not all of it is there any more."""
        via, name = feeder(one["flow"], one["origin"])
        look = next((each for each in self.run.looks if each.flow.name == via), None)
        if look is None:
            return None
        topic = (look.source if one["side"] == "source" else look.target).topics.get(name)
        known = self.run.memory.sides.get((one["flow"], one["side"], one["origin"]))
        log = topic.partitions.get(one["partition"]) if topic else None
        if topic is None or log is None or known is None or topic.topic_id != known.topic_id:
            return None
        if log.log_start > one["off_min"] or log.end <= one["off_max"]:
            return None
        return Range(
            one["flow"], one["side"], one["origin"], one["topic"], one["partition"],
            one["off_min"], one["off_max"] + 1, record_bytes(topic),
        )  # fmt: skip

    def _digests(
        self, wanted: list[Range], parts: list[dict[str, Any]]
    ) -> dict[extents.Key, dict[str, Any]]:
        joined = [one for group in ranges.join(wanted) for one in group]
        records = compare.with_lanes(self.reader.records(joined), self.standing.by_partition)
        with self.deadline.step(self.session):
            rows = digest.digest(extents.bounded(self.session, records, parts, None)).collect()
        return {_place(row.asDict()): row.asDict() for row in rows}

    def _replace(self, before: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
        """Put digests in the place of others."""
        plain = [{name: one[name] for name in digest.COLUMNS} for one in now]
        places = [{name: one[name] for name in digest.KEYS} for one in before]
        kinds = dict(one.split() for one in digest.SCHEMA.split(", "))
        schema = ", ".join(f"{name} {kinds[name]}" for name in digest.KEYS)
        kept = self.shelf.digests().join(
            F.broadcast(table(self.session, schema, places)), on=list(digest.KEYS), how="left_anti"
        )
        rows = kept.unionByName(table(self.session, digest.SCHEMA, plain))
        self.run.memory.digests = [self.shelf.write(rows.coalesce(1), "digest-scrubbed")]


def _place(row: dict[str, Any]) -> extents.Key:
    return tuple(row[name] for name in digest.KEYS)
