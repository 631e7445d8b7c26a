"""MirrorMaker 2, dedicated: several flows into one target per process, positions on the target."""

from typing import Any

from ...connectors import permissions, properties, settings, topics
from ...connectors.report import of_connectors
from ...engine import Engine
from ...keys import Clusters, Flow
from ...owners import Owner
from . import places, render, validate


def report(clusters: Clusters, flow: Flow, owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine.

    On the target, only workers that deliver exactly once write records of transactions.
    """
    exactly_once = settings.worker_value(owner, "exactly.once.source.support") == "enabled"
    return {
        **of_connectors(clusters, flow, owner, places.dedicated(flow, owner)),
        "target_isolation": "read_committed" if exactly_once else "read_uncommitted",
    }


ENGINE = Engine(
    name="mm2",
    title="MirrorMaker 2",
    kafka_version=settings.KAFKA_VERSION,
    oldest="3.8.0",
    older="translates group offsets wrongly",
    nodes="nodes",
    several_flows=True,
    creates_topics=True,
    policies=tuple(settings.POLICIES),
    flow_keys=frozenset(("consumer_groups", "tasks_max")),
    owner_keys=frozenset(("worker_properties",)),
    layers={"worker_properties": ""},
    group=places.group,
    control_topics=topics.CONTROL_TOPICS,
    control_groups=(r".*-mm2",),
    kept=places.kept,
    prefix=lambda flow, owner: topics.prefix(flow, places.policy(owner)),
    unmirrored=lambda flow, owner: topics.unmirrored(flow, places.policy(owner)),
    validate=validate.validate,
    memory=properties.memory,
    render=render.render,
    permissions=lambda flow, owner: permissions.permissions(flow, places.dedicated(flow, owner)),
    report_permissions=lambda flow, owner: permissions.report_permissions(
        flow, places.dedicated(flow, owner)
    ),
    report=report,
)
