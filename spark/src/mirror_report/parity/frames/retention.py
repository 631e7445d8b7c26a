"""Which of the records that the target no longer holds it should still hold, by their digests."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames.tables import table
from mirror_report.parity.state.manifest import Gone, Removal

SLACK_MS = 60_000
"""Clocks of brokers and of this host may differ by so much."""

REMOVALS_SCHEMA = (
    "flow string, topic string, partition int, start bigint, end bigint, kept_from_ms bigint, "
    "retention_ms bigint"
)


def judge(session: SparkSession, digests: DataFrame, removals: Sequence[Removal]) -> list[Gone]:
    """What went, by what its digests say of its age; nothing is read again.

    Retention removes whole segments, and none that holds a record younger than it: one such among
    what went was deleted. A bucket of which a part went counts by the offsets of that part.

    :param digests: :data:`frames.digest.COLUMNS` of disjoint ranges.
    """
    rows = table(
        session, REMOVALS_SCHEMA,
        [{name: value for name, value in vars(one).items() if value is not None}
         for one in removals],
    )  # fmt: skip
    overlap = F.least("off_max", F.col("end") - 1) - F.greatest("off_min", "start") + 1
    whole = (F.col("off_min") >= F.col("start")) & (F.col("off_max") < F.col("end"))
    went = (
        digests.filter(F.col("side") == "target")
        .join(F.broadcast(rows), on=["flow", "topic", "partition"], how="inner")
        .filter((F.col("off_max") >= F.col("start")) & (F.col("off_min") < F.col("end")))
        .withColumns(
            {
                "went": F.when(whole, F.col("n")).otherwise(F.least("n", overlap)),
                "early": F.col("ts_max") > F.col("kept_from_ms") + SLACK_MS,
                "until": F.col("ts_max") + F.col("retention_ms"),
            }
        )
    )
    sums = went.groupBy("flow", "topic", "partition").agg(
        F.coalesce(F.sum(F.when(~F.col("early"), F.col("went"))), F.lit(0)).alias("expired"),
        F.coalesce(F.sum(F.when(F.col("early"), F.col("went"))), F.lit(0)).alias("early"),
        F.max(F.when(F.col("early"), F.col("until"))).alias("until_ms"),
    )
    return [Gone(**row.asDict()) for row in sums.collect()]


def add(known: Sequence[Gone], news: Sequence[Gone]) -> list[Gone]:
    """Both, with those that can be told together in one."""
    found: dict[tuple[str, str, int, bool], Gone] = {}
    for one in [*known, *news]:
        key = (one.flow, one.topic, one.partition, one.early > 0 and one.until_ms is None)
        same = found.get(key)
        if same is None:
            found[key] = one
            continue
        until = [each.until_ms for each in (same, one) if each.until_ms is not None]
        found[key] = Gone(
            one.flow, one.topic, one.partition, same.expired + one.expired, same.early + one.early,
            max(until) if until else None,
        )  # fmt: skip
    return list(found.values())
