"""What only MirrorMaker 2 on Kafka Connect is asked."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from ... import kafka_names, regex
from ...clusters import credentials_of
from ...connectors import validate as connector_rules
from ...connectors import validate_keys
from ...keys import Flow, check_map, suggestion
from ...owners import CONNECT_CLUSTERS, Owner
from ...schema import CONNECT_REST, CONNECT_SECRETS, CONNECT_TOPICS
from ...validation import Validation
from . import cluster, connectors, keys

# Names and passwords as HTTP's basic authentication carries them, and Java's properties.
USER = re.compile(r"[^\x00-\x20:=#!\x7f]+")
PASSWORD = re.compile(r"[^\x00-\x1f\x7f]+")
# Of workers of ours: who reaches the port may guess as often as it answers.
PASSWORD_LENGTH = 12
SEPARATOR_OF = "{1}.properties"
HEARTBEATS = "heartbeats"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# From here on a worker can list what connectors may override.
ALLOWLIST = (4, 2, 0)


def validate(validation: Validation, flows: Sequence[Flow]) -> None:
    """Validate flows on Connect, and the Connect clusters there are."""
    for flow in flows:
        _validate_flow(validation, flow)
    names: dict[tuple[str, str], str] = {}
    for flow in flows:
        for kind in connectors.kinds(flow):
            place, name = str(flow["connect"]), connectors.name_of(flow, kind)
            if (place, name) in names:
                validation.refuse(
                    f"{validation.paths[flow['name']]}.connectors.{kind}: '{name}' is also the "
                    f"name of {names[place, name]}; choose another"
                )
            names[place, name] = f"the {kind} connector of flow '{flow['name']}'"
    ports: dict[tuple[str, int], str] = {}
    for owner in validation.owners:
        if owner.kind is not CONNECT_CLUSTERS:
            continue
        _validate_cluster(
            validation, owner, [flow for flow in flows if flow["connect"] == owner.name]
        )
        port = owner.settings["port"]
        for host in owner.hosts:
            if (other := ports.setdefault((host, port), owner.name)) != owner.name:
                validation.refuse(
                    f"{owner.path}.port: {port} on '{host}' is already that of '{other}'; set it "
                    f"to {port + 1}"
                )


def _validate_flow(validation: Validation, flow: Flow) -> None:
    path, owner = validation.paths[flow["name"]], validation.owner(flow["name"])
    for kind in flow["connectors"]:
        if kind not in connectors.CLASSES:
            validation.refuse(
                f"{path}.connectors: unknown kind '{kind}'; {suggestion(kind, connectors.CLASSES)}"
            )
    if not flow["connect"]:
        validation.refuse(f"{path}.connect: is missing; name one of kafka_connect_clusters")
    if owner is None or owner.kind is not CONNECT_CLUSTERS:
        return
    version = cluster.version(owner)
    validate_keys.validate_flow_keys(
        validation, f"{path}.properties", flow["properties"], version, keys.OWNED_FLOW_KEYS
    )
    connector_rules.validate_flow(validation, f"{path}.properties", flow)
    connector_rules.validate_names(
        validation, flow, owner, cluster.policy(flow, owner), SEPARATOR_OF
    )
    if flow["target"] != owner.settings["kafka"] in validation.clusters:
        validation.refuse(
            f"{path}.connect: '{owner.name}' writes to '{owner.settings['kafka']}', and the flow's "
            f"target is '{flow['target']}'; name a Connect cluster whose kafka is the target"
        )
    _validate_overrides(validation, flow, owner)
    if connectors.beats(flow):
        selected = regex.include_regex(flow["topics"], flow["topics_exclude"])
        if not re.fullmatch(selected, HEARTBEATS):
            validation.refuse(
                f"{path}.properties['emit.heartbeats.enabled']: heartbeats are written to "
                f"'{flow['source']}', and nothing mirrors them; add '{HEARTBEATS}' to topics"
            )


def _validate_overrides(validation: Validation, flow: Flow, owner: Owner) -> None:
    """Validate what connectors override of their workers' clients."""
    path = f"{validation.paths[flow['name']]}.properties"
    keys = ["emit.heartbeats.enabled"] if connectors.beats(flow) else []
    keys += [key for key in flow["properties"] if key.startswith("producer.override.")]
    if owner.hosts:
        version = cluster.version(owner)
        if keys and kafka_names.release(version) < ALLOWLIST:
            validation.refuse(
                f"{path}['{keys[0]}']: workers of Kafka {version} let connectors override all of "
                f"their clients or nothing; set kafka_version of '{owner.name}' to 4.2 or newer, "
                "or remove it"
            )
        return
    allowed = owner.settings["overrides"]
    if connectors.beats(flow) and allowed is not None and "bootstrap.servers" not in allowed:
        validation.refuse(
            f"{path}['emit.heartbeats.enabled']: its producer writes to '{flow['source']}', and "
            f"'{owner.name}' does not let connectors override bootstrap.servers; remove it"
        )


