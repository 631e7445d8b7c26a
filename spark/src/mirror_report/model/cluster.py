"""A cluster at one moment: topics, groups, transactions, permissions, certificates.

Offsets are Kafka offsets, ``*_ms`` are milliseconds since 1970, ``None`` means unknown (never 0).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

# Source topic -> partition -> next offset to mirror (committed); absent = never committed.
Positions = dict[str, dict[int, int]]


# Topic and partition.
Place = tuple[str, int]


# Leader epochs of a log, each with the offset of its first record, ascending. Logs in which one
# record is of the same epoch are the same up to it: an epoch has one leader.
Epochs = tuple[tuple[int, int], ...]
# Offsets of single records and what they hold, ascending.
Contents = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class EpochsAsked:
    """Which leader epochs of a log are asked for.

    :param leader: epoch of the present leader, which is the newest.
    :param low: the oldest is that of the record at this offset.
    :param former: those of an earlier observation; none older than the newest of them is asked for.
    """

    leader: int
    low: int
    former: Epochs = ()


@dataclass(frozen=True)
class PartitionSnapshot:
    """Log start and end of one partition.

    :param log_end: last stable offset; a reader of committed records gets this far.
    :param high_watermark: end for readers of uncommitted records.
    :param leader_epoch: grows with each leader; ``None``: not known.
    :param bytes: size of the leader's log on disk; ``None``: not known.
    :param epochs: the newest epochs; empty: not asked for, or not kept by the log.
    :param contents: where epochs are not known, what single records hold.
    """

    log_start: int
    log_end: int
    high_watermark: int | None = None
    leader_epoch: int | None = field(default=None, compare=False)
    bytes: int | None = field(default=None, compare=False)
    epochs: Epochs = field(default=(), compare=False)
    contents: Contents = field(default=(), compare=False)

    @property
    def end(self) -> int:
        """End of what a mirror copies: it does not wait for transactions to commit."""
        return max(self.log_end, self.high_watermark or 0)

    def end_for(self, isolation: str) -> int:
        """End of what a reader gets, by Kafka's word for what it waits for."""
        return self.log_end if isolation == "read_committed" else self.end


# Beginning of a mark, which stands for the id of a topic where a cluster has none
# (:mod:`checks.topic_identity`).
MARK = "since-"


def another_topic(former: str | None, present: str | None) -> bool:
    """Whether two ids are of two topics.

    An unknown id decides nothing, nor does a mark beside an id: the cluster got its ids meanwhile.
    """
    if not former or not present or former.startswith(MARK) != present.startswith(MARK):
        return False
    return former != present


@dataclass(frozen=True)
class TopicSnapshot:
    """One topic of one cluster at one moment.

    :param topic_id: brokers below 2.8 have none, then it is a mark of ours, or empty: not known.
    :param configs: effective settings; empty if they may not be read.
    :param bytes: size of the leaders' logs on disk; ``None`` if it may not be asked for.
    :param operations: what our identity may do with the topic; ``None``: not known.
    :param config_sources: setting -> where its value is from, in Kafka's words
        (DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG, ...).
    """

    name: str
    topic_id: str
    partitions: dict[int, PartitionSnapshot]
    configs: dict[str, str]
    bytes: int | None
    operations: tuple[str, ...] | None = None
    config_sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterSnapshot:
    """The topics of one cluster at one moment.

    :param errors: topic name -> why it could not be read; such a topic is unknown, not absent.
    :param refused: those of ``errors`` for which our identity lacks a permission.
    :param brokers: how many are registered, those that are away included; ``None``: not known.
    """

    alias: str
    cluster_id: str
    taken_at_ms: int
    topics: dict[str, TopicSnapshot]
    errors: dict[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    brokers: int | None = None

    def log(self, topic: str, partition: int) -> PartitionSnapshot | None:
        """One partition's log; ``None``: there is none, or it could not be read."""
        snapshot = self.topics.get(topic)
        return snapshot.partitions.get(partition) if snapshot else None

    def logs(self) -> Iterator[tuple[Place, PartitionSnapshot]]:
        """Every partition that could be read, and its log."""
        for name, topic in self.topics.items():
            for partition, log in topic.partitions.items():
                yield (name, partition), log


@dataclass(frozen=True)
class GroupMember:
    """A live member of a consumer group and the partitions it owns."""

    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class GroupSnapshot:
    """A consumer group.

    :param state: Kafka's own word (Stable, Empty, Dead, PreparingRebalance, ...).
    """

    group_id: str
    state: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True)
class OpenTransaction:
    """The oldest open transaction of one partition.

    :param start_offset: where it begins in the partition.
    :param seconds: for how long it has been open; at least so long if ``at_least``, because our
        identity may not ask for more.
    :param transactional_id: whose it is; ``None``: not known.
    """

    start_offset: int
    seconds: float
    at_least: bool
    transactional_id: str | None


# Kind of a resource (topic, group, cluster, transactional-id) and its name.
Resource = tuple[str, str]


@dataclass(frozen=True)
class Access:
    """What our identity may do with one resource, as a cluster answers.

    :param exists: ``None``: it is hidden from us, or was not asked about.
    :param operations: Kafka's word -> whether it is allowed; what is left out could not be asked.
    """

    exists: bool | None = None
    operations: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """One certificate a connection to a cluster rests on.

    :param role: who shows it: ``broker``, ``authority`` or ``client``.
    :param holder: which one of its role, such as ``broker 1 (east1:9094)``.
    :param subject: whom it names; empty if it was not read.
    :param ends_at_ms: end of its validity.
    :param problem: why it could not be examined.
    :param expired: so much is known even if it could not be examined.
    """

    alias: str
    role: Literal["broker", "authority", "client"]
    holder: str
    subject: str = ""
    ends_at_ms: int | None = None
    problem: str = ""
    expired: bool = False
