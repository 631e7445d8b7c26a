"""Is what the inventory says a mirror that can work? Every problem is found, none is acted on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import kafka_names, regex
from .advisories import kafka_advisories, release
from .clusters import uses_sasl, uses_tls
from .errors import ModelError
from .filled import flow_of, instance_of, kafka_version_of
from .inventory import Inventory
from .judge_mm1 import (
    SIDES,
    judge_mm1_dangers,
    judge_mm1_flow,
    judge_mm1_names,
    judge_mm1_options,
)
from .judge_mm2 import judge_mm2
from .judge_names import judge_names
from .judge_secrets import judge_secrets, judge_stores
from .mm2 import CLIENTS
from .schema import (
    ACCEPTANCES,
    ALIAS,
    CLUSTER,
    FLOW,
    IDENTITY,
    IDENTITY_NAME,
    INSTANCE,
    INSTANCE_NAME,
    KAFKA_VERSIONS,
    LONGEST_INSTANCE_NAME,
    NOT_YET,
    RESERVED_ALIASES,
    SUPPORTED_ENGINES,
    Key,
    check_map,
    suggestion,
)

OLDEST_MM2 = (3, 8, 0)
ANY_CLIENT = frozenset().union(
    *(names[line] for names in CLIENTS.values() for line in kafka_names.LINES)
)


def findings(
    clusters: Any,
    flows: Any,
    instances: Any,
    connect_clusters: Any,
    accept: Any,
    *,
    hosts: Sequence[str],
    advisories: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Any] | None = None,
) -> dict[str, list[str]]:
    """Judge the whole inventory before anything changes.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param connect_clusters: ``kafka_connect_clusters``.
    :param accept: ``mirror_accept``.
    :param hosts: every host of the inventory.
    :param advisories: entries of ``files/advisories.yml``.
    :param groups: inventory groups; given, a site that mirrors without a report host is refused.
    :returns: ``errors`` and ``warnings``; each message names the variable and the cure, and none
        quotes a password.
    """
    found = Inventory(clusters if isinstance(clusters, dict) else {})
    _judge_accept_shape(found, accept)
    _judge_clusters(found, clusters)
    _judge_flows(found, flows)
    _judge_instances(found, instances, hosts)
    _judge_acceptances(found, {entry["cve"] for entry in advisories}, instances)
    if connect_clusters:
        found.refuse(f"kafka_connect_clusters: {NOT_YET}; set it to {{}}")
    _judge_flow_clusters(found)
    _judge_placement(found)
    _judge_loops(found)
    judge_mm1_dangers(found)
    judge_mm2(found)
    judge_secrets(found)
    _judge_versions(found, advisories)
    _judge_groups(found, groups)
    return {"errors": found.errors, "warnings": found.warnings}


def _judge_accept_shape(found: Inventory, accept: Any) -> None:
    if accept is None:
        return
    if not isinstance(accept, list) or not all(isinstance(entry, str) for entry in accept):
        found.refuse("mirror_accept: must be a list of names, such as [CVE-2026-35554]")
        return
    found.accept = accept


def _judge_acceptances(found: Inventory, cves: set[str], instances: Any) -> None:
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


def _judge_clusters(found: Inventory, clusters: Any) -> None:
    if not isinstance(clusters, Mapping):
        found.refuse("kafka_clusters: must be a map of alias to cluster")
        return
    for alias, cluster in clusters.items():
        path = f"kafka_clusters.{alias}"
        if not isinstance(alias, str) or not ALIAS.fullmatch(alias):
            found.refuse(f"{path}: an alias is made of letters, digits, '_' and '-'; rename it")
        elif alias.lower() in RESERVED_ALIASES:
            found.refuse(
                f"{path}: '{alias}' begins Kafka's own property names; name the cluster after "
                "its place, such as east"
            )
        before = len(found.errors)
        if not check_map(path, cluster, CLUSTER, found.refuse):
            continue
        identities = cluster.get("identities") or {}
        if isinstance(identities, Mapping):
            for name, identity in identities.items():
                _judge_identity(found, f"{path}.identities", name, identity)
        if len(found.errors) == before:
            _judge_security(found, path, cluster)
            judge_names(found, f"{path}.properties", cluster.get("properties") or {}, ANY_CLIENT)
        if len(found.errors) == before:
            found.sound.add(alias)


def _judge_identity(found: Inventory, path: str, name: Any, identity: Any) -> None:
    if not isinstance(name, str) or not IDENTITY_NAME.fullmatch(name):
        found.refuse(f"{path}: '{name}' is no name; use letters, digits, '_' and '-'")
        return
    path = f"{path}.{name}"
    if not check_map(path, identity, IDENTITY, found.refuse):
        return
    if bool(identity.get("ssl_certificate")) != bool(identity.get("ssl_key")):
        found.refuse(f"{path}: ssl_certificate and ssl_key belong together; add the other one")
    for key, kind, cure in (
        ("ssl_certificate", "CERTIFICATE", "look the file up instead of naming it"),
        ("ssl_key", "PRIVATE KEY", "convert it with openssl pkcs8 -topk8 -nocrypt"),
    ):
        value = identity.get(key)
        if isinstance(value, str) and f"-----BEGIN {kind}-----" not in value:
            found.refuse(f"{path}.{key}: holds no PEM text with BEGIN {kind}; {cure}")
    for key in ("username", "password"):
        value = identity.get(key)
        if isinstance(value, str) and any(char in value for char in "\n\r\0"):
            found.refuse(f"{path}.{key}: holds a line break or NUL, which no login can carry")


def _judge_security(found: Inventory, path: str, cluster: Mapping[str, Any]) -> None:
    cluster = {"security_protocol": "PLAINTEXT", **cluster}
    identities = cluster.get("identities") or {}
    if uses_sasl(cluster):
        if not identities.get("mirror"):
            found.refuse(
                f"{path}.identities.mirror: {cluster['security_protocol']} needs sasl_mechanism, "
                "username and password"
            )
        for name, identity in identities.items():
            missing = [k for k in ("sasl_mechanism", "username", "password") if not identity.get(k)]
            if missing:
                found.refuse(f"{path}.identities.{name}: {' and '.join(missing)} missing; add it")
    certified = sorted(name for name, who in identities.items() if who.get("ssl_certificate"))
    if certified and not uses_tls(cluster):
        found.refuse(
            f"{path}.identities.{certified[0]}.ssl_certificate: {cluster['security_protocol']} "
            "does not encrypt; set security_protocol to SSL or SASL_SSL, or remove it"
        )
    if cluster.get("ssl_ca"):
        if not uses_tls(cluster):
            found.refuse(
                f"{path}.ssl_ca: {cluster['security_protocol']} does not encrypt; set "
                "security_protocol to SSL or SASL_SSL, or remove it"
            )
        if "-----BEGIN CERTIFICATE-----" not in cluster["ssl_ca"]:
            found.refuse(f"{path}.ssl_ca: is not PEM text; look the file up instead of naming it")
    judge_stores(found, path, cluster)


def _judge_flows(found: Inventory, flows: Any) -> None:
    if not isinstance(flows, list):
        found.refuse("mirror_flows: must be a list of flows, each '- name: ...'")
        return
    for place, flow in enumerate(flows):
        name = flow.get("name") if isinstance(flow, Mapping) else None
        path = f"mirror_flows[{name if isinstance(name, str) and name else place}]"
        before = len(found.errors)
        if not check_map(path, flow, FLOW, found.refuse):
            continue
        known = isinstance(name, str) and name in found.named
        found.named |= {name} if isinstance(name, str) else set()
        for key in ("topics", "topics_exclude", "consumer_groups"):
            for pattern in flow.get(key) or () if isinstance(flow.get(key), list) else ():
                _judge_pattern(found, f"{path}.{key}", pattern)
        if known:
            found.refuse(f"{path}: the name is used twice; rename one")
        elif len(found.errors) == before:
            found.flows[flow["name"]] = flow_of(flow)
            found.paths[flow["name"]] = path
            _judge_engine(found, path, flow)


def _judge_pattern(found: Inventory, path: str, pattern: Any) -> None:
    if isinstance(pattern, str) and pattern:
        try:
            regex.check(pattern)
        except ModelError as problem:
            found.refuse(f"{path}: {problem}")


def _judge_engine(found: Inventory, path: str, flow: Mapping[str, Any]) -> None:
    engine = flow["engine"]
    if engine not in SUPPORTED_ENGINES:
        found.refuse(f"{path}.engine: {engine} is {NOT_YET}; use {' or '.join(SUPPORTED_ENGINES)}")
        return
    _judge_foreign_keys(found, path, flow, FLOW, engine)
    if flow.get("start") == "latest":
        found.warn(
            f"{path}.start: latest leaves out what a topic held before it was found; earliest "
            "mirrors all of it"
        )
    if engine == "mm1":
        judge_mm1_flow(found, path, flow)


def _judge_foreign_keys(
    found: Inventory, path: str, value: Mapping[str, Any], keys: Iterable[Key], engine: str
) -> None:
    for key in keys:
        if key.engines and engine not in key.engines and value.get(key.name):
            found.refuse(
                f"{path}.{key.name}: means nothing to engine {engine}, only to "
                f"{' and '.join(key.engines)}; remove it"
            )


def _judge_instances(found: Inventory, instances: Any, hosts: Sequence[str]) -> None:
    if not isinstance(instances, Mapping):
        found.refuse("mirrormaker_instances: must be a map of instance name to instance")
        return
    for name, instance in instances.items():
        path = f"mirrormaker_instances.{name}"
        if (
            not isinstance(name, str)
            or not INSTANCE_NAME.fullmatch(name)
            or len(name) > LONGEST_INSTANCE_NAME
        ):
            found.refuse(
                f"{path}: an instance is called mirrormaker or mirrormaker-<small letters and "
                f"digits>, at most {LONGEST_INSTANCE_NAME} characters; rename it"
            )
            continue
        before = len(found.errors)
        if not check_map(path, instance, INSTANCE, found.refuse) or len(found.errors) > before:
            continue
        for host in instance.get("hosts") or ():
            if host not in hosts:
                found.refuse(f"{path}.hosts: '{host}' is no host; {suggestion(host, hosts)}")
        filled = instance_of(instances, name)
        if filled["state"] != "absent":
            found.instances[name] = filled
            _judge_instance(found, path, instance, filled)
        judge_mm1_options(found, path, instance.get("mm1_options") or {})
        for side in SIDES:
            properties = instance.get(f"{side}_properties") or {}
            judge_mm1_names(found, f"{path}.{side}_properties", side, properties)


def _judge_instance(
    found: Inventory, path: str, instance: Mapping[str, Any], filled: Mapping[str, Any]
) -> None:
    if not filled["hosts"]:
        found.refuse(f"{path}.hosts: is empty; name hosts, or set state to absent")
    for flow in filled["flows"]:
        if flow not in found.named:
            found.refuse(
                f"{path}.flows: '{flow}' is no flow of mirror_flows; "
                f"{suggestion(flow, found.named)}"
            )
    engines = {found.flows[flow]["engine"] for flow in filled["flows"] if flow in found.flows}
    if len(engines) > 1:
        found.refuse(
            f"{path}.flows: flows of several engines ({', '.join(sorted(engines))}); one instance "
            "runs one engine, so give each its own"
        )
        return
    if not filled["flows"]:
        found.refuse(f"{path}.flows: is empty; name flows of mirror_flows, or set state to absent")
    engine = next(iter(engines), "")
    if engine == "mm1" and len(filled["flows"]) > 1:
        found.refuse(
            f"{path}.flows: MirrorMaker 1 runs exactly one flow; give every flow its own instance"
        )
    if engine in SUPPORTED_ENGINES:
        _judge_foreign_keys(found, path, instance, INSTANCE, engine)


def _judge_flow_clusters(found: Inventory) -> None:
    for name, flow in found.flows.items():
        path = found.paths[name]
        ends = [flow["source"], flow["target"]]
        for side in ("source", "target"):
            if flow[side] not in found.clusters:
                found.refuse(
                    f"{path}.{side}: '{flow[side]}' is no cluster of kafka_clusters; "
                    f"{suggestion(flow[side], found.clusters)}"
                )
        if ends[0] == ends[1]:
            found.refuse(f"{path}.target: is the source itself; name another cluster")
        elif shared := sorted(_brokers(found, ends[0]) & _brokers(found, ends[1])):
            found.refuse(
                f"{path}: '{ends[0]}' and '{ends[1]}' share the broker {shared[0]}, so they are "
                "one cluster; correct bootstrap_servers in kafka_clusters"
            )


def _brokers(found: Inventory, alias: str) -> set[str]:
    cluster = found.clusters.get(alias)
    servers = cluster.get("bootstrap_servers") if isinstance(cluster, Mapping) else None
    return {str(server).lower() for server in servers} if isinstance(servers, list) else set()


def _judge_placement(found: Inventory) -> None:
    owners: dict[str, str] = {}
    for name, instance in found.instances.items():
        for flow in instance["flows"]:
            if flow in owners:
                found.refuse(
                    f"mirrormaker_instances.{name}.flows: '{flow}' already runs in "
                    f"'{owners[flow]}'; list all hosts there, they share the work"
                )
            owners.setdefault(flow, name)
    for name in found.flows:
        if name not in owners:
            found.warn(f"{found.paths[name]}: no instance of mirrormaker_instances runs it")
    groups: dict[tuple[str, str], str] = {}
    for name in owners:
        if name in found.flows and found.flows[name]["engine"] == "mm1":
            flow = found.flows[name]
            key = (flow["source"], flow["group_id"])
            if key in groups:
                found.refuse(
                    f"{found.paths[name]}.group_id: '{key[1]}' is also the group of flow "
                    f"'{groups[key]}' on '{key[0]}'; each flow needs its own"
                )
            groups.setdefault(key, name)
    placed = list({flow["name"]: flow for _, _, flow in found.placed()}.values())
    for place, one in enumerate(placed):
        for other in placed[place + 1 :]:
            if (one["source"], one["target"]) != (other["source"], other["target"]):
                continue
            topic = regex.common_topic([found.selection(one), found.selection(other)])
            if topic is not None:
                found.refuse(
                    f"{found.paths[other['name']]}.topics: topics such as '{topic}' are mirrored "
                    f"by flow '{one['name']}' from {one['source']} to {one['target']} already, so "
                    "every record would arrive twice; narrow one of the two"
                )


def _judge_loops(found: Inventory) -> None:
    """Refuse flows that carry a topic round in a circle under one name."""
    edges = list({
        flow["name"]: flow for _, _, flow in found.placed()
        if flow["replication_policy"] == "identity" and flow["source"] != flow["target"]
    }.values())  # fmt: skip
    for first in edges:
        for circle in _circles(edges, [first]):
            if first["name"] != min(flow["name"] for flow in circle):
                continue
            topic = regex.common_topic(map(found.selection, circle))
            if topic is not None:
                way = " -> ".join([flow["source"] for flow in circle] + [first["source"]])
                names = ", ".join(f"'{flow['name']}'" for flow in circle)
                found.refuse(
                    f"mirror_flows: {names} carry topics such as '{topic}' in a circle ({way}) "
                    "without end; exclude them with topics_exclude in one of these flows"
                )


def _circles(
    edges: Sequence[dict[str, Any]], path: list[dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    if path[-1]["target"] == path[0]["source"]:
        yield path
        return
    visited = {flow["source"] for flow in path}
    for edge in edges:
        closes = edge["target"] == path[0]["source"]
        if edge["source"] == path[-1]["target"] and (closes or edge["target"] not in visited):
            yield from _circles(edges, [*path, edge])


def _judge_versions(found: Inventory, advisories: Sequence[Mapping[str, Any]]) -> None:
    for name, instance, flow in found.placed():
        path = f"mirrormaker_instances.{name}.kafka_version"
        engine, version = flow["engine"], kafka_version_of(instance, flow["engine"])
        if engine not in SUPPORTED_ENGINES:
            continue
        if engine == "mm1" and release(version) >= (4, 0, 0):
            found.refuse(
                f"{path}: Kafka {version} has no MirrorMaker 1, which ended with 3.9; "
                f"set it to {KAFKA_VERSIONS['mm1']}"
            )
            continue
        if engine == "mm2" and release(version) < OLDEST_MM2:
            found.refuse(
                f"{path}: MirrorMaker 2 of Kafka {version} translates group offsets wrongly; "
                "set it to 3.8.0 or newer"
            )
        for entry in kafka_advisories(version, engine, found.accept, advisories):
            report = found.refuse if entry["refused"] else found.warn
            report(f"{path}: {entry['text']}")


def _judge_groups(found: Inventory, groups: Mapping[str, Any] | None) -> None:
    if groups is None:
        return
    for name, instance in found.instances.items():
        for host in instance["hosts"]:
            if host not in groups.get("mirrormaker", ()):
                found.warn(
                    f"group mirrormaker: '{host}' is to run '{name}' and is not in it, so the "
                    "playbooks pass it by; add it"
                )
    if groups.get("mirror_report"):
        return
    for name, instance in found.instances.items():
        if instance["hosts"] and instance["flows"]:
            found.refuse(
                f"group mirror_report: has no host, so nobody would prove what '{name}' mirrors; "
                "add a host to it"
            )
            return
