"""Which client properties are refused: obsolete, written by the model, secret, or mistyped."""

import difflib
from collections.abc import Mapping

from .kafka_names import SECRET_KEYS
from .keys import Properties
from .validation import Validation

# Names of older releases and where their meaning lives now.
REMOVED_OPTIONS = {
    "whitelist": "list the topics in mirror_flows[].topics",
    "include": "list the topics in mirror_flows[].topics",
    "blacklist": "list the topics in mirror_flows[].topics_exclude",
    "exclude": "list the topics in mirror_flows[].topics_exclude",
    "num.producers": "remove it; one producer serves all streams",
    "num.consumers": "set num_streams of the instance",
    "num.streams": "set num_streams of the instance",
    "queue.size": "remove it; set buffer.memory in producer_properties",
    "queue.byte.size": "remove it; set buffer.memory in producer_properties",
    "abortOnSendFail": "set mm1_options abort.on.send.failure",
    "new.consumer": "remove it; there is only one consumer since Kafka 2.0",
    "mirror.topics.whitelist": "list the topics in mirror_flows[].topics",
    "mirror.topics.blacklist": "list the topics in mirror_flows[].topics_exclude",
    "consumer.config": "set consumer_properties of the instance",
    "producer.config": "set producer_properties of the instance",
}
LEGACY_KEYS = {
    "groupid": "set mirror_flows[].group_id",
    "auto.commit.enabled": "remove it; positions are committed after each flush",
    "auto.commit.enable": "remove it; positions are committed after each flush",
    "autocommit.enable": "remove it; positions are committed after each flush",
    "autooffset.reset": "set mirror_flows[].start",
    "zookeeper.connect": "set kafka_clusters.<alias>.bootstrap_servers",
    "zk.connect": "set kafka_clusters.<alias>.bootstrap_servers",
    "zookeeper.session.timeout.ms": "set session.timeout.ms",
    "zookeeper.connection.timeout.ms": "remove it",
    "zk.sessiontimeout.ms": "set session.timeout.ms",
    "metadata.broker.list": "set kafka_clusters.<alias>.bootstrap_servers",
    "broker.list": "set kafka_clusters.<alias>.bootstrap_servers",
    "consumer.id": "remove it",
    "consumer.timeout.ms": "remove it",
    "fetch.size": "set fetch.max.bytes or max.partition.fetch.bytes",
    "fetch.message.max.bytes": "set max.partition.fetch.bytes",
    "fetch.wait.max.ms": "set fetch.max.wait.ms",
    "offsets.storage": "remove it; positions are kept in Kafka",
    "dual.commit.enabled": "remove it; positions are kept in Kafka",
    "shallow.iterator.enable": "remove it",
    "socket.receive.buffer.bytes": "set receive.buffer.bytes",
    "socket.buffersize": "set receive.buffer.bytes",
    "rebalance.max.retries": "remove it; brokers coordinate the group",
    "rebalance.backoff.ms": "remove it; brokers coordinate the group",
    "request.required.acks": "set acks",
    "request.timeout": "set request.timeout.ms",
    "serializer.class": "remove it; MirrorMaker 1 copies bytes",
    "key.serializer.class": "remove it; MirrorMaker 1 copies bytes",
    "compression.codec": "set compression.type",
    "compressed.topics": "remove it; set compression.type",
    "message.send.max.retries": "set delivery.timeout.ms",
    "queue.buffering.max.ms": "set linger.ms",
    "queue.buffering.max.messages": "set buffer.memory",
    "queue.enqueue.timeout.ms": "set max.block.ms",
    "queue.time": "set linger.ms",
    "batch.num.messages": "set batch.size, in bytes",
    "block.on.buffer.full": "set max.block.ms",
    "timeout.ms": "set request.timeout.ms",
    "metadata.fetch.timeout.ms": "set max.block.ms",
    "send.buffer.size": "set send.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "set metadata.max.age.ms",
    "max.message.size": "set max.request.size",
}
# What the model writes itself: a second word for it could only contradict.
OWNED_KEYS = {
    "bootstrap.servers": "set kafka_clusters.<alias>.bootstrap_servers",
    "security.protocol": "set kafka_clusters.<alias>.security_protocol",
    "sasl.mechanism": "set kafka_clusters.<alias>.identities.mirror.sasl_mechanism",
    "sasl.jaas.config": "set kafka_clusters.<alias>.identities.mirror; the value becomes a file "
    "that only the service can read",
    "group.id": "set mirror_flows[].group_id",
    "config.providers": "remove it; the role uses the provider for its credentials",
    "key.serializer": "remove it; MirrorMaker 1 copies bytes",
    "value.serializer": "remove it; MirrorMaker 1 copies bytes",
    "key.deserializer": "remove it; MirrorMaker 1 copies bytes",
    "value.deserializer": "remove it; MirrorMaker 1 copies bytes",
    "auto.offset.reset": "set mirror_flows[].start",
    "exclude.internal.topics": "remove it; the brokers' own topics hold what only they may write",
}
CURES = {**REMOVED_OPTIONS, **LEGACY_KEYS}


def validate_names(
    validation: Validation,
    path: str,
    properties: Properties,
    readable: frozenset[str],
    prefix: str = "",
    owned: Mapping[str, str] = OWNED_KEYS,
) -> None:
    """Refuse property names of a client that are obsolete, misplaced or written by the model.

    Names that are merely unknown may belong to a plug-in; those that look mistyped are mentioned.

    :param validation: where problems are noted.
    :param path: the variable that holds the properties.
    :param properties: name to value, the prefix taken off.
    :param readable: names the client knows.
    :param prefix: what stands before the names in the inventory.
    :param owned: names the model writes, and what to do instead.
    """
    for name, value in properties.items():
        where = f"{path}['{prefix}{name}']"
        if name in owned or name.startswith("config.providers."):
            cure = owned.get(name, OWNED_KEYS["config.providers"])
            validation.refuse(f"{where}: is written from the model; {cure}")
        elif name in CURES:
            validation.refuse(f"{where}: is no longer read by any client; {CURES[name]}")
        elif name in SECRET_KEYS and not str(value or "${").startswith("${"):
            validation.refuse(f"{where}: a secret must not stand in clear; {SECRET_KEYS[name]}")
        elif name not in readable and (near := difflib.get_close_matches(name, readable, 1, 0.85)):
            validation.warn(f"{where}: Kafka does not know it; did you mean '{near[0]}'?")
