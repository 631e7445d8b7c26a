"""Flows: their shape, their engine's keys, and the clusters between which they mirror."""

from collections.abc import Iterable, Mapping
from typing import Any

from .. import regex
from ..clusters import brokers_of
from ..engine import Engine
from ..engines import engine_of, flow_keys, flow_of
from ..inventory import Inventory
from ..keys import Key, ModelError, check_map, suggestion


def judge_flows(found: Inventory, flows: Any) -> None:
    """Judge ``mirror_flows`` one by one; those of the right shape are noted."""
    if not isinstance(flows, list):
        found.refuse("mirror_flows: must be a list of flows, each '- name: ...'")
        return
    for place, flow in enumerate(flows):
        name = flow.get("name") if isinstance(flow, Mapping) else None
        path = f"mirror_flows[{name if isinstance(name, str) and name else place}]"
        before = len(found.errors)
        if not check_map(path, flow, flow_keys(), found.refuse):
            continue
        known = isinstance(name, str) and name in found.named
        found.named |= {name} if isinstance(name, str) else set()
        for key in ("topics", "topics_exclude", "consumer_groups"):
            for pattern in flow.get(key) or () if isinstance(flow.get(key), list) else ():
                _judge_pattern(found, f"{path}.{key}", pattern)
        if known:
            found.refuse(f"{path}: the name is used twice; rename one")
        elif len(found.errors) == before:
            found.flows[flow["name"]] = flow_of(flow)
            found.paths[flow["name"]] = path
            _judge_engine(found, path, flow)
            _judge_ends(found, path, flow)


def _judge_pattern(found: Inventory, path: str, pattern: Any) -> None:
    if isinstance(pattern, str) and pattern:
        try:
            regex.check(pattern)
        except ModelError as problem:
            found.refuse(f"{path}: {problem}")


def _judge_engine(found: Inventory, path: str, flow: Mapping[str, Any]) -> None:
    engine = engine_of(flow)
    judge_foreign_keys(found, path, flow, flow_keys(), engine)
    if flow.get("start") == "latest":
        found.warn(
            f"{path}.start: latest leaves out what a topic held before it was found; earliest "
            "mirrors all of it"
        )
    policy = flow.get("replication_policy")
    if policy and policy not in engine.policies:
        found.refuse(
            f"{path}.replication_policy: {engine.title} keeps topic names; write "
            f"{' or '.join(engine.policies)} or remove it"
        )


def judge_foreign_keys(
    found: Inventory, path: str, value: Mapping[str, Any], keys: Iterable[Key], engine: Engine
) -> None:
    """Refuse keys of a flow or an owner that mean nothing to an engine."""
    for key in keys:
        if key.engines and engine.name not in key.engines and value.get(key.name):
            found.refuse(
                f"{path}.{key.name}: means nothing to engine {engine.name}, only to "
                f"{' and '.join(key.engines)}; remove it"
            )


def _judge_ends(found: Inventory, path: str, flow: Mapping[str, Any]) -> None:
    ends = [flow["source"], flow["target"]]
    for side in ("source", "target"):
        if flow[side] not in found.clusters:
            found.refuse(
                f"{path}.{side}: '{flow[side]}' is no cluster of kafka_clusters; "
                f"{suggestion(flow[side], found.clusters)}"
            )
    if ends[0] == ends[1]:
        found.refuse(f"{path}.target: is the source itself; name another cluster")
    elif shared := set.intersection(*(brokers_of(found.clusters, end) for end in ends)):
        found.refuse(
            f"{path}: '{ends[0]}' and '{ends[1]}' share the broker {min(shared)}, so they are "
            "one cluster; correct bootstrap_servers in kafka_clusters"
        )
