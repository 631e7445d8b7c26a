"""A topic at rest, proved whole: all records of both sides, whatever their timestamps.

Records are cut into buckets by their hash, so nothing has to align the sides. What differs is then
looked at as one bucket per lane, for an altered record is in another bucket than the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config.settings import Settings
from mirror_report.model.content import CLASSES
from mirror_report.parity.frames import align, classify, compare, digest
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan import unreadable
from mirror_report.parity.plan.strategies import Subject
from mirror_report.parity.results.summaries import NEWS, WHOLE
from mirror_report.parity.state.manifest import Unreadable
from mirror_report.parity.steps.read import Around

BUCKETS = 256
_ALL = 0


@dataclass
class Proved:
    """What was found in one topic; without counts both sides hold the same.

    :param counts: class -> lane -> records.
    :param beyond: what cannot be read.
    :param unknown: why nothing can be said of it.
    """

    source_records: int = 0
    target_records: int = 0
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    beyond: list[Unreadable] = field(default_factory=list)
    unknown: str | None = None


def prove(
    session: SparkSession,
    settings: Settings,
    subjects: Sequence[Subject],
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Proved]:
    """Compare everything some topics of one flow hold.

    :param progress: told of records that cannot be read.
    :returns: topic -> what was found.
    """
    around = Around(settings, session, [], progress)
    found = around.read(partial(_prove, around, subjects))
    for one in subjects:
        found[one.topic].unknown = around.full.get((one.flow, one.topic))
        _add(found[one.topic], one, around)
    return found


def _add(proved: Proved, one: Subject, around: Around) -> None:
    """Count what cannot be read of a topic."""
    proved.beyond = [each for each in around.known if each.topic == one.topic]
    if not proved.beyond:
        return
    there = unreadable.by_side(proved.beyond)
    proved.source_records += there["source"]
    proved.target_records += there["target"]
    proved.samples["unverifiable"] = [
        asdict(each) for each in unreadable.samples(proved.beyond)[: classify.SAMPLES]
    ]
    keeps = around.settings.flow(one.flow).engine.keeps_partitions
    lanes = proved.counts.setdefault("unverifiable", {})
    for name, count in unreadable.by_lane(proved.beyond, keeps_partitions=keeps).items():
        lane = compare.WHOLE_TOPIC if name == WHOLE else int(name)
        known = lanes.get(lane, 0)
        # Where timestamps are not kept, copies of these are among what is known.
        lanes[lane] = known + count if one.keeps_time else max(known, count)


def _prove(around: Around, subjects: Sequence[Subject]) -> dict[str, Proved]:
    session, settings = around.session, around.settings
    by_partition = [one.name for one in settings.flows if one.engine.keeps_partitions]
    untimed = [one.topic for one in subjects if not one.keeps_time]
    wanted = [one for subject in subjects for one in subject.ranges]

    def records() -> DataFrame:
        placed = align.place_by_hash(around.fetch(wanted), untimed, BUCKETS)
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
    gaps = {one.topic: _gaps(one, around.known) for one in subjects}
    candidates = [_candidate(row.asDict(), gaps) for row in lanes.collect()]
    if candidates:
        whole = records().join(
            F.broadcast(differing.select(*compare.BUCKET)), on=list(compare.BUCKET), how="left_semi"
        )
        chosen = table(session, classify.CANDIDATES_SCHEMA, candidates)
        left = classify.leftovers(
            whole.withColumn("bucket", F.lit(_ALL).cast("bigint")), chosen, positions
        ).persist()
        _count(found, classify.outcome(left, chosen, "proof"), classify.samples(left))
        left.unpersist()
    buckets.unpersist()
    return found


def _gaps(one: Subject, known: Iterable[Unreadable]) -> Subject:
    """A topic whose unreadable records count as expired if the other side's can be read.

    So it is where the target replaces timestamps.
    """
    there = unreadable.by_side(each for each in known if each.topic == one.topic)
    return replace(
        one,
        source_gap=one.source_gap or (there["source"] > there["target"] and not one.keeps_time),
        target_gap=one.target_gap or (there["target"] > there["source"] and not one.keeps_time),
    )


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
