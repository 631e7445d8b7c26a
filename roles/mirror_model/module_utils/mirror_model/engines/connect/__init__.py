"""MirrorMaker 2 on Kafka Connect: a source and a checkpoint connector per flow, and heartbeats."""

from typing import Any

from ...connectors import permissions, settings, topics
from ...connectors.report import of_connectors
from ...engine import Engine
from ...keys import Clusters, Flow
from ...owners import CONNECT_CLUSTERS, Owner
from . import cluster, connectors, validate, worker


def report(clusters: Clusters, flow: Flow, owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine."""
    return {
        **of_connectors(clusters, flow, owner, cluster.places(flow, owner)),
        "connectors": [connectors.name_of(flow, kind) for kind in connectors.CLASSES],
        "target_isolation": "read_uncommitted",
    }


ENGINE = Engine(
    name="mm2-connect",
    title="MirrorMaker 2 on Connect",
    kafka_version=settings.KAFKA_VERSION,
    oldest="3.8.0",
    older="translates group offsets wrongly",
    several_flows=True,
    creates_topics=True,
    policies=tuple(settings.POLICIES),
    flow_keys=frozenset(("connect", "connectors", "consumer_groups", "tasks_max")),
    owner_keys=frozenset(),
    layers={"worker_properties": ""},
    owners=CONNECT_CLUSTERS,
    control_topics=cluster.CONTROL_TOPICS,
    control_groups=cluster.CONTROL_GROUPS,
    kept=cluster.kept,
    group=lambda flow: (flow["target"], flow["connect"]),
    prefix=lambda flow, owner: topics.prefix(flow, cluster.policy(flow, owner)),
    unmirrored=lambda flow, owner: topics.unmirrored(flow, cluster.policy(flow, owner)),
    validate=validate.validate,
    memory=worker.memory,
    render=worker.started,
    connectors=connectors.connectors,
    permissions=lambda flow, owner: permissions.permissions(flow, cluster.places(flow, owner)),
    report_permissions=lambda flow, owner: permissions.report_permissions(
        flow, cluster.places(flow, owner)
    ),
    report=report,
)
