"""The report on a real MirrorMaker 2: one process, its own topics, and a crash."""

import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from mm2_lab import PATIENCE, Lab, admin, until

from mirror_report.baseline.record import record_baselines
from mirror_report.check.flows import check_flows
from mirror_report.confirm.flows import confirm_flows
from mirror_report.lag.measure import LagResult, measure_lag
from mirror_report.model import Confirmation, Report
from mirror_report.report.make import make_report
from mirror_report.state.store import Store

LOCALHOST = "127.0.0.1"

pytestmark = pytest.mark.usefixtures("without_spark")


def found(result: LagResult) -> dict[str, int | None]:
    return {finding.kind: finding.count for finding in result.findings}


@pytest.fixture(scope="module")
def whole(make: Callable[[str, str], Lab]) -> Lab:
    """Two partitions with 500 records each, all of them mirrored; the mirror runs."""
    lab = make("prefix", "whole")
    lab.create(partitions=2)
    lab.produce(1000)
    lab.mirror.start("prefix")
    lab.drained()
    return lab


def test_positions_are_what_was_copied(whole: Lab) -> None:
    seen = whole.observe()
    assert seen.positions[whole.topic] == {0: 500, 1: 500}
    target = seen.target.topics[whole.mirrored]
    assert {p: partition.log_end for p, partition in target.partitions.items()} == {0: 500, 1: 500}


def test_workers_are_members_without_consumer_assignments(whole: Lab) -> None:
    group = whole.observe().group
    assert group.state == "Stable"
    assert [(member.host, member.partitions) for member in group.members] == [(LOCALHOST, ())]


def test_connector_and_task_run(whole: Lab) -> None:
    states = {
        (worker.connector, worker.task): worker.state for worker in whole.observe().mirror.workers
    }
    assert states["MirrorSourceConnector", None] == "RUNNING"
    assert states["MirrorSourceConnector", 0] == "RUNNING"


def test_mirror_that_is_through_has_no_lag_and_no_finding(whole: Lab) -> None:
    result = whole.lag()
    assert found(result) == {}
    assert [(row.lag_records, row.position, row.estimate) for row in result.rows] == [
        (0, 500, 500), (0, 500, 500),
    ]  # fmt: skip
    assert {row.estimate_source for row in result.rows} == {"offset_syncs"}


def test_second_observation_reads_on_where_the_first_ended(whole: Lab) -> None:
    whole.lag()
    memory = Store(whole.directory / "state").load("mirrors")[whole.topic]
    offsets = memory["mm2-offsets.east.internal"]
    assert sum(offsets["next"].values()) > 0
    assert [row.position for row in whole.lag().rows] == [500, 500]


def test_check_of_a_running_mirror_finds_nothing(whole: Lab) -> None:
    checked = check_flows(whole.settings())
    assert checked.findings == []
    assert [(flow.source_brokers, flow.target_brokers) for flow in checked.flows] == [(1, 1)]


def test_check_tells_what_cannot_be(whole: Lab) -> None:
    changes = {
        "replication_factors": {"replication.factor": 3, "offset.storage.replication.factor": 1},
        "consumer_groups": ["nobody-.*"],
        "parallelism": 5,
    }  # fmt: skip
    assert {
        finding.kind: finding.count for finding in check_flows(whole.settings(changes)).findings
    } == {
        "replication_factor": 3, "no_groups": None, "idle_tasks": 3,
    }  # fmt: skip


def test_check_tells_an_offsets_topic_that_is_not_compacted(whole: Lab) -> None:
    name = "not-compacted"
    with admin(whole.target) as client:
        client.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "delete"})])
        client.wait_for_topics([name])
    found = check_flows(whole.settings({"config_topic": name})).findings
    assert [(finding.kind, finding.topic) for finding in found] == [("internal_topic", name)]


def test_confirm_sees_records_flow(whole: Lab) -> None:
    def progress(_: str) -> None:
        return

    whole.produce(2000)
    (found,) = confirm_flows(whole.settings(), None, [LOCALHOST], 60, progress).flows
    assert found.ok, found.text
    whole.drained()
    (found,) = confirm_flows(whole.settings(), None, [LOCALHOST], 60, progress).flows
    assert (found.ok, found.flowing) == (True, None)


def test_confirm_wants_the_own_member(whole: Lab) -> None:
    (found,) = confirm_flows(whole.settings(), None, ["192.0.2.7"], 1, lambda _: None).flows
    assert not found.ok
    assert f"members from {LOCALHOST}, expected one from 192.0.2.7" in found.text


