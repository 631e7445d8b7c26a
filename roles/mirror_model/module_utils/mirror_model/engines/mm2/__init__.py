"""MirrorMaker 2, dedicated: several flows into one target per process, positions on the target."""

from typing import Any

from ... import regex
from ...engine import Engine
from ...inventory import Owner
from ...keys import Clusters, Flow
from . import judge, permissions, render, settings, topics


def report(clusters: Clusters, flow: Flow, owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine.

    On the target, only workers that deliver exactly once write records of transactions.
    """
    line = topics.policy(owner).line
    consumer = render.consumer(clusters, flow, owner, line)
    exactly_once = settings.worker_value(owner, "exactly.once.source.support") == "enabled"
    return {
        **of_connectors(flow, topics.policy(owner)),
        **topics.worker_topics(flow),
        "commit_interval_ms": settings.worker_value(owner, "offset.flush.interval.ms") or 60000,
        "replication_factors": settings.own_factors(flow, owner),
        "source_isolation": consumer.get("isolation.level") or "read_uncommitted",
        "target_isolation": "read_committed" if exactly_once else "read_uncommitted",
    }


def of_connectors(flow: Flow, named: topics.Policy) -> dict[str, Any]:
    """What the report has to know of a flow's connectors, whoever runs them."""
    return {
        "parallelism": flow["tasks_max"],
        "replication_policy": flow["replication_policy"],
        "separator": named.separator,
        "consumer_groups": list(map(regex.as_regex, flow["consumer_groups"])),
        "groups_exclude": _listed(settings.connector_value(flow, "groups.exclude")),
        "config_exclude": _listed(settings.connector_value(flow, "config.properties.exclude")),
        "sync_topic_configs": settings.is_on(flow, "sync.topic.configs.enabled"),
        "checkpoint_seconds": int(
            settings.connector_value(flow, "emit.checkpoints.interval.seconds")
        ),
        **topics.connector_topics(flow, named),
    }


def _listed(value: Any) -> list[str]:
    entries = value.split(",") if isinstance(value, str) else map(str, value)
    return [entry.strip() for entry in entries if entry.strip()]


ENGINE = Engine(
    name="mm2",
    title="MirrorMaker 2",
    kafka_version=settings.KAFKA_VERSION,
    oldest="3.8.0",
    older="translates group offsets wrongly",
    several_flows=True,
    creates_topics=True,
    policies=tuple(settings.POLICIES),
    flow_keys=frozenset(("consumer_groups", "tasks_max")),
    owner_keys=frozenset(("worker_properties",)),
    layers={"worker_properties": ""},
    group=topics.group,
    prefix=lambda flow, owner: topics.prefix(flow, topics.policy(owner)),
    unmirrored=lambda flow, owner: topics.unmirrored(flow, topics.policy(owner)),
    judge=judge.judge,
    memory=render.memory,
    render=render.render,
    permissions=lambda flow, owner: permissions.permissions(
        flow, permissions.dedicated(flow, owner)
    ),
    report_permissions=lambda flow, owner: permissions.report_permissions(
        flow, permissions.dedicated(flow, owner)
    ),
    report=report,
)
