"""The engines there are, by name, and the schema with what each of them reads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..engine import Engine
from ..errors import ModelError
from ..keys import Key
from ..schema import DEFAULT_VERSIONS, FLOW, INSTANCE
from . import mm1, mm2

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (mm1.ENGINE, mm2.ENGINE)}
# Engines of a later version, and the flow keys that are meant for them.
PLANNED = {"mm2-connect": frozenset(("connect", "consumer_groups", "tasks_max"))}
NOT_YET = "not yet supported in this version"


def not_yet(name: object) -> str:
    """Why an engine that is none of :data:`ENGINES` is refused."""
    return f"{name} is {NOT_YET}; use {' or '.join(ENGINES)}"


def engine_of(flow: Mapping[str, Any]) -> Engine:
    """The engine of a flow.

    :raises ModelError: none of this version.
    """
    name = flow.get("engine")
    if name not in ENGINES:
        raise ModelError(f"mirror_flows[{flow.get('name')}].engine: {not_yet(name)}")
    return ENGINES[name]


def flow_keys() -> tuple[Key, ...]:
    """The schema of a flow: the engines to choose from, and the keys that only some understand."""
    readers = {name: engine.flow_keys for name, engine in ENGINES.items()} | PLANNED
    reasons = {name.upper(): not_yet(name) for name in PLANNED}
    return tuple(
        replace(key, choices=tuple(readers), reasons=reasons)
        if key.name == "engine"
        else _read_by(readers, key)
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
