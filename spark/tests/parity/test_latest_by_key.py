"""The latest record of each key on one side against that on the other, in one job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from parity_records import KEPT, Record, placed
from pyspark.sql import SparkSession

from mirror_report.parity.frames import compare, latest_by_key
from mirror_report.parity.frames.sql import table

TIME = 1_700_000_000_000


def log(side: str, *values: tuple[str, str | None], start: int = 0) -> list[Record]:
    """Records of one partition: (key, value or None for a tombstone), one a second."""
    return [
        Record("f", side, 0, at, (key.encode(), value and value.encode(), TIME + at * 1000, None))
        for at, (key, value) in enumerate(values, start)
    ]  # fmt: skip


def altered(record: Record, **content: Any) -> Record:
    names = ("key", "value", "timestamp", "headers")
    values = dict(zip(names, record.content, strict=True)) | content
    return replace(record, content=tuple(values[name] for name in names))  # type: ignore[arg-type]


FULL = log("source", ("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("c", None), ("b", "2"))
COPY = [replace(record, side="target") for record in FULL]
CLEAN = [record for record in COPY if record.offset in (2, 4, 5)]  # what compaction leaves
NO_TOMBSTONE = [record for record in COPY if record.offset in (2, 5)]
LATEST = [record for record in FULL if record.offset in (2, 4, 5)]
HEADER = (("h", b"1"),)
Place = dict[str, Any]
# Equal records that the source holds twice and the target once.
SAME = [
    Record("f", side, 0, at, (b"a", b"1", TIME, None))
    for side, at in (("source", 2), ("source", 5), ("target", 3))
]  # fmt: skip

CASES: dict[str, tuple[list[Record], dict[str, int]]] = {
    "nothing compacted": ([*FULL, *COPY], {"verified": 2, "absent": 1}),
    "target compacted": ([*FULL, *CLEAN], {"verified": 2, "absent": 1}),
    "source compacted": ([*LATEST, *COPY], {"verified": 2, "absent": 1}),
    "tombstone gone from the target": ([*FULL, *NO_TOMBSTONE], {"verified": 2, "absent": 1}),
    "tombstone gone from the source": (
        [*(record for record in LATEST if record.offset != 4), *COPY], {"verified": 2, "absent": 1},
    ),
    "missing key": (
        [*FULL, *(record for record in COPY if record.content[0] != b"a")],
        {"missing": 1, "verified": 1, "absent": 1},
    ),
    "stale value": (
        [*FULL, *(record for record in COPY if record.offset != 2)],
        {"corrupt_value": 1, "verified": 1, "absent": 1},
    ),
    "stale although deleted": (
        [*FULL, *(record for record in COPY if record.offset != 4)], {"missing": 1, "verified": 2},
    ),
    "another value": (
        [*FULL, *(altered(record, value=b"?") if record.offset == 2 else record
                  for record in COPY)],
        {"corrupt_value": 1, "verified": 1, "absent": 1},
    ),
    "another header": (
        [*FULL, *(altered(record, headers=HEADER) if record.offset == 2 else record
                  for record in COPY)],
        {"corrupt_headers": 1, "verified": 1, "absent": 1},
    ),
    "another time": (
        [*FULL, *(altered(record, timestamp=TIME + 2500) if record.offset == 2 else record
                  for record in COPY)],
        {"altered_timestamp": 1, "verified": 1, "absent": 1},
    ),
    "another time of a record that was lost": (
        [*FULL, *(altered(record, timestamp=TIME + 2500) if record.offset == 2 else record
                  for record in COPY)],
        {"missing": 1, "verified": 1, "absent": 1},
    ),
    "another time of a later record than that which was lost": (
        [*FULL, *(altered(record, timestamp=TIME + 2500) if record.offset == 2 else record
                  for record in COPY)],
        {"altered_timestamp": 1, "verified": 1, "absent": 1},
    ),
    "a former record of equal content": (
        [*FULL, *(altered(record, value=b"2") if record.offset == 0 else record
                  for record in COPY if record.offset != 2)],
        {"missing": 1, "verified": 1, "absent": 1},
    ),
    "a former record, equal to the timestamp": (SAME, {"missing": 1}),
    "a former record, as far as is known": (SAME, {"verified": 1}),
    "a copy made after the record": (SAME, {"verified": 1}),
    "mended by its own copy": ([*FULL, *COPY], {"verified": 2, "absent": 1}),
    "foreign key": (
        [*FULL, *COPY, *log("target", ("alien", "1"), start=9)],
        {"extra": 1, "verified": 2, "absent": 1},
    ),
    "repeated": ([*FULL, *COPY, *(replace(record, offset=record.offset + 6) for record in COPY)],
                 {"verified": 2, "absent": 1}),
    "not mirrored yet": (
        [*FULL, *log("source", ("a", "3"), ("d", "1"), start=20), *COPY],
        {"verified": 1, "in_flight": 2, "absent": 1},
    ),
    "mirrored before the baseline": (
        [*FULL, *COPY[3:]], {"skipped": 1, "verified": 1, "absent": 1},
    ),
    "older on the target": (
        [*FULL, *COPY, *log("target", ("old", "1"), start=9)],
        {"skipped": 1, "verified": 2, "absent": 1},
    ),
    "expired on the target": (
        [*FULL, *(record for record in COPY if record.content[0] != b"a")],
        {"expired": 1, "verified": 1, "absent": 1},
    ),
    "expired on the source": (
        [*(record for record in FULL if record.content[0] != b"a"), *COPY],
        {"expired": 1, "verified": 1, "absent": 1},
    ),
    "expired on the target, or lost": (
        [record for record in FULL + COPY
         if (record.side, record.content[0]) not in {("target", b"a"), ("target", b"b")}],
        {"unverifiable": 1, "missing": 1, "absent": 1},
    ),
    "as old as what expired, in a log that did not move": (
        [*FULL, *(record for record in COPY if record.content[0] != b"a")],
        {"missing": 1, "verified": 1, "absent": 1},
    ),
    "in two partitions": (
        [*FULL, *COPY, replace(COPY[0], partition=1)],
        {"unverifiable": 1, "verified": 1, "absent": 1},
    ),
}  # fmt: skip
"""Records of both sides, and how many keys are of which class."""

POSITION = 20
FLOORS = {"mirrored before the baseline": ("source", 3), "older on the target": ("target", 10)}
RETAINED: dict[str, dict[str, Any]] = {
    "expired on the target": {"side": "source", "gone": 3, "kept": 3},
    "expired on the source": {"side": "target", "gone": 3, "kept": 3},
    "expired on the target, or lost": {"side": "source", "gone": 1, "kept": 4},
    "as old as what expired, in a log that did not move": {
        "side": "source", "partition": 1, "gone": 3, "kept": 3,
    },
}  # fmt: skip
"""Where retention was at work: which side's records lack their partner, and up to where."""

