"""Whether settings can be used: one error, with the key and the cure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirror_report import spark_security
from mirror_report.config.cluster import SASL_MECHANISMS, SECURITY_PROTOCOLS, Cluster
from mirror_report.config.errors import ConfigError, did_you_mean
from mirror_report.config.flow import (
    ENGINES,
    ISOLATIONS,
    PATTERNS,
    REPLICATION_POLICIES,
    RESOURCES,
    Flow,
    Permission,
)
from mirror_report.config.settings import Spark
from mirror_report.config.values import refuse_unknown

FETCH_KEYS = (
    "client.id",
    "client.rack",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "receive.buffer.bytes",
    "request.timeout.ms",
)


def judge_spark(spark: Spark) -> None:
    """Judge how Spark is started.

    :raises ConfigError: it cannot be started so, or not safely.
    """
    if re.fullmatch(r"\d+[kmgKMG]", spark.heap) is None:
        raise ConfigError(f"spark.heap: {spark.heap!r} is not a size such as 512m or 2g")
    refuse_unknown(spark.fetch, FETCH_KEYS, "spark.fetch")
    open_doors = spark_security.problems(spark.master, spark.properties)
    if open_doors:
        raise ConfigError(open_doors[0])


def judge_cluster(cluster: Cluster) -> None:
    """Judge how a cluster is reached.

    :raises ConfigError: something is missing or unknown.
    """
    where = f"clusters.{cluster.alias}"
    if not cluster.bootstrap_servers:
        raise ConfigError(f"{where}.bootstrap_servers: at least one host:port is needed")
    for server in cluster.bootstrap_servers:
        if re.fullmatch(r".+:\d{1,5}", server) is None:
            raise ConfigError(f"{where}.bootstrap_servers: {server!r} is not host:port")
    if cluster.security_protocol not in SECURITY_PROTOCOLS:
        raise ConfigError(
            f"{where}.security_protocol: {cluster.security_protocol!r} is none of "
            + ", ".join(SECURITY_PROTOCOLS)
        )
    if cluster.security_protocol.startswith("SASL"):
        if cluster.sasl_mechanism not in SASL_MECHANISMS:
            raise ConfigError(
                f"{where}.sasl_mechanism: {cluster.sasl_mechanism!r} is none of "
                + ", ".join(SASL_MECHANISMS)
            )
        if not cluster.username:
            raise ConfigError(f"{where}.username: needed with {cluster.security_protocol}")


def judge_flow(flow: Flow, clusters: Mapping[str, Cluster]) -> None:
    """Judge a flow beside the clusters it joins.

    :raises ConfigError: something is missing or unknown.
    """
    where = f"flows.{flow.name}"
    if flow.engine not in ENGINES:
        raise ConfigError(f"{where}.engine: {flow.engine!r} is none of {', '.join(ENGINES)}")
    for side, alias in (("source", flow.source), ("target", flow.target)):
        if alias not in clusters:
            raise ConfigError(
                f"{where}.{side}: no cluster {alias!r} below clusters"
                + did_you_mean(alias, clusters)
            )
    if flow.start not in ("earliest", "latest"):
        raise ConfigError(f"{where}.start: {flow.start!r} is neither earliest nor latest")
    if not flow.group_id:
        raise ConfigError(f"{where}.group_id: the group of the mirror is needed")
    if flow.engine == "mm2":
        _judge_mm2(flow, where)
    for side in ("source", "target"):
        if flow.isolation(side) not in ISOLATIONS:
            raise ConfigError(
                f"{where}.{side}_isolation: {flow.isolation(side)!r} is none of "
                + ", ".join(ISOLATIONS)
            )
    for row in flow.permissions:
        _judge_permission(flow, row, f"{where}.permissions")
    for key, some in (
        ("include", (flow.include,)),
        ("topics_exclude", flow.topics_exclude),
        ("consumer_groups", flow.consumer_groups),
        ("groups_exclude", flow.groups_exclude),
        ("config_exclude", flow.config_exclude),
    ):
        for one in some:
            try:
                re.compile(one)
            except re.error as error:
                raise ConfigError(f"{where}.{key}: not a regular expression: {error}") from None


def _judge_mm2(flow: Flow, where: str) -> None:
    if flow.replication_policy not in REPLICATION_POLICIES:
        raise ConfigError(
            f"{where}.replication_policy: {flow.replication_policy!r} is none of "
            + ", ".join(REPLICATION_POLICIES)
        )
    if not flow.separator:
        raise ConfigError(f"{where}.separator: at least one character is needed")
    for key in ("offset_topic", "status_topic", "offset_syncs_topic"):
        if not getattr(flow, key):
            raise ConfigError(f"{where}.{key}: the name of that topic is needed")


def _judge_permission(flow: Flow, one: Permission, where: str) -> None:
    for key, known in (
        ("cluster", (flow.source, flow.target)),
        ("resource", RESOURCES),
        ("pattern", PATTERNS),
    ):
        value = getattr(one, key)
        if value not in known:
            raise ConfigError(f"{where}: {key} {value!r} is none of {', '.join(known)}")
