"""What follows from the inventory: client properties, credentials, instances, report model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import regex
from .errors import ModelError
from .render import to_jaas
from .schema import (
    CLUSTER,
    CONSUMER_DEFAULTS,
    FLOW,
    IDENTITY,
    INSTANCE,
    MM1_OPTIONS,
    PRODUCER_DEFAULTS,
    defaults_of,
    suggestion,
)

CREDENTIALS = "/run/credentials"
PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"


def _filled(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {**defaults, **{key: item for key, item in value.items() if item is not None}}


def _member(variable: str, members: Any, name: str) -> Any:
    if not isinstance(members, Mapping) or name not in members:
        known = members if isinstance(members, Mapping) else ()
        raise ModelError(f"{variable}: '{name}' is not defined; {suggestion(name, known)}")
    return members[name]


def cluster_of(clusters: Mapping[str, Any], alias: str) -> dict[str, Any]:
    """One cluster with every key filled in.

    :raises ModelError: no such alias.
    """
    return _filled(_member("kafka_clusters", clusters, alias), defaults_of(CLUSTER))


def identity_of(clusters: Mapping[str, Any], alias: str, identity: str) -> dict[str, Any]:
    """Who connects to a cluster for one purpose; ``mirror`` stands in for what is not defined.

    :returns: sasl_mechanism, username and password; values are ``None`` without SASL.
    """
    identities = cluster_of(clusters, alias)["identities"]
    chosen = identities.get(identity) or identities.get("mirror") or {}
    return _filled(chosen, defaults_of(IDENTITY))


def uses_sasl(cluster: Mapping[str, Any]) -> bool:
    """Whether clients of this cluster log in."""
    return str(cluster["security_protocol"]).startswith("SASL_")


def uses_tls(cluster: Mapping[str, Any]) -> bool:
    """Whether connections to this cluster are encrypted."""
    return str(cluster["security_protocol"]).endswith("SSL")


def kafka_credentials(clusters: Mapping[str, Any], alias: str, identity: str) -> dict[str, str]:
    """The credential files with which one identity reaches one cluster.

    :param clusters: ``kafka_clusters``.
    :param alias: which cluster.
    :param identity: for which purpose; the files are named by it even where ``mirror`` stands in.
    :returns: file name to content, SECRET: ``<alias>.<identity>.jaas`` (complete value of
        ``sasl.jaas.config``), ``.password`` (the raw one) and ``.ca.pem``; only what is needed.
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    cluster = cluster_of(clusters, alias)
    files = {}
    if uses_sasl(cluster):
        who = identity_of(clusters, alias, identity)
        try:
            files[f"{alias}.{identity}.jaas"] = to_jaas(who)
        except ModelError as problem:
            raise ModelError(f"kafka_clusters.{alias}.identities: {problem}") from None
        files[f"{alias}.{identity}.password"] = str(who["password"])
    if uses_tls(cluster) and cluster["ssl_ca"]:
        files[f"{alias}.{identity}.ca.pem"] = str(cluster["ssl_ca"]).rstrip("\n") + "\n"
    return files


