"""Digest bundles: the rows of one side of a flow, and those of both held against each other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mirror_report.config import Settings
from mirror_report.parity.frames import bundles, digest
from mirror_report.parity.plan import Range, Unread
from mirror_report.parity.spark.records import Reader
from mirror_report.parity.state import Bundle, Widths


def write_rows(
    session: SparkSession,
    settings: Settings,
    ranges: Sequence[Range],
    path: Path,
    progress: Callable[[str], None],
) -> Unread:
    """Write digest rows of some ranges of one side of a flow: :data:`frames.digest.COLUMNS`.

    :param path: a directory to be made.
    :returns: what has no rows, because it cannot be read.
    """
    # A bundle holds what a mirror copies: that does not wait for transactions.
    flows = tuple(
        replace(flow, source_isolation="read_uncommitted", target_isolation="read_uncommitted")
        for flow in settings.flows
    )
    reader = Reader(replace(settings, flows=flows), session, progress)

    def write() -> None:
        rows = digest.digest(reader.bucketed(ranges, Widths(settings.bucket_seconds * 1000)))
        rows.coalesce(1).write.mode("overwrite").parquet(str(path))

    reader.read(write)
    return reader.unread


def compare_rows(
    session: SparkSession, files: Sequence[Path], source: Bundle, target: Bundle, most: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Hold two bundles against each other.

    :param files: their rows, unpacked; at least one file.
    :param most: buckets that are named at most.
    :returns: :func:`frames.bundles.summarise`, and rows of :func:`frames.bundles.statuses` that
        differ.
    """
    rows = session.read.schema(digest.SCHEMA).parquet(*(str(file) for file in files))
    statuses = bundles.statuses(session, rows, source, target).persist()
    summaries = [row.asDict() for row in bundles.summarise(statuses).collect()]
    differing = (
        statuses.filter("status = 'mismatch'").orderBy("topic", "bucket", "lane").limit(most)
    )
    return summaries, [row.asDict() for row in differing.collect()]
