"""The lab's verifier counts every kind of difference, and nothing else."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load() -> ModuleType:
    path = Path(__file__).parents[1] / "lab/tools/ledger.py"
    spec = importlib.util.spec_from_file_location("ledger", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["ledger"] = module
    spec.loader.exec_module(module)
    return module


ledger = load()
NOW = 1_700_000_000_000


def sequence(number):
    return f"0a1b2c3d-0-{number}"


def records(count):
    return [ledger.make(sequence(n), n, NOW + n) for n in range(count)]


def acknowledged(made):
    return [
        ledger.Acknowledged(sequence(n), "t", 0, n, r.timestamp_ms, r.key, ledger.checksum(r))
        for n, r in enumerate(made)
    ]


def found(made):
    return [
        ledger.Found("t", 1, 10 + n, ledger.sequence_of(r), ledger.checksum(r))
        for n, r in enumerate(made)
    ]


def counts(log, there):
    result = ledger.compare(["t"], log, there)[0]
    return result.lost, result.duplicated, result.altered, result.foreign


def test_every_kind_of_record_is_made():
    made = records(20)
    assert any(r.key is None for r in made)
    assert any(r.key == b"" for r in made)
    assert any(r.value is None for r in made)
    assert any(r.value == b"" for r in made)
    assert any(value is None for r in made for _, value in r.headers)
    sizes = [len(r.value) for r in made if r.value]
    assert min(sizes) == 100
    assert max(sizes) == 8192
    assert 900 < sum(sizes) / len(made) < 1600


def test_a_record_names_its_sequence_unless_it_is_not_ours():
    for number, record in enumerate(records(40)):
        assert ledger.sequence_of(record) == sequence(number)
    assert ledger.sequence_of(ledger.Record(b"k", b"hello world", (), NOW)) is None


def test_the_same_records_in_any_place_and_order_are_whole():
    made = records(100)
    assert counts(acknowledged(made), reversed(found(made))) == (0, 0, 0, 0)


def test_a_left_out_record_is_lost():
    made = records(100)
    assert counts(acknowledged(made), found(made[:40] + made[43:])) == (3, 0, 0, 0)


def test_a_copy_in_another_partition_is_moved_and_the_topic_whole():
    made = records(100)
    there = [dataclasses.replace(each, partition=0) for each in found(made)]
    there += [dataclasses.replace(each, partition=1) for each in there[:2]]
    result = ledger.compare(["t"], acknowledged(made), there)[0]
    assert (result.moved, result.duplicated, result.whole) == (2, 2, True)


def test_a_repeated_record_is_duplicated_once_per_extra_copy():
    made = records(100)
    assert counts(acknowledged(made), found(made + made[:2] + made[:1])) == (0, 3, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp_ms": NOW - 1},
        {"key": None},
        {"headers": (("x", b"1"),)},
        {"headers": (("x", None),)},
    ],
)
def test_a_changed_record_is_altered_and_neither_lost_nor_foreign(change):
    made = records(100)
    bent = [dataclasses.replace(made[0], **change), *made[1:]]
    assert counts(acknowledged(made), found(bent)) == (0, 0, 1, 0)


def test_a_record_of_somebody_else_is_foreign():
    made = records(100)
    other = ledger.Record(b"k", b"v", (), NOW)
    assert counts(acknowledged(made), found([*made, other])) == (0, 0, 0, 1)


def test_null_and_empty_are_different():
    base = ledger.Record(None, None, (("h", None),), NOW)
    variants = [
        base,
        dataclasses.replace(base, key=b""),
        dataclasses.replace(base, value=b""),
        dataclasses.replace(base, headers=(("h", b""),)),
        dataclasses.replace(base, headers=()),
    ]
    assert len({ledger.checksum(record) for record in variants}) == len(variants)


def test_the_log_is_read_back_and_a_half_written_line_is_left_out():
    log = acknowledged(records(20))
    lines = [ledger.to_line(entry) for entry in log]
    lines[-1] = lines[-1].rstrip("\n")
    assert list(ledger.from_lines(lines)) == log[:-1]


def test_topics_are_compared_apart():
    made = records(10)
    log = acknowledged(made)
    there = [dataclasses.replace(each, topic="other") for each in found(made)]
    first, second = ledger.compare(["t", "other"], log, there)
    assert (first.lost, first.foreign) == (10, 0)
    assert (second.lost, second.foreign) == (0, 10)