def kafka_python_client(clusters: Mapping[str, Any], alias: str, identity: str) -> dict[str, Any]:
    """How kafka-python reaches one cluster.

    :param clusters: ``kafka_clusters``.
    :param alias: which cluster.
    :param identity: for which purpose.
    :returns: bootstrap_servers and security_protocol; with SASL also sasl_mechanism, username and
        password (SECRET); with TLS and an own authority also ssl_ca (PEM text).
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    cluster = cluster_of(clusters, alias)
    client: dict[str, Any] = {
        "bootstrap_servers": list(cluster["bootstrap_servers"]),
        "security_protocol": cluster["security_protocol"],
    }
    files = kafka_credentials(clusters, alias, identity)
    if uses_sasl(cluster):
        who = identity_of(clusters, alias, identity)
        client |= {
            "sasl_mechanism": who["sasl_mechanism"],
            "username": who["username"],
            "password": files[f"{alias}.{identity}.password"],
        }
    if f"{alias}.{identity}.ca.pem" in files:
        client["ssl_ca"] = files[f"{alias}.{identity}.ca.pem"]
    return client


def client_properties(
    clusters: Mapping[str, Any], alias: str, identity: str, unit: str
) -> dict[str, Any]:
    """Java client properties with which a unit reaches one cluster.

    :param clusters: ``kafka_clusters``.
    :param alias: which cluster.
    :param identity: for which purpose.
    :param unit: name of the systemd service whose credential directory holds the secrets.
    :returns: property name to value; secrets appear as config-provider references, never in clear.
    :raises ModelError: an unknown alias, or SASL without usable credentials.
    """
    cluster = cluster_of(clusters, alias)
    directory = f"{CREDENTIALS}/{unit}.service"
    files = kafka_credentials(clusters, alias, identity)
    properties: dict[str, Any] = {
        "bootstrap.servers": list(cluster["bootstrap_servers"]),
        "security.protocol": cluster["security_protocol"],
    }
    if files:
        properties |= {
            "config.providers": "dir",
            "config.providers.dir.class": PROVIDER,
            "config.providers.dir.param.allowed.paths": directory,
        }
    if uses_sasl(cluster):
        who = identity_of(clusters, alias, identity)
        properties["sasl.mechanism"] = who["sasl_mechanism"]
        properties["sasl.jaas.config"] = f"${{dir:{directory}:{alias}.{identity}.jaas}}"
    if f"{alias}.{identity}.ca.pem" in files:
        properties["ssl.truststore.type"] = "PEM"
        properties["ssl.truststore.certificates"] = (
            f"${{dir:{directory}:{alias}.{identity}.ca.pem}}"
        )
    return properties


def flow_of(flow: Mapping[str, Any]) -> dict[str, Any]:
    """A flow with every key filled in, as its engine understands it."""
    filled = _filled(flow, defaults_of(FLOW))
    if filled.get("engine") == "mm1":
        filled["replication_policy"] = "identity"
        filled["group_id"] = filled["group_id"] or f"mirrormaker-{filled['name']}"
    elif filled["replication_policy"] is None:
        filled["replication_policy"] = "prefix"
    return filled


def instance_of(instances: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An instance with every key filled in.

    :raises ModelError: no such instance.
    """
    return _filled(_member("mirrormaker_instances", instances, name), defaults_of(INSTANCE))


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of several layers, later ones before earlier ones; null removes a property."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    return {name: value for name, value in merged.items() if value is not None}


def mm1_options(instance: Mapping[str, Any]) -> dict[str, Any]:
    """MirrorMaker 1's command line options of one instance, defaults included."""
    return layered({name: value for name, (value, _) in MM1_OPTIONS.items()},
                   instance["mm1_options"])  # fmt: skip


