"""Records that one side lost and the other never had: which of them are one record, altered.

What is left over on both sides is paired where it agrees in most, the plainest explanation first.
Pairing counts, it does not join: of ``a`` lost and ``b`` foreign records that agree, the first
``min(a, b)`` of each are pairs.

Records that agree in all but their timestamps may have nothing of their own, as heartbeats do. So a
foreign one only counts for a lost one where the copy of that may lie (:mod:`frames.reach`).
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET
from mirror_report.parity.frames.compare import WHOLE_TOPIC

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
# The only stage that makes a loss harmless.
ALTERED = "altered_timestamp"
# Lost records that agree like that with one the target had before the source was first seen: where
# partitions are not kept, nothing says whether it is the copy of these or of what the source had
# lost by then.
DOUBTFUL = "doubtful"
# Classes whose pairs may lie in two buckets.
ACROSS = tuple(name for name, agreeing in STAGES.items() if "bucket" not in agreeing)
# Which of equals are taken first.
_ORDER = ("lane", "bucket", "compared_ms", "h1", "h2", "look")


def pair(left: DataFrame) -> DataFrame:
    """Pair what is left over.

    :param left: parts of groups of equal records with ``lost`` and ``foreign`` (how many of them),
        ``n_older`` (how many of the latter the target had before the source was first seen), the
        columns of :data:`STAGES`, ``compared_ms``, and of :func:`frames.reach.with_looks`
        ``place``, ``lowest`` and ``beyond``; null hashes stand for records that match.
    :returns: ``left`` with a column for each class of :data:`STAGES` (pairs, where the source has
        the record) and ``at_<class>`` (pairs, where the target has it), likewise of
        :data:`DOUBTFUL`, and of ``lost`` and ``foreign`` what found no partner.
    """
    spread = F.col("lane") == WHOLE_TOPIC
    older = F.when(spread, F.least("foreign", "n_older")).otherwise(0)
    for name, agreeing in STAGES.items():
        find = _within_reach if name == ALTERED else _first_of_each
        sought = F.col("foreign") - older if name == ALTERED else F.col("foreign")
        left = find(left.withColumns({"a": F.col("lost"), "b": sought}), agreeing).select(
            *left.columns, F.col("of_a").alias(name), F.col("of_b").alias(f"at_{name}")
        )
        left = left.withColumns(
            {
                "lost": F.col("lost") - F.col(name),
                "foreign": F.col("foreign") - F.col(f"at_{name}"),
            }
        )
    unseen = F.when(spread & (F.col("lowest") == 0), F.col("lost")).otherwise(0)
    doubtful = _first_of_each(left.withColumns({"a": unseen, "b": older}), STAGES[ALTERED])
    return (
        doubtful.withColumn("lost", F.col("lost") - F.col("of_a"))
        .withColumnsRenamed({"of_a": DOUBTFUL, "of_b": f"at_{DOUBTFUL}"})
        .drop("a", "b", "place", "lowest", "beyond")
    )


def _first_of_each(left: DataFrame, agreeing: tuple[str, ...]) -> DataFrame:
    """How many of ``a`` and of ``b`` are among the first that find partners: ``of_a``, ``of_b``."""
    same = Window.partitionBy(*agreeing)
    before = same.orderBy(*_ORDER).rowsBetween(Window.unboundedPreceding, -1)
    pairs = F.least(F.sum("a").over(same), F.sum("b").over(same))
    rest = {name: pairs - F.coalesce(F.sum(name).over(before), F.lit(0)) for name in ("a", "b")}
    return left.withColumns(
        {f"of_{name}": F.greatest(F.least(name, left_), F.lit(0)) for name, left_ in rest.items()}
    )


def _within_reach(left: DataFrame, agreeing: tuple[str, ...]) -> DataFrame:
    """The same, but that ``b`` has to lie from ``lowest`` on and before ``beyond`` of ``a``.

    Of those ``a`` that reach equally far no more find partners than ``b`` lie there. Then those
    come first that have the fewest to choose from: of ``a`` those that end first, of ``b`` those
    that lie last.
    """
    same = Window.partitionBy(*agreeing)
    is_a = F.col("a") > 0
    left = left.withColumns(
        {
            "is_a": is_a,
            "at": F.when(is_a, F.col("beyond") - 1).otherwise(F.col("place")),
            "from": F.when(is_a, F.col("lowest")).otherwise(F.col("place")),
        }
    )
    # What may be chosen stands before that which chooses; what lies too low, before ``from``.
    ways = {
        "a": same.orderBy("at", "is_a", *_ORDER),
        "b": same.orderBy(F.desc("at"), F.desc("is_a"), *_ORDER),
        "from": same.orderBy("from", F.desc("is_a"), *_ORDER),
    }
    so_far = {name: way.rowsBetween(Window.unboundedPreceding, 0) for name, way in ways.items()}
    alike = Window.partitionBy(*agreeing, "is_a", "lowest", "beyond").orderBy(*_ORDER)
    earlier = F.sum("a").over(alike.rowsBetween(Window.unboundedPreceding, -1))
    in_range = F.sum("b").over(so_far["a"]) - F.sum("b").over(so_far["from"])
    for_it = in_range - F.coalesce(earlier, F.lit(0))
    left = left.withColumn("a", F.greatest(F.least("a", for_it), F.lit(0)))
    lowest = F.min(F.when(F.col("a") > 0, F.col("lowest"))).over(so_far["b"])
    left = left.withColumn("b", F.when(lowest <= F.col("place"), F.col("b")).otherwise(0))
    for mine, theirs in (("a", "b"), ("b", "a")):
        until = so_far[mine]
        done = F.sum(mine).over(until) + F.least(F.min("room").over(until), F.lit(0))
        taken = F.col("done") - F.coalesce(F.lag("done").over(ways[mine]), F.lit(0))
        left = (
            left.withColumn("room", F.sum(F.col(theirs) - F.col(mine)).over(until))
            .withColumn("done", done)
            .withColumn(f"of_{mine}", taken)
        )
    return left
