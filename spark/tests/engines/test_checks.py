"""Every check of a flow goes by the facts of its engine, also of one it does not know."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from cases import CLUSTERS, EMPTY, GROUP, Case, snapshot, topic
from made_up import EVERY, MADE_UP, flow_of

from mirror_report import checks
from mirror_report.checks import (
    content,
    control,
    coverage,
    groups,
    lag_findings,
    permissions,
    positions,
    preflight,
    processes,
    releases,
    remedies,
    sysconfig,
    topic_identity,
    topic_status,
    topics,
    workers,
)
from mirror_report.engines import MM1, MM2, Engine, PositionStore, WorkerStore
from mirror_report.model import (
    Baseline,
    Cause,
    FlowStatus,
    ForeignRecords,
    GroupSnapshot,
    OpenTransaction,
    TopicBaseline,
    UnitRecord,
)
from mirror_report.parity.plan import strategies


def row_texts(case: Case) -> list[str]:
    on_source = {
        "t": 1,
        "heartbeats": 1,
        "__in": 1,
        "__consumer_offsets": 1,
        "west.t": 1,
        "t-old": 1,
        "else": 1,
    }
    rows = topic_status.statuses(case.flow, case.source, case.target, on_source, ["t-gone"], {})
    return [row.reason for row in rows]


CALLS: Mapping[str, Callable[[Case], Any]] = {
    "content.findings": lambda c: content.findings(EMPTY, c.flow, CLUSTERS),
    "positions.estimates": lambda c: positions.estimates(c.flow, c.source, c.copied, c.mirror, ()),
    "failover.findings": Case.grouped,
    "failover.none_examined": Case.grouped,
    "groups.parities": Case.grouped,
    "groups.committed_offsets": lambda c: groups.committed_offsets(c.flow, c.offsets),
    "groups.unproved": Case.grouped,
    "lag.measure": lambda c: c.rows,
    "lag_findings.old_heartbeat": lambda c: lag_findings.old_heartbeat(
        c.flow,
        FlowStatus(
            "orders", c.flow.engine.name, "east", "west", "A", "B", "g", "Stable", 1, (), 1e9
        ),
        300,
        CLUSTERS["east"],
    ),
    "lag_findings.hung_transactions": lambda c: lag_findings.hung_transactions(
        c.flow, {("t", 0): OpenTransaction(1, 1e9, False, "x")}, CLUSTERS["east"], 300
    ),
    "lag_findings.findings": Case.lagging,
    "lag_findings.unreadable_records": lambda c: lag_findings.unreadable_records(
        c.flow, CLUSTERS["east"], {("t", 0): (5, 9)}, {("t", 0): "it cannot be read"}
    ),
    "lag_findings.ages_not_asked": lambda c: lag_findings.ages_not_asked(c.flow, 3, 1),
    "releases.unalterable_settings": lambda c: releases.unalterable_settings(c.flow, (2, 1)),
    "releases.more_permissions": lambda c: releases.more_permissions(c.flow, "west", (2, 1)),
    "losses.findings": Case.lost,
    "losses.newly_lost": Case.lost,
    "permissions.findings": Case.allowed,
    "permissions.names_of": Case.allowed,
    "permissions.not_configured": lambda c: permissions.not_configured(c.flow),
    "permissions.questions": Case.allowed,
    "permissions.rows_of": Case.allowed,
    "positions.begin": lambda c: positions.begin(
        c.flow, c.source.topics["t"], 0, Baseline(topics={"t": TopicBaseline()})
    ),
    "positions.mirror_positions": lambda c: c.places,
    "positions.waiting_ranges": lambda c: c.waiting,
    "preflight.distance": lambda c: preflight.distance(c.flow, "east", 80.4),
    "preflight.idle_tasks": lambda c: preflight.idle_tasks(c.flow, c.source),
    "preflight.internal_names": lambda c: preflight.internal_names(c.flow),
    "preflight.internal_topics": lambda c: preflight.internal_topics(
        c.flow, snapshot("west", *(topic(name, 0, 1) for name in preflight.internal_names(c.flow)))
    ),
    "preflight.no_groups": lambda c: preflight.no_groups(c.flow, ["other"]),
    "preflight.replication_factors": lambda c: preflight.replication_factors(c.flow, 1),
    "preflight.takeover": lambda c: preflight.takeover(
        c.flow, c.copied, {}, GroupSnapshot("g", "Empty", ())
    ),
    "processes.resting": lambda c: processes.resting(
        replace(c.flow, instance="mirrormaker", hosts=("here", "there")),
        [UnitRecord("mirrormaker", "inactive", "dead")],
        ["mirrormaker"],
        [],
    ),
    "processes.findings": lambda c: processes.findings(
        replace(c.flow, instance="mirrormaker"),
        [UnitRecord("mirrormaker", "active", "running", 0.0, 9.0, cause=Cause("login_refused"))],
        ["stalled"],
    ),
    "topic_identity.recreated_on_target": lambda c: topic_identity.recreated_on_target(
        c.flow, {"t": ("a", "b")}, CLUSTERS["east"]
    ),
    "remedies.start_mirror": lambda c: remedies.start_mirror(c.flow),
    "remedies.host": lambda c: remedies.host(c.flow),
    "remedies.journal": lambda c: remedies.journal(c.flow),
    "remedies.renew": lambda c: remedies.renew(c.flow),
    "remedies.full_history": lambda c: remedies.full_history(c.flow, "t"),
    "remedies.service": lambda c: remedies.service(c.flow, "restart"),
    "remedies.connector": lambda c: remedies.connector(c.flow, "restart"),
    "selection.findings": Case.selected,
    "selection.disagreements": Case.selected,
    "shifts.findings": Case.shifted,
    "shifts.offset_shifts": Case.shifted,
    "topic_status.candidates": lambda c: topic_status.candidates(
        c.flow, c.source, ["t"], [c.flow.target_topic("t-gone")], ["t-gone"]
    ),
    "topics.setting_differences": lambda c: topics.setting_differences(
        c.flow, c.source.topics["t"], topic("x", 0, 1, max_message_bytes="5")
    ),
    "preflight.same_cluster": lambda c: preflight.same_cluster(c.flow, c.source, c.source),
    "sysconfig.drift": lambda c: sysconfig.drift(c.flow, 'MM_INCLUDE="another"'),
    "control.access": lambda c: control.access(
        replace(c.flow, worker_principal="User:m"), {"t": [("User:x", "WRITE", True)]}
    ),
    "control.control_records": lambda c: control.control_records(
        c.flow, [ForeignRecords("status", 0, 2, 7, "no JSON", 1000)], 2000
    ),
    "coverage.nothing_seen": lambda c: coverage.nothing_seen(
        c.flow, snapshot("east", topic("t", 0, 0)), snapshot("west", topic("t", 0, 0)), Baseline()
    ),
    "topic_status.foreign_topics": lambda c: topic_status.foreign_topics(
        c.flow,
        snapshot("east", topic("t", 0, 0)),
        snapshot("west", topic(c.flow.target_topic("t"), 0, 5)),
        {},
        [],
    ),
    "topic_status.not_made": lambda c: topic_status.not_made(
        c.flow, {"held": ["t"]}, c.source, Baseline()
    ),
    "topic_status.unfed": lambda c: topic_status.unfed(
        replace(c.flow, replication_policy="identity"), [], ["t"], [], []
    ),
    "topic_status.impossible_copies": lambda c: topic_status.impossible_copies(
        replace(c.flow, topics=(".*",)), c.source, ["t", "t" * 300], []
    ),
    "topic_status.too_long": lambda c: str(topic_status.too_long(c.flow, "t")),
    "topic_status.orphaned": lambda c: topic_status.orphaned(c.flow, ["t-gone"], []),
    "topic_status.statuses": row_texts,
    "topic_status.why_not": row_texts,
    "topics.blocking_topics": lambda c: topics.blocking_topics(
        c.flow, c.source, c.target, auto_creation=False
    ),
    "topics.findings": lambda c: [
        *topics.findings(c.flow, c.source, c.target, auto_creation=None),
        *topics.findings(c.flow, c.source, c.target, auto_creation=False),
    ],
    "topics.not_readable": lambda c: topics.not_readable(c.flow, c.source),
    "topics.settings_not_read": lambda c: topics.settings_not_read(
        c.flow, [snapshot("west", replace(topic("t", 0, 1), configs={}))]
    ),
    "workers.findings": lambda c: workers.findings(c.flow, c.mirror, GROUP),
    "workers.no_worker": lambda c: workers.no_worker(
        c.flow, {"t": {0: 1}}, replace(GROUP, members=())
    ),
    "workers.not_running": lambda c: workers.not_running(c.flow, c.mirror, tasks_expected=True),
}


def of_flows() -> set[str]:
    """Public functions of the checks that are given a flow, on its own or in what they judge."""
    found = set()
    for info in pkgutil.iter_modules(checks.__path__):
        module = import_module(f"mirror_report.checks.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            given = {getattr(kind, "__name__", kind) for kind in function.__annotations__.values()}
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and given & {"Flow", "Scene"}:
                found.add(f"{info.name}.{name}")
    return found


def answer(case: Case, name: str) -> Any:
    """What a function returns, or all that it yields."""
    returned = CALLS[name](case)
    return [*returned] if isinstance(returned, Iterator) else returned


def test_every_check_of_a_flow_is_called() -> None:
    assert set(CALLS) == of_flows()


@pytest.mark.parametrize("engine", MADE_UP, ids=lambda engine: engine.name)
def test_every_check_takes_an_engine_it_does_not_know(engine: Engine) -> None:
    case = Case(flow_of(engine))
    for name in CALLS:
        found = answer(case, name)
        assert found or name.startswith(("preflight.internal", "releases.unalt")), name
        assert "MirrorMaker " not in str(found), name


def text(engine: Engine, name: str) -> str:
    return str(answer(Case(flow_of(engine)), name))


@pytest.mark.parametrize("engine", EVERY, ids=lambda engine: engine.name)
def test_checks_say_what_the_facts_are(engine: Engine) -> None:
    in_group = engine.positions is PositionStore.SOURCE_GROUP
    said = {
        "--reset-offsets --to-offset": ("content.findings", in_group),
        "group_commit": ("positions.mirror_positions", in_group),
        "connect_offsets": ("positions.mirror_positions", not in_group),
        "into offsets": ("topic_identity.recreated_on_target", not in_group),
        "topic offsets on west": ("lag_findings.findings", not in_group),
        "(g on east)": ("preflight.takeover", engine.workers is WorkerStore.GROUP_MEMBERS),
        "blocks the mirror for ever": ("topics.findings", engine.keeps_partitions),
        "one producer for ever": ("topics.findings", not engine.creates_topics),
        "'orders'": ("lag_findings.findings", True),
        f"raise {engine.parallelism.key} of "
        f"{'orders' if engine.parallelism.of_flow else 'unit'} and": (
            "lag_findings.findings",
            True,
        ),
        f"9 {engine.parallelism.word} for": ("preflight.idle_tasks", True),
        f"{engine.title} takes no groups": ("failover.none_examined", not engine.syncs_groups),
        f"heartbeats: {engine.title} brings": ("topic_status.statuses", engine.has_heartbeats),
        f"{engine.title} leaves it out, also": (
            "topic_status.statuses",
            engine.skips_internal_topics,
        ),
        "'synced'": ("topics.setting_differences", engine.syncs_topic_configs),
        "east.t": ("topics.findings", engine.has_replication_policy),
    }  # fmt: skip
    for words, (name, expected) in said.items():
        assert (words in text(engine, name)) is expected, (words, name)


def test_internal_topics_are_those_an_engine_keeps() -> None:
    every = ["offsets", "status", "configs", "syncs", "checkpoints"]
    assert preflight.internal_names(flow_of(MM2)) == every
    assert preflight.internal_names(flow_of(MM1)) == []
    grouped = replace(MM2, positions=PositionStore.SOURCE_GROUP, syncs_groups=False)
    assert preflight.internal_names(flow_of(grouped)) == ["status", "configs", "syncs"]
    membered = replace(MM2, workers=WorkerStore.GROUP_MEMBERS, has_offset_syncs=False)
    assert preflight.internal_names(flow_of(membered)) == ["offsets", "checkpoints"]


def test_command_for_the_process_is_the_engines_own() -> None:
    made_up = replace(MM1, control="connectctl {verb} {instance}")
    assert remedies.service(flow_of(made_up), "restart") == "connectctl restart unit"
    assert "connectctl restart unit" in text(made_up, "workers.findings")
    assert "systemctl restart unit.service" in text(MM2, "workers.findings")


def test_a_connector_that_shares_its_process_is_restarted_alone() -> None:
    shared = replace(MM2, connector_control={"restart": "restart {connector} of {instance}"})
    flow = flow_of(shared)
    assert remedies.connector(flow, "restart") == f"restart {flow.connectors[0]} of unit"
    assert remedies.connector(flow, "stop") == "systemctl stop unit.service"
    assert "then restart MirrorSourceConnector of unit" in text(shared, "workers.findings")


@pytest.mark.parametrize("engine", EVERY, ids=lambda engine: engine.name)
def test_content_is_compared_by_offset_syncs_where_there_are_some(engine: Engine) -> None:
    mirrored = topic("t", 0, 1)
    chosen = strategies.choose(flow_of(engine), [mirrored], mirrored, untimed=True)
    assert chosen.strategy == ("offset_syncs" if engine.has_offset_syncs else "none")
    assert engine.has_offset_syncs or f"{engine.title} says nothing" in chosen.reason
