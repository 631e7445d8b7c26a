"""Everything one mirror process is made of, and what of it must not change unnoticed."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import tuned
from .clusters import kafka_credentials
from .engine import Engine
from .engines import ENGINES, guarded, owners_of, rest_of
from .inventory import Owner, connect_cluster_of, instance_of
from .keys import Clusters, ModelError, member

# Java's classes, compiled code and threads (docs/sizing.md).
BESIDE_HEAP_MIB = 512
# Parts of an identity that stand for where a mirror goes on; flows may come and go.
COMPARED = (
    "engine", "group_id", "policy", "separator", "offset_topic", "source_cluster_id",
    "target_cluster_id",
)  # fmt: skip


def mirrormaker_instance(
    clusters: Clusters,
    flows: Sequence[Mapping[str, Any]],
    instances: Mapping[str, Any],
    connect_clusters: Mapping[str, Any],
    name: str,
    node: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything a mirror process is made of.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param connect_clusters: ``kafka_connect_clusters``, whose topics no mirror may write.
    :param name: which instance.
    :param node: what only the host and its clusters know: ``address`` of this host for the nodes of
        one instance, ``brokers`` of the target; each may be missing.
    :returns: ``name``, ``engine``, ``state``, ``hosts``, ``kafka_version``, ``heap``,
        ``memory_max`` (heap and all beside it, as systemd spells it), ``flows`` (filled in),
        ``target`` (alias), ``description``, ``script`` below Kafka's ``bin``, ``arguments`` as a
        unit spells them, ``environment`` (the variables the arguments name), ``files`` (file name
        to properties, secrets as references), ``credentials`` (file name to content, SECRET),
        ``identity`` (what must not change unnoticed), ``positions`` (words for where the
        mirror's positions are kept), ``title`` of the engine, ``texts`` (file name to text that is
        no properties), ``jvm_options`` beside the heap, and ``prepare`` (the role's script that
        runs before the process, if any), ``connects_as`` (the owner's ``identity``). An absent
        instance has the first five and the last, and empty others.
    :raises ModelError: an unknown instance, flow or cluster, or flows that no process could run.
    """
    owners = owners_of(flows, instances, connect_clusters)
    return _process(
        clusters, guarded(clusters, flows, owners), instance_of(instances, name), node or {}
    )


