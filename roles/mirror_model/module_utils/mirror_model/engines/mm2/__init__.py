"""MirrorMaker 2, dedicated: several flows into one target per process, positions on the target."""

from ...engine import Engine
from . import judge, permissions, render, report, settings, topics

ENGINE = Engine(
    name="mm2",
    title="MirrorMaker 2",
    kafka_version=settings.KAFKA_VERSION,
    oldest="3.8.0",
    older="translates group offsets wrongly",
    several_flows=True,
    policies=tuple(settings.POLICIES),
    flow_keys=frozenset(("consumer_groups", "tasks_max")),
    owner_keys=frozenset(("worker_properties",)),
    layers={"worker_properties": ""},
    group=topics.group,
    prefix=topics.prefix,
    unmirrored=topics.unmirrored,
    judge=judge.judge,
    render=render.render,
    permissions=permissions.permissions,
    report_permissions=permissions.report_permissions,
    report=report.report,
)
