"""The records of the manifest, and how it names what they are about."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from mirror_report.model import Contents, Epochs, Side

# A time before all others, in milliseconds.
NEVER = -(2**62)
# An offset behind every record, also in place of one that is not known.
BEHIND_ALL = 2**62
# Clocks of brokers and of this host may differ by so much.
SLACK_MS = 60_000

# Flow, and name on the target.
TopicKey = tuple[str, str]

# Flow, side, and the topic's name there (of a co-fed source topic: :func:`co_fed`).
Origin = tuple[str, Side, str]


def co_fed(flow: str, name: str) -> str:
    """How the flow that compares a topic calls a source topic that another flow mirrors into it."""
    return f"{flow}/{name}"


def fed_by(flow: str, origin: str) -> tuple[str, str]:
    """The flow that mirrors a source topic, and the topic's own name.

    :param origin: its name, or what :func:`co_fed` made of it; no topic has a slash in its name.
    """
    via, slash, name = origin.rpartition("/")
    return (via if slash else flow), name


@dataclass(frozen=True)
class Gap:
    """Records that expired before the report could read them.

    :param until_ms: they had been written by then.
    """

    flow: str
    side: Side
    topic: str
    origin: str
    partition: int
    start: int
    end: int
    until_ms: int


@dataclass(frozen=True)
class Gone:
    """Digested records of one target partition that the target no longer holds.

    :param expired: as many as its retention had to remove; ``early``: as many as it had not.
    :param until_ms: when retention would have removed the newest of the early ones;
        ``None``: never.
    :param certain: otherwise it is unknown whether the early ones had to go by size.
    """

    flow: str
    topic: str
    partition: int
    expired: int
    early: int
    until_ms: int | None
    certain: bool = True


@dataclass(frozen=True)
class Removal:
    """Digested offsets ``start`` to ``end`` (exclusive) that the target no longer holds.

    :param kept_from_ms: nothing younger had to be removed.
    :param retention_ms: for how long records stay by now; ``None``: for ever, or not known.
    :param certain: otherwise it is unknown whether younger ones had to go by size.
    """

    flow: str
    topic: str
    partition: int
    start: int
    end: int
    kept_from_ms: int
    retention_ms: int | None
    certain: bool = True


@dataclass(frozen=True)
class Loss:
    """Records of a class that lasts, found in a topic that nothing is compared of any more.

    :param origin: the topic of the source; ``at_ms``: known then.
    """

    flow: str
    topic: str
    origin: str
    kind: str
    count: int
    at_ms: int

    @property
    def place(self) -> tuple[str, str, str]:
        """Its flow, topic and class."""
        return self.flow, self.topic, self.kind


@dataclass(frozen=True)
class Unreadable:
    """A record that Spark cannot read, because its timestamp does not fit into microseconds.

    :param topic_id: of the topic it was met in; empty where nothing is kept between runs.
    """

    flow: str
    side: Side
    topic: str
    origin: str
    partition: int
    offset: int
    timestamp_ms: int
    topic_id: str = ""


@dataclass(frozen=True)
class Widths:
    """How wide buckets of timestamps are, in milliseconds.

    :param normal: of all topics but those ``by_hour``, of which a bucket is an hour.
    """

    normal: int
    by_hour: Collection[TopicKey] = ()


# Fields of :class:`SideState` that come from a baseline: two of the source, two of the target.
BASELINE_OFFSETS = ("required", "untouched", "sought", "older")
# Fields of :class:`SideState` that hold an offset per partition, or (the last two) a time in ms.
NUMBERS = ("first", "next", *BASELINE_OFFSETS, "log_start", "gap", "sized", "doubted")
# Fields of :class:`SideState` that hold pairs per partition; they came later than the others.
PAIRS = ("leader_epochs", "last_records")


@dataclass(frozen=True)
class SideState:
    """How far one side of a topic was read.

    :param first: where reading began; ``next``: the offset to go on from.
    :param log_start: first offset that was there; kept of the target alone, like what follows.
    :param retention_ms: for how long records stay; -1: for ever; ``None``: not known.
    :param retention_bytes: how large a partition's log may get; -1: as large as it gets.
    :param kept_from_ms: no record younger than this had to be removed so far because of its age;
        ``sized``: none of the partition because of the log's size; ``doubted``: that is unknown.
    :param required: source, of a baseline recorded while the mirror ran: records below may have
        been copied before it; ``untouched``: from here on none was.
    :param sought: target, likewise: from here to ``first`` lies what was copied last before it.
    :param older: target: ends when the source was first read and had lost its beginning.
    :param gap: target: ends when records were last found to have left the source unread.
    :param leader_epochs: those of the newest records that were read, and of those behind them;
        ``last_records``: where a log keeps none, what single records hold (:mod:`plan.lost_tails`).
    """

    topic_id: str
    first: Mapping[int, int]
    next: Mapping[int, int]
    log_start: Mapping[int, int] = field(default_factory=dict)
    retention_ms: int | None = None
    kept_from_ms: int = NEVER
    required: Mapping[int, int] = field(default_factory=dict)
    untouched: Mapping[int, int] = field(default_factory=dict)
    sought: Mapping[int, int] = field(default_factory=dict)
    older: Mapping[int, int] = field(default_factory=dict)
    gap: Mapping[int, int] = field(default_factory=dict)
    retention_bytes: int = -1
    sized: Mapping[int, int] = field(default_factory=dict)
    doubted: Mapping[int, int] = field(default_factory=dict)
    leader_epochs: Mapping[int, Epochs] = field(default_factory=dict)
    last_records: Mapping[int, Contents] = field(default_factory=dict)

    def allowed_until(self, partitions: Iterable[int]) -> int | None:
        """Younger records of the target's partitions had not to be removed; ``None``: unknown."""
        bounds = {p: max(self.kept_from_ms, self.sized.get(p, NEVER)) for p in partitions}
        if any(self.doubted.get(p, NEVER) > bound for p, bound in bounds.items()):
            return None
        return max(bounds.values(), default=self.kept_from_ms)
