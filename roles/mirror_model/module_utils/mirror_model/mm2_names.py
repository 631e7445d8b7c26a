"""Keys of MirrorMaker 2 in Kafka 3.9 and 4.3, and who writes which.

The sets are the libraries' own, without the security keys that belong to a cluster; tests compare.
"""

from __future__ import annotations

import re
from typing import Any

from .schema import PRODUCER_DEFAULTS

_CONNECTOR = frozenset((
    "admin.timeout.ms", "checkpoints.topic.replication.factor", "config.action.reload",
    "config.properties.exclude", "config.property.filter.class", "connector.class",
    "consumer.poll.timeout.ms", "emit.checkpoints.enabled", "emit.checkpoints.interval.seconds",
    "emit.heartbeats.enabled", "emit.heartbeats.interval.seconds", "emit.offset-syncs.enabled",
    "enabled", "errors.log.enable", "errors.log.include.messages", "errors.retry.delay.max.ms",
    "errors.retry.timeout", "errors.tolerance", "forwarding.admin.class", "group.filter.class",
    "groups", "groups.exclude", "header.converter", "heartbeats.topic.replication.factor",
    "key.converter", "metric.reporters", "name", "offset-syncs.topic.location",
    "offset-syncs.topic.replication.factor", "offset.lag.max", "predicates",
    "refresh.groups.enabled", "refresh.groups.interval.seconds", "refresh.topics.enabled",
    "refresh.topics.interval.seconds", "replication.factor", "replication.policy.class",
    "replication.policy.internal.topic.separator.enabled", "replication.policy.separator",
    "source.cluster.alias", "sync.group.offsets.enabled", "sync.group.offsets.interval.seconds",
    "sync.topic.acls.enabled", "sync.topic.acls.interval.seconds", "sync.topic.configs.enabled",
    "sync.topic.configs.interval.seconds", "target.cluster.alias", "tasks.max",
    "tasks.max.enforce", "topic.filter.class", "topics", "topics.exclude", "transforms",
    "value.converter",
))  # fmt: skip
# What a connector of a flow knows.
CONNECTOR = {
    "3.9": _CONNECTOR | {
        "add.source.alias.to.metrics", "auto.include.jmx.reporter", "config.properties.blacklist",
        "groups.blacklist", "topics.blacklist", "use.incremental.alter.configs",
    },
    "4.3": _CONNECTOR | {
        "config.providers", "connector.plugin.version", "header.converter.plugin.version",
        "heartbeats.replication.enabled", "key.converter.plugin.version", "metric.names.formats",
        "value.converter.plugin.version",
    },
}  # fmt: skip
_WORKER = frozenset((
    "access.control.allow.methods", "access.control.allow.origin", "admin.listeners",
    "client.dns.lookup", "client.id", "config.providers", "config.storage.replication.factor",
    "config.storage.topic", "connect.protocol", "connections.max.idle.ms",
    "connector.client.config.override.policy", "exactly.once.source.support", "group.id",
    "header.converter", "heartbeat.interval.ms", "inter.worker.key.generation.algorithm",
    "inter.worker.key.size", "inter.worker.key.ttl.ms", "inter.worker.signature.algorithm",
    "inter.worker.verification.algorithms", "key.converter", "listeners", "metadata.max.age.ms",
    "metadata.recovery.strategy", "metric.reporters", "metrics.num.samples",
    "metrics.recording.level", "metrics.sample.window.ms", "offset.flush.interval.ms",
    "offset.flush.timeout.ms", "offset.storage.partitions", "offset.storage.replication.factor",
    "offset.storage.topic", "plugin.discovery", "plugin.path", "rebalance.timeout.ms",
    "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "request.timeout.ms", "response.http.headers.config", "rest.advertised.host.name",
    "rest.advertised.listener", "rest.advertised.port", "rest.extension.classes",
    "retry.backoff.max.ms", "retry.backoff.ms", "scheduled.rebalance.max.delay.ms",
    "send.buffer.bytes", "session.timeout.ms", "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms", "ssl.client.auth", "status.storage.partitions",
    "status.storage.replication.factor", "status.storage.topic",
    "task.shutdown.graceful.timeout.ms", "topic.creation.enable", "topic.tracking.allow.reset",
    "topic.tracking.enable", "value.converter", "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
))  # fmt: skip
# What the Connect worker below the connectors knows.
WORKER = {
    "3.9": _WORKER | {"auto.include.jmx.reporter"},
    "4.3": _WORKER | {
        "header.converter.plugin.version", "key.converter.plugin.version",
        "metadata.recovery.rebootstrap.trigger.ms", "value.converter.plugin.version",
    },
}  # fmt: skip
# Worker properties that MirrorMaker 2 reads without any prefix: the nodes' own REST server, ...
REST = frozenset((
    "access.control.allow.methods", "access.control.allow.origin", "listeners",
    "response.http.headers.config", "rest.advertised.host.name", "rest.advertised.listener",
    "rest.advertised.port", "ssl.client.auth",
))  # fmt: skip
REST_TLS = "listeners.https."
# ... where plug-ins are looked for, once by the process and once by every worker ...
PLUGINS = ("plugin.discovery", "plugin.path")
# ... and what source, checkpoints and workers have to agree on.
AGREED = frozenset((
    "replication.policy.internal.topic.separator.enabled", "replication.policy.separator"
))  # fmt: skip

