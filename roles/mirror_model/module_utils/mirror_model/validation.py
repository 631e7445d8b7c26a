"""A site under validation: the problems that checks note, and what of it has the right shape."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .keys import Clusters, Flow
from .owners import Owner


@dataclass
class Validation:
    """The validation of a site, check after check.

    A :class:`.site.Site` has no place for what is written in the wrong shape, and raises at it. A
    validation goes on: it holds what the checks before found to have the right shape, so that every
    problem is named at once.

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

    def aliases(self, owner: Owner, *sides: str) -> dict[str, None]:
        """The clusters to which an owner's process connects, on some sides of its flows.

        :param sides: ``source`` and ``target`` unless named.
        """
        return dict.fromkeys(
            flow[side] for flow in self.flows_of(owner) for side in sides or ("source", "target")
        )

    def running(self) -> Iterator[tuple[Owner, Flow]]:
        """Owner and flow of whatever is to run."""
        return (
            (owner, flow)
            for owner in self.owners
            if owner.state == "started"
            for flow in self.flows_of(owner)
        )
