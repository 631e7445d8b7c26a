"""Whether mirror and report select the same topics: no I/O.

The mirror matches names with Java's regular expressions, the report with Python's. The mirror's
positions show which topics it takes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mirror_report.checks.verdict import finding
from mirror_report.config import HEARTBEATS, Flow
from mirror_report.model import Baseline, ClusterSnapshot, Finding, GroupSnapshot, Positions

# A new topic may wait until the mirror lists the source's topics again (10 minutes by default).
PATIENCE_MS = 15 * 60_000

Remembered = Mapping[str, Any]


def disagreements(
    flow: Flow,
    source: ClusterSnapshot,
    positions: Positions,
    baseline: Baseline,
    before: Remembered,
) -> dict[str, Any]:
    """What the next observation compares with; JSON types only.

    :param baseline: records older than it need no position.
    :returns: ``include``; ``unmatched``: topics with positions that the flow does not match, and
        their sums; ``untouched``: matched topics with records and without a position -> since when
        (ms); ``moved``: sum of all positions.
    """
    since = before.get("untouched", {}) if before.get("include") == flow.include else {}
    return {
        "include": flow.include,
        "unmatched": {
            name: sum(offsets.values())
            for name, offsets in sorted(positions.items())
            if not flow.matches(name)
            and not (flow.engine.has_heartbeats and name.endswith(HEARTBEATS))
        },
        "untouched": {
            name: since.get(name, {"since_ms": source.taken_at_ms, "moved": _sum(positions)})
            for name, topic in sorted(source.topics.items())
            if name not in positions
            and any(
                log.end > max(log.log_start, baseline.topic(name).source.start.get(number, 0))
                for number, log in topic.partitions.items()
            )
        },
    }


def _sum(positions: Positions) -> int:
    return sum(offset for offsets in positions.values() for offset in offsets.values())


def findings(
    flow: Flow,
    source: ClusterSnapshot,
    positions: Positions,
    group: GroupSnapshot,
    now: Remembered,
    before: Remembered,
) -> Iterator[Finding]:
    """Topics the mirror takes and the report does not, and the reverse.

    :param now: the :func:`disagreements` of this report; ``before``: of the last one.
    """
    taken = {topic for member in group.members for topic, _ in member.partitions}
    # Before a change of the flow other topics were unmatched.
    former = before.get("unmatched", {}) if before.get("include") == flow.include else {}
    moved = {name for name, end in now["unmatched"].items() if end > former.get(name, end)}
    for name in sorted(moved | {name for name in taken if not flow.matches(name)}):
        yield finding(
            "regex_disagreement",
            f"{name}: {flow.instance} mirrors it, and the report does not match it with "
            f"{flow.include}",
            f"If topics of flow {flow.name} were changed, run playbooks/mirrormaker.yml and "
            "playbooks/report.yml so that both know them. Else Java and Python read the pattern "
            "differently: name the topic literally in topics",
            flow=flow.name,
            topic=name,
        )
    for name, waiting in now["untouched"].items():
        is_new = source.taken_at_ms - waiting["since_ms"] < PATIENCE_MS
        if name not in taken and not is_new and _sum(positions) > waiting["moved"]:
            yield finding(
                "regex_disagreement",
                f"{name}: matched by the flow and holds records, but {flow.instance} has no "
                "position in it while others move",
                f"Look for {name} in journalctl -u {flow.instance}.service. mirror-report check "
                "tells whether its identity may read the topic; if it may, Java and Python read "
                f"the pattern of flow {flow.name} differently: name the topic literally in topics",
                flow=flow.name,
                topic=name,
            )