POLICIES = {
    "prefix": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "identity": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
}
# What a topic name can hold between an alias and a name.
SEPARATOR = re.compile(r"[._-]+")
# Topics no flow mirrors: MirrorMaker 2's own, Streams' and Kafka's.
TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", "__.*")

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
# Tuned at unchanged guarantees: idempotence with five requests in flight keeps the order.
SOURCE_CONSUMER_DEFAULTS: dict[str, Any] = {
    "fetch.max.wait.ms": 100,
    "fetch.min.bytes": 65536,
    "max.poll.records": 4000,
    "metadata.max.age.ms": 60000,
    "receive.buffer.bytes": 1048576,
}
WORKER_PRODUCER_DEFAULTS = PRODUCER_DEFAULTS

FLOW_FACTORS = (
    "replication.factor", "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor", "offset-syncs.topic.replication.factor",
)  # fmt: skip
WORKER_FACTORS = (
    "config.storage.replication.factor", "offset.storage.replication.factor",
    "status.storage.replication.factor",
)  # fmt: skip
MOST_REPLICAS = 3

# Names of older releases, and names that never were one: where their meaning lives now.
REMOVED_FLOW_KEYS = {
    "topics.blacklist": "list the topics in mirror_flows[].topics_exclude",
    "topics.whitelist": "list the topics in mirror_flows[].topics",
    "groups.blacklist": "set groups.exclude",
    "groups.whitelist": "list the groups in mirror_flows[].consumer_groups",
    "config.properties.blacklist": "set config.properties.exclude",
    "rename.topics": "set mirror_flows[].replication_policy",
    "emit.heartbeats": "set emit.heartbeats.enabled",
    "emit.checkpoints": "list the groups in mirror_flows[].consumer_groups",
    "emit.checkpoint.enabled": "list the groups in mirror_flows[].consumer_groups",
    "emit.heartbeat.enabled": "set emit.heartbeats.enabled",
    "emit.heartbeat.interval.seconds": "set emit.heartbeats.interval.seconds",
    "sync.topic.offsets": "list the groups in mirror_flows[].consumer_groups",
    "whitelist": "list the topics in mirror_flows[].topics",
    "blacklist": "list the topics in mirror_flows[].topics_exclude",
    "include": "list the topics in mirror_flows[].topics",
    "num.streams": "set mirror_flows[].tasks_max",
    "abort.on.send.failure": "remove it; a task that cannot write a record fails",
    "offset.commit.interval.ms": "set offset.flush.interval.ms in worker_properties",
    "message.handler": "set transforms",
}
REMOVED_WORKER_KEYS = {
    "internal.key.converter": "remove it; the workers' own topics are always JSON",
    "internal.value.converter": "remove it; the workers' own topics are always JSON",
    "rest.host.name": "set listeners",
    "rest.port": "set listeners",
    "offset.storage.file.filename": "remove it; positions are kept in Kafka",
    "offset.commit.interval.ms": "set offset.flush.interval.ms",
    "num.streams": "set mirror_flows[].tasks_max",
}
# Read by 3.9, gone from 4.0 on.
REMOVED_IN_4 = {
    "add.source.alias.to.metrics": "remove it; metrics always carry the source's alias",
    "use.incremental.alter.configs": "remove it; topics are always altered incrementally",
    "auto.include.jmx.reporter": "list org.apache.kafka.common.metrics.JmxReporter in "
    "metric.reporters",
    "internal.leave.group.on.close": "remove it; no setting replaces it",
}
_CONVERTERS = {
    f"{part}.converter{more}": "remove it; MirrorMaker 2 copies bytes"
    for part in ("key", "value", "header")
    for more in ("", ".plugin.version")
}
# What the model writes itself: a second word for it could only contradict.
OWNED_FLOW_KEYS = {
    "topics": "set mirror_flows[].topics",
    "topics.exclude": "set mirror_flows[].topics_exclude",
    "groups": "set mirror_flows[].consumer_groups",
    "tasks.max": "set mirror_flows[].tasks_max",
    "emit.checkpoints.enabled": "set mirror_flows[].consumer_groups",
    "sync.group.offsets.enabled": "set mirror_flows[].consumer_groups",
    "replication.policy.class": "set mirror_flows[].replication_policy",
    "replication.policy.separator": "set it in worker_properties of the instance, for all its "
    "flows",
    "replication.policy.internal.topic.separator.enabled": "set it in worker_properties of the "
    "instance, for all its flows",
    "offset-syncs.topic.location": "remove it; offset syncs are kept on the target, so that "
    "nothing is written to the source",
    "enabled": "remove it; a flow that an instance lists is enabled",
    "name": "remove it; the flow has a name",
    "connector.class": "remove it",
    "source.cluster.alias": "set mirror_flows[].source",
    "target.cluster.alias": "set mirror_flows[].target",
    **_CONVERTERS,
    "connector.plugin.version": "set kafka_version of the instance",
    "consumer.auto.offset.reset": "set mirror_flows[].start",
    "config.providers": "remove it; the role uses the provider for its credentials",
}
OWNED_WORKER_KEYS = {
    "bootstrap.servers": "set kafka_clusters.<alias>.bootstrap_servers",
    "group.id": "remove it; the workers of a flow are the group <source>-mm2",
    "client.id": "remove it; clients are named after the flow",
    "config.storage.topic": "remove it; it is named after the source",
    "offset.storage.topic": "remove it; it is named after the source",
    "status.storage.topic": "remove it; it is named after the source",
    **_CONVERTERS,
    "config.providers": "remove it; the role uses the provider for its credentials",
    "clusters": "remove it; they follow from the flows",
    "dedicated.mode.enable.internal.rest": "remove it; it follows from hosts of the instance",
    "replication.policy.class": "set mirror_flows[].replication_policy",
    "admin.listeners": "remove it; dedicated workers have no such server",
    "rest.extension.classes": "remove it; dedicated workers have no such server",
}


