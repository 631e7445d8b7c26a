"""What only MirrorMaker 2 is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from . import kafka_names
from .advisories import line_of
from .filled import kafka_version_of
from .inventory import Inventory
from .judge_names import judge_names
from .mm2 import (
    CLIENTS,
    PORT,
    own_factors,
    separator_of,
    unmirrored,
    worker_value,
)
from .mm2_names import (
    CLIENT_KEYS,
    CONNECTOR,
    CONNECTOR_PLUGINS,
    OWNED_CLIENT_KEYS,
    OWNED_FLOW_KEYS,
    OWNED_WORKER_KEYS,
    REMOVED_FLOW_KEYS,
    REMOVED_IN_4,
    REMOVED_WORKER_KEYS,
    REST,
    REST_TLS,
    SEPARATOR,
    WORKER,
    connector_keys,
    worker_keys,
)
from .regex import is_literal
from .render import text_of
from .schema import suggestion

NO_EXACTLY_ONCE = (
    "exactly-once is not offered: it takes two rolling restarts, group positions stay "
    "at-least-once, and its markers make offsets useless for proving that nothing is missing; "
    "remove it"
)


def judge_mm2(found: Inventory) -> None:
    """Judge flows and instances of engine mm2."""
    for name, flow in found.flows.items():
        if flow["engine"] == "mm2":
            owner = found.owner(name)
            version = kafka_version_of(owner[1] if owner else {"kafka_version": None}, "mm2")
            _judge_flow_keys(found, found.paths[name], flow, version)
            _judge_flow(found, found.paths[name], flow)
    for name, instance in found.instances.items():
        flows = [found.flows[flow] for flow in instance["flows"] if flow in found.flows]
        if flows and all(flow["engine"] == "mm2" for flow in flows):
            _judge_instance(found, f"mirrormaker_instances.{name}", instance, flows)
    _judge_pairs(found)
    _judge_ports(found)


def _is_false(value: Any) -> bool:
    return str(value).lower() == "false"


def _judge_flow(found: Inventory, path: str, flow: Mapping[str, Any]) -> None:
    properties = flow["properties"]
    if str(properties.get("errors.tolerance", "none")).lower() == "all":
        found.danger(
            "errors.tolerance", flow["name"],
            f"{path}.properties['errors.tolerance']: all drops records that cannot be written and "
            "goes on; remove it",
        )  # fmt: skip
    if _is_false(properties.get("emit.offset-syncs.enabled")):
        if flow["consumer_groups"]:
            found.refuse(
                f"{path}.properties['emit.offset-syncs.enabled']: without offset syncs no group "
                "can follow; remove it, or consumer_groups"
            )
        else:
            found.warn(
                f"{path}.properties['emit.offset-syncs.enabled']: without offset syncs the report "
                "cannot see target offsets shift; remove it"
            )
    for key in CONNECTOR_PLUGINS:
        if properties.get(key):
            found.warn(
                f"{path}.properties['{key}']: changes records, so the report will call them altered"
            )


def _judge_flow_keys(found: Inventory, path: str, flow: Mapping[str, Any], version: str) -> None:
    line = line_of(version)
    where = f"{path}.properties"
    clients: dict[str, dict[str, Any]] = {"consumer.": {}, "producer.override.": {}}
    for key, value in flow["properties"].items():
        prefix = next((one for one in clients if key.startswith(one)), "")
        if key in OWNED_FLOW_KEYS or key in REMOVED_FLOW_KEYS:
            _obsolete(found, where, key, OWNED_FLOW_KEYS, REMOVED_FLOW_KEYS)
        elif key in connector_keys(line):
            continue  # some of these look like a client's: consumer.poll.timeout.ms
        elif prefix:
            clients[prefix][key.removeprefix(prefix)] = value
        elif key.startswith(("source.cluster.", "target.cluster.", "config.providers.")):
            found.refuse(f"{where}['{key}']: is written from the model; set kafka_clusters instead")
        elif misplaced := _misplaced_client_key(key):
            found.refuse(f"{where}['{key}']: {misplaced}")
        elif not key.startswith(tuple(f"{one}." for one in CONNECTOR_PLUGINS)):
            _judge_known(
                found, where, key, connector_keys(line), version,
                lambda key: "it belongs into worker_properties of the instance"
                if key in WORKER["3.9"] | WORKER["4.3"] else "",
            )  # fmt: skip
    for prefix, properties in clients.items():
        client = prefix.partition(".")[0]
        _judge_client(found, where, client, properties, prefix, version)


def _misplaced_client_key(key: str) -> str:
    for prefix, cure in CLIENT_KEYS.items():
        if key.startswith(prefix):
            return cure.format(key.removeprefix(prefix))
    return ""


def _obsolete(
    found: Inventory, path: str, key: str, owned: Mapping[str, str], removed: Mapping[str, str]
) -> None:
    if key in owned:
        found.refuse(f"{path}['{key}']: is written from the model; {owned[key]}")
    else:
        found.refuse(f"{path}['{key}']: is not read by MirrorMaker 2; {removed[key]}")


def _judge_known(
    found: Inventory,
    path: str,
    key: str,
    known: frozenset[str],
    version: str,
    elsewhere: Callable[[str], str],
) -> None:
    """Refuse a key that the release does not know: gone, of another place, or mistyped."""
    where = f"{path}['{key}']"
    if line_of(version) != "3.9" and key in REMOVED_IN_4:
        found.refuse(f"{where}: Kafka {version} no longer reads it; {REMOVED_IN_4[key]}")
    elif key not in known:
        cure = elsewhere(key) or suggestion(key, known)
        found.refuse(f"{where}: Kafka {version} does not know it here; {cure}")


def _judge_client(
    found: Inventory,
    path: str,
    client: str,
    properties: Mapping[str, Any],
    prefix: str,
    version: str,
) -> None:
    line = line_of(version)
    belongs = "set kafka_clusters.<alias>, or its properties"
    owned = {**dict.fromkeys(kafka_names.SECURITY[line], belongs), **OWNED_CLIENT_KEYS}
    judge_names(found, path, properties, CLIENTS[client][line], prefix, owned)
    for key in properties:
        if line != "3.9" and key in REMOVED_IN_4:
            found.refuse(
                f"{path}['{prefix}{key}']: Kafka {version} no longer reads it; {REMOVED_IN_4[key]}"
            )


def _judge_instance(
    found: Inventory,
    path: str,
    instance: Mapping[str, Any],
    flows: list[dict[str, Any]],
) -> None:
    targets = sorted({flow["target"] for flow in flows})
    if len(targets) > 1:
        found.refuse(
            f"{path}.flows: lead to several targets ({', '.join(targets)}); an instance runs next "
            "to one target, so give each its own"
        )
    if len({flow["replication_policy"] for flow in flows}) > 1:
        found.refuse(
            f"{path}.flows: have different replication_policy; MirrorMaker 2 knows one for a "
            "process, so give each its own instance"
        )
    _judge_worker_keys(found, f"{path}.worker_properties", instance)
    if not SEPARATOR.fullmatch(separator_of(instance)):
        found.refuse(
            f"{path}.worker_properties['replication.policy.separator']: a topic name could not "
            "hold it; use '.', '-' or '_'"
        )
        return
    for flow in flows:
        _judge_aliases(found, flow, separator_of(instance))
        own = unmirrored(flow, instance)
        for topic in filter(is_literal, flow["topics"]):
            if any(re.fullmatch(pattern, topic) for pattern in own):
                found.refuse(
                    f"{found.paths[flow['name']]}.topics: MirrorMaker 2 never mirrors '{topic}', "
                    "whose name is one of its own or of what came from "
                    f"'{flow['target']}'; remove it"
                )
        if flow["target"] in found.sound:
            _judge_acks(found, path, instance, flow)
        for key, value in own_factors(flow, instance).items():
            _judge_number(found, f"{key} of '{flow['name']}' or its instance", value)
    for alias in dict.fromkeys([*(flow["source"] for flow in flows), targets[0]]):
        _judge_cluster(found, alias, kafka_version_of(instance, "mm2"))


def _judge_aliases(found: Inventory, flow: Mapping[str, Any], separator: str) -> None:
    for side in ("source", "target"):
        if separator in flow[side]:
            found.refuse(
                f"{found.paths[flow['name']]}.{side}: '{flow[side]}' holds the separator "
                f"'{separator}', so MirrorMaker 2 could not tell the alias from the topic's name; "
                "set another replication.policy.separator in worker_properties of the instance"
            )


def _judge_acks(
    found: Inventory, path: str, instance: Mapping[str, Any], flow: Mapping[str, Any]
) -> None:
    """Mention acknowledgements that a failing broker can belie, in whatever layer they are set."""
    layers = (
        (f"kafka_clusters.{flow['target']}.properties['acks']",
         found.clusters[flow["target"]].get("properties") or {}, "acks"),
        (f"{path}.worker_properties['producer.acks']", instance["worker_properties"],
         "producer.acks"),
        (f"{found.paths[flow['name']]}.properties['producer.override.acks']", flow["properties"],
         "producer.override.acks"),
    )  # fmt: skip
    for where, properties, key in layers:
        if str(properties.get(key, "all")) not in ("all", "-1"):
            found.warn(
                f"{where}: records are lost when a broker of '{flow['target']}' fails; remove it"
            )


def _judge_number(found: Inventory, path: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        found.refuse(f"{path}: must be a whole number of at least 1, without quotes")


def _judge_cluster(found: Inventory, alias: str, version: str) -> None:
    if alias not in found.sound or line_of(version) == "3.9":
        return
    for key in found.clusters[alias].get("properties") or {}:
        if key in REMOVED_IN_4:
            found.refuse(
                f"kafka_clusters.{alias}.properties['{key}']: Kafka {version} no longer reads it; "
                f"{REMOVED_IN_4[key]}"
            )


def _judge_worker_keys(found: Inventory, path: str, instance: Mapping[str, Any]) -> None:
    version = kafka_version_of(instance, "mm2")
    line = line_of(version)
    clients: dict[str, dict[str, Any]] = {f"{client}.": {} for client in CLIENTS}
    for key, value in instance["worker_properties"].items():
        prefix = next((one for one in clients if key.startswith(one)), "")
        if key in OWNED_WORKER_KEYS or key in REMOVED_WORKER_KEYS:
            _obsolete(found, path, key, OWNED_WORKER_KEYS, REMOVED_WORKER_KEYS)
        elif key in kafka_names.SECURITY[line]:
            found.refuse(
                f"{path}['{key}']: belongs to the cluster; set it in kafka_clusters.<alias>, or "
                "its properties"
            )
        elif key.startswith("producer.override."):
            found.refuse(
                f"{path}['{key}']: write producer.{key.removeprefix('producer.override.')}"
            )
        elif prefix:
            clients[prefix][key.removeprefix(prefix)] = value
        elif key.startswith("config.providers."):
            found.refuse(f"{path}['{key}']: {OWNED_WORKER_KEYS['config.providers']}")
        elif key == "exactly.once.source.support" and value not in (None, "disabled"):
            found.refuse(f"{path}['{key}']: {NO_EXACTLY_ONCE}")
        elif not (key.startswith(f"{REST_TLS}ssl.") or key in worker_keys(line)):
            _judge_known(
                found, path, key, worker_keys(line), version,
                lambda key: "it belongs into properties of the flows in mirror_flows"
                if key in CONNECTOR["3.9"] | CONNECTOR["4.3"] else "",
            )  # fmt: skip
        elif (key in REST or key.startswith(REST_TLS)) and len(instance["hosts"]) < 2:
            found.warn(f"{path}['{key}']: means nothing to an instance on one host; remove it")
    for prefix, properties in clients.items():
        _judge_client(found, path, prefix.removesuffix("."), properties, prefix, version)
    interval = worker_value(instance, "offset.flush.interval.ms")
    if interval is not None:
        _judge_number(found, f"{path}['offset.flush.interval.ms']", interval)


def _judge_pairs(found: Inventory) -> None:
    pairs: dict[tuple[str, str], str] = {}
    for name, flow in found.flows.items():
        if flow["engine"] != "mm2" or found.owner(name) is None:
            continue
        pair = (flow["source"], flow["target"])
        if pair in pairs:
            found.refuse(
                f"{found.paths[name]}: '{pairs[pair]}' mirrors from {pair[0]} to {pair[1]} with "
                "MirrorMaker 2 already, whose group and topics are named after the pair; list the "
                "topics of both in one flow"
            )
        pairs.setdefault(pair, name)


def _judge_ports(found: Inventory) -> None:
    """Two nodes on one host cannot listen on one port."""
    taken: dict[tuple[str, str], str] = {}
    for name, instance in found.instances.items():
        engines = {found.flows[flow]["engine"] for flow in instance["flows"] if flow in found.flows}
        if engines != {"mm2"} or len(instance["hosts"]) < 2:
            continue
        own = instance["worker_properties"].get("listeners") or f":{PORT}"
        for host in instance["hosts"]:
            for port in re.findall(r":([0-9]+)(?=,|$)", text_of("listeners", own)):
                other = taken.setdefault((host, port), name)
                if other != name:
                    found.refuse(
                        f"mirrormaker_instances.{name}.worker_properties['listeners']: port {port} "
                        f"on '{host}' is already that of a node of '{other}'; set it to "
                        f"http://:{int(port) + 1}"
                    )
