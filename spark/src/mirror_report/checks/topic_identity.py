"""Telling a topic without an id from one of the same name that was there before: no I/O.

Such a topic is given a mark in the place of an id. It keeps it until something speaks against it:
leader epochs or offsets that went back, or another record where one was seen before.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirror_report.model import MARK, ClusterSnapshot, Place, TopicSnapshot

# Topic -> what was seen of it: its ``mark``, its ``partitions`` (log start, end and leader epoch
# by number), when (``at_ms``), and one record, the ``probe``: partition, offset, and what it holds.
# JSON types only.
Marks = Mapping[str, Mapping[str, Any]]


def unnamed(snapshot: ClusterSnapshot) -> dict[str, TopicSnapshot]:
    """Topics that have no id of the cluster's own."""
    return {
        name: topic
        for name, topic in snapshot.topics.items()
        if not topic.topic_id or topic.topic_id.startswith(MARK)
    }


def not_seen_since(
    topics: Mapping[str, TopicSnapshot], marks: Marks, at_ms: int
) -> dict[str, TopicSnapshot]:
    """Topics of an observation that no later one has seen; to that one they would go back."""
    return {
        name: topic
        for name, topic in topics.items()
        if name not in marks or marks[name]["at_ms"] <= at_ms
    }


def seen_before(topics: Mapping[str, TopicSnapshot], marks: Marks) -> dict[Place, int]:
    """Where a record was seen that must still be the same, if it is there."""
    found = {}
    for name, topic in topics.items():
        if probe := marks.get(name, {}).get("probe"):
            partition, offset, _ = probe
            log = topic.partitions.get(partition)
            if log is not None and log.log_start <= offset < log.end:
                found[name, partition] = offset
    return found


def newest(topics: Mapping[str, TopicSnapshot]) -> dict[Place, int]:
    """The last record of each topic's longest partition."""
    found = {}
    for name, topic in topics.items():
        filled = {p: log for p, log in topic.partitions.items() if log.end > log.log_start}
        if filled:
            partition = max(filled, key=lambda p: filled[p].end)
            found[name, partition] = filled[partition].end - 1
    return found


def marked(
    topics: Mapping[str, TopicSnapshot],
    marks: Marks,
    before: Mapping[Place, str],
    now: Mapping[Place, str],
    at_ms: int,
) -> dict[str, dict[str, Any]]:
    """What is known of topics after this observation.

    :param before: what records hold where one was :func:`seen_before`, as far as they were read;
        ``now``: likewise of the :func:`newest`.
    """
    offsets = newest(topics)
    found: dict[str, dict[str, Any]] = {}
    for name, topic in topics.items():
        known = marks.get(name)
        same = known is not None and not _is_another(known, topic, before)
        probe = next(
            ([p, offsets[name, p], now[name, p]] for p in topic.partitions if (name, p) in now),
            known["probe"] if known is not None and same else None,
        )
        found[name] = {
            "mark": known["mark"] if known is not None and same else f"{MARK}{at_ms}",
            "at_ms": at_ms,
            "partitions": {
                str(p): [log.log_start, log.end, log.leader_epoch]
                for p, log in topic.partitions.items()
            },
            "probe": probe,
        }
    return found


def _is_another(
    known: Mapping[str, Any], topic: TopicSnapshot, before: Mapping[Place, str]
) -> bool:
    """Whether this is another topic than the one that was seen."""
    for number, (start, end, epoch) in known["partitions"].items():
        if (log := topic.partitions.get(int(number))) is None:
            return True
        grown = 0 if None in (epoch, log.leader_epoch) else (log.leader_epoch or 0) - epoch
        # A new leader may have less than the former one; the first of a topic has no former one.
        if grown < 0 or (grown == 0 and (log.log_start < start or log.end < end)):
            return True
    if known["probe"] is None:
        return False
    partition, _, content = known["probe"]
    return bool(before.get((topic.name, partition), content) != content)


def with_marks(snapshot: ClusterSnapshot, marks: Marks) -> ClusterSnapshot:
    """The same snapshot, its topics with their marks."""
    given = {
        name: replace(topic, topic_id=marks[name]["mark"])
        for name, topic in unnamed(snapshot).items()
        if name in marks
    }
    return replace(snapshot, topics={**snapshot.topics, **given})
