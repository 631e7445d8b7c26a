"""Is what the inventory says a mirror that can work? Every problem is found, none is acted on."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..engines import ENGINES, NOT_YET
from ..inventory import Inventory
from . import acceptances, owners, secrets, topics, versions
from .clusters import judge_clusters
from .flows import judge_flows


def findings(
    clusters: Any,
    flows: Any,
    instances: Any,
    connect_clusters: Any,
    accept: Any,
    hosts: Sequence[str],
    groups: Mapping[str, Any] | None = None,
    *,
    advisories: Sequence[Mapping[str, Any]],
) -> dict[str, list[str]]:
    """Judge the whole inventory before anything changes.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param connect_clusters: ``kafka_connect_clusters``.
    :param accept: ``mirror_accept``.
    :param hosts: every host of the inventory.
    :param groups: inventory groups; given, a site that mirrors without a report host is refused.
    :param advisories: entries of ``files/advisories.yml``.
    :returns: ``errors`` and ``warnings``; each message names the variable and the cure, and none
        quotes a password.
    """
    found = Inventory(clusters if isinstance(clusters, dict) else {})
    acceptances.judge_accept(found, accept)
    judge_clusters(found, clusters)
    judge_flows(found, flows)
    owners.judge_instances(found, instances, hosts)
    acceptances.judge_acceptances(found, {entry["cve"] for entry in advisories}, instances)
    if connect_clusters:
        found.refuse(f"kafka_connect_clusters: {NOT_YET}; set it to {{}}")
    owners.judge_placement(found)
    topics.judge_topics(found)
    for engine in ENGINES.values():
        engine.judge(found, [f for f in found.flows.values() if f["engine"] == engine.name])
    secrets.judge_secrets(found)
    versions.judge_versions(found, advisories)
    owners.judge_groups(found, groups)
    return {"errors": found.errors, "warnings": found.warnings}
