"""By which strategy the content of a topic is compared, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from mirror_report.config import Flow
from mirror_report.model import Strategy, TopicSnapshot

# Strategies that compare what is new, bucket by bucket.
BY_BUCKET: tuple[Strategy, ...] = ("timestamp", "offset_syncs")


@dataclass(frozen=True)
class Choice:
    """A strategy and its reason; empty for the default."""

    strategy: Strategy
    reason: str = ""


def choose(
    flow: Flow,
    sources: Sequence[TopicSnapshot],
    target: TopicSnapshot | None,
    *,
    untimed: bool = False,
) -> Choice:
    """How to compare one topic of the target with the topics that feed it.

    A setting that may not be read counts as Kafka's default.

    :param sources: the topics of the source that feed it.
    :param target: ``None``: it does not exist yet, so nothing speaks against the default.
    :param untimed: records of the source are known to carry no timestamps; engines give
        them the time at which they are mirrored.
    """
    compacted = [
        side
        for side, topics in (("source", sources), ("target", [target] if target else []))
        if any(is_compacted(topic) for topic in topics)
    ]
    if compacted:
        return Choice("latest_by_key", f"compacted on the {' and the '.join(compacted)}")
    if target is not None and not keeps_time(target):
        reason = "the target replaces timestamps (message.timestamp.type=LogAppendTime)"
    elif untimed:
        reason = "records of the source have no timestamps"
    else:
        return Choice("timestamp")
    if not flow.engine.has_offset_syncs:
        return Choice(
            "none", f"{reason}, and {flow.engine.title} says nothing of offsets on the target"
        )
    if len(sources) > 1:
        return Choice("none", f"{reason}, and several topics feed this one")
    return Choice("offset_syncs", reason)


def is_compacted(topic: TopicSnapshot) -> bool:
    """Whether the broker may remove records that have a newer one of the same key."""
    return "compact" in topic.configs.get("cleanup.policy", "")


def keeps_time(target: TopicSnapshot) -> bool:
    """Whether records keep the timestamps they are written with."""
    return target.configs.get("message.timestamp.type") != "LogAppendTime"
