"""Keys of MirrorMaker 2 in Kafka 3.9 and 4.3.

The sets are the libraries' own, without the security keys that belong to a cluster; tests compare.
"""

from ..kafka_names import REST_TLS

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
# What each of a flow's connectors alone knows; the rest belongs to all of them, and so does what
# their filters and policies know.
OF_KIND = {
    "source": frozenset((
        "add.source.alias.to.metrics", "config.properties.blacklist", "config.properties.exclude",
        "config.property.filter.class", "emit.offset-syncs.enabled",
        "heartbeats.replication.enabled", "offset-syncs.topic.replication.factor",
        "offset.lag.max", "refresh.topics.enabled", "refresh.topics.interval.seconds",
        "replication.factor", "sync.topic.acls.enabled", "sync.topic.acls.interval.seconds",
        "sync.topic.configs.enabled", "sync.topic.configs.interval.seconds",
        "use.incremental.alter.configs",
    )),
    "checkpoint": frozenset((
        "checkpoints.topic.replication.factor", "emit.checkpoints.enabled",
        "emit.checkpoints.interval.seconds", "group.filter.class", "groups", "groups.blacklist",
        "groups.exclude", "refresh.groups.enabled", "refresh.groups.interval.seconds",
        "sync.group.offsets.enabled", "sync.group.offsets.interval.seconds",
    )),
    "heartbeat": frozenset((
        "emit.heartbeats.enabled", "emit.heartbeats.interval.seconds",
        "heartbeats.topic.replication.factor",
    )),
}  # fmt: skip
# What source and checkpoints alone know, and have to agree on.
OF_BOTH = frozenset((
    "consumer.poll.timeout.ms", "metric.names.formats", "offset-syncs.topic.location",
    "topic.filter.class", "topics", "topics.blacklist", "topics.exclude",
))  # fmt: skip
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
# ... where plug-ins are searched, once by the process and once by every worker ...
PLUGINS = ("plugin.discovery", "plugin.path")
# ... and what source, checkpoints and workers have to agree on.
AGREED = frozenset((
    "replication.policy.internal.topic.separator.enabled", "replication.policy.separator"
))  # fmt: skip
# Begin settings of classes that change records on their way.
CONNECTOR_PLUGINS = ("transforms", "predicates")


def is_rest(key: str) -> bool:
    """Whether a worker property is about the nodes' own REST server."""
    return key in REST or key.startswith(REST_TLS)
