"""Flows as their engines understand them, and the owners that place them on hosts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .engine import Engine
from .engines import engine_of
from .filled import filled
from .keys import defaults_of
from .owner import Owner, instance_of
from .schema import FLOW


def flow_of(flow: Mapping[str, Any]) -> dict[str, Any]:
    """A flow with every key filled in, as its engine understands it.

    :raises ModelError: an engine that this version does not have.
    """
    engine = engine_of(flow)
    whole = filled(flow, defaults_of(FLOW))
    if whole["replication_policy"] not in engine.policies:
        whole["replication_policy"] = engine.policies[0]
    return {**whole, **engine.fill(whole)}


def instances_of(instances: Mapping[str, Any]) -> list[Owner]:
    """Every instance as an owner."""
    return [instance_of(instances, name) for name in instances]


def placed(
    flows: Sequence[Mapping[str, Any]], owners: Iterable[Owner]
) -> list[tuple[dict[str, Any], Engine, Owner]]:
    """The flows that an owner places on hosts, in the inventory's order.

    :returns: each flow, filled in, its engine and its owner.
    """
    by_flow = {
        flow: owner
        for owner in owners
        if owner.state != "absent" and owner.hosts
        for flow in owner.flows
    }
    return [
        (flow_of(flow), engine_of(flow), by_flow[flow["name"]])
        for flow in flows
        if flow["name"] in by_flow
    ]
