"""MirrorMaker 1: its options, its two clients and its command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import regex, tuned
from ...clusters import client_properties, credentials_directory
from ...filled import cluster_of, layered, within
from ...owner import Owner

OPTIONS: dict[str, tuple[Any, str]] = {
    "abort.on.send.failure": (True, "Stop, uncommitted, when a record cannot be written."),
    "consumer.rebalance.listener": (None, "Class told about rebalances."),
    "message.handler": (None, "Class that sees, and may change, every record."),
    "message.handler.args": (None, "Argument of the message handler's constructor."),
    "offset.commit.interval.ms": (10000, "How often flushed positions are committed."),
    "rebalance.listener.args": (None, "Argument of the rebalance listener's constructor."),
}
CONSUMER_DEFAULTS = tuned.CONSUMER_DEFAULTS | {
    "enable.auto.commit": False,
    "heartbeat.interval.ms": 3000,
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "session.timeout.ms": 10000,
}


def fill(flow: Mapping[str, Any]) -> dict[str, Any]:
    """The group's name, by which positions are found again."""
    return {"group_id": flow["group_id"] or f"mirrormaker-{flow['name']}"}


def group(flow: Mapping[str, Any]) -> tuple[str, str]:
    """The group that reads the source."""
    return flow["source"], flow["group_id"]


def options(owner: Owner) -> dict[str, Any]:
    """MirrorMaker 1's command line options of one owner, defaults included."""
    defaults = {name: value for name, (value, _) in OPTIONS.items()}
    return layered(defaults, owner.settings["mm1_options"])


def clients(
    clusters: Mapping[str, Any], flow: Mapping[str, Any], owner: Owner
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The properties of the two clients of one process.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``mirror_flows[].properties``, the owner's ``consumer_properties``/``producer_properties``.

    :param clusters: ``kafka_clusters``.
    :param flow: the flow, filled in.
    :param owner: what runs it.
    :returns: consumer properties, producer properties; secrets as references.
    """
    sides = (
        ("consumer", flow["source"], CONSUMER_DEFAULTS,
         {"group.id": flow["group_id"], "auto.offset.reset": flow["start"]}),
        ("producer", flow["target"], tuned.PRODUCER_DEFAULTS, {"client.id": flow["group_id"]}),
    )  # fmt: skip
    consumer, producer = (
        layered(
            defaults,
            client_properties(clusters, alias, "mirror", credentials_directory(owner.name)),
            derived,
            cluster_of(clusters, alias)["properties"],
            within(flow["properties"], f"{client}."),
            owner.settings[f"{client}_properties"],
        )
        for client, alias, defaults, derived in sides
    )
    return consumer, producer


def render(
    clusters: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    owner: Owner,
    _node: Mapping[str, Any],
) -> dict[str, Any]:
    """What a MirrorMaker 1 process is started with, as ``Engine`` describes it."""
    [flow] = flows
    consumer, producer = clients(clusters, flow, owner)
    own = {
        "consumer.config": f"{owner.directory}/consumer.properties",
        "producer.config": f"{owner.directory}/producer.properties",
        "include": regex.include_regex(flow["topics"], flow["topics_exclude"]),
        "num.streams": owner.settings["num_streams"],
        **dict(sorted(options(owner).items())),
    }
    variables = {option: f"MM_{option.replace('.', '_').upper()}" for option in own}
    return {
        "script": "kafka-mirror-maker.sh",
        "arguments": [f"--{option} ${{{variable}}}" for option, variable in variables.items()],
        "environment": {variables[option]: value for option, value in own.items()},
        "files": {"consumer.properties": consumer, "producer.properties": producer},
        "identity": {"source": flow["source"], "group_id": flow["group_id"]},
        "positions": f"group {flow['group_id']} on {flow['source']}",
    }
