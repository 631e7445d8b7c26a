"""Proving a topic at rest whole: all records of both sides, whatever their timestamps.

Records are cut into buckets by their hash, so nothing has to align the sides. What differs is then
classified as one bucket per lane, for an altered record is in another bucket than the original.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config import Settings
from mirror_report.model import CLASSES
from mirror_report.parity import ACCOUNTABLE, BUCKET, SAMPLES, WHOLE
from mirror_report.parity.frames import (
    align,
    classify,
    compare,
    digest,
    fingerprint,
    reach,
    sql,
)
from mirror_report.parity.frames.leftovers import leftovers
from mirror_report.parity.plan import TopicAtRest, Unread, unreadable
from mirror_report.parity.spark.records import Reader
from mirror_report.parity.state import Unreadable

BUCKETS = 256
_ALL = 0


@dataclass
class Proved:
    """The result of one topic; without counts both sides hold the same.

    :param replaced_records: of the source, those with header keys that are no UTF-8.
    :param counts: class -> lane -> records.
    :param beyond: what cannot be read.
    :param unknown: why its status is unknown.
    """

    source_records: int = 0
    target_records: int = 0
    replaced_records: int = 0
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    beyond: list[Unreadable] = field(default_factory=list)
    unknown: str | None = None


def prove(
    session: SparkSession,
    settings: Settings,
    topics: Sequence[TopicAtRest],
    progress: Callable[[str], None] = lambda _: None,
    *,
    sha256: bool = False,
) -> dict[str, Proved]:
    """Compare everything some topics of one flow hold.

    :param sha256: compare record by record, by hashes that nobody can forge.
    :param progress: called with a line of what is being done.
    :returns: topic -> what was found.
    """
    reader = Reader(settings, session, progress)
    by_topic = reader.read(partial(_prove, reader, topics, sha256))
    for topic in topics:
        _add_unread(by_topic[topic.topic], topic, reader.unread, settings)
    return by_topic


def _add_unread(proved: Proved, topic: TopicAtRest, unread: Unread, settings: Settings) -> None:
    proved.unknown = unread.topics.get(topic.key)
    proved.beyond = unreadable.in_topic(unread.records, topic.key)
    if not proved.beyond:
        return
    by_side = unreadable.by_side(proved.beyond)
    proved.source_records += by_side["source"]
    proved.target_records += by_side["target"]
    proved.samples["unverifiable"] = [
        asdict(sample) for sample in unreadable.samples(proved.beyond)[:SAMPLES]
    ]
    keeps = settings.flow(topic.flow).engine.keeps_partitions
    lanes = proved.counts.setdefault("unverifiable", {})
    for name, count in unreadable.by_lane(proved.beyond, keeps_partitions=keeps).items():
        lane = compare.WHOLE_TOPIC if name == WHOLE else int(name)
        counted = lanes.get(lane, 0)
        # Where timestamps are not kept, copies of these are among what is known.
        lanes[lane] = counted + count if topic.keeps_time else max(counted, count)


def _prove(reader: Reader, topics: Sequence[TopicAtRest], sha256: bool) -> dict[str, Proved]:
    session, flows = reader.session, reader.settings.flows
    by_partition = [flow.name for flow in flows if flow.engine.keeps_partitions]
    parts = [each for topic in topics for each in topic.ranges]
    untimed = [topic.topic for topic in topics if not topic.keeps_time]
    positions = sql.table(
        session, compare.POSITIONS_SCHEMA,
        [
            # At rest everything is below the committed position.
            {"flow": part.flow, "side": part.side, "origin": part.origin,
             "partition": part.partition, "position": part.end}
            for part in parts
            if part.side == "source"
        ],
    )  # fmt: skip

    def records() -> DataFrame:
        placed = align.place_by_hash(reader.fetch(parts), untimed, BUCKETS)
        return compare.with_lanes(placed, by_partition)

    digests = compare.with_lanes(digest.digest(records()), by_partition)
    buckets = compare.by_bucket(digests, positions).persist()
    totals = buckets.groupBy("topic", "lane").agg(
        *(F.sum(name).alias(name) for name in ("n_source", "n_target", "replaced"))
    )
    by_topic = {topic.topic: Proved() for topic in topics}
    for row in totals.collect():
        proved = by_topic[row["topic"]]
        proved.source_records += row["n_source"]
        proved.target_records += row["n_target"]
        proved.replaced_records += row["replaced"]
        if row["replaced"]:
            proved.counts.setdefault("unverifiable", {})[row["lane"]] = row["replaced"]
    differing = buckets if sha256 else buckets.filter(~F.col("equal"))
    if candidates := _candidates(differing, topics, reader.unread.records):
        of_them = F.broadcast(differing.select(*BUCKET))
        whole = (
            records()
            .join(of_them, on=list(BUCKET), how="left_semi")
            .withColumn("bucket", F.lit(_ALL).cast("bigint"))
        )
        chosen = sql.table(session, classify.CANDIDATES_SCHEMA, candidates)
        hashes = fingerprint.sha256 if sha256 else fingerprint.hashes
        # A topic at rest has one look.
        looks = sql.table(session, reach.LOOKS_SCHEMA, [])
        left = leftovers(whole, chosen, positions, looks, hashes).persist()
        _count(by_topic, classify.outcome(left, chosen, "proof"), classify.samples(left))
        left.unpersist()
    buckets.unpersist()
    return by_topic


def _candidates(
    differing: DataFrame, topics: Sequence[TopicAtRest], unread_records: Sequence[Unreadable]
) -> list[dict[str, Any]]:
    """One bucket per lane that differs: rows of :data:`frames.classify.CANDIDATES_SCHEMA`."""
    lanes = differing.groupBy("flow", "topic", "lane").agg(
        F.sum("n_source").alias("n_source"),
        F.sum("n_target").alias("n_target"),
        F.bool_or("disordered").alias("disordered"),
    )
    gaps = {topic.topic: _with_gaps(topic, unread_records) for topic in topics}
    return [
        {
            **row.asDict(), "bucket": _ALL, "pair": "",
            "source_gap": gaps[row["topic"]].source_gap,
            "target_gap": gaps[row["topic"]].target_gap,
            "source_gone": False, "target_gone": False,
            **{f"known_{name}": 0 for name in ACCOUNTABLE},
        }
        for row in lanes.collect()
    ]  # fmt: skip


def _with_gaps(topic: TopicAtRest, unread_records: Iterable[Unreadable]) -> TopicAtRest:
    """A topic whose unreadable records count as expired if the other side's can be read.

    So it is where the target replaces timestamps.
    """
    by_side = unreadable.by_side(unreadable.in_topic(unread_records, topic.key))
    more = by_side["source"] - by_side["target"]
    return replace(
        topic,
        source_gap=topic.source_gap or (more > 0 and not topic.keeps_time),
        target_gap=topic.target_gap or (more < 0 and not topic.keeps_time),
    )


def _count(by_topic: Mapping[str, Proved], outcome: DataFrame, samples: DataFrame) -> None:
    sums = outcome.groupBy("topic", "lane").agg(*(F.sum(name).alias(name) for name in CLASSES))
    for row in sums.collect():
        for name in CLASSES:
            if row[name]:
                by_topic[row["topic"]].counts.setdefault(name, {})[row["lane"]] = row[name]
    for row in samples.collect():
        plain = {name: value for name, value in row.asDict().items() if name != "flow"}
        of_topic = by_topic[plain.pop("topic")].samples
        of_topic.setdefault(plain.pop("class"), []).append(plain)
