"""What the buckets of a topic add up to: one row per lane, however much data there is."""

from __future__ import annotations

from pyspark.sql import DataFrame

from mirror_report.model.content import CLASSES
from mirror_report.parity.frames.compare import KEEPS_ORDER
from mirror_report.parity.frames.sql import derived, named
from mirror_report.parity.results.summaries import (
    ADDED,
    BY_LANE,
    LASTING,
    NEWEST,
    NEWS,
    OLDEST,
    STATUSES,
)

HOUR_MS = 3_600_000
STRIP_HOURS = 48
UNCOMPARED = (*LASTING, "unverifiable", "expired", "skipped")
"""Classes whose records are not verified although their bucket was compared."""
SEVERITY = f"cast(array_position(array({', '.join(map(repr, STATUSES))}), status) as int) - 1"


def summarise(judged: DataFrame, bucket_ms: int) -> DataFrame:
    """Records and buckets of each lane by status, and how far all of its topic is verified.

    :param judged: :func:`frames.compare.judge`.
    :returns: one row per (flow, topic, lane): ``ADDED``, ``NEWEST`` and ``OLDEST`` of
        :mod:`results.summaries`, and ``hours``, the newest :data:`STRIP_HOURS` hours of
        the topic that hold records: struct of the hour's start in milliseconds, its worst status
        and the one the next run will see, both as indexes of ``STATUSES`` there.
    """
    # A drill that only met records newer than the digests has decided nothing yet.
    due = "due and not (settled and status = 'in_flight')"
    bad = f"{due} and status not in ('verified', 'skipped')"
    topic = "over (partition by flow, topic)"
    ranked = derived(
        judged,
        {
            "first_bad": f"min(if({bad}, bucket, null)) {topic}",
            "first_bad_next": f"min(if({bad} and not accountable, bucket, null)) {topic}",
            "hour": f"bucket - pmod(bucket, {HOUR_MS})",
        },
    )
    out_of_order = f"if({KEEPS_ORDER}, {BY_LANE}, 0L)"
    compared = f"greatest(n_source - ({' + '.join((out_of_order, *UNCOMPARED))}), 0L)"
    settled, still_open = (f"status = 'mismatch' and {one}" for one in ("settled", "not settled"))
    # What a drill met and the mirror has not committed is no more verified than it is missing.
    on_its_way = f"least(in_flight, {compared})"
    waiting = "status = 'in_flight' and n_source > 0"
    through = {
        "verified_through_ms": f"status = 'verified' and {_before('first_bad')}",
        "verified_through_next_ms": "(status = 'verified' or accountable)"
        f" and {_before('first_bad_next')}",
    }
    by_hour = ranked.groupBy("flow", "topic", "lane", "hour").agg(
        *named(
            {
                "source_records": "sum(n_source)",
                "target_records": "sum(n_target)",
                "verified_records": f"sum(case when status = 'verified' then {compared}"
                f" when {settled} then {compared} - {on_its_way} else 0L end)",
                "in_flight_records": "sum(case when status = 'in_flight' then n_source"
                f" when {still_open} then {compared} when {settled} then {on_its_way} else 0L end)",
                "skipped_records": "sum(skipped)",
                "older_records": "sum(older)",
                **{name: f"sum({name})" for name in CLASSES},
                **{f"accounted_{name}": f"sum(accounted_{name})" for name in NEWS},
                "unmatched_records": "sum(if(status = 'unverifiable',"
                " greatest(n_target - n_source, 0L), 0L))",
                **{f"buckets_{name}": f"count_if(status = '{name}')" for name in STATUSES},
                "buckets_accountable": "count_if(accountable)",
                "candidates": "count_if(candidate)",
                "newest_due_ms": f"max(if({due}, coalesce(ts_max, bucket), null))",
                **{
                    name: f"max(if({good}, bucket + {bucket_ms}L, null))"
                    for name, good in through.items()
                },
                "in_flight_since_ms": f"min(if({waiting}, bucket, null))",
                "worst": f"max({SEVERITY})",
                "worst_next": f"max(if(accountable, 0, {SEVERITY}))",
            }
        )
    )
    ranks = "dense_rank() over (partition by flow, topic order by hour desc)"
    shown = "if(newest, struct(hour, worst, worst_next), null)"
    return (
        derived(by_hour, {"newest": f"{ranks} <= {STRIP_HOURS}"})
        .groupBy("flow", "topic", "lane")
        .agg(
            *named(
                {
                    **{name: f"sum({name})" for name in ADDED},
                    **{name: f"max({name})" for name in NEWEST},
                    **{name: f"min({name})" for name in OLDEST},
                    "hours": f"sort_array(collect_list({shown}))",
                }
            )
        )
    )


def _before(first_bad: str) -> str:
    return f"({first_bad} is null or bucket < {first_bad})"