ENDS = {
    "a former record, equal to the timestamp": ((1, 2, 4, 5), (1, 3, 5, 6)),
    "a former record, as far as is known": ((1, 4), (1, 6)),
    "a copy made after the record": ((1, 3), (1, 5)),
}
"""Ends of the target at some moments, and of the source after them."""
# Case -> offset of the record of ``a`` that the target was found to lack.
LOST = {
    "another time of a record that was lost": 2,
    "another time of a later record than that which was lost": 0,
    "mended by its own copy": 2,
}


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> dict[str, Any]:
    """Class -> keys of every case, and the samples of all of them."""
    records, places, retained = [], [], []
    for case, (some, _) in CASES.items():
        for flow in (case, f"{KEPT} {case}"):
            records += [replace(record, flow=flow) for record in some]
            if case in RETAINED:
                where = {"flow": flow, "topic": "t", "origin": "t", "partition": 0}
                retained.append({**where, "expired_ms": TIME + 5000, **RETAINED[case]})
            places += [
                {
                    "flow": flow, "side": side, "origin": "t", "partition": partition,
                    "floor": FLOORS[case][1] if FLOORS.get(case, ("", 0))[0] == side else 0,
                    "position": POSITION if side == "source" else None,
                }
                for side in ("source", "target")
                for partition in (0, 1)
            ]  # fmt: skip
    kept = sorted({record.flow for record in records if record.flow.startswith(KEPT)})
    keys = latest_by_key.by_key(
        compare.with_lanes(placed(spark, records), kept),
        table(spark, latest_by_key.PLACES_SCHEMA, places),
    )
    hashes = latest_by_key.with_keys(
        compare.with_lanes(placed(spark, [replace(FULL[0], flow=flow) for case in LOST
                                          for flow in (case, f"{KEPT} {case}")]), kept)
    ).select(*latest_by_key.KEY)  # fmt: skip
    keys = latest_by_key.with_history(
        keys,
        table(spark, latest_by_key.ENDS_SCHEMA, [
            {"flow": flow, "topic": "t", "side": side, "origin": "t", "partition": 0,
             "ends": list(ends)}
            for case, both in ENDS.items() for flow in (case, f"{KEPT} {case}")
            for side, ends in zip(("target", "source"), both, strict=True)
        ]),
        table(spark, latest_by_key.LOST_SCHEMA, [
            {**row.asDict(), "lost_origin": "t", "lost_partition": 0,
             "lost_offset": LOST[row["flow"].removeprefix(f"{KEPT} ")]}
            for row in hashes.collect()
        ]),
    )  # fmt: skip
    collapsed = latest_by_key.with_retention(
        latest_by_key.collapse(latest_by_key.with_class(keys)),
        table(spark, latest_by_key.RETAINED_SCHEMA, retained),
    ).persist()
    changed = latest_by_key.with_keys(
        compare.with_lanes(
            placed(
                spark,
                [
                    replace(record, flow=flow)
                    for flow, side in (
                        ("stale value", "source"),
                        ("missing key", "source"),
                        (f"{KEPT} missing key", "target"),
                    )
                    for record in log(side, ("a", "3"))
                ],
            ),
            kept,
        )
    ).select(*latest_by_key.KEY, "side")
    found = {
        "new": [
            row.asDict()
            for row in latest_by_key.count(
                latest_by_key.without(collapsed, changed, new=True)
            ).collect()
        ],
        "counts": [row.asDict() for row in latest_by_key.count(collapsed).collect()],
        "samples": [row.asDict() for row in latest_by_key.samples(collapsed).collect()],
        "changed": [
            row.asDict()
            for row in latest_by_key.count(latest_by_key.without(collapsed, changed)).collect()
        ],
    }
    collapsed.unpersist()
    return found


