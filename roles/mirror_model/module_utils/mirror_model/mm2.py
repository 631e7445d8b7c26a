"""MirrorMaker 2, dedicated: one properties file in which every key stands where it is read.

Prefixes, as ``MirrorMakerConfig`` of Kafka 3.9 and 4.3 reads them: a cluster's connection and
security stand under ``<alias>.``, its clients under ``<alias>.consumer.`` and the like, the Connect
workers of all flows under ``<target>.``, a flow under ``<source>-><target>.``. Without a prefix
count only the clusters, config providers, replication policy, plug-ins and the nodes' REST server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import kafka_names, regex
from .advisories import line_of
from .clusters import client_properties, credentials_directory
from .filled import cluster_of, kafka_version_of, layered
from .mm2_names import (
    AGREED,
    FLOW_DEFAULTS,
    FLOW_FACTORS,
    MOST_REPLICAS,
    PLUGINS,
    POLICIES,
    REST,
    REST_TLS,
    SOURCE_CONSUMER_DEFAULTS,
    TOPICS_EXCLUDE,
    WORKER_DEFAULTS,
    WORKER_FACTORS,
    WORKER_PRODUCER_DEFAULTS,
    connector_keys,
)
from .schema import CONFIGURATION

CLIENTS = {
    "consumer": kafka_names.CONSUMER,
    "producer": kafka_names.PRODUCER,
    "admin": kafka_names.ADMIN,
}
PORT = 8083


def separator_of(instance: Mapping[str, Any]) -> str:
    """What stands between an alias and a topic's name."""
    return str(instance["worker_properties"].get("replication.policy.separator") or ".")


def internal_separator_of(instance: Mapping[str, Any]) -> str:
    """The same within the names of MirrorMaker 2's own topics."""
    key = "replication.policy.internal.topic.separator.enabled"
    enabled = str(instance["worker_properties"].get(key, True)).lower() != "false"
    return separator_of(instance) if enabled else "."


def worker_group(flow: Mapping[str, Any]) -> str:
    """The group by which a flow's workers find each other, on the target."""
    return f"{flow['source']}-mm2"


