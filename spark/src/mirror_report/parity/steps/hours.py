"""Topics with too many buckets: their minutes are put together to hours, or they are left out.

Digests add up, so nothing is read again, and what either side has lost since it was read counts as
before.
"""

from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, compare, hours
from mirror_report.parity.plan import RunPlan, spread
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import Manifest, TopicKey, changes


def compare_by_hours(
    context: RunContext, storage: RowStorage, manifest: Manifest, plan: RunPlan, name: str
) -> Manifest:
    """Put together the buckets of topics that have too many, if there are any.

    :param name: of what is written; another one each time.
    """
    topics = _spread(storage, manifest, spread.suspects(manifest, plan))
    if not topics:
        return manifest
    by_hour = [topic for topic, how in topics.items() if how == "hours"]
    left_out = align.of_topics(topics.keys() - set(by_hour))
    for flow, topic in topics:
        context.progress(f"{flow}/{topic} has too many minutes: they are put together")
    rows = storage.digests(manifest).filter(~left_out)
    digests = storage.write(hours.digests(rows, by_hour).coalesce(1), f"digest-{name}")
    results = manifest.results
    # Where nothing differs there are none, and later runs do not carry an empty file on.
    if results is not None:
        lanes = compare.with_lanes(rows, context.by_partition)
        earlier = storage.results(results).filter(~left_out)
        by_hours = hours.results(earlier, lanes, by_hour)
        results = storage.write(by_hours.coalesce(1), f"results-{name}")
    return changes.compare_by_hours(manifest, topics, digests, results)


def _spread(
    storage: RowStorage, manifest: Manifest, suspects: list[TopicKey]
) -> dict[TopicKey, str]:
    """Topics that have too many buckets, and how they are compared from now on."""
    if not suspects:
        return {}
    counted = (
        storage.digests(manifest)
        .filter(align.of_topics(suspects))
        .groupBy("flow", "topic")
        .agg(
            F.count_distinct("bucket").alias("buckets"),
            F.count_distinct(align.hour(F.col("bucket"))).alias("hours"),
            F.count_distinct("side", "origin", "partition", "bucket").alias("rows"),
        )
    )
    spread_topics: dict[TopicKey, str] = {}
    for row in counted.collect():
        key = (row["flow"], row["topic"])
        how = spread.how(manifest.bucket_widths, key, row["buckets"], row["hours"], row["rows"])
        if how is not None:
            spread_topics[key] = how
    return spread_topics
