"""Owners: their shape, flows and releases, and the inventory groups that deploy and prove them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import tuned
from ..advisories import kafka_advisories
from ..clusters import aliases_of
from ..engines import ENGINES, engine_of, instance_keys
from ..inventory import CONNECT_CLUSTERS, Inventory, Owner, connect_cluster_of, instance_of
from ..kafka_names import line_of, release
from ..keys import check_map, suggestion
from ..schema import (
    CONNECT_CLUSTER,
    CONNECT_NAME,
    DISTANCE,
    INSTANCE_NAME,
    LONGEST_INSTANCE_NAME,
)
from .flows import judge_foreign_keys


def judge_instances(found: Inventory, instances: Any, hosts: Sequence[str]) -> None:
    """Judge ``mirrormaker_instances`` one by one; those of the right shape are noted.

    :param hosts: every host of the inventory.
    """
    if not isinstance(instances, Mapping):
        found.refuse("mirrormaker_instances: must be a map of instance name to instance")
        return
    for name, instance in instances.items():
        path = f"mirrormaker_instances.{name}"
        if (
            not isinstance(name, str)
            or not INSTANCE_NAME.fullmatch(name)
            or len(name) > LONGEST_INSTANCE_NAME
        ):
            found.refuse(
                f"{path}: an instance is called mirrormaker or mirrormaker-<small letters and "
                f"digits>, at most {LONGEST_INSTANCE_NAME} characters; rename it"
            )
            continue
        before = len(found.errors)
        if check_map(path, instance, instance_keys(), found.refuse):
            _judge_distances(found, path, instance.get("distance"))
        if len(found.errors) == before:
            _judge_owner(found, instance_of(instances, name), instance, hosts)


def judge_connect_clusters(
    found: Inventory, connect_clusters: Any, flows: Any, hosts: Sequence[str]
) -> None:
    """Judge ``kafka_connect_clusters`` one by one; those of the right shape are noted.

    :param flows: ``mirror_flows``, whatever its shape.
    :param hosts: every host of the inventory.
    """
    if not connect_clusters:
        connect_clusters = {}
    if not isinstance(connect_clusters, Mapping):
        found.refuse("kafka_connect_clusters: must be a map of name to Connect cluster")
        return
    sound = [flow for flow in flows if isinstance(flow, Mapping)] if isinstance(flows, list) else []
    for name, cluster in connect_clusters.items():
        path = f"{CONNECT_CLUSTERS.variable}.{name}"
        if (
            not isinstance(name, str)
            or not CONNECT_NAME.fullmatch(name)
            or len(name) > LONGEST_INSTANCE_NAME
        ):
            found.refuse(
                f"{path}: a Connect cluster is called connect, or connect-<small letters and "
                f"digits>, at most {LONGEST_INSTANCE_NAME} characters; rename it"
            )
            continue
        before = len(found.errors)
        if check_map(path, cluster, CONNECT_CLUSTER, found.refuse):
            _judge_distances(found, path, cluster.get("distance"))
        if len(found.errors) == before:
            owner = connect_cluster_of(connect_clusters, name, sound)
            _judge_owner(found, owner, cluster, hosts)
    for flow in found.flows.values():
        runs_there = engine_of(flow).owners is CONNECT_CLUSTERS
        if runs_there and flow["connect"] and flow["connect"] not in connect_clusters:
            found.refuse(
                f"{found.paths[flow['name']]}.connect: '{flow['connect']}' is no Connect cluster "
                f"of kafka_connect_clusters; {suggestion(flow['connect'], connect_clusters)}"
            )


def _judge_owner(
    found: Inventory, owner: Owner, written: Mapping[str, Any], hosts: Sequence[str]
) -> None:
    for host in owner.hosts:
        if host not in hosts:
            found.refuse(f"{owner.path}.hosts: '{host}' is no host; {suggestion(host, hosts)}")
    if owner.state == "absent":
        found.absent.append(owner)
        return
    found.owners.append(owner)
    _judge_aliases(found, owner)
    _judge_identity(found, owner)
    if not owner.works:
        found.refuse(f"{owner.path}.hosts: is empty; name hosts, or set state to absent")
    if not owner.kind.names_flows:
        return
    for flow in owner.flows:
        if flow not in found.named:
            found.refuse(
                f"{owner.path}.flows: '{flow}' is no flow of mirror_flows; "
                f"{suggestion(flow, found.named)}"
            )
    engines = sorted({flow["engine"] for flow in found.flows_of(owner)})
    if not owner.flows:
        found.refuse(
            f"{owner.path}.flows: is empty; name flows of mirror_flows, or set state to absent"
        )
    elif foreign := [name for name in engines if ENGINES[name].owners is not owner.kind]:
        kind = ENGINES[foreign[0]].owners
        found.refuse(
            f"{owner.path}.flows: flows of {foreign[0]} run on a {kind.name}; name one of "
            f"{kind.variable} in connect of the flow instead"
        )
    elif len(engines) > 1:
        found.refuse(
            f"{owner.path}.flows: flows of several engines ({', '.join(engines)}); one "
            f"{owner.kind.name} runs one engine, so give each its own"
        )
    elif engines:
        engine = ENGINES[engines[0]]
        if not engine.several_flows and len(owner.flows) > 1:
            found.refuse(
                f"{owner.path}.flows: {engine.title} runs exactly one flow; give every flow its "
                f"own {owner.kind.name}"
            )
        judge_foreign_keys(found, owner.path, written, instance_keys(), engine)


def _judge_distances(found: Inventory, path: str, distances: Any) -> None:
    for alias, distance in distances.items() if isinstance(distances, Mapping) else ():
        check_map(f"{path}.distance.{alias}", distance, DISTANCE, found.refuse)


def _aliases(flows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The clusters that flows read and write."""
    return {flow[side] for flow in flows for side in ("source", "target")}


