"""What the report has to know of a flow's connectors."""

from typing import Any

from .. import regex
from ..keys import Clusters, Flow
from ..owners import Owner
from . import properties, settings, topics
from .permissions import Places


def of_connectors(clusters: Clusters, flow: Flow, owner: Owner, places: Places) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on connectors, whoever runs them."""
    consumer = properties.consumer(clusters, flow, owner, places.named.line)
    return {
        "parallelism": properties.tasks(flow, owner),
        "replication_policy": flow["replication_policy"],
        "separator": places.named.separator,
        "consumer_groups": list(map(regex.as_regex, flow["consumer_groups"])),
        "groups_exclude": settings.groups_exclude(flow),
        "config_exclude": settings.listed(
            settings.connector_value(flow, "config.properties.exclude")
        ),
        "sync_topic_configs": settings.is_on(flow, "sync.topic.configs.enabled"),
        "checkpoint_seconds": int(
            settings.connector_value(flow, "emit.checkpoints.interval.seconds")
        ),
        **topics.connector_topics(flow, places.named),
        **places.workers,
        "commit_interval_ms": settings.worker_value(owner, "offset.flush.interval.ms") or 60000,
        "replication_factors": settings.own_factors(flow, owner),
        "source_isolation": consumer.get("isolation.level") or "read_uncommitted",
    }