OWNED_CLIENT_KEYS = {
    "bootstrap.servers": "set kafka_clusters.<alias>.bootstrap_servers",
    "group.id": "remove it; MirrorMaker 2 keeps positions itself",
    "enable.auto.commit": "remove it; MirrorMaker 2 keeps positions itself",
    "client.id": "remove it; clients are named after the flow",
    "config.providers": "remove it; the role uses the provider for its credentials",
    "key.serializer": "remove it; MirrorMaker 2 copies bytes",
    "value.serializer": "remove it; MirrorMaker 2 copies bytes",
    "key.deserializer": "remove it; MirrorMaker 2 copies bytes",
    "value.deserializer": "remove it; MirrorMaker 2 copies bytes",
}
# Client keys of a flow that stand in the wrong place.
CLIENT_KEYS = {
    "producer.": "tunes the offset syncs alone; write producer.override.{0}, or producer.{0} in "
    "worker_properties of the instance",
    "source.consumer.": "write consumer.{0}",
    "source.producer.": "nothing is written to the source; remove it",
    "source.admin.": "set {0} in properties of the source in kafka_clusters",
    "target.consumer.": "write consumer.{0} in worker_properties of the instance",
    "target.producer.": "write producer.{0} in worker_properties of the instance",
    "target.admin.": "write admin.{0} in worker_properties of the instance",
    "admin.": "set {0} in properties of the clusters in kafka_clusters",
}
# Begin settings of classes that change records on their way.
CONNECTOR_PLUGINS = ("transforms", "predicates")


def connector_keys(line: str) -> frozenset[str]:
    """Connector keys a user may write in ``mirror_flows[].properties``."""
    known: frozenset[str] = CONNECTOR[line]
    return known - set(OWNED_FLOW_KEYS) - set(REMOVED_FLOW_KEYS)


def worker_keys(line: str) -> frozenset[str]:
    """Worker keys a user may write in ``worker_properties``."""
    known: frozenset[str] = WORKER[line]
    return (known | REST | AGREED) - set(OWNED_WORKER_KEYS)
