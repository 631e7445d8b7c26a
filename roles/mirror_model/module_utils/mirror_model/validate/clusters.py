"""Clusters: their aliases, identities, security and stores of certificates."""

from collections.abc import Mapping
from typing import Any

from ..client_names import validate_names
from ..clusters import uses_sasl, uses_tls
from ..kafka_names import ANY_CLIENT
from ..keys import check_map, filled
from ..schema import ALIAS, CLUSTER, IDENTITY, IDENTITY_NAME, RESERVED_ALIASES
from ..validation import Validation


def validate_clusters(validation: Validation, clusters: Any) -> None:
    """Validate ``kafka_clusters``; aliases of what is sound are noted."""
    if not isinstance(clusters, Mapping):
        validation.refuse("kafka_clusters: must be a map of alias to cluster")
        return
    for alias, cluster in clusters.items():
        path = f"kafka_clusters.{alias}"
        if not isinstance(alias, str) or not ALIAS.fullmatch(alias):
            validation.refuse(
                f"{path}: an alias is made of letters, digits, '_' and '-'; rename it"
            )
        elif alias.lower() in RESERVED_ALIASES:
            validation.refuse(
                f"{path}: '{alias}' begins Kafka's own property names; name the cluster after "
                "its place, such as east"
            )
        before = len(validation.errors)
        if not check_map(path, cluster, CLUSTER, validation.refuse):
            continue
        identities = cluster.get("identities") or {}
        if isinstance(identities, Mapping):
            for name, identity in identities.items():
                _validate_identity(validation, f"{path}.identities", name, identity)
        if len(validation.errors) == before:
            _validate_security(validation, path, cluster)
            validate_names(
                validation, f"{path}.properties", cluster.get("properties") or {}, ANY_CLIENT
            )
        if len(validation.errors) == before:
            validation.sound.add(alias)


def _validate_identity(validation: Validation, path: str, name: Any, identity: Any) -> None:
    if not isinstance(name, str) or not IDENTITY_NAME.fullmatch(name):
        validation.refuse(f"{path}: '{name}' is no name; use letters, digits, '_' and '-'")
        return
    path = f"{path}.{name}"
    if not check_map(path, identity, IDENTITY, validation.refuse):
        return
    if bool(identity.get("ssl_certificate")) != bool(identity.get("ssl_key")):
        validation.refuse(f"{path}: ssl_certificate and ssl_key belong together; add the other one")
    for key, kind, cure in (
        ("ssl_certificate", "CERTIFICATE", "look the file up instead of naming it"),
        ("ssl_key", "PRIVATE KEY", "convert it with openssl pkcs8 -topk8 -nocrypt"),
    ):
        value = identity.get(key)
        if isinstance(value, str) and f"-----BEGIN {kind}-----" not in value:
            validation.refuse(f"{path}.{key}: holds no PEM text with BEGIN {kind}; {cure}")
    for key in ("username", "password"):
        value = identity.get(key)
        if isinstance(value, str) and any(char in value for char in "\n\r\0"):
            validation.refuse(f"{path}.{key}: holds a line break or NUL, which no login can carry")


def _validate_security(validation: Validation, path: str, cluster: Mapping[str, Any]) -> None:
    cluster = filled(cluster, {"security_protocol": "PLAINTEXT"})
    identities = cluster.get("identities") or {}
    if uses_sasl(cluster):
        if not identities.get("mirror"):
            validation.refuse(
                f"{path}.identities.mirror: {cluster['security_protocol']} needs sasl_mechanism, "
                "username and password"
            )
        for name, identity in identities.items():
            needed = ("sasl_mechanism", "username", "password")
            if missing := [key for key in needed if not identity.get(key)]:
                validation.refuse(
                    f"{path}.identities.{name}: {' and '.join(missing)} missing; add it"
                )
    certified = sorted(name for name, who in identities.items() if who.get("ssl_certificate"))
    if certified and not uses_tls(cluster):
        validation.refuse(
            f"{path}.identities.{certified[0]}.ssl_certificate: {cluster['security_protocol']} "
            "does not encrypt; set security_protocol to SSL or SASL_SSL, or remove it"
        )
    if cluster.get("ssl_ca"):
        if not uses_tls(cluster):
            validation.refuse(
                f"{path}.ssl_ca: {cluster['security_protocol']} does not encrypt; set "
                "security_protocol to SSL or SASL_SSL, or remove it"
            )
        if "-----BEGIN CERTIFICATE-----" not in cluster["ssl_ca"]:
            validation.refuse(
                f"{path}.ssl_ca: is not PEM text; look the file up instead of naming it"
            )
    _validate_stores(validation, path, cluster)


def _validate_stores(validation: Validation, path: str, cluster: Mapping[str, Any]) -> None:
    """Validate stores of Java among a cluster's properties, which only Java reads."""
    mirror = (cluster.get("identities") or {}).get("mirror") or {}
    for kind, own, given, cure in (
        ("ssl.truststore.", "ssl_ca", cluster.get("ssl_ca"),
         "will trust what their host trusts, and fail where that did not sign the brokers' "
         "certificates; put the authority into ssl_ca instead (keytool -exportcert -rfc)"),
        ("ssl.keystore.", "identities.mirror.ssl_certificate", mirror.get("ssl_certificate"),
         "will show no client certificate, and fail where the brokers ask for one; give it in "
         "identities, as ssl_certificate and ssl_key"),
    ):  # fmt: skip
        stores = sorted(
            str(name) for name in cluster.get("properties") or {} if str(name).startswith(kind)
        )
        if not stores or not uses_tls(cluster):
            continue
        where = f"{path}.properties['{stores[0]}']"
        if given:
            validation.refuse(f"{where}: contradicts {own}; keep one of the two")
        else:
            validation.warn(
                f"{where}: only Java reads it; the report and the check before a start {cure}"
            )
