"""Connectors and tasks of MirrorMaker 2, as Kafka Connect describes them: no I/O."""

from __future__ import annotations

from mirror_report.checks.verdict import finding
from mirror_report.config.flow import Flow
from mirror_report.model.cluster import GroupSnapshot
from mirror_report.model.findings import Finding
from mirror_report.model.mirror import Standing, WorkerState

COPIES = "MirrorSourceConnector"
SYNCS_GROUPS = "MirrorCheckpointConnector"


def judge(flow: Flow, standing: Standing, group: GroupSnapshot) -> list[Finding]:
    """Failed connectors and tasks; without a worker they say nothing any more."""
    if not group.members:
        return []
    return [
        finding(
            "task_failed",
            f"{_name(one)} of {flow.instance} has failed: {one.error or 'no reason is given'}",
            f"The process goes on without it. Look into journalctl -u {flow.instance}.service, "
            f"then systemctl restart {flow.instance}.service",
            flow=flow.name,
        )
        for one in standing.workers
        if one.state == "FAILED"
    ]


def not_running(flow: Flow, standing: Standing, *, tasks_expected: bool) -> list[str]:
    """What keeps the flow's connectors from their work; empty: they run.

    :param tasks_expected: there is something to copy.
    """
    lacking: list[str] = []
    for connector in (COPIES, *((SYNCS_GROUPS,) if flow.consumer_groups else ())):
        own = [one for one in standing.workers if one.connector == connector]
        lacking += [
            f"{_name(one)} is {one.state}" + (f" ({one.error})" if one.error else "")
            for one in own
            if one.state != "RUNNING"
        ]
        tasks = {one.task for one in own}
        if None not in tasks:
            lacking.append(f"{connector} has not started")
        elif tasks_expected and connector == COPIES and tasks == {None}:
            lacking.append(f"{connector} has no task")
    return lacking


def _name(one: WorkerState) -> str:
    return one.connector if one.task is None else f"task {one.task} of {one.connector}"
