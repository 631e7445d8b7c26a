"""Which keys of MirrorMaker 2 a user may write, and what to do instead of the others."""

from collections.abc import Mapping

from .names import CONNECTOR

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
CONVERTERS = {
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
    "offset-syncs.topic.location": "remove it; offset syncs are kept on the target, so that "
    "nothing is written to the source",
    "enabled": "remove it; a flow that an instance lists is enabled",
    "name": "remove it; the flow has a name",
    "connector.class": "remove it",
    "source.cluster.alias": "set mirror_flows[].source",
    "target.cluster.alias": "set mirror_flows[].target",
    **CONVERTERS,
    "connector.plugin.version": "set kafka_version of the instance",
    "consumer.auto.offset.reset": "set mirror_flows[].start",
    "config.providers": "remove it; the role uses the provider for its credentials",
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


def connector_keys(line: str, owned: Mapping[str, str] = OWNED_FLOW_KEYS) -> frozenset[str]:
    """Connector keys a user may write in ``mirror_flows[].properties``.

    :param owned: what the model writes for an engine.
    """
    return CONNECTOR[line] - set(owned) - set(REMOVED_FLOW_KEYS)
