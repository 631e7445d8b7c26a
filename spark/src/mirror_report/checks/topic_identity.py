"""Topics that were deleted and created again, by their ids: no I/O.

A mark stands for the id of a topic that has none. The topic keeps it until leader epochs or offsets
show that it is another one of the same name: they went back, or another record lies where one was
read before.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirror_report.checks import remedies
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow
from mirror_report.engines import PositionStore
from mirror_report.model import (
    MARK,
    ClusterSnapshot,
    Finding,
    Place,
    TopicSnapshot,
    another_topic,
)

# Topic -> its ``mark``, its ``partitions`` (log start, end and leader epoch by number), when they
# were observed (``at_ms``), and one record, the ``probe``: partition, offset, and its content. JSON
# types only.
Marks = Mapping[str, Mapping[str, Any]]


def unnamed(snapshot: ClusterSnapshot) -> dict[str, TopicSnapshot]:
    """Topics that have no id of the cluster's own."""
    return {
        name: topic
        for name, topic in snapshot.topics.items()
        if not topic.topic_id or topic.topic_id.startswith(MARK)
    }


def newly_observed(
    topics: Mapping[str, TopicSnapshot], marks: Marks, at_ms: int
) -> dict[str, TopicSnapshot]:
    """Topics of an observation without those of a later one, to which they would go back."""
    return {
        name: topic
        for name, topic in topics.items()
        if name not in marks or marks[name]["at_ms"] <= at_ms
    }


def probes(topics: Mapping[str, TopicSnapshot], marks: Marks) -> dict[Place, int]:
    """Where a record was read that must still be the same, if it is held."""
    offsets = {}
    for name, topic in topics.items():
        if probe := marks.get(name, {}).get("probe"):
            log = topic.partitions.get(probe[0])
            if log is not None and log.log_start <= probe[1] < log.end:
                offsets[name, probe[0]] = probe[1]
    return offsets


def last_records(topics: Mapping[str, TopicSnapshot]) -> dict[Place, int]:
    """The last record of each topic's longest partition."""
    offsets = {}
    for name, topic in topics.items():
        filled = {p: log.end for p, log in topic.partitions.items() if log.end > log.log_start}
        if filled:
            partition = max(filled, key=filled.__getitem__)
            offsets[name, partition] = filled[partition] - 1
    return offsets


def marked(
    topics: Mapping[str, TopicSnapshot],
    marks: Marks,
    before: Mapping[Place, str],
    now: Mapping[Place, str],
    at_ms: int,
) -> dict[str, dict[str, Any]]:
    """The topics' entries after this observation.

    :param before: contents of the :func:`probes`, as far as they were read; ``now``: of the
        :func:`last_records`.
    """
    offsets = last_records(topics)
    entries: dict[str, dict[str, Any]] = {}
    for name, topic in topics.items():
        former = marks.get(name)
        if former is None or _is_another(former, topic, before):
            former = {"mark": f"{MARK}{at_ms}", "probe": None}
        entries[name] = {
            "mark": former["mark"],
            "at_ms": at_ms,
            "partitions": {
                str(p): [log.log_start, log.end, log.leader_epoch]
                for p, log in topic.partitions.items()
            },
            "probe": next(
                ([p, offsets[name, p], now[name, p]] for p in topic.partitions if (name, p) in now),
                former["probe"],
            ),
        }
    return entries


def _is_another(
    former: Mapping[str, Any], topic: TopicSnapshot, before: Mapping[Place, str]
) -> bool:
    """Whether this is another topic than the one of an entry."""
    for number, (start, end, epoch) in former["partitions"].items():
        if (log := topic.partitions.get(int(number))) is None:
            return True
        grown = 0 if None in (epoch, log.leader_epoch) else (log.leader_epoch or 0) - epoch
        # A new leader may have less than the former one; the first of a topic has no former one.
        if grown < 0 or (grown == 0 and (log.log_start < start or log.end < end)):
            return True
    if former["probe"] is None:
        return False
    partition, _, content = former["probe"]
    return bool(before.get((topic.name, partition), content) != content)


def with_marks(snapshot: ClusterSnapshot, marks: Marks) -> ClusterSnapshot:
    """The same snapshot, its topics with their marks."""
    given = {
        name: replace(topic, topic_id=marks[name]["mark"])
        for name, topic in unnamed(snapshot).items()
        if name in marks
    }
    return replace(snapshot, topics={**snapshot.topics, **given})


def changed_ids(
    remembered: Mapping[str, str], snapshot: ClusterSnapshot
) -> dict[str, tuple[str, str]]:
    """Topics whose id is not the remembered one: name -> (remembered, present)."""
    return {
        name: (remembered[name], topic.topic_id)
        for name, topic in snapshot.topics.items()
        if another_topic(remembered.get(name), topic.topic_id)
    }


def recreated_on_target(
    flow: Flow, recreated: Mapping[str, tuple[str, str]], source: Cluster
) -> list[Finding]:
    """Topics of the target that were recreated.

    :param recreated: name -> the id remembered, the present one.
    """
    stop, start = remedies.connector(flow, "stop"), remedies.connector(flow, "start")
    return [
        finding(
            "reset",
            f"{name}: deleted and created again on {flow.target} (id {old}, now {new})",
            f"Records mirrored before are gone. To mirror the topic again, on "
            f"{remedies.host(flow)}: {stop}; {_set_back(flow, name, source)}; {start}; then "
            f"{remedies.full_history(flow, flow.source_topic(name) or name)}",
            flow=flow.name,
            topic=name,
        )
        for name, (old, new) in recreated.items()
    ]


def _set_back(flow: Flow, topic: str, cluster: Cluster) -> str:
    """How to give a stopped mirror the start of a topic as its position.

    :param topic: its name on the target.
    :param cluster: the source.
    """
    source = flow.source_topic(topic) or topic
    if flow.engine.positions is PositionStore.CONNECT_OFFSETS:
        return (
            f"write a record without value for each of the keys of {source} into "
            f"{flow.offset_topic}"
        )
    return remedies.tool(
        cluster, "kafka-consumer-groups.sh", "--group", flow.group_id,
        "--reset-offsets", "--to-earliest", "--topic", source, "--execute",
    )  # fmt: skip
