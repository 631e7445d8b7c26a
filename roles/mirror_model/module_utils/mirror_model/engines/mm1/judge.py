"""What only MirrorMaker 1 is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import kafka_names
from ...client_names import LEGACY_KEYS, REMOVED_OPTIONS, judge_names
from ...filled import within
from ...inventory import Inventory
from ...keys import suggestion
from ...owner import Owner
from .render import OPTIONS, clients, options

CLIENTS = {"consumer": kafka_names.CONSUMER["3.9"], "producer": kafka_names.PRODUCER["3.9"]}


def judge(found: Inventory, flows: Sequence[Mapping[str, Any]]) -> None:
    """Judge the flows of MirrorMaker 1, and its keys of owners wherever they stand."""
    for flow in flows:
        _judge_flow(found, f"{found.paths[flow['name']]}.properties", flow["properties"])
    for owner in (*found.owners, *found.absent):
        _judge_options(found, f"{owner.path}.mm1_options", owner.settings["mm1_options"])
        for client in CLIENTS:
            key = f"{client}_properties"
            _judge_client(found, f"{owner.path}.{key}", client, owner.settings[key])
    for owner, flow in found.running():
        if flow in flows and {flow["source"], flow["target"]} <= found.sound:
            _judge_dangers(found, owner, flow)


def _judge_flow(found: Inventory, path: str, properties: Mapping[str, Any]) -> None:
    for client in CLIENTS:
        prefix = f"{client}."
        _judge_client(found, path, client, within(properties, prefix), prefix)
    for key in properties:
        if not key.startswith(tuple(f"{client}." for client in CLIENTS)):
            found.refuse(
                f"{path}['{key}']: begin it with 'consumer.' or 'producer.' for engine mm1"
            )


def _judge_client(
    found: Inventory, path: str, client: str, properties: Mapping[str, Any], prefix: str = ""
) -> None:
    for name in properties:
        if name in OPTIONS:
            found.refuse(
                f"{path}['{prefix}{name}']: is a command line option and ignored here; set "
                "mm1_options of the instance"
            )
    judge_names(found, path, properties, CLIENTS[client], prefix)


def _judge_options(found: Inventory, path: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        where = f"{path}['{name}']"
        if name in REMOVED_OPTIONS:
            found.refuse(f"{where}: is not an option (any more); {REMOVED_OPTIONS[name]}")
        elif name in LEGACY_KEYS:
            found.refuse(f"{where}: is no longer read by any client; {LEGACY_KEYS[name]}")
        elif name not in OPTIONS:
            found.refuse(f"{where}: unknown option; {suggestion(name, OPTIONS)}")
        elif name == "abort.on.send.failure" and not (value is None or isinstance(value, bool)):
            found.refuse(f"{where}: must be true or false, without quotes")
        elif name == "offset.commit.interval.ms" and not _is_interval(value):
            found.refuse(f"{where}: must be a whole number of milliseconds, at least 1")


def _is_interval(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def _judge_dangers(found: Inventory, owner: Owner, flow: Mapping[str, Any]) -> None:
    """Refuse or mention settings that lose or misplace records."""
    label, path = flow["name"], owner.path
    if options(owner).get("abort.on.send.failure") is False:
        found.danger(
            "abort.on.send.failure", label,
            f"{path}.mm1_options['abort.on.send.failure']: false drops records that cannot be "
            "written and commits past them; set it to true",
        )  # fmt: skip
    consumer, producer = clients(found.clusters, flow, owner)
    if str(consumer.get("enable.auto.commit", False)).lower() != "false":
        found.danger(
            "enable.auto.commit", label,
            f"{path}.consumer_properties['enable.auto.commit']: commits records that may never "
            "reach the target; remove it",
        )  # fmt: skip
    if "producer.type" in producer:
        found.danger(
            "producer.type", label,
            f"{path}.producer_properties['producer.type']: sends one record at a time; "
            "remove it",
        )  # fmt: skip
    if str(producer.get("acks", "all")) not in ("all", "-1"):
        found.warn(
            f"{path}.producer_properties['acks']: records are lost when a broker of "
            f"'{flow['target']}' fails; remove it"
        )
