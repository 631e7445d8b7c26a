"""Groups of equal records that do not match on both sides; Column functions.

Source records below a committed position must be on the target that was observed *after* that
position; target records must be on the source that was observed *after* the target. What lies
between is in flight, and never a difference.

A baseline that was recorded while the mirror ran leaves source records of which nobody knows
whether they were copied before it. What was read of the target below the first offset that counts
is there to explain those, and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import BUCKET
from mirror_report.parity.frames import fingerprint, reach
from mirror_report.parity.frames.compare import WHOLE_TOPIC
from mirror_report.parity.frames.pairing import ACROSS, DISPLACED, DOUBTFUL, pair

# Of the records of a side, those that are in the digests of their bucket.
DIGESTED = ("digested_source", "digested_target")


def leftovers(
    records: DataFrame,
    candidates: DataFrame,
    positions: DataFrame,
    looks: DataFrame,
    hashes: Callable[[], Mapping[str, Column]] = fingerprint.hashes,
) -> DataFrame:
    """Groups of equal records that do not match, and all others of a bucket, a stretch together.

    Groups come in parts, by the look at which their records were first seen.

    :param records: :data:`frames.digest.RECORD_COLUMNS`, both sides, :func:`frames.align.place`,
        :func:`frames.compare.with_lanes`.
    :param candidates: :data:`frames.classify.CANDIDATES_SCHEMA`.
    :param positions: :data:`frames.compare.POSITIONS_SCHEMA`, taken before the ends up to which
        ``records`` were read.
    :param looks: :data:`frames.reach.LOOKS_SCHEMA`, the last of them that of ``positions``.
    :param hashes: what equal records agree in; another than that of :mod:`frames.fingerprint`
        finds differences that digests do not show.
    :returns: flow, topic, lane, bucket, h1, h2 (null: all that match), key_hash, look (the first
        that saw it), born (looks that were over before it was written), n_source, n_target,
        :data:`frames.classify.COUNTS`, ``at_<class>`` of :data:`frames.pairing.STAGES`,
        :data:`frames.status.BESIDE`,
        digested_source and digested_target (of n_source and n_target, what digests hold),
        balance (source records less target records, as far as explained), unseen
        (leftovers whose partner may have been among what is gone), source and target (sample
        structs, null for what matches).
    """
    hidden = candidates.select(
        *BUCKET,
        (F.col("source_gap") | F.col("source_gone")).alias("source_hidden"),
        (F.col("target_gap") | F.col("target_gone")).alias("target_hidden"),
        "allowed_from_ms",
        F.col("n_target").alias("target_digests"),
        *("target_most", "target_own", "target_unread", "known_missing", "unread"),
    )
    hashed = reach.with_looks(_hashed(records, hashes()), looks)
    wrong = _wrong_alone(_with_counts(_late(_groups(hashed, candidates, positions))))
    parts = reach.between_neighbours(reach.by_look(wrong))
    return _named(_waiting(pair(_seen(parts, hidden))))


def _with_counts(groups: DataFrame) -> DataFrame:
    """How many records of a group are lost, on their way, repeated or foreign."""
    # What lies below the first offset explains what may have been copied by then before all else.
    sought = F.least("n_sought", "n_below")
    n_lost = F.greatest(F.col("n_below") - F.col("n_target") - sought, F.lit(0))
    not_sought = F.greatest(sought - F.col("n_optional"), F.lit(0))
    n_required = F.greatest(
        F.col("n_below") - F.col("n_optional") - F.col("n_target") - not_sought, F.lit(0)
    )
    open_ = F.greatest(F.col("n_source") - F.col("n_target"), F.lit(0))
    in_flight = F.greatest(open_ - sought, F.lit(0)) - n_lost
    surplus = F.greatest(F.col("n_target") - F.col("n_source"), F.lit(0))
    return groups.withColumns(
        {
            "lost": n_lost,
            "optional": n_lost - F.least(n_required, n_lost),
            "duplicate": F.when(F.col("n_source") > 0, surplus).otherwise(0),
            "foreign": F.when(F.col("n_source") == 0, surplus).otherwise(0),
            "in_flight": in_flight,
            "explained": open_ - n_lost - in_flight,
            "reordered": F.col("late").cast("bigint"),
        }
    )


def _wrong_alone(counted: DataFrame) -> DataFrame:
    """One row per bucket and stretch for what matches: the rest grows with what is wrong."""
    wrong = F.col("lost") + F.col("duplicate") + F.col("foreign") + F.col("reordered") > 0
    names = ("h1", "h2", "key_hash", "value_hash", "content_hash", "compared_ms", "timestamp_ms")
    sums = ("n_source", "n_target", *DIGESTED, "n_older", "n_gap", "in_flight", "explained",
            "lost", "optional", "foreign", "duplicate", "reordered")  # fmt: skip
    of_group = ("source", "target", "looks")
    anchor = reach.anchor(~wrong)
    one_log = F.when(F.col("source_log") == F.col("other_log"), F.col("source_log"))
    return (
        counted.withColumns(
            {name: F.when(wrong, F.col(name)) for name in (*names, *of_group)}
            | {name: _where(wrong, name) for name in ("n_older", "n_gap")}
            | {"anchor": anchor, "stretch": reach.stretch(anchor)}
            | {"log": F.when(wrong | anchor.isNotNull(), one_log)}
        )
        .groupBy(*BUCKET, *names, "log", "stretch")
        .agg(
            *(F.sum(name).alias(name) for name in sums),
            *(F.max(name).alias(name) for name in of_group),
            F.min("anchor").alias("first"),
            F.max("anchor").alias("last"),
        )
    )


def _groups(hashed: DataFrame, candidates: DataFrame, positions: DataFrame) -> DataFrame:
    """Equal records of a bucket: how many each side has, and the first place on each."""
    placed = _placed(hashed, candidates, positions)
    on_source = F.col("side") == "source"
    on_target = (F.col("side") == "target") & F.col("counts")
    log = F.struct("origin", "partition")
    same = ("key_hash", "value_hash", "content_hash", "compared_ms", "timestamp_ms", "key_length")
    sums = {
        "n_below": F.count_if("below"),
        "n_source": F.count_if(on_source),
        "n_target": F.count_if(on_target),
        "digested_source": F.count_if(on_source & F.col("digested")),
        "digested_target": F.count_if(on_target & F.col("digested")),
        "n_optional": F.count_if(F.col("below") & (F.col("offset") < F.col("required"))),
        "n_sought": F.count_if((F.col("side") == "target") & ~F.col("counts")),
        "n_older": F.count_if(on_target & (F.col("offset") < F.col("older"))),
        "n_gap": F.count_if(on_target & (F.col("offset") < F.col("gap"))),
    }
    least = {name: F.min(name) for name in same} | {
        "source": F.min(F.when(F.col("below"), F.col("sample"))),
        "source_log": F.min(F.when(on_source, log)),
        "source_at": F.min(F.when(on_source, F.col("offset"))),
        "target_at": F.min(F.when(on_target, F.struct("partition", "offset"))),
        "target_look": F.min(F.when(on_target, F.col("look"))),
        "born": F.min(F.when(F.col("below"), F.col("born"))),
        "source_from": F.min(F.when(F.col("below"), F.col("offset"))),
        "lowest": F.min(F.when(F.col("below"), F.col("lowest"))),
        "place": F.min(F.when(on_target, F.col("place"))),
    }
    greatest = {
        "target": F.max(F.when(on_target, F.col("sample"))),
        "other_log": F.max(F.when(on_source, log)),
        "source_to": F.max(F.when(F.col("below"), F.col("offset"))),
        "beyond": F.max(F.when(F.col("below"), F.col("beyond"))),
    }
    group = (*BUCKET, "h1", "h2")
    parts = placed.groupBy(*group, "look").agg(
        *(column.alias(name) for name, column in (sums | least | greatest).items())
    )
    part = F.struct(
        "look", "n_below", "n_target", "n_older", "n_gap", "source", "target", "born",
        "source_from", "source_to", "place", "lowest", "beyond",
    )  # fmt: skip
    return parts.groupBy(*group).agg(
        *(F.sum(name).alias(name) for name in sums),
        *(F.min(name).alias(name) for name in least),
        *(F.max(name).alias(name) for name in greatest),
        F.array_sort(F.collect_list(part)).alias("looks"),
    )


def _placed(hashed: DataFrame, candidates: DataFrame, positions: DataFrame) -> DataFrame:
    """Records of some buckets: which are below the position, which count, and samples."""
    on_source, end = F.col("side") == "source", F.coalesce("boundary", "position", F.lit(0))
    sample = F.struct(
        *("offset", "partition"),
        fingerprint.text(hashed, "h1", "h2").alias("record_hash"),
        *("key_length", "value_length", "timestamp_ms"),
    )
    return (
        hashed.join(F.broadcast(candidates.select(*BUCKET)), on=list(BUCKET), how="left_semi")
        .join(F.broadcast(positions), on=["flow", "side", "origin", "partition"], how="left")
        .withColumns(
            {
                "below": on_source & (F.col("offset") < end),
                "sample": sample,
                "counts": F.col("offset") >= F.coalesce("first", F.lit(0)),
                "digested": F.coalesce(F.col("offset") < F.col("following"), F.lit(True)),
            }
        )
    )


def _hashed(records: DataFrame, hashes: Mapping[str, Column]) -> DataFrame:
    return records.select(
        *("flow", "side", "topic", "lane", "origin", "partition", "offset"),
        *("bucket", "compared_ms"),
        fingerprint.timestamp_ms().alias("timestamp_ms"),
        *(hashed.alias(name) for name, hashed in hashes.items()),
        F.expr("length(key)").alias("key_length"),
        F.expr("length(value)").alias("value_length"),
    )


def _late(groups: DataFrame) -> DataFrame:
    """Say in ``late`` which records come after one that they preceded on the source.

    Order is that of one log; of a mirror that keeps no partitions, that of one key in it. Equal
    records count once, where the first of them is, and only if both sides have as many: of copies
    which one is out of place is unknown.
    """
    spread = F.col("lane") == WHOLE_TOPIC
    ordered = (
        (F.col("n_source") > 0)
        & (F.col("n_target") == F.col("n_source"))
        & (F.col("source_log") == F.col("other_log"))
        & ~(spread & F.col("key_length").isNull())
    )
    sequence = (
        Window.partitionBy(
            *BUCKET, "ordered", "source_log", "target_at.partition",
            F.when(spread, F.col("key_hash")),
        )
        .orderBy("target_at.offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )  # fmt: skip
    passed = F.coalesce(F.max("source_at").over(sequence) > F.col("source_at"), F.lit(False))
    return groups.withColumn("ordered", F.coalesce(ordered, F.lit(False))).withColumn(
        "late", F.col("ordered") & passed
    )


def _seen(wrong: DataFrame, hidden: DataFrame) -> DataFrame:
    """Leftovers to pair: where records are gone, the partner of one may be among them.

    Among those of the target no more than have left it, the first of the source: of a bucket those
    that were digested for it, and of all buckets together those that left before they were.
    """
    source_seen, target_seen = ~F.col("source_hidden"), ~F.col("target_hidden")
    bucket = Window.partitionBy(*BUCKET)
    in_order = bucket.orderBy(F.col("source.offset").asc_nulls_last(), "source.partition", "h1")
    before = F.sum("lost").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    gone = F.least("lost", F.greatest(F.col("most") - F.coalesce(before, F.lit(0)), F.lit(0)))
    joined = _with_most(wrong.join(F.broadcast(hidden), on=list(BUCKET), how="inner"))
    counted = joined.withColumn("gone", F.when(F.col("target_hidden"), gone).otherwise(0))
    return counted.withColumns(
        {
            "balance": F.col("lost") + F.col("explained") - F.col("foreign") - F.col("duplicate"),
            "skipped": F.least("optional", "gone"),
            "optional": F.col("optional") - F.least("optional", "gone"),
            "alone": F.col("gone") - F.least("optional", "gone"),
            "unseen": _where("source_hidden", "foreign"),
            "lost": F.col("lost") - F.col("gone"),
            "foreign": _where(source_seen, "foreign"),
            "reordered": _where(source_seen & target_seen, "reordered"),
        }
    ).drop("gone", "most")  # fmt: skip


def _with_most(joined: DataFrame) -> DataFrame:
    """Say of each bucket how many of what it lost may be among what left the target at most.

    What left before it was digested is of one bucket alone: the earliest ones have it first.
    """
    bucket = Window.partitionBy(*BUCKET)
    nothing, all_lost = F.lit(0), F.sum("lost").over(bucket)
    own = F.greatest(F.col("target_digests") - F.sum("digested_target").over(bucket), nothing)
    known_most = F.col("target_most") + F.least(F.coalesce("target_own", nothing), own)
    earlier = (
        Window.partitionBy("flow", "topic", "lane")
        .orderBy("bucket")
        .rangeBetween(Window.unboundedPreceding, -1)
    )
    not_known = F.greatest(all_lost - F.coalesce("known_missing", nothing), nothing)
    # A bucket counts once, in whichever of its rows.
    first = F.row_number().over(bucket.orderBy("h1", "h2", "look")) == 1
    more = F.greatest(F.col("not_known") - F.coalesce("known", "not_known"), nothing)
    counted_once = F.sum(F.when(F.col("first"), F.col("more"))).over(earlier)
    unread = F.coalesce("target_unread", nothing) - F.coalesce(counted_once, nothing)
    most = F.coalesce(
        F.col("known") + F.least("more", F.greatest(unread, nothing)), F.col("not_known")
    )
    return (
        joined.withColumns({"known": known_most, "not_known": not_known, "first": first})
        .withColumn("more", F.when(F.col("target_hidden"), more).otherwise(nothing))
        .withColumn("most", F.least(most, "not_known"))
        .drop("known", "not_known", "first", "more")
        .drop("target_digests", "target_most", "target_own", "target_unread", "known_missing")
    )


def _waiting(paired: DataFrame) -> DataFrame:
    """While records of the source are unread, what the target has beside them waits for these."""
    waits = F.coalesce("unread", F.lit(False))
    return paired.withColumns(
        {"in_flight": F.col("in_flight") + _where(waits, "foreign") + _where(waits, "duplicate")}
        | {name: _where(~waits, name) for name in ("foreign", "duplicate")}
    ).drop("unread")


# What has other names once all is named.
_NAMELESS = (
    DISPLACED, DOUBTFUL, f"at_{DOUBTFUL}", "lost", "foreign", "alone", "optional", "explained",
    "n_older", "n_gap", "source_hidden", "target_hidden", "allowed_from_ms",
)  # fmt: skip


def _named(paired: DataFrame) -> DataFrame:
    """Give what does not match the names of its classes."""
    unpaired = F.least("lost", "optional")
    older = F.least("foreign", "n_older")
    # Copies of unread records that are dated ahead: no bucket is known to have lost them.
    of_gap = F.least(F.col("foreign") - older, F.col("n_gap"))
    # What the target holds twice may be a copy of what the source has lost, too.
    repeated = F.least("duplicate", F.col("n_older") - older)
    doubtful = F.col(DOUBTFUL)
    too_early = F.col("timestamp_ms") >= F.col("allowed_from_ms")
    unknown = _where(F.col("allowed_from_ms").isNull(), "alone")
    return paired.withColumns(
        {
            "missing": F.col("lost") - unpaired,
            "skipped": F.col("skipped") + unpaired,
            "older": older + repeated,
            "duplicate": F.col("duplicate") - repeated,
            "halves": sum_of([f"{at}{name}" for name in (*ACROSS, DOUBTFUL) for at in ("", "at_")]),
            "reordered": F.col("reordered") + F.col(DISPLACED),
            "extra": F.col("foreign") - older - of_gap,
            "deleted_early": _where(F.coalesce(too_early, F.lit(False)), "alone"),
            "expired": _where(F.coalesce(~too_early, F.lit(False)), "alone"),
            "balance": F.col("balance") - unknown - doubtful + F.col("unseen") + of_gap,
            "unseen": F.col("unseen") + unknown + doubtful + of_gap,
        }
    ).drop(*_NAMELESS)


def _where(condition: Column | str, name: str) -> Column:
    return F.when(
        F.col(condition) if isinstance(condition, str) else condition, F.col(name)
    ).otherwise(0)


def sum_of(names: Iterable[str]) -> Column:
    """The sum of some columns."""
    return sum((F.col(name) for name in names), start=F.lit(0))