def mm1_properties(
    clusters: Mapping[str, Any], flow: Mapping[str, Any], instance: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The consumer's and the producer's properties of one MirrorMaker 1 process.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``mirror_flows[].properties``, the instance's ``consumer_properties``/``producer_properties``.

    :param clusters: ``kafka_clusters``.
    :param flow: the flow, filled in.
    :param instance: the instance, filled in.
    :param name: the instance's name.
    :returns: consumer properties, producer properties; secrets as references.
    """
    sides = (
        ("consumer", flow["source"], CONSUMER_DEFAULTS,
         {"group.id": flow["group_id"], "auto.offset.reset": flow["start"]}),
        ("producer", flow["target"], PRODUCER_DEFAULTS, {"client.id": flow["group_id"]}),
    )  # fmt: skip
    consumer, producer = (
        layered(
            tuned,
            client_properties(clusters, alias, "mirror", name),
            derived,
            cluster_of(clusters, alias)["properties"],
            {
                key.removeprefix(f"{side}."): value
                for key, value in flow["properties"].items()
                if key.startswith(f"{side}.")
            },
            instance[f"{side}_properties"],
        )
        for side, alias, tuned, derived in sides
    )
    return consumer, producer


def mm1_instance(
    clusters: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    instances: Mapping[str, Any],
    name: str,
) -> dict[str, Any]:
    """Everything a MirrorMaker 1 process is made of.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param name: which instance.
    :returns: name, engine, state, hosts, flow (filled in), heap, num_streams, group_id, include,
        consumer, producer, options, credentials (file name to content, SECRET) and identity (what
        must not change unnoticed). An absent instance has the first four and empty others.
    :raises ModelError: an unknown instance, flow or cluster.
    """
    instance = instance_of(instances, name)
    result: dict[str, Any] = {
        "name": name, "engine": "mm1", "state": instance["state"], "hosts": instance["hosts"],
        "flow": None, "heap": instance["heap"], "num_streams": instance["num_streams"],
        "group_id": "", "include": "", "consumer": {}, "producer": {},
        "options": mm1_options(instance), "credentials": {}, "identity": {},
    }  # fmt: skip
    if instance["state"] == "absent":
        return result
    if len(instance["flows"]) != 1:
        raise ModelError(f"mirrormaker_instances.{name}.flows: name exactly one flow of engine mm1")
    by_name = {flow["name"]: flow for flow in flows}
    flow = flow_of(_member("mirror_flows", by_name, instance["flows"][0]))
    consumer, producer = mm1_properties(clusters, flow, instance, name)
    return result | {
        "flow": flow,
        "group_id": flow["group_id"],
        "include": regex.include_regex(flow["topics"], flow["topics_exclude"]),
        "consumer": consumer,
        "producer": producer,
        "credentials": kafka_credentials(clusters, flow["source"], "mirror")
        | kafka_credentials(clusters, flow["target"], "mirror"),
        "identity": {
            "engine": "mm1",
            "flows": [flow["name"]],
            "source": flow["source"],
            "target": flow["target"],
            "group_id": flow["group_id"],
            "policy": flow["replication_policy"],
        },
    }


def mirror_report_model(
    clusters: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    instances: Mapping[str, Any],
    identity: str,
    only: str | Iterable[str] | None = None,
    sysconfig_directory: str = "/etc/sysconfig",
    accept: Sequence[str] = (),
) -> dict[str, Any]:
    """The part of the report's configuration that is no secret.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param identity: who the report connects as, such as ``report``.
    :param only: a flow's name, or several; ``None`` takes all.
    :param sysconfig_directory: where instances keep their environment files.
    :param accept: ``mirror_accept``; every flow carries the entries that name it.
    :returns: clusters (alias to connection, without password and certificates) and flows, in the
        inventory's order: those that an instance places on hosts, and their clusters. Topics
        are regular expressions, literal names escaped.
    :raises ModelError: an unknown cluster.
    """
    chosen = None if only is None else [only] if isinstance(only, str) else list(only)
    placed: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in instances:
        instance = instance_of(instances, name)
        if instance["state"] != "absent" and instance["hosts"]:
            placed |= dict.fromkeys(instance["flows"], (name, instance))
    reported = []
    for flow in map(flow_of, flows):
        if flow["name"] not in placed or (chosen is not None and flow["name"] not in chosen):
            continue
        name, instance = placed[flow["name"]]
        reported.append({
            "name": flow["name"],
            "engine": flow["engine"],
            "source": flow["source"],
            "target": flow["target"],
            "topics": list(map(regex.as_regex, flow["topics"])),
            "topics_exclude": list(map(regex.as_regex, flow["topics_exclude"])),
            "include": regex.include_regex(flow["topics"], flow["topics_exclude"]),
            "start": flow["start"],
            "group_id": flow["group_id"],
            "instance": name,
            "hosts": instance["hosts"],
            "commit_interval_ms": mm1_options(instance).get("offset.commit.interval.ms", 60000),
            "sysconfig": f"{sysconfig_directory}/{name}",
            "accept": [entry for entry in accept if entry.endswith(f":{flow['name']}")],
        })  # fmt: skip
    aliases = dict.fromkeys(flow[side] for flow in reported for side in ("source", "target"))
    return {
        "clusters": {alias: _report_cluster(clusters, alias, identity) for alias in aliases},
        "flows": reported,
    }


def _report_cluster(clusters: Mapping[str, Any], alias: str, identity: str) -> dict[str, Any]:
    client = kafka_python_client(clusters, alias, identity)
    client.pop("password", None)
    return client | {"identity": identity, "ssl_ca": "ssl_ca" in client}
