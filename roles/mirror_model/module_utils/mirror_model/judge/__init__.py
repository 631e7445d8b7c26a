"""Is what the inventory says a mirror that can work? Every problem is found, none is acted on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..engines import ENGINES
from ..inventory import Inventory
from ..keys import suggestion
from ..schema import ACCEPTANCES
from ..site import Site
from . import owners, secrets, topics
from .clusters import judge_clusters
from .flows import judge_flows


def findings(
    site: Site,
    hosts: Sequence[str],
    groups: Mapping[str, Any] | None = None,
    *,
    advisories: Sequence[Mapping[str, Any]],
) -> dict[str, list[str]]:
    """Judge the whole inventory before anything changes.

    :param hosts: every host of the inventory.
    :param groups: inventory groups; given, a site that mirrors without a report host is refused.
    :param advisories: entries of ``files/advisories.yml``.
    :returns: ``errors`` and ``warnings``; each message names the variable and the cure, and none
        quotes a password.
    """
    instances, flows = site.mirrormaker_instances, site.mirror_flows
    found = Inventory(site.clusters)
    _judge_accept(found, site.mirror_accept)
    judge_clusters(found, site.kafka_clusters)
    judge_flows(found, flows)
    owners.judge_instances(found, instances, hosts)
    owners.judge_connect_clusters(found, site.kafka_connect_clusters, flows, hosts)
    _judge_acceptances(found, {entry["cve"] for entry in advisories}, instances)
    owners.judge_placement(found)
    topics.judge_topics(found)
    for engine in ENGINES.values():
        engine.judge(found, [f for f in found.flows.values() if f["engine"] == engine.name])
    if not found.errors:
        owners.judge_heaps(found)
    secrets.judge_secrets(found)
    owners.judge_versions(found, advisories)
    owners.judge_groups(found, groups)
    return {"errors": list(found.errors), "warnings": list(found.warnings)}


def _judge_accept(found: Inventory, accept: Any) -> None:
    """Take over ``mirror_accept``, if it is a list of names."""
    entries = [] if accept is None else accept
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        found.accept = entries
    else:
        found.refuse("mirror_accept: must be a list of names, such as [CVE-2026-35554]")


def _judge_acceptances(found: Inventory, cves: set[str], instances: Any) -> None:
    """Refuse entries that accept nothing.

    :param cves: the advisories there are.
    :param instances: ``mirrormaker_instances``, whatever its shape.
    """
    members: dict[str, Iterable[Any]] = {
        "flow": found.named,
        "instance": instances if isinstance(instances, Mapping) else (),
        "cluster": found.clusters,
    }
    for entry in found.accept:
        danger, colon, name = entry.partition(":")
        if not colon:
            if entry not in cves:
                known = cves | {f"{key}:<{kind}>" for key, kind in ACCEPTANCES.items()}
                found.refuse(f"mirror_accept: unknown entry '{entry}'; {suggestion(entry, known)}")
        elif danger not in ACCEPTANCES:
            found.refuse(
                f"mirror_accept: unknown danger '{danger}' in '{entry}'; "
                f"{suggestion(danger, ACCEPTANCES)}"
            )
        elif name not in members[ACCEPTANCES[danger]]:
            kind = ACCEPTANCES[danger]
            found.refuse(
                f"mirror_accept: '{entry}' names no {kind}; {suggestion(name, members[kind])}"
            )
