"""The connectors of flows, as Connect's REST interface takes them: names to text."""

from collections.abc import Mapping, Sequence
from typing import Any

from ... import kafka_names, tuned
from ...clusters import cluster_of, connection_properties
from ...connectors import names, properties, settings
from ...inventory import Owner
from ...keys import Clusters, Flow, Properties, layered, within
from ...render import text_of
from ...tuned import distance
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


def kinds(flow: Flow) -> list[str]:
    """The connectors that a flow has on its own Connect cluster."""
    return ["source", *(["checkpoint"] if flow["consumer_groups"] else [])]


def connectors(
    clusters: Clusters, flows: Sequence[Flow], owner: Owner, brokers: int | None = None
) -> list[dict[str, Any]]:
    """Every connector that a Connect cluster has to run.

    :param clusters: ``kafka_clusters``.
    :param flows: every flow of the engine, filled in; those of other Connect clusters too, whose
        heartbeats may begin here.
    :param brokers: how many brokers the cluster of the workers has, if that is known.
    :returns: ``name``, ``flow``, ``kind``, ``config`` (Kafka's name to text, secrets as
        references) and ``kept`` of each: keys that follow from the number of brokers when it was
        created, and stay.
    """
    factor = min(settings.MOST_REPLICAS, brokers or settings.MOST_REPLICAS)
    wanted = [(flow, kind) for flow in flows if flow["name"] in owner.flows for kind in kinds(flow)]
    # A heartbeat is written where the records come from, so that it goes their whole way.
    wanted += [
        (flow, "heartbeat")
        for flow in flows
        if flow["source"] == owner.settings["kafka"]
        and settings.is_on(flow, "emit.heartbeats.enabled")
    ]
    return [
        {
            "name": name_of(flow, kind),
            "flow": flow["name"],
            "kind": kind,
            "kept": [key for key in settings.FLOW_FACTORS if flow["properties"].get(key) is None],
            "config": {
                key: text_of(key, value)
                for key, value in sorted(_config(clusters, flow, owner, kind, factor).items())
            },
        }
        for flow, kind in wanted
    ]


def _config(clusters: Clusters, flow: Flow, owner: Owner, kind: str, factor: int) -> dict[str, Any]:
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
        **({"tasks.max": 1} if kind == "heartbeat" else {}),
        "source.cluster.alias": flow["source"],
        "target.cluster.alias": flow["target"],
        "replication.policy.class": settings.POLICIES[flow["replication_policy"]],
        **{f"{part}.converter": CONVERTER for part in ("key", "value", "header")},
        **_cluster(clusters, flow, owner, "source", line),
        **_cluster(clusters, flow, owner, "target", line),
    }
    if kind == "source":
        consumer = properties.consumer(clusters, flow, owner, line)
        made |= {f"consumer.{key}": value for key, value in consumer.items()}
        made |= {
            f"producer.override.{key}": value
            for key, value in overridden(clusters, flow, owner, line).items()
        }
    return made


def _cluster(clusters: Clusters, flow: Flow, owner: Owner, side: str, line: str) -> dict[str, Any]:
    """Connection, security and further clients of one side."""
    alias = flow[side]
    of_cluster = cluster_of(clusters, alias)["properties"]
    connection = layered(
        connection_properties(clusters, alias, "mirror", cluster.refer(owner)),
        {k: v for k, v in of_cluster.items() if k in kafka_names.SECURITY[line]},
    )
    made = {f"{side}.cluster.{key}": value for key, value in connection.items()}
    for client in kafka_names.CLIENTS if side == "target" else ("admin",):
        of_client = layered(kafka_names.of_client(of_cluster, client, line))
        made |= {f"{side}.{client}.{key}": value for key, value in of_client.items()}
    return made


def overridden(clusters: Clusters, flow: Flow, owner: Owner, line: str) -> dict[str, Any]:
    """What the source connector overrides of its worker's producer.

    Workers of our own have the tuned properties already; those of an existing cluster are given
    them, as far as it lets connectors do so.
    """
    own = within(flow["properties"], "producer.override.")
    if owner.hosts:
        return layered(own)
    allowed = owner.settings["overrides"]
    whole = layered(
        tuned.producer(distance(owner.settings, flow["target"])),
        kafka_names.of_client(cluster_of(clusters, flow["target"])["properties"], "producer", line),
        own,
    )
    return {key: value for key, value in whole.items() if allowed is None or key in allowed}


def allowlist(flows: Sequence[Flow]) -> list[str]:
    """What workers of our own have to let connectors override."""
    return sorted(
        {key for flow in flows for key in layered(within(flow["properties"], "producer.override."))}
    )


def properties_of_worker(owner: Owner) -> Properties:
    """``worker_properties`` of an owner."""
    found: Mapping[str, Any] = owner.settings["worker_properties"]
    return found