def keys_of(rows: list[dict[str, Any]], flow: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        if row["flow"] == flow:
            found[row["class"]] = found.get(row["class"], 0) + row["keys"]
    return found


@pytest.mark.parametrize("case", CASES)
def test_each_key_is_what_its_latest_records_say(results: dict[str, Any], case: str) -> None:
    assert keys_of(results["counts"], case) == CASES[case][1]


@pytest.mark.parametrize("case", CASES)
def test_where_partitions_are_kept_each_has_its_own_keys(
    results: dict[str, Any], case: str
) -> None:
    expected = CASES[case][1]
    if case == "in two partitions":  # there it is a record that the source's partition never had
        expected = {"extra": 1, "verified": 2, "absent": 1}
    assert keys_of(results["counts"], f"{KEPT} {case}") == expected


def test_numbers_are_of_keys_that_have_a_value(results: dict[str, Any]) -> None:
    def total(case: str, name: str) -> int:
        return sum(row[name] or 0 for row in results["counts"] if row["flow"] == case)

    sides: Callable[[str], tuple[int, int]] = lambda case: (  # noqa: E731
        total(case, "source_keys"), total(case, "target_keys"),
    )  # fmt: skip
    assert sides("nothing compacted") == (2, 2)
    assert sides("missing key") == (2, 1)
    assert sides("foreign key") == (2, 3)
    assert sides("stale although deleted") == (2, 3)


def test_what_was_lost_and_has_come_is_counted(results: dict[str, Any]) -> None:
    repaired = {row["flow"]: row["repaired"] for row in results["counts"] if row["repaired"]}
    case = "mended by its own copy"
    assert repaired == {case: 1, f"{KEPT} {case}": 1}


def test_a_key_that_changed_while_it_was_read_is_in_flight(results: dict[str, Any]) -> None:
    assert keys_of(results["changed"], "stale value") == {
        "in_flight": 1,
        "verified": 1,
        "absent": 1,
    }
    assert keys_of(results["changed"], "another value") == CASES["another value"][1]


def test_of_new_keys_one_that_the_target_lacks_is_missing_unless_it_came_meanwhile(
    results: dict[str, Any],
) -> None:
    in_flight = {"in_flight": 1, "verified": 1, "absent": 1}
    assert keys_of(results["changed"], "missing key") == in_flight
    assert keys_of(results["new"], "missing key") == CASES["missing key"][1]
    assert keys_of(results["new"], f"{KEPT} missing key") == in_flight
    assert keys_of(results["new"], "stale value") == in_flight


def test_samples_show_both_sides_of_what_is_wrong(results: dict[str, Any]) -> None:
    def shown(case: str) -> set[tuple[str, str, int]]:
        return {
            (row["class"], row["side"], row["offset"])
            for row in results["samples"]
            if row["flow"] == case
        }

    assert shown("stale value") == {("corrupt_value", "source", 2), ("corrupt_value", "target", 0)}
    assert shown("missing key") == {("missing", "source", 2)}
    assert shown("foreign key") == {("extra", "target", 9)}
    assert shown("not mirrored yet") == shown("nothing compacted") == set()
