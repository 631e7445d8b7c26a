"""What the lag of a flow means to an operator: rows in, findings out; no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mirror_report.checks import remedies
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow
from mirror_report.engines import PositionStore
from mirror_report.model import (
    Finding,
    FlowStatus,
    GroupSnapshot,
    LagState,
    OpenTransaction,
    PartitionLag,
    Place,
)


def findings(
    flow: Flow, rows: Sequence[PartitionLag], group: GroupSnapshot, source: Cluster
) -> Iterator[Finding]:
    """One finding per topic and bad state, and one if nobody mirrors and nothing waits.

    Losses have a module of their own.

    :param rows: what :func:`mirror_report.checks.lag.measure` returned for this flow.
    """
    by_topic: dict[tuple[str, LagState], list[PartitionLag]] = {}
    for row in rows:
        state = row.state
        if state == "TRUNCATED" and row.lag_records and not group.members:
            state = "STOPPED"
        if state not in ("OK", "IDLE", "TRUNCATED"):
            by_topic.setdefault((row.topic, state), []).append(row)
    for (_, state), partitions in by_topic.items():
        yield _of_state(flow, state, partitions, group, source)
    if not group.members and rows and not any(row.lag_records for row in rows):
        what = (
            "nothing waits, and nobody would mirror it"
            if all(row.lag_records is not None for row in rows)
            else "whether records wait is not known, and nobody would mirror them"
        )
        yield finding(
            "not_running",
            f"{what}: group {flow.group_id} has no member (state {group.state})",
            remedies.start_mirror(flow),
            flow=flow.name,
        )


def _of_state(
    flow: Flow, state: LagState, rows: Sequence[PartitionLag], group: GroupSnapshot, source: Cluster
) -> Finding:
    """One state of those partitions of a topic that are in it."""
    topic, behind, age = rows[0].topic, sum(row.lag_records or 0 for row in rows), _oldest(rows)
    where = f"on {len(rows)} partition{'s' if len(rows) != 1 else ''}"
    never = any(row.catches_up is False for row in rows)
    members = ", ".join(sorted({member.host for member in group.members}))
    parallelism, restart = flow.engine.parallelism, remedies.connector(flow, "restart")
    host, journal = remedies.host(flow), remedies.journal(flow)
    describe = remedies.tool(source, "kafka-topics.sh", "--describe", "--topic", topic)
    texts: Mapping[LagState, tuple[str, int | None, str, str]] = {
        "RESET": (
            "reset", len(rows),
            f"{topic}: deleted and created again on {flow.source}, or its log is shorter than the "
            f"mirror's position ({where})",
            f"Look at the topic: {describe}; check that it was copied from its start, then verify "
            f"it from now on: {remedies.renew(flow, topic)}",
        ),
        "STOPPED": (
            "stopped", behind,
            f"{topic}: {behind} records wait{age}, and group {flow.group_id} has no member (state "
            f"{group.state})",
            remedies.start_mirror(flow),
        ),
        "STALLED": (
            "stalled", behind,
            f"{topic}: {behind} records wait{age}, the position does not move ({where}); connected "
            f"are {len(group.members)} clients from {members}, and they are silent",
            f"On {host}: {journal} shows what it waits for; {restart} once the cause is gone",
        ),
        "REWOUND": (
            "rewound", len(rows),
            f"{topic}: the committed position went back {where}",
            "Records from there on are mirrored again, as duplicates. If nobody reset "
            f"{_holder(flow)} on purpose, on {host}: {journal}",
        ),
        "LAGGING": (
            "lagging", behind,
            f"{topic}: {behind} records behind{age}"
            f"{' and it does not catch up' if never else ''} ({where})",
            f"mirror-report lag --flow {flow.name} shows when it has caught up; if never, raise "
            f"{parallelism.key} of {flow.name if parallelism.of_flow else flow.instance} and run "
            "playbooks/mirrormaker.yml",
        ),
        "UNKNOWN": (
            "unknown_lag", None,
            f"{topic}: offsets or position are not known ({where})",
            f"Grant the report's identity DESCRIBE and READ on {topic} and access to "
            f"{_holder(flow)}; {describe} shows the topic. A flow that starts with latest is known "
            "after its first commit",
        ),
    }  # fmt: skip
    kind, count, message, action = texts[state]
    return finding(kind, message, action, flow=flow.name, topic=topic, count=count)


def _oldest(rows: Sequence[PartitionLag]) -> str:
    """For how long the oldest record waits: its own date counts only if nothing else is known."""
    waits = [
        (row.lag_seconds or 0.0, False)
        if row.waiting_seconds is None
        else (row.waiting_seconds, row.waiting_at_least)
        for row in rows
        if row.lag_seconds is not None or row.waiting_seconds is not None
    ]
    if not waits:
        return ""
    seconds, at_least = max(waits)
    return f", the oldest for {'at least ' if at_least else ''}{seconds:.0f} s"


def _holder(flow: Flow) -> str:
    """What keeps the positions."""
    if flow.engine.positions is PositionStore.CONNECT_OFFSETS:
        return f"topic {flow.offset_topic} on {flow.target}"
    return f"group {flow.group_id}"


def hung_transactions(
    flow: Flow, transactions: Mapping[Place, OpenTransaction], source: Cluster, bound: float
) -> Iterator[Finding]:
    """Transactions that are open for too long, by topic: no fault of the mirror.

    :param bound: seconds for which a position may stay.
    """
    by_topic: dict[str, dict[int, OpenTransaction]] = {}
    for (name, partition), transaction in transactions.items():
        if transaction.seconds >= bound:
            by_topic.setdefault(name, {})[partition] = transaction
    for name, hung in sorted(by_topic.items()):
        partition, oldest = max(hung.items(), key=lambda entry: entry[1].seconds)
        whose = "" if oldest.transactional_id is None else f" of {oldest.transactional_id}"
        abort = remedies.tool(
            source, "kafka-transactions.sh", "abort", "--topic", name, "--partition",
            str(partition), "--start-offset", str(oldest.start_offset),
        )  # fmt: skip
        hanging = finding(
            "hung_transaction",
            f"{name}: a transaction{whose} is open for "
            f"{'at least ' if oldest.at_least else ''}{oldest.seconds:.0f} s in partition "
            f"{partition} ({len(hung)} in all); readers of committed records wait for it, and "
            "what follows it is neither counted as lag nor compared",
            f"If its producer is gone, end it: {abort}",
            flow=flow.name,
            topic=name,
            count=len(hung),
        )
        yield replace(hanging, partition=partition)


def old_heartbeat(
    flow: Flow, status: FlowStatus, bound: float | None, source: Cluster
) -> Iterator[Finding]:
    """An old heartbeat on the target: the pipe does not carry.

    :param bound: of its age in seconds; ``None``: none.
    """
    age = status.heartbeat_age_seconds
    if age is not None and bound is not None and age > bound:
        read = remedies.tool(
            source, "kafka-get-offsets.sh", "--topic", "heartbeats", "--time", "max-timestamp"
        )
        yield finding(
            "heartbeat",
            f"the newest heartbeat of {flow.source} on {flow.target} is {age:.0f} s old",
            f"Run {read} twice. If it grows, the mirror brings nothing: on "
            f"{remedies.host(flow)}: {remedies.journal(flow)}. If not, nobody writes heartbeats: "
            "set mirror_report_warn_heartbeat_seconds to null if they were switched off",
            flow=flow.name,
        )


def unreadable_records(
    flow: Flow,
    source: Cluster,
    asked: Mapping[Place, tuple[int, int]],
    failed: Mapping[Place, str],
) -> list[Finding]:
    """Partitions whose oldest waiting record could not be read, by topic.

    :param asked: partition -> position and end; ``failed``: why nothing of it can be read.
    """
    by_topic: dict[str, list[int]] = {}
    for name, partition in sorted(failed):
        by_topic.setdefault(name, []).append(partition)
    return [
        finding(
            "not_checked",
            f"{name}: the age of the oldest record waiting in {len(partitions)} partition(s) is "
            f"not known; in partition {partitions[0]} behind offset "
            f"{asked[name, partitions[0]][0]}, {failed[name, partitions[0]]}",
            "Lag in records is right all the same. Find out who writes such records: "
            + remedies.tool(
                source, "kafka-console-consumer.sh", "--topic", name, "--partition",
                str(partitions[0]), "--offset", str(asked[name, partitions[0]][0]),
                "--max-messages", "1",
            ),
            flow=flow.name, topic=name, count=len(partitions),
        )
        for name, partitions in by_topic.items()
    ]  # fmt: skip


def ages_not_asked(flow: Flow, lagging: int, asked: int) -> Iterator[Finding]:
    """Partitions with lag whose oldest record was not read."""
    if lagging > asked:
        yield finding(
            "not_checked",
            f"the age of the oldest record was read for {asked} of {lagging} partitions with lag: "
            "those that have waited longest",
            "For the others see waiting_seconds, which rests on earlier observations: "
            f"mirror-report lag --flow {flow.name} --json",
            flow=flow.name,
            count=lagging - asked,
        ).rated("ok")
