"""The topics of a flow, mirrored or not."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ConfigDifference:
    """A setting of a topic that differs between the sides.

    :param kind: ``synced``: the mirror would set it on the target; ``risk``: nothing syncs it,
        and it endangers the mirror.
    """

    name: str
    source: str | None
    target: str | None
    kind: Literal["synced", "risk"]


@dataclass(frozen=True)
class TopicStatus:
    """One topic of the source, or one of the target that nothing on the source feeds any more.

    :param topic: name on the source; ``target_topic``: on the target.
    :param selected: whether the flow mirrors it; ``reason``: why not, or what is wrong with it.
    :param source_partitions: ``None``: the topic is not there, or hidden.
    """

    flow: str
    topic: str
    target_topic: str
    selected: bool
    reason: str
    source_partitions: int | None
    target_partitions: int | None
    differences: tuple[ConfigDifference, ...] = ()
