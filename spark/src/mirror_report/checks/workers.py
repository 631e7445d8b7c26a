"""Connectors and tasks of MirrorMaker 2, as Kafka Connect describes them: no I/O."""

from __future__ import annotations

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, GroupSnapshot, Standing, WorkerState

SOURCE_CONNECTOR = "MirrorSourceConnector"


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


def not_running(standing: Standing, *, tasks_expected: bool) -> list[str]:
    """What keeps the connector that copies records from doing so; empty: it runs."""
    own = [one for one in standing.workers if one.connector == SOURCE_CONNECTOR]
    states = {one.task for one in own}
    lacking = [
        f"{_name(one)} is {one.state}" + (f" ({one.error})" if one.error else "")
        for one in own
        if one.state != "RUNNING"
    ]
    if None not in states:
        lacking.append(f"{SOURCE_CONNECTOR} has not started")
    elif tasks_expected and states == {None}:
        lacking.append(f"{SOURCE_CONNECTOR} has no task")
    return lacking


def _name(one: WorkerState) -> str:
    return one.connector if one.task is None else f"task {one.task} of {one.connector}"
