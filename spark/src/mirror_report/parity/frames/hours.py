"""Minutes put together to hours: their digests add up, and so does what was found in them."""

from collections.abc import Collection

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import ACCOUNTABLE, BUCKET
from mirror_report.parity.frames import align, compare, digest
from mirror_report.parity.frames.sql import named, table
from mirror_report.parity.state import TopicKey


def digests(rows: DataFrame, topics: Collection[TopicKey]) -> DataFrame:
    """Digests of hours: :data:`frames.digest.COLUMNS`.

    :param rows: of all topics.
    :param topics: that are compared by hours from now on.
    """
    return digest.merge(rows.withColumn("bucket", align.by_hour(F.col("bucket"), topics)))


def results(earlier: DataFrame, rows: DataFrame, topics: Collection[TopicKey]) -> DataFrame:
    """Results of hours: :data:`frames.status.RESULTS_SCHEMA`.

    Where all minutes that differ were classified, their sum holds as if the hour had been: what is
    known to be lost stays so, also if the source has removed it.

    :param earlier: of all topics.
    :param rows: digests, with lanes.
    :param topics: that are compared by hours from now on.
    """
    session, hour = earlier.sparkSession, align.by_hour(F.col("bucket"), topics)
    before = earlier.filter(align.of_topics(topics))
    touched = before.withColumn("bucket", hour).select(*BUCKET)
    both = rows.withColumns({"minute": F.col("bucket"), "bucket": hour}).join(
        touched, on=list(BUCKET), how="left_semi"
    )
    # Neither what is equal nor a pair depends on positions.
    nowhere = table(session, compare.POSITIONS_SCHEMA, [])
    minutes = compare.by_bucket(both.withColumn("bucket", F.col("minute")), nowhere)
    differing = minutes.filter("not equal").select(*BUCKET, "pair")
    unknown = differing.join(before, on=[*BUCKET, "pair"], how="left_anti")
    classified = (
        compare.by_bucket(both, nowhere)
        .join(unknown.withColumn("bucket", hour), on=list(BUCKET), how="left_anti")
        .select(*BUCKET, "pair")
    )
    new = [f"new_{name}" for name in ACCOUNTABLE]
    counted = [name for name in earlier.columns if name not in (*BUCKET, "pair", "run_id", *new)]
    # What an earlier run found is new no more.
    sums = {"run_id": "max(run_id)"} | {name: f"sum({name})" for name in counted}
    sums |= {name: f"sum(if(run_id = newest, {name}, 0L))" for name in new}
    hours = (
        before.join(differing, on=list(BUCKET), how="left_semi")
        .withColumn("bucket", hour)
        .withColumn("newest", F.max("run_id").over(Window.partitionBy(*BUCKET)))
        .groupBy(*BUCKET)
        .agg(*named(sums))
        .join(classified, on=list(BUCKET), how="left")
        .fillna("", subset=["pair"])
    )
    return earlier.filter(~align.of_topics(topics)).unionByName(hours)
