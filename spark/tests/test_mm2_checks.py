"""What is judged of MirrorMaker 2 alone: estimates, shifts, tasks, and what it needs to start."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mirror_report import engines
from mirror_report.checks import failover, preflight, shifts, workers
from mirror_report.checks.positions import Estimate, estimates
from mirror_report.config import Flow
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    GroupMember,
    GroupSnapshot,
    MirrorStatus,
    OffsetSync,
    PartitionSnapshot,
    Place,
    ReportError,
    TopicSnapshot,
    WorkerState,
)

NOW = 1_800_000_000_000
FLOW = Flow(
    "orders", "east", "west", "t", engines.MM2, topics=("t",), group_id="east-mm2",
    replication_policy="prefix", offset_topic="mm2-offsets.east.internal",
    status_topic="mm2-status.east.internal", config_topic="mm2-configs.east.internal",
    offset_syncs_topic="mm2-offset-syncs.east.internal",
)  # fmt: skip
ALIVE = GroupSnapshot("east-mm2", "Stable", (GroupMember("east->west", "10.0.0.1", ()),))
EMPTY = GroupSnapshot("east-mm2", "Empty", ())


def cluster(alias: str, name: str, end: int, *, start: int = 0, id_: str = "id") -> ClusterSnapshot:
    topic = TopicSnapshot(name, id_, {0: PartitionSnapshot(start, end, end)}, {}, None)
    return ClusterSnapshot(alias, alias, NOW, {name: topic})


def source(end: int, start: int = 0, id_: str = "id") -> ClusterSnapshot:
    return cluster("east", "t", end, start=start, id_=id_)


def target(end: int, id_: str = "id") -> ClusterSnapshot:
    return cluster("west", "east.t", end, id_=id_)


def status(
    sync: tuple[int, int] | None, committed: int | None = None, *, sync_age: int = 0, age: int = 0
) -> MirrorStatus:
    return MirrorStatus(
        {} if committed is None else {"t": {0: committed}},
        {} if committed is None else {("t", 0): NOW - age},
        {} if sync is None else {("t", 0): OffsetSync(*sync, NOW - sync_age)},
    )


def estimate(
    source: ClusterSnapshot, target: ClusterSnapshot, mirror: MirrorStatus, *reset: str
) -> Estimate | None:
    return estimates(FLOW, source, target, mirror, reset).get(("t", 0))


def test_every_record_past_the_sync_takes_the_estimate_further() -> None:
    found = estimate(source(1000), target(700), status((600, 500), 650, age=9000))
    assert found == Estimate(800, "offset_syncs", NOW)


def test_sync_older_than_the_commit_never_takes_the_estimate_back() -> None:
    mirror = status((600, 500), 900, sync_age=9000, age=1000)
    assert estimate(source(1000), target(700), mirror) == Estimate(
        900, "connect_offsets", NOW - 1000
    )


def test_sync_newer_than_the_commit_may_take_the_estimate_back() -> None:
    found = estimate(source(1000), target(700), status((0, 600), 900, age=1000))
    assert found == Estimate(100, "offset_syncs", NOW)


def test_estimate_ends_at_the_log_end() -> None:
    found = estimate(source(700), target(900), status((600, 500)))
    assert found is not None
    assert found.position == 700


@pytest.mark.parametrize(
    ("source_end", "target_end", "sync", "reset"),
    [
        (1000, 700, None, ()),
        (1000, 400, (600, 500), ()),
        (1000, 700, (600, 500), ("t",)),
    ],
    ids=["no sync", "sync past the target's end", "topic recreated"],
)
def test_without_a_sync_that_fits_there_is_no_estimate(
    source_end: int, target_end: int, sync: tuple[int, int] | None, reset: tuple[str, ...]
) -> None:
    assert estimate(source(source_end), target(target_end), status(sync), *reset) is None


def observed(
    mirror: MirrorStatus,
    drained: Mapping[Place, int] | None = None,
    ends: tuple[int, int] = (10_000, 10_000),
) -> dict[str, Any]:
    return shifts.offset_shifts(source(ends[0]), target(ends[1]), mirror, FLOW, drained or {})


def shift(
    before: tuple[int, int],
    now: tuple[int, int],
    *,
    log_start: int = 0,
    committed: int | None = None,
    ids: tuple[str, str] = ("id", "id"),
    reset: tuple[str, ...] = (),
    drained: Mapping[Place, int] | None = None,
) -> list[Finding]:
    """Findings after a sync became another."""
    then = observed(status(before, committed), drained or {})
    seen = source(10_000, log_start, ids[0])
    after = shifts.offset_shifts(seen, target(10_000, ids[1]), status(now), FLOW, {})
    return [*shifts.findings(FLOW, seen, after, then, reset)]


def test_offsets_that_move_together_are_no_shift() -> None:
    assert shift((100, 50), (900, 850)) == []


def test_records_beyond_those_copied_are_counted() -> None:
    (found,) = shift((100, 50), (900, 890))
    assert (found.severity, found.kind, found.topic, found.count) == (
        "warning", "offset_shift", "t", 40,
    )  # fmt: skip
    assert "partition 0: 40" in found.message


def test_offsets_passed_over_and_gone_are_counted() -> None:
    (found,) = shift((999, 999), (1600, 1100), log_start=1500)
    assert (found.kind, found.count) == ("offset_shift", 500)
    assert "transaction markers" in found.message


def test_markers_of_transactions_still_on_the_source_are_no_finding() -> None:
    assert shift((100, 100), (1200, 1100), log_start=101) == []


def test_no_more_is_called_gone_than_the_source_dropped_unmirrored() -> None:
    (found,) = shift((100, 100), (1200, 1100), log_start=130, committed=121)
    assert found.count == 9


def test_markers_behind_the_last_record_are_no_loss_when_they_expire() -> None:
    (found,) = shift((548, 540), (550, 541), log_start=550)
    assert found.count == 1
    assert shift((548, 540), (550, 541), log_start=550, drained={("t", 0): 550}) == []


@pytest.mark.parametrize(
    ("ids", "reset"), [(("new", "id"), ()), (("id", "new"), ()), (("id", "id"), ("t",))]
)
def test_recreated_topics_have_no_shift(ids: tuple[str, str], reset: tuple[str, ...]) -> None:
    assert shift((100, 50), (0, 900), ids=ids, reset=reset) == []


def test_first_observation_has_nothing_to_compare_with() -> None:
    assert [*shifts.findings(FLOW, source(1000), observed(status((900, 100))), {}, ())] == []


def test_partitions_added_later_are_not_compared() -> None:
    now = observed(status((900, 100)))
    before = {"t": {**now["t"], "partitions": {"1": [0, 0, 1]}}}
    assert [*shifts.findings(FLOW, source(1000), now, before, ())] == []


def test_syncs_beyond_the_logs_are_not_taken() -> None:
    assert observed(status((900, 100)), ends=(100, 1000)) == {}
    assert observed(status((900, 100)), ends=(1000, 100)) == {}
    elsewhere = replace(FLOW, replication_policy="identity")
    assert shifts.offset_shifts(source(1000), target(1000), status((900, 100)), elsewhere, {}) == {}


def test_what_was_not_seen_again_stays_remembered() -> None:
    before = observed(status((900, 100)))
    assert shifts.with_former(before, {}) == before
    other = {"t": {**before["t"], "partitions": {"1": [5, 5, 6]}}}
    assert shifts.with_former(before, other)["t"]["partitions"] == {
        "0": [900, 100, 901], "1": [5, 5, 6],
    }  # fmt: skip


def test_what_was_remembered_of_a_former_topic_is_forgotten() -> None:
    before = observed(status((900, 100)))
    recreated = {"t": {**before["t"], "source_id": "new", "partitions": {"1": [5, 5, 6]}}}
    assert shifts.with_former(before, recreated) == recreated


RUNNING = (
    WorkerState("MirrorSourceConnector", None, "RUNNING", None),
    WorkerState("MirrorSourceConnector", 0, "RUNNING", None),
)
FAILED = WorkerState("MirrorSourceConnector", 1, "FAILED", "a.B: too large")


def test_failed_task_is_critical_and_says_why() -> None:
    (found,) = workers.findings(FLOW, MirrorStatus({}, workers=(*RUNNING, FAILED)), ALIVE)
    assert (found.severity, found.kind) == ("critical", "task_failed")
    assert "task 1 of MirrorSourceConnector of mirrormaker has failed: a.B: too large" in (
        found.message
    )


ON_CONNECT = replace(
    FLOW, engine=engines.MM2_CONNECT, connectors=("orders", "orders-groups", "orders-beats")
)


def at_work(**states: str) -> MirrorStatus:
    """Connectors of a flow on Kafka Connect, all running but those that are named."""
    known = {"orders": "RUNNING", "orders-groups": "RUNNING", **states}
    tasks = tuple(
        WorkerState(name, 0, state, None) for name, state in known.items() if state != "STOPPED"
    )
    return MirrorStatus(
        {}, workers=tuple(WorkerState(name, None, state, None) for name, state in known.items())
        + tasks,
    )  # fmt: skip


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
@pytest.mark.parametrize("name", ["orders", "orders-groups", "orders-beats"])
def test_connector_that_somebody_paused_is_a_warning_whatever_waits(name: str, state: str) -> None:
    (found,) = workers.findings(ON_CONNECT, at_work(**{name: state}), ALIVE)
    assert (found.severity, found.kind, found.flow) == ("warning", "not_running", "orders")
    assert f"connector {name} is {state}" in found.message
    assert f"PUT /connectors/{name}/resume at a worker of mirrormaker" in found.action


def test_connector_that_is_gone_is_a_warning() -> None:
    gone = MirrorStatus({"t": {0: 5}}, workers=at_work().workers[1:2])
    (found,) = workers.findings(ON_CONNECT, gone, ALIVE)
    assert (found.severity, found.kind) == ("warning", "not_running")
    assert "connector orders is not there" in found.message
    # Of a topic of states that could not be read nothing is known; that is said elsewhere.
    unread = replace(gone, workers=(), problems=(ReportError("may not read connect-status"),))
    assert [*workers.findings(ON_CONNECT, unread, ALIVE)] == []
    # It is about to be created for the first time.
    assert [*workers.findings(ON_CONNECT, MirrorStatus({}), ALIVE)] == []
    # A process of its own has its connectors as soon as it is through with its start.
    assert [*workers.findings(FLOW, MirrorStatus({}), ALIVE)] == []


def test_connectors_at_work_are_no_finding() -> None:
    assert [*workers.findings(ON_CONNECT, at_work(), ALIVE)] == []
    # They change hands, and wait for a while for a worker that may come back.
    for state in ("UNASSIGNED", "RESTARTING"):
        assert [*workers.findings(ON_CONNECT, at_work(orders=state), ALIVE)] == []
    assert [*workers.findings(ON_CONNECT, at_work(orders="PAUSED"), EMPTY)] == []


def test_mirror_that_has_worked_and_has_no_process_now_is_a_warning() -> None:
    positions = {"t": {0: 5}}
    for flow in (FLOW, ON_CONNECT, MM1):
        (found,) = workers.no_worker(flow, positions, EMPTY)
        assert (found.severity, found.kind) == ("warning", "not_running")
        assert f"group {flow.group_id} has no member" in found.message
        assert [*workers.no_worker(flow, positions, ALIVE)] == []
        # It is about to be started for the first time.
        assert [*workers.no_worker(flow, {}, EMPTY)] == []


def test_states_of_a_mirror_that_is_gone_say_nothing() -> None:
    assert [*workers.findings(FLOW, MirrorStatus({}, workers=(FAILED,)), EMPTY)] == []


@pytest.mark.parametrize(
    ("states", "lacking"),
    [
        (RUNNING, []),
        ((*RUNNING, WorkerState("MirrorHeartbeatConnector", None, "FAILED", None)), []),
        ((), ["MirrorSourceConnector has not started"]),
        (RUNNING[:1], ["MirrorSourceConnector has no task"]),
        (RUNNING[1:], ["MirrorSourceConnector has not started"]),
        ((*RUNNING, FAILED), ["task 1 of MirrorSourceConnector is FAILED (a.B: too large)"]),
        (
            (RUNNING[0], replace(RUNNING[1], state="UNASSIGNED")),
            ["task 0 of MirrorSourceConnector is UNASSIGNED"],
        ),
    ],
)
def test_what_a_mirror_lacks_to_run(states: tuple[WorkerState, ...], lacking: list[str]) -> None:
    assert (
        workers.not_running(FLOW, MirrorStatus({}, workers=states), tasks_expected=True) == lacking
    )


def test_without_a_topic_no_task_is_expected() -> None:
    assert (
        workers.not_running(FLOW, MirrorStatus({}, workers=RUNNING[:1]), tasks_expected=False) == []
    )


def test_groups_are_synced_by_a_connector_of_their_own() -> None:
    flow = replace(FLOW, consumer_groups=("app-.*",))
    lacking = workers.not_running(flow, MirrorStatus({}, workers=RUNNING), tasks_expected=True)
    assert lacking == ["MirrorCheckpointConnector has not started"]
    states = (*RUNNING, WorkerState("MirrorCheckpointConnector", None, "RUNNING", None))
    assert workers.not_running(flow, MirrorStatus({}, workers=states), tasks_expected=True) == []


MM1 = Flow("orders", "east", "west", "t", topics=("t",), group_id="g")


@pytest.mark.parametrize("flow", [FLOW, MM1], ids=["mm2", "mm1"])
def test_flow_without_position_into_filled_topics_is_a_takeover(flow: Flow) -> None:
    filled = cluster("west", flow.target_topic("t"), 5)
    (found,) = preflight.takeover(flow, filled, {}, EMPTY)
    assert (found.severity, found.kind, found.count) == ("critical", "takeover", 1)
    assert "takeover:orders" in found.action
    accepted = replace(flow, accept=("takeover:orders",))
    assert [*preflight.takeover(accepted, filled, {}, EMPTY)] == []
    assert [*preflight.takeover(flow, filled, {"t": {0: 1}}, EMPTY)] == []
    assert [*preflight.takeover(flow, filled, {}, ALIVE)] == [], "it runs and has not committed yet"
    assert [*preflight.takeover(flow, cluster("west", flow.target_topic("t"), 0), {}, EMPTY)] == []
    emptied = cluster("west", flow.target_topic("t"), 5, start=5)
    assert [*preflight.takeover(flow, emptied, {}, EMPTY)] == []


@pytest.mark.parametrize(("flow", "word"), [(FLOW, "tasks_max"), (MM1, "num_streams")])
def test_more_tasks_than_partitions_are_idle(flow: Flow, word: str) -> None:
    (found,) = preflight.idle_tasks(replace(flow, parallelism=3), source(1))
    assert (found.severity, found.kind, found.count) == ("warning", "idle_tasks", 2)
    assert word in found.action
    assert [*preflight.idle_tasks(replace(flow, parallelism=1), source(1))] == []
    nothing = ClusterSnapshot("east", "east", NOW, {})
    assert [*preflight.idle_tasks(replace(flow, parallelism=3), nothing)] == []


@pytest.mark.parametrize(
    ("typed", "measured", "expected"),
    [
        (None, 0.8, None), (None, 9.0, None), (None, 48.2, "that it is near"),
        (50, 48.2, None), (50, 74.0, None), (50, 77.0, "50 ms"), (50, 2.4, "50 ms"),
    ],
)  # fmt: skip
def test_a_distance_that_is_not_as_typed_is_a_warning(
    typed: int | None, measured: float, expected: str | None
) -> None:
    flow = replace(FLOW, round_trips_ms={} if typed is None else {FLOW.source: typed})
    found = [*preflight.distance(flow, FLOW.source, measured)]
    assert bool(found) == bool(expected)
    for each in found:
        assert (each.severity, each.kind) == ("warning", "distance")
        assert f"the inventory says {expected}" in each.message
        assert (
            f"distance.{FLOW.source}.round_trip_ms of mirrormaker to {measured:.0f}" in each.action
        )


def test_more_replicas_than_brokers_are_refused() -> None:
    flow = replace(FLOW, replication_factors={"replication.factor": 3, "other": 2})
    (found,) = preflight.replication_factors(flow, 2)
    assert (found.severity, found.kind, found.count) == ("critical", "replication_factor", 3)
    assert preflight.replication_factors(flow, 3) == []


def internal(policy: str | None) -> ClusterSnapshot:
    every = {0: PartitionSnapshot(0, 0, 0)}
    configs = {} if policy is None else {"cleanup.policy": policy}
    topic = TopicSnapshot(FLOW.offset_topic, "id", every, configs, None)
    return ClusterSnapshot("west", "west", NOW, {topic.name: topic})


def test_internal_topics_have_to_be_compacted() -> None:
    assert [*preflight.internal_topics(FLOW, internal("compact"))] == []
    for policy in ("delete", "compact,delete"):
        (found,) = preflight.internal_topics(FLOW, internal(policy))
        assert (found.severity, found.kind) == ("critical", "internal_topic")
        assert found.topic == FLOW.offset_topic
        assert "Ask who made it" in found.action
        assert "kafka-" not in found.action, "no command changes a topic that steers a mirror"


def test_internal_topics_whose_settings_are_hidden_were_not_checked() -> None:
    (found,) = preflight.internal_topics(FLOW, internal(None))
    assert (found.severity, found.kind) == ("warning", "not_checked")
    assert FLOW.offset_topic in found.message


def test_groups_to_sync_have_to_exist() -> None:
    flow = replace(FLOW, consumer_groups=("app-.*",))
    assert [finding.kind for finding in preflight.no_groups(flow, ["other"])] == ["no_groups"]
    assert [*preflight.no_groups(flow, ["other", "app-1"])] == []
    assert [*preflight.no_groups(FLOW, [])] == []


def test_a_flow_of_which_no_group_was_examined_says_why() -> None:
    for changes, why in (
        ({"engine": engines.MM1}, "MirrorMaker 1 takes no groups along"),
        ({"consumer_groups": ()}, "consumer_groups is empty"),
        ({"consumer_groups": ("app-.*", "b")}, "no group of east that it would sync matches app-"),
    ):
        finding = failover.none_examined(replace(FLOW, **changes))
        assert (finding.kind, finding.severity, finding.flow) == ("no_groups", "warning", FLOW.name)
        assert why in finding.message
        assert finding.action
    finding = failover.none_examined(FLOW, ["app-1", "b"])
    assert "nothing of app-1, b is committed on west yet" in finding.message
    assert f"after {FLOW.checkpoint_seconds} s" in finding.action
