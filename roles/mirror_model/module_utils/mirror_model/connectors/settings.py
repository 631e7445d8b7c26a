"""What connectors and workers of MirrorMaker 2 are set to: tuned, by the inventory, or by Kafka."""

from typing import Any

from .. import regex
from ..keys import Flow, layered
from ..owners import Owner

KAFKA_VERSION = "4.3.1"
POLICIES = {
    "prefix": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "identity": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
}
# Nothing is written to a source, no task waits minutes for what is new, and no topic is mirrored
# that nobody named (heartbeats).
FLOW_DEFAULTS: dict[str, Any] = {
    "emit.heartbeats.enabled": False,
    "heartbeats.replication.enabled": False,
    "refresh.groups.interval.seconds": 60,
    "refresh.topics.interval.seconds": 60,
    "sync.topic.acls.enabled": False,
}
# What Kafka's own defaults are, of what the report and permissions have to know.
FLOW_KAFKAS: dict[str, Any] = {
    "config.properties.exclude": (
        "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms", "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms", "message.timestamp.type",
        "unclean.leader.election.enable", "min.insync.replicas",
    ),
    "emit.checkpoints.interval.seconds": 60,
    "emit.heartbeats.enabled": True,
    "emit.offset-syncs.enabled": True,
    "groups.exclude": ("console-consumer-.*", "connect-.*", "__.*"),
    "sync.topic.acls.enabled": True,
    "sync.topic.configs.enabled": True,
}  # fmt: skip
# A start looks for plug-ins by their manifests instead of through every class; a node that dies is
# missed after six seconds, and its work goes to the others at once, not after five minutes.
WORKER_DEFAULTS: dict[str, Any] = {
    "heartbeat.interval.ms": 2000,
    "offset.flush.interval.ms": 10000,
    "offset.flush.timeout.ms": 30000,
    "plugin.discovery": "service_load",
    "scheduled.rebalance.max.delay.ms": 0,
    "session.timeout.ms": 6000,
}
FLOW_FACTORS = (
    "replication.factor", "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor", "offset-syncs.topic.replication.factor",
)  # fmt: skip
WORKER_FACTORS = (
    "config.storage.replication.factor", "offset.storage.replication.factor",
    "status.storage.replication.factor",
)  # fmt: skip
MOST_REPLICAS = 3
# The process without records, and how often what a producer buffers; both with room that spares
# the collector.
BASE_MIB, HELD = 384, 5


def flow_defaults(flow: Flow) -> dict[str, Any]:
    """What a flow's connectors are set to unless the inventory says otherwise.

    Where names are kept, whoever makes a topic on the source chooses which topic of the target it
    stands for, and MirrorMaker 2 would set one that the target has of its own as that is set. New
    topics get the source's settings nevertheless, when MirrorMaker 2 creates them.
    """
    chosen_there = flow["replication_policy"] == "identity" and not all(
        map(regex.is_literal, flow["topics"])
    )
    return FLOW_DEFAULTS | ({"sync.topic.configs.enabled": False} if chosen_there else {})


def connector_value(flow: Flow, key: str) -> Any:
    """A connector property of :data:`FLOW_KAFKAS` as it takes effect; null means Kafka's."""
    return layered(flow_defaults(flow), flow["properties"]).get(key, FLOW_KAFKAS[key])


def listed(value: Any) -> list[str]:
    """A list as Kafka reads one, also from text."""
    entries = value.split(",") if isinstance(value, str) else map(str, value)
    return [entry.strip() for entry in entries if entry.strip()]


def groups_exclude(flow: Flow) -> list[str]:
    """The groups whose positions are not synced; those of owners are never."""
    chosen = listed(connector_value(flow, "groups.exclude"))
    return list(dict.fromkeys([*chosen, *flow["groups_left_out"]]))


def is_on(flow: Flow, key: str) -> bool:
    """Whether one of the connectors' switches is on."""
    return str(connector_value(flow, key)).lower() == "true"


def worker_value(owner: Owner, key: str) -> Any:
    """A worker property as it takes effect, ``None`` if Kafka's default does."""
    return layered(WORKER_DEFAULTS, owner.settings["worker_properties"]).get(key)


def own_factors(flow: Flow, owner: Owner) -> dict[str, Any]:
    """The replication factors that the inventory sets itself."""
    return layered(
        {key: flow["properties"].get(key) for key in FLOW_FACTORS},
        {key: owner.settings["worker_properties"].get(key) for key in WORKER_FACTORS},
    )
