"""Properties of a flow's connectors and of the clients that copy its records."""

from collections.abc import Sequence
from typing import Any

from .. import kafka_names, regex, tuned
from ..clusters import cluster_of
from ..control import excluded
from ..keys import Clusters, Flow, Properties, layered, within
from ..owners import Owner
from . import settable, settings, topics

LEAST_TASKS = 2


def _of_connector(flow: Flow, line: str) -> dict[str, Any]:
    """Properties of a flow but its consumer's; a key of a connector may look like one of those."""
    return {
        key: value
        for key, value in flow["properties"].items()
        if key in settable.connector_keys(line) or not key.startswith("consumer.")
    }


def consumer(clusters: Clusters, flow: Flow, owner: Owner, line: str) -> dict[str, Any]:
    """The properties of the consumer that reads the source of a flow, beside its connection."""
    of_connector = _of_connector(flow, line)
    of_consumer = {k: v for k, v in flow["properties"].items() if k not in of_connector}
    cluster = cluster_of(clusters, flow["source"])["properties"]
    return layered(
        tuned.consumer(tuned.distance(owner.settings, flow["source"])),
        {"auto.offset.reset": flow["start"]},
        kafka_names.of_client(cluster, "consumer", line),
        within(of_consumer, "consumer."),
    )


def tuned_producer(owner: Owner, target: str) -> dict[str, Any]:
    """The derived properties of each task's producer."""
    return tuned.producer(tuned.distance(owner.settings, target), LEAST_TASKS)


def worker_client(
    clusters: Clusters, alias: str, owner: Owner, client: str, security: Properties | None = None
) -> dict[str, Any]:
    """The properties of one of the clients of workers.

    :param alias: the workers' cluster.
    :param client: ``consumer``, ``producer`` or ``admin``.
    :param security: properties of its connection, unless they stand elsewhere.
    """
    line = kafka_names.line_of(owner.version(settings.KAFKA_VERSION))
    return layered(
        tuned_producer(owner, alias) if client == "producer" else {},
        kafka_names.of_client(cluster_of(clusters, alias)["properties"], client, line),
        security or {},
        within(owner.settings["worker_properties"], f"{client}."),
    )


def tasks(flow: Flow, owner: Owner) -> int:
    """Tasks of a flow's connectors, on all hosts together; two at least share the partitions."""
    readers = tuned.readers(tuned.distance(owner.settings, flow["source"]))
    typed: int | None = flow["tasks_max"]
    return typed or max(LEAST_TASKS, len(owner.hosts) * readers)


def connector(flow: Flow, owner: Owner, line: str, factor: int) -> dict[str, Any]:
    """The keys of a flow's connectors, beside aliases, connections and policy.

    :param line: the release line that reads them.
    :param factor: replication factor of what they create.
    """
    groups = [regex.as_regex(group) for group in flow["consumer_groups"]]
    merged = layered(
        {
            key: value
            for key, value in settings.flow_defaults(flow).items()
            if key in settable.connector_keys(line)
        },
        dict.fromkeys(settings.FLOW_FACTORS, factor),
        {
            "topics": [regex.as_regex(topic) for topic in flow["topics"]],
            "topics.exclude": [
                *topics.TOPICS_EXCLUDE,
                *map(regex.as_regex, excluded(flow)),
            ],
            "tasks.max": tasks(flow, owner),
            "offset-syncs.topic.location": "target",
            "emit.checkpoints.enabled": bool(groups),
            "sync.group.offsets.enabled": bool(groups),
            "groups": groups or None,
        },
        _of_connector(flow, line),
    )
    if flow["groups_left_out"]:
        merged["groups.exclude"] = settings.groups_exclude(flow)
    if str(merged.get("emit.offset-syncs.enabled", True)).lower() == "false":
        # Kafka refuses to start when more is said about a topic that is not to be written.
        merged = {k: v for k, v in merged.items() if not k.startswith("offset-syncs.")}
    return merged


def memory(clusters: Clusters, flows: Sequence[Flow], owner: Owner) -> float:
    """The heap in mebibytes that the clients may take: each task has a consumer and a producer.

    Connect keeps the record that it read until its copy is acknowledged, beside the producer's own.
    """
    line = kafka_names.line_of(owner.version(settings.KAFKA_VERSION))
    hosts = max(1, len(owner.hosts))
    written = worker_client(clusters, flows[0]["target"], owner, "producer")
    taken = 0.0
    for flow in flows:
        own = layered(written, within(flow["properties"], "producer.override."))
        read = consumer(clusters, flow, owner, line)
        of_host = -(-tasks(flow, owner) // hosts)
        taken += of_host * (tuned.fetched_mib(read) + settings.HELD * tuned.buffered_mib(own))
    return settings.BASE_MIB + taken
