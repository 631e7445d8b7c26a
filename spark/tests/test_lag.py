"""Lag in records and seconds, and the state of a partition: unknown is never 0."""

from collections.abc import Mapping
from typing import Any

import pytest

from mirror_report.checks import lag
from mirror_report.config import Flow, Warn
from mirror_report.model import (
    ClusterSnapshot,
    GroupMember,
    GroupSnapshot,
    PartitionLag,
    PartitionSnapshot,
    Positions,
    TopicSnapshot,
)

NOW = 1_800_000_000_000
FLOW = Flow("orders", "east", "west", "t", topics=("t",), group_id="g", hosts=("mirror1",))
LATEST = Flow("orders", "east", "west", "t", topics=("t",), group_id="g", start="latest")
ALIVE = GroupSnapshot("g", "Stable", (GroupMember("c", "10.0.0.1", (("t", 0),)),))
EMPTY = GroupSnapshot("g", "Empty", ())
WARN = Warn(lag_records=1000, lag_seconds=600, stalled_seconds=300)


def source(start: int, end: int, high: int | None = None, at: int = NOW) -> ClusterSnapshot:
    partition = PartitionSnapshot(start, end, end if high is None else high)
    return ClusterSnapshot(
        "east", "id", at, {"t": TopicSnapshot("t", "topic-id", {0: partition}, {}, None)}
    )


def seen(seconds_ago: float, end: int, position: int | None) -> dict[str, Any]:
    positions: Positions = {} if position is None else {"t": {0: position}}
    return lag.observation(source(0, end, at=NOW - int(seconds_ago * 1000)), positions)


def row(
    snapshot: ClusterSnapshot,
    position: int | None,
    *,
    flow: Flow = FLOW,
    group: GroupSnapshot = ALIVE,
    ages: Mapping[tuple[str, int], int | None] | None = None,
    history: tuple[dict[str, Any], ...] = (),
    baseline: Mapping[str, Any] | None = None,
    reset: frozenset[str] = frozenset(),
) -> PartitionLag:
    rows = lag.measure(
        flow, snapshot, {} if position is None else {"t": {0: position}}, group,
        ages=ages or {}, history=history, baseline=baseline or {}, reset_topics=reset, warn=WARN,
    )  # fmt: skip
    assert len(rows) == 1
    return rows[0]


def test_lag_counts_what_lies_between_position_and_end() -> None:
    found = row(source(0, 100), 93, ages={("t", 0): NOW - 4_000})
    assert (found.lag_records, found.lag_seconds, found.state) == (7, 4.0, "OK")


def test_no_lag_is_zero_seconds() -> None:
    found = row(source(0, 100), 100)
    assert (found.lag_records, found.lag_seconds, found.state) == (0, 0.0, "OK")


def test_age_that_could_not_be_read_is_unknown() -> None:
    assert row(source(0, 100), 93).lag_seconds is None


def test_transaction_markers_at_the_end_are_no_lag() -> None:
    found = row(source(0, 100), 99, ages={("t", 0): None}, history=(seen(900, 100, 99),))
    assert (found.lag_records, found.state) == (0, "IDLE")


def test_transaction_markers_that_expired_are_no_loss() -> None:
    waiting = {("t", 0): (99, 100)}
    before = lag.observation(
        source(0, 100, at=NOW - 900_000), {"t": {0: 99}}, lag.drained(waiting, {("t", 0): None})
    )
    assert row(source(100, 100), 99, history=(before,)).state == "IDLE"
    assert row(source(100, 100), 98, history=(before,)).lost == 2, "another position"
    assert row(source(102, 102), 99, history=(before,)).lost == 2
    assert row(source(100, 100), 99, history=(seen(900, 100, 99),)).lost == 1


def test_position_within_an_open_transaction_is_no_reset() -> None:
    assert row(source(0, 100, high=120), 115).state == "OK"


def test_nothing_new_since_the_last_look_is_idle() -> None:
    assert row(source(0, 100), 100, history=(seen(60, 100, 100),)).state == "IDLE"
    assert row(source(0, 0), 0).state == "IDLE"


def test_new_records_all_mirrored_is_ok() -> None:
    assert row(source(0, 120), 120, history=(seen(60, 100, 100),)).state == "OK"


def test_waiting_records_without_a_member_are_stopped() -> None:
    assert row(source(0, 100), 93, group=EMPTY).state == "STOPPED"


def test_whole_group_without_a_member_is_ok() -> None:
    assert row(source(0, 100), 100, group=EMPTY).state == "OK"


def test_position_that_stays_while_records_wait_is_stalled() -> None:
    history = (seen(400, 95, 93), seen(200, 100, 93))
    assert row(source(0, 100), 93, history=history).state == "STALLED"


def test_position_that_stays_for_a_shorter_time_is_not_yet_stalled() -> None:
    assert row(source(0, 100), 93, history=(seen(200, 100, 93),)).state == "OK"


