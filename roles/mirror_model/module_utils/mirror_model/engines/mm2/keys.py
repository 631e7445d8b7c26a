"""Which keys a user may write of a dedicated process, and what to do instead of the others."""

from ...connectors.names import AGREED, REST, WORKER
from ...connectors.settable import CONVERTERS
from ...connectors.settable import OWNED_FLOW_KEYS as OF_EVERY_FLOW

OWNED_FLOW_KEYS = {
    **OF_EVERY_FLOW,
    "replication.policy.separator": "set it in worker_properties of the instance, for all its "
    "flows",
    "replication.policy.internal.topic.separator.enabled": "set it in worker_properties of the "
    "instance, for all its flows",
}
OWNED_WORKER_KEYS = {
    "bootstrap.servers": "set kafka_clusters.<alias>.bootstrap_servers",
    "group.id": "remove it; the workers of a flow are the group <source>-mm2",
    "client.id": "remove it; clients are named after the flow",
    "config.storage.topic": "remove it; it is named after the source",
    "offset.storage.topic": "remove it; it is named after the source",
    "status.storage.topic": "remove it; it is named after the source",
    **CONVERTERS,
    "config.providers": "remove it; the role uses the provider for its credentials",
    "clusters": "remove it; they follow from the flows",
    "dedicated.mode.enable.internal.rest": "remove it; it follows from hosts of the instance",
    "replication.policy.class": "set mirror_flows[].replication_policy",
    "admin.listeners": "remove it; dedicated workers have no such server",
    "rest.extension.classes": "remove it; dedicated workers have no such server",
}


def worker_keys(line: str) -> frozenset[str]:
    """Worker keys a user may write in ``worker_properties``."""
    return (WORKER[line] | REST | AGREED) - set(OWNED_WORKER_KEYS)
