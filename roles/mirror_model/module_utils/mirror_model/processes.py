"""The process of an owner, made of what all engines share and what its engine adds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import tuned
from .clusters import credentials_of
from .engine import Engine
from .engines import ENGINES
from .keys import Clusters, Flow, ModelError, member
from .owners import Owner
from .process import Process


def process_of(
    clusters: Clusters, flows: Mapping[str, Flow], owner: Owner, node: Mapping[str, Any]
) -> Process:
    """The process of an instance, or the worker of a Connect cluster.

    :param flows: of the site, by name.
    :param node: what only the host and its clusters know: ``address`` of this host for the nodes of
        one instance, ``name`` of this host, ``brokers`` of the target; each may be missing.
    :returns: of an absent owner it has no more than name, engine and release.
    :raises ModelError: an unknown flow or cluster, or flows that no process could run.
    """
    chosen = [flows[flow] for flow in owner.flows if flow in flows]
    of_kind = [engine for engine in ENGINES.values() if engine.owners is owner.kind]
    # An owner may have no flow; which engine an absent one had makes no difference then.
    engine = ENGINES[chosen[0]["engine"]] if chosen else of_kind[0]
    process = Process(owner, engine.name, engine.title, owner.version(engine.kafka_version))
    if owner.state == "absent":
        return process
    for flow in owner.flows:
        member("mirror_flows", flows, flow)
    if owner.kind.names_flows:
        _check_flows(f"{owner.path}.flows", engine, chosen)
    target = chosen[0]["target"] if owner.kind.names_flows else owner.settings["kafka"]
    aliases = dict.fromkeys([*(flow["source"] for flow in chosen), target])
    shared = replace(
        process,
        flows=chosen,
        target=target,
        description=description_of(chosen, target),
        heap=owner.settings["heap"] or tuned.heap(engine.memory(clusters, chosen, owner)),
        identity={
            "engine": engine.name,
            "flows": [flow["name"] for flow in chosen],
            "target": target,
        },
        credentials={
            file: content
            for alias in aliases
            for file, content in credentials_of(clusters, alias, owner.identity).items()
        },
    )
    return engine.render(clusters, shared, node)


def _check_flows(path: str, engine: Engine, flows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse flows that no process could run, in an inventory that nobody validated."""
    if not flows or not (engine.several_flows or len(flows) == 1):
        runs = ", or ".join(
            f"{'flows' if each.several_flows else 'exactly one flow'} of engine {each.name}"
            for each in ENGINES.values()
        )
        raise ModelError(f"{path}: name {runs}")
    shared = {(flow["engine"], flow["target"], flow["replication_policy"]) for flow in flows}
    if len(shared) > 1:
        raise ModelError(f"{path}: the flows differ in engine, target or replication_policy")


def description_of(flows: Sequence[Mapping[str, Any]], target: str) -> str:
    """What an owner mirrors, in a few words."""
    way = f"from {flows[0]['source']} to" if len(flows) == 1 else "into"
    return f"{', '.join(flow['name'] for flow in flows) or 'nothing'} {way} {target}"
