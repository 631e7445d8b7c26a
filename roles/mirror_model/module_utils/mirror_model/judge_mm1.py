"""What only MirrorMaker 1 is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import kafka_names
from .inventory import Inventory
from .judge_names import judge_names
from .mm1 import mm1_options, mm1_properties
from .schema import LEGACY_KEYS, MM1_OPTIONS, REMOVED_OPTIONS, suggestion

SIDES = {"consumer": kafka_names.CONSUMER["3.9"], "producer": kafka_names.PRODUCER["3.9"]}


def judge_mm1_flow(found: Inventory, path: str, flow: Mapping[str, Any]) -> None:
    """Judge what a flow says that only MirrorMaker 1 understands."""
    if flow.get("replication_policy") == "prefix":
        found.refuse(
            f"{path}.replication_policy: MirrorMaker 1 keeps topic names; write identity or "
            "remove it"
        )
    properties = flow.get("properties") or {}
    for side in SIDES:
        prefix = f"{side}."
        own = {
            key.removeprefix(prefix): value
            for key, value in properties.items()
            if key.startswith(prefix)
        }
        judge_mm1_names(found, f"{path}.properties", side, own, prefix)
    for key in properties:
        if not key.startswith(("consumer.", "producer.")):
            found.refuse(
                f"{path}.properties['{key}']: begin it with 'consumer.' or 'producer.' "
                "for engine mm1"
            )


def judge_mm1_names(
    found: Inventory, path: str, side: str, properties: Mapping[str, Any], prefix: str = ""
) -> None:
    """Judge the properties of one of the two clients."""
    for name in properties:
        if name in MM1_OPTIONS:
            found.refuse(
                f"{path}['{prefix}{name}']: is a command line option and ignored here; set "
                "mm1_options of the instance"
            )
    judge_names(found, path, properties, SIDES[side], prefix)


def judge_mm1_options(found: Inventory, path: str, options: Mapping[str, Any]) -> None:
    """Judge ``mm1_options`` of an instance."""
    for name, value in options.items():
        where = f"{path}.mm1_options['{name}']"
        if name in REMOVED_OPTIONS:
            found.refuse(f"{where}: is not an option (any more); {REMOVED_OPTIONS[name]}")
        elif name in LEGACY_KEYS:
            found.refuse(f"{where}: is no longer read by any client; {LEGACY_KEYS[name]}")
        elif name not in MM1_OPTIONS:
            found.refuse(f"{where}: unknown option; {suggestion(name, MM1_OPTIONS)}")
        elif name == "abort.on.send.failure" and not (value is None or isinstance(value, bool)):
            found.refuse(f"{where}: must be true or false, without quotes")
        elif name == "offset.commit.interval.ms" and not _is_interval(value):
            found.refuse(f"{where}: must be a whole number of milliseconds, at least 1")


def _is_interval(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def judge_mm1_dangers(found: Inventory) -> None:
    """Refuse or mention settings that lose or misplace records."""
    for name, instance, flow in found.placed():
        if flow["engine"] != "mm1" or not {flow["source"], flow["target"]} <= found.sound:
            continue
        label, path = flow["name"], f"mirrormaker_instances.{name}"
        if mm1_options(instance).get("abort.on.send.failure") is False:
            found.danger(
                "abort.on.send.failure", label,
                f"{path}.mm1_options['abort.on.send.failure']: false drops records that cannot be "
                "written and commits past them; set it to true",
            )  # fmt: skip
        consumer, producer = mm1_properties(found.clusters, flow, instance, name)
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
