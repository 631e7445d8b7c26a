"""The clusters of a flow as a run sees them."""

from collections.abc import Mapping
from dataclasses import dataclass

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, Positions, TopicSnapshot
from mirror_report.parity.state import Side, fed_by


@dataclass(frozen=True)
class FlowSnapshot:
    """One flow: what it copied, and both of its sides.

    :param positions: committed; those past the end of their log are left out.
    """

    flow: Flow
    positions: Positions
    source: ClusterSnapshot
    target: ClusterSnapshot

    def side(self, side: Side) -> ClusterSnapshot:
        """One of the clusters."""
        return self.source if side == "source" else self.target


# By the name of the flow; flows that could not be observed are missing.
FlowSnapshots = Mapping[str, FlowSnapshot]


def find(snapshots: FlowSnapshots, flow: str, side: Side, origin: str) -> TopicSnapshot | None:
    """A topic of one side; ``None``: it is not there, or its flow was not observed.

    :param origin: its name there, or a co-fed one.
    """
    via, name = fed_by(flow, origin)
    snapshot = snapshots.get(via)
    return snapshot.side(side).topics.get(name) if snapshot else None


def of_present_topics(positions: Positions, source: ClusterSnapshot) -> Positions:
    """Positions without those past the end of their log.

    MirrorMaker 2 keeps its position when a topic is deleted. Until it commits again, such a one is
    of the earlier topic of that name and does not hold for the present one.

    :param source: taken after the positions, or a mirror at work would seem to be past the end.
    """
    ends = {
        (topic.name, partition): log.end
        for topic in source.topics.values()
        for partition, log in topic.partitions.items()
    }
    return {
        topic: {
            partition: position
            for partition, position in parts.items()
            if position <= ends.get((topic, partition), position)
        }
        for topic, parts in positions.items()
    }
