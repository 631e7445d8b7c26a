"""Clusters, flows and instances with every key filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import ModelError
from .schema import CLUSTER, FLOW, INSTANCE, KAFKA_VERSIONS, defaults_of, suggestion


def filled(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A map over its defaults; null means the default."""
    return {**defaults, **{key: item for key, item in value.items() if item is not None}}


def member(variable: str, members: Any, name: str) -> Any:
    """What a map of the inventory holds under a name.

    :raises ModelError: nothing; the message names the variable.
    """
    if not isinstance(members, Mapping) or name not in members:
        known = members if isinstance(members, Mapping) else ()
        raise ModelError(f"{variable}: '{name}' is not defined; {suggestion(name, known)}")
    return members[name]


def cluster_of(clusters: Mapping[str, Any], alias: str) -> dict[str, Any]:
    """One cluster with every key filled in.

    :raises ModelError: no such alias.
    """
    return filled(member("kafka_clusters", clusters, alias), defaults_of(CLUSTER))


def flow_of(flow: Mapping[str, Any]) -> dict[str, Any]:
    """A flow with every key filled in, as its engine understands it."""
    whole = filled(flow, defaults_of(FLOW))
    if whole.get("engine") == "mm1":
        whole["replication_policy"] = "identity"
        whole["group_id"] = whole["group_id"] or f"mirrormaker-{whole['name']}"
    elif whole["replication_policy"] is None:
        whole["replication_policy"] = "prefix"
    return whole


def instance_of(instances: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An instance with every key filled in but ``kafka_version``, whose default is its engine's.

    :raises ModelError: no such instance.
    """
    return filled(member("mirrormaker_instances", instances, name), defaults_of(INSTANCE))


def placed(
    flows: Sequence[Mapping[str, Any]], instances: Mapping[str, Any]
) -> list[tuple[dict[str, Any], str, dict[str, Any]]]:
    """The flows that an instance places on hosts, in the inventory's order.

    :returns: each flow, its instance's name, its instance; both filled in.
    """
    owners: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in instances:
        instance = instance_of(instances, name)
        if instance["state"] != "absent" and instance["hosts"]:
            owners |= dict.fromkeys(instance["flows"], (name, instance))
    return [(flow, *owners[flow["name"]]) for flow in map(flow_of, flows) if flow["name"] in owners]


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of several layers, later ones before earlier ones; null removes a property."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    return {name: value for name, value in merged.items() if value is not None}


def kafka_version_of(instance: Mapping[str, Any], engine: str) -> str:
    """The Kafka release an instance runs from."""
    return str(instance["kafka_version"] or KAFKA_VERSIONS.get(engine, ""))
