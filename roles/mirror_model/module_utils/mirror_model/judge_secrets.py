"""Secrets, references to them, and who the brokers have to be, in every layer of properties."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .clusters import credentials_directory, kafka_credentials, uses_tls
from .errors import ModelError
from .inventory import Inventory
from .mm2_names import REST_TLS
from .schema import HIDDEN_KEYS, HOST_NAMES, SECRET_KEYS

# As org.apache.kafka.common.config.ConfigTransformer reads it: ${provider:path:key}.
REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
PREFIXES = re.compile(r"(listeners\.https|producer\.override|consumer|producer|admin)\.")
# What names of listeners' and plug-ins' own properties end with when they hold a secret.
SECRET_NAME = re.compile(r"(password|passphrase|secret|jaas\.config|keystore\.key)$", re.IGNORECASE)


@dataclass(frozen=True)
class Property:
    """A property somewhere in the inventory.

    :param where: the variable and the key, as a user would look for them.
    :param name: Kafka's own name, without prefixes.
    :param value: its text.
    :param cluster: alias whose connection it is about; empty where it is about none.
    :param instances: the processes that get it.
    """

    where: str
    name: str
    value: str
    cluster: str
    instances: tuple[str, ...]


def judge_secrets(found: Inventory) -> None:
    """Refuse references that come to nothing, and connections to whoever answers."""
    for one in _properties(found):
        references = list(REFERENCE.finditer(one.value))
        if references:
            _judge_references(found, one, references)
        elif one.name not in HIDDEN_KEYS and SECRET_NAME.search(one.name) and one.value:
            found.warn(
                f"{one.where}: looks like a secret; it stands in clear in a file that the service "
                "can read and in what Ansible shows with --diff"
            )
        elif one.name in SECRET_KEYS and one.value and f"['{REST_TLS}" in one.where:
            found.warn(
                f"{one.where}: stands in clear in a file that the service can read and in what "
                "Ansible shows with --diff; let the store hold nothing that others trust"
            )
        if one.name == HOST_NAMES and one.value.strip().lower() != "https":
            _judge_host_names(found, one)


def exposed_properties(properties: Mapping[str, Any]) -> list[str]:
    """Which of a broker's properties would stand in clear, or refer to what the broker lacks.

    :param properties: Kafka's own name, with prefixes, to value; ``None`` removes a property.
    :returns: their names in order.
    """
    return sorted(
        name
        for name, value in properties.items()
        if value is not None and (SECRET_NAME.search(name) or "${" in str(value))
    )


def _judge_host_names(found: Inventory, one: Property) -> None:
    message = (
        f"{one.where}: the host's name in a certificate is not checked any more, so whoever holds "
        "a certificate of the same authority can pose as it; remove it"
    )
    if one.cluster:
        found.danger(HOST_NAMES, one.cluster, message)
    else:
        found.refuse(message)


def _judge_references(found: Inventory, one: Property, references: list[re.Match[str]]) -> None:
    """Kafka says nothing of a reference that it cannot resolve: it uses the literal text."""
    if one.name not in HIDDEN_KEYS:
        found.refuse(
            f"{one.where}: refers to a secret, and Kafka prints the value of this property; only "
            "passwords, keys and certificates may be references, so write the value itself"
        )
        return
    for reference in references:
        provider, path, file = reference.groups()
        if provider != "dir":
            found.refuse(
                f"{one.where}: no config provider '{provider}' is there, so the literal text "
                "would be used without a word; give the secret in kafka_clusters.<alias>."
                "identities, whose files the service gets"
            )
            continue
        for instance in one.instances:
            directory, files = _credentials(found, instance)
            if path != directory:
                found.refuse(
                    f"{one.where}: '{path}' is not where {instance} may read, so the literal text "
                    f"would be used without a word; its credentials are in {directory}"
                )
            elif file not in files:
                found.refuse(
                    f"{one.where}: {instance} has no credential '{file}', so the literal text "
                    f"would be used without a word; it has {', '.join(files) or 'none'}"
                )


def _credentials(found: Inventory, instance: str) -> tuple[str, list[str]]:
    """Where the process of an instance reads credentials, and their names."""
    flows = [found.flows[flow] for flow in found.instances[instance]["flows"]]
    aliases = dict.fromkeys(flow[side] for flow in flows for side in ("source", "target"))
    files: list[str] = []
    for alias in aliases:
        try:
            files += kafka_credentials(found.clusters, alias, "mirror")
        except ModelError:
            continue  # refused for its own reason
    # The process gets the whole JAAS value, not the password apart.
    return credentials_directory(instance), [f for f in files if not f.endswith(".password")]


def _properties(found: Inventory) -> Iterator[Property]:
    """Every property of every layer, unless the judge of its layer refuses its name anyway."""
    users = _users(found)
    for alias in sorted(found.sound):
        layer = found.clusters[alias].get("properties") or {}
        path = f"kafka_clusters.{alias}.properties"
        yield from _layer(path, layer, {"": alias}, users[alias])
    for name, flow in found.flows.items():
        owner = found.owner(name)
        instances = (owner[0],) if owner and set(owner[1]["flows"]) <= set(found.flows) else ()
        sides = {"consumer": flow["source"], "producer": flow["target"]}
        path = f"{found.paths[name]}.properties"
        yield from _layer(
            path, flow["properties"], sides if flow["engine"] == "mm1" else {}, instances
        )
    for name, instance in found.instances.items():
        if not set(instance["flows"]) <= set(found.flows):
            continue
        path = f"mirrormaker_instances.{name}"
        first = found.flows[instance["flows"][0]] if instance["flows"] else None
        if first and first["engine"] == "mm1":
            for side, end in (("consumer", "source"), ("producer", "target")):
                layer = instance[f"{side}_properties"]
                yield from _layer(f"{path}.{side}_properties", layer, {"": first[end]}, (name,))
        else:
            yield from _layer(
                f"{path}.worker_properties", instance["worker_properties"], {}, (name,)
            )


def _users(found: Inventory) -> dict[str, tuple[str, ...]]:
    """Alias to the instances whose process connects to that cluster."""
    users: dict[str, tuple[str, ...]] = dict.fromkeys(found.clusters, ())
    for name, instance in found.instances.items():
        flows = [found.flows[flow] for flow in instance["flows"] if flow in found.flows]
        if len(flows) < len(instance["flows"]):
            continue
        for alias in {flow[side] for flow in flows for side in ("source", "target")}:
            users[alias] = (*users.get(alias, ()), name)
    return users


def _layer(
    path: str, layer: Mapping[str, Any], clusters: Mapping[str, str], instances: tuple[str, ...]
) -> Iterator[Property]:
    """The properties of one layer.

    :param path: the variable.
    :param layer: key to value.
    :param clusters: prefix of a key to the cluster it is about. Where none is named, security is
        refused anyway, but for that of the nodes' own server.
    """
    for key, value in layer.items():
        if value is None:
            continue
        match = PREFIXES.match(key)
        prefix = match.group(1) if match else ""
        name = key.removeprefix(f"{prefix}.") if match else key
        cluster = clusters.get(prefix, "")
        if not cluster and name in HIDDEN_KEYS | {HOST_NAMES} and prefix != "listeners.https":
            continue
        text = ",".join(map(str, value if isinstance(value, list) else [value]))
        yield Property(f"{path}['{key}']", name, text, cluster, instances)


def judge_stores(found: Inventory, path: str, cluster: Mapping[str, Any]) -> None:
    """Judge stores of Java among a cluster's properties, which only Java reads.

    :param found: the inventory that is judged.
    :param path: the variable of the cluster.
    :param cluster: its value.
    """
    identities = cluster.get("identities") or {}
    mirror = identities.get("mirror") or {}
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
            found.refuse(f"{where}: contradicts {own}; keep one of the two")
        else:
            found.warn(
                f"{where}: only Java reads it; the report and the check before a start {cure}"
            )
