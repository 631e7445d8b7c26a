"""Digests made near each cluster, and held against each other somewhere else.

What differs can only be located here, not explained: that takes the records of both sides at once.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET
from mirror_report.parity.frames import compare, digest
from mirror_report.parity.frames.sql import table
from mirror_report.parity.state import BEHIND_ALL, Bundle

STARTS_SCHEMA = "flow string, side string, topic string, origin string, partition int"
TOPICS_SCHEMA = "flow string, topic string"
STATUSES = ("verified", "in_flight", "mismatch", "skipped")


def statuses(session: SparkSession, rows: DataFrame, ours: Bundle, theirs: Bundle) -> DataFrame:
    """The status of each bucket of topics that both bundles have.

    A bucket is compared when all its source records are below the committed position and it had
    ended when the source was observed. Buckets that reach back to where a log begins are
    skipped: what was before is gone, or was not asked for.

    :param rows: digest rows of both sides.
    :param ours: the source's bundle, ``theirs`` the target's.
    :returns: flow, topic, lane, bucket, n_source, n_target, replaced, status
        (:data:`STATUSES`).
    """
    kept = [ours.flow] if ours.keeps_partitions else []
    chosen = F.broadcast(table(session, TOPICS_SCHEMA, topics(ours, theirs)))
    merged = compare.with_lanes(
        digest.merge(rows).join(chosen, on=["flow", "topic"], how="left_semi"), kept
    )
    begun = compare.with_lanes(table(session, STARTS_SCHEMA, starts(ours, theirs)), kept)
    first = merged.groupBy("flow", "side", "origin", "partition").agg(
        F.min_by("bucket", "off_min").alias("first")
    )
    skips = (
        begun.join(first, on=["flow", "side", "origin", "partition"], how="left")
        .groupBy("flow", "topic", "lane")
        .agg(F.max(F.coalesce("first", F.lit(BEHIND_ALL))).alias("skip_through"))
    )
    buckets = compare.by_bucket(
        merged, table(session, compare.POSITIONS_SCHEMA, positions(ours, theirs))
    ).join(F.broadcast(skips), on=["flow", "topic", "lane"], how="left")
    ended = F.col("bucket") + F.lit(ours.bucket_ms) <= F.lit(ours.taken_at_ms)
    return buckets.withColumn(
        "status",
        F.when(F.col("bucket") <= F.col("skip_through"), "skipped")
        .when(~F.col("mirrored") | ~ended, "in_flight")
        .when(F.col("equal"), "verified")
        .otherwise("mismatch"),
    ).select(*BUCKET, "n_source", "n_target", "replaced", "status")


def summarise(statuses: DataFrame) -> DataFrame:
    """One row per topic: buckets and records of the source by status, and of both sides in all.

    :returns: flow, topic, n_source, n_target, replaced (of what is verified, records whose header
        keys are no UTF-8), buckets_<status>, records_<status>.
    """
    return statuses.groupBy("flow", "topic").agg(
        F.sum("n_source").alias("n_source"),
        F.sum("n_target").alias("n_target"),
        F.sum(F.when(F.col("status") == "verified", F.col("replaced")).otherwise(0)).alias(
            "replaced"
        ),
        *(F.count_if(F.col("status") == name).alias(f"buckets_{name}") for name in STATUSES),
        *(
            F.sum(F.when(F.col("status") == name, F.col("n_source")).otherwise(0)).alias(
                f"records_{name}"
            )
            for name in STATUSES
        ),
        *(
            F.sum(
                F.when(F.col("status") == "mismatch", F.greatest(net, F.lit(0))).otherwise(0)
            ).alias(name)
            for name, net in (
                ("fewer", F.col("n_source") - F.col("n_target")),
                ("more", F.col("n_target") - F.col("n_source")),
            )
        ),
        F.count_if(
            (F.col("status") == "mismatch") & (F.col("n_source") == F.col("n_target"))
        ).alias("buckets_same_number"),
    )


def topics(ours: Bundle, theirs: Bundle) -> list[dict[str, Any]]:
    """Target topics that both sides know and nothing keeps from being compared."""
    on_target = {topic.topic: topic for topic in theirs.topics.values()}
    barred = {
        topic.topic
        for topic in (*ours.topics.values(), *on_target.values())
        if topic.skip is not None or topic.unknown is not None
    }
    names = {topic.topic for topic in ours.topics.values()} & on_target.keys() - barred
    return [{"flow": ours.flow, "topic": name} for name in sorted(names)]


def positions(ours: Bundle, theirs: Bundle) -> list[dict[str, Any]]:
    """Rows of :data:`compare.POSITIONS_SCHEMA`; without a commit nothing is mirrored."""
    committed = ours.positions if ours.positions is not None else theirs.positions
    return [
        {"flow": ours.flow, "side": "source", "origin": topic, "partition": partition,
         "position": position}
        for topic, parts in (committed or {}).items()
        for partition, position in parts.items()
    ]  # fmt: skip


def starts(ours: Bundle, theirs: Bundle) -> list[dict[str, Any]]:
    """Partitions whose digests do not begin with the first record there ever was."""
    return [
        {
            "flow": bundle.flow,
            "side": bundle.side,
            "topic": topic.topic,
            "origin": name,
            "partition": int(partition),
        }
        for bundle in (ours, theirs)
        for name, topic in bundle.topics.items()
        for partition, (start, _) in topic.ranges.items()
        if start > 0
    ]
