"""MirrorMaker 1: one flow per process, a consumer and a producer, positions of a consumer group."""

from ...engine import Engine
from . import judge, permissions, render, report

ENGINE = Engine(
    name="mm1",
    title="MirrorMaker 1",
    kafka_version="3.9.2",
    last_line="3.9",
    policies=("identity",),
    flow_keys=frozenset(("group_id",)),
    owner_keys=frozenset(
        ("consumer_properties", "mm1_options", "num_streams", "producer_properties")
    ),
    layers={"consumer_properties": "source", "producer_properties": "target"},
    flow_clients={"consumer": "source", "producer": "target"},
    fill=render.fill,
    group=render.group,
    judge=judge.judge,
    render=render.render,
    permissions=permissions.permissions,
    report_permissions=permissions.report_permissions,
    report=report.report,
)
