"""Filters about one instance: what is known of its clusters, and what must not change."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

# Of MirrorMaker 2's own topics, where the target has as many brokers.
REPLICATION_FACTOR = 3


def mirrormaker_clusters(
    flows: Iterable[Mapping[str, Any]], names: Collection[str], remembered: Mapping[str, Any]
) -> dict[str, Any]:
    """What is known of an instance's clusters.

    :param flows: those of the check's document; empty before it has run.
    :param names: of the instance's flows.
    :param remembered: the identity that its host remembers; empty on a new host.
    :returns: ``source_ids``, alias to cluster id of the sources that were seen; ``target_id``;
        ``brokers``, by which replication factors are chosen: once, so those that the target had
        then, whichever it has now. ``None``: unknown.
    """
    seen = [flow for flow in flows if flow["name"] in names]
    source_ids = {
        flow["source"]: flow["source_cluster_id"] for flow in seen if flow["source_cluster_id"]
    }
    target_ids = (flow["target_cluster_id"] for flow in seen if flow["target_cluster_id"])
    target_id = next(target_ids, remembered.get("target_cluster_id"))
    brokers = remembered.get("replication_factor")
    if not brokers or remembered.get("target_cluster_id") != target_id:
        brokers = next((flow["target_brokers"] for flow in seen if flow["target_brokers"]), None)
    return {"source_ids": source_ids, "target_id": target_id, "brokers": brokers}


def mirrormaker_identity(
    identity: Mapping[str, Any],
    clusters: Mapping[str, Any],
    remembered: Mapping[str, Any],
    several_sources: bool,
) -> dict[str, Any]:
    """What must not change unnoticed.

    :param identity: what the model knows of it.
    :param clusters: as :func:`mirrormaker_clusters` returns them.
    :param remembered: the identity that its host remembers; empty on a new host.
    :param several_sources: MirrorMaker 2. The id of a source that is mirrored no more stays known
        until it is seen under another alias.
    """
    seen, brokers = clusters["source_ids"], clusters["brokers"]
    if not several_sources:
        source_id = next(iter(seen.values()), remembered.get("source_cluster_id"))
        known: dict[str, Any] = {"source_cluster_id": source_id}
    else:
        former = remembered.get("source_cluster_ids") or {}
        kept = {alias: known for alias, known in former.items() if known not in seen.values()}
        known = {
            "source_cluster_ids": kept | seen,
            "replication_factor": min(brokers, REPLICATION_FACTOR) if brokers else None,
        }
    return {**identity, "target_cluster_id": clusters["target_id"], **known}


def mirrormaker_brokers(flows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many brokers clusters have, by alias, as far as a check saw it.

    :param flows: those of the check's document.
    """
    return {
        flow[side]: flow[f"{side}_brokers"]
        for flow in flows
        for side in ("source", "target")
        if flow[f"{side}_brokers"]
    }


def mirrormaker_said(answer: Mapping[str, Any]) -> str:
    """What a command of the report's client said, in one line, its last error if nothing else.

    :param answer: as a task registered it.
    """
    lines = str(answer.get("stderr") or "no answer").strip().splitlines()
    return str(answer.get("stdout") or "").strip() or lines[-1]


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            "mirrormaker_brokers": mirrormaker_brokers,
            "mirrormaker_clusters": mirrormaker_clusters,
            "mirrormaker_identity": mirrormaker_identity,
            "mirrormaker_said": mirrormaker_said,
        }
