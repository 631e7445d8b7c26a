"""Records that one side lost and the other never had: which of them are one record, altered.

What is left over on both sides is paired where it agrees in most, the plainest explanation first.
Pairing counts, it does not join: of ``a`` lost and ``b`` foreign records that agree, the first
``min(a, b)`` of each are pairs.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET

DISPLACED = "displaced"
# Class of a pair -> what both records agree in; a record in several pairs counts for the first.
# What is displaced lies beyond a cut of its own lane: where buckets are cut by offsets, it is out
# of order. Values and headers may only differ within a bucket, timestamps within a lane, lanes
# within a topic.
STAGES: dict[str, tuple[str, ...]] = {
    DISPLACED: ("flow", "topic", "lane", "h1", "h2"),
    "moved": ("flow", "topic", "h1", "h2"),
    "altered_timestamp": ("flow", "topic", "lane", "content_hash"),
    "corrupt_headers": (*BUCKET, "key_hash", "compared_ms", "value_hash"),
    "corrupt_value": (*BUCKET, "key_hash", "compared_ms"),
}
# Classes whose pairs may lie in two buckets.
ACROSS = tuple(name for name, agreeing in STAGES.items() if "bucket" not in agreeing)


def pair(left: DataFrame) -> DataFrame:
    """Pair what is left over.

    :param left: groups of equal records with ``lost`` and ``foreign`` (how many of them), the
        columns of :data:`STAGES` and ``compared_ms``; null hashes stand for records that match.
    :returns: ``left`` with a column for each class of :data:`STAGES` (pairs, where the source has
        the record), ``at_<class>`` (pairs, where the target has it), and of ``lost`` and
        ``foreign`` what found no partner.
    """
    for name, agreeing in STAGES.items():
        same = Window.partitionBy(*agreeing)
        before = same.orderBy("lane", "bucket", "compared_ms", "h1", "h2").rowsBetween(
            Window.unboundedPreceding, -1
        )
        pairs = F.least(F.sum("lost").over(same), F.sum("foreign").over(same))
        left = (
            left.withColumn("pairs", pairs)
            .withColumns(
                {
                    name: _taken("lost", F.coalesce(F.sum("lost").over(before), F.lit(0))),
                    f"at_{name}": _taken(
                        "foreign", F.coalesce(F.sum("foreign").over(before), F.lit(0))
                    ),
                }
            )
            .withColumns(
                {
                    "lost": F.col("lost") - F.col(name),
                    "foreign": F.col("foreign") - F.col(f"at_{name}"),
                }
            )
        )
    return left.drop("pairs")


def _taken(name: str, before: Column) -> Column:
    """How many of a row's records are among the first that find partners."""
    return F.greatest(F.least(F.col(name), F.col("pairs") - before), F.lit(0))
