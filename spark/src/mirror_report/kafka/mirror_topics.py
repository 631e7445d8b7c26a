"""Reading the topics in which a mirror keeps its state, each time on from the last read's end.

They are compacted topics of the target.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kafka import TopicPartition

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka.connection import ClusterError, DeniedError, UnreadableError
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.kafka.record_formats import FormatError
from mirror_report.kafka.records import batches, consumer
from mirror_report.model import ForeignRecords, Place, TopicSnapshot, another_topic

READ_SECONDS = 120.0
# Half of Kafka's default of ``delete.retention.ms``.
TOMBSTONES_KEPT_MS = 12 * 3_600_000

# Consumer record -> key and value (``None``: forgotten), or ``None``: the record is ignored.
Decode = Callable[[Any], tuple[str, Any] | None]


@dataclass
class Tail:
    """What a compacted topic holds, read up to some offset; a later read goes on from there.

    :param latest: key -> value of its newest record, both as :data:`Decode` made them.
    :param foreign: partition -> records that were passed over: how many, and of the last one its
        offset, what is wrong with it, and when (ms) it was read.
    """

    topic_id: str = ""
    read_at_ms: int = 0
    next: dict[int, int] = field(default_factory=dict)
    latest: dict[str, Any] = field(default_factory=dict)
    foreign: dict[int, tuple[int, int, str, int]] = field(default_factory=dict)

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """The tail that :meth:`dump` returned."""
        return cls(
            plain["topic_id"],
            plain["read_at_ms"],
            {int(p): offset for p, offset in plain["next"].items()},
            dict(plain["latest"]),
            {int(p): tuple(record) for p, record in plain.get("foreign", {}).items()},
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "topic_id": self.topic_id,
            "read_at_ms": self.read_at_ms,
            "next": {str(p): offset for p, offset in self.next.items()},
            "latest": self.latest,
            "foreign": {str(p): list(record) for p, record in self.foreign.items()},
        }

    def fit(self, topic: TopicSnapshot, now_ms: int) -> None:
        """Forget everything unless going on from here gives the same as reading it all.

        Another topic, a log that got shorter, or so long a pause that tombstones may be gone
        (they are kept for a day) mean a new beginning.
        """
        same = not another_topic(self.topic_id, topic.topic_id)
        if not (same and now_ms - self.read_at_ms < TOMBSTONES_KEPT_MS) or any(
            self.next.get(p, 0) > (log.high_watermark or 0) for p, log in topic.partitions.items()
        ):
            self.next, self.latest, self.foreign = {}, {}, {}
        self.topic_id, self.read_at_ms = topic.topic_id, now_ms
        for number, log in topic.partitions.items():
            self.next[number] = max(self.next.get(number, 0), log.log_start)

    def pass_over(self, record: Any, why: str) -> None:
        """Count a record that is not what the topic should hold."""
        count, *_ = self.foreign.get(record.partition, (0,))
        self.foreign[record.partition] = (count + 1, record.offset, why, self.read_at_ms)

    def left(self, topic: TopicSnapshot) -> int:
        """Offsets not read yet."""
        return sum(
            max(0, (log.high_watermark or 0) - self.next[p]) for p, log in topic.partitions.items()
        )


# Topic -> what was read of it; kept between observations, so that each reads only what is new.
Tails = dict[str, Tail]


def foreign_records(tails: Tails, names: Collection[str]) -> tuple[ForeignRecords, ...]:
    """Records that were passed over in some topics."""
    return tuple(
        ForeignRecords(name, partition, *record)
        for name in names
        if name in tails
        for partition, record in sorted(tails[name].foreign.items())
    )


# Flow -> what was read of its mirror's own topics.
FlowTails = dict[str, Tails]


def own_topics(
    client: ClusterClient, names: Collection[str]
) -> tuple[dict[str, TopicSnapshot], dict[str, ClusterError]]:
    """Topics a mirror keeps for itself, as far as we may read them, and why not the others.

    A topic that does not exist is in neither.
    """
    snapshot = client.snapshot(None, names, settings=False)
    problems: dict[str, ClusterError] = {
        name: DeniedError(f"cluster {client.cluster.alias}: {why}", _grant(name))
        if name in snapshot.refused
        else UnreadableError(
            f"cluster {client.cluster.alias}: {why}",
            f"kafka-topics.sh --describe --topic {name} shows whether its partitions have leaders",
        )
        for name, why in snapshot.errors.items()
    }
    readable = {
        name: topic
        for name, topic in snapshot.topics.items()
        if topic.operations is None or "READ" in topic.operations
    }
    problems |= {
        name: DeniedError(
            f"cluster {client.cluster.alias}: identity {client.cluster.identity} "
            f"({client.cluster.username or 'anonymous'}) may not read {name}",
            _grant(name),
        )
        for name in snapshot.topics
        if name not in readable
    }
    return readable, problems


def _grant(name: str) -> str:
    return f"Grant it READ on topic {name}"


def catch_up(
    cluster: Cluster,
    credentials: Credentials,
    tails: Sequence[tuple[TopicSnapshot, Tail, Decode]],
    timeout_seconds: float,
) -> dict[str, ClusterError]:
    """Read compacted topics on to their ends, or as far as the time allows.

    :param tails: each topic, what was read of it (fitted to it), and how to decode its records.
    :returns: topic -> why no more of it can be read: a batch is damaged, or of a codec that is not
        there. Its newest records by then may be old.
    :raises ClusterError: they may not be read. A record that is not of its format is passed over.
    """
    try:
        failed = _read(cluster, credentials, tails, timeout_seconds)
    except UnreadableError as error:
        # Read alone, each topic shows whether it is the one.
        if len(tails) > 1:
            single = [catch_up(cluster, credentials, [tail], timeout_seconds) for tail in tails]
            return {name: why for problems in single for name, why in problems.items()}
        return {topic.name: _unreadable(cluster, topic.name, error.message)
                for topic, _, _ in tails}  # fmt: skip
    next_offsets = {topic.name: tail.next for topic, tail, _ in tails}
    return {
        name: _unreadable(
            cluster, name, f"partition {number} from offset {next_offsets[name][number]}, {why}"
        )
        for (name, number), why in failed.items()
    }


def _unreadable(cluster: Cluster, name: str, why: str) -> UnreadableError:
    return UnreadableError(
        f"cluster {cluster.alias}: {name}, in which the mirror keeps its state: {why}",
        "Install the package that the message names; if it names none, ask the broker's log about "
        "that partition. Leave the topic itself as it is: it holds what the mirror needs",
    )


def _read(
    cluster: Cluster,
    credentials: Credentials,
    tails: Sequence[tuple[TopicSnapshot, Tail, Decode]],
    timeout_seconds: float,
) -> dict[Place, str]:
    """Partitions that could not be read to their ends, and why."""
    reads = {
        TopicPartition(topic.name, number): (tail, decode)
        for topic, tail, decode in tails
        for number in topic.partitions
    }
    left = {
        TopicPartition(topic.name, number): log.high_watermark or 0
        for topic, tail, _ in tails
        for number, log in topic.partitions.items()
        if tail.next[number] < (log.high_watermark or 0)
    }
    failed: dict[Place, str] = {}
    if not left:
        return failed
    starts = {at: reads[at][0].next[at.partition] for at in left}
    names = ", ".join(sorted({at.topic for at in left}))
    with consumer(cluster, credentials, "tail", starts, names, max_poll_records=10_000) as opened:
        for at, records, _ in batches(opened, left, failed, timeout_seconds):
            tail, decode = reads[at]
            _take(records, tail, decode)
            tail.next[at.partition] = opened.position(at)
    return failed


def _take(records: Sequence[Any], tail: Tail, decode: Decode) -> None:
    for record in records:
        try:
            entry = decode(record)
        except FormatError as error:
            tail.pass_over(record, str(error))
            continue
        if entry is not None:
            key, value = entry
            if value is None:
                tail.latest.pop(key, None)
            else:
                tail.latest[key] = value
