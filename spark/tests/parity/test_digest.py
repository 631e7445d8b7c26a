"""Digests against plain arithmetic: additive, exact, the same under ANSI and without."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from parity_records import MASK, MINUTE, Record, digests, placed, record_hash, xxh64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.parity import FINGERPRINT_VERSION
from mirror_report.parity.frames import digest, fingerprint

BATCH = settings(
    max_examples=2,
    # Shrinking would run Spark hundreds of times; the failing case is printed as it is.
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                           HealthCheck.data_too_large, HealthCheck.large_base_example],
)  # fmt: skip

blobs = st.one_of(st.none(), st.binary(max_size=40))
headers = st.one_of(
    st.none(),
    st.lists(st.tuples(st.sampled_from(["", "a", "é"]), blobs), max_size=3).map(tuple),
)
contents = st.tuples(blobs, blobs, st.integers(-1, 3 * MINUTE), headers)
multisets = st.lists(
    st.tuples(st.sampled_from(["source", "target"]), st.integers(0, 2), contents), max_size=25
)


def numbered(cases: list[list[tuple[str, int, Any]]], seed: int = 0) -> list[Record]:
    """Give every record of every case an offset, as its partition's log would."""
    far = random.Random(seed)  # noqa: S311
    found = []
    for number, case in enumerate(cases):
        ends = {(side, p): far.choice([0, 7, 1 << 40]) for side in ("source", "target")
                for p in range(3)}  # fmt: skip
        for side, partition, content in case:
            found.append(Record(f"f{number}", side, partition, ends[side, partition], content))
            ends[side, partition] += 1
    return found


def rows(found: DataFrame) -> dict[tuple[str, str, int, int], dict[str, int]]:
    """Digest rows as the oracle writes them."""
    result = {}
    for row in found.collect():
        plain = row.asDict()
        for name in digest.SUMS_64:
            low, high = plain.pop(f"{name}_lo"), plain.pop(f"{name}_hi")
            assert 0 <= low < 1 << 32, "halves are normalised"
            assert 0 <= high < 1 << 32, "halves are normalised"
            plain[name] = high << 32 | low
        plain["x1"] &= MASK
        plain["x2"] &= MASK
        assert plain.pop("topic") == plain.pop("origin") == "t"
        key = tuple(plain.pop(name) for name in ("flow", "side", "partition", "bucket"))
        assert key not in result, "one row per key"
        result[key] = plain
    return result


def test_the_oracle_computes_xxh64() -> None:
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert xxh64(b"a", 0) == 0xD24EC4F1A98C6E5B
    assert xxh64(b"as", 0) == 0x1C330FB2D66BE179
    assert xxh64(bytes(range(100)), 7) == xxh64(bytearray(range(100)), 7)


GOLDEN: list[tuple[Any, int, int]] = [
    ((b"key", b"value", 1_700_000_000_123, None), 0xBCA864B2D53E2CED, 0x517FD743E323C16B),
    ((None, None, -1, None), 0x10F43641127A5B96, 0x978D30D9EF9F36CF),
    (
        (b"", b"", 0, (("h", None), ("h", b""), ("", b"\x00" * 40))),
        0xB1271C71BF0F400F,
        0xEADC02ED42C8BE29,
    ),
]


def test_the_encoding_has_not_changed(spark: SparkSession) -> None:
    """A change here makes every stored digest worthless: raise FINGERPRINT_VERSION with it."""
    found = (
        placed(
            spark,
            [Record("f", "source", 0, i, content) for i, (content, _, _) in enumerate(GOLDEN)],
        )
        .select("offset", *(fingerprint.record_hash(s).alias(f"h{s}") for s in (1, 2)))
        .orderBy("offset")
        .collect()
    )
    assert FINGERPRINT_VERSION == 2
    assert [(row.h1 & MASK, row.h2 & MASK) for row in found] == [(h1, h2) for _, h1, h2 in GOLDEN]
    for content, h1, h2 in GOLDEN:
        assert (record_hash(content, 1), record_hash(content, 2)) == (h1, h2)


