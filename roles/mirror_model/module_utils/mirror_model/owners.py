"""Owners: what the inventory places on hosts and lets run flows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .keys import Key, defaults_of, filled
from .layout import Placed
from .schema import CONNECT_CLUSTER, CONNECT_NAME, INSTANCE, INSTANCE_NAME


@dataclass(frozen=True)
class OwnerKind:
    """What owners of one kind have in common.

    :param name: what messages call one of them.
    :param variable: the variable that lists them.
    :param group: the inventory group whose hosts the playbooks deploy them to.
    :param keys: the schema of one of them.
    :param members: what messages call a name in the variable, and what it stands for.
    :param pattern: what the name of one of them looks like; ``called``: the same in words, for
        messages, up to the part that is free.
    :param names_flows: it lists its flows; otherwise flows name it, and it may exist without hosts.
    """

    name: str
    variable: str
    group: str
    keys: tuple[Key, ...] = field(repr=False)
    members: str
    pattern: re.Pattern[str]
    called: str
    names_flows: bool = True


INSTANCES = OwnerKind(
    "instance", "mirrormaker_instances", "mirrormaker", INSTANCE, "instance name to instance",
    INSTANCE_NAME, "an instance is called mirrormaker or mirrormaker",
)  # fmt: skip
CONNECT_CLUSTERS = OwnerKind(
    "Connect cluster", "kafka_connect_clusters", "kafka_connect", CONNECT_CLUSTER,
    "name to Connect cluster", CONNECT_NAME, "a Connect cluster is called connect, or connect",
    names_flows=False,
)  # fmt: skip


@dataclass(frozen=True)
class Owner:
    """What runs flows on hosts, with every key filled in.

    :param name: name of the unit, its user and its directories.
    :param state: started, stopped or absent.
    :param flows: names of ``mirror_flows``.
    :param kafka_version: the release it runs from; empty: its engine's default.
    :param settings: every key of its variable, those of the other fields included.
    """

    kind: OwnerKind
    name: str
    hosts: Sequence[str]
    state: str
    flows: Sequence[str]
    kafka_version: str
    settings: Mapping[str, Any] = field(repr=False)

    @property
    def path(self) -> str:
        """The variable as a user writes it, for messages."""
        return f"{self.kind.variable}.{self.name}"

    @property
    def works(self) -> bool:
        """Whether it is somewhere: on hosts of the inventory, or anywhere else."""
        return self.state != "absent" and bool(self.hosts or not self.kind.names_flows)

    @property
    def identity(self) -> str:
        """As whom it reaches its clusters, and how its credentials are called."""
        return str(self.settings["identity"])

    @property
    def credentials(self) -> Placed:
        """Where references to what Kafka's clients need lead.

        Whoever configures connectors has a worker resolve references. Its REST server's users and
        key lie among its credentials too, so references lead to a directory without these.
        """
        return Placed("{runtime}/kafka" if self.kind is CONNECT_CLUSTERS else "{credentials}")

    def version(self, default: str) -> str:
        """The Kafka release it runs from, by default its engine's."""
        return self.kafka_version or default


def owner_of(
    kind: OwnerKind, name: str, written: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]
) -> Owner:
    """An instance or a Connect cluster as an owner.

    :param written: what its variable holds under its name.
    :param flows: ``mirror_flows``, which name the Connect cluster that runs them.
    """
    settings = filled(written, defaults_of(kind.keys))
    # A flow without a name is refused where flows are validated.
    named = [
        flow["name"]
        for flow in flows
        if flow.get("connect") == name and isinstance(flow.get("name"), str)
    ]
    return Owner(
        kind, name, settings["hosts"], settings["state"],
        settings["flows"] if kind.names_flows else named,
        str(settings["kafka_version"] or ""), settings,
    )  # fmt: skip
