"""Connectors and tasks of a mirror, as Kafka Connect describes them: no I/O."""

from collections.abc import Iterator

from mirror_report.checks.remedies import connector, start_mirror
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, GroupSnapshot, MirrorStatus, Positions, WorkerState

# States that are set on request; Connect never sets them by itself.
ASKED = ("PAUSED", "STOPPED")


def findings(flow: Flow, mirror: MirrorStatus, group: GroupSnapshot) -> Iterator[Finding]:
    """Failed and resting connectors and tasks; without a worker their states are outdated."""
    if not group.members:
        return
    for worker in mirror.workers:
        if worker.state == "FAILED":
            yield finding(
                "task_failed",
                f"{_name(worker)} of {flow.instance} has failed: "
                f"{worker.error or 'no reason is given'}",
                f"The process goes on without it. Look into journalctl -u {flow.instance}.service, "
                f"then {connector(flow, 'restart', worker.connector)}",
                flow=flow.name,
            )
    connectors = [worker for worker in mirror.workers if worker.task is None]
    for worker in connectors:
        if worker.state in ASKED:
            yield finding(
                "not_running",
                f"connector {worker.connector} is {worker.state}: what is its work waits until it "
                "is resumed",
                f"If that is not intended: {connector(flow, 'start', worker.connector)}",
                flow=flow.name,
            )
    # A process of its own makes its connectors when it starts; others may delete those of Connect.
    shared = bool(flow.engine.connector_control)
    unsure = mirror.problems or not mirror.positions
    missing = flow.connectors[0] not in {worker.connector for worker in connectors}
    if shared and missing and not unsure:
        yield finding(
            "not_running",
            f"connector {flow.connectors[0]} is not there, so nobody would mirror what comes",
            "Run playbooks/kafka-connect.yml, which creates the connectors of the flows",
            flow=flow.name,
        )


def no_worker(flow: Flow, positions: Positions, group: GroupSnapshot) -> Iterator[Finding]:
    """A mirror that has worked before and has no process now."""
    if positions and not group.members:
        yield finding(
            "not_running",
            f"nobody mirrors: group {flow.group_id} has no member (state {group.state})",
            start_mirror(flow),
            flow=flow.name,
        )


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
