"""Records that the Python client cannot read: their partition is named, and no other is harmed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_report.kafka import guarded
from mirror_report.kafka.connection import ClusterError, UnreadableError
from mirror_report.kafka.guarded import Guarded
from mirror_report.model import Place

PLACES: dict[Place, int] = {("t", number): number * 10 for number in range(8)}


def poisoned_by(*wrong: int, how: Any) -> Any:
    def read(some: Mapping[Place, int]) -> Guarded[int]:
        if any(number in wrong for _, number in some):
            how()
        return Guarded({place: offset + 1 for place, offset in some.items()})

    return read


def hungry() -> None:
    bytearray(2 * guarded.MEMORY_BYTES)


def foreign() -> None:
    b"\xff".decode()


def gone() -> None:
    os._exit(7)


def unreadable() -> None:
    raise UnreadableError("failed crc check")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (hungry, "takes more memory"),
        (foreign, "the client cannot read it (UnicodeDecodeError"),
        (gone, "could not be read in time, or within the memory"),
        (unreadable, "failed crc check"),
    ],
)
def test_a_partition_that_cannot_be_read_is_named_and_the_others_are_read(
    how: Any, why: str
) -> None:
    found = guarded.each(poisoned_by(3, 6, how=how), PLACES, 5)
    assert found.answers == {
        place: offset + 1 for place, offset in PLACES.items() if place[1] not in (3, 6)
    }
    assert found.failed.keys() == {("t", 3), ("t", 6)}
    assert all(why in text for text in found.failed.values())


def test_one_that_never_answers_costs_a_bounded_time() -> None:
    begun = time.monotonic()
    found = guarded.each(poisoned_by(2, how=lambda: time.sleep(60)), PLACES, 0.3)
    assert time.monotonic() - begun < 5
    assert ("t", 2) in found.failed
    assert found.answers.keys().isdisjoint(found.failed)
    assert found.answers.keys() | found.failed.keys() == PLACES.keys(), "each is named"


def test_a_refusal_is_the_one_of_the_cluster() -> None:
    def refuse(_: Any) -> Guarded[int]:
        raise ClusterError("cluster east: no", "Grant READ")

    with pytest.raises(ClusterError, match="cluster east: no") as caught:
        guarded.each(refuse, PLACES, 5)
    assert caught.value.action == "Grant READ"


def test_a_partition_that_the_reader_itself_names_costs_the_others_nothing() -> None:
    def read(some: Mapping[Place, int]) -> Guarded[int]:
        assert len(some) == 2, "it is asked once, for both"
        return Guarded({("t", 0): 1}, {("t", 1): "failed crc check"})

    found = guarded.each(read, {("t", 0): 0, ("t", 1): 0}, 5)
    assert (found.answers, found.failed) == ({("t", 0): 1}, {("t", 1): "failed crc check"})


def test_nothing_asked_starts_no_child() -> None:
    def never(_: Any) -> Guarded[int]:
        raise AssertionError

    assert guarded.each(never, {}, 5).answers == {}


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 7), max_size=3))
def test_every_partition_is_answered_or_named(wrong: set[int]) -> None:
    found = guarded.each(poisoned_by(*wrong, how=foreign), PLACES, 5)
    assert {number for _, number in found.failed} == wrong
    assert {number for _, number in found.answers} == {number for _, number in PLACES} - wrong
