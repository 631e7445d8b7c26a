"""What only MirrorMaker 2 is asked."""

import re
from collections.abc import Iterable, Sequence

from ... import kafka_names
from ...clusters import aliases_of
from ...connectors import names, settings, validate_keys
from ...connectors import validate as connector_rules
from ...keys import Flow
from ...owners import Owner
from ...render import text_of
from ...validation import Validation
from . import keys, places, render

SEPARATOR_OF = "{0.path}.worker_properties"


def validate(validation: Validation, flows: Sequence[Flow]) -> None:
    """Validate the flows of MirrorMaker 2 and the owners that run no others."""
    for flow in flows:
        owner, path = validation.owner(flow["name"]), f"{validation.paths[flow['name']]}.properties"
        version = owner.version(settings.KAFKA_VERSION) if owner else settings.KAFKA_VERSION
        validate_keys.validate_flow_keys(
            validation, path, flow["properties"], version, keys.OWNED_FLOW_KEYS
        )
        connector_rules.validate_flow(validation, path, flow)
    owners = []
    for owner in validation.owners:
        own = validation.flows_of(owner)
        if own and all(flow in flows for flow in own):
            _validate_owner(validation, owner, own)
            owners.append(owner)
    _validate_pairs(validation, flows)
    _validate_ports(validation, owners)


def _validate_owner(validation: Validation, owner: Owner, flows: Sequence[Flow]) -> None:
    targets = sorted({flow["target"] for flow in flows})
    if len(targets) > 1:
        validation.refuse(
            f"{owner.path}.flows: lead to several targets ({', '.join(targets)}); an instance runs "
            "next to one target, so give each its own"
        )
    if len({flow["replication_policy"] for flow in flows}) > 1:
        validation.refuse(
            f"{owner.path}.flows: have different replication_policy; MirrorMaker 2 knows one for a "
            "process, so give each its own instance"
        )
    version = owner.version(settings.KAFKA_VERSION)
    settable = keys.worker_keys(kafka_names.line_of(version))
    validate_keys.validate_worker_keys(validation, owner, keys.OWNED_WORKER_KEYS, settable)
    if len(owner.hosts) < 2:
        for key in filter(names.is_rest, owner.settings["worker_properties"]):
            validation.warn(
                f"{owner.path}.worker_properties['{key}']: means nothing to an instance on one "
                "host; remove it"
            )
    for flow in flows:
        connector_rules.validate_names(validation, flow, owner, places.policy(owner), SEPARATOR_OF)
    for alias in dict.fromkeys([*(flow["source"] for flow in flows), targets[0]]):
        if alias in validation.sound:
            properties = validation.clusters[alias].get("properties") or {}
            validate_keys.validate_removed(
                validation, f"kafka_clusters.{alias}.properties", properties, version
            )


def _validate_pairs(validation: Validation, flows: Sequence[Flow]) -> None:
    pairs: dict[tuple[str, str], str] = {}
    for flow in flows:
        name, pair = (
            flow["name"],
            (flow["source"], aliases_of(validation.clusters, flow["target"])[0]),
        )
        if validation.owner(name) and (first := pairs.setdefault(pair, name)) != name:
            validation.refuse(
                f"{validation.paths[name]}: '{first}' mirrors from {pair[0]} to {pair[1]} with "
                "MirrorMaker 2 already, whose group and topics are named after the pair; list the "
                "topics of both in one flow"
            )


def _validate_ports(validation: Validation, owners: Iterable[Owner]) -> None:
    """Two nodes on one host cannot listen on one port."""
    taken: dict[tuple[str, str], str] = {}
    for owner in owners:
        if len(owner.hosts) < 2:
            continue
        own = owner.settings["worker_properties"].get("listeners") or f":{render.PORT}"
        for host in owner.hosts:
            for port in re.findall(r":([0-9]+)(?=,|$)", text_of("listeners", own)):
                if (other := taken.setdefault((host, port), owner.name)) != owner.name:
                    validation.refuse(
                        f"{owner.path}.worker_properties['listeners']: port {port} "
                        f"on '{host}' is already that of a node of '{other}'; set it to "
                        f"http://:{int(port) + 1}"
                    )
