"""Why a mirror of this host ends or stands still: root's records in, findings out; no I/O."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from mirror_report.checks import causes, remedies
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, PartitionLag, UnitRecord

# Fewer ends are no finding.
ENDS = 3
# A process that has run for so long is up.
UP_SECONDS = 120
SHOWN = 3
# Findings that the cause belongs to.
STANDS_STILL = frozenset({"stopped", "not_running", "stalled", "task_failed"})


def findings(
    flow: Flow,
    records: Sequence[UnitRecord],
    kinds: Collection[str],
    rows: Sequence[PartitionLag] = (),
) -> Iterator[Finding]:
    """Why the flow's process on this host ends again and again, or does not do its work.

    :param records: of this host's units; nothing is known of other hosts.
    :param kinds: of the flow's other findings.
    :param rows: its lag, which shows where a record lies that the target refuses.
    """
    for record in records:
        if record.name == flow.instance and record.problem:
            yield finding(
                "not_checked",
                f"{flow.instance}: {record.problem}, so why it ends or stands still is not known",
                f"On the mirror's host: systemctl status {flow.instance}.service, and "
                f"{remedies.journal(flow)}",
                flow=flow.name,
            )
        elif record.name == flow.instance:
            why = _why(flow, record, rows)
            yield from _ends(flow, record, why)
            yield from _refused(flow, record) or _stands_still(flow, record, kinds, why)


def _refused(flow: Flow, record: UnitRecord) -> list[Finding]:
    return [
        finding(
            "hindered",
            f"{flow.instance} could not log in now: {answer}",
            "Give the mirror the login that the cluster knows (identities of kafka_clusters) and "
            "run the play that deploys it",
            flow=flow.name,
        )
        for answer in record.refused
    ]


def not_recorded(path: str) -> Finding:
    """Root has left no record of this host's mirrors, none that can be read, or an old one."""
    return finding(
        "not_checked",
        f"{path} is missing, old or damaged: why a mirror on this host ends or stands still is "
        "not known, nor whether one runs that no inventory names",
        "systemctl start mirror-report-units.service on this host writes it, and journalctl -u "
        "mirror-report-units.service says why it was not written",
    )


def _why(flow: Flow, record: UnitRecord, rows: Sequence[PartitionLag]) -> str:
    """The cause in words, and where a record lies that the target refuses."""
    why = causes.in_words(record.cause) + causes.age_in_words(record.cause, record.at)
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


def _ends(flow: Flow, record: UnitRecord, why: str) -> Iterator[Finding]:
    up = record.runs and (record.running_seconds or 0) >= UP_SECONDS
    if record.ends >= ENDS and not up and record.active != "inactive":
        since = datetime.fromtimestamp(record.history[0][0], UTC).strftime("%H:%M:%S UTC")
        yield finding(
            "restarting",
            f"{flow.instance}: its process ended {record.ends} times since {since}"
            + (f", the last time with {record.ended}" if record.ended else "")
            + (f": {why}" if why else ", and its journal names no cause that is known here"),
            f"{remedies.journal(flow)} shows more. Mend the cause: it starts again by itself, at "
            f"once with {remedies.service(flow, 'restart')}",
            flow=flow.name,
            count=record.ends,
        ).rated("warning" if record.runs else "critical")


def _stands_still(
    flow: Flow, record: UnitRecord, kinds: Collection[str], why: str
) -> Iterator[Finding]:
    stands_still = STANDS_STILL & {*kinds} and record.active != "inactive"
    # Why a process ends is in the finding about its ends.
    if why and stands_still and (record.runs or record.ends < ENDS):
        yield finding(
            "hindered",
            f"by the journal of {flow.instance}, {why}",
            f"{remedies.journal(flow)} shows more. Mend the cause; a process that runs goes on by "
            f"itself, a failed task after {remedies.connector(flow, 'restart')}",
            flow=flow.name,
        )


def resting(
    flow: Flow, records: Sequence[UnitRecord], instances: Collection[str], kinds: Collection[str]
) -> list[Finding]:
    """The flow's process does not run on this host, while one on another does its work.

    :param instances: of this host, by the inventory.
    :param kinds: of the flow's other findings.
    """
    if len(flow.hosts) < 2 or {"stopped", "not_running"} & {*kinds}:
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
        for record in records
        if record.name == flow.instance and record.name in instances
        if record.active in {"inactive", "failed"}
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