@pytest.mark.usefixtures("whole")
def test_transactions_are_neither_lag_nor_shift(make: Callable[[str, str], Lab]) -> None:
    lab = make("prefix", "transactions")
    lab.create()
    with contextlib.closing(
        KafkaProducer(bootstrap_servers=lab.source, transactional_id=lab.topic)
    ) as producer:
        producer.init_transactions()

        def mirrored(transactions: int) -> LagResult:
            for _ in range(transactions):
                producer.begin_transaction()
                producer.send(lab.topic, value=b"one")
                producer.commit_transaction()
            lab.drained(markers=1)
            return lab.lag()

        assert found(mirrored(5)) == {}
        make_report(lab.settings(), None, lambda _: None)
        result = mirrored(5)
    (row,) = result.rows
    assert (row.log_end, row.position, row.lag_records) == (20, 19, 0)
    assert found(result) == {}


def test_permissions_that_are_missing_are_named(
    whole: Lab, target_broker: Any, sasl_users: Mapping[str, str]
) -> None:
    user = {
        "bootstrap_servers": [target_broker.sasl], "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN", "username": "reader",
    }  # fmt: skip
    settings = whole.settings(west=user, secrets={"west.report.password": sasl_users["reader"]})
    store = Store(whole.directory / "as-reader")

    def messages() -> list[str]:
        result = measure_lag(settings, store)
        assert {finding.kind for finding in result.findings} == {"permission"}
        return [finding.message for finding in result.findings]

    def allow(kind: str, name: str) -> None:
        what = ResourcePattern(ResourceType[kind], name)
        operation = ACLOperation.DESCRIBE if kind == "GROUP" else ACLOperation.READ
        with admin(whole.target) as client:
            client.create_acls([ACL("User:reader", "*", operation, ACLPermissionType.ALLOW, what)])

    assert "describe group east-mm2" in messages()[0]
    allow("GROUP", "east-mm2")
    assert "mm2-offsets.east.internal" in messages()[0]
    allow("TOPIC", "mm2-offsets.east.internal")
    allow("TOPIC", whole.mirrored)
    first, second = messages()
    assert "mm2-offset-syncs.east.internal" in first
    assert "mm2-status.east.internal" in second
    assert [row.position for row in measure_lag(settings, store).rows] == [1500, 1500]


@dataclass
class Scenario:
    """What the report said while the mirror was down, and after it came back."""

    crashed: Lab
    truncated: Lab
    recreated: Lab
    down: dict[str, LagResult] = field(default_factory=dict)
    back: dict[str, LagResult] = field(default_factory=dict)
    confirmed: Confirmation | None = None
    uncommitted: int = 0
    surplus: int = 0


def crash(lab: Lab) -> int:
    """Kill the mirror when it has copied records and not committed them: how many they are."""
    deadline = time.monotonic() + PATIENCE
    while True:
        copied = lab.counts().target
        lab.produce(5000)
        until(partial(lab.copied_past, copied))
        # Halted, it cannot commit between the observation and its end.
        lab.mirror.signal(signal.SIGSTOP)
        now = lab.counts()
        if now.target > now.committed:
            lab.mirror.end()
            return now.target - now.committed
        lab.mirror.signal(signal.SIGCONT)
        assert time.monotonic() < deadline, "the mirror commits as fast as it copies"


@pytest.fixture(scope="module")
def scenario(whole: Lab, make: Callable[[str, str], Lab]) -> Scenario:
    """Kill the mirror under load; truncate one topic, recreate another; start it again."""
    labs = {name: make("prefix", name) for name in ("crashed", "truncated", "recreated")}
    outcome = Scenario(labs["crashed"], labs["truncated"], labs["recreated"])
    for lab in labs.values():
        lab.create()
        lab.produce(1000)
    for lab in labs.values():
        lab.drained()
        record_baselines(lab.settings(), None, full_history=False, renew=False)
        make_report(lab.settings(), None, lambda _: None)
    outcome.uncommitted = crash(outcome.crashed)
    outcome.truncated.produce(1000)
    outcome.truncated.truncate(1500)
    outcome.recreated.recreate()
    outcome.recreated.produce(1500)
    until(lambda: not whole.observe().group.members)
    outcome.down = {name: lab.lag() for name, lab in labs.items()}
    (outcome.confirmed,) = confirm_flows(
        whole.settings(), None, [LOCALHOST], 1, lambda _: None
    ).flows
    whole.mirror.start("prefix")
    for lab in labs.values():
        lab.drained()
    counts = outcome.crashed.counts()
    outcome.surplus = counts.target - counts.source
    outcome.back = {name: lab.lag() for name, lab in labs.items()}
    return outcome


