"""What only MirrorMaker 2 is asked."""

import re
from collections.abc import Iterable, Sequence

from ... import kafka_names
from ...clusters import aliases_of
from ...connectors import judge as own_judge
from ...connectors import judge_keys, names, settings
from ...inventory import Inventory, Owner
from ...keys import Flow
from ...render import text_of
from . import keys, places, render

SEPARATOR_OF = "{0.path}.worker_properties"


def judge(found: Inventory, flows: Sequence[Flow]) -> None:
    """Judge the flows of MirrorMaker 2 and the owners that run no others."""
    for flow in flows:
        owner, path = found.owner(flow["name"]), f"{found.paths[flow['name']]}.properties"
        version = owner.version(settings.KAFKA_VERSION) if owner else settings.KAFKA_VERSION
        judge_keys.judge_flow_keys(found, path, flow["properties"], version, keys.OWNED_FLOW_KEYS)
        own_judge.judge_flow(found, path, flow)
    owners = []
    for owner in found.owners:
        own = found.flows_of(owner)
        if own and all(flow in flows for flow in own):
            _judge_owner(found, owner, own)
            owners.append(owner)
    _judge_pairs(found, flows)
    _judge_ports(found, owners)


def _judge_owner(found: Inventory, owner: Owner, flows: Sequence[Flow]) -> None:
    targets = sorted({flow["target"] for flow in flows})
    if len(targets) > 1:
        found.refuse(
            f"{owner.path}.flows: lead to several targets ({', '.join(targets)}); an instance runs "
            "next to one target, so give each its own"
        )
    if len({flow["replication_policy"] for flow in flows}) > 1:
        found.refuse(
            f"{owner.path}.flows: have different replication_policy; MirrorMaker 2 knows one for a "
            "process, so give each its own instance"
        )
    version = owner.version(settings.KAFKA_VERSION)
    known = keys.worker_keys(kafka_names.line_of(version))
    judge_keys.judge_worker_keys(found, owner, keys.OWNED_WORKER_KEYS, known)
    if len(owner.hosts) < 2:
        for key in filter(names.is_rest, owner.settings["worker_properties"]):
            found.warn(
                f"{owner.path}.worker_properties['{key}']: means nothing to an instance on one "
                "host; remove it"
            )
    for flow in flows:
        own_judge.judge_names(found, flow, owner, places.policy(owner), SEPARATOR_OF)
    for alias in dict.fromkeys([*(flow["source"] for flow in flows), targets[0]]):
        if alias in found.sound:
            properties = found.clusters[alias].get("properties") or {}
            judge_keys.judge_removed(
                found, f"kafka_clusters.{alias}.properties", properties, version
            )


def _judge_pairs(found: Inventory, flows: Sequence[Flow]) -> None:
    pairs: dict[tuple[str, str], str] = {}
    for flow in flows:
        name, pair = flow["name"], (flow["source"], aliases_of(found.clusters, flow["target"])[0])
        if found.owner(name) and (first := pairs.setdefault(pair, name)) != name:
            found.refuse(
                f"{found.paths[name]}: '{first}' mirrors from {pair[0]} to {pair[1]} with "
                "MirrorMaker 2 already, whose group and topics are named after the pair; list the "
                "topics of both in one flow"
            )


def _judge_ports(found: Inventory, owners: Iterable[Owner]) -> None:
    """Two nodes on one host cannot listen on one port."""
    taken: dict[tuple[str, str], str] = {}
    for owner in owners:
        if len(owner.hosts) < 2:
            continue
        own = owner.settings["worker_properties"].get("listeners") or f":{render.PORT}"
        for host in owner.hosts:
            for port in re.findall(r":([0-9]+)(?=,|$)", text_of("listeners", own)):
                if (other := taken.setdefault((host, port), owner.name)) != owner.name:
                    found.refuse(
                        f"{owner.path}.worker_properties['listeners']: port {port} "
                        f"on '{host}' is already that of a node of '{other}'; set it to "
                        f"http://:{int(port) + 1}"
                    )
