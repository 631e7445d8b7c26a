"""What only MirrorMaker 2 on Kafka Connect is asked."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from ... import kafka_names, regex
from ...clusters import credentials_of
from ...connectors import judge as own_judge
from ...connectors import judge_keys
from ...inventory import CONNECT_CLUSTERS, Inventory, Owner
from ...keys import Flow, check_map, suggestion
from ...schema import CONNECT_REST, CONNECT_SECRETS, CONNECT_TOPICS
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


def judge(found: Inventory, flows: Sequence[Flow]) -> None:
    """Judge flows on Connect, and the Connect clusters there are."""
    for flow in flows:
        _judge_flow(found, flow)
    names: dict[tuple[str, str], str] = {}
    for flow in flows:
        for kind in connectors.kinds(flow):
            place, name = str(flow["connect"]), connectors.name_of(flow, kind)
            if (place, name) in names:
                found.refuse(
                    f"{found.paths[flow['name']]}.connectors.{kind}: '{name}' is also the name of "
                    f"{names[place, name]}; choose another"
                )
            names[place, name] = f"the {kind} connector of flow '{flow['name']}'"
    ports: dict[tuple[str, int], str] = {}
    for owner in found.owners:
        if owner.kind is not CONNECT_CLUSTERS:
            continue
        _judge_cluster(found, owner, [flow for flow in flows if flow["connect"] == owner.name])
        port = owner.settings["port"]
        for host in owner.hosts:
            if (other := ports.setdefault((host, port), owner.name)) != owner.name:
                found.refuse(
                    f"{owner.path}.port: {port} on '{host}' is already that of '{other}'; set it "
                    f"to {port + 1}"
                )


def _judge_flow(found: Inventory, flow: Flow) -> None:
    path, owner = found.paths[flow["name"]], found.owner(flow["name"])
    for kind in flow["connectors"]:
        if kind not in connectors.CLASSES:
            found.refuse(
                f"{path}.connectors: unknown kind '{kind}'; {suggestion(kind, connectors.CLASSES)}"
            )
    if not flow["connect"]:
        found.refuse(f"{path}.connect: is missing; name one of kafka_connect_clusters")
    if owner is None or owner.kind is not CONNECT_CLUSTERS:
        return
    version = cluster.version(owner)
    judge_keys.judge_flow_keys(
        found, f"{path}.properties", flow["properties"], version, keys.OWNED_FLOW_KEYS
    )
    own_judge.judge_flow(found, f"{path}.properties", flow)
    own_judge.judge_names(found, flow, owner, cluster.policy(flow, owner), SEPARATOR_OF)
    if flow["target"] != owner.settings["kafka"] in found.clusters:
        found.refuse(
            f"{path}.connect: '{owner.name}' writes to '{owner.settings['kafka']}', and the flow's "
            f"target is '{flow['target']}'; name a Connect cluster whose kafka is the target"
        )
    _judge_overrides(found, flow, owner)
    if connectors.beats(flow):
        selected = regex.include_regex(flow["topics"], flow["topics_exclude"])
        if not re.fullmatch(selected, HEARTBEATS):
            found.refuse(
                f"{path}.properties['emit.heartbeats.enabled']: heartbeats are written to "
                f"'{flow['source']}', and nothing mirrors them; add '{HEARTBEATS}' to topics"
            )


def _judge_overrides(found: Inventory, flow: Flow, owner: Owner) -> None:
    """Judge what connectors override of their workers' clients."""
    path = f"{found.paths[flow['name']]}.properties"
    keys = ["emit.heartbeats.enabled"] if connectors.beats(flow) else []
    keys += [key for key in flow["properties"] if key.startswith("producer.override.")]
    if owner.hosts:
        version = cluster.version(owner)
        if keys and kafka_names.release(version) < ALLOWLIST:
            found.refuse(
                f"{path}['{keys[0]}']: workers of Kafka {version} let connectors override all of "
                f"their clients or nothing; set kafka_version of '{owner.name}' to 4.2 or newer, "
                "or remove it"
            )
        return
    allowed = owner.settings["overrides"]
    if connectors.beats(flow) and allowed is not None and "bootstrap.servers" not in allowed:
        found.refuse(
            f"{path}['emit.heartbeats.enabled']: its producer writes to '{flow['source']}', and "
            f"'{owner.name}' does not let connectors override bootstrap.servers; remove it"
        )


