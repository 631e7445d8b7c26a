"""How far a mirror is behind, and in which state it is: snapshots in, rows and findings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirror_report.checks.estimates import Estimate
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow, Warn
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    GroupSnapshot,
    LagState,
    PartitionLag,
    PartitionSnapshot,
    Place,
    Positions,
    TopicSnapshot,
)

History = Sequence[Mapping[str, Any]]
"""Earlier observations, oldest first, as :func:`observation` makes them."""


def drained(
    waiting: Mapping[Place, tuple[int, int]], ages: Mapping[Place, int | None]
) -> dict[Place, int]:
    """Log end of partitions in which nothing but transaction markers is left to mirror.

    :param waiting: as :func:`waiting` made it; ``ages``: timestamp (ms) of the oldest record.
    """
    return {at: end for at, (_, end) in waiting.items() if at in ages and ages[at] is None}


def observation(
    source: ClusterSnapshot, positions: Positions, drained: Mapping[Place, int] | None = None
) -> dict[str, Any]:
    """What one look at a flow leaves for the next, by topic and partition."""
    through: dict[str, dict[str, int]] = {}
    for (name, partition), end in (drained or {}).items():
        through.setdefault(name, {})[str(partition)] = end
    return {
        "drained": through,
        "taken_at_ms": source.taken_at_ms,
        "ends": {
            name: {str(p): one.log_end for p, one in topic.partitions.items()}
            for name, topic in source.topics.items()
        },
        "positions": {
            name: {str(p): offset for p, offset in some.items()}
            for name, some in positions.items()
            if name in source.topics
        },
    }


def standing(
    flow: Flow,
    topic: TopicSnapshot,
    partition: int,
    positions: Positions,
    baseline: Mapping[str, Any],
) -> int | None:
    """Next offset the mirror has to copy.

    The committed one; before the first commit the offset at which the baseline says it starts;
    without either the log start if the flow starts with the earliest record.

    :param baseline: the flow's entry of the manifest ``baseline``, possibly empty.
    """
    offset = positions.get(topic.name, {}).get(partition)
    if offset is not None:
        return offset
    recorded = baseline.get("topics", {}).get(topic.name)
    if recorded is not None:
        start = recorded["source"].get(str(partition))
        return int(start) if start is not None else 0
    if baseline:
        # The topic is younger than the baseline, so all of it belongs to the mirror.
        return 0 if flow.start == "earliest" else None
    return topic.partitions[partition].log_start if flow.start == "earliest" else None


def waiting(
    flow: Flow, source: ClusterSnapshot, positions: Positions, baseline: Mapping[str, Any]
) -> dict[Place, tuple[int, int]]:
    """Partitions with lag: topic and partition -> first readable position and log end."""
    found: dict[Place, tuple[int, int]] = {}
    for name, topic in source.topics.items():
        for number, one in topic.partitions.items():
            position = standing(flow, topic, number, positions, baseline)
            if position is not None and position < one.log_end:
                found[name, number] = (max(position, one.log_start), one.log_end)
    return found


def measure(
    flow: Flow,
    source: ClusterSnapshot,
    positions: Positions,
    group: GroupSnapshot,
    *,
    ages: Mapping[Place, int | None],
    history: History,
    baseline: Mapping[str, Any],
    reset_topics: frozenset[str],
    warn: Warn,
    estimates: Mapping[Place, Estimate] | None = None,
) -> list[PartitionLag]:
    """One row per source partition.

    :param ages: timestamp (ms) of the oldest record waiting; ``None``: only transaction markers
        are left, which are never mirrored; absent: not known.
    :param history: earlier observations, oldest first.
    :param reset_topics: topics whose id differs from the one remembered.
    :param estimates: probable positions; they decide nothing.
    """
    rows: list[PartitionLag] = []
    for name, topic in source.topics.items():
        for number, one in sorted(topic.partitions.items()):
            at = (name, number)
            position = standing(flow, topic, number, positions, baseline)
            records: int | None = None
            seconds: float | None = None
            lost = 0
            if position is not None:
                records = max(0, one.log_end - max(position, one.log_start))
                # MirrorMaker 2 commits the last record's offset: markers after it were never due.
                lost = max(0, one.log_start - max(position, _drained(history, at, position)))
                if records and at in ages and ages[at] is None:
                    records = 0
                if records == 0:
                    seconds = 0.0
                elif ages.get(at) is not None:
                    seconds = max(0.0, (source.taken_at_ms - int(ages[at] or 0)) / 1000)
            state = _state(
                one,
                position,
                records,
                seconds,
                lost,
                reset=name in reset_topics,
                alive=bool(group.members),
                past=_past(history, at),
                now_ms=source.taken_at_ms,
                warn=warn,
            )
            probable = (estimates or {}).get(at)
            rows.append(
                PartitionLag(
                    flow.name, name, number, state, one.log_start, one.log_end,
                    position, records, seconds, lost,
                    probable.position if probable else None,
                    probable.basis if probable else None,
                    max(0.0, (source.taken_at_ms - probable.at_ms) / 1000) if probable else None,
                )
            )  # fmt: skip
    rows += [
        PartitionLag(flow.name, name, -1, "UNKNOWN", None, None, None, None, None)
        for name in source.errors
    ]
    return rows


def _drained(history: History, at: Place, position: int) -> int:
    """How far a position was found to reach, markers included; 0 if it never was."""
    name, number = at[0], str(at[1])
    return max(
        (
            one.get("drained", {}).get(name, {}).get(number, 0)
            for one in history
            if one.get("positions", {}).get(name, {}).get(number) == position
        ),
        default=0,
    )


def _past(history: History, at: Place) -> list[tuple[int, int, int | None]]:
    """Observations of one partition: taken at (ms), log end, position."""
    name, number = at[0], str(at[1])
    found = []
    for one in history:
        end = one.get("ends", {}).get(name, {}).get(number)
        if end is not None:
            position = one.get("positions", {}).get(name, {}).get(number)
            found.append((int(one["taken_at_ms"]), int(end), position))
    return found


def _state(
    snapshot: PartitionSnapshot,
    position: int | None,
    records: int | None,
    seconds: float | None,
    lost: int,
    *,
    reset: bool,
    alive: bool,
    past: list[tuple[int, int, int | None]],
    now_ms: int,
    warn: Warn,
) -> LagState:
    end = snapshot.end
    if position is None or records is None:
        return "RESET" if reset else "UNKNOWN"
    before = past[-1] if past else None
    behind = (warn.lag_records is not None and records > warn.lag_records) or (
        warn.lag_seconds is not None and seconds is not None and seconds > warn.lag_seconds
    )
    idle = end == 0 or (before is not None and before[1] == snapshot.log_end)
    # The first that holds is the state.
    candidates: tuple[tuple[bool, LagState], ...] = (
        (reset or position > end, "RESET"),
        (lost > 0, "TRUNCATED"),
        (before is not None and before[2] is not None and position < before[2], "REWOUND"),
        (records == 0 and idle, "IDLE"),
        (records == 0, "OK"),
        (not alive, "STOPPED"),
        (_unmoved_seconds(past, position, now_ms) >= warn.stalled_seconds, "STALLED"),
        (behind, "LAGGING"),
    )
    return next((state for holds, state in candidates if holds), "OK")


def _unmoved_seconds(past: list[tuple[int, int, int | None]], position: int, now_ms: int) -> float:
    """For how long records have waited while the position stayed where it is."""
    since = now_ms
    for taken_at_ms, end, earlier in reversed(past):
        # Before the first commit there is no position; then it stands at its start.
        if (earlier is not None and earlier != position) or end <= position:
            break
        since = taken_at_ms
    return (now_ms - since) / 1000


def judge(flow: Flow, rows: Sequence[PartitionLag], group: GroupSnapshot) -> list[Finding]:
    """One finding per topic and bad state.

    :param rows: what :func:`measure` returned for this flow.
    """
    found: list[Finding] = []
    by_topic: dict[tuple[str, LagState], list[PartitionLag]] = {}
    for row in rows:
        if row.state not in ("OK", "IDLE"):
            by_topic.setdefault((row.topic, row.state), []).append(row)
    service = f"{flow.instance}.service"
    host = flow.hosts[0] if flow.hosts else "its host"
    for (topic, state), some in by_topic.items():
        behind = sum(row.lag_records or 0 for row in some)
        lost = sum(row.lost for row in some)
        ages = [row.lag_seconds for row in some if row.lag_seconds is not None]
        age = f", the oldest for {max(ages):.0f} s" if ages else ""
        where = f"on {len(some)} partition{'s' if len(some) != 1 else ''}"
        if state == "TRUNCATED":
            kind, count = "truncated", lost
            message = f"{topic}: {lost} records left the source before they were mirrored ({where})"
            action = (
                "They cannot be mirrored any more. Raise the source's retention: kafka-configs.sh "
                f"--alter --entity-type topics --entity-name {topic} "
                "--add-config retention.ms=...; after reading this, start a new baseline: "
                f"mirror-report baseline --flow {flow.name} --renew"
            )
        elif state == "RESET":
            kind, count = "reset", len(some)
            message = (
                f"{topic}: deleted and created again on {flow.source}, or its log is shorter than "
                f"the mirror's position ({where})"
            )
            action = (
                "Check that the new topic was copied from its start; then record a new baseline: "
                f"mirror-report baseline --flow {flow.name} --renew"
            )
        elif state == "STOPPED":
            kind, count = "stopped", behind
            message = (
                f"{topic}: {behind} records wait{age}, and group {flow.group_id} has no member "
                f"(state {group.state})"
            )
            action = (
                f"On {host}: systemctl status {service}; journalctl -u {service} -n 100; "
                f"systemctl start {service}"
            )
        elif state == "STALLED":
            kind, count = "stalled", behind
            message = f"{topic}: {behind} records wait{age}, the position does not move ({where})"
            action = (
                f"On {host}: journalctl -u {service} -n 100 shows what it waits for; "
                f"systemctl restart {service} once the cause is gone"
            )
        elif state == "REWOUND":
            kind, count = "rewound", len(some)
            message = f"{topic}: the committed position went back {where}"
            action = (
                "Records from there on are mirrored again, as duplicates. If nobody reset "
                f"{_holder(flow)} on purpose, look into journalctl -u {service}"
            )
        elif state == "LAGGING":
            kind, count = "lagging", behind
            message = f"{topic}: {behind} records behind{age} ({where})"
            more = "num_streams" if flow.engine == "mm1" else "tasks_max"
            action = (
                "Wait if it catches up (mirror-report lag shows it twice); otherwise raise "
                f"{more} of {flow.name} or {flow.instance}, or the bound warn.lag_seconds"
            )
        else:
            kind, count = "unknown_lag", None
            message = f"{topic}: offsets or position are not known ({where})"
            action = (
                f"Grant the report's identity DESCRIBE and READ on {topic} and access to "
                f"{_holder(flow)}; a flow that starts with latest is known after its first commit"
            )
        found.append(finding(kind, message, action, flow=flow.name, topic=topic, count=count))
    return found


def _holder(flow: Flow) -> str:
    """What keeps the positions."""
    if flow.engine == "mm2":
        return f"topic {flow.offset_topic} on {flow.target}"
    return f"group {flow.group_id}"


def changed_ids(
    remembered: Mapping[str, str], snapshot: ClusterSnapshot
) -> dict[str, tuple[str, str]]:
    """Topics whose id is not the remembered one: name -> (remembered, found)."""
    return {
        name: (remembered[name], topic.topic_id)
        for name, topic in snapshot.topics.items()
        if name in remembered and remembered[name] != topic.topic_id
    }
