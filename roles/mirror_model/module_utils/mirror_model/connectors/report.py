"""What the report has to know of a flow's connectors."""

from typing import Any

from .. import regex
from ..keys import Flow
from ..owners import Owner
from . import properties, settings, topics


def of_connectors(flow: Flow, owner: Owner, named: topics.Policy) -> dict[str, Any]:
    """What the report has to know of a flow's connectors, whoever runs them."""
    return {
        "parallelism": properties.tasks(flow, owner),
        "replication_policy": flow["replication_policy"],
        "separator": named.separator,
        "consumer_groups": list(map(regex.as_regex, flow["consumer_groups"])),
        "groups_exclude": settings.groups_exclude(flow),
        "config_exclude": settings.listed(
            settings.connector_value(flow, "config.properties.exclude")
        ),
        "sync_topic_configs": settings.is_on(flow, "sync.topic.configs.enabled"),
        "checkpoint_seconds": int(
            settings.connector_value(flow, "emit.checkpoints.interval.seconds")
        ),
        **topics.connector_topics(flow, named),
    }
