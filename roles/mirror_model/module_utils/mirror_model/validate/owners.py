"""Owners: their shape, flows and releases, and the inventory groups that deploy and prove them."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import tuned
from ..advisories import kafka_advisories
from ..clusters import aliases_of
from ..engines import ENGINES, engine_of, instance_keys
from ..kafka_names import line_of, release
from ..keys import check_map, suggestion
from ..owners import CONNECT_CLUSTERS, INSTANCES, Owner, OwnerKind, owner_of
from ..schema import DISTANCE, LONGEST_OWNER_NAME
from ..validation import Validation
from .flows import validate_foreign_keys


def validate_owners(
    validation: Validation, kind: OwnerKind, owners: Any, flows: Any, hosts: Sequence[str]
) -> None:
    """Validate the owners of one kind one by one; those of the right shape are noted.

    :param owners: what the kind's variable holds, whatever its shape; ``flows``: ``mirror_flows``.
    :param hosts: every host of the inventory.
    """
    if not isinstance(owners, Mapping):
        validation.refuse(f"{kind.variable}: must be a map of {kind.members}")
        return
    keys = instance_keys() if kind is INSTANCES else kind.keys
    sound = [flow for flow in flows if isinstance(flow, Mapping)] if isinstance(flows, list) else []
    for name, written in owners.items():
        path = f"{kind.variable}.{name}"
        fits = isinstance(name, str) and len(name) <= LONGEST_OWNER_NAME
        if not (fits and kind.pattern.fullmatch(name)):
            validation.refuse(
                f"{path}: {kind.called}-<small letters and digits>, at most {LONGEST_OWNER_NAME} "
                "characters; rename it"
            )
            continue
        before = len(validation.errors)
        if check_map(path, written, keys, validation.refuse):
            _validate_distances(validation, path, written.get("distance"))
        if len(validation.errors) == before:
            _validate_owner(validation, owner_of(kind, name, written, sound), written, hosts)


def validate_connect_names(validation: Validation, connect_clusters: Any) -> None:
    """Refuse flows that name a Connect cluster which is none.

    :param connect_clusters: ``kafka_connect_clusters``, whatever its shape.
    """
    if not isinstance(connect_clusters, Mapping):
        return
    for flow in validation.flows.values():
        runs_there = engine_of(flow).owners is CONNECT_CLUSTERS
        if runs_there and flow["connect"] and flow["connect"] not in connect_clusters:
            validation.refuse(
                f"{validation.paths[flow['name']]}.connect: '{flow['connect']}' is no Connect "
                "cluster of kafka_connect_clusters; "
                f"{suggestion(flow['connect'], connect_clusters)}"
            )


def _validate_owner(
    validation: Validation, owner: Owner, written: Mapping[str, Any], hosts: Sequence[str]
) -> None:
    for host in owner.hosts:
        if host not in hosts:
            validation.refuse(f"{owner.path}.hosts: '{host}' is no host; {suggestion(host, hosts)}")
    if owner.state == "absent":
        validation.absent.append(owner)
        return
    validation.owners.append(owner)
    _validate_aliases(validation, owner)
    _validate_identity(validation, owner)
    if not owner.works:
        validation.refuse(f"{owner.path}.hosts: is empty; name hosts, or set state to absent")
    if not owner.kind.names_flows:
        return
    for flow in owner.flows:
        if flow not in validation.named:
            validation.refuse(
                f"{owner.path}.flows: '{flow}' is no flow of mirror_flows; "
                f"{suggestion(flow, validation.named)}"
            )
    engines = sorted({flow["engine"] for flow in validation.flows_of(owner)})
    if not owner.flows:
        validation.refuse(
            f"{owner.path}.flows: is empty; name flows of mirror_flows, or set state to absent"
        )
    elif foreign := [name for name in engines if ENGINES[name].owners is not owner.kind]:
        kind = ENGINES[foreign[0]].owners
        validation.refuse(
            f"{owner.path}.flows: flows of {foreign[0]} run on a {kind.name}; name one of "
            f"{kind.variable} in connect of the flow instead"
        )
    elif len(engines) > 1:
        validation.refuse(
            f"{owner.path}.flows: flows of several engines ({', '.join(engines)}); one "
            f"{owner.kind.name} runs one engine, so give each its own"
        )
    elif engines:
        engine = ENGINES[engines[0]]
        if not engine.several_flows and len(owner.flows) > 1:
            validation.refuse(
                f"{owner.path}.flows: {engine.title} runs exactly one flow; give every flow its "
                f"own {owner.kind.name}"
            )
        validate_foreign_keys(validation, owner.path, written, instance_keys(), engine)


def _validate_distances(validation: Validation, path: str, distances: Any) -> None:
    for alias, distance in distances.items() if isinstance(distances, Mapping) else ():
        check_map(f"{path}.distance.{alias}", distance, DISTANCE, validation.refuse)


def _validate_aliases(validation: Validation, owner: Owner) -> None:
    """Refuse distances of clusters that the owner has nothing to do with."""
    if len(validation.flows_of(owner)) < len(owner.flows):
        return
    aliases = validation.aliases(owner)
    for alias in owner.settings["distance"]:
        if alias not in aliases:
            validation.refuse(
                f"{owner.path}.distance.{alias}: no flow of it reads or writes '{alias}'; "
                f"{suggestion(alias, aliases)}"
            )


def _validate_identity(validation: Validation, owner: Owner) -> None:
    """Refuse an identity that no cluster of the owner knows: ``mirror`` would stand in for it."""
    aliases = validation.aliases(owner)
    if owner.identity == "mirror" or not aliases or not aliases.keys() <= validation.sound:
        return
    identities = {
        name for alias in aliases for name in validation.clusters[alias].get("identities") or {}
    }
    if owner.identity not in identities:
        validation.refuse(
            f"{owner.path}.identity: no cluster of its flows has '{owner.identity}' among its "
            f"identities; {suggestion(owner.identity, identities)}"
        )


def validate_heaps(validation: Validation) -> None:
    """Warn of heaps that cannot hold what the properties of their clients allow."""
    for owner in validation.owners:
        flows, heap = validation.flows_of(owner), owner.settings["heap"]
        if not heap or not flows or len(flows) < len(owner.flows):
            continue
        if not validation.aliases(owner).keys() <= validation.sound:
            continue
        needed = engine_of(flows[0]).memory(validation.clusters, flows, owner)
        if tuned.heap_mib(heap) < needed:
            validation.warn(
                f"{owner.path}.heap: {heap} cannot hold what its clients may take, {needed:.0f} "
                "MiB; remove it, or lower fetch.max.bytes and buffer.memory (docs/sizing.md)"
            )


def validate_placement(validation: Validation) -> None:
    """Validate that a flow has one owner, and a group of its own where the inventory names it."""
    owners: dict[str, Owner] = {}
    for owner in validation.owners:
        for name in owner.flows:
            if (first := owners.setdefault(name, owner)) is not owner:
                validation.refuse(
                    f"{owner.path}.flows: '{name}' already runs in '{first.name}'; list all hosts "
                    "there, they share the work"
                )
    for name in validation.flows:
        if name not in owners:
            kind = engine_of(validation.flows[name]).owners
            validation.warn(f"{validation.paths[name]}: no {kind.name} of {kind.variable} runs it")
    groups: dict[tuple[str, str], str] = {}
    for name in owners:
        if (
            name not in validation.flows
            or "group_id" not in engine_of(validation.flows[name]).flow_keys
        ):
            continue
        alias, group = engine_of(validation.flows[name]).group(validation.flows[name])
        place = aliases_of(validation.clusters, alias)[0], group
        if (other := groups.setdefault(place, name)) != name:
            validation.refuse(
                f"{validation.paths[name]}.group_id: '{group}' is also the group of flow '{other}' "
                f"on '{alias}'; each flow needs its own"
            )


def validate_versions(validation: Validation, advisories: Sequence[Mapping[str, Any]]) -> None:
    """Validate that releases have the engine, that it works in them, and what advisories refuse.

    :param advisories: entries of ``files/advisories.yml``.
    """
    for owner, flow in validation.running():
        engine = engine_of(flow)
        path, version = f"{owner.path}.kafka_version", owner.version(engine.kafka_version)
        if engine.last_line and line_of(version) != engine.last_line:
            validation.refuse(
                f"{path}: Kafka {version} has no {engine.title}, which ended with "
                f"{engine.last_line}; set it to {engine.kafka_version}"
            )
            continue
        if release(version) < release(engine.oldest):
            validation.refuse(
                f"{path}: {engine.title} of Kafka {version} {engine.older}; "
                f"set it to {engine.oldest} or newer"
            )
        nodes = [engine.nodes] if engine.nodes and len(owner.hosts) > 1 else []
        for process in (engine.name, *nodes):
            for entry in kafka_advisories(
                version, process, validation.accept, advisories=advisories
            ):
                report = validation.refuse if entry["refused"] else validation.warn
                report(f"{path}: {entry['text']}")


def validate_groups(validation: Validation, groups: Mapping[str, Any] | None) -> None:
    """Validate that owners' hosts are deployed to and that the report has a host.

    :param groups: inventory groups; ``None``: nothing is checked.
    """
    if groups is None:
        return
    for owner in validation.owners:
        group = owner.kind.group
        for host in owner.hosts:
            if host not in groups.get(group, ()):
                validation.warn(
                    f"group {group}: '{host}' is to run '{owner.name}' and is not in it, so the "
                    "playbooks pass it by; add it"
                )
    mirroring = [owner.name for owner in validation.owners if owner.hosts and owner.flows]
    if mirroring and not groups.get("mirror_report"):
        validation.refuse(
            f"group mirror_report: has no host, so nobody would prove what '{mirroring[0]}' "
            "mirrors; add a host to it"
        )