def _judge_cluster(found: Inventory, owner: Owner, flows: Sequence[Flow]) -> None:
    alias, path = owner.settings["kafka"], owner.path
    if alias not in found.clusters:
        found.refuse(
            f"{path}.kafka: '{alias}' is no cluster of kafka_clusters; "
            f"{suggestion(alias, found.clusters)}"
        )
    parts = (("topics", CONNECT_TOPICS), ("rest", CONNECT_REST), ("secrets", CONNECT_SECRETS))
    before = len(found.errors)
    for part, known in parts:
        if owner.settings[part] or part != "secrets":
            check_map(f"{path}.{part}", owner.settings[part], known, found.refuse)
    if len(found.errors) > before:
        return
    _judge_rest(found, owner)
    if owner.hosts:
        _judge_workers(found, owner)
    else:
        _judge_existing(found, owner, flows)


def _judge_workers(found: Inventory, owner: Owner) -> None:
    version = cluster.version(owner)
    known = keys.worker_keys(kafka_names.line_of(version))
    judge_keys.judge_worker_keys(found, owner, keys.OWNED_WORKER_KEYS, known)
    for key in ("secrets", "overrides"):
        if owner.settings[key]:
            found.refuse(f"{owner.path}.{key}: is about clusters without hosts; remove it")


def _judge_existing(found: Inventory, owner: Owner, flows: Sequence[Flow]) -> None:
    """Judge what nobody but the inventory can know of a cluster that exists."""
    path, topics = owner.path, owner.settings["topics"]
    if missing := [kind.name for kind in CONNECT_TOPICS if not topics.get(kind.name)]:
        found.refuse(
            f"{path}.topics: {' and '.join(missing)} missing; REST does not tell them, their owner "
            "does"
        )
    if not owner.settings["rest"].get("urls"):
        found.refuse(f"{path}.rest.urls: is missing; name workers, or hosts that are to run them")
    for key in ("heap", "worker_properties"):
        if owner.settings[key]:
            found.refuse(f"{path}.{key}: is about workers on hosts of the inventory; remove it")
    aliases = {flow[side] for flow in flows for side in ("source", "target")} & found.sound
    secret = [
        file for alias in aliases for file in credentials_of(found.clusters, alias, owner.identity)
    ]
    if secret and not owner.settings["secrets"]:
        found.refuse(
            f"{path}.secrets: is missing; say by which config provider the workers get at "
            f"{', '.join(sorted(file for file in secret if not file.endswith('.password')))}"
        )


def _judge_rest(found: Inventory, owner: Owner) -> None:
    path, rest = f"{owner.path}.rest", cluster.rest(owner)
    plain = rest["listener"] == "loopback"
    if plain and len(owner.hosts) > 1:
        found.refuse(
            f"{path}.listener: workers on several hosts pass requests to each other, which needs "
            "more than loopback; set it to https"
        )
    for url in rest["urls"]:
        if url.startswith("http://") and urlsplit(url).hostname not in LOOPBACK:
            found.refuse(
                f"{path}.urls: '{url}' would carry passwords and configurations in clear; write "
                "https"
            )
    for name, password in rest["users"].items():
        _judge_user(found, path, name, password)
        if owner.hosts and 0 < len(str(password)) < PASSWORD_LENGTH:
            found.refuse(
                f"{path}.users.{name}: the password has {len(str(password))} characters, and the "
                f"port takes guesses from the network; take at least {PASSWORD_LENGTH}, such as "
                "`openssl rand -base64 18` prints"
            )
    if owner.hosts and not rest["users"]:
        found.refuse(f"{path}.users: is empty, and then everybody would be let in; name users")
    if rest["users"] and rest["client"] not in rest["users"]:
        found.refuse(
            f"{path}.client: name the user who deploys connectors; "
            f"{suggestion(rest['client'], rest['users'])}"
        )
    if bool(rest["ssl_certificate"]) != bool(rest["ssl_key"]):
        found.refuse(f"{path}: ssl_certificate and ssl_key belong together; add the other one")
    if owner.hosts and not plain and not rest["ssl_ca"]:
        found.refuse(f"{path}.ssl_ca: is missing; workers trust each other's certificates by it")


def _judge_user(found: Inventory, path: str, name: Any, password: Any) -> None:
    if not isinstance(name, str) or not USER.fullmatch(name):
        found.refuse(f"{path}.users: '{name}' is no user's name; leave out blanks and ':=#!'")
    if not isinstance(password, str) or not PASSWORD.fullmatch(password):
        found.refuse(
            f"{path}.users.{name}: a password is text without control characters; an empty one "
            "lets everybody in"
        )
