"""An owner: what the inventory places on hosts and lets run flows, such as an instance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .filled import filled, member
from .keys import defaults_of
from .schema import INSTANCE


@dataclass(frozen=True)
class OwnerKind:
    """What owners of one kind have in common.

    :param name: what messages call one of them.
    :param variable: the variable that lists them.
    :param group: the inventory group whose hosts the playbooks deploy them to.
    """

    name: str
    variable: str
    group: str


INSTANCES = OwnerKind("instance", "mirrormaker_instances", "mirrormaker")


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
    settings: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The variable as a user writes it, for messages."""
        return f"{self.kind.variable}.{self.name}"

    @property
    def directory(self) -> str:
        """Where its process finds its configuration."""
        return f"/etc/{self.name}"

    def version(self, default: str) -> str:
        """The Kafka release it runs from, by default its engine's."""
        return self.kafka_version or default


def instance_of(instances: Mapping[str, Any], name: str) -> Owner:
    """An instance as an owner.

    :param instances: ``mirrormaker_instances``.
    :raises ModelError: no such instance.
    """
    settings = filled(member(INSTANCES.variable, instances, name), defaults_of(INSTANCE))
    version = str(settings["kafka_version"] or "")
    return Owner(
        INSTANCES, name, settings["hosts"], settings["state"], settings["flows"], version, settings
    )
