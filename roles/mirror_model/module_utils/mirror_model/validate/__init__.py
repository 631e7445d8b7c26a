"""Whether the mirrors that an inventory describes can work: every problem is named at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..engines import ENGINES
from ..keys import suggestion
from ..owners import CONNECT_CLUSTERS, INSTANCES
from ..schema import ACCEPTANCES
from ..site import Site
from ..validation import Validation
from . import owners, secrets, topics
from .clusters import validate_clusters
from .flows import validate_flows


def validate_site(
    site: Site,
    hosts: Sequence[str],
    groups: Mapping[str, Any] | None = None,
    *,
    advisories: Sequence[Mapping[str, Any]],
) -> dict[str, list[str]]:
    """Validate the whole inventory before anything changes.

    :param hosts: every host of the inventory.
    :param groups: inventory groups; given, a site that mirrors without a report host is refused.
    :param advisories: entries of ``files/advisories.yml``.
    :returns: ``errors`` and ``warnings``; each message names the variable and the cure, and none
        quotes a password.
    """
    instances, flows = site.mirrormaker_instances, site.mirror_flows
    connect_clusters = site.kafka_connect_clusters or {}
    validation = Validation(site.clusters)
    _validate_accept(validation, site.mirror_accept)
    validate_clusters(validation, site.kafka_clusters)
    validate_flows(validation, flows)
    owners.validate_owners(validation, INSTANCES, instances, flows, hosts)
    owners.validate_owners(validation, CONNECT_CLUSTERS, connect_clusters, flows, hosts)
    owners.validate_connect_names(validation, connect_clusters)
    _validate_acceptances(validation, {entry["cve"] for entry in advisories}, instances)
    owners.validate_placement(validation)
    topics.validate_topics(validation)
    for engine in ENGINES.values():
        engine.validate(
            validation, [f for f in validation.flows.values() if f["engine"] == engine.name]
        )
    if not validation.errors:
        owners.validate_heaps(validation)
    secrets.validate_secrets(validation)
    owners.validate_versions(validation, advisories)
    owners.validate_groups(validation, groups)
    return {"errors": list(validation.errors), "warnings": list(validation.warnings)}


def _validate_accept(validation: Validation, accept: Any) -> None:
    """Take over ``mirror_accept``, if it is a list of names."""
    entries = [] if accept is None else accept
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        validation.accept = entries
    else:
        validation.refuse("mirror_accept: must be a list of names, such as [CVE-2026-35554]")


def _validate_acceptances(validation: Validation, cves: set[str], instances: Any) -> None:
    """Refuse entries that accept nothing.

    :param cves: the advisories there are.
    :param instances: ``mirrormaker_instances``, whatever its shape.
    """
    members: dict[str, Iterable[Any]] = {
        "flow": validation.named,
        "instance": instances if isinstance(instances, Mapping) else (),
        "cluster": validation.clusters,
    }
    for entry in validation.accept:
        danger, colon, name = entry.partition(":")
        if not colon:
            if entry not in cves:
                entries = cves | {f"{key}:<{kind}>" for key, kind in ACCEPTANCES.items()}
                validation.refuse(
                    f"mirror_accept: unknown entry '{entry}'; {suggestion(entry, entries)}"
                )
        elif danger not in ACCEPTANCES:
            validation.refuse(
                f"mirror_accept: unknown danger '{danger}' in '{entry}'; "
                f"{suggestion(danger, ACCEPTANCES)}"
            )
        elif name not in members[ACCEPTANCES[danger]]:
            kind = ACCEPTANCES[danger]
            validation.refuse(
                f"mirror_accept: '{entry}' names no {kind}; {suggestion(name, members[kind])}"
            )
