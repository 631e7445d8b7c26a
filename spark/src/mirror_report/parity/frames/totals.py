"""Sums over the buckets of a topic: one row per lane, however much data there is; SQL text."""

from pyspark.sql import DataFrame

from mirror_report.model import CLASSES
from mirror_report.parity import (
    ACCOUNTABLE,
    ADDED,
    BUCKET,
    BY_LANE,
    HOUR_MS,
    LASTING,
    NEWEST,
    OLDEST,
    STATUSES,
)
from mirror_report.parity.frames.compare import KEEPS_ORDER
from mirror_report.parity.frames.sql import derived, named
from mirror_report.parity.frames.status import REPLACED, SLICED_PAIR

STRIP_HOURS = 48
# Open buckets of a topic with records below the position that are followed, and of each lane
# whatever they hold: the driver and the manifest hold them all.
MOST_OPEN = 1_000
MOST_OPEN_OF_LANE = 32
# Classes whose records are not verified although their bucket was compared.
UNCOMPARED = (*LASTING, "unverifiable", "expired", "skipped")
SEVERITIES = f"array({', '.join(map(repr, STATUSES))})"

# Classifying that only met records newer than the digests has decided nothing yet.
_DECIDED = "due and not (settled and {status} = 'in_flight')"
# Nothing of it is under way, and nothing differs.
_CLOSED = "due and equal"
_BELOW = "if(due, 0L, below)"
# Slices have counted it.
_SLICED = f"not due and coalesce(known_pair = {SLICED_PAIR}, false)"
_BAD = f"{_DECIDED} and {{status}} not in ('verified', 'skipped')"
# Of records, of classes and of buckets.
NUMBERS = {
    "source_records": "sum(n_source)",
    "target_records": "sum(n_target)",
    "skipped_records": "sum(skipped)",
    "older_records": "sum(older)",
    "replaced_records": f"sum({REPLACED})",
    "below_records": f"sum({_BELOW})",
    "unmatched_records": "sum(least(unverifiable, greatest(n_target - n_source, 0L)))",
    **{name: f"sum({name})" for name in CLASSES},
    **{f"accounted_{name}": f"sum(accounted_{name})" for name in ACCOUNTABLE},
    "candidates": "count_if(candidate)",
    "worst": f"max(cast(array_position({SEVERITIES}, status) as int)) - 1",
    "next_worst": f"max(cast(array_position({SEVERITIES}, next_status) as int)) - 1",
}


def summarise(statuses: DataFrame, bucket_ms: int) -> DataFrame:
    """Records and buckets of each lane by status, and how far all of its topic is verified.

    :param statuses: :func:`frames.status.statuses`.
    :returns: one row per (flow, topic, lane): ``ADDED``, ``NEWEST`` and ``OLDEST`` of
        :mod:`classes`, and ``hours``, the newest :data:`STRIP_HOURS` hours of the topic that hold
        records: struct of the hour's start in milliseconds, its worst status and the one the next
        run will see, both as indexes of ``STATUSES`` there; ``n_open``, how many buckets are not
        closed.
    """
    numbers = (
        NUMBERS | _times(bucket_ms)
        | _by_status("status") | {f"next_{k}": v for k, v in _by_status("next_status").items()}
        | {"n_open": f"count_if(not ({_CLOSED}))"}
    )  # fmt: skip
    by_hour = (
        _with_first_bad(statuses).groupBy("flow", "topic", "lane", "hour").agg(*named(numbers))
    )
    rank = "dense_rank() over (partition by flow, topic order by hour desc)"
    by_lane = {
        **{name: f"sum({name})" for name in ADDED},
        **{name: f"max({name})" for name in NEWEST},
        **{name: f"min({name})" for name in OLDEST},
        "n_open": "sum(n_open)",
        "hours": "sort_array(collect_list(if(newest, struct(hour, worst, next_worst), null)))",
    }
    return (
        derived(by_hour, {"newest": f"{rank} <= {STRIP_HOURS}"})
        .groupBy("flow", "topic", "lane")
        .agg(*named(by_lane))
    )


