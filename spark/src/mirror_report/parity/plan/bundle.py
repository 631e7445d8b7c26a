"""The plan of a digest bundle: its topics, and the ranges to read for it."""

from collections.abc import Mapping

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, Positions, TopicSnapshot
from mirror_report.parity.plan import strategies
from mirror_report.parity.plan.ranges import Range
from mirror_report.parity.state import Bundle, BundleTopic, Side


def describe(
    flow: Flow,
    side: Side,
    snapshot: ClusterSnapshot,
    positions: Positions | None,
    floors: Mapping[str, Mapping[int, int]],
    bucket_ms: int,
) -> Bundle:
    """The manifest of a bundle before it is read.

    :param floors: topic -> partition -> first offset of interest, where a baseline has one.
    """
    topics = {}
    for name in sorted({*snapshot.topics, *snapshot.errors}):
        on_target = flow.target_topic(name) if side == "source" else name
        if (topic := snapshot.topics.get(name)) is None:
            topics[name] = BundleTopic(on_target, unknown=snapshot.errors[name])
            continue
        floor = floors.get(name, {})
        topics[name] = BundleTopic(
            on_target,
            topic.topic_id,
            {
                str(partition): (min(max(log.log_start, floor.get(partition, 0)), log.end),
                                 log.end)
                for partition, log in sorted(topic.partitions.items())
            },
            _reason_to_skip(side, topic),
        )  # fmt: skip
    return Bundle(
        flow.name, side, flow.engine.name, flow.target_topic(""), flow.source, flow.target,
        snapshot.cluster_id, snapshot.taken_at_ms, bucket_ms, topics, positions,
    )  # fmt: skip


def _reason_to_skip(side: Side, topic: TopicSnapshot) -> str | None:
    if strategies.is_compacted(topic):
        return f"compacted on the {side}: numbers of records legitimately differ"
    if side == "target" and not strategies.keeps_time(topic):
        return "the target replaces the records' timestamps (message.timestamp.type)"
    return None


def to_read(bundle: Bundle) -> list[Range]:
    """Ranges of the topics that can be compared, none empty."""
    return [
        Range(bundle.flow, bundle.side, name, topic.topic, int(partition), start, end)
        for name, topic in bundle.topics.items()
        if topic.skip is None and topic.unknown is None
        for partition, (start, end) in topic.ranges.items()
        if end > start
    ]
