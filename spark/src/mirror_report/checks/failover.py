"""What is wrong with the groups a flow takes along, and what to do about it: no I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mirror_report.checks.remedies import connector, journal, tool
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow
from mirror_report.model import Finding, GroupParity, GroupPartition, GroupState

SHOWN = 20
Describe = Callable[[Flow, Cluster, str, Sequence[GroupPartition]], Finding]


def findings(flow: Flow, target: Cluster, groups: Iterable[GroupParity]) -> Iterator[Finding]:
    """One finding for each group, topic and state that is wrong."""
    for group in groups:
        for state, describe in STATES.items():
            wrong: dict[str, list[GroupPartition]] = {}
            for row in group.partitions:
                if row.state == state:
                    wrong.setdefault(row.topic, []).append(row)
            for rows in wrong.values():
                yield describe(flow, target, group.group, rows)


def none_examined(flow: Flow, waiting: Sequence[str] = ()) -> Finding:
    """A flow of which no group was examined.

    :param waiting: groups that it would sync and of which nothing is on the target yet.
    """
    if waiting:
        why = f"nothing of {', '.join(waiting)} is committed on {flow.target} yet"
        action = (
            f"Ask again after {flow.checkpoint_seconds} s, the interval of checkpoints; "
            f"mirror-report check --flow {flow.name} tells what the mirror lacks"
        )
    elif not flow.engine.syncs_groups:
        why = f"{flow.engine.title} takes no groups along"
        action = (
            f"Before its groups move, set their offsets on {flow.target} by hand, for example by "
            "time: kafka-consumer-groups.sh --reset-offsets --to-datetime"
        )
    else:
        patterns = ", ".join(flow.consumer_groups)
        why = (
            f"no group of {flow.source} that it would sync matches {patterns}"
            if patterns
            else "consumer_groups is empty"
        )
        action = (
            f"Correct consumer_groups of flow {flow.name}, or grant the identity DESCRIBE on the "
            "groups (Kafka hides what one may not see)"
        )
    return finding(
        "no_groups", f"{flow.name}: no group was examined: {why}", action, flow=flow.name
    )


def _skip(flow: Flow, target: Cluster, group: str, rows: Sequence[GroupPartition]) -> Finding:
    count = sum(row.skip or 0 for row in rows)
    least = "" if all(row.image_exact for row in rows) else "at least "
    gone = all((row.target_offset or 0) <= (row.image or 0) for row in rows)
    action = (
        f"{flow.target} no longer holds what the group has not read: raise retention.ms of "
        f"{rows[0].target_topic} there, and let the group catch up on {flow.source}"
        if gone
        else f"Put it back before it moves: {reset(target, group, rows)}. Then find out who "
        f"commits for it on {flow.target}"
    )
    return finding(
        "group_skip",
        f"group {group} would never read {least}{count} records of {rows[0].topic} if it moved to "
        f"{flow.target} now ({_numbers(rows)}): its position there lies beyond the one on "
        f"{flow.source}",
        action,
        flow=flow.name,
        topic=rows[0].topic,
        count=count,
    )


def _reread(flow: Flow, target: Cluster, group: str, rows: Sequence[GroupPartition]) -> Finding:
    count = sum(row.reread or 0 for row in rows)
    most = sum(row.reread_at_most or 0 for row in rows)
    number = str(count) if most == count else f"at least {count} and at most {most}"
    return finding(
        "group_reread",
        f"group {group} would read {number} records of {rows[0].topic} again if it moved to "
        f"{flow.target} now ({_numbers(rows)})",
        f"Before a planned move, with the group stopped: {reset(target, group, rows)}. To keep it "
        "closer, let it commit more often on the source, and lower "
        "sync.group.offsets.interval.seconds and emit.checkpoints.interval.seconds of flow "
        f"{flow.name}; warn.reread_records is the bound",
        flow=flow.name,
        topic=rows[0].topic,
        count=count,
    )


def _unmapped(flow: Flow, target: Cluster, group: str, rows: Sequence[GroupPartition]) -> Finding:
    places = f"{rows[0].target_topic}:{','.join(str(row.partition) for row in rows)}"
    earliest = _tool(target, group, "--topic", places, "--to-earliest", "--execute")
    return finding(
        "group_unmapped",
        f"group {group}: no offset sync reaches back to its position in {rows[0].topic} "
        f"({_numbers(rows)}), so nothing tells where it is on {flow.target}",
        f"Let the group catch up on {flow.source}, where {flow.engine.title} translates what lies "
        "behind its first sync. If it has to move now, it loses nothing from the beginning: "
        f"{earliest}",
        flow=flow.name,
        topic=rows[0].topic,
        count=len(rows),
    )


def _stale(flow: Flow, _: Cluster, group: str, rows: Sequence[GroupPartition]) -> Finding:
    again = connector(flow, "restart", flow.connectors[1])
    return finding(
        "group_stale",
        f"group {group} moved on in {rows[0].topic} and its position on {flow.target} did not "
        f"follow ({_numbers(rows)})",
        f"Look for MirrorCheckpoint in {journal(flow)}; mirror-report check tells whether a "
        f"permission on group {group} is missing. {again} starts its task again",
        flow=flow.name,
        topic=rows[0].topic,
        count=len(rows),
    )


def _unknown(flow: Flow, target: Cluster, group: str, rows: Sequence[GroupPartition]) -> Finding:
    mapped = [row for row in rows if row.image is not None]
    return finding(
        "group_unknown",
        f"whether group {group} would skip records of {rows[0].topic} on {flow.target} is not "
        f"known ({_numbers(rows)}): its position lies between two offset syncs, or beyond a log, "
        "or not all syncs could be read",
        f"mirror-report groups --flow {flow.name} checks again"
        + (
            f". To be safe before it moves, with a few records read again: "
            f"{reset(target, group, mapped)}"
            if mapped
            else ""
        ),
        flow=flow.name,
        topic=rows[0].topic,
        count=len(rows),
    )


STATES: Mapping[GroupState, Describe] = {
    "skip": _skip,
    "unknown": _unknown,
    "stale": _stale,
    "unmapped": _unmapped,
    "reread": _reread,
}


def reset(target: Cluster, group: str, rows: Sequence[GroupPartition]) -> str:
    """Command that puts a group on the target where it would miss nothing; it must be stopped."""
    offsets = [(row.target_topic, row.partition, row.image) for row in rows[:SHOWN]]
    if len(offsets) == 1:
        topic, partition, offset = offsets[0]
        return _tool(
            target, group, "--topic", f"{topic}:{partition}", "--to-offset", str(offset),
            "--execute",
        )  # fmt: skip
    lines = " ".join(f"{topic},{partition},{offset}" for topic, partition, offset in offsets)
    more = f" (and {len(rows) - SHOWN} partitions more)" if len(rows) > SHOWN else ""
    return (
        f"printf '%s\\n' {lines} > offsets.csv && "
        + _tool(target, group, "--from-file", "offsets.csv", "--execute")
        + more
    )


def _tool(target: Cluster, group: str, *words: str) -> str:
    return tool(target, "kafka-consumer-groups.sh", "--group", group, "--reset-offsets", *words)


def _numbers(rows: Sequence[GroupPartition]) -> str:
    shown = ", ".join(str(row.partition) for row in rows[:SHOWN])
    return f"partition{'s' if len(rows) > 1 else ''} {shown}" + (
        ", ..." if len(rows) > SHOWN else ""
    )