def _judge_aliases(found: Inventory, owner: Owner) -> None:
    """Refuse distances of clusters that the owner has nothing to do with."""
    flows = found.flows_of(owner)
    if len(flows) < len(owner.flows):
        return
    known = _aliases(flows)
    for alias in owner.settings["distance"]:
        if alias not in known:
            found.refuse(
                f"{owner.path}.distance.{alias}: no flow of it reads or writes '{alias}'; "
                f"{suggestion(alias, known)}"
            )


def _judge_identity(found: Inventory, owner: Owner) -> None:
    """Refuse an identity that no cluster of the owner knows: ``mirror`` would stand in for it."""
    flows = found.flows_of(owner)
    aliases = _aliases(flows)
    if owner.identity == "mirror" or not flows or not aliases <= found.sound:
        return
    known = {name for alias in aliases for name in found.clusters[alias].get("identities") or {}}
    if owner.identity not in known:
        found.refuse(
            f"{owner.path}.identity: no cluster of its flows has '{owner.identity}' among its "
            f"identities; {suggestion(owner.identity, known)}"
        )


def judge_heaps(found: Inventory) -> None:
    """Warn of heaps that cannot hold what the properties of their clients allow."""
    for owner in found.owners:
        flows, heap = found.flows_of(owner), owner.settings["heap"]
        if not heap or not flows or len(flows) < len(owner.flows):
            continue
        if not _aliases(flows) <= found.sound:
            continue
        needed = engine_of(flows[0]).memory(found.clusters, flows, owner)
        if tuned.heap_mib(heap) < needed:
            found.warn(
                f"{owner.path}.heap: {heap} cannot hold what its clients may take, {needed:.0f} "
                "MiB; remove it, or lower fetch.max.bytes and buffer.memory (docs/sizing.md)"
            )


def judge_placement(found: Inventory) -> None:
    """Judge that a flow has one owner, and a group of its own where the inventory names it."""
    owners: dict[str, Owner] = {}
    for owner in found.owners:
        for name in owner.flows:
            if (first := owners.setdefault(name, owner)) is not owner:
                found.refuse(
                    f"{owner.path}.flows: '{name}' already runs in '{first.name}'; list all hosts "
                    "there, they share the work"
                )
    for name in found.flows:
        if name not in owners:
            kind = engine_of(found.flows[name]).owners
            found.warn(f"{found.paths[name]}: no {kind.name} of {kind.variable} runs it")
    groups: dict[tuple[str, str], str] = {}
    for name in owners:
        if name not in found.flows or "group_id" not in engine_of(found.flows[name]).flow_keys:
            continue
        alias, group = engine_of(found.flows[name]).group(found.flows[name])
        place = aliases_of(found.clusters, alias)[0], group
        if (other := groups.setdefault(place, name)) != name:
            found.refuse(
                f"{found.paths[name]}.group_id: '{group}' is also the group of flow '{other}' on "
                f"'{alias}'; each flow needs its own"
            )


def judge_versions(found: Inventory, advisories: Sequence[Mapping[str, Any]]) -> None:
    """Judge that releases have the engine, that it works in them, and what advisories refuse.

    :param advisories: entries of ``files/advisories.yml``.
    """
    for owner, flow in found.running():
        engine = engine_of(flow)
        path, version = f"{owner.path}.kafka_version", owner.version(engine.kafka_version)
        if engine.last_line and line_of(version) != engine.last_line:
            found.refuse(
                f"{path}: Kafka {version} has no {engine.title}, which ended with "
                f"{engine.last_line}; set it to {engine.kafka_version}"
            )
            continue
        if release(version) < release(engine.oldest):
            found.refuse(
                f"{path}: {engine.title} of Kafka {version} {engine.older}; "
                f"set it to {engine.oldest} or newer"
            )
        nodes = [engine.nodes] if engine.nodes and len(owner.hosts) > 1 else []
        for process in (engine.name, *nodes):
            for entry in kafka_advisories(version, process, found.accept, advisories=advisories):
                report = found.refuse if entry["refused"] else found.warn
                report(f"{path}: {entry['text']}")


def judge_groups(found: Inventory, groups: Mapping[str, Any] | None) -> None:
    """Judge that owners' hosts are deployed to and that the report has a host.

    :param groups: inventory groups; ``None`` judges nothing.
    """
    if groups is None:
        return
    for owner in found.owners:
        group = owner.kind.group
        for host in owner.hosts:
            if host not in groups.get(group, ()):
                found.warn(
                    f"group {group}: '{host}' is to run '{owner.name}' and is not in it, so the "
                    "playbooks pass it by; add it"
                )
    mirroring = [owner.name for owner in found.owners if owner.hosts and owner.flows]
    if mirroring and not groups.get("mirror_report"):
        found.refuse(
            f"group mirror_report: has no host, so nobody would prove what '{mirroring[0]}' "
            "mirrors; add a host to it"
        )
