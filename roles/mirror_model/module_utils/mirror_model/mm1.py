"""MirrorMaker 1: its options, its two clients and its command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import regex
from .clusters import client_properties, credentials_directory
from .filled import cluster_of, layered
from .schema import CONFIGURATION, CONSUMER_DEFAULTS, MM1_OPTIONS, PRODUCER_DEFAULTS


def mm1_options(instance: Mapping[str, Any]) -> dict[str, Any]:
    """MirrorMaker 1's command line options of one instance, defaults included."""
    return layered({name: value for name, (value, _) in MM1_OPTIONS.items()},
                   instance["mm1_options"])  # fmt: skip


def mm1_properties(
    clusters: Mapping[str, Any], flow: Mapping[str, Any], instance: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The consumer's and the producer's properties of one MirrorMaker 1 process.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``mirror_flows[].properties``, the instance's ``consumer_properties``/``producer_properties``.

    :param clusters: ``kafka_clusters``.
    :param flow: the flow, filled in.
    :param instance: the instance, filled in.
    :param name: the instance's name.
    :returns: consumer properties, producer properties; secrets as references.
    """
    sides = (
        ("consumer", flow["source"], CONSUMER_DEFAULTS,
         {"group.id": flow["group_id"], "auto.offset.reset": flow["start"]}),
        ("producer", flow["target"], PRODUCER_DEFAULTS, {"client.id": flow["group_id"]}),
    )  # fmt: skip
    consumer, producer = (
        layered(
            tuned,
            client_properties(clusters, alias, "mirror", credentials_directory(name)),
            derived,
            cluster_of(clusters, alias)["properties"],
            {
                key.removeprefix(f"{side}."): value
                for key, value in flow["properties"].items()
                if key.startswith(f"{side}.")
            },
            instance[f"{side}_properties"],
        )
        for side, alias, tuned, derived in sides
    )
    return consumer, producer


def mm1_process(
    clusters: Mapping[str, Any], flow: Mapping[str, Any], instance: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """What a MirrorMaker 1 process is started with.

    :param clusters: ``kafka_clusters``.
    :param flow: the flow, filled in.
    :param instance: the instance, filled in.
    :param name: the instance's name.
    :returns: script, arguments, environment, files, identity and positions as ``instances``
        describes them.
    """
    consumer, producer = mm1_properties(clusters, flow, instance, name)
    options = {
        "consumer.config": f"{CONFIGURATION}/{name}/consumer.properties",
        "producer.config": f"{CONFIGURATION}/{name}/producer.properties",
        "include": regex.include_regex(flow["topics"], flow["topics_exclude"]),
        "num.streams": instance["num_streams"],
        **dict(sorted(mm1_options(instance).items())),
    }
    variables = {option: f"MM_{option.replace('.', '_').upper()}" for option in options}
    return {
        "script": "kafka-mirror-maker.sh",
        "arguments": [f"--{option} ${{{variable}}}" for option, variable in variables.items()],
        "environment": {variables[option]: value for option, value in options.items()},
        "files": {"consumer.properties": consumer, "producer.properties": producer},
        "identity": {
            "engine": "mm1",
            "flows": [flow["name"]],
            "source": flow["source"],
            "target": flow["target"],
            "group_id": flow["group_id"],
            "policy": flow["replication_policy"],
        },
        "positions": f"group {flow['group_id']} on {flow['source']}",
    }