def internal_topics(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> dict[str, str]:
    """Names of the topics on the target in which a flow keeps what it has to remember.

    :param flow: the flow, filled in.
    :param instance: its instance, filled in.
    :returns: ``offset_topic``, ``status_topic`` and ``config_topic`` of the workers, whose names
        know no separator, ``offset_syncs_topic`` and ``checkpoints_topic``.
    """
    source, between = flow["source"], internal_separator_of(instance)
    return {
        "offset_topic": f"mm2-offsets.{source}.internal",
        "status_topic": f"mm2-status.{source}.internal",
        "config_topic": f"mm2-configs.{source}.internal",
        "offset_syncs_topic": f"mm2-offset-syncs{between}{source}{between}internal",
        "checkpoints_topic": f"{source}{between}checkpoints{between}internal",
    }


def unmirrored(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> list[str]:
    """Patterns of topics that MirrorMaker 2 leaves out by itself, whatever a flow asks for.

    Kafka's and its own internal topics, and what came from the target: a name one of whose parts
    is the target's alias (``MirrorSourceConnector.shouldReplicateTopic``).
    """
    between = internal_separator_of(instance).replace(".", r"\.")
    patterns = [
        *TOPICS_EXCLUDE, r"\..*", f"mm2.*{between}internal",
        f".*{between}checkpoints{between}internal",
    ]  # fmt: skip
    if line_of(kafka_version_of(instance, "mm2")) == "3.9":
        patterns += [r".*(\.|-)internal", f".*{between}internal"]
    if flow["replication_policy"] == "prefix":
        outer = separator_of(instance).replace(".", r"\.")
        patterns.append(f"(.*{outer})?{flow['target']}{outer}.+")
    return list(dict.fromkeys(patterns))


def worker_value(instance: Mapping[str, Any], key: str) -> Any:
    """A worker property as it takes effect, ``None`` if Kafka's default does."""
    return layered(WORKER_DEFAULTS, instance["worker_properties"]).get(key)


def own_factors(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> dict[str, Any]:
    """The replication factors that the inventory sets itself."""
    chosen = {
        **{key: flow["properties"].get(key) for key in FLOW_FACTORS},
        **{key: instance["worker_properties"].get(key) for key in WORKER_FACTORS},
    }
    return {key: value for key, value in chosen.items() if value is not None}


def of_client(properties: Mapping[str, Any], client: str, line: str) -> dict[str, Any]:
    """What of a cluster's properties one of its clients knows; a plug-in's own go to all."""
    everything = frozenset().union(*(names[one] for names in CLIENTS.values() for one in names))
    return {
        key: value
        for key, value in properties.items()
        if key not in kafka_names.SECURITY[line]
        and (key in CLIENTS[client][line] or key not in everything)
    }


def _within(properties: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}


def _under(prefix: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{key}": value for key, value in properties.items()}


def is_unprefixed(key: str) -> bool:
    """Whether a worker property is read without any prefix."""
    return key in REST or key in AGREED or key.startswith(REST_TLS)


def _connection(
    clusters: Mapping[str, Any], alias: str, name: str, line: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Config providers for the file, and connection and security of one cluster."""
    connection = client_properties(clusters, alias, "mirror", credentials_directory(name))
    providers = {k: v for k, v in connection.items() if k.startswith("config.providers")}
    own = cluster_of(clusters, alias)["properties"]
    security = {k: v for k, v in own.items() if k in kafka_names.SECURITY[line]}
    return providers, layered(
        {k: v for k, v in connection.items() if k not in providers}, security
    )  # fmt: skip


def _flow(
    clusters: Mapping[str, Any],
    flow: Mapping[str, Any],
    line: str,
    factor: int,
) -> dict[str, Any]:
    """The keys of one flow: its connectors and the consumer that reads its source."""
    source, target = flow["source"], flow["target"]
    # Some keys of a connector look like a client's: consumer.poll.timeout.ms.
    of_connector = {
        key: value
        for key, value in flow["properties"].items()
        if key in connector_keys(line) or not key.startswith("consumer.")
    }
    of_consumer = {k: v for k, v in flow["properties"].items() if k not in of_connector}
    groups = [regex.as_regex(group) for group in flow["consumer_groups"]]
    connector = layered(
        {key: value for key, value in FLOW_DEFAULTS.items() if key in connector_keys(line)},
        dict.fromkeys(FLOW_FACTORS, factor),
        {
            "enabled": True,
            "topics": [regex.as_regex(topic) for topic in flow["topics"]],
            "topics.exclude": [*TOPICS_EXCLUDE, *map(regex.as_regex, flow["topics_exclude"])],
            "tasks.max": flow["tasks_max"],
            "offset-syncs.topic.location": "target",
            "emit.checkpoints.enabled": bool(groups),
            "sync.group.offsets.enabled": bool(groups),
            "groups": groups or None,
        },
        of_connector,
    )
    if str(connector.get("emit.offset-syncs.enabled", True)).lower() == "false":
        # Kafka refuses to start when more is said about a topic that is not to be written.
        connector = {k: v for k, v in connector.items() if not k.startswith("offset-syncs.")}
    consumer = layered(
        SOURCE_CONSUMER_DEFAULTS,
        {"auto.offset.reset": flow["start"]},
        of_client(cluster_of(clusters, source)["properties"], "consumer", line),
        _within(of_consumer, "consumer."),
    )
    admin = layered(of_client(cluster_of(clusters, source)["properties"], "admin", line))
    return (
        _under(f"{source}->{target}", connector)
        | _under(f"{source}.consumer", consumer)
        | _under(f"{source}.admin", admin)
        | {
            f"{target}->{source}.enabled": False,
            f"{target}->{source}.emit.heartbeats.enabled": False,
        }
    )


def _worker(
    clusters: Mapping[str, Any], target: str, own: Mapping[str, Any], line: str, factor: int
) -> dict[str, Any]:
    """The keys of the Connect workers, which live on the target, and of their clients."""
    cluster = cluster_of(clusters, target)["properties"]
    tuned = {"producer": WORKER_PRODUCER_DEFAULTS}
    clients = {
        client: layered(
            tuned.get(client, {}), of_client(cluster, client, line), _within(own, f"{client}.")
        )
        for client in CLIENTS
    }
    worker = layered(
        WORKER_DEFAULTS,
        dict.fromkeys(WORKER_FACTORS, factor),
        {
            key: value
            for key, value in own.items()
            if not is_unprefixed(key) and not key.startswith(tuple(f"{one}." for one in CLIENTS))
        },
    )
    rendered = _under(target, worker)
    for client, properties in clients.items():
        rendered |= _under(f"{target}.{client}", properties)
    return rendered


def _nodes(
    instance: Mapping[str, Any], own: Mapping[str, Any], address: str | None
) -> dict[str, Any]:
    """The server by which several nodes of one instance hand work to each other."""
    if len(instance["hosts"]) < 2:
        return {}
    derived: dict[str, Any] = {"dedicated.mode.enable.internal.rest": True}
    if address:
        host = f"[{address}]" if ":" in address else address
        derived |= {
            "listeners": f"http://{host}:{PORT}",
            "rest.advertised.host.name": address,
        }
    return layered(derived, {k: v for k, v in own.items() if k in REST or k.startswith(REST_TLS)})


def mm2_properties(
    clusters: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    instance: Mapping[str, Any],
    name: str,
    node: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole ``mm2.properties`` of one node.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``mirror_flows[].properties``, the instance's ``worker_properties``.

    :param clusters: ``kafka_clusters``.
    :param flows: the instance's flows, filled in, all into one target.
    :param instance: the instance, filled in.
    :param name: the instance's name.
    :param node: ``address`` of this host, ``brokers`` of the target; each may be missing.
    :returns: property name to value; secrets as references.
    """
    node = node or {}
    line = line_of(kafka_version_of(instance, "mm2"))
    factor = min(MOST_REPLICAS, node.get("brokers") or MOST_REPLICAS)
    own, target = instance["worker_properties"], flows[0]["target"]
    aliases = list(dict.fromkeys([*(flow["source"] for flow in flows), target]))
    rendered: dict[str, Any] = {
        "clusters": aliases,
        "emit.heartbeats.enabled": False,
        "replication.policy.class": POLICIES[flows[0]["replication_policy"]],
        **layered({k: v for k, v in own.items() if k in AGREED}),
        **layered({key: worker_value(instance, key) for key in PLUGINS}),
        **_nodes(instance, own, node.get("address")),
    }
    for alias in aliases:
        providers, connection = _connection(clusters, alias, name, line)
        rendered |= providers | _under(alias, connection)
    rendered |= _worker(clusters, target, own, line, factor)
    for flow in flows:
        rendered |= _flow(clusters, flow, line, factor)
    return rendered


def mm2_process(
    clusters: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    instance: Mapping[str, Any],
    name: str,
    node: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What a MirrorMaker 2 process is started with.

    :param clusters: ``kafka_clusters``.
    :param flows: the instance's flows, filled in, all into one target.
    :param instance: the instance, filled in.
    :param name: the instance's name.
    :param node: ``address`` of this host, ``brokers`` of the target.
    :returns: script, arguments, environment, files, identity and positions as ``instances``
        describes them.
    """
    target = flows[0]["target"]
    topics = [internal_topics(flow, instance)["offset_topic"] for flow in flows]
    return {
        "script": "connect-mirror-maker.sh",
        "arguments": ["${MM_CONFIG}", "--clusters ${MM_CLUSTERS}"],
        "environment": {
            "MM_CONFIG": f"{CONFIGURATION}/{name}/mm2.properties",
            "MM_CLUSTERS": target,
        },
        "files": {"mm2.properties": mm2_properties(clusters, flows, instance, name, node)},
        "identity": {
            "engine": "mm2",
            "flows": [flow["name"] for flow in flows],
            "sources": [flow["source"] for flow in flows],
            "target": target,
            "policy": flows[0]["replication_policy"],
            "separator": separator_of(instance),
        },
        "positions": f"{'topic' if len(topics) == 1 else 'topics'} {' and '.join(topics)} "
        f"on {target}",
    }
