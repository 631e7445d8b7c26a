"""What root recorded of this host's mirrors, as findings: why one ends or stands still; no I/O."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from mirror_report.checks import causes, remedies
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, PartitionLag, UnitRecord

# As many ends are no accident any more.
ENDS = 3
# A process that has run for so long is up.
UP_SECONDS = 120
SHOWN = 3
# Findings after which one wants to know why.
STANDS_STILL = frozenset({"stopped", "not_running", "stalled", "task_failed"})


def judge(
    flow: Flow,
    records: Sequence[UnitRecord],
    kinds: Collection[str],
    rows: Sequence[PartitionLag] = (),
) -> list[Finding]:
    """Why the flow's process on this host ends again and again, or does not do its work.

    :param records: of this host's units; nothing is known of other hosts.
    :param kinds: of what was found of the flow.
    :param rows: its lag, by which a record that the target refuses is found.
    """
    record = next((each for each in records if each.name == flow.instance), None)
    if record is None:
        return []
    if record.problem:
        return [_not_looked_at(flow, record)]
    refused = [
        finding(
            "hindered",
            f"{flow.instance} could not log in now: {said}",
            "Give the mirror the login that the cluster knows (identities of kafka_clusters) and "
            "run the play that deploys it",
            flow=flow.name,
        )
        for said in record.refused
    ]
    why = _why(flow, record, rows)
    return [*_ends(flow, record, why), *(refused or _stands_still(flow, record, kinds, why))]


def _not_looked_at(flow: Flow, record: UnitRecord) -> Finding:
    return finding(
        "not_checked",
        f"{flow.instance}: {record.problem}, so why it ends or stands still is not known",
        f"On the mirror's host: systemctl status {flow.instance}.service, and "
        f"{remedies.journal(flow)}",
        flow=flow.name,
    )


def not_recorded(path: str) -> list[Finding]:
    """That root has left no record of this host's mirrors, none that can be read, or an old one."""
    return [
        finding(
            "not_checked",
            f"{path} is missing, old or damaged: why a mirror on this host ends or stands still is "
            "not known, nor whether one runs that no inventory names",
            "systemctl start mirror-report-units.service on this host writes it, and journalctl -u "
            "mirror-report-units.service says why it was not written",
        )
    ]


def _why(flow: Flow, record: UnitRecord, rows: Sequence[PartitionLag]) -> str:
    """The cause in words, and where a record lies that the target refuses."""
    why = causes.sentence(record.cause) + causes.since(record.cause, record.at)
    if record.cause is None or record.cause.kind != "record_refused":
        return why
    topic = flow.source_topic(record.cause.topic) or ""
    waits = [
        f"partition {row.partition} from offset {row.position}"
        for row in rows
        if row.topic == topic and row.lag_records and row.position is not None
    ]
    return why + (
        f"; it is among the first that wait in {', '.join(waits[:SHOWN])}" if waits else ""
    )


def _ends(flow: Flow, record: UnitRecord, why: str) -> list[Finding]:
    up = record.runs and (record.running_seconds or 0) >= UP_SECONDS
    if record.ends < ENDS or up or record.active == "inactive":
        return []
    since = datetime.fromtimestamp(record.history[0][0], UTC).strftime("%H:%M:%S UTC")
    return [
        finding(
            "restarting",
            f"{flow.instance}: its process ended {record.ends} times since {since}"
            + (f", the last time with {record.ended}" if record.ended else "")
            + (f": {why}" if why else ", and its journal names no cause that is known here"),
            f"{remedies.journal(flow)} shows more. Mend the cause: it starts again by itself, at "
            f"once with {remedies.service(flow, 'restart')}",
            flow=flow.name,
            count=record.ends,
        ).rated("warning" if record.runs else "critical")
    ]


def _stands_still(
    flow: Flow, record: UnitRecord, kinds: Collection[str], why: str
) -> list[Finding]:
    if not why or not STANDS_STILL & {*kinds} or record.active == "inactive":
        return []
    if record.ends >= ENDS and not record.runs:
        return []  # said with its ends
    return [
        finding(
            "hindered",
            f"by the journal of {flow.instance}, {why}",
            f"{remedies.journal(flow)} shows more. Mend the cause; a process that runs goes on by "
            f"itself, a failed task after {remedies.connector(flow, 'restart')}",
            flow=flow.name,
        )
    ]


def resting(
    flow: Flow, records: Sequence[UnitRecord], instances: Collection[str], kinds: Collection[str]
) -> list[Finding]:
    """The flow's process does not run on this host, while one on another does its work.

    :param instances: of this host, by the inventory.
    :param kinds: of what was found of the flow.
    """
    record = next((each for each in records if each.name == flow.instance), None)
    if (
        record is None
        or record.active not in {"inactive", "failed"}
        or record.name not in instances
        or len(flow.hosts) < 2
        or {"stopped", "not_running"} & {*kinds}
    ):
        return []
    return [
        finding(
            "not_running",
            f"{record.name}.service is not running on this host ({record.active}): the mirror's "
            "work rests on its other hosts",
            f"If it was not stopped on purpose: {remedies.journal(flow)}; "
            f"{remedies.service(flow, 'start')}",
            flow=flow.name,
        )
    ]


def undeclared(records: Sequence[UnitRecord], instances: Collection[str]) -> list[Finding]:
    """Mirrors that run on this host, and that the inventory does not have there any more.

    :param instances: of this host, by the inventory.
    """
    others = [record for record in records if record.name not in instances]
    return [
        finding(
            "not_checked",
            f"{record.problem}: whether it runs is not known, and no inventory names it any more",
            f"On this host: systemctl status {record.name}.service",
        )
        for record in others
        if record.problem
    ] + [
        finding(
            "undeclared",
            f"{record.name}.service runs on this host, and no inventory names it any more: what it "
            "mirrors is not watched, and may arrive twice",
            f"Declare it with state absent and run its play, or systemctl disable --now "
            f"{record.name}.service",
        )
        for record in others
        if record.active in {"active", "activating"}
    ]