def kafka_connect_worker(
    clusters: Clusters,
    flows: Sequence[Mapping[str, Any]],
    connect_clusters: Mapping[str, Any],
    name: str,
    node: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything a worker of a Connect cluster is made of, as of :func:`mirrormaker_instance`.

    :param connect_clusters: ``kafka_connect_clusters``.
    :param name: which Connect cluster.
    :param node: ``name`` of this host, and ``brokers`` of the cluster that keeps its topics.
    :returns: the same.
    """
    owners = owners_of(flows, {}, connect_clusters)
    owner = connect_cluster_of(connect_clusters, name, flows)
    return _process(clusters, guarded(clusters, flows, owners), owner, node or {})


def kafka_connect_rest(
    flows: Sequence[Mapping[str, Any]], connect_clusters: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """How a Connect cluster's REST servers are reached; SECRET.

    :param connect_clusters: ``kafka_connect_clusters``.
    :param name: which Connect cluster.
    :returns: ``urls``; ``ca``, ``certificate`` and ``key`` (PEM text), ``username`` and
        ``password``, each ``None`` where it is not needed.
    """
    rest = rest_of(connect_cluster_of(connect_clusters, name, flows))
    return {
        "urls": rest["urls"],
        "ca": rest["ssl_ca"],
        "certificate": rest["ssl_certificate"],
        "key": rest["ssl_key"],
        "username": rest["client"],
        "password": rest["users"].get(rest["client"]),
    }


def mirror_connectors(
    clusters: Clusters,
    flows: Sequence[Mapping[str, Any]],
    instances: Mapping[str, Any],
    connect_clusters: Mapping[str, Any],
    name: str,
    brokers: Mapping[str, int],
    typed: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The connectors that a Connect cluster has to run.

    :param instances: ``mirrormaker_instances``, whose topics no connector may write.
    :param name: which Connect cluster.
    :param brokers: alias to how many brokers a cluster has, as the workers' hosts asked;
        ``typed``: as somebody says, which wins.
    :returns: ``name``, ``flow``, ``kind``, ``config`` (names to text, secrets as references) and
        ``kept`` (keys that stay as they are where the connector exists).
    """
    owner = connect_cluster_of(connect_clusters, name, flows)
    own = guarded(clusters, flows, owners_of(flows, instances, connect_clusters))
    return [
        connector
        for engine in ENGINES.values()
        if engine.owners is owner.kind
        for connector in engine.connectors(
            clusters,
            [flow for flow in own.values() if flow["engine"] == engine.name],
            owner,
            {**brokers, **typed},
            typed,
        )
    ]


def _process(
    clusters: Clusters,
    flows: Mapping[str, Mapping[str, Any]],
    owner: Owner,
    node: Mapping[str, Any],
) -> dict[str, Any]:
    of_kind = [engine for engine in ENGINES.values() if engine.owners is owner.kind]
    chosen = [flows[flow] for flow in owner.flows if flow in flows]
    # An owner may have no flow; which engine an absent one had makes no difference then.
    engine = ENGINES[chosen[0]["engine"]] if chosen else of_kind[0]
    result: dict[str, Any] = {
        "name": owner.name, "engine": engine.name, "state": owner.state, "hosts": owner.hosts,
        "kafka_version": owner.version(engine.kafka_version), "heap": "", "memory_max": "",
        "flows": [], "target": "", "description": "", "script": "", "arguments": [],
        "environment": {}, "files": {}, "credentials": {}, "identity": {}, "positions": "",
        "title": engine.title, "texts": {}, "jvm_options": [], "prepare": "",
        "connects_as": owner.identity,
    }  # fmt: skip
    if owner.state == "absent":
        return result
    for flow in owner.flows:
        member("mirror_flows", flows, flow)
    if owner.kind.names_flows:
        _check_flows(f"{owner.path}.flows", engine, chosen)
    target = chosen[0]["target"] if owner.kind.names_flows else owner.settings["kafka"]
    aliases = dict.fromkeys([*(flow["source"] for flow in chosen), target])
    rendered = engine.render(clusters, chosen, owner, node)
    identity = {
        "engine": engine.name, "flows": [flow["name"] for flow in chosen], "target": target,
        **rendered["identity"],
    }  # fmt: skip
    credentials = {
        file: content
        for alias in aliases
        for file, content in kafka_credentials(clusters, alias, owner.identity).items()
    }
    heap = owner.settings["heap"] or tuned.heap(engine.memory(clusters, chosen, owner))
    return {
        **result, "heap": heap, "memory_max": memory_max(heap), "flows": chosen,
        "target": target, "description": description_of(chosen, target),
        **rendered, "identity": identity,
        "credentials": credentials | rendered.get("credentials", {}),
    }  # fmt: skip


def memory_max(heap: str) -> str:
    """What a mirror may hold in all: its heap, half of it for buffers outside, and Java itself.

    :param heap: as an inventory spells it: ``512m``, ``2g``.
    :returns: mebibytes as systemd's ``MemoryMax`` takes them: ``2048M``.
    """
    return f"{tuned.heap_mib(heap) * 3 // 2 + BESIDE_HEAP_MIB}M"


def mirror_socket_buffers(
    flows: Sequence[Mapping[str, Any]],
    instances: Mapping[str, Any],
    connect_clusters: Mapping[str, Any],
    host: str,
) -> dict[str, int]:
    """How large the buffers of a host's sockets have to grow to fill the links to far clusters.

    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param connect_clusters: ``kafka_connect_clusters``.
    :param host: whose mirrors.
    :returns: ``receive`` and ``send`` in bytes, 0 where everything is near. The kernel keeps about
        half of a buffer for itself (``net.ipv4.tcp_adv_win_scale``), so they are twice what is on
        the way.
    """
    found = {"receive": 0, "send": 0}
    own = [
        (owner, flow)
        for owner in owners_of(flows, instances, connect_clusters)
        for flow in flows
        if owner.works and host in owner.hosts and flow["name"] in owner.flows
    ]
    for owner, flow in own:
        for side, way in (("source", "receive"), ("target", "send")):
            if flow[side] in owner.settings["distance"]:
                far = tuned.distance(owner.settings, flow[side])
                found[way] = max(found[way], 2 * far.on_the_way)
    return found


def _check_flows(path: str, engine: Engine, flows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse flows that no process could run, in an inventory that nobody judged."""
    if not flows or not (engine.several_flows or len(flows) == 1):
        runs = ", or ".join(
            f"{'flows' if known.several_flows else 'exactly one flow'} of engine {known.name}"
            for known in ENGINES.values()
        )
        raise ModelError(f"{path}: name {runs}")
    shared = {(flow["engine"], flow["target"], flow["replication_policy"]) for flow in flows}
    if len(shared) > 1:
        raise ModelError(f"{path}: the flows differ in engine, target or replication_policy")


def description_of(flows: Sequence[Mapping[str, Any]], target: str) -> str:
    """What an owner mirrors, in a few words."""
    way = f"from {flows[0]['source']} to" if len(flows) == 1 else "into"
    return f"{', '.join(flow['name'] for flow in flows) or 'nothing'} {way} {target}"


def mirror_identity_changes(remembered: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """What would mirror everything again, or leave a gap, if an owner went on as it now is.

    :param remembered: the identity its host remembers; empty on a new host.
    :param current: its identity now. Both may lack what only the clusters know: the keys
        ``source_cluster_id``, ``target_cluster_id`` and ``source_cluster_ids`` (alias to id).
    :returns: one text per change. What only one side knows, and flows that come or go, are none.
    """
    changes = [
        f"{key} {remembered[key]} -> {current[key]}"
        for key in COMPARED
        if remembered.get(key) and current.get(key) and remembered[key] != current[key]
    ]
    before: dict[str, str] = remembered.get("source_cluster_ids") or {}
    after: dict[str, str] = current.get("source_cluster_ids") or {}
    new_names = {known: alias for alias, known in after.items() if known and alias not in before}
    for alias, known in before.items():
        now = after.get(alias)
        if known and now and now != known:
            changes.append(f"cluster id of source {alias} {known} -> {now}")
        elif alias not in after and known in new_names:
            changes.append(f"alias of source cluster {known} {alias} -> {new_names[known]}")
    return changes
