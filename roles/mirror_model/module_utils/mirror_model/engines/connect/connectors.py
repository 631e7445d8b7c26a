"""The connectors of flows, as Connect's REST interface takes them: names to values."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ... import kafka_names
from ...clusters import cluster_of, connection_properties
from ...connectors import names, properties, settings
from ...keys import Clusters, Flow, layered, within
from ...owners import Owner
from . import cluster

CLASSES = {
    kind: f"org.apache.kafka.connect.mirror.Mirror{kind.title()}Connector"
    for kind in ("source", "checkpoint", "heartbeat")
}
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
# Which flow of an inventory a connector belongs to; Connect keeps what it does not know.
MARK = "kafka.mirror.flow"


def name_of(flow: Flow, kind: str) -> str:
    """What a connector of a flow is called."""
    return str(flow["connectors"].get(kind) or f"{flow['name']}-{kind}")


def beats(flow: Flow) -> bool:
    """Whether a flow has a heartbeat connector."""
    return settings.is_on(flow, "emit.heartbeats.enabled")


def kinds(flow: Flow) -> list[str]:
    """The connectors of a flow."""
    return [
        "source",
        *(["checkpoint"] if flow["consumer_groups"] else []),
        *(["heartbeat"] if beats(flow) else []),
    ]


def connectors(
    clusters: Clusters,
    flows: Sequence[Flow],
    owner: Owner,
    brokers: Mapping[str, int],
    typed: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Every connector that a Connect cluster has to run.

    :param clusters: ``kafka_clusters``.
    :param flows: filled in; those of other Connect clusters are passed over.
    :param brokers: alias to how many brokers a cluster has, as far as that is known.
    :param typed: aliases of which somebody typed that.
    :returns: ``name``, ``flow``, ``kind``, ``config`` (Kafka's name to value, secrets as
        references) and ``kept`` of each: keys that follow from the number of brokers when it was
        created, and stay unless somebody types another one.
    """
    return [
        {
            "name": name_of(flow, kind),
            "flow": flow["name"],
            "kind": kind,
            "kept": [
                key
                for key in settings.FLOW_FACTORS
                if flow["properties"].get(key) is None and _ends(flow, kind)[1] not in typed
            ],
            "config": dict(sorted(_config(clusters, flow, owner, kind, brokers).items())),
        }
        for flow in flows
        if flow["name"] in owner.flows
        for kind in kinds(flow)
    ]


def _config(
    clusters: Clusters, flow: Flow, owner: Owner, kind: str, brokers: Mapping[str, int]
) -> dict[str, Any]:
    source, target = _ends(flow, kind)
    factor = min(settings.MOST_REPLICAS, brokers.get(target, settings.MOST_REPLICAS))
    line = kafka_names.line_of(cluster.version(owner))
    foreign = frozenset().union(*(keys for other, keys in names.OF_KIND.items() if other != kind))
    if kind == "heartbeat":
        foreign |= names.OF_BOTH
    own = {
        key: value
        for key, value in properties.connector(flow, owner, line, factor).items()
        if key not in foreign and not key.startswith("producer.override.")
    }
    made: dict[str, Any] = {
        **own,
        MARK: flow["name"],
        "name": name_of(flow, kind),
        "connector.class": CLASSES[kind],
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "replication.policy.class": settings.POLICIES[flow["replication_policy"]],
        **{f"{part}.converter": CONVERTER for part in ("key", "value", "header")},
        **_cluster(clusters, source, owner, "source", line),
        **_cluster(clusters, target, owner, "target", line),
    }
    if kind == "heartbeat":
        made |= {"tasks.max": 1}
    if kind == "source":
        consumer = properties.consumer(clusters, flow, owner, line)
        made |= {f"consumer.{key}": value for key, value in consumer.items()}
    if kind != "checkpoint":
        overridden = {"source": _tuned, "heartbeat": _elsewhere}[kind](clusters, flow, owner, line)
        made |= {f"producer.override.{key}": value for key, value in overridden.items()}
    return made


def _ends(flow: Flow, kind: str) -> tuple[str, str]:
    """Source and target of a connector.

    A heartbeat is written where the records come from, so that it goes their whole way; by name it
    is one of the way back.
    """
    if kind == "heartbeat":
        return flow["target"], flow["source"]
    return flow["source"], flow["target"]


def _cluster(clusters: Clusters, alias: str, owner: Owner, side: str, line: str) -> dict[str, Any]:
    """Connection, security and further clients of one side."""
    reached = connection(clusters, alias, owner, line)
    of_cluster = cluster_of(clusters, alias)["properties"]
    made = {f"{side}.cluster.{key}": value for key, value in reached.items()}
    for client in kafka_names.CLIENTS if side == "target" else ("admin",):
        of_client = layered(kafka_names.of_client(of_cluster, client, line))
        made |= {f"{side}.{client}.{key}": value for key, value in of_client.items()}
    return made


def connection(clusters: Clusters, alias: str, owner: Owner, line: str) -> dict[str, Any]:
    """How the mirror reaches a cluster."""
    own = cluster_of(clusters, alias)["properties"]
    return layered(
        connection_properties(clusters, alias, owner.identity, cluster.refer(owner)),
        {key: value for key, value in own.items() if key in kafka_names.SECURITY[line]},
    )


def _tuned(clusters: Clusters, flow: Flow, owner: Owner, line: str) -> dict[str, Any]:
    """What the source connector overrides of its worker's producer.

    Workers of our own have the tuned properties already; those of an existing cluster are given
    them, as far as it lets connectors do so.
    """
    own = within(flow["properties"], "producer.override.")
    if owner.hosts:
        return layered(own)
    allowed = owner.settings["overrides"]
    whole = layered(
        properties.tuned_producer(owner, flow["target"]),
        kafka_names.of_client(cluster_of(clusters, flow["target"])["properties"], "producer", line),
        own,
    )
    return {key: value for key, value in whole.items() if allowed is None or key in allowed}


def _elsewhere(clusters: Clusters, flow: Flow, owner: Owner, line: str) -> dict[str, Any]:
    """What the heartbeat connector overrides: its producer writes to the source."""
    return connection(clusters, flow["source"], owner, line)


def allowlist(clusters: Clusters, flows: Sequence[Flow], owner: Owner) -> list[str]:
    """What workers have to let the connectors of flows override."""
    line = kafka_names.line_of(cluster.version(owner))
    made = (
        key
        for flow in flows
        for key in (
            *layered(within(flow["properties"], "producer.override.")),
            *(_elsewhere(clusters, flow, owner, line) if beats(flow) else ()),
        )
    )
    return sorted(set(made))
