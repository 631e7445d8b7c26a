"""Flows: their shape, their engine's keys, and the clusters between which they mirror."""

from collections.abc import Iterable, Mapping
from typing import Any

from .. import regex
from ..clusters import brokers_of
from ..engine import Engine
from ..engines import engine_of, flow_keys, flow_of
from ..keys import Key, ModelError, check_map, suggestion
from ..validation import Validation


def validate_flows(validation: Validation, flows: Any) -> None:
    """Validate ``mirror_flows`` one by one; those of the right shape are noted."""
    if not isinstance(flows, list):
        validation.refuse("mirror_flows: must be a list of flows, each '- name: ...'")
        return
    for place, flow in enumerate(flows):
        name = flow.get("name") if isinstance(flow, Mapping) else None
        path = f"mirror_flows[{name if isinstance(name, str) and name else place}]"
        before = len(validation.errors)
        if not check_map(path, flow, flow_keys(), validation.refuse):
            continue
        taken = isinstance(name, str) and name in validation.named
        validation.named |= {name} if isinstance(name, str) else set()
        for key in ("topics", "topics_exclude", "consumer_groups"):
            for pattern in flow.get(key) or () if isinstance(flow.get(key), list) else ():
                _validate_pattern(validation, f"{path}.{key}", pattern)
        if taken:
            validation.refuse(f"{path}: the name is used twice; rename one")
        elif len(validation.errors) == before:
            validation.flows[flow["name"]] = flow_of(flow)
            validation.paths[flow["name"]] = path
            _validate_engine(validation, path, flow)
            _validate_ends(validation, path, flow)


def _validate_pattern(validation: Validation, path: str, pattern: Any) -> None:
    if isinstance(pattern, str) and pattern:
        try:
            regex.parsed(pattern)
        except ModelError as problem:
            validation.refuse(f"{path}: {problem}")


def _validate_engine(validation: Validation, path: str, flow: Mapping[str, Any]) -> None:
    engine = engine_of(flow)
    validate_foreign_keys(validation, path, flow, flow_keys(), engine)
    if flow.get("start") == "latest":
        validation.warn(
            f"{path}.start: latest leaves out what a topic held before it was found; earliest "
            "mirrors all of it"
        )
    policy = flow.get("replication_policy")
    if policy and policy not in engine.policies:
        validation.refuse(
            f"{path}.replication_policy: {engine.title} keeps topic names; write "
            f"{' or '.join(engine.policies)} or remove it"
        )


def validate_foreign_keys(
    validation: Validation, path: str, value: Mapping[str, Any], keys: Iterable[Key], engine: Engine
) -> None:
    """Refuse keys of a flow or an owner that mean nothing to an engine."""
    for key in keys:
        if key.engines and engine.name not in key.engines and value.get(key.name):
            validation.refuse(
                f"{path}.{key.name}: means nothing to engine {engine.name}, only to "
                f"{' and '.join(key.engines)}; remove it"
            )


def _validate_ends(validation: Validation, path: str, flow: Mapping[str, Any]) -> None:
    ends = [flow["source"], flow["target"]]
    for side in ("source", "target"):
        if flow[side] not in validation.clusters:
            validation.refuse(
                f"{path}.{side}: '{flow[side]}' is no cluster of kafka_clusters; "
                f"{suggestion(flow[side], validation.clusters)}"
            )
    if ends[0] == ends[1]:
        validation.refuse(f"{path}.target: is the source itself; name another cluster")
    elif shared := set.intersection(*(brokers_of(validation.clusters, end) for end in ends)):
        validation.refuse(
            f"{path}: '{ends[0]}' and '{ends[1]}' share the broker {min(shared)}, so they are "
            "one cluster; correct bootstrap_servers in kafka_clusters"
        )
