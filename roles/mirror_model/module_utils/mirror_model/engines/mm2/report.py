"""What the report has to know of a flow of MirrorMaker 2."""

from typing import Any

from ... import regex
from ...filled import Clusters, Flow
from ...owner import Owner
from .render import properties_of
from .settings import connector_value, is_on, own_factors, worker_value
from .topics import internal_topics, separator_of


def report(clusters: Clusters, flow: Flow, owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine.

    On the target, only workers that deliver exactly once write records of transactions.
    """
    consumer = f"{flow['source']}.consumer.isolation.level"
    exactly_once = worker_value(owner, "exactly.once.source.support") == "enabled"
    return {
        "commit_interval_ms": worker_value(owner, "offset.flush.interval.ms") or 60000,
        "parallelism": flow["tasks_max"],
        "replication_policy": flow["replication_policy"],
        "separator": separator_of(owner),
        "consumer_groups": list(map(regex.as_regex, flow["consumer_groups"])),
        "groups_exclude": _listed(connector_value(flow, "groups.exclude")),
        "config_exclude": _listed(connector_value(flow, "config.properties.exclude")),
        "sync_topic_configs": is_on(flow, "sync.topic.configs.enabled"),
        "checkpoint_seconds": int(connector_value(flow, "emit.checkpoints.interval.seconds")),
        "replication_factors": own_factors(flow, owner),
        "source_isolation": properties_of(clusters, [flow], owner, {}).get(consumer)
        or "read_uncommitted",
        "target_isolation": "read_committed" if exactly_once else "read_uncommitted",
        **internal_topics(flow, owner),
    }


def _listed(value: Any) -> list[str]:
    entries = value.split(",") if isinstance(value, str) else map(str, value)
    return [entry.strip() for entry in entries if entry.strip()]
