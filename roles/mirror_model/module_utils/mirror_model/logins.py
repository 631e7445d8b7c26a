"""What whoever is no mirror gets to reach the clusters of a site."""

from typing import Any

from .clusters import cluster_of, credentials_of, identity_of, uses_sasl
from .site import Site


def kafka_credentials(site: Site, alias: str, identity: str) -> dict[str, str]:
    """The credential files with which one identity reaches one cluster, SECRET.

    :returns: as of :func:`.clusters.credentials_of`.
    """
    return credentials_of(site.clusters, alias, identity)


def kafka_python_client(site: Site, alias: str, identity: str) -> dict[str, Any]:
    """How kafka-python reaches one cluster.

    :param alias: which cluster.
    :param identity: for which purpose.
    :returns: bootstrap_servers and security_protocol; with SASL also sasl_mechanism, username and
        password (SECRET); with TLS also ssl_ca, if the authority is an own one, and the identity's
        ssl_certificate and ssl_key (SECRET), all PEM text.
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    cluster = cluster_of(site.clusters, alias)
    client: dict[str, Any] = {
        "bootstrap_servers": list(cluster["bootstrap_servers"]),
        "security_protocol": cluster["security_protocol"],
    }
    files = credentials_of(site.clusters, alias, identity)
    if uses_sasl(cluster):
        who = identity_of(site.clusters, alias, identity)
        client |= {
            "sasl_mechanism": who["sasl_mechanism"],
            "username": who["username"],
            "password": files[f"{alias}.{identity}.password"],
        }
    return client | {
        key: files[f"{alias}.{identity}.{kind}.pem"]
        for key, kind in (("ssl_ca", "ca"), ("ssl_certificate", "cert"), ("ssl_key", "key"))
        if f"{alias}.{identity}.{kind}.pem" in files
    }