def test_stopped_mirror_is_recognized_by_its_empty_group(scenario: Scenario) -> None:
    (row,) = scenario.down["crashed"].rows
    assert (row.state, found(scenario.down["crashed"])) == ("STOPPED", {"stopped": row.lag_records})
    assert row.lag_records is not None
    assert row.lag_records >= scenario.uncommitted


def test_estimate_is_ahead_of_what_was_committed(scenario: Scenario) -> None:
    (row,) = scenario.down["crashed"].rows
    assert row.position is not None
    assert row.estimate == row.position + scenario.uncommitted


def test_confirm_fails_without_a_process(scenario: Scenario) -> None:
    assert scenario.confirmed is not None
    assert not scenario.confirmed.ok
    assert "members from none" in scenario.confirmed.text


def test_records_gone_before_they_were_mirrored_are_lost_by_number(scenario: Scenario) -> None:
    (row,) = scenario.down["truncated"].rows
    assert (row.state, row.lost, row.lag_records) == ("TRUNCATED", 500, 500)
    assert found(scenario.down["truncated"]) == {"truncated": 500, "stopped": 500}


def test_topic_recreated_and_grown_past_the_position_is_a_reset(scenario: Scenario) -> None:
    (row,) = scenario.down["recreated"].rows
    assert (row.position, row.log_end, row.state) == (1000, 1500, "RESET")
    assert found(scenario.down["recreated"]) == {"reset": 1}
    # Nothing but the topic's id tells it afterwards either: both logs end at 1500.
    (row,) = scenario.back["recreated"].rows
    assert (row.position, row.lag_records, row.state) == (1500, 0, "RESET")
    assert scenario.recreated.counts().target == 1500


def test_shift_falls_by_what_the_crash_copied_twice(scenario: Scenario) -> None:
    assert scenario.surplus == scenario.uncommitted
    assert found(scenario.back["crashed"]) == {"offset_shift": scenario.surplus}
    (row,) = scenario.back["crashed"].rows
    assert (row.position, row.estimate, row.lag_records) == (row.log_end, row.log_end, 0)


def test_shift_rises_by_what_was_passed_over(scenario: Scenario) -> None:
    assert found(scenario.back["truncated"]) == {"offset_shift": 500, "truncated": 500}


def test_run_that_dies_before_its_report_has_said_no_shift(scenario: Scenario) -> None:
    def die(_: Report) -> Report:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_report(scenario.truncated.settings(), None, lambda _: None, die)
    assert found(scenario.truncated.lag()) == {"offset_shift": 500, "truncated": 500}


def test_shift_is_said_until_a_run_has_said_it(scenario: Scenario) -> None:
    assert found(scenario.truncated.lag()) == {"offset_shift": 500, "truncated": 500}
    report = make_report(scenario.truncated.settings(), None, lambda _: None)
    assert "offset_shift" in {finding.kind for finding in report.findings}
    assert found(scenario.truncated.lag()) == {"truncated": 500}, "the loss stays"


@pytest.fixture(scope="module")
def identity(scenario: Scenario, make: Callable[[str, str], Lab]) -> Lab:
    """The same two clusters, mirrored under unchanged names by another process."""
    lab = make("identity", "names")
    lab.create(configs={"max.message.bytes": "3000000"})
    lab.produce(100)
    scenario.crashed.mirror.end()
    lab.mirror.start("identity")
    lab.drained()
    return lab


def test_identity_keeps_names(identity: Lab) -> None:
    seen = identity.observe()
    assert list(seen.target.topics) == [identity.topic]
    assert (seen.positions[identity.topic], identity.counts().target) == ({0: 100}, 100)


def test_failed_task_is_reported_with_its_reason(identity: Lab) -> None:
    # More than the mirror's own producer sends at once.
    identity.produce(1, size=1_500_000)
    until(lambda: "task_failed" in found(identity.lag()))
    (failure,) = [finding for finding in identity.lag().findings if finding.kind == "task_failed"]
    assert "task 0 of MirrorSourceConnector" in failure.message
    assert "Exception" in failure.message
    (confirmed,) = confirm_flows(identity.settings(), None, [], 1, lambda _: None).flows
    assert not confirmed.ok
    assert "task 0 of MirrorSourceConnector is FAILED" in confirmed.text