LOOKALIKES: list[Any] = [
    (None, b"a", 0, None),
    (b"a", None, 0, None),
    (b"", b"a", 0, None),
    (b"a", b"", 0, None),
    (b"ab", b"c", 0, None),
    (b"a", b"bc", 0, None),
    (b"a", b"bc", 1, None),
    (b"a", b"bc", 1, ()),
    (b"a", b"bc", 1, (("", None),)),
    (b"a", b"bc", 1, (("", b""),)),
    (b"a", b"bc", 1, (("h", b"v"),)),
    (b"a", b"bc", 1, (("h", b"v"), ("h", b"v"))),
    (b"a", b"bc", 1, (("hv", b""),)),
    (b"a", b"bc", 1, (("x", b"1"), ("y", b"2"))),
    (b"a", b"bc", 1, (("y", b"2"), ("x", b"1"))),
    (None, None, 0, None),
    (b"", b"", 0, None),
    # xxhash64 passes over nulls: a value may stand where the next name does.
    *(
        (b"a", b"bc", 1, headers)
        for headers in itertools.product(
            itertools.product("ab", (None, b"", b"a", b"b", b"A", b"B", b"\x01")), repeat=2
        )
    ),
]


def test_records_that_look_alike_have_different_fingerprints(spark: SparkSession) -> None:
    found = (
        placed(
            spark, [Record("f", "source", 0, i, content) for i, content in enumerate(LOOKALIKES)]
        )
        .select(*(fingerprint.record_hash(seed) for seed in (1, 2)))
        .collect()
    )
    for column in (0, 1):
        assert len({row[column] for row in found}) == len(LOOKALIKES)


@BATCH
@given(cases=st.lists(multisets, min_size=20, max_size=40))
def test_a_digest_is_what_arithmetic_says(
    spark: SparkSession, dialect: str, cases: list[list[tuple[str, int, Any]]]
) -> None:
    records = numbered(cases)
    # As a run reads them: each side by itself.
    sides = [placed(spark, [each for each in records if each.side == side])
             for side in ("source", "target")]  # fmt: skip
    assert rows(digest.digest(digest.union(sides))) == digests(records), dialect


@BATCH
@given(
    cases=st.lists(multisets, min_size=20, max_size=40), pieces=st.integers(2, 5), data=st.data()
)
def test_increments_cut_anyhow_add_up_to_one_shot(
    spark: SparkSession,
    dialect: str,
    cases: list[list[tuple[str, int, Any]]],
    pieces: int,
    data: st.DataObject,
) -> None:
    records = numbered(cases)
    shuffle = random.Random(data.draw(st.integers(0, 2**32)))  # noqa: S311
    parts: list[list[Record]] = [[] for _ in range(pieces)]
    for record in records:
        shuffle.choice(parts).append(record)
    increments = [digest.digest(placed(spark, part)) for part in parts]
    stepwise = increments[0]
    for increment in increments[1:]:
        stepwise = digest.merge(digest.union([stepwise, increment]))
    at_once = digest.merge(digest.union(increments))
    expected = digests(records)
    assert rows(stepwise) == expected, dialect
    assert rows(at_once) == expected, dialect


@pytest.mark.parametrize("count", [2, 3, 1000])
def test_sums_wrap_at_two_to_the_sixty_fourth(
    spark: SparkSession, dialect: str, count: int
) -> None:
    record = Record("f", "source", 0, 5, (b"k", b"v", 1, None))
    digested = digest.digest(placed(spark, [record]))
    extreme = digested.withColumns(
        {
            **{f"{name}_{half}": F.lit((1 << 32) - 1) for name in digest.SUMS_64
               for half in ("lo", "hi")},
        }
    )  # fmt: skip
    copies = extreme.crossJoin(spark.range(count).select()).select(*digest.COLUMNS)
    (merged,) = rows(digest.merge(copies)).values()
    for name in digest.SUMS_64:
        assert merged[name] == MASK * count % (1 << 64), dialect
    assert merged["n"] == count