def _validate_cluster(validation: Validation, owner: Owner, flows: Sequence[Flow]) -> None:
    alias, path = owner.settings["kafka"], owner.path
    if alias not in validation.clusters:
        validation.refuse(
            f"{path}.kafka: '{alias}' is no cluster of kafka_clusters; "
            f"{suggestion(alias, validation.clusters)}"
        )
    parts = (("topics", CONNECT_TOPICS), ("rest", CONNECT_REST), ("secrets", CONNECT_SECRETS))
    before = len(validation.errors)
    for part, schema in parts:
        if owner.settings[part] or part != "secrets":
            check_map(f"{path}.{part}", owner.settings[part], schema, validation.refuse)
    if len(validation.errors) > before:
        return
    _validate_rest(validation, owner)
    if owner.hosts:
        _validate_workers(validation, owner)
    else:
        _validate_existing(validation, owner, flows)


def _validate_workers(validation: Validation, owner: Owner) -> None:
    version = cluster.version(owner)
    settable = keys.worker_keys(kafka_names.line_of(version))
    validate_keys.validate_worker_keys(validation, owner, keys.OWNED_WORKER_KEYS, settable)
    for key in ("secrets", "overrides"):
        if owner.settings[key]:
            validation.refuse(f"{owner.path}.{key}: is about clusters without hosts; remove it")


def _validate_existing(validation: Validation, owner: Owner, flows: Sequence[Flow]) -> None:
    """Validate what nobody but the inventory can know of a cluster that exists."""
    path, topics = owner.path, owner.settings["topics"]
    if missing := [kind.name for kind in CONNECT_TOPICS if not topics.get(kind.name)]:
        validation.refuse(
            f"{path}.topics: {' and '.join(missing)} missing; REST does not tell them, their owner "
            "does"
        )
    if not owner.settings["rest"].get("urls"):
        validation.refuse(
            f"{path}.rest.urls: is missing; name workers, or hosts that are to run them"
        )
    for key in ("heap", "worker_properties"):
        if owner.settings[key]:
            validation.refuse(
                f"{path}.{key}: is about workers on hosts of the inventory; remove it"
            )
    aliases = {flow[side] for flow in flows for side in ("source", "target")} & validation.sound
    secret = [
        file
        for alias in aliases
        for file in credentials_of(validation.clusters, alias, owner.identity)
    ]
    if secret and not owner.settings["secrets"]:
        validation.refuse(
            f"{path}.secrets: is missing; say by which config provider the workers get at "
            f"{', '.join(sorted(file for file in secret if not file.endswith('.password')))}"
        )


def _validate_rest(validation: Validation, owner: Owner) -> None:
    path, rest = f"{owner.path}.rest", cluster.rest(owner)
    plain = rest["listener"] == "loopback"
    if plain and len(owner.hosts) > 1:
        validation.refuse(
            f"{path}.listener: workers on several hosts pass requests to each other, which needs "
            "more than loopback; set it to https"
        )
    for url in rest["urls"]:
        if url.startswith("http://") and urlsplit(url).hostname not in LOOPBACK:
            validation.refuse(
                f"{path}.urls: '{url}' would carry passwords and configurations in clear; write "
                "https"
            )
    for name, password in rest["users"].items():
        _validate_user(validation, path, name, password)
        if owner.hosts and 0 < len(str(password)) < PASSWORD_LENGTH:
            validation.refuse(
                f"{path}.users.{name}: the password has {len(str(password))} characters, and the "
                f"port takes guesses from the network; take at least {PASSWORD_LENGTH}, such as "
                "`openssl rand -base64 18` prints"
            )
    if owner.hosts and not rest["users"]:
        validation.refuse(f"{path}.users: is empty, and then everybody would be let in; name users")
    if rest["users"] and rest["client"] not in rest["users"]:
        validation.refuse(
            f"{path}.client: name the user who deploys connectors; "
            f"{suggestion(rest['client'], rest['users'])}"
        )
    if bool(rest["ssl_certificate"]) != bool(rest["ssl_key"]):
        validation.refuse(f"{path}: ssl_certificate and ssl_key belong together; add the other one")
    if owner.hosts and not plain and not rest["ssl_ca"]:
        validation.refuse(
            f"{path}.ssl_ca: is missing; workers trust each other's certificates by it"
        )


def _validate_user(validation: Validation, path: str, name: Any, password: Any) -> None:
    if not isinstance(name, str) or not USER.fullmatch(name):
        validation.refuse(f"{path}.users: '{name}' is no user's name; leave out blanks and ':=#!'")
    if not isinstance(password, str) or not PASSWORD.fullmatch(password):
        validation.refuse(
            f"{path}.users.{name}: a password is text without control characters; an empty one "
            "lets everybody in"
        )
