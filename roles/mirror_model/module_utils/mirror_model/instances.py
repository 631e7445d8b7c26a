"""What roles ask about one owner: its process, its connectors, what must not change unnoticed."""

from collections.abc import Mapping
from typing import Any

from . import tuned
from .engines import ENGINES, rest_of
from .layout import HOST, Placed
from .process import Process, Runtime
from .render import text_of
from .site import Site

# Parts of an identity that stand for where a mirror goes on; flows may come and go.
COMPARED = (
    "engine", "group_id", "policy", "separator", "offset_topic", "source_cluster_id",
    "target_cluster_id",
)  # fmt: skip


def mirror_process(site: Site, name: str, node: Mapping[str, Any] | None = None) -> Process:
    """The mirror process of an instance, or the worker of a Connect cluster.

    :param name: which instance or Connect cluster.
    :param node: as of :func:`.processes.process_of`.
    :raises ModelError: an unknown owner, flow or cluster, or flows that no process could run.
    """
    return site.process(name, node or {})


def mirror_owners_on(site: Site, host: str) -> list[str]:
    """Names of the instances and Connect clusters that are declared for a host."""
    return [owner.name for owner in site.owners if host in owner.hosts]


def mirror_flow_names(site: Site, name: str) -> list[str]:
    """Names of the flows of an instance or a Connect cluster."""
    return list(site.owner(name).flows)


def mirror_paths(process: Process, sysconfig_directory: str) -> dict[str, str]:
    """Where a host has what belongs to a process.

    :param sysconfig_directory: of environment files.
    :returns: ``directory`` of its configuration, ``credentials`` (directory), ``logging`` (the file
        that says what is logged), ``sysconfig``, ``unit``, ``logs`` and ``scratch``.
    """
    directory = HOST.path(process.name, "")
    return {
        "directory": directory.rstrip("/"),
        "credentials": f"{directory}credentials",
        "logging": f"{directory}{process.logging}",
        "sysconfig": f"{sysconfig_directory}/{process.name}",
        "unit": f"/etc/systemd/system/{process.name}.service",
        "logs": HOST.put(process.name, Placed("{logs}")),
        "scratch": HOST.put(process.name, Placed("{scratch}")),
    }


def mirror_on_host(process: Process, runtime: Mapping[str, Any]) -> dict[str, Any]:
    """What a host gets of a process, whatever it wraps around it.

    :param runtime: fields of :class:`.process.Runtime`.
    :returns: ``files`` (path to text, without secrets), ``properties`` and ``texts`` as they stand
        in these, ``command`` (arguments as a unit spells them), ``environment`` and ``memory_max``
        (as systemd spells it).
    """
    made, placed = Runtime(**runtime), process.placed(HOST)
    return {
        "files": process.files(HOST),
        "properties": placed.properties,
        "texts": placed.texts,
        "command": process.command(HOST, made),
        "environment": process.variables(HOST, made),
        "memory_max": f"{process.memory_mib}M",
    }


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
    made = [
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
    return [
        {
            **connector,
            "config": {
                key: text_of(key, HOST.put(name, value))
                for key, value in connector["config"].items()
            },
        }
        for connector in made
    ]


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
    new_names = {
        cluster_id: alias
        for alias, cluster_id in after.items()
        if cluster_id and alias not in before
    }
    for alias, cluster_id in before.items():
        now = after.get(alias)
        if cluster_id and now and now != cluster_id:
            changes.append(f"cluster id of source {alias} {cluster_id} -> {now}")
        elif alias not in after and cluster_id in new_names:
            changes.append(
                f"alias of source cluster {cluster_id} {alias} -> {new_names[cluster_id]}"
            )
    return changes
