"""Slices of buckets that stay open: records of both sides, counted by their hashes as logs grow.

What the source holds below a committed position is on the target below an end that was taken after
it. So of each bucket the source is counted up to such a position and the target up to such an end,
and a run only adds what is new. A hash that the source has more often is lost; one that the target
has more often is a copy that the mirror has not committed yet, or a repetition. Hashes that match
are no longer kept one by one, so what is kept does not grow with the bucket.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import CLASSES
from mirror_report.parity import ACCOUNTABLE, BUCKET, SAMPLES
from mirror_report.parity.frames import fingerprint, status
from mirror_report.parity.frames.compare import BUCKET_SCHEMA
from mirror_report.parity.frames.sql import derived, named, table

# Offsets to count of a bucket: from ``start`` to ``end`` (exclusive).
BOUNDS_SCHEMA = (
    f"{BUCKET_SCHEMA}, side string, origin string, partition int, start bigint, end bigint"
)
# The first of some equal records of the source.
_FIRST = {
    "partition": "int", "offset": "bigint", "timestamp_ms": "bigint", "key_hash": "bigint",
    "key_bytes": "int", "value_bytes": "int",
}  # fmt: skip
# Equal records of a bucket, how many of them were counted on each side, and the first of the
# source. Null hashes stand for all that match.
SCHEMA = f"{BUCKET_SCHEMA}, h1 bigint, h2 bigint, n_source bigint, n_target bigint, " + ", ".join(
    f"{name} {kind}" for name, kind in _FIRST.items()
)
# What the slices of a bucket say of it: records of the source that were counted, and those of them
# that are not on the target.
FOUND_SCHEMA = f"{BUCKET_SCHEMA}, counted bigint, lost bigint"
LOST = "greatest(n_source - n_target, 0L)"
# Of a pair, the source's record is lost too as far as hashes show.
PAIRED = ("corrupt_value", "corrupt_headers", "altered_timestamp", "moved")


def count(
    session: SparkSession, records: DataFrame, bounds: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Count the records of some slices. Out: :data:`SCHEMA`.

    :param records: with lanes, :func:`frames.align.place`.
    :param bounds: rows of :data:`BOUNDS_SCHEMA`; records outside of them do not count.
    """
    within = F.broadcast(table(session, BOUNDS_SCHEMA, bounds))
    hashed = (
        records.join(within, on=[*BUCKET, "side", "origin", "partition"], how="inner")
        .filter("offset >= start and offset < end")
        .select(
            *BUCKET, "side", "partition", "offset",
            fingerprint.timestamp_ms().alias("timestamp_ms"),
            *(fingerprint.hashes()[name].alias(name) for name in ("h1", "h2", "key_hash")),
            *named({"key_bytes": "length(key)", "value_bytes": "length(value)"}),
        )
    )  # fmt: skip
    sums = {name: f"count_if(side = '{name[2:]}')" for name in ("n_source", "n_target")}
    first = f"min(if(side = 'source', struct({', '.join(_FIRST)}), null))"
    return _columns(hashed.groupBy(*BUCKET, "h1", "h2").agg(*named({**sums, "first": first})))


def add(earlier: DataFrame, new: DataFrame) -> DataFrame:
    """Add what was counted to what is known; both :data:`SCHEMA`, and so is what comes out."""
    sums = {name: f"sum({name})" for name in ("n_source", "n_target")}
    first = f"min(if(offset is null, null, struct({', '.join(_FIRST)})))"
    added = _columns(
        earlier.unionByName(new).groupBy(*BUCKET, "h1", "h2").agg(*named({**sums, "first": first}))
    )
    matches = "n_source = n_target"
    hidden = derived(
        added,
        {name: f"if({matches}, null, {name})" for name in ("h1", "h2", *_FIRST)},
    )
    return _columns(hidden.groupBy(*BUCKET, "h1", "h2").agg(*named({**sums, "first": first})))


def by_bucket(rows: DataFrame) -> DataFrame:
    """Records that slices counted of each bucket: :data:`FOUND_SCHEMA`.

    :param rows: :data:`SCHEMA`.
    """
    sums = {"counted": "sum(n_source)", "lost": f"sum({LOST})"}
    return rows.groupBy(*BUCKET).agg(*named(sums))


def outcome(statuses: DataFrame, sliced: DataFrame, run_id: str) -> DataFrame:
    """Results of each bucket, with the losses that its slices show.

    Classes that only a closed bucket can be classified by stay what they were; a record that
    arrived altered is among the lost ones until then.

    :param statuses: :func:`frames.status.statuses`.
    :param sliced: :data:`FOUND_SCHEMA`, of the buckets that count.
    :returns: :data:`frames.status.RESULTS_SCHEMA`.
    """
    once = {name: f"{name} + accounted_{name}" for name in ACCOUNTABLE}
    columns = {name: once.get(name, name) for name in CLASSES} | {
        name: name for name in status.BESIDE
    }
    paired = " - ".join(columns[name] for name in PAIRED)
    return statuses.join(F.broadcast(sliced), on=list(BUCKET), how="inner").select(
        *BUCKET,
        *named({"pair": status.SLICED_PAIR}),
        F.lit(run_id).alias("run_id"),
        *named(
            columns
            | {
                "missing": f"greatest(lost - {paired}, 0L)",
                "in_flight": "greatest(n_source - counted, 0L)",
            }
            | {f"new_{name}": name for name in ACCOUNTABLE}
        ),
    )


def samples(rows: DataFrame) -> DataFrame:
    """At most :data:`SAMPLES` lost records per topic, as of :func:`frames.classify.samples`.

    :param rows: :data:`SCHEMA`.
    """
    order = Window.partitionBy("flow", "topic").orderBy("timestamp_ms", "offset")
    return (
        rows.filter(f"{LOST} > 0")
        .withColumn("rank", F.row_number().over(order))
        .filter(F.col("rank") <= SAMPLES)
        .select(
            "flow", "topic", F.lit("missing").alias("class"), F.lit("source").alias("side"),
            "partition", "offset", "timestamp_ms",
            fingerprint.text(rows, "key_hash").alias("key_hash"),
            fingerprint.text(rows, "h1", "h2").alias("record_hash"),
            "key_bytes", "value_bytes",
        )
    )  # fmt: skip


def _columns(grouped: DataFrame) -> DataFrame:
    return grouped.select(*BUCKET, "h1", "h2", "n_source", "n_target", "first.*")
