"""Validation of settings: one error, with the key and the cure."""

import re
from collections.abc import Mapping

from mirror_report import spark_security
from mirror_report.config.cluster import SASL_MECHANISMS, SECURITY_PROTOCOLS, Cluster
from mirror_report.config.errors import ConfigError, did_you_mean
from mirror_report.config.flow import (
    ISOLATIONS,
    PATTERNS,
    REPLICATION_POLICIES,
    RESOURCES,
    Flow,
)
from mirror_report.config.settings import Settings
from mirror_report.config.values import one_of, refuse_unknown
from mirror_report.engines import PositionStore, WorkerStore

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


def validate_settings(settings: Settings) -> None:
    """Validate what is not about one cluster or one flow.

    :raises ConfigError: a value is out of its range, or Spark cannot be started so safely.
    """
    budget = settings.budget
    for key, value, least in (
        ("bucket_seconds", settings.bucket_seconds, 1),
        ("history_days", settings.history_days, 1),
        ("budget.max_bytes", budget.max_bytes, 1),
        ("budget.max_records", budget.max_records, 1),
        ("budget.max_lag_records", budget.max_lag_records, 1),
        ("budget.deadline_seconds", budget.deadline_seconds, 1),
        ("budget.scrub_bytes", budget.scrub_bytes, 0),
        ("budget.open_minutes", budget.open_minutes, 0),
        ("budget.state_bytes", budget.state_bytes, 1),
        ("spark.scratch_bytes", settings.spark.scratch_bytes, 1),
    ):
        if value is not None and value < least:
            raise ConfigError(f"{key}: must be at least {least}")
    for key in ("interval_seconds", "lag_interval_seconds"):
        if not getattr(settings, key) > 0:
            raise ConfigError(f"{key}: must be above 0")
    for key in ("metrics_directory", "web_directory"):
        path = getattr(settings, key)
        if path is not None and not path.startswith("/"):
            raise ConfigError(f"{key}: {path!r} is no absolute path")
    if re.fullmatch(r"\d+[kmgKMG]", settings.spark.heap) is None:
        raise ConfigError(f"spark.heap: {settings.spark.heap!r} is not a size such as 512m or 2g")
    refuse_unknown(settings.spark.fetch, FETCH_KEYS, "spark.fetch")
    for problem in spark_security.problems(settings.spark.master, settings.spark.properties):
        raise ConfigError(problem)


def validate_cluster(cluster: Cluster) -> None:
    """Validate how a cluster is reached.

    :raises ConfigError: something is missing or unknown.
    """
    where = f"clusters.{cluster.alias}"
    if not cluster.bootstrap_servers:
        raise ConfigError(f"{where}.bootstrap_servers: at least one host:port is needed")
    for server in cluster.bootstrap_servers:
        if re.fullmatch(r".+:\d{1,5}", server) is None:
            raise ConfigError(f"{where}.bootstrap_servers: {server!r} is not host:port")
    one_of(cluster.security_protocol, SECURITY_PROTOCOLS, f"{where}.security_protocol")
    if cluster.security_protocol.startswith("SASL"):
        one_of(cluster.sasl_mechanism, SASL_MECHANISMS, f"{where}.sasl_mechanism")
        if not cluster.username:
            raise ConfigError(f"{where}.username: needed with {cluster.security_protocol}")


def validate_flow(flow: Flow, clusters: Mapping[str, Cluster]) -> None:
    """Validate a flow beside the clusters it joins.

    :raises ConfigError: something is missing or unknown.
    """
    where = f"flows.{flow.name}"
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
    _validate_names(flow, where)
    for side in ("source", "target"):
        one_of(flow.isolation(side), ISOLATIONS, f"{where}.{side}_isolation")
    for row in flow.permissions:
        for key, choices in (
            ("cluster", (flow.source, flow.target)),
            ("resource", RESOURCES),
            ("pattern", PATTERNS),
        ):
            one_of(getattr(row, key), choices, f"{where}.permissions", f"{key} ")
    for key, patterns in (
        ("include", (flow.include,)),
        ("topics_exclude", flow.topics_exclude),
        ("left_out", flow.left_out),
        ("consumer_groups", flow.consumer_groups),
        ("groups_exclude", flow.groups_exclude),
        ("config_exclude", flow.config_exclude),
    ):
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(f"{where}.{key}: not a regular expression: {error}") from None


def _validate_names(flow: Flow, where: str) -> None:
    """Validate what an engine needs to name topics, and to find those it keeps for itself."""
    engine = flow.engine
    if engine.has_replication_policy:
        one_of(flow.replication_policy, REPLICATION_POLICIES, f"{where}.replication_policy")
        if not flow.separator:
            raise ConfigError(f"{where}.separator: at least one character is needed")
    for key, needed in (
        ("offset_topic", engine.positions is PositionStore.CONNECT_OFFSETS),
        ("status_topic", engine.workers is WorkerStore.STATUS_TOPIC),
        ("offset_syncs_topic", engine.has_offset_syncs),
    ):
        if needed and not getattr(flow, key):
            raise ConfigError(f"{where}.{key}: the name of that topic is needed")
