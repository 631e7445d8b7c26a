"""A topic at rest, proved whole: all records of both sides, whatever their timestamps.

Records are cut into buckets by their hash, so nothing has to align the sides. What differs is then
looked at as one bucket per lane, for an altered record is in another bucket than the original.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config import Settings
from mirror_report.model import CLASSES
from mirror_report.parity import alignment, compare, digest, drill
from mirror_report.parity.reading import fetch
from mirror_report.parity.session import table
from mirror_report.parity.strategies import Subject
from mirror_report.parity.summary import NEWS

BUCKETS = 256
_ALL = 0


@dataclass
class Proved:
    """What was found in one topic; without counts both sides hold the same.

    :param counts: class -> lane -> records.
    """

    source_records: int = 0
    target_records: int = 0
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def prove(
    session: SparkSession, settings: Settings, subjects: Sequence[Subject]
) -> dict[str, Proved]:
    """Compare everything some topics of one flow hold.

    :returns: topic -> what was found.
    """
    by_partition = [one.name for one in settings.flows if one.engine == "mm2"]
    untimed = [one.topic for one in subjects if not one.keeps_time]
    wanted = [one for subject in subjects for one in subject.ranges]

    def records() -> DataFrame:
        fetched = fetch(session, settings, wanted)
        placed = alignment.place_by_hash(fetched, untimed, BUCKETS)
        return compare.with_lanes(placed, by_partition)

    # At rest everything is below the committed position.
    ends = [
        {"flow": one.flow, "side": one.side, "origin": one.origin, "partition": one.partition,
         "position": one.end}
        for one in wanted
        if one.side == "source"
    ]  # fmt: skip
    positions = table(session, compare.POSITIONS_SCHEMA, ends)
    digests = compare.with_lanes(digest.digest(records()), by_partition)
    buckets = compare.by_bucket(digests, positions).persist()
    found = {one.topic: Proved() for one in subjects}
    totals = buckets.groupBy("topic").agg(
        F.sum("n_source").alias("source"), F.sum("n_target").alias("target")
    )
    for row in totals.collect():
        found[row["topic"]].source_records = row["source"]
        found[row["topic"]].target_records = row["target"]
    differing = buckets.filter(~F.col("equal"))
    lanes = differing.groupBy("flow", "topic", "lane").agg(
        F.sum("n_source").alias("n_source"),
        F.sum("n_target").alias("n_target"),
        F.bool_or("disordered").alias("disordered"),
    )
    gaps = {one.topic: one for one in subjects}
    candidates = [_candidate(row.asDict(), gaps) for row in lanes.collect()]
    if candidates:
        whole = records().join(
            F.broadcast(differing.select(*compare.BUCKET)), on=list(compare.BUCKET), how="left_semi"
        )
        chosen = table(session, drill.CANDIDATES_SCHEMA, candidates)
        left = drill.leftovers(
            whole.withColumn("bucket", F.lit(_ALL).cast("bigint")), chosen, positions
        ).persist()
        _count(found, drill.outcome(left, chosen, "proof"), drill.samples(left))
        left.unpersist()
    buckets.unpersist()
    return found


def _candidate(row: dict[str, Any], subjects: Mapping[str, Subject]) -> dict[str, Any]:
    one = subjects[row["topic"]]
    return {
        **row, "bucket": _ALL, "pair": "",
        "source_gap": one.source_gap, "target_gap": one.target_gap,
        "source_gone": False, "target_gone": False, **{f"known_{name}": 0 for name in NEWS},
    }  # fmt: skip


def _count(found: Mapping[str, Proved], outcome: DataFrame, samples: DataFrame) -> None:
    sums = outcome.groupBy("topic", "lane").agg(*(F.sum(name).alias(name) for name in CLASSES))
    for row in sums.collect():
        for name in CLASSES:
            if row[name]:
                found[row["topic"]].counts.setdefault(name, {})[row["lane"]] = row[name]
    for row in samples.collect():
        plain = row.asDict()
        del plain["flow"]
        of_topic = found[plain.pop("topic")].samples
        of_topic.setdefault(plain.pop("class"), []).append(plain)
