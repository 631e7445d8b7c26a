"""The history of positions: small, self-healing, and true however it was thinned."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mirror_report.checks import partition_history
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot

NOW = 1_800_000_000_000
MINUTE = 60_000


def source(at: int, ends: Mapping[int, int]) -> ClusterSnapshot:
    partitions = {p: PartitionSnapshot(0, end, end) for p, end in ends.items()}
    topic = TopicSnapshot("t", "id", partitions, {}, None)
    return ClusterSnapshot("east", "east", at, {"t": topic})


class Journal:
    """A history as observations make it."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def observe(
        self, at: int, ends: Mapping[int, int], positions: Mapping[int, int] | None = None
    ) -> dict[str, Any]:
        """Observe one topic: partition -> log end, and position."""
        past = partition_history.of_lines(self.lines)
        line = partition_history.new_line(
            past, source(at, ends), {"t": dict(positions or {})}, {}, "read_uncommitted"
        )
        self.lines.append(json.loads(json.dumps(line)))
        return line

    def history(self, partition: int = 0) -> partition_history.PartitionHistory:
        """What is known of one partition."""
        return partition_history.of_lines(self.lines).at(("t", partition))


def test_line_holds_what_changed_alone() -> None:
    journal = Journal()
    begin = [0, 5, 3, None, 1, 7, None, None]
    assert journal.observe(1, {0: 5, 1: 7}, {0: 3})["seen"] == {"t": begin}
    assert journal.observe(2, {0: 5, 1: 7}, {0: 3})["seen"] == {}
    assert journal.observe(3, {0: 6, 1: 7}, {0: 3})["seen"] == {"t": [0, 6, 3, None]}
    assert journal.observe(4, {0: 6, 1: 7}, {0: 4})["seen"] == {"t": [0, 6, 4, None]}
    assert journal.history().ends == [(1, 5), (3, 6)]
    assert journal.history().positions == [(1, 3, None), (4, 4, None)]


@pytest.mark.parametrize(
    "damage",
    ['{"at": 2, "seen"', '{"at": "2", "seen": {}}', '{"at": 2, "seen": {"t": 5}}', "[]",
     '{"at": 2, "seen": {"t": [0, 6, 1]}}', '{"at": 2, "seen": {"t": [0, "6", 1, 1]}}'],
)  # fmt: skip
def test_what_a_damaged_line_said_is_said_again_by_the_next(damage: str) -> None:
    journal = Journal()
    journal.observe(1, {0: 5, 1: 7})
    journal.observe(2, {0: 6, 1: 7})
    try:
        journal.lines[-1] = json.loads(damage)
    except ValueError:
        journal.lines.pop()
    journal.lines = [line for line in journal.lines if isinstance(line, dict)]
    journal.observe(3, {0: 6, 1: 7})
    assert journal.history().ends == [(1, 5), (3, 6)]


def test_a_clock_that_went_back_costs_the_time_it_was_ahead_and_no_more() -> None:
    journal = Journal()
    journal.observe(NOW, {0: 5}, {0: 3})
    journal.observe(NOW + 600 * MINUTE, {0: 6}, {0: 4})
    lines = [*journal.lines, {"at": NOW + MINUTE, "seen": {"t": [0, 7, 5, None]}}]
    past = partition_history.of_lines(lines, NOW + MINUTE)
    assert past.observed_at == [NOW, NOW + MINUTE]
    assert past.at(("t", 0)).ends == [(NOW, 5), (NOW + MINUTE, 7)]
    kept = partition_history.fewer_lines(lines, {"t"}, NOW + MINUTE, 30)
    assert [line["at"] for line in kept] == [NOW, NOW + MINUTE]


def test_shorter_log_begins_a_new_history() -> None:
    journal = Journal()
    journal.observe(1, {0: 500}, {0: 400})
    journal.observe(2, {0: 30}, {0: 0})
    assert journal.history().ends == [(2, 30)]
    assert journal.history().highest(0) == 0


def test_offset_is_first_seen_by_the_observation_whose_log_end_is_past_it() -> None:
    journal = Journal()
    for at, end in ((1, 5), (2, 9), (3, 9), (4, 12)):
        journal.observe(at, {0: end})
    past = journal.history()
    assert [past.first_seen(offset) for offset in (4, 5, 8, 9, 11, 12)] == [1, 2, 2, 4, 4, None]


def test_rates_begin_at_the_newest_observation_that_is_old_enough() -> None:
    past = partition_history.FlowHistory([NOW - ago * MINUTE for ago in (60, 7, 5, 2)])
    assert past.base(NOW) == NOW - 5 * MINUTE
    assert (
        partition_history.FlowHistory([NOW - 2 * MINUTE, NOW - MINUTE]).base(NOW)
        == NOW - 2 * MINUTE
    )
    assert partition_history.FlowHistory([]).base(NOW) is None
    assert partition_history.FlowHistory([NOW]).base(NOW) is None


def test_days_of_observations_every_minute_stay_few_lines_that_say_the_same() -> None:
    journal = Journal()
    minutes = 4000
    begin = NOW - minutes * MINUTE
    for minute in range(minutes + 1):
        # Partition 0 is at work, 1 rests since the beginning.
        end = 10 * minute
        journal.lines.append(
            {"at": begin + minute * MINUTE, "seen": {"t": [0, end, max(0, end - 20), None]}}
        )
        if len(journal.lines) > 128:
            now = begin + minute * MINUTE
            journal.lines = partition_history.fewer_lines(journal.lines, {"t"}, now, 30)
        if minute == 0:
            journal.lines[0]["seen"]["t"] += [1, 7, 7, None]
            journal.lines[0]["seen"]["gone"] = [0, 1, 1, None]
    shorter = partition_history.fewer_lines(journal.lines, {"t"}, NOW, 30)
    assert len(shorter) < 100
    past = partition_history.of_lines(shorter)
    assert past.at(("t", 1)).ends == [(begin, 7)]
    assert ("gone", 0) not in past.partitions
    assert past.observed_at[-5:] == [NOW - ago * MINUTE for ago in (4, 3, 2, 1, 0)]
    past = past.at(("t", 0))
    assert past.ends[-1] == (NOW, 10 * minutes)
    for age in (5, 60, 600, 3000):
        offset = 10 * (minutes - age)
        first = past.first_seen(offset)
        assert first is not None
        seen = (NOW - first) / MINUTE
        assert age * 0.6 <= seen <= age, "never before it was there, and not much later"


def test_observations_past_retention_are_forgotten_and_what_they_said_is_not() -> None:
    journal = Journal()
    day = 86_400_000
    for at, end in ((NOW - 40 * day, 5), (NOW - 20 * day, 5), (NOW, 9)):
        journal.observe(at, {0: end}, {0: 5})
    shorter = partition_history.fewer_lines(journal.lines, {"t"}, NOW, 30)
    assert [line["at"] for line in shorter] == [NOW - 20 * day, NOW]
    assert partition_history.of_lines(shorter).at(("t", 0)).ends == [(NOW - 20 * day, 5), (NOW, 9)]
