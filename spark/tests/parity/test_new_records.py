"""New records of compacted topics, between two scans: histories against what a dict knows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from parity_records import KEPT, Record, placed
from pyspark.sql import SparkSession

from mirror_report.parity.frames import compare, latest_by_key, new_records
from mirror_report.parity.frames.sql import table

TIME = 1_700_000_000_000
CASES = 300
KEYS = "abcdef"
SIDES = ("source", "target")
Lost = dict[str, dict[str, int]]
"""Key -> side -> offset of its record."""


@dataclass
class History:
    """One partition of a topic, and what its mirror copied; a record is a key and a value.

    Values come again; each record has a time of its own.

    :param source: by offset, as written; ``target``: offset of the source's record that each is a
        copy of.
    :param position: committed; ``copied``: how far the mirror really got.
    :param removed: offsets that compaction removed, by side.
    :param looked: below which an earlier look has looked.
    :param start: from which on the target is read.
    """

    flow: str
    chance: random.Random
    keeps_tombstones: bool
    source: list[tuple[str, str | None]] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    position: int = 0
    copied: int = 0
    removed: dict[str, set[int]] = field(default_factory=lambda: {side: set() for side in SIDES})
    looked: int = 0
    start: int = 0

    def go_on(self) -> None:
        """Write some records, and mirror some of what waits, but for what gets lost."""
        self.looked = self.position
        begun = len(self.target) if self.copied == self.position else self.start
        for _ in range(self.chance.randint(1, 15)):
            value = None if self.chance.random() < 0.2 else self.chance.choice("xy")
            self.source.append((self.chance.choice(KEYS), value))
        self.start = begun
        was, self.copied = self.copied, self.chance.randint(self.copied, len(self.source))
        self.target += [at for at in range(was, self.copied) if self.chance.random() < 0.8]
        if self.chance.random() < 0.2:  # it begins again before its commit
            again = self.chance.randint(self.position, self.copied)
            self.target += range(again, self.copied)
        self.position = self.chance.randint(self.position, self.copied)
        for side in SIDES:
            self._compact(side)

    def _compact(self, side: str) -> None:
        """Remove some of what has a later record of its key, and some tombstones.

        The source's only where nothing older is left, which they would bring back.
        """
        log = self.log(side)
        latest = {key: offset for offset, (key, _) in log}
        oldest = {key: offset for offset, (key, _) in reversed(log)}
        for offset, (key, value) in log:
            removable = oldest[key] == offset if side == "source" else not self.keeps_tombstones
            tombstone = value is None and removable
            if (latest[key] > offset or tombstone) and self.chance.random() < 0.4:
                self.removed[side].add(offset)

    def mend(self) -> None:
        """Copy some of what was lost again, at the end of the target."""
        for at in range(self.position):
            if at not in self.target and self.chance.random() < 0.2:
                self.target.append(at)

    def log(self, side: str) -> list[tuple[int, tuple[str, str | None]]]:
        """What is left of one side."""
        copies = range(len(self.source)) if side == "source" else self.target
        return [
            (offset, self.source[at])
            for offset, at in enumerate(copies)
            if offset not in self.removed[side]
        ]

    def records(self) -> Iterator[Record]:
        """What a look reads."""
        for side, start in (("source", self.looked), ("target", self.start)):
            for offset, (key, value) in self.log(side):
                if offset >= start:
                    at = self.target[offset] if side == "target" else offset
                    content = (key.encode(), value and value.encode(), TIME + at, None)
                    yield Record(self.flow, side, 0, offset, content)

    def expected(self, lost: Lost) -> dict[str, str]:
        """Key -> what it is.

        :param lost: what was wrong at the last look.
        """
        found = {}
        there = dict(self.log("source"))
        for key in KEYS:
            new = [at for at, (name, _) in there.items() if name == key and at >= self.looked]
            known = lost.get(key, {})
            below = [at for at in new if at < self.position]
            below += [known["source"]] if known else []
            later = any(at >= self.position for at in new)
            if below:
                copy = known.get("target")
                found[key] = self._class(key, max(below), copy, later=later)
            elif later:
                found[key] = "in_flight"
        return found

    def _class(self, key: str, latest: int, copy: int | None, *, later: bool) -> str:
        """What a key is whose latest source record is this one, by the copies that were made.

        :param copy: one that the last look saw.
        """
        value = self.source[latest][1]
        copies = [
            offset for offset, (name, _) in self.log("target")
            if name == key and offset >= self.start
        ]  # fmt: skip
        copies += [] if copy is None else [copy]
        if not copies:
            unknown = value is None and not self.keeps_tombstones
            return new_records.NOT_COMPARED if unknown else "missing"
        copied = self.target[max(copies)]
        newest = self.source[copied][1]
        if value is None and newest is None:
            return "absent"
        if copied == latest:
            return "verified"
        if later:
            return "in_flight"
        return "missing" if None in (value, newest) or value == newest else "corrupt_value"


def look(
    spark: SparkSession, histories: Iterable[History], lost: list[dict[str, Any]]
) -> tuple[dict[tuple[str, str], int], list[dict[str, Any]]]:
    """Keys of each flow and class, and those to find again."""
    histories = list(histories)
    kept = [history.flow for history in histories if history.flow.startswith(KEPT)]
    records = [record for history in histories for record in history.records()]
    places = [
        {"flow": history.flow, "side": side, "origin": "t", "partition": 0, "floor": 0,
         "position": history.position if side == "source" else None}
        for history in histories for side in SIDES
    ]  # fmt: skip
    tombstones = [
        {"flow": history.flow, "topic": "t", "tombstones": history.keeps_tombstones}
        for history in histories
    ]
    keys = new_records.by_key(
        compare.with_lanes(placed(spark, records), kept),
        table(spark, new_records.WRONG_SCHEMA, lost),
        table(spark, latest_by_key.PLACES_SCHEMA, places),
    )
    keys = latest_by_key.with_history(
        keys,
        table(spark, latest_by_key.ENDS_SCHEMA, []),
        table(spark, latest_by_key.LOST_SCHEMA, []),
    )
    judged = new_records.with_class(keys, table(spark, new_records.TOMBSTONES_SCHEMA, tombstones))
    collapsed = latest_by_key.collapse(judged).persist()
    rows = latest_by_key.count(collapsed).collect()
    again = [
        {
            **{name: row[name] for name in ("flow", "topic", "lane", "k1", "k2")},
            **row[side], "side": side, "key_class": row["class"],
        }
        for row in (row.asDict(recursive=True)
                    for row in new_records.wrong(collapsed, 100 * CASES).collect())
        for side in SIDES if row[side] is not None
    ]  # fmt: skip
    collapsed.unpersist()
    return {(row["flow"], row["class"]): row["keys"] for row in rows}, again


def test_looks_tell_each_lost_key_until_it_is_mended_and_no_other(spark: SparkSession) -> None:
    chance = random.Random(47)  # noqa: S311
    histories = [
        History(f"{KEPT if number % 2 else 'loose'} {number}", chance, number % 3 > 0)
        for number in range(CASES)
    ]
    lost: dict[str, Lost] = {history.flow: {} for history in histories}
    known: list[dict[str, Any]] = []
    seen: Counter[str] = Counter()
    for _ in range(3):
        for history in histories:
            history.go_on()
            history.mend()
        found, known = look(spark, histories, known)
        expected = {
            (history.flow, name): number
            for history in histories
            for name, number in Counter(history.expected(lost[history.flow]).values()).items()
        }
        assert found == expected
        seen.update(name for _, name in found)
        wrong = {"missing", "corrupt_value"}
        for history in histories:
            classes = history.expected(lost[history.flow])
            again: Lost = {}
            for row in known:
                if row["flow"] == history.flow:
                    at = row["offset"]
                    at = history.target[at] if row["side"] == "target" else at
                    again.setdefault(history.source[at][0], {})[row["side"]] = row["offset"]
            assert again.keys() == {key for key, name in classes.items() if name in wrong}
            lost[history.flow] = again
    assert seen.keys() == {
        "missing", "corrupt_value", "verified", "in_flight", "absent", new_records.NOT_COMPARED,
    }, "every class occurred"  # fmt: skip
    assert min(seen.values()) > 5


def test_what_only_the_target_has_is_left_to_the_next_scan(spark: SparkSession) -> None:
    history = History("loose", random.Random(1), keeps_tombstones=True)  # noqa: S311
    history.source, history.target, history.looked = [("a", "1")], [0], 1
    assert look(spark, [history], []) == ({}, [])
