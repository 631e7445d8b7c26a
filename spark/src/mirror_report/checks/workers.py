"""Connectors and tasks of a mirror, as Kafka Connect describes them: no I/O."""

from mirror_report.checks.remedies import connector, start
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, GroupSnapshot, MirrorStatus, Positions, WorkerState

# What somebody asks of a connector; Connect never does it by itself.
ASKED = ("PAUSED", "STOPPED")


def judge(flow: Flow, mirror: MirrorStatus, group: GroupSnapshot) -> list[Finding]:
    """Failed and resting connectors and tasks; without a worker they say nothing any more."""
    if not group.members:
        return []
    return [
        finding(
            "task_failed",
            f"{_name(worker)} of {flow.instance} has failed: "
            f"{worker.error or 'no reason is given'}",
            f"The process goes on without it. Look into journalctl -u {flow.instance}.service, "
            f"then {connector(flow, 'restart', worker.connector)}",
            flow=flow.name,
        )
        for worker in mirror.workers
        if worker.state == "FAILED"
    ] + _resting(flow, mirror)


def _resting(flow: Flow, mirror: MirrorStatus) -> list[Finding]:
    """Connectors that do nothing until somebody asks for it, whether or not records wait."""
    found = [
        finding(
            "not_running",
            f"connector {worker.connector} is {worker.state}: what is its work waits until it is "
            "resumed",
            f"If that is not intended: {connector(flow, 'start', worker.connector)}",
            flow=flow.name,
        )
        for worker in mirror.workers
        if worker.task is None and worker.state in ASKED
    ]
    # A process of its own makes its connectors when it starts; others may delete those of Connect.
    shared = bool(flow.engine.connector_control)
    known = {worker.connector for worker in mirror.workers if worker.task is None}
    unsure = mirror.problems or not mirror.positions
    if shared and flow.connectors[0] not in known and not unsure:
        found.append(
            finding(
                "not_running",
                f"connector {flow.connectors[0]} is not there, so nobody would mirror what comes",
                "Run playbooks/kafka-connect.yml, which creates the connectors of the flows",
                flow=flow.name,
            )
        )
    return found


def nobody(flow: Flow, positions: Positions, group: GroupSnapshot) -> list[Finding]:
    """A mirror that has worked before and has no process now."""
    if group.members or not positions:
        return []
    return [
        finding(
            "not_running",
            f"nobody mirrors: group {flow.group_id} has no member (state {group.state})",
            start(flow),
            flow=flow.name,
        )
    ]


def not_running(flow: Flow, mirror: MirrorStatus, *, tasks_expected: bool) -> list[str]:
    """What keeps the flow's connectors from their work; empty: they run.

    :param tasks_expected: there is something to copy.
    """
    lacking: list[str] = []
    copies, syncs_groups, _ = flow.connectors
    for name in (copies, *((syncs_groups,) if flow.consumer_groups else ())):
        own = [worker for worker in mirror.workers if worker.connector == name]
        lacking += [
            f"{_name(worker)} is {worker.state}" + (f" ({worker.error})" if worker.error else "")
            for worker in own
            if worker.state != "RUNNING"
        ]
        tasks = {worker.task for worker in own}
        if None not in tasks:
            lacking.append(f"{name} has not started")
        elif tasks_expected and name == copies and tasks == {None}:
            lacking.append(f"{name} has no task")
    return lacking


def _name(worker: WorkerState) -> str:
    return worker.connector if worker.task is None else f"task {worker.task} of {worker.connector}"
