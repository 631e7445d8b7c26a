"""What the report is told about clusters and flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import regex
from .clusters import kafka_python_client
from .filled import layered, placed
from .mm1 import mm1_options, mm1_properties
from .mm2 import (
    internal_topics,
    mm2_properties,
    own_factors,
    separator_of,
    unmirrored,
    worker_group,
    worker_value,
)
from .mm2_names import FLOW_DEFAULTS, FLOW_KAFKAS
from .permissions import flow_permissions
from .principals import principal_of


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
        inventory's order: those that an instance places on hosts, and their clusters. Topics and
        groups are regular expressions, literal names escaped; ``include`` also leaves out what the
        engine never mirrors. ``source_isolation`` and ``target_isolation`` say whether records of
        transactions that did not commit count. Of mm2, ``group_id`` is the workers' group on the
        target. A flow's ``permissions`` are what the identity needs for it, a cluster's
        ``principal`` is whom they are given to, ``None`` where the inventory does not show it.
    :raises ModelError: an unknown cluster.
    """
    chosen = None if only is None else [only] if isinstance(only, str) else list(only)
    reported = []
    for flow, name, instance in placed(flows, instances):
        if chosen is not None and flow["name"] not in chosen:
            continue
        engine = _mm2(flow, instance) if flow["engine"] == "mm2" else _mm1(flow, instance)
        isolation = _isolation(clusters, flow, instance, name)
        reported.append({
            "name": flow["name"],
            "engine": flow["engine"],
            "source": flow["source"],
            "target": flow["target"],
            "topics": list(map(regex.as_regex, flow["topics"])),
            "topics_exclude": list(map(regex.as_regex, flow["topics_exclude"])),
            "start": flow["start"],
            "instance": name,
            "hosts": instance["hosts"],
            "sysconfig": f"{sysconfig_directory}/{name}",
            "accept": [entry for entry in accept if entry.endswith(f":{flow['name']}")],
            "permissions": flow_permissions(flow, instance, identity),
            **isolation,
            **engine,
        })  # fmt: skip
    aliases = dict.fromkeys(flow[side] for flow in reported for side in ("source", "target"))
    return {
        "clusters": {alias: _report_cluster(clusters, alias, identity) for alias in aliases},
        "flows": reported,
    }


def _mm1(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "include": regex.include_regex(flow["topics"], flow["topics_exclude"]),
        "group_id": flow["group_id"],
        "commit_interval_ms": mm1_options(instance).get("offset.commit.interval.ms", 60000),
        "parallelism": instance["num_streams"] * len(instance["hosts"]),
    }


def _mm2(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "include": regex.include_regex(
            flow["topics"], [*flow["topics_exclude"], *unmirrored(flow, instance)]
        ),
        "group_id": worker_group(flow),
        "commit_interval_ms": worker_value(instance, "offset.flush.interval.ms") or 60000,
        "parallelism": flow["tasks_max"],
        "replication_policy": flow["replication_policy"],
        "separator": separator_of(instance),
        "consumer_groups": list(map(regex.as_regex, flow["consumer_groups"])),
        "groups_exclude": _listed(flow, "groups.exclude"),
        "config_exclude": _listed(flow, "config.properties.exclude"),
        "sync_topic_configs": str(_value(flow, "sync.topic.configs.enabled")).lower() == "true",
        "checkpoint_seconds": int(_value(flow, "emit.checkpoints.interval.seconds")),
        "replication_factors": own_factors(flow, instance),
        **internal_topics(flow, instance),
    }


def _value(flow: Mapping[str, Any], key: str) -> Any:
    """A connector property as it takes effect."""
    return layered(FLOW_DEFAULTS, flow["properties"]).get(key, FLOW_KAFKAS[key])


def _listed(flow: Mapping[str, Any], key: str) -> list[str]:
    """The same, of a list."""
    value = _value(flow, key)
    some = value.split(",") if isinstance(value, str) else map(str, value)
    return [one.strip() for one in some if one.strip()]


def _isolation(
    clusters: Mapping[str, Any], flow: Mapping[str, Any], instance: Mapping[str, Any], name: str
) -> dict[str, str]:
    """Which records of each side count: all, or only those of committed transactions.

    What the mirror's consumer skips is expected nowhere, so the source is read as it reads it. On
    the target a record of a transaction counts once it is committed, and only workers that deliver
    exactly once write any.
    """
    if flow["engine"] == "mm2":
        rendered = mm2_properties(clusters, [flow], instance, name)
        consumer = rendered.get(f"{flow['source']}.consumer.isolation.level")
        exactly_once = worker_value(instance, "exactly.once.source.support") == "enabled"
    else:
        consumer = mm1_properties(clusters, flow, instance, name)[0].get("isolation.level")
        exactly_once = False
    return {
        "source_isolation": consumer or "read_uncommitted",
        "target_isolation": "read_committed" if exactly_once else "read_uncommitted",
    }


def _report_cluster(clusters: Mapping[str, Any], alias: str, identity: str) -> dict[str, Any]:
    client = kafka_python_client(clusters, alias, identity)
    for secret in ("password", "ssl_key"):
        client.pop(secret, None)
    certificates = {key: key in client for key in ("ssl_ca", "ssl_certificate")}
    principal = principal_of(clusters, alias, identity)
    return client | certificates | {"identity": identity, "principal": principal}
