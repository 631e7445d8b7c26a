"""Connectors and tasks of a mirror, as Kafka Connect describes them: no I/O."""

from mirror_report.checks.remedies import connector
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, GroupSnapshot, MirrorStatus, WorkerState


def judge(flow: Flow, mirror: MirrorStatus, group: GroupSnapshot) -> list[Finding]:
    """Failed connectors and tasks; without a worker they say nothing any more."""
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
