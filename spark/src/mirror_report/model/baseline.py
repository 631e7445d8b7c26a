"""Where verification of a flow starts, by topic of the source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mirror_report.model.cluster import Contents, Epochs

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class SideBaseline:
    """One side of a topic when its baseline was recorded, by partition.

    :param topic_id: empty: there was no such topic, or its id is not known.
    :param start: read from here: the committed position; of the target, the ends of its logs.
    :param leader_epochs: they identify the logs, like ``last_records``
        (:mod:`parity.plan.lost_tails`).
    """

    topic_id: str | None = None
    start: Mapping[int, int] = field(default_factory=dict)
    leader_epochs: Mapping[int, Epochs] = field(default_factory=dict)
    last_records: Mapping[int, Contents] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicBaseline:
    """Where verification of a topic starts; offsets by partition.

    :param required: of the source: from here on each record has to be on the target;
        ``untouched``: from here on none was copied before the start of the target was read.
    :param sought: of the target: from here on lies what was copied last before its start;
        ``older``: below lie copies of what the source had lost by then.
    :param log_start: what the source had dropped up to here is accepted.
    :param losses_since_ms: where it was recorded again alone, as :class:`Baseline` has it.
    :param cut_by_time: an earlier release recorded it, without the offsets from which on
        records count.
    """

    recorded_at_ms: int = 0
    source: SideBaseline = SideBaseline()
    target: SideBaseline = SideBaseline()
    required: Mapping[int, int] = field(default_factory=dict)
    untouched: Mapping[int, int] = field(default_factory=dict)
    sought: Mapping[int, int] = field(default_factory=dict)
    older: Mapping[int, int] = field(default_factory=dict)
    log_start: Mapping[int, int] = field(default_factory=dict)
    losses_since_ms: int | None = None
    cut_by_time: bool = False

    def side(self, side: Side) -> SideBaseline:
        """One of its sides."""
        return self.source if side == "source" else self.target


@dataclass(frozen=True)
class Baseline:
    """Where verification of a flow starts.

    :param recorded_at_ms: ``None``: it was not recorded.
    :param losses_since_ms: from then on records are reported that the source dropped before they
        were copied.
    :param group_existed: positions were committed.
    :param topics: by name on the source.
    :param accepted: topics that are no longer mirrored -> until when (ms) what was lost of them is
        accepted.
    """

    recorded_at_ms: int | None = None
    losses_since_ms: int = 0
    group_existed: bool = False
    topics: Mapping[str, TopicBaseline] = field(default_factory=dict)
    accepted: Mapping[str, int] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """Whether it was recorded."""
        return self.recorded_at_ms is not None

    def topic(self, name: str) -> TopicBaseline:
        """The baseline of a topic; an empty one if that came later."""
        return self.topics.get(name, TopicBaseline())
