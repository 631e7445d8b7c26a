"""The inventory of a site as one value: what is written, and what follows from it alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .clusters import filled_clusters
from .engine import Engine
from .engines import control_of, engine_of, flow_of
from .keys import Clusters, Flow, ModelError, suggestion
from .owners import CONNECT_CLUSTERS, INSTANCES, Owner, owner_of
from .process import Process
from .processes import process_of

# Sites by what is written: a variable is evaluated at each use, mostly as it was before.
_REMEMBERED: dict[str, "Site"] = {}
MOST_REMEMBERED = 8


@dataclass(frozen=True, eq=False)
class Site:
    """What an inventory says about mirrors.

    The fields hold what is written, whatever its shape; the properties fill it in where they are
    first asked for, and raise :class:`.keys.ModelError` for what has no shape to be filled in.
    """

    kafka_clusters: Any
    mirror_flows: Any
    mirrormaker_instances: Any
    kafka_connect_clusters: Any
    mirror_accept: Any

    @cached_property
    def clusters(self) -> Clusters:
        """Alias to cluster, every key of it and of its identities filled in."""
        return filled_clusters(self.kafka_clusters)

    @cached_property
    def owners(self) -> Sequence[Owner]:
        """Every instance and every Connect cluster."""
        return [
            owner_of(kind, name, written, self.mirror_flows)
            for kind in (INSTANCES, CONNECT_CLUSTERS)
            for name, written in getattr(self, kind.variable).items()
        ]

    @cached_property
    def declared(self) -> Mapping[str, Flow]:
        """Name to flow, filled in as its engine understands it."""
        return {flow["name"]: flow_of(flow) for flow in self.mirror_flows}

    @cached_property
    def flows(self) -> Mapping[str, Flow]:
        """Name to flow of all that owners run, each with what it leaves out as well."""
        control = control_of(self.clusters, self.declared.values(), self.owners)
        return {
            name: control.guarded(flow, engine_of(flow).prefix(flow, owner))
            for owner in self.owners
            for name in owner.flows
            if (flow := self.declared.get(name))
        }

    @cached_property
    def placed(self) -> Sequence[tuple[Flow, Engine, Owner]]:
        """The flows that an owner places on hosts, each with its engine and its owner."""
        by_flow = {flow: owner for owner in self.owners if owner.works for flow in owner.flows}
        return [
            (self.flows[name], engine_of(flow), by_flow[name])
            for name, flow in self.declared.items()
            if name in by_flow
        ]

    def owner(self, name: str) -> Owner:
        """An instance or a Connect cluster.

        :raises ModelError: no such owner.
        """
        for owner in self.owners:
            if owner.name == name:
                return owner
        raise ModelError(
            f"{INSTANCES.variable}, {CONNECT_CLUSTERS.variable}: '{name}' is not defined; "
            f"{suggestion(name, (owner.name for owner in self.owners))}"
        )

    def process(self, name: str, node: Mapping[str, Any]) -> Process:
        """The process of an owner, made once for each of its nodes.

        :param node: as of :func:`.processes.process_of`.
        :raises ModelError: an unknown owner, flow or cluster, or flows that no process could run.
        """
        key = (name, repr(node))
        if key not in self._processes:
            made = process_of(self.clusters, self.flows, self.owner(name), node)
            self._processes[key] = made
        return self._processes[key]

    @cached_property
    def _processes(self) -> dict[tuple[str, str], Process]:
        return {}


def mirror_site(
    clusters: Any, flows: Any, instances: Any, connect_clusters: Any, accept: Any = ()
) -> Site:
    """The site that an inventory describes; the same one where the same is written.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param connect_clusters: ``kafka_connect_clusters``.
    :param accept: ``mirror_accept``.
    """
    written = (clusters, flows, instances, connect_clusters, accept)
    key = repr(written)
    if key not in _REMEMBERED:
        if len(_REMEMBERED) >= MOST_REMEMBERED:
            _REMEMBERED.clear()
        _REMEMBERED[key] = Site(*written)
    return _REMEMBERED[key]
