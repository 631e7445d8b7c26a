"""Which bucket a record gets: by its time, by offsets, or by what it holds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from parity_records import MINUTE, Record, frame
from pyspark.sql import SparkSession

from mirror_report.parity.frames import align, digest
from mirror_report.parity.frames.sql import table
from mirror_report.parity.state import Widths

TIME = 1_700_000_000_000
# Spans of very different widths, some of them within one block of offsets and some across many.
BOUNDS = (10, 11, 500, 4096, 4100, 9000, 50_000)
LABELS = {start: TIME + number for number, start in enumerate(BOUNDS[:-1])}


def label(offset: int) -> int | None:
    return next((LABELS[a] for a, b in itertools.pairwise(BOUNDS) if a <= offset < b), None)


RECORDS = [
    Record(flow, "source", 0, offset, (b"k", b"%d" % offset, TIME + offset, None))
    for flow in ("cut", "timed", "open")
    for offset in (0, 9, 10, 11, 12, 499, 500, 4095, 4096, 4099, 4100, 8191, 8192, 49_999, 50_000)
]


@pytest.fixture(scope="module")
def spans(spark: SparkSession) -> Any:
    rows = [
        {"flow": "cut", "side": "source", "origin": "t", "partition": 0, "span_start": a,
         "span_end": b, "label": LABELS[a]}
        for a, b in itertools.pairwise(BOUNDS)
    ]  # fmt: skip
    nothing = {**rows[0], "flow": "open", "span_start": 0, "span_end": 0, "label": 0}
    return table(spark, align.SPANS_SCHEMA, [*rows, nothing])


def test_offsets_choose_the_bucket_where_a_log_is_cut_and_times_elsewhere(
    spark: SparkSession, spans: Any
) -> None:
    found = align.place(frame(spark, RECORDS), Widths(MINUTE), spans).collect()
    assert len(found) == len(RECORDS)
    for row in found:
        time = TIME + row["offset"]
        expected: dict[str, tuple[Any, Any]] = {
            "cut": (label(row["offset"]), None),
            "open": (None, None),
            "timed": (time - time % MINUTE, time),
        }
        assert (row["bucket"], row["compared_ms"]) == expected[row["flow"]], row


def test_digests_follow_their_records_into_the_bucket_that_is_left(
    spark: SparkSession, spans: Any
) -> None:
    digested = digest.digest(align.place(frame(spark, RECORDS), Widths(MINUTE), spans))
    # The cuts at 11 and 4100 are gone, and with the first of all what lies before 500.
    fewer = table(
        spark, align.SPANS_SCHEMA,
        [
            {"flow": "cut", "side": "source", "origin": "t", "partition": 0, "span_start": a,
             "span_end": b, "label": LABELS[a]}
            for a, b in ((500, 4096), (4096, 9000), (9000, 50_000))
        ],
    )  # fmt: skip
    rows = digest.merge(align.realign(digested.filter("bucket is not null"), fewer)).collect()
    found = {(row["flow"], row["bucket"]): row for row in rows}
    assert {key: row["n"] for key, row in found.items() if key[0] == "cut"} == {
        ("cut", LABELS[500]): 2, ("cut", LABELS[4096]): 5, ("cut", LABELS[9000]): 1,
    }  # fmt: skip
    at = LABELS[4096]
    assert (found["cut", at]["off_min"], found["cut", at]["off_max"]) == (4096, 8192)
    assert found["cut", at]["ts_max"] in (at, LABELS[4100]), "such a bucket has the time of its cut"
    assert sum(row["n"] for key, row in found.items() if key[0] == "timed") == 15


def test_hashes_choose_the_bucket_of_topics_at_rest(spark: SparkSession) -> None:
    twins = [
        replace(record, flow="f", topic=topic, side=side, content=(*record.content[:2], time, None))
        for record in RECORDS[:15]
        for topic in ("timed", "untimed")
        for side, time in (("source", TIME), ("target", TIME + 1))
    ]
    rows = align.place_by_hash(frame(spark, twins), ["untimed"], 16).collect()
    for row in rows:
        assert 0 <= row["bucket"] < 16
        assert (row["compared_ms"] is None) == (row["topic"] == "untimed")
    buckets: dict[Any, set[int]] = {}
    for row in rows:
        buckets.setdefault((row["topic"], row["offset"]), set()).add(row["bucket"])
    assert all(len(some) == 1 for (topic, _), some in buckets.items() if topic == "untimed")
    assert any(len(some) == 2 for (topic, _), some in buckets.items() if topic == "timed")
