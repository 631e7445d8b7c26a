"""MirrorMaker 2, dedicated: one properties file in which every key stands where it is read.

Prefixes, as ``MirrorMakerConfig`` of Kafka 3.9 and 4.3 reads them: a cluster's connection and
security stand under ``<alias>.``, its clients under ``<alias>.consumer.`` and the like, the Connect
workers of all flows under ``<target>.``, a flow under ``<source>-><target>.``. Without a prefix
count only the clusters, config providers, replication policy, plug-ins and the nodes' REST server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import kafka_names
from ...clusters import client_properties, cluster_of
from ...connectors import names, settings
from ...connectors.properties import connector, consumer, worker_client
from ...keys import Clusters, Flow, Properties, layered
from ...layout import Placed
from ...owners import Owner
from ...process import Process
from ...render import in_url
from . import places

PORT = 8083
CLIENTS = tuple(f"{client}." for client in kafka_names.CLIENTS)


def _under(prefix: str, properties: Properties) -> dict[str, Any]:
    return {f"{prefix}.{key}": value for key, value in properties.items()}


def _connection(
    clusters: Clusters, alias: str, owner: Owner, line: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Config providers for the file, and connection and security of one cluster."""
    connection = client_properties(clusters, alias, owner.identity, owner.credentials)
    providers = {k: v for k, v in connection.items() if k.startswith("config.providers")}
    own = cluster_of(clusters, alias)["properties"]
    security = {k: v for k, v in own.items() if k in kafka_names.SECURITY[line]}
    return providers, layered(
        {k: v for k, v in connection.items() if k not in providers}, security
    )  # fmt: skip


def _flow(
    clusters: Clusters,
    flow: Flow,
    owner: Owner,
    line: str,
    factor: int,
) -> dict[str, Any]:
    """The keys of one flow: its connectors and the consumer that reads its source."""
    source, target = flow["source"], flow["target"]
    cluster = cluster_of(clusters, source)["properties"]
    return (
        _under(f"{source}->{target}", {"enabled": True, **connector(flow, owner, line, factor)})
        | _under(f"{source}.consumer", consumer(clusters, flow, owner, line))
        | _under(f"{source}.admin", layered(kafka_names.of_client(cluster, "admin", line)))
        | {
            f"{target}->{source}.enabled": False,
            f"{target}->{source}.emit.heartbeats.enabled": False,
        }
    )


def _worker(clusters: Clusters, target: str, owner: Owner, factor: int) -> dict[str, Any]:
    """The keys of the Connect workers, which live on the target, and of their clients."""
    own = owner.settings["worker_properties"]
    of_worker = {
        key: value
        for key, value in own.items()
        if key not in names.AGREED and not names.is_rest(key) and not key.startswith(CLIENTS)
    }
    rendered = _under(
        target,
        layered(
            settings.WORKER_DEFAULTS, dict.fromkeys(settings.WORKER_FACTORS, factor), of_worker
        ),
    )
    for client in kafka_names.CLIENTS:
        properties = worker_client(clusters, target, owner, client)
        rendered |= _under(f"{target}.{client}", properties)
    return rendered


def _nodes(owner: Owner, own: Properties, address: str | None) -> dict[str, Any]:
    """The server by which several nodes of one owner hand work to each other."""
    if len(owner.hosts) < 2:
        return {}
    derived: dict[str, Any] = {"dedicated.mode.enable.internal.rest": True}
    if address:
        derived |= {
            "listeners": f"http://{in_url(address)}:{PORT}",
            "rest.advertised.host.name": address,
        }
    return layered(derived, {k: v for k, v in own.items() if names.is_rest(k)})


def properties_of(
    clusters: Clusters,
    flows: Sequence[Flow],
    owner: Owner,
    node: Mapping[str, Any],
) -> dict[str, Any]:
    """The whole ``mm2.properties`` of one node.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``mirror_flows[].properties``, the owner's ``worker_properties``.

    :param clusters: ``kafka_clusters``.
    :param flows: the owner's flows, filled in, all into one target.
    :param owner: what runs them.
    :param node: ``address`` of this host, ``brokers`` of the target; each may be missing.
    :returns: property name to value; secrets as references.
    """
    line = kafka_names.line_of(owner.version(settings.KAFKA_VERSION))
    factor = min(settings.MOST_REPLICAS, node.get("brokers") or settings.MOST_REPLICAS)
    own, target = owner.settings["worker_properties"], flows[0]["target"]
    aliases = list(dict.fromkeys([*(flow["source"] for flow in flows), target]))
    rendered: dict[str, Any] = {
        "clusters": aliases,
        "emit.heartbeats.enabled": False,
        "replication.policy.class": settings.POLICIES[flows[0]["replication_policy"]],
        **layered({k: v for k, v in own.items() if k in names.AGREED}),
        **layered({key: settings.worker_value(owner, key) for key in names.PLUGINS}),
        **_nodes(owner, own, node.get("address")),
    }
    for alias in aliases:
        providers, connection = _connection(clusters, alias, owner, line)
        rendered |= providers | _under(alias, connection)
    rendered |= _worker(clusters, target, owner, factor)
    for flow in flows:
        rendered |= _flow(clusters, flow, owner, line, factor)
    return rendered


def render(clusters: Clusters, process: Process, node: Mapping[str, Any]) -> Process:
    """What a MirrorMaker 2 process is started with, as ``Engine`` describes it."""
    flows = process.flows
    positions = [places.worker_topics(flow)["offset_topic"] for flow in flows]
    return replace(
        process,
        script="connect-mirror-maker.sh",
        arguments=[("", "MM_CONFIG"), ("--clusters", "MM_CLUSTERS")],
        environment={
            "MM_CONFIG": Placed("{configuration}/mm2.properties"),
            "MM_CLUSTERS": process.target,
        },
        properties={"mm2.properties": properties_of(clusters, flows, process.owner, node)},
        identity={
            **process.identity,
            "sources": [flow["source"] for flow in flows],
            "policy": flows[0]["replication_policy"],
            "separator": places.policy(process.owner).separator,
        },
        peers=len(process.owner.hosts) > 1,
        positions=f"{'topic' if len(positions) == 1 else 'topics'} "
        f"{' and '.join(positions)} on {process.target}",
    )
