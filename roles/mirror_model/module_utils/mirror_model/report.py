"""What the report is told about clusters and flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import regex
from .clusters import kafka_python_client
from .filled import flow_of, instance_of
from .mm1 import mm1_options


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