def still_open(statuses: DataFrame, followed: DataFrame) -> DataFrame:
    """Buckets that are not closed, as many as are followed: those that were go on.

    An order by size would let buckets that grow in turn take each other's place.

    :param statuses: :func:`frames.status.statuses`.
    :param followed: keys of the buckets that were followed before.
    :returns: keys of a bucket with below (records below the position, 0 of one that is due), and
        of all that are open of its topic ``n_open`` and ``n_below`` (the sum of below).
    """
    before = derived(followed.select(*BUCKET), {"known": "true"})
    open_now = derived(statuses.filter(f"not ({_CLOSED})"), {"below": _BELOW}).join(
        before, on=list(BUCKET), how="left"
    )
    order = "order by below > 0 desc, coalesce(known, false) desc, bucket, lane"
    topic, lane = "partition by flow, topic", "partition by flow, topic, lane"
    ranked = derived(
        open_now,
        {
            "n_open": f"count(*) over ({topic})",
            "n_below": f"sum(below) over ({topic})",
            "of_topic": f"row_number() over ({topic} {order})",
            "of_lane": f"row_number() over ({lane} {order})",
        },
    )
    return ranked.filter(
        f"(below > 0 and of_topic <= {MOST_OPEN}) or of_lane <= {MOST_OPEN_OF_LANE}"
    ).select(*BUCKET, "below", "n_open", "n_below")


def _with_first_bad(statuses: DataFrame) -> DataFrame:
    """Of each topic the first bucket that is not verified, now and in the next run; and hours."""
    topic = "over (partition by flow, topic)"
    return derived(
        statuses,
        {
            "first_bad": f"min(if({_BAD.format(status='status')}, bucket, null)) {topic}",
            "next_first_bad": f"min(if({_BAD.format(status='next_status')}, bucket, null)) {topic}",
            "hour": f"bucket - pmod(bucket, {HOUR_MS})",
        },
    )


def _by_status(status: str) -> dict[str, str]:
    """The numbers of :data:`FORETOLD`.

    :param status: column that has the status of a bucket.
    """
    out_of_order = f"if({KEEPS_ORDER}, {BY_LANE}, 0L)"
    compared = f"greatest(n_source - ({' + '.join((out_of_order, *UNCOMPARED))}), 0L)"
    settled, still_open = (
        f"{status} = 'mismatch' and {kind}" for kind in ("due and settled", "not (due and settled)")
    )
    # What was met and the mirror has not committed is no more verified than it is missing.
    on_its_way = f"least(in_flight, {compared})"
    sliced = f"{status} in ('in_flight', 'mismatch') and {_SLICED}"
    verified = " or ".join(
        f"({state})"
        for state in (
            f"{status} = 'verified'",
            settled,
            f"{status} = 'unverifiable' and equal and due",
            sliced,
        )
    )
    return {
        "verified_records": f"sum(if({verified}, {compared} - {on_its_way}, 0L))",
        "in_flight_records": f"sum(case when {sliced} then {on_its_way}"
        f" when {status} = 'in_flight' then n_source"
        f" when {still_open} then {compared}"
        f" when {settled} then {on_its_way} else 0L end)",
        **{f"buckets_{name}": f"count_if({status} = '{name}')" for name in STATUSES},
    }


def _times(bucket_ms: int) -> dict[str, str]:
    verified = f"status = 'verified' and {_before('first_bad')}"
    verified_next = f"next_status = 'verified' and {_before('next_first_bad')}"
    decided = _DECIDED.format(status="status")
    return {
        "newest_due_ms": f"max(if({decided}, coalesce(ts_max, bucket), null))",
        "verified_through_ms": f"max(if({verified}, {through(bucket_ms)}, null))",
        "next_verified_through_ms": f"max(if({verified_next}, {through(bucket_ms)}, null))",
        "in_flight_since_ms": "min(if(status = 'in_flight' and n_source > 0,"
        " if(by_hour, ts_min, bucket), null))",
    }


def through(bucket_ms: int) -> str:
    """Up to when a bucket holds records; an hour no longer than to the newest of its own.

    :param bucket_ms: width of the others.
    """
    return f"if(by_hour, ts_max, bucket + {bucket_ms}L)"


def _before(first_bad: str) -> str:
    return f"({first_bad} is null or bucket < {first_bad})"
