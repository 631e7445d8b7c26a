"""What an operator's tools get to reach clusters as chosen identities."""

from collections.abc import Mapping
from typing import Any

from . import kafka_names
from .clusters import client_properties, cluster_of, credentials_of
from .kafka_names import REFERENCE
from .keys import Clusters, ModelError, layered, member, suggestion
from .site import Site


def operator_files(
    site: Site, identities: Mapping[str, Any], directory: str
) -> dict[str, dict[str, Any]]:
    """The files with which Kafka's scripts reach clusters as chosen identities.

    :param identities: alias to the names of identities; none where nobody logs in.
    :param directory: where the credentials lie.
    :returns: ``properties`` (file name to Java properties, secrets as references) and
        ``credentials`` (file name to content, SECRET).
    :raises ModelError: an unknown alias or identity, or properties that refer to the credentials of
        a service. No other identity stands in for one that is not defined.
    """
    line = kafka_names.LINES[-1]
    properties: dict[str, Any] = {}
    credentials: dict[str, str] = {}
    clusters = site.clusters
    for alias, chosen in identities.items():
        _check(clusters, alias, chosen)
        own = cluster_of(clusters, alias)["properties"]
        for name, value in own.items():
            if REFERENCE.search(str(value)):
                raise ModelError(
                    f"kafka_clusters.{alias}.properties['{name}']: refers to a credential of a "
                    "service, which no operator has; give the secret in identities"
                )
        security = {k: v for k, v in own.items() if k in kafka_names.SECURITY[line]}
        for identity in chosen or [""]:
            who = identity or "mirror"
            files = credentials_of(clusters, alias, who)
            credentials |= {k: v for k, v in files.items() if not k.endswith(".password")}
            properties[f"{alias}.{identity}.properties" if identity else f"{alias}.properties"] = (
                layered(
                    client_properties(clusters, alias, who, directory),
                    kafka_names.of_client(own, "admin", line),
                    security,
                )
            )
    return {"properties": properties, "credentials": credentials}


def _check(clusters: Clusters, alias: str, chosen: Any) -> None:
    """Refuse what is not defined, naming what is."""
    where = f"kafka_as_identities.{alias}"
    if alias not in clusters:
        raise ModelError(f"{where}: is no cluster of kafka_clusters; {suggestion(alias, clusters)}")
    defined = member("kafka_clusters", clusters, alias).get("identities") or {}
    if not isinstance(chosen, list):
        raise ModelError(f"{where}: must be a list of identities, such as [admin]")
    for identity in chosen:
        if identity not in defined:
            raise ModelError(
                f"{where}: '{identity}' is no identity of kafka_clusters.{alias}; "
                f"{suggestion(identity, defined)}"
            )
    if defined and not chosen:
        raise ModelError(
            f"{where}: is empty, and no identity is taken unasked; known: "
            f"{', '.join(sorted(defined))}"
        )
