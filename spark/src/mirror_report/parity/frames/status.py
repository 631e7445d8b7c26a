"""The status of each bucket: whether it is due, differs, and how its records count; SQL text."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import CLASSES
from mirror_report.parity import ACCOUNTABLE, BUCKET, BY_LANE, LASTING
from mirror_report.parity.frames.compare import BUCKET_SCHEMA, KEEPS_ORDER
from mirror_report.parity.frames.sql import derived

# Topics to compare: whether records are unread, and until when records of a side expired before
# they were read; of the target, how many by lane, as JSON (null: unknown); whether its
# buckets are hours.
TOPICS_SCHEMA = (
    "flow string, topic string, unread boolean, source_gap bigint, target_gap bigint, "
    "target_left string, by_hour boolean"
)

# What is counted beside the classes. ``skipped``: source records that may have been copied before
# the baseline, and were not found; ``older``: target records that may be copies of what the source
# had lost when it was first read; ``halves``: records that were paired with one that may lie in
# another bucket.
BESIDE = ("in_flight", "skipped", "older", "halves")

# What was found in one bucket, valid for one pair of digests. ``new_*``: the part that no report
# had held.
RESULTS_SCHEMA = (
    f"{BUCKET_SCHEMA}, pair string, run_id string, "
    + ", ".join(f"{name} bigint" for name in (*CLASSES, *BESIDE))
    + ", "
    + ", ".join(f"new_{name} bigint" for name in ACCOUNTABLE)
)

# Of the source, what was compared and holds bytes that no client can read.
REPLACED = "if(due and not blind, replaced, 0L)"

# The ``pair`` of what slices found of a bucket that is not due (:mod:`frames.slices`): of no
# digests, so the bucket is classified as soon as it is due.
SLICED_PAIR = "concat('sliced-', pair)"

_KNOWN = (*CLASSES, *BESIDE, *(f"new_{name}" for name in ACCOUNTABLE))


def statuses(
    buckets: DataFrame,
    topics: DataFrame,
    results: DataFrame,
    run_id: str,
    unreported: Mapping[str, Collection[str]] = MappingProxyType({}),
    *,
    gaps: bool = True,
) -> DataFrame:
    """The status of each bucket.

    :param buckets: :func:`frames.compare.by_bucket`.
    :param topics: :data:`TOPICS_SCHEMA`; buckets of other topics are left out.
    :param results: :data:`RESULTS_SCHEMA`, at most one row per bucket.
    :param run_id: the present run.
    :param unreported: flow -> runs whose report was not written: what they found is new still.
    :param gaps: records of a target expired before they were read.
    :returns: the buckets with target_left (how many records of it may have left the target unread
        at most; null: unknown), due, candidate (its records have to be classified, or again,
        if it is settled), settled, status (``skipped``: nothing of the bucket was compared),
        next_status (what the next run calls it if nothing changes) and the count of each class and
        of :data:`BESIDE`; of :data:`ACCOUNTABLE` what is reported once counts while it is new, and
        is ``accounted_*`` afterwards.
    """
    state = _with_results(buckets, topics, results, run_id, unreported)
    # Whatever came since, digests that cannot tell the order do not say that it is mended.
    state = derived(state, {"equal": f"equal and not ({KEEPS_ORDER} and {BY_LANE} > 0)"})
    return _with_status(_with_counts(_with_candidates(_with_due(_with_left(state, gaps=gaps)))))


def _with_results(
    buckets: DataFrame,
    topics: DataFrame,
    results: DataFrame,
    run_id: str,
    unreported: Mapping[str, Collection[str]],
) -> DataFrame:
    run = F.col("run_id")
    unread = [f"{flow}/{run_of_flow}" for flow, runs in unreported.items() for run_of_flow in runs]
    old = results.select(
        *BUCKET,
        F.col("pair").alias("known_pair"),
        (run == run_id).alias("this_run"),
        ((run == run_id) | F.concat_ws("/", "flow", run).isin(*unread)).alias("is_new"),
        *_KNOWN,
    )
    return (
        buckets.join(F.broadcast(topics), on=["flow", "topic"], how="inner")
        .join(old, on=list(BUCKET), how="left")
        .fillna(False, subset=["this_run", "is_new"])
        .fillna(0, subset=list(_KNOWN))
    )


def _with_left(state: DataFrame, *, gaps: bool) -> DataFrame:
    """Say of each bucket how many of its records may have left the target before they were read.

    All in all no more than offsets left it. What the target lacks in earlier buckets, and is not
    known to be lost, is among these, and what counts as gone in later ones.
    """
    if not gaps:
        return derived(state, {"target_left": "cast(null as bigint)"})
    lacks = (
        "if(mirrored and not equal and (not unread or within) and"
        " coalesce(bucket <= target_gap, false),"
        " greatest(n_source - n_target - missing - skipped, 0L), 0L)"
    )
    of_lane = "try_element_at(from_json(target_left, 'map<string,bigint>'), cast(lane as string))"
    before = (
        "coalesce(sum(lacks) over (partition by flow, topic, lane order by bucket"
        " rows between unbounded preceding and 1 preceding), 0L)"
    )
    after = (
        "coalesce(sum(if(known_pair = pair, least(lacks, expired + deleted_early + unverifiable),"
        " 0L)) over (partition by flow, topic, lane order by bucket"
        " rows between 1 following and unbounded following), 0L)"
    )
    left = f"greatest(coalesce({of_lane}, 0L) - {before} - {after}, 0L)"
    return derived(
        derived(state, {"lacks": lacks}),
        {"target_left": f"if(target_left is null, cast(null as bigint), {left})"},
    ).drop("lacks")


def _with_due(rows: DataFrame) -> DataFrame:
    state = derived(
        rows,
        {
            "only_older": "n_source = 0 and all_older",
            # What waits for records that are unread would only be seen to wait again.
            "settled": "coalesce(known_pair = pair, false)"
            " and (in_flight = 0 or this_run or unread)",
        },
    )
    # A loss that was found before some of the target left unread is none of these.
    left_unread = (
        "n_target = 0 and bucket <= target_gap and not settled and missing = 0"
        " and n_source <= coalesce(target_left, n_source)"
    )
    state = derived(
        state,
        {
            "nothing_to_compare": "coalesce((n_source = 0 and bucket <= source_gap)"
            f" or ({left_unread}), false)"
        },
    )
    # While records are unread, only what lies below a boundary can be missing; what agrees or was
    # classified holds.
    decided = "not unread or equal or settled or (within and n_source > 0)"
    state = derived(state, {"due": f"mirrored and ({decided})", "unequal": "not equal"})
    state = derived(state, {"blind": "unequal and due and (nothing_to_compare or only_older)"})
    return derived(state, {"differs": "due and unequal and not blind"})


def _with_candidates(state: DataFrame) -> DataFrame:
    # What was left over here may be the other half of what is new elsewhere in the topic, and a
    # bucket whose other half is classified again has to be there.
    fresh = "bool_or(differs and not settled) over (partition by flow, topic)"
    open_ended = f"missing + skipped + extra + halves > 0 and {fresh}"
    return derived(state, {"candidate": f"differs and (not settled or ({open_ended}))"})


def _with_counts(state: DataFrame) -> DataFrame:
    # An old result holds while its bucket differs: settled, or not due to be classified again.
    carried = "unequal and not blind"
    counted = derived(
        state,
        {name: f"if({carried}, {name}, 0L)" for name in (*CLASSES, "in_flight", "skipped")}
        | {f"new_{name}": f"if({carried} and is_new, new_{name}, 0L)" for name in ACCOUNTABLE}
        | {
            "unverifiable": "case when blind and only_older then 0L"
            " when blind then abs(n_source - n_target)"
            f" when {carried} then unverifiable else 0L end + {REPLACED}",
            "older": f"case when blind and only_older then n_target when {carried} then older"
            " else 0L end",
        },
    )
    accounted = derived(counted, {f"accounted_{name}": _accounted(name) for name in ACCOUNTABLE})
    return derived(accounted, {name: f"{name} - accounted_{name}" for name in ACCOUNTABLE})


def _with_status(counted: DataFrame) -> DataFrame:
    lasting = f"if({KEEPS_ORDER}, {BY_LANE}, 0L)"
    return derived(
        counted,
        {
            "status": _status((*LASTING, *ACCOUNTABLE)),
            "next_status": _status((*LASTING, lasting)),
        },
    )


def _status(wrong: Collection[str]) -> str:
    """The status of a bucket.

    :param wrong: what makes it a mismatch.
    """
    return (
        f"case when {_sum(wrong)} > 0 then 'mismatch'"
        " when unverifiable > 0 then 'unverifiable'"
        " when due and skipped + older > 0 and n_source <= skipped then 'skipped'"
        " when due and (equal or settled) and in_flight = 0 then 'verified'"
        " else 'in_flight' end"
    )


def _sum(names: Collection[str]) -> str:
    return f"({' + '.join(names)})"


def _accounted(name: str) -> str:
    """How many records of a class an earlier report holds, for good."""
    reported = f"{name} - new_{name}"
    return f"if({KEEPS_ORDER}, 0L, {reported})" if name == BY_LANE else reported
