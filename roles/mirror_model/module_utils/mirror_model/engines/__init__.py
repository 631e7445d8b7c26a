"""The engines there are, the schema with what each reads, and flows as they understand them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..clusters import aliases_of
from ..control import Control, Kept, Names
from ..engine import Engine
from ..keys import Clusters, Flow, Key, ModelError, defaults_of, filled
from ..owners import Owner
from ..schema import DEFAULT_VERSIONS, FLOW, INSTANCE
from . import connect, mm1, mm2

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (mm1.ENGINE, mm2.ENGINE, connect.ENGINE)
}


def engine_of(flow: Mapping[str, Any]) -> Engine:
    """The engine of a flow.

    :raises ModelError: none of this version.
    """
    name = flow.get("engine")
    if name not in ENGINES:
        raise ModelError(
            f"mirror_flows[{flow.get('name')}].engine: '{name}' is none; use {' or '.join(ENGINES)}"
        )
    return ENGINES[name]


def flow_keys() -> tuple[Key, ...]:
    """The schema of a flow: the engines to choose from, and the keys that only some understand."""
    readers = {name: engine.flow_keys for name, engine in ENGINES.items()}
    return tuple(
        replace(key, choices=tuple(readers)) if key.name == "engine" else _read_by(readers, key)
        for key in FLOW
    )


def instance_keys() -> tuple[Key, ...]:
    """The schema of an instance: the engines' default releases, and keys that only some read."""
    readers = {name: engine.owner_keys for name, engine in ENGINES.items()}
    releases = ", ".join(f"{engine.kafka_version} for {name}" for name, engine in ENGINES.items())
    return tuple(
        replace(_read_by(readers, key), doc=key.doc.replace(DEFAULT_VERSIONS, releases))
        for key in INSTANCE
    )


def _read_by(readers: Mapping[str, frozenset[str]], key: Key) -> Key:
    return replace(key, engines=tuple(name for name, keys in readers.items() if key.name in keys))


def flow_of(flow: Mapping[str, Any]) -> Flow:
    """A flow with every key filled in, as its engine understands it.

    :raises ModelError: an engine that this version does not have.
    """
    engine = engine_of(flow)
    whole = filled(flow, defaults_of(FLOW))
    if whole["replication_policy"] not in engine.policies:
        whole["replication_policy"] = engine.policies[0]
    return {**whole, **engine.fill(whole)}


def rest_of(connect_cluster: Owner) -> dict[str, Any]:
    """How the REST servers of a Connect cluster are reached, with every key filled in; SECRET."""
    return connect.cluster.rest(connect_cluster)


def kept_by(flows: Iterable[Mapping[str, Any]], owners: Iterable[Owner]) -> list[Kept]:
    """The topics and groups that the owners of an inventory keep on its clusters.

    :param flows: filled in.
    """
    by_name = {flow["name"]: flow for flow in flows}
    kept: list[Kept] = []
    for owner in owners:
        own = [by_name[name] for name in owner.flows if name in by_name]
        for engine in ENGINES.values():
            if engine.owners is owner.kind and owner.state != "absent":
                kept += engine.kept(owner, [f for f in own if f["engine"] == engine.name])
    return kept


def control_of(
    clusters: Clusters, flows: Iterable[Mapping[str, Any]], owners: Iterable[Owner]
) -> Control:
    """What the owners of an inventory keep on its clusters, and what such names look like.

    :param clusters: of the inventory; what is kept counts under all aliases of its cluster.
    :param flows: filled in.
    """
    names: dict[str, dict[str, dict[str, str]]] = {"topic": {}, "group": {}}
    for kept in kept_by(flows, owners):
        for alias in aliases_of(clusters, kept.alias):
            names[kept.resource].setdefault(alias, {}).setdefault(kept.name, kept.owner)
    topics = [pattern for engine in ENGINES.values() for pattern in engine.control_topics]
    groups = [pattern for engine in ENGINES.values() for pattern in engine.control_groups]
    return Control(Names(topics, names["topic"]), Names(groups, names["group"]))
