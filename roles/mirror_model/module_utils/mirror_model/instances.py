"""Everything one mirror process is made of, and what of it must not change unnoticed."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import tuned
from .clusters import credentials_of
from .engine import Engine
from .engines import ENGINES, rest_of
from .inventory import Owner
from .keys import Clusters, ModelError, member
from .site import Site

# Java's classes, compiled code and threads (docs/sizing.md).
BESIDE_HEAP_MIB = 512
# Parts of an identity that stand for where a mirror goes on; flows may come and go.
COMPARED = (
    "engine", "group_id", "policy", "separator", "offset_topic", "source_cluster_id",
    "target_cluster_id",
)  # fmt: skip


def mirror_process(site: Site, name: str, node: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Everything a mirror process, or a worker of a Connect cluster, is made of.

    :param name: which instance or Connect cluster.
    :param node: what only the host and its clusters know: ``address`` of this host for the nodes of
        one instance, ``name`` of this host, ``brokers`` of the target; each may be missing.
    :returns: ``name``, ``engine``, ``state``, ``hosts``, ``kafka_version``, ``heap``,
        ``memory_max`` (heap and all beside it, as systemd spells it), ``flows`` (filled in),
        ``target`` (alias), ``description``, ``script`` below Kafka's ``bin``, ``arguments`` as a
        unit spells them, ``environment`` (the variables the arguments name), ``files`` (file name
        to properties, secrets as references), ``credentials`` (file name to content, SECRET),
        ``identity`` (what must not change unnoticed), ``positions`` (words for where the
        mirror's positions are kept), ``title`` of the engine, ``texts`` (file name to text that is
        no properties), ``jvm_options`` beside the heap, and ``prepare`` (the role's script that
        runs before the process, if any), ``connects_as`` (the owner's ``identity``). What is absent
        has the first five and the last, and empty others.
    :raises ModelError: an unknown owner, flow or cluster, or flows that no process could run.
    """
    return _process(site.clusters, site.flows, site.owner(name), node or {})


def kafka_connect_rest(site: Site, name: str) -> dict[str, Any]:
    """How a Connect cluster's REST servers are reached; SECRET.

    :param name: which Connect cluster.
    :returns: ``urls``; ``ca``, ``certificate`` and ``key`` (PEM text), ``username`` and
        ``password``, each ``None`` where it is not needed.
    """
    rest = rest_of(site.owner(name))
    return {
        "urls": rest["urls"],
        "ca": rest["ssl_ca"],
        "certificate": rest["ssl_certificate"],
        "key": rest["ssl_key"],
        "username": rest["client"],
        "password": rest["users"].get(rest["client"]),
    }


def mirror_connectors(
    site: Site, name: str, brokers: Mapping[str, int], typed: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The connectors that a Connect cluster has to run.

    :param name: which Connect cluster.
    :param brokers: alias to how many brokers a cluster has, as the workers' hosts asked;
        ``typed``: as somebody says, which wins.
    :returns: ``name``, ``flow``, ``kind``, ``config`` (names to text, secrets as references) and
        ``kept`` (keys that stay as they are where the connector exists).
    """
    owner = site.owner(name)
    return [
        connector
        for engine in ENGINES.values()
        if engine.owners is owner.kind
        for connector in engine.connectors(
            site.clusters,
            [flow for flow in site.flows.values() if flow["engine"] == engine.name],
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
        for file, content in credentials_of(clusters, alias, owner.identity).items()
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


def mirror_socket_buffers(site: Site, host: str) -> dict[str, int]:
    """How large the buffers of a host's sockets have to grow to fill the links to far clusters.

    :param host: whose mirrors.
    :returns: ``receive`` and ``send`` in bytes, 0 where everything is near. The kernel keeps about
        half of a buffer for itself (``net.ipv4.tcp_adv_win_scale``), so they are twice what is on
        the way.
    """
    buffers = {"receive": 0, "send": 0}
    for flow, _, owner in site.placed:
        for side, way in (("source", "receive"), ("target", "send")):
            if host in owner.hosts and flow[side] in owner.settings["distance"]:
                far = tuned.distance(owner.settings, flow[side])
                buffers[way] = max(buffers[way], 2 * far.on_the_way)
    return buffers


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
