"""Which keys a user may write of a Connect cluster and its flows, and what to do instead."""

from ...connectors.names import REST, WORKER
from ...connectors.settable import CONVERTERS
from ...connectors.settable import OWNED_FLOW_KEYS as OF_EVERY_FLOW

OWNED_FLOW_KEYS = {
    key: cure.replace("of the instance", "of the Connect cluster")
    for key, cure in OF_EVERY_FLOW.items()
} | {"name": "set mirror_flows[].connectors"}
_LISTENER = "set port and rest of the Connect cluster"
_OVERRIDES = "remove it; connectors may override what producer.override. of their flows does"
OWNED_WORKER_KEYS = {
    "bootstrap.servers": "set kafka_clusters.<alias>.bootstrap_servers",
    "group.id": "set group_id of the Connect cluster",
    "client.id": "remove it; clients are named after the group",
    "config.storage.topic": "set topics.config of the Connect cluster",
    "offset.storage.topic": "set topics.offsets of the Connect cluster",
    "status.storage.topic": "set topics.status of the Connect cluster",
    **CONVERTERS,
    "config.providers": "remove it; the role uses the provider for its credentials",
    "connector.client.config.override.policy": _OVERRIDES,
    "connector.client.config.override.allowlist": _OVERRIDES,
    "replication.policy.class": "set mirror_flows[].replication_policy",
    "replication.policy.separator": "set it in mirror_flows[].properties",
    "replication.policy.internal.topic.separator.enabled": "set it in mirror_flows[].properties",
    "admin.listeners": _LISTENER,
    "listeners": _LISTENER,
    "rest.advertised.host.name": "remove it; it is the host's name in the inventory",
    "rest.advertised.listener": _LISTENER,
    "rest.advertised.port": _LISTENER,
    "rest.extension.classes": _LISTENER,
    "ssl.client.auth": "set rest.ssl_certificate of the Connect cluster",
}


def worker_keys(line: str) -> frozenset[str]:
    """Worker keys a user may write in ``worker_properties``."""
    return (WORKER[line] | REST) - set(OWNED_WORKER_KEYS)
