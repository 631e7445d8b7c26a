"""How clients reach a cluster: credentials, Java properties, kafka-python's connection."""

from collections.abc import Callable, Mapping
from typing import Any

from .keys import Clusters, ModelError, defaults_of, filled, member
from .layout import Placed
from .render import to_jaas
from .schema import CLUSTER, IDENTITY

NOBODY = defaults_of(IDENTITY)
PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"


def filled_clusters(clusters: Any) -> Clusters:
    """``kafka_clusters`` with every key of clusters and identities filled in.

    What has not the right shape stays as it is written; who is written without a key is nobody.
    """
    if not isinstance(clusters, Mapping):
        return {}
    return {
        alias: _filled_cluster(cluster) if isinstance(cluster, Mapping) else cluster
        for alias, cluster in clusters.items()
    }


def _filled_cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    whole = filled(cluster, defaults_of(CLUSTER))
    if isinstance(whole["identities"], Mapping):
        whole["identities"] = {
            name: filled(who, defaults_of(IDENTITY)) if who and isinstance(who, Mapping) else who
            for name, who in whole["identities"].items()
        }
    return whole


def cluster_of(clusters: Clusters, alias: str) -> Mapping[str, Any]:
    """One cluster.

    :raises ModelError: no such alias.
    """
    cluster: Mapping[str, Any] = member("kafka_clusters", clusters, alias)
    return cluster


def brokers_of(clusters: Clusters, alias: str) -> set[str]:
    """The addresses that a cluster is asked at first; none of what has not the right shape."""
    cluster = clusters.get(alias)
    servers = cluster.get("bootstrap_servers") if isinstance(cluster, Mapping) else None
    return {str(server).lower() for server in servers} if isinstance(servers, list) else set()


def aliases_of(clusters: Clusters, alias: str) -> list[str]:
    """All aliases of a cluster, in the inventory's order: those that share an address with it.

    Two that name different listeners of one cluster look like two.
    """
    same, asked = {alias}, brokers_of(clusters, alias)
    while more := {a for a in clusters if a not in same and asked & brokers_of(clusters, a)}:
        same |= more
        asked = asked.union(*(brokers_of(clusters, each) for each in more))
    return [each for each in clusters if each in same] or [alias]


def identity_of(clusters: Clusters, alias: str, identity: str) -> Mapping[str, Any]:
    """Who connects to a cluster for one purpose; ``mirror`` stands in for what is not defined.

    :returns: every key of an identity; ``None`` for what the cluster does not ask for.
    """
    identities = cluster_of(clusters, alias)["identities"]
    return identities.get(identity) or identities.get("mirror") or NOBODY


def uses_sasl(cluster: Mapping[str, Any]) -> bool:
    """Whether clients of this cluster log in."""
    return str(cluster["security_protocol"]).startswith("SASL_")


def uses_tls(cluster: Mapping[str, Any]) -> bool:
    """Whether connections to this cluster are encrypted."""
    return str(cluster["security_protocol"]).endswith("SSL")


def credentials_of(clusters: Clusters, alias: str, identity: str) -> dict[str, str]:
    """The credential files with which one identity reaches one cluster.

    :param clusters: of a site.
    :param alias: which cluster.
    :param identity: for which purpose; the files are named by it even where ``mirror`` stands in.
    :returns: file name to content, SECRET: ``<alias>.<identity>.jaas`` (complete value of
        ``sasl.jaas.config``), ``.password`` (the raw one), ``.ca.pem``, ``.cert.pem`` and
        ``.key.pem``; only what is needed.
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    cluster = cluster_of(clusters, alias)
    who = identity_of(clusters, alias, identity)
    files = {}
    if uses_sasl(cluster):
        try:
            files[f"{alias}.{identity}.jaas"] = to_jaas(who)
        except ModelError as problem:
            raise ModelError(f"kafka_clusters.{alias}.identities: {problem}") from None
        files[f"{alias}.{identity}.password"] = str(who["password"])
    if uses_tls(cluster):
        files |= {
            f"{alias}.{identity}.{kind}": str(text).rstrip("\n") + "\n"
            for kind, text in (
                ("ca.pem", cluster["ssl_ca"]),
                ("cert.pem", who["ssl_certificate"]),
                ("key.pem", who["ssl_key"]),
            )
            if text
        }
    return files


def client_properties(
    clusters: Clusters, alias: str, identity: str, directory: str
) -> dict[str, Any]:
    """Java client properties with which a process reaches one cluster.

    :param clusters: of a site.
    :param alias: which cluster.
    :param identity: for which purpose.
    :param directory: where the process finds its credentials.
    :returns: property name to value; secrets appear as config-provider references, never in clear.
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    connection = connection_properties(
        clusters, alias, identity, lambda file: reference("dir", directory, file)
    )
    return connection | (providers(directory) if credentials_of(clusters, alias, identity) else {})


def providers(*directories: str) -> dict[str, Any]:
    """The config provider that resolves references to files of directories."""
    return {
        "config.providers": "dir",
        "config.providers.dir.class": PROVIDER,
        "config.providers.dir.param.allowed.paths": Placed(",".join(directories)),
    }


def reference(provider: str, path: str, key: str) -> str:
    """What a config provider turns into a secret.

    :param path: empty for a provider that needs none.
    """
    text = f"${{{provider}:{path}:{key}}}" if path else f"${{{provider}:{key}}}"
    return Placed(text) if isinstance(path, Placed) else text


def connection_properties(
    clusters: Clusters, alias: str, identity: str, refer: Callable[[str], str]
) -> dict[str, Any]:
    """Java client properties of a connection, and of nothing else.

    :param clusters: of a site.
    :param alias: which cluster.
    :param identity: for which purpose.
    :param refer: name of a credential to what stands for it.
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    cluster = cluster_of(clusters, alias)
    files = credentials_of(clusters, alias, identity)
    properties: dict[str, Any] = {
        "bootstrap.servers": list(cluster["bootstrap_servers"]),
        "security.protocol": cluster["security_protocol"],
    }
    if uses_sasl(cluster):
        who = identity_of(clusters, alias, identity)
        properties["sasl.mechanism"] = who["sasl_mechanism"]
        properties["sasl.jaas.config"] = refer(f"{alias}.{identity}.jaas")
    for store, key, kind in (
        ("ssl.truststore", "certificates", "ca.pem"),
        ("ssl.keystore", "certificate.chain", "cert.pem"),
        ("ssl.keystore", "key", "key.pem"),
    ):
        if f"{alias}.{identity}.{kind}" in files:
            properties[f"{store}.type"] = "PEM"
            properties[f"{store}.{key}"] = refer(f"{alias}.{identity}.{kind}")
    return properties
