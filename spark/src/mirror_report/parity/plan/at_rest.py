"""Topics at rest, which can be proved whole."""

from dataclasses import dataclass

from mirror_report.parity.plan.ranges import Range
from mirror_report.parity.state import TopicKey


@dataclass(frozen=True)
class TopicAtRest:
    """A topic to prove.

    :param ranges: everything both sides hold.
    :param keeps_time: whether timestamps have to be the same.
    :param source_gap: records of the source had expired; ``target_gap``: of the target.
    """

    flow: str
    topic: str
    ranges: tuple[Range, ...]
    keeps_time: bool = True
    source_gap: bool = False
    target_gap: bool = False

    @property
    def key(self) -> TopicKey:
        """Its flow and name."""
        return self.flow, self.topic
