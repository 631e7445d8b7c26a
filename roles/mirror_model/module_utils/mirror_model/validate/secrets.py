"""Secrets, references to them, and who the brokers have to be, in every layer of properties."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..clusters import credentials_of
from ..engines import engine_of
from ..kafka_names import HIDDEN_KEYS, HOST_NAMES, REFERENCE, REST_TLS, SECRET_KEYS, SECRET_NAME
from ..keys import ModelError, Properties
from ..layout import HOST
from ..owners import Owner
from ..validation import Validation

PREFIXES = re.compile(r"(listeners\.https|producer\.override|consumer|producer|admin)\.")


@dataclass(frozen=True)
class Property:
    """A property somewhere in the inventory.

    :param where: the variable and the key, as a user would search for them.
    :param name: Kafka's own name, without prefixes.
    :param value: its text.
    :param cluster: alias whose connection it is about; empty where it is about none.
    :param owners: whose processes get it.
    """

    where: str
    name: str
    value: str
    cluster: str
    owners: tuple[Owner, ...]


def validate_secrets(validation: Validation) -> None:
    """Refuse references that come to nothing, and connections to whoever answers."""
    for prop in _properties(validation):
        if references := list(REFERENCE.finditer(prop.value)):
            _validate_references(validation, prop, references)
        elif prop.name not in HIDDEN_KEYS and SECRET_NAME.search(prop.name) and prop.value:
            validation.warn(
                f"{prop.where}: looks like a secret; it stands in clear in a file that the service "
                "can read and in what Ansible shows with --diff"
            )
        elif prop.name in SECRET_KEYS and prop.value and f"['{REST_TLS}" in prop.where:
            validation.warn(
                f"{prop.where}: stands in clear in a file that the service can read and in what "
                "Ansible shows with --diff; let the store hold nothing that others trust"
            )
        if prop.name == HOST_NAMES and prop.value.strip().lower() != "https":
            _validate_host_names(validation, prop)


def _validate_host_names(validation: Validation, prop: Property) -> None:
    message = (
        f"{prop.where}: the host's name in a certificate is not checked any more, so whoever holds "
        "a certificate of the same authority can pose as it; remove it"
    )
    if prop.cluster:
        validation.danger(HOST_NAMES, prop.cluster, message)
    else:
        validation.refuse(message)


def _validate_references(
    validation: Validation, prop: Property, references: list[re.Match[str]]
) -> None:
    """Kafka says nothing of a reference that it cannot resolve: it uses the literal text."""
    if prop.name not in HIDDEN_KEYS:
        validation.refuse(
            f"{prop.where}: refers to a secret, and Kafka prints the value of this property; only "
            "passwords, keys and certificates may be references, so write the value itself"
        )
        return
    for reference in references:
        provider, path, file = reference.groups()
        if provider != "dir":
            validation.refuse(
                f"{prop.where}: no config provider '{provider}' is there, so the literal text "
                "would be used without a word; give the secret in kafka_clusters.<alias>."
                "identities, whose files the service gets"
            )
            continue
        for owner in prop.owners:
            directory, files = _credentials(validation, owner)
            if path != directory:
                validation.refuse(
                    f"{prop.where}: '{path}' is not where {owner.name} may read, so the literal "
                    f"text would be used without a word; its credentials are in {directory}"
                )
            elif file not in files:
                validation.refuse(
                    f"{prop.where}: {owner.name} has no credential '{file}', so the literal text "
                    f"would be used without a word; it has {', '.join(files) or 'none'}"
                )


def _credentials(validation: Validation, owner: Owner) -> tuple[str, list[str]]:
    """Where the process of an owner reads credentials, and their names."""
    files: list[str] = []
    for alias in validation.aliases(owner):
        try:
            files += credentials_of(validation.clusters, alias, owner.identity)
        except ModelError:
            continue  # refused for its own reason
    # The process gets the whole JAAS value, not the password apart.
    return HOST.put(owner.name, owner.credentials), [
        f for f in files if not f.endswith(".password")
    ]


def _properties(validation: Validation) -> Iterator[Property]:
    """Every property of every layer, unless the check of its layer refuses its name anyway."""
    whole = [owner for owner in validation.owners if set(owner.flows) <= set(validation.flows)]
    for alias in sorted(validation.sound):
        users = tuple(owner for owner in whole if alias in validation.aliases(owner))
        layer = validation.clusters[alias].get("properties") or {}
        yield from _layer(f"kafka_clusters.{alias}.properties", layer, {"": alias}, users)
    for name, flow in validation.flows.items():
        runs = validation.owner(name)
        clusters = {client: flow[side] for client, side in engine_of(flow).flow_clients.items()}
        path = f"{validation.paths[name]}.properties"
        yield from _layer(
            path, flow["properties"], clusters, tuple(owner for owner in whole if owner == runs)
        )
    for owner in whole:
        for flow in validation.flows_of(owner)[:1]:
            for key, side in engine_of(flow).layers.items():
                for alias in validation.aliases(owner, side) if side else [""]:
                    layer = owner.settings[key]
                    yield from _layer(f"{owner.path}.{key}", layer, {"": alias}, (owner,))


def _layer(
    path: str, layer: Properties, clusters: Mapping[str, str], owners: tuple[Owner, ...]
) -> Iterator[Property]:
    """The properties of one layer.

    :param path: the variable.
    :param layer: key to value.
    :param clusters: prefix of a key to the cluster it is about. Where none is named, security is
        refused anyway, but for that of the nodes' own server.
    :param owners: whose processes get them.
    """
    for key, value in layer.items():
        if value is None:
            continue
        match = PREFIXES.match(key)
        prefix = match.group(1) if match else ""
        name = key.removeprefix(f"{prefix}.") if match else key
        cluster = clusters.get(prefix, "")
        if not cluster and name in HIDDEN_KEYS | {HOST_NAMES} and f"{prefix}." != REST_TLS:
            continue
        text = ",".join(map(str, value if isinstance(value, list) else [value]))
        yield Property(f"{path}['{key}']", name, text, cluster, owners)
