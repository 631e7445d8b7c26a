"""What only MirrorMaker 2 is asked."""

import re
from collections.abc import Iterable, Sequence

from ... import kafka_names, regex
from ...connectors import judge_keys, names, settings, topics
from ...inventory import Inventory, Owner
from ...keys import Flow
from ...render import text_of
from . import keys, places, render


def judge(found: Inventory, flows: Sequence[Flow]) -> None:
    """Judge the flows of MirrorMaker 2 and the owners that run no others."""
    for flow in flows:
        owner, path = found.owner(flow["name"]), f"{found.paths[flow['name']]}.properties"
        version = owner.version(settings.KAFKA_VERSION) if owner else settings.KAFKA_VERSION
        judge_keys.judge_flow_keys(found, path, flow["properties"], version, keys.OWNED_FLOW_KEYS)
        _judge_flow(found, path, flow)
    owners = []
    for owner in found.owners:
        own = found.flows_of(owner)
        if own and all(flow in flows for flow in own):
            _judge_owner(found, owner, own)
            owners.append(owner)
    _judge_pairs(found, flows)
    _judge_ports(found, owners)


def _judge_flow(found: Inventory, path: str, flow: Flow) -> None:
    properties = flow["properties"]
    if str(properties.get("errors.tolerance", "none")).lower() == "all":
        found.danger(
            "errors.tolerance", flow["name"],
            f"{path}['errors.tolerance']: all drops records that cannot be written and "
            "goes on; remove it",
        )  # fmt: skip
    if str(properties.get("emit.offset-syncs.enabled")).lower() == "false":
        if flow["consumer_groups"]:
            found.refuse(
                f"{path}['emit.offset-syncs.enabled']: without offset syncs no group "
                "can follow; remove it, or consumer_groups"
            )
        else:
            found.warn(
                f"{path}['emit.offset-syncs.enabled']: without offset syncs the report "
                "cannot see target offsets shift; remove it"
            )
    for key in names.CONNECTOR_PLUGINS:
        if properties.get(key):
            found.warn(f"{path}['{key}']: changes records, so the report will call them altered")


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
    named = places.policy(owner)
    if not topics.SEPARATOR.fullmatch(named.separator):
        found.refuse(
            f"{owner.path}.worker_properties['replication.policy.separator']: a topic name could "
            "not hold it; use '.', '-' or '_'"
        )
        return
    for flow in flows:
        _judge_aliases(found, flow, named.separator)
        own = topics.unmirrored(flow, named)
        for topic in filter(regex.is_literal, flow["topics"]):
            if any(re.fullmatch(pattern, topic) for pattern in own):
                found.refuse(
                    f"{found.paths[flow['name']]}.topics: MirrorMaker 2 never mirrors '{topic}', "
                    "whose name is one of its own or of what came from "
                    f"'{flow['target']}'; remove it"
                )
        if flow["target"] in found.sound:
            _judge_acks(found, owner, flow)
        for key, value in settings.own_factors(flow, owner).items():
            judge_keys.judge_number(found, f"{key} of '{flow['name']}' or its instance", value)
    for alias in dict.fromkeys([*(flow["source"] for flow in flows), targets[0]]):
        if alias in found.sound:
            properties = found.clusters[alias].get("properties") or {}
            judge_keys.judge_removed(
                found, f"kafka_clusters.{alias}.properties", properties, version
            )


def _judge_aliases(found: Inventory, flow: Flow, separator: str) -> None:
    for side in ("source", "target"):
        if separator in flow[side]:
            found.refuse(
                f"{found.paths[flow['name']]}.{side}: '{flow[side]}' holds the separator "
                f"'{separator}', so MirrorMaker 2 could not tell the alias from the topic's name; "
                "set another replication.policy.separator in worker_properties of the instance"
            )


def _judge_acks(found: Inventory, owner: Owner, flow: Flow) -> None:
    """Mention acknowledgements that a failing broker can belie, in whatever layer they are set."""
    layers = (
        (f"kafka_clusters.{flow['target']}.properties['acks']",
         found.clusters[flow["target"]].get("properties") or {}, "acks"),
        (f"{owner.path}.worker_properties['producer.acks']", owner.settings["worker_properties"],
         "producer.acks"),
        (f"{found.paths[flow['name']]}.properties['producer.override.acks']", flow["properties"],
         "producer.override.acks"),
    )  # fmt: skip
    for where, properties, key in layers:
        if str(properties.get(key, "all")) not in ("all", "-1"):
            found.warn(
                f"{where}: records are lost when a broker of '{flow['target']}' fails; remove it"
            )


def _judge_pairs(found: Inventory, flows: Sequence[Flow]) -> None:
    pairs: dict[tuple[str, str], str] = {}
    for flow in flows:
        name, pair = flow["name"], (flow["source"], flow["target"])
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
