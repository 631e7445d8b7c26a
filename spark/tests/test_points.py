"""Lag over time as a line: few points, peaks and gaps kept."""

from mirror_report.checks import points
from mirror_report.model import LagPoint, PartitionLag

NOW = 1_800_000_000_000
MINUTE = 60_000


def line(*looks: tuple[float, int | None]) -> list[tuple[float, int | None]]:
    """Minutes ago, and lag then."""
    seen = [(NOW - int(ago * MINUTE), {} if lag == 0 else {"t": lag}) for ago, lag in looks]
    return [
        ((NOW - one.at_ms) / MINUTE, one.lag_records)
        for one in points.points("orders", seen, ["t"], NOW)
    ]


def test_lag_of_a_topic_is_the_sum_of_its_partitions_and_unknown_with_an_unknown_one() -> None:
    rows = [
        PartitionLag("orders", topic, partition, "OK", 0, 9, 2, lag, None)
        for topic, partition, lag in (("t", 0, 3), ("t", 1, 4), ("u", 0, 5), ("u", 1, None))
    ]
    assert points.by_topic(rows) == {"t": 7, "u": None}


def test_line_keeps_where_lag_changes() -> None:
    assert line((50, 0), (40, 0), (30, 0), (20, 8), (10, 8), (0, 8)) == [
        (50, 0), (30, 0), (20, 8), (0, 8),
    ]  # fmt: skip


def test_looks_close_to_each_other_are_one_point_at_their_peak() -> None:
    assert line((2.2, 1), (2.1, 9), (2.0, 3)) == [(2.0, 9)]
    assert line((2.2, None), (2.1, 4), (2.0, None)) == [(2.0, 4)]
    assert line((2.1, None), (2.0, None)) == [(2.0, None)]


def test_time_without_looks_is_unknown() -> None:
    found = line((200, 5), (100, 5))
    assert [lag for _, lag in found] == [5, None, 5]


def test_what_is_older_than_a_day_is_left_out() -> None:
    assert line((60 * 24 + 1, 5), (10, 7)) == [(10, 7)]


def test_looks_of_every_minute_and_gaps_are_at_most_so_many_points() -> None:
    busy = [(NOW - one * MINUTE, {"t": one}) for one in range(24 * 60, -1, -1)]
    assert 100 < len(points.points("orders", busy, ["t"], NOW)) <= points.POINTS
    rare = [(NOW - one * 46 * MINUTE, {"t": one}) for one in range(31, -1, -1)]
    assert len(points.points("orders", rare, ["t"], NOW)) <= points.POINTS


def test_every_topic_asked_for_has_a_line() -> None:
    found = points.points("orders", [(NOW, {"t": 5})], ["u", "t"], NOW)
    assert found == [LagPoint("orders", "t", NOW, 5), LagPoint("orders", "u", NOW, 0)]
