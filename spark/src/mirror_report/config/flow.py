"""A mirror flow, as the configuration describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_report.engines import DEFAULT, Engine

REPLICATION_POLICIES = ("identity", "prefix")


HEARTBEATS = "heartbeats"
# What brokers mark as internal (org.apache.kafka.common.internals.Topic, Kafka 4.3).
INTERNAL_TOPICS = ("__consumer_offsets", "__share_group_state", "__transaction_state")


# MirrorMaker 2's defaults of groups.exclude and config.properties.exclude (Kafka 4.3).
GROUPS_EXCLUDE = ("console-consumer-.*", "connect-.*", "__.*")


CONFIG_EXCLUDE = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms", "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms", "message.timestamp.type",
    "unclean.leader.election.enable", "min.insync.replicas",
)  # fmt: skip


CONNECTORS = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")


RESOURCES = ("topic", "group", "cluster", "transactional-id")


PATTERNS = ("literal", "prefixed")


ISOLATIONS = ("read_uncommitted", "read_committed")


@dataclass(frozen=True)
class Permission:
    """One ACL that an identity needs for a flow.

    :param cluster: alias of the cluster that has to grant it.
    :param resource: ``topic``, ``group``, ``cluster`` or ``transactional-id``.
    :param name: of the resource, or what names begin with; ``*`` stands for every one.
    :param operation: Kafka's own word, such as ``READ``.
    :param why: what fails without it.
    :param wider: it allows more than the flow takes.
    """

    cluster: str
    resource: str
    name: str
    pattern: str
    operation: str
    why: str = ""
    wider: bool = False


@dataclass(frozen=True)
class Flow:
    """One mirror flow.

    :param include: the regular expression of topics, as the mirror process gets it.
    :param left_out: regular expressions of topics that no flow takes: their copies would steer a
        mirror, or have too long a name; ``include`` leaves them out.
    :param group_id: the group of the mirror's processes: its consumer group on the source, or
        that of its workers on the target.
    :param accept: dangers accepted by name, such as ``regex-without-auto-creation:orders``.
    :param parallelism: streams or tasks the flow may use.
    :param round_trips_ms: alias of a cluster -> milliseconds of a round trip that the mirror's
        properties are made for; one that is missing is near.
    :param replication_policy: ``prefix`` puts the source's alias before a topic's name on the
        target, ``identity`` keeps it; with ``separator`` between alias and name.
    :param consumer_groups: regular expressions of the groups whose offsets are synced.
    :param connectors: names of what copies records, of what syncs groups and of what writes
        heartbeats, as Kafka Connect knows them; MirrorMaker 2's own by default.
    :param offset_topic: on the target, like the other ``*_topic``: one the mirror keeps.
    :param groups_exclude: regular expressions of the groups the mirror leaves out of those.
    :param checkpoint_seconds: how often the mirror asks for what groups have committed.
    :param sync_topic_configs: whether it sets topics' settings on the target, all but those that
        match ``config_exclude``.
    :param replication_factors: property -> replication factor that is asked for.
    :param permissions: what the identity of this configuration needs; empty: nothing is known.
    :param identity: as which of a cluster's identities the mirror connects.
    :param worker_principal: who the target's ACLs take the mirror for; ``None``: not known.
    :param source_isolation: Kafka's word for whether records of transactions that did not commit
        count on the source, as they do to the mirror; ``target_isolation``: on the target.
    """

    name: str
    source: str
    target: str
    include: str
    engine: Engine = DEFAULT
    topics: tuple[str, ...] = ()
    topics_exclude: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    start: str = "earliest"
    group_id: str = ""
    instance: str = "mirrormaker"
    hosts: tuple[str, ...] = ()
    commit_interval_ms: int = 60_000
    sysconfig: str | None = None
    accept: tuple[str, ...] = ()
    parallelism: int = 1
    round_trips_ms: Mapping[str, int] = field(default_factory=dict)
    replication_policy: str = "identity"
    separator: str = "."
    consumer_groups: tuple[str, ...] = ()
    groups_exclude: tuple[str, ...] = GROUPS_EXCLUDE
    checkpoint_seconds: int = 60
    sync_topic_configs: bool = True
    config_exclude: tuple[str, ...] = CONFIG_EXCLUDE
    connectors: tuple[str, str, str] = CONNECTORS
    offset_topic: str = ""
    status_topic: str = ""
    config_topic: str = ""
    offset_syncs_topic: str = ""
    checkpoints_topic: str = ""
    replication_factors: Mapping[str, int] = field(default_factory=dict)
    permissions: tuple[Permission, ...] = ()
    identity: str = "mirror"
    worker_principal: str | None = None
    source_isolation: str = "read_uncommitted"
    target_isolation: str = "read_uncommitted"

    def isolation(self, side: str) -> str:
        """Which records of a side count: ``read_uncommitted`` (all) or ``read_committed``."""
        return self.source_isolation if side == "source" else self.target_isolation

    def alias(self, side: str) -> str:
        """Cluster of a side."""
        return self.source if side == "source" else self.target

    def matches(self, topic: str) -> bool:
        """Whether the flow mirrors a topic; most of what an engine leaves out is in ``include``."""
        skipped = self.engine.skips_internal_topics and topic in INTERNAL_TOPICS
        return not skipped and re.fullmatch(self.include, topic) is not None

    def target_topic(self, source_topic: str) -> str:
        """Name on the target; replication policies prefix heartbeats, whichever it is."""
        if self.engine.has_replication_policy and (
            self.replication_policy == "prefix" or source_topic.endswith(HEARTBEATS)
        ):
            return f"{self.source}{self.separator}{source_topic}"
        return source_topic

    def source_topic(self, target_topic: str) -> str | None:
        """Name on the source of a topic of the target; ``None``: it is not this flow's."""
        name = self.origin(target_topic)
        return name if name is not None and self.matches(name) else None

    def origin(self, target_topic: str) -> str | None:
        """Likewise, also of what the flow does not mirror any more."""
        for name in (target_topic, target_topic.removeprefix(f"{self.source}{self.separator}")):
            if self.target_topic(name) == target_topic:
                return name
        return None

    def wants(self, group: str) -> bool:
        """Whether the flow should take a consumer group's offsets along."""
        return any(re.fullmatch(pattern, group) for pattern in self.consumer_groups)

    def syncs(self, group: str) -> bool:
        """Whether the flow takes a consumer group's offsets along."""
        return self.wants(group) and not any(
            re.fullmatch(pattern, group) for pattern in self.groups_exclude
        )

    def syncs_setting(self, key: str) -> bool:
        """Whether the flow may set a topic's setting on the target."""
        return (
            self.engine.syncs_topic_configs
            and self.sync_topic_configs
            and not any(re.fullmatch(pattern, key) for pattern in self.config_exclude)
        )

    @property
    def named(self) -> tuple[str, ...]:
        """Topics the flow names one by one, also those beside a regular expression."""
        return tuple(pattern.replace("\\.", ".") for pattern in self.topics if _is_name(pattern))

    @property
    def is_regex(self) -> bool:
        """Whether topics may match that do not exist yet."""
        return not all(map(_is_name, self.topics or (self.include,)))


def _is_name(pattern: str) -> bool:
    """Whether a regular expression is one topic's name."""
    return re.fullmatch(r"[A-Za-z0-9_\-]+", pattern.replace("\\.", "_")) is not None
