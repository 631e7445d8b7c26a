"""The inventory while it is judged."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .owner import Owner


@dataclass
class Inventory:
    """The inventory while it is judged; later checks see only what had the right shape.

    :param clusters: ``kafka_clusters``, whatever their shape.
    :param sound: aliases of the clusters that passed their own checks.
    :param named: names of all flows, whatever their shape.
    :param flows: name to flow, filled in.
    :param paths: name to the flow's variable, for messages.
    :param owners: what is to be on hosts, started or stopped.
    :param absent: owners that are to be removed from theirs.
    :param accept: ``mirror_accept``.
    """

    clusters: dict[str, Any]
    sound: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    flows: dict[str, dict[str, Any]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    owners: list[Owner] = field(default_factory=list)
    absent: list[Owner] = field(default_factory=list)
    accept: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, message: str) -> None:
        """Note what must not be; each message once."""
        if message not in self.errors:
            self.errors.append(message)

    def warn(self, message: str) -> None:
        """Note what deserves attention; each message once."""
        if message not in self.warnings:
            self.warnings.append(message)

    def danger(self, danger: str, name: str, message: str) -> None:
        """Refuse what endangers a flow, an owner or a cluster, unless it is accepted by name."""
        if f"{danger}:{name}" in self.accept:
            self.warn(f"{message} (accepted by mirror_accept)")
        else:
            self.refuse(f"{message}, or list '{danger}:{name}' in mirror_accept")

    def owner(self, flow: str) -> Owner | None:
        """The first owner that lists a flow and is not absent."""
        return next((owner for owner in self.owners if flow in owner.flows), None)

    def flows_of(self, owner: Owner) -> list[dict[str, Any]]:
        """The owner's flows, as far as they had the right shape."""
        return [self.flows[name] for name in owner.flows if name in self.flows]

    def running(self) -> Iterator[tuple[Owner, dict[str, Any]]]:
        """Owner and flow of whatever is to run."""
        for owner in self.owners:
            if owner.state == "started":
                for flow in self.flows_of(owner):
                    yield owner, flow
