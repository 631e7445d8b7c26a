"""Lag over time as a line: few points, ranges and gaps kept, the last observation at its end."""

from mirror_report.checks import lag_over_time
from mirror_report.model import LagPoint, PartitionLag

NOW = 1_800_000_000_000
MINUTE = 60_000


def line(*observations: tuple[float, int | None]) -> list[tuple[float, int | None]]:
    """Minutes ago, and lag then."""
    seen = [(NOW - int(ago * MINUTE), {} if lag == 0 else {"t": lag}) for ago, lag in observations]
    return [
        ((NOW - point.at_ms) / MINUTE, point.lag_records)
        for point in lag_over_time.points("orders", seen, ["t"], NOW)
    ]


def test_lag_of_a_topic_is_the_sum_of_its_partitions_and_unknown_with_an_unknown_one() -> None:
    rows = [
        PartitionLag("orders", topic, partition, "OK", 0, 9, 2, lag, None)
        for topic, partition, lag in (("t", 0, 3), ("t", 1, 4), ("u", 0, 5), ("u", 1, None))
    ]
    assert lag_over_time.topic_lags(rows) == {"t": 7, "u": None}


def test_line_keeps_where_lag_changes() -> None:
    assert line((50, 0), (40, 0), (30, 0), (20, 8), (10, 8), (0, 8)) == [
        (50, 0), (30, 0), (20, 8), (0, 8),
    ]  # fmt: skip


def test_few_observations_are_points_one_by_one_however_close_they_are() -> None:
    observations = ((2.2, 16_898), (2.1, 0), (2.0, 3), (1.9, 0), (1.8, None), (1.7, 0))
    assert line(*observations) == list(observations)


def test_observations_of_one_interval_are_one_point_with_their_range_and_the_last_value() -> None:
    lags = [5] * (24 * 60)
    lags[100:104] = [5, 9000, 0, 7]
    seen = [(NOW - (len(lags) - 1 - i) * MINUTE, {"t": lag}) for i, lag in enumerate(lags)]
    found = lag_over_time.points("orders", seen, ["t"], NOW)
    (peak,) = [point for point in found if point.highest == 9000]
    assert peak.since_ms is not None
    first, last = (round((at - seen[0][0]) / MINUTE) for at in (peak.since_ms, peak.at_ms))
    assert first <= 101 <= last < first + 10
    assert (peak.lag_records, peak.lowest) == (lags[last], min(lags[first : last + 1]))
    assert found[-1] == LagPoint("orders", "t", NOW, 5, found[-1].since_ms, 5, 5)


def test_what_is_not_known_is_no_part_of_a_range_and_ends_a_point_as_such() -> None:
    lags = [4 if i % 2 else None for i in range(24 * 60)]
    seen = [(NOW - (len(lags) - 1 - i) * MINUTE, {"t": lag}) for i, lag in enumerate(lags)]
    for point in lag_over_time.points("orders", seen, ["t"], NOW):
        assert (point.lowest, point.highest) == (4, 4)
        assert point.lag_records == lags[(point.at_ms - seen[0][0]) // MINUTE]


def test_time_without_observations_is_unknown() -> None:
    found = line((200, 5), (100, 5))
    assert [lag for _, lag in found] == [5, None, 5]


def test_what_is_older_than_a_day_is_left_out() -> None:
    assert line((60 * 24 + 1, 5), (10, 7)) == [(10, 7)]


def test_observations_of_every_minute_and_gaps_are_at_most_so_many_points() -> None:
    busy = [(NOW - minute * MINUTE, {"t": minute}) for minute in range(24 * 60, -1, -1)]
    assert 100 < len(lag_over_time.points("orders", busy, ["t"], NOW)) <= lag_over_time.POINTS
    rare = [(NOW - number * 46 * MINUTE, {"t": number}) for number in range(31, -1, -1)]
    assert len(lag_over_time.points("orders", rare, ["t"], NOW)) <= lag_over_time.POINTS


def test_every_topic_asked_for_has_a_line() -> None:
    found = lag_over_time.points("orders", [(NOW, {"t": 5})], ["u", "t"], NOW)
    assert found == [
        LagPoint("orders", "t", NOW, 5, NOW, 5, 5), LagPoint("orders", "u", NOW, 0, NOW, 0, 0),
    ]  # fmt: skip
