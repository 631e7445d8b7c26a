"""How far the two offsets of offset syncs have drifted apart, and why: no I/O.

Within a partition every record the mirror copies once moves both offsets by one, so the shift
(source offset minus target offset of an offset sync) stays. It falls by the records the target got
beside that, and rises by the source offsets that were passed over.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    MirrorStatus,
    Place,
    another_topic,
)

SHOWN = 5


def offset_shifts(
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    mirror: MirrorStatus,
    flow: Flow,
    drained: Mapping[Place, int],
) -> dict[str, Any]:
    """Shifts as they are now: topic -> ids, and partition -> [sync, sync, next offset to copy].

    :param drained: log end of partitions in which only transaction markers are left.
    :returns: JSON types only; partitions whose sync lies beyond their logs are left out: it is a
        former topic's, or younger than what was asked of the source.
    """
    shifts: dict[str, Any] = {}
    for (name, partition), sync in sorted(mirror.syncs.items()):
        copied = flow.target_topic(name)
        log, copy = source.log(name, partition), target.log(copied, partition)
        if log is None or copy is None or sync.upstream >= log.end or sync.downstream >= copy.end:
            continue
        # The record of a sync has been copied.
        following = max(
            mirror.positions.get(name, {}).get(partition, 0),
            sync.upstream + 1,
            drained.get((name, partition), 0),
        )
        ids = source.topics[name].topic_id, target.topics[copied].topic_id
        topic = shifts.setdefault(
            name, {"source_id": ids[0], "target_id": ids[1], "partitions": {}}
        )
        topic["partitions"][str(partition)] = [sync.upstream, sync.downstream, following]
    return shifts


def with_former(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What the next run compares with: the shifts of now, and of before what is still valid."""
    kept = {**before, **now}
    for name, topic in now.items():
        former = before.get(name)
        if former is not None and _same_topics(former, topic):
            kept[name] = {**topic, "partitions": {**former["partitions"], **topic["partitions"]}}
    return kept


def _same_topics(former: Mapping[str, Any], topic: Mapping[str, Any]) -> bool:
    return not any(another_topic(former[key], topic[key]) for key in ("source_id", "target_id"))


def rises(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[Place, int]:
    """Source offsets passed over since the last run, by partition; negative: copied again.

    :param now: the :func:`offset_shifts` of this run; ``before``: of the last one.
    """
    return {
        (name, int(number)): (synced[0] - synced[1]) - (then[0] - then[1])
        for name, topic in now.items()
        if name in before and _same_topics(before[name], topic)
        for number, synced in topic["partitions"].items()
        if (then := before[name]["partitions"].get(number)) is not None
    }


def findings(
    flow: Flow,
    source: ClusterSnapshot,
    now: Mapping[str, Any],
    before: Mapping[str, Any],
    reset_topics: Collection[str],
) -> Iterator[Finding]:
    """Shifts that changed since the last run, by topic, without recreated topics.

    A rise is only reported where the source no longer holds all of the offsets passed over: what
    it still holds is compared record by record, and a gap left by compaction or a transaction
    marker is no record.

    :param now: the :func:`offset_shifts` of this run; ``before``: of the last one.
    :param reset_topics: source topics recreated on either side since the baseline.
    """
    surplus: dict[str, dict[int, int]] = {}
    passed: dict[str, dict[int, int]] = {}
    for (name, number), rise in rises(now, before).items():
        following = before[name]["partitions"][str(number)][2]
        gone = source.topics[name].partitions[number].log_start - following
        if rise < 0:
            surplus.setdefault(name, {})[number] = -rise
        elif min(rise, gone) > 0:
            passed.setdefault(name, {})[number] = min(rise, gone)
    for name in now:
        if name in surplus and name not in reset_topics:
            yield _surplus(flow, name, surplus[name])
        if name in passed and name not in reset_topics:
            yield _passed(flow, name, passed[name])


def _surplus(flow: Flow, name: str, counts: Mapping[int, int]) -> Finding:
    return finding(
        "offset_shift",
        f"{name}: {flow.target_topic(name)} got {sum(counts.values())} records more than were "
        f"copied once ({_by_partition(counts)}): {flow.engine.title} copied them again after it "
        "was killed, or somebody else writes there",
        "mirror-report run tells duplicates from foreign records; after a crash duplicates are "
        "normal. Nobody but the mirror may write into a mirrored topic",
        flow=flow.name,
        topic=name,
        count=sum(counts.values()),
    )


def _passed(flow: Flow, name: str, counts: Mapping[int, int]) -> Finding:
    return finding(
        "offset_shift",
        f"{name}: {sum(counts.values())} offsets of {flow.source} were passed over and are gone "
        f"there ({_by_partition(counts)}): records that expired before they were mirrored, unless "
        "the topic is compacted or they were transaction markers",
        f"Look into journalctl -u {flow.instance}.service for when it stood still, and compare "
        "retention.ms of the topic with how long the mirror may be away",
        flow=flow.name,
        topic=name,
        count=sum(counts.values()),
    )


def _by_partition(counts: Mapping[int, int]) -> str:
    shown = ", ".join(f"partition {p}: {count}" for p, count in list(counts.items())[:SHOWN])
    return shown + (", ..." if len(counts) > SHOWN else "")
