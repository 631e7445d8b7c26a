"""What the inventory places on hosts and lets run flows, and the inventory while it is judged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .keys import Clusters, Flow, defaults_of, filled, member
from .layout import Placed
from .schema import CONNECT_CLUSTER, INSTANCE


@dataclass(frozen=True)
class OwnerKind:
    """What owners of one kind have in common.

    :param name: what messages call one of them.
    :param variable: the variable that lists them.
    :param group: the inventory group whose hosts the playbooks deploy them to.
    :param names_flows: it lists its flows; otherwise flows name it, and it may exist without hosts.
    """

    name: str
    variable: str
    group: str
    names_flows: bool = True


INSTANCES = OwnerKind("instance", "mirrormaker_instances", "mirrormaker")
CONNECT_CLUSTERS = OwnerKind(
    "Connect cluster", "kafka_connect_clusters", "kafka_connect", names_flows=False
)


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


def instance_of(instances: Mapping[str, Any], name: str) -> Owner:
    """An instance as an owner.

    :param instances: ``mirrormaker_instances``.
    :raises ModelError: no such instance.
    """
    settings = filled(member(INSTANCES.variable, instances, name), defaults_of(INSTANCE))
    return Owner(
        INSTANCES, name, settings["hosts"], settings["state"], settings["flows"],
        str(settings["kafka_version"] or ""), settings,
    )  # fmt: skip


def connect_cluster_of(
    connect_clusters: Mapping[str, Any], name: str, flows: Sequence[Mapping[str, Any]]
) -> Owner:
    """A Connect cluster as an owner.

    :param connect_clusters: ``kafka_connect_clusters``.
    :param flows: ``mirror_flows``, which name the cluster that runs them.
    :raises ModelError: no such cluster.
    """
    settings = filled(
        member(CONNECT_CLUSTERS.variable, connect_clusters, name), defaults_of(CONNECT_CLUSTER)
    )
    own = [flow["name"] for flow in flows if flow.get("connect") == name]
    return Owner(
        CONNECT_CLUSTERS, name, settings["hosts"], settings["state"], own,
        str(settings["kafka_version"] or ""), settings,
    )  # fmt: skip


@dataclass
class Inventory:
    """The inventory while it is judged; later checks see only what had the right shape.

    :param clusters: alias to cluster, filled in as far as it has the right shape.
    :param sound: aliases of the clusters that passed their own checks.
    :param named: names of all flows, whatever their shape.
    :param flows: name to flow, filled in.
    :param paths: name to the flow's variable, for messages.
    :param owners: what is to be on hosts, started or stopped.
    :param absent: owners that are to be removed from theirs.
    :param accept: ``mirror_accept``.
    :param errors: messages in the order in which they came; ``warnings`` likewise.
    """

    clusters: Clusters
    sound: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    flows: dict[str, Flow] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    owners: list[Owner] = field(default_factory=list)
    absent: list[Owner] = field(default_factory=list)
    accept: list[str] = field(default_factory=list)
    errors: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def refuse(self, message: str) -> None:
        """Note what must not be; each message once."""
        self.errors[message] = None

    def warn(self, message: str) -> None:
        """Note what deserves attention; each message once."""
        self.warnings[message] = None

    def danger(self, danger: str, name: str, message: str) -> None:
        """Refuse what endangers a flow, an owner or a cluster, unless it is accepted by name."""
        if f"{danger}:{name}" in self.accept:
            self.warn(f"{message} (accepted by mirror_accept)")
        else:
            self.refuse(f"{message}, or list '{danger}:{name}' in mirror_accept")

    def owner(self, flow: str) -> Owner | None:
        """The first owner that lists a flow and is not absent."""
        return next((owner for owner in self.owners if flow in owner.flows), None)

    def flows_of(self, owner: Owner) -> list[Flow]:
        """The owner's flows, as far as they had the right shape."""
        return [self.flows[name] for name in owner.flows if name in self.flows]

    def running(self) -> Iterator[tuple[Owner, Flow]]:
        """Owner and flow of whatever is to run."""
        return (
            (owner, flow)
            for owner in self.owners
            if owner.state == "started"
            for flow in self.flows_of(owner)
        )
