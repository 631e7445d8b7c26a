"""Verifying again: a little every hour of what earlier runs verified is read once more."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import another_topic
from mirror_report.parity import BUCKET, Key, bucket_key, grouped
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import align, compare, digest, sql
from mirror_report.parity.plan import Range, RunPlan, buckets, positions, ranges, snapshots
from mirror_report.parity.run_state import RunState
from mirror_report.parity.spark.records import OutOfTimeError, Reader, limited
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import NEVER, Manifest, changes
from mirror_report.parity.steps.compare import Compared

# Buckets read again in one run.
MOST = 200
# Between two times; in every run it would be the larger part of many a small one.
PAUSE_MS = 3_600_000
CURSOR_SCHEMA = "flow string, topic string, cursor bigint"

DigestRow = Mapping[str, Any]
Cursors = Mapping[str, Mapping[str, int]]
# Which digest a row is of.
_key: Callable[[DigestRow], Key] = itemgetter(*digest.KEYS)


def verify_again(
    context: RunContext, storage: RowStorage, state: RunState, compared: Compared
) -> RunState:
    """Read some buckets again: each topic's oldest first, then the next.

    :returns: with the digests of now, if some are not what they were.
    """
    manifest, plan = state.manifest, state.plan
    reader = Reader(
        context.settings, storage.session, context.progress, manifest.unreadable, plan.topic_id
    )
    cursors = manifest.verified_again
    for _ in range(2):
        # Where each topic has come to its end a new round begins.
        rows, cursors = _next(
            storage, positions.topic_rows(manifest, plan), cursors, compared.buckets
        )
        if rows:
            break
    stored = _stored(context, storage, compared.digests, rows)
    chosen, cursors = _affordable(context, manifest, plan, rows, stored, cursors)
    read_ranges = [each for of_bucket in chosen.values() for each in of_bucket]
    parts = [part for key in chosen for part in stored[key]]
    manifest = replace(manifest, verified_again=cursors, verified_again_at_ms=context.now_ms)
    state = replace(state, manifest=manifest)
    if not read_ranges:
        return state
    context.progress(f"reading {ranges.total_records(read_ranges)} verified records again")
    try:
        fresh = reader.read(
            partial(_digests, context, manifest, plan, reader, ranges.joined(read_ranges), parts)
        )
    except (OutOfTimeError, PySparkException, Py4JError):
        # What was verified stays so: a later run reads it again.
        context.progress("what was verified could not be read again")
        return state.with_unread(reader.unread)
    changed = [
        _key(part)
        for part in reader.readable(parts)
        if {name: part[name] for name in digest.COLUMNS} != fresh.get(_key(part))
    ]
    if changed:
        context.progress(f"{len(changed)} verified minutes are not what they were")
        digests = _replaced(
            storage, manifest, changed, [fresh[key] for key in changed if key in fresh]
        )
        manifest = replace(manifest, digests=(digests,))
    plan = replace(plan, spent=plan.spent.plus(read_ranges))
    return replace(state, manifest=manifest, plan=plan).with_unread(reader.unread)


def _next(
    storage: RowStorage, topics: Sequence[DigestRow], cursors: Cursors, both_sides: DataFrame
) -> tuple[list[dict[str, Any]], Cursors]:
    """Buckets whose turn it is; a topic that has come to its end begins again the next time."""
    complete = [topic for topic in topics if not topic["unread"]]
    cursor_rows = sql.table(
        storage.session, CURSOR_SCHEMA,
        [
            {
                "flow": topic["flow"],
                "topic": topic["topic"],
                "cursor": cursors.get(topic["flow"], {}).get(topic["topic"], NEVER),
            }
            for topic in complete
        ],
    )  # fmt: skip
    in_turn = Window.partitionBy("flow", "topic").orderBy("bucket", "lane")
    chosen = (
        both_sides.filter("equal and mirrored and n_source > 0")
        .join(F.broadcast(cursor_rows), on=["flow", "topic"], how="inner")
        .filter(F.col("bucket") > F.col("cursor"))
        .select(*BUCKET, F.row_number().over(in_turn).alias("turn"))
        .orderBy("turn", "bucket", "flow", "topic")
        .limit(MOST)
    )
    rows = [row.asDict() for row in chosen.collect()]
    if len(rows) < MOST:
        left = {(row["flow"], row["topic"]) for row in rows}
        ended = {(topic["flow"], topic["topic"]) for topic in complete} - left
        cursors = {
            flow: {topic: at for topic, at in of_flow.items() if (flow, topic) not in ended}
            for flow, of_flow in cursors.items()
        }
    return rows, cursors


def _stored(
    context: RunContext, storage: RowStorage, digests: DataFrame, rows: Sequence[DigestRow]
) -> dict[Key, list[DigestRow]]:
    """Bucket -> its digest rows."""
    if not rows:
        return {}
    chosen = compare.some_buckets(storage.session, rows)
    joined = digests.join(chosen, on=list(BUCKET), how="left_semi")
    merged = compare.with_lanes(digest.merge(joined), context.by_partition)
    return grouped([row.asDict() for row in merged.collect()], bucket_key)


def _affordable(
    context: RunContext,
    manifest: Manifest,
    plan: RunPlan,
    rows: Sequence[DigestRow],
    stored: Mapping[Key, Sequence[DigestRow]],
    cursors: Cursors,
) -> tuple[dict[Key, list[Range]], Cursors]:
    """Buckets that are still there as a whole, as many as the budget allows; cursors move."""
    chosen: dict[Key, list[Range]] = {}
    spent: list[Range] = []
    budget, by_hour = context.settings.budget, manifest.bucket_widths.by_hour
    for row in rows:
        key = bucket_key(row)
        parts = list(_there(manifest, plan, stored[key]))
        more = [*spent, *parts]
        # An hour may hold far more than a minute.
        too_large = key[:2] in by_hour and ranges.total_bytes(parts) > budget.scrub_bytes
        too_much = bool(chosen) and ranges.total_bytes(more) > budget.scrub_bytes
        if not too_large and (too_much or not plan.spent.allows(budget, more)):
            break
        cursors = changes.with_topic(cursors, row["flow"], row["topic"], row["bucket"])
        if len(parts) == len(stored[key]) and not too_large:
            chosen[key] = parts
            spent = more
    return chosen, cursors


def _there(manifest: Manifest, plan: RunPlan, parts: Sequence[DigestRow]) -> Iterator[Range]:
    """Where digest rows were read, of those whose records are all there still."""
    for part in parts:
        where = (part["flow"], part["side"], part["origin"])
        topic, state = snapshots.find(plan.snapshots, *where), manifest.sides.get(where)
        same = topic and state and not another_topic(state.topic_id, topic.topic_id)
        log = topic.partitions.get(part["partition"]) if topic and same else None
        if log and log.log_start <= part["off_min"] and log.end > part["off_max"]:
            yield Range(
                *where, part["topic"], part["partition"], part["off_min"], part["off_max"] + 1,
                ranges.record_bytes(topic),
            )  # fmt: skip


def _digests(
    context: RunContext,
    manifest: Manifest,
    plan: RunPlan,
    reader: Reader,
    read_ranges: Sequence[Range],
    parts: Sequence[DigestRow],
) -> dict[Key, dict[str, Any]]:
    spans = buckets.spans(manifest, plan.topics, read_ranges)
    records = compare.with_lanes(
        reader.bucketed(read_ranges, manifest.bucket_widths, spans), context.by_partition
    )
    with limited(context, reader.session):
        chosen = digest.digest(align.bounded(reader.session, records, parts, None))
        return {_key(row): row.asDict() for row in chosen.collect()}


def _replaced(
    storage: RowStorage, manifest: Manifest, former: Sequence[Key], now: Sequence[DigestRow]
) -> str:
    schema = ", ".join(digest.SCHEMA.split(", ")[: len(digest.KEYS)])
    places = [dict(zip(digest.KEYS, key, strict=True)) for key in former]
    kept = storage.digests(manifest).join(
        F.broadcast(sql.table(storage.session, schema, places)),
        on=list(digest.KEYS),
        how="left_anti",
    )
    rows = kept.unionByName(sql.table(storage.session, digest.SCHEMA, now))
    return storage.write(rows.coalesce(1), "digest-scrubbed")
