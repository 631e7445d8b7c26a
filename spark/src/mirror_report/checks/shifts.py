"""How far source and target offsets of offset syncs have drifted apart, and why: no I/O.

Within a partition every record the mirror copies once moves both offsets by one, so the shift
(source offset minus target offset of an offset sync) stays. It falls by the records the target got
beside that, and rises by the source offsets that were passed over.
"""

from collections.abc import Collection, Mapping
from typing import Any

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    MirrorStatus,
    Place,
    TopicSnapshot,
    another_topic,
)

SHOWN = 5


def observe(
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
    seen: dict[str, Any] = {}
    for (name, partition), sync in sorted(mirror.syncs.items()):
        ours, theirs = source.topics.get(name), target.topics.get(flow.target_topic(name))
        if ours is None or theirs is None:
            continue
        if sync.upstream >= _end(ours, partition) or sync.downstream >= _end(theirs, partition):
            continue
        # The record of a sync has been copied.
        following = max(
            mirror.positions.get(name, {}).get(partition, 0),
            sync.upstream + 1,
            drained.get((name, partition), 0),
        )
        topic = seen.setdefault(
            name,
            {"source_id": ours.topic_id, "target_id": theirs.topic_id, "partitions": {}},
        )
        topic["partitions"][str(partition)] = [sync.upstream, sync.downstream, following]
    return seen


def _end(topic: TopicSnapshot, partition: int) -> int:
    log = topic.partitions.get(partition)
    return 0 if log is None else log.end


def remember(before: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """What the next run compares with: what was seen, and before that what is still valid."""
    kept = {**before, **seen}
    for name, topic in seen.items():
        former = before.get(name)
        if former is not None and _same_topics(former, topic):
            kept[name] = {**topic, "partitions": {**former["partitions"], **topic["partitions"]}}
    return kept


def _same_topics(former: Mapping[str, Any], topic: Mapping[str, Any]) -> bool:
    return not any(another_topic(former[key], topic[key]) for key in ("source_id", "target_id"))


def rises(seen: Mapping[str, Any], remembered: Mapping[str, Any]) -> dict[Place, int]:
    """Source offsets passed over since the last run, by partition; negative: copied again.

    :param seen: what :func:`observe` made now; ``remembered``: in the last run.
    """
    return {
        (name, int(number)): (now[0] - now[1]) - (then[0] - then[1])
        for name, topic in seen.items()
        if name in remembered and _same_topics(remembered[name], topic)
        for number, now in topic["partitions"].items()
        if (then := remembered[name]["partitions"].get(number)) is not None
    }


def judge(
    flow: Flow,
    source: ClusterSnapshot,
    seen: Mapping[str, Any],
    remembered: Mapping[str, Any],
    reset_topics: Collection[str],
) -> list[Finding]:
    """What changed since the last run, by topic; a recreated topic is judged elsewhere.

    A rise is only said where the source no longer holds all of the offsets passed over: what it
    still holds is compared record by record, and a gap left by compaction or a transaction marker
    is no record.

    :param seen: what :func:`observe` made now; ``remembered``: in the last run.
    :param reset_topics: source topics recreated on either side since the baseline.
    """
    found: list[Finding] = []
    for name, topic in seen.items():
        before = remembered.get(name)
        if before is None or name in reset_topics or not _same_topics(before, topic):
            continue
        surplus: dict[str, int] = {}
        passed: dict[str, int] = {}
        for number, (upstream, downstream, _) in topic["partitions"].items():
            if number not in before["partitions"]:
                continue
            then_upstream, then_downstream, following = before["partitions"][number]
            shift = (upstream - downstream) - (then_upstream - then_downstream)
            gone = source.topics[name].partitions[int(number)].log_start - following
            if shift < 0:
                surplus[number] = -shift
            elif min(shift, gone) > 0:
                passed[number] = min(shift, gone)
        if surplus:
            found.append(_surplus(flow, name, surplus))
        if passed:
            found.append(_passed(flow, name, passed))
    return found


def _surplus(flow: Flow, name: str, counts: Mapping[str, int]) -> Finding:
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


def _passed(flow: Flow, name: str, counts: Mapping[str, int]) -> Finding:
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


def _by_partition(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"partition {p}: {count}" for p, count in list(counts.items())[:SHOWN])
    return shown + (", ..." if len(counts) > SHOWN else "")
