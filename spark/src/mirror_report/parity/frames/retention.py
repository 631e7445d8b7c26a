"""Records that left the target: those that had expired and those that had not, by digests."""

from collections.abc import Iterable
from dataclasses import asdict, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity.frames.sql import table
from mirror_report.parity.state import SLACK_MS, Gone, Removal

REMOVALS_SCHEMA = (
    "flow string, topic string, partition int, start bigint, end bigint, kept_from_ms bigint, "
    "retention_ms bigint, certain boolean"
)


def gone_records(
    session: SparkSession, digests: DataFrame, removals: Iterable[Removal]
) -> list[Gone]:
    """Numbers of removed records, by the ages in their digests; nothing is read again.

    Retention removes whole segments, and none that holds a record younger than it: one such among
    what was removed was deleted. A bucket of which a part is gone counts by the offsets of that
    part, and no more than was removed; one of more than a minute by its oldest record then, for
    which of its records were in that part is unknown.

    :param digests: :data:`frames.digest.COLUMNS` of disjoint ranges.
    """
    plain = [
        {name: value for name, value in asdict(removal).items() if value is not None}
        for removal in removals
    ]
    rows = table(session, REMOVALS_SCHEMA, plain)
    first, last = F.col("start"), F.col("end") - 1
    whole = (F.col("off_min") >= first) & (F.col("off_max") <= last)
    overlap = F.least("off_max", last) - F.greatest("off_min", first) + 1
    newest = F.when(whole, F.col("ts_max")).otherwise(F.least("ts_max", F.col("ts_min") + SLACK_MS))
    removed = (
        digests.filter(F.col("side") == "target")
        .join(F.broadcast(rows), on=["flow", "topic", "partition"], how="inner")
        .filter((F.col("off_max") >= first) & (F.col("off_min") <= last))
        .withColumns(
            {
                "removed": F.when(whole, F.col("n")).otherwise(F.least("n", overlap)),
                "is_early": newest > F.col("kept_from_ms") + SLACK_MS,
                "until": F.col("ts_max") + F.col("retention_ms"),
            }
        )
    )
    is_early = F.col("is_early")
    sums = removed.groupBy("flow", "topic", "partition", "start", "end", "certain").agg(
        *(
            F.coalesce(F.sum(F.when(condition, F.col("removed"))), F.lit(0)).alias(name)
            for name, condition in {
                "expired": ~is_early & whole,
                "early": is_early & whole,
                "part_expired": ~is_early & ~whole,
                "part_early": is_early & ~whole,
            }.items()
        ),
        F.max(F.when(is_early, F.col("until"))).alias("until_ms"),
    )
    # Parts of several buckets may share offsets; all in all no more is gone than was removed.
    left = F.col("end") - F.col("start") - F.col("expired") - F.col("early")
    part_early = F.least("part_early", left)
    gone = sums.select(
        *("flow", "topic", "partition"),
        (F.col("expired") + F.least("part_expired", left - part_early)).alias("expired"),
        (F.col("early") + part_early).alias("early"),
        "until_ms",
        "certain",
    )
    return [Gone(**row.asDict()) for row in gone.collect()]


def add(earlier: Iterable[Gone], new: Iterable[Gone]) -> tuple[Gone, ...]:
    """Both, with those that can be reported together in one."""
    sums: dict[tuple[str, str, int, bool, bool], Gone] = {}
    for gone in (*earlier, *new):
        never = gone.early > 0 and gone.until_ms is None
        key = (gone.flow, gone.topic, gone.partition, never, gone.certain)
        same = sums.get(key, replace(gone, expired=0, early=0))
        until = [each.until_ms for each in (same, gone) if each.until_ms is not None]
        sums[key] = replace(
            gone,
            expired=same.expired + gone.expired,
            early=same.early + gone.early,
            until_ms=max(until, default=None),
        )
    return tuple(sums.values())
