"""Lag in records and seconds, and the state of a partition: unknown is never 0."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mirror_report.checks import lag, lag_findings, partition_history, positions, topic_identity
from mirror_report.config import Cluster, Flow, Warn
from mirror_report.engines import MM2
from mirror_report.model import (
    ClusterSnapshot,
    FlowStatus,
    GroupMember,
    GroupSnapshot,
    MirrorStatus,
    Observed,
    OpenTransaction,
    PartitionLag,
    PartitionSnapshot,
    Positions,
    TopicSnapshot,
)
from mirror_report.state.baselines import of_flow

NOW = 1_800_000_000_000
FLOW = Flow("orders", "east", "west", "t", topics=("t",), group_id="g", hosts=("mirror1",))
LATEST = Flow("orders", "east", "west", "t", topics=("t",), group_id="g", start="latest")
ALIVE = GroupSnapshot("g", "Stable", (GroupMember("c", "10.0.0.1", (("t", 0),)),))
EMPTY = GroupSnapshot("g", "Empty", ())
NOTHING = ClusterSnapshot("west", "id", NOW, {})
CLUSTERS = {"east": Cluster("east", ("east1:9092",)), "west": Cluster("west", ("west1:9092",))}
WARN = Warn(lag_records=1000, lag_seconds=600, stalled_seconds=300)


def source(start: int, end: int, high: int | None = None, at: int = NOW) -> ClusterSnapshot:
    partition = PartitionSnapshot(start, end, end if high is None else high)
    return ClusterSnapshot(
        "east", "id", at, {"t": TopicSnapshot("t", "topic-id", {0: partition}, {}, None)}
    )


@dataclass(frozen=True)
class Observation:
    """An earlier observation: its age, log end, position, and where only markers follow it."""

    seconds_ago: float
    end: int
    position: int | None
    through: int | None = None


def remembered(*observations: Observation) -> partition_history.FlowHistory:
    """What the history holds of earlier observations, line by line as they left it."""
    lines: list[dict[str, Any]] = []
    for observation in observations:
        positions: Positions = (
            {} if observation.position is None else {"t": {0: observation.position}}
        )
        through = {} if observation.through is None else {("t", 0): observation.through}
        snapshot = source(0, observation.end, at=NOW - int(observation.seconds_ago * 1000))
        past = partition_history.of_lines(lines)
        lines.append(
            partition_history.new_line(past, snapshot, positions, through, "read_uncommitted")
        )
    return partition_history.of_lines(json.loads(json.dumps(lines)))


def row(
    snapshot: ClusterSnapshot,
    position: int | None,
    *,
    flow: Flow = FLOW,
    group: GroupSnapshot = ALIVE,
    ages: Mapping[tuple[str, int], int | None] | None = None,
    history: Sequence[Observation] = (),
    baseline: Mapping[str, Any] | None = None,
    warn: Warn = WARN,
    committed_at_ms: int | None = None,
    **evidence: Any,
) -> PartitionLag:
    committed: Positions = {} if position is None else {"t": {0: position}}
    times = {} if committed_at_ms is None else {("t", 0): committed_at_ms}
    past = remembered(*history)
    (found,) = lag.measure(
        flow, Observed(snapshot, MirrorStatus(committed, times), group, NOTHING, None),
        lag.Evidence(
            positions.mirror_positions(flow, snapshot, committed, of_flow(baseline or {}), past),
            ages=ages or {}, **evidence,
        ),
        history=past, baseline=of_flow(baseline or {}), warn=warn,
    )  # fmt: skip
    return found


def test_lag_counts_what_lies_between_position_and_end() -> None:
    found = row(source(0, 100), 93, ages={("t", 0): NOW - 4_000})
    assert (found.lag_records, found.lag_seconds, found.state) == (7, 4.0, "OK")


def test_no_lag_is_zero_seconds() -> None:
    found = row(source(0, 100), 100)
    assert (found.lag_records, found.lag_seconds, found.state) == (0, 0.0, "OK")


def test_age_that_could_not_be_read_is_unknown() -> None:
    assert row(source(0, 100), 93).lag_seconds is None


@pytest.mark.parametrize("timestamp", [-1, -5, -9_223_372_036_854_775])
def test_a_record_without_a_timestamp_has_no_known_age(timestamp: int) -> None:
    found = row(source(0, 100), 93, ages={("t", 0): timestamp})
    assert (found.lag_records, found.lag_seconds, found.state) == (7, None, "OK")


def test_transaction_markers_at_the_end_are_no_lag() -> None:
    found = row(source(0, 100), 99, ages={("t", 0): None}, history=(Observation(900, 100, 99),))
    assert (found.lag_records, found.state) == (0, "IDLE")


def test_markers_found_out_once_are_known_while_the_position_stays() -> None:
    history = (Observation(600, 100, 99, 100),)
    assert row(source(0, 100), 99, history=history).lag_records == 0
    found = row(source(0, 103), 99, history=history, ages={("t", 0): NOW - 2_000})
    assert (found.lag_records, found.state) == (3, "OK")


def test_records_after_a_marker_that_waited_for_days_are_not_stalled() -> None:
    history = (Observation(900, 100, 99, 100), Observation(60, 102, 99, 100))
    assert row(source(0, 102), 99, history=history).state == "OK"
    history = (Observation(900, 100, 99, 100), Observation(400, 102, 99, 100))
    assert row(source(0, 102), 99, history=history).state == "STALLED"


def test_what_a_mirror_reads_decides_where_the_log_ends() -> None:
    committed = replace(FLOW, source_isolation="read_committed")
    assert row(source(0, 100, high=120), 100, flow=committed).lag_records == 0
    assert row(source(0, 100, high=120), 100).lag_records == 20
    assert row(source(0, 100, high=120), 115).state == "OK"


def test_nothing_new_since_the_last_observation_is_idle() -> None:
    assert row(source(0, 100), 100, history=(Observation(60, 100, 100),)).state == "IDLE"
    assert row(source(0, 0), 0).state == "IDLE"


def test_new_records_all_mirrored_is_ok() -> None:
    assert row(source(0, 120), 120, history=(Observation(60, 100, 100),)).state == "OK"


def test_waiting_records_without_a_member_are_stopped() -> None:
    assert row(source(0, 100), 93, group=EMPTY).state == "STOPPED"


def test_whole_group_without_a_member_is_ok() -> None:
    assert row(source(0, 100), 100, group=EMPTY).state == "OK"


def test_position_that_stays_while_records_wait_is_stalled() -> None:
    history = (Observation(400, 95, 93), Observation(200, 100, 93))
    assert row(source(0, 100), 93, history=history).state == "STALLED"


def test_position_that_stays_for_a_shorter_time_is_not_yet_stalled() -> None:
    assert row(source(0, 100), 93, history=(Observation(200, 100, 93),)).state == "OK"


def test_time_without_lag_does_not_count_as_stalled() -> None:
    history = (Observation(900, 93, 93), Observation(100, 100, 93))
    assert row(source(0, 100), 93, history=history).state == "OK"


def test_position_that_moved_is_not_stalled() -> None:
    history = (Observation(500, 100, 90), Observation(400, 100, 91))
    assert row(source(0, 100), 93, history=history).state == "OK"


def test_first_commit_that_never_comes_is_stalled() -> None:
    history = (Observation(900, 100, None), Observation(400, 100, None))
    assert row(source(0, 100), None, history=history).state == "STALLED"


def test_many_records_or_old_ones_are_lagging() -> None:
    assert row(source(0, 5000), 93, ages={("t", 0): NOW}).state == "LAGGING"
    assert row(source(0, 100), 93, ages={("t", 0): NOW - 601_000}).state == "LAGGING"


def test_position_that_went_back_is_rewound() -> None:
    assert row(source(0, 100), 50, history=(Observation(60, 100, 93),)).state == "REWOUND"


def test_position_beyond_the_log_is_a_reset() -> None:
    assert row(source(0, 50), 100).state == "RESET"


def test_other_topic_id_is_a_reset_even_if_offsets_fit() -> None:
    assert row(source(0, 150), 100, reset_topics=frozenset({"t"})).state == "RESET"


def test_never_committed_starts_at_the_log_start_if_earliest() -> None:
    found = row(source(10, 100), None, ages={("t", 0): NOW})
    assert (found.position, found.lag_records) == (10, 90)


def test_never_committed_starts_where_the_baseline_says() -> None:
    recorded = {"topics": {"t": {"source": {"0": 40}}}}
    assert row(source(10, 100), None, baseline=recorded, flow=LATEST).lag_records == 60


def test_topic_younger_than_the_baseline_starts_at_zero() -> None:
    recorded = {"recorded_at_ms": 1, "topics": {}}
    assert row(source(0, 100), None, baseline=recorded).lag_records == 100


def test_never_committed_latest_is_unknown_and_not_zero() -> None:
    found = row(source(10, 100), None, flow=LATEST)
    assert (found.state, found.lag_records, found.lag_seconds) == ("UNKNOWN", None, None)


def test_topic_that_may_not_be_read_is_unknown() -> None:
    snapshot = ClusterSnapshot("east", "id", NOW, {}, {"t": "permission DESCRIBE is missing"})
    found = row(snapshot, 5)
    assert (found.state, found.lag_records) == ("UNKNOWN", None)


def test_position_behind_its_highest_is_rewound_until_it_is_there_again() -> None:
    history = (Observation(200, 100, 93), Observation(60, 120, 50))
    assert row(source(0, 120), 60, history=history).state == "REWOUND"
    assert row(source(0, 120), 93, history=history).state == "OK"
    baseline = {"recorded_at_ms": NOW - 100_000, "topics": {}}
    assert row(source(0, 120), 60, history=history, baseline=baseline).state == "OK", "accepted"


def test_truncated_is_reported_with_what_is_lost_and_where_it_stands() -> None:
    found = row(source(150, 200), 100, truncated=frozenset({("t", 0)}), losses={("t", 0): (30, 20)})
    assert (found.state, found.lag_records) == ("TRUNCATED", 50)
    assert (found.lost, found.lost_at_most) == (30, 50)
    past = row(source(150, 200), 160, losses={("t", 0): (50, 0)})
    assert (past.state, past.lost, past.lost_at_most) == ("OK", 50, None)


@pytest.mark.parametrize(
    ("history", "age", "waits", "at_least"),
    [
        ((), 30, None, False),
        ((Observation(120, 100, 90), Observation(60, 120, 90)), 80, 80, False),
        ((Observation(120, 100, 90), Observation(60, 120, 90)), 30 * 86_400, 120, False),
        ((Observation(120, 100, 90), Observation(60, 120, 90)), 0, 60, False),
        ((Observation(120, 100, 90), Observation(60, 120, 90)), None, 60, False),
        ((Observation(60, 100, 90),), 5, 5, False),
        ((Observation(60, 100, 90),), 300, 60, False),
        ((Observation(120, 106, 90), Observation(60, 120, 90)), 500, 120, True),
    ],
    ids=["no observation before", "record's age fits", "old record that came late", "clock ahead",
         "age not read", "came since the last observation", "so did an old one",
         "there at every observation"],
)  # fmt: skip
def test_wait_is_the_age_of_the_record_limited_by_what_was_observed(
    history: Sequence[Observation], age: float | None, waits: float | None, at_least: bool
) -> None:
    ages = {} if age is None else {("t", 0): NOW - int(age * 1000)}
    found = row(source(0, 130), 105, history=history, ages=ages)
    assert (found.waiting_seconds, found.waiting_at_least) == (waits, at_least)


def test_old_records_that_just_arrived_are_not_lagging() -> None:
    ages = {("t", 0): NOW - 86_400_000}
    assert row(source(0, 130), 105, ages=ages).state == "LAGGING", "nothing else is known"
    history = (Observation(60, 100, 100),)
    assert row(source(0, 130), 105, ages=ages, history=history).state == "OK"


def test_rates_are_over_five_minutes_and_tell_when_it_is_through() -> None:
    history = (Observation(900, 0, 0), Observation(360, 1000, 1000), Observation(60, 4000, 1600))
    found = row(source(0, 4600), 2800, history=history)
    assert (found.produce_rate, found.mirror_rate) == (10.0, 5.0)
    assert (found.eta_seconds, found.catches_up) == (None, False)
    faster = row(source(0, 4600), 4600 - 300, history=history)
    assert faster.catches_up
    assert faster.eta_seconds == pytest.approx(300 / (3300 / 360)), "as much as it does per commit"
    history = (Observation(360, 9000, 1000),)
    found = row(source(0, 10800), 8200, history=history)
    assert (found.produce_rate, found.mirror_rate) == (5.0, 20.0)
    assert (found.eta_seconds, found.catches_up) == (pytest.approx(2600 / 15), True)


def test_rates_begin_when_something_moved() -> None:
    still = (Observation(3000, 1000, 1000), Observation(180, 1000, 1000))
    found = row(source(0, 4600), 2800, history=still)
    assert (found.produce_rate, found.mirror_rate) == (20.0, 10.0)
    later = (*still, Observation(60, 3400, 1000))
    found = row(source(0, 4600), 2800, history=later)
    assert (found.produce_rate, found.mirror_rate) == (20.0, 10.0), "since it was last at rest"


def test_a_stopped_mirror_is_through_at_no_time_that_anybody_knows() -> None:
    history = (Observation(360, 1000, 900), Observation(60, 4000, 3900))
    found = row(source(0, 4000), 3900, history=history, group=EMPTY)
    assert (found.state, found.mirror_rate) == ("STOPPED", None)
    assert (found.eta_seconds, found.catches_up) == (None, None)


@pytest.mark.parametrize(
    ("history", "position"),
    [
        ((), 10),
        ((Observation(30, 100, 0),), 10),
        ((Observation(360, 100, 50),), 10),
        ((Observation(360, 100, None),), 10),
    ],
    ids=["first observation", "within one commit", "rewound", "no commit before"],
)
def test_without_rates_nothing_is_said_of_when_it_is_through(
    history: Sequence[Observation], position: int
) -> None:
    found = row(source(0, 200), position, history=history)
    assert (found.eta_seconds, found.catches_up) == (None, None)


def test_nothing_waiting_is_through() -> None:
    found = row(source(0, 200), 200)
    assert (found.eta_seconds, found.catches_up, found.lag_bytes) == (0.0, True, 0)


def test_bytes_are_the_share_of_the_log_that_waits() -> None:
    found = row(source(100, 200), 150, sizes={("t", 0): 10_000})
    assert found.lag_bytes == 5000
    assert row(source(100, 200), 150).lag_bytes is None
    bound = replace(WARN, lag_bytes=4999)
    assert row(source(100, 200), 150, sizes={("t", 0): 10_000}, warn=bound).state == "LAGGING"


def test_position_says_where_it_is_from_and_how_old_it_is() -> None:
    def said(found: PartitionLag) -> tuple[str | None, float | None]:
        return found.position_source, found.position_age_seconds

    assert said(row(source(0, 100), 93)) == ("group_commit", None)
    moved = (Observation(300, 100, 80), Observation(240, 100, 93), Observation(60, 100, 93))
    assert said(row(source(0, 100), 93, history=moved)) == ("group_commit", 240.0)
    assert said(row(source(0, 100), 93, history=moved[1:])) == ("group_commit", None)
    mm2 = replace(FLOW, engine=MM2)
    found = row(source(0, 100), 93, flow=mm2, committed_at_ms=NOW - 7_000)
    assert said(found) == ("connect_offsets", 7.0)
    recorded = {"recorded_at_ms": NOW - 9_000, "topics": {"t": {"source": {"0": 40}}}}
    assert said(row(source(0, 100), None, baseline=recorded)) == ("baseline", 9.0)
    assert said(row(source(0, 100), None)) == ("log_start", None)


def test_open_transaction_is_reported_beside_the_lag() -> None:
    open_ = OpenTransaction(100, 900.0, at_least=False, transactional_id="pay")
    found = row(source(0, 100, high=120), 120, transactions={("t", 0): open_})
    assert (found.state, found.open_transaction_seconds) == ("OK", 900.0)


@pytest.mark.parametrize(
    ("state", "severity", "kind", "count"),
    [
        ("RESET", "critical", "reset", 2),
        ("STOPPED", "critical", "stopped", 14),
        ("STALLED", "critical", "stalled", 14),
        ("REWOUND", "warning", "rewound", 2),
        ("LAGGING", "warning", "lagging", 14),
        ("UNKNOWN", "unknown", "unknown_lag", None),
        ("TRUNCATED", "critical", "stopped", 14),
    ],
)
def test_bad_state_is_one_finding_per_topic_with_a_cure(
    state: Any, severity: str, kind: str, count: int | None
) -> None:
    rows = [PartitionLag("orders", "t", p, state, 0, 9, 2, 7, 1.0, 15) for p in (0, 1)]
    (found,) = lag_findings.findings(FLOW, rows, EMPTY, CLUSTERS["east"])
    assert (found.severity, found.kind, found.count) == (severity, kind, count)
    assert found.topic == "t"
    assert found.action


@pytest.mark.parametrize(
    ("waits", "at_least", "words"),
    [
        # The record is dated 1970, or in some years; how long it is there is known all the same.
        (61.0, False, "7 records wait, the oldest for 61 s,"),
        (61.0, True, "7 records wait, the oldest for at least 61 s,"),
        (None, False, "7 records wait, the oldest for 1795834421 s,"),
    ],
)
def test_a_finding_tells_how_long_records_wait_as_the_table_does(
    waits: float | None, at_least: bool, words: str
) -> None:
    row = PartitionLag(
        "orders", "t", 0, "STOPPED", 0, 9, 2, 7, 1_795_834_421.0,
        waiting_seconds=waits, waiting_at_least=at_least,
    )  # fmt: skip
    (found,) = lag_findings.findings(FLOW, [row], EMPTY, CLUSTERS["east"])
    assert words in found.message


def test_a_mirror_that_nobody_runs_is_a_finding_also_if_nothing_waits() -> None:
    rows = [PartitionLag("orders", t, 0, "IDLE", 0, 9, 9, 0, 0.0) for t in ("t", "u")]
    (found,) = lag_findings.findings(FLOW, rows, EMPTY, CLUSTERS["east"])
    assert (found.severity, found.kind, found.topic) == ("warning", "not_running", None)
    assert "start" in found.action
    assert [*lag_findings.findings(FLOW, [], EMPTY, CLUSTERS["east"])] == []


def test_nobody_says_that_nothing_waits_while_the_lag_is_unknown() -> None:
    known = PartitionLag("orders", "t", 0, "IDLE", 0, 9, 9, 0, 0.0)
    unknown = PartitionLag("orders", "u", 0, "UNKNOWN", None, None, None, None, None)
    for rows in ([unknown], [known, unknown]):
        found = {
            one.kind: one.message
            for one in lag_findings.findings(FLOW, rows, EMPTY, CLUSTERS["east"])
        }
        assert found.keys() == {"unknown_lag", "not_running"}
        assert "nothing waits" not in found["not_running"]
        assert "not known" in found["not_running"]
        assert "group g has no member" in found["not_running"]
    waiting = replace(known, state="STOPPED", lag_records=7)
    kinds = [
        one.kind for one in lag_findings.findings(FLOW, [waiting, unknown], EMPTY, CLUSTERS["east"])
    ]
    assert kinds == ["stopped", "unknown_lag"], "it is said once that nobody mirrors"


def test_good_states_are_no_finding() -> None:
    rows = [PartitionLag("orders", "t", 0, state, 0, 9, 9, 0, 0.0) for state in ("OK", "IDLE")]
    assert [*lag_findings.findings(FLOW, rows, ALIVE, CLUSTERS["east"])] == []


def test_mirror_that_goes_on_past_a_truncation_is_reported_by_its_loss_alone() -> None:
    rows = [PartitionLag("orders", "t", 0, "TRUNCATED", 0, 9, 2, 7, 1.0, 15)]
    assert [*lag_findings.findings(FLOW, rows, ALIVE, CLUSTERS["east"])] == []


def test_transaction_that_stays_open_is_a_finding_with_the_command_that_ends_it() -> None:
    def open_(seconds: float) -> OpenTransaction:
        return OpenTransaction(70, seconds, at_least=True, transactional_id=None)

    places = {("t", 0): open_(299.0), ("t", 1): open_(301.0)}
    (found,) = lag_findings.hung_transactions(FLOW, places, CLUSTERS["east"], 300)
    assert (found.severity, found.kind, found.count) == ("warning", "hung_transaction", 1)
    assert "at least 301 s" in found.message
    assert (
        "kafka-transactions.sh --bootstrap-server east1:9092 abort --topic t --partition 1 "
        "--start-offset 70"
    ) in found.action
    shorter = {("t", 0): open_(299.0)}
    assert [*lag_findings.hung_transactions(FLOW, shorter, CLUSTERS["east"], 300)] == []


@pytest.mark.parametrize(
    ("age", "bound", "kinds"),
    [(301.0, 300, ["heartbeat"]), (299.0, 300, []), (None, 300, []), (9e9, None, [])],
)
def test_old_heartbeat_is_a_warning(
    age: float | None, bound: float | None, kinds: list[str]
) -> None:
    status = FlowStatus("orders", "mm2", "east", "west", "A", "B", "g", "Stable", 1, ("t",), age)
    found = lag_findings.old_heartbeat(FLOW, status, bound, CLUSTERS["east"])
    assert [finding.kind for finding in found] == kinds


def test_changed_topic_id_is_found() -> None:
    assert topic_identity.changed_ids({"t": "old"}, source(0, 1)) == {"t": ("old", "topic-id")}
    assert topic_identity.changed_ids({"t": "topic-id"}, source(0, 1)) == {}
    assert topic_identity.changed_ids({}, source(0, 1)) == {}


def waiting(snapshot: ClusterSnapshot, position: int) -> dict[tuple[str, int], tuple[int, int]]:
    committed: Positions = {"t": {0: position}}
    return positions.waiting_ranges(
        FLOW, snapshot, positions.mirror_positions(FLOW, snapshot, committed, {})
    )


def test_only_readable_records_are_asked_for_their_age() -> None:
    assert waiting(source(150, 200), 100) == {("t", 0): (150, 200)}
    assert waiting(source(0, 100), 100) == {}


def test_partitions_that_have_waited_longest_are_asked_first() -> None:
    past = remembered(Observation(900, 50, 0), Observation(60, 100, 0))
    every = {("t", 0): (60, 100), ("new", 0): (0, 5), ("new", 1): (0, 500)}
    assert list(positions.oldest_first(every, past, 2)) == [("t", 0), ("new", 1)]
    assert positions.oldest_first(every, past, 3) == every
    (found,) = lag_findings.ages_not_asked(FLOW, 3, 2)
    assert (found.severity, found.count) == ("ok", 1)
    assert [*lag_findings.ages_not_asked(FLOW, 3, 3)] == []
