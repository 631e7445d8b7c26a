"""What the report has to know of a flow of MirrorMaker 2."""

from typing import Any

from ... import regex
from ...filled import Clusters, Flow
from ...owner import Owner
from . import render, settings, topics


def report(clusters: Clusters, flow: Flow, owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine.

    On the target, only workers that deliver exactly once write records of transactions.
    """
    consumer = f"{flow['source']}.consumer.isolation.level"
    exactly_once = settings.worker_value(owner, "exactly.once.source.support") == "enabled"
    return {
        "commit_interval_ms": settings.worker_value(owner, "offset.flush.interval.ms") or 60000,
        "parallelism": flow["tasks_max"],
        "replication_policy": flow["replication_policy"],
        "separator": topics.separator_of(owner),
        "consumer_groups": list(map(regex.as_regex, flow["consumer_groups"])),
        "groups_exclude": _listed(settings.connector_value(flow, "groups.exclude")),
        "config_exclude": _listed(settings.connector_value(flow, "config.properties.exclude")),
        "sync_topic_configs": settings.is_on(flow, "sync.topic.configs.enabled"),
        "checkpoint_seconds": int(
            settings.connector_value(flow, "emit.checkpoints.interval.seconds")
        ),
        "replication_factors": settings.own_factors(flow, owner),
        "source_isolation": render.properties_of(clusters, [flow], owner, {}).get(consumer)
        or "read_uncommitted",
        "target_isolation": "read_committed" if exactly_once else "read_uncommitted",
        **topics.internal_topics(flow, owner),
    }


def _listed(value: Any) -> list[str]:
    entries = value.split(",") if isinstance(value, str) else map(str, value)
    return [entry.strip() for entry in entries if entry.strip()]