def test_time_without_lag_does_not_count_as_stalled() -> None:
    history = (seen(900, 93, 93), seen(100, 100, 93))
    assert row(source(0, 100), 93, history=history).state == "OK"


def test_position_that_moved_is_not_stalled() -> None:
    history = (seen(900, 100, 90), seen(400, 100, 91))
    assert row(source(0, 100), 93, history=history).state == "OK"


def test_first_commit_that_never_comes_is_stalled() -> None:
    history = (seen(900, 100, None), seen(400, 100, None))
    assert row(source(0, 100), None, history=history).state == "STALLED"


def test_many_records_or_old_ones_are_lagging() -> None:
    assert row(source(0, 5000), 93, ages={("t", 0): NOW}).state == "LAGGING"
    assert row(source(0, 100), 93, ages={("t", 0): NOW - 601_000}).state == "LAGGING"


def test_position_that_went_back_is_rewound() -> None:
    assert row(source(0, 100), 50, history=(seen(60, 100, 93),)).state == "REWOUND"


def test_log_start_past_the_position_is_loss_with_its_number() -> None:
    found = row(source(150, 200), 100)
    assert (found.state, found.lost, found.lag_records) == ("TRUNCATED", 50, 50)


def test_log_start_past_the_recorded_start_is_loss_before_the_first_commit() -> None:
    recorded = {"topics": {"t": {"source": {"0": 100}}}}
    found = row(source(150, 200), None, baseline=recorded)
    assert (found.state, found.lost) == ("TRUNCATED", 50)


def test_position_beyond_the_log_is_a_reset() -> None:
    assert row(source(0, 50), 100).state == "RESET"


def test_other_topic_id_is_a_reset_even_if_offsets_fit() -> None:
    assert row(source(0, 150), 100, reset=frozenset({"t"})).state == "RESET"


def test_never_committed_starts_at_the_log_start_if_earliest() -> None:
    found = row(source(10, 100), None, ages={("t", 0): NOW})
    assert (found.position, found.lag_records) == (10, 90)


def test_never_committed_starts_where_the_baseline_says() -> None:
    recorded = {"topics": {"t": {"source": {"0": 40}}}}
    assert row(source(10, 100), None, baseline=recorded, flow=LATEST).lag_records == 60


def test_topic_younger_than_the_baseline_starts_at_zero() -> None:
    assert row(source(0, 100), None, baseline={"topics": {}}).lag_records == 100


def test_never_committed_latest_is_unknown_and_not_zero() -> None:
    found = row(source(10, 100), None, flow=LATEST)
    assert (found.state, found.lag_records, found.lag_seconds) == ("UNKNOWN", None, None)


def test_topic_that_may_not_be_read_is_unknown() -> None:
    snapshot = ClusterSnapshot("east", "id", NOW, {}, {"t": "permission DESCRIBE is missing"})
    found = row(snapshot, 5)
    assert (found.state, found.lag_records) == ("UNKNOWN", None)


@pytest.mark.parametrize(
    ("state", "severity", "kind", "count"),
    [
        ("TRUNCATED", "critical", "truncated", 30),
        ("RESET", "critical", "reset", 2),
        ("STOPPED", "critical", "stopped", 14),
        ("STALLED", "critical", "stalled", 14),
        ("REWOUND", "warning", "rewound", 2),
        ("LAGGING", "warning", "lagging", 14),
        ("UNKNOWN", "unknown", "unknown_lag", None),
    ],
)
def test_bad_state_is_one_finding_per_topic_with_a_cure(
    state: Any, severity: str, kind: str, count: int | None
) -> None:
    rows = [PartitionLag("orders", "t", p, state, 0, 9, 2, 7, 1.0, 15) for p in (0, 1)]
    (found,) = lag.judge(FLOW, rows, EMPTY)
    assert (found.severity, found.kind, found.count) == (severity, kind, count)
    assert found.topic == "t"
    assert found.action


def test_good_states_are_no_finding() -> None:
    rows = [PartitionLag("orders", "t", 0, one, 0, 9, 9, 0, 0.0) for one in ("OK", "IDLE")]
    assert lag.judge(FLOW, rows, ALIVE) == []


def test_changed_topic_id_is_found() -> None:
    assert lag.changed_ids({"t": "old"}, source(0, 1)) == {"t": ("old", "topic-id")}
    assert lag.changed_ids({"t": "topic-id"}, source(0, 1)) == {}
    assert lag.changed_ids({}, source(0, 1)) == {}


def test_only_readable_records_are_asked_for_their_age() -> None:
    assert lag.waiting(FLOW, source(150, 200), {"t": {0: 100}}, {}) == {("t", 0): (150, 200)}
    assert lag.waiting(FLOW, source(0, 100), {"t": {0: 100}}, {}) == {}
