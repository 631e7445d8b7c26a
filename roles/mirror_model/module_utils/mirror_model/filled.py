"""Maps of the inventory with every key filled in, and layers of properties."""

from collections.abc import Mapping
from typing import Any

from .errors import ModelError
from .keys import defaults_of, suggestion
from .schema import CLUSTER

# kafka_clusters: alias to cluster.
Clusters = Mapping[str, Any]
# A flow of mirror_flows with every key filled in.
Flow = Mapping[str, Any]
# Kafka's names to values; None removes a property.
Properties = Mapping[str, Any]


def filled(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A map over its defaults; null means the default."""
    return {**defaults, **{key: item for key, item in value.items() if item is not None}}


def member(variable: str, members: Any, name: str) -> Any:
    """What a map of the inventory holds under a name.

    :raises ModelError: the name is not defined; the message names the variable.
    """
    if not isinstance(members, Mapping) or name not in members:
        known = members if isinstance(members, Mapping) else ()
        raise ModelError(f"{variable}: '{name}' is not defined; {suggestion(name, known)}")
    return members[name]


def cluster_of(clusters: Clusters, alias: str) -> dict[str, Any]:
    """One cluster with every key filled in.

    :raises ModelError: no such alias.
    """
    return filled(member("kafka_clusters", clusters, alias), defaults_of(CLUSTER))


def layered(*layers: Properties) -> dict[str, Any]:
    """Properties of several layers, later ones before earlier ones; null removes a property."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    return {name: value for name, value in merged.items() if value is not None}


def within(properties: Properties, prefix: str) -> dict[str, Any]:
    """The properties whose names begin with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
