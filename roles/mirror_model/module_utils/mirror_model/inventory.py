"""The inventory while it is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .mm2 import separator_of, unmirrored
from .mm2_names import SEPARATOR


@dataclass
class Inventory:
    """The inventory while it is judged; later steps see only what had the right shape."""

    clusters: dict[str, Any]
    flows: dict[str, dict[str, Any]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    sound: set[str] = field(default_factory=set)
    instances: dict[str, dict[str, Any]] = field(default_factory=dict)
    accept: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, message: str) -> None:
        """Note what must not be; each message once."""
        if message not in self.errors:
            self.errors.append(message)

    def warn(self, message: str) -> None:
        """Note what deserves a second look; each message once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def danger(self, danger: str, name: str, message: str) -> None:
        """Refuse what endangers a flow, an instance or a cluster, unless it is accepted by name."""
        if f"{danger}:{name}" in self.accept:
            self.warn(f"{message} (accepted by mirror_accept)")
        else:
            self.refuse(f"{message}, or list '{danger}:{name}' in mirror_accept")

    def owner(self, flow: str) -> tuple[str, dict[str, Any]] | None:
        """The instance, with its name, that has a flow and is not absent."""
        for name, instance in self.instances.items():
            if flow in instance["flows"]:
                return name, instance
        return None

    def selection(self, flow: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Patterns a flow takes and patterns it leaves out, those of its engine included."""
        owner, excluded = self.owner(flow["name"]), flow["topics_exclude"]
        if (
            flow["engine"] == "mm2"
            and owner is not None
            and SEPARATOR.fullmatch(separator_of(owner[1]))
        ):
            excluded = [*excluded, *unmirrored(flow, owner[1])]
        return flow["topics"], excluded

    def placed(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Instance name, instance and flow of whatever has a place on hosts and is to run."""
        for name, instance in self.instances.items():
            if instance["state"] == "started":
                for flow in instance["flows"]:
                    if flow in self.flows:
                        yield name, instance, self.flows[flow]
