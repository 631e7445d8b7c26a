"""Looking at both clusters of a flow, always in the order source, positions, target.

Read in this order, what lies below a committed position must already be on the target.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mirror_report.config import Cluster, Credentials, Flow, Settings
from mirror_report.kafka import positions as mm1
from mirror_report.kafka.snapshot import ClusterClient, connect
from mirror_report.model import ClusterSnapshot, GroupSnapshot, Positions, ReportError


@dataclass(frozen=True)
class Observed:
    """One look at a flow.

    :param auto_creation: whether the target creates topics by itself; ``None``: not known.
    """

    source: ClusterSnapshot
    positions: Positions
    group: GroupSnapshot
    target: ClusterSnapshot
    auto_creation: bool | None


class Clients:
    """Admin clients of several clusters; one that cannot be had raises when it is needed."""

    def __init__(
        self,
        opened: dict[str, ClusterClient | ReportError],
    ) -> None:
        self._opened = opened

    def get(self, alias: str) -> ClusterClient:
        """Client of one cluster.

        :raises ReportError: it could not be reached, for the reason found when opening.
        """
        client = self._opened[alias]
        if isinstance(client, ReportError):
            raise client
        return client


@contextlib.contextmanager
def open_clients(settings: Settings, aliases: Iterable[str]) -> Iterator[Clients]:
    """Connect to several clusters at once, each in a thread of its own."""
    wanted = sorted(set(aliases))
    with contextlib.ExitStack() as stack:
        opened: dict[str, ClusterClient | ReportError] = {}
        with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
            pending = {
                alias: pool.submit(_open, settings.clusters[alias], settings.credentials)
                for alias in wanted
            }
            for alias, future in pending.items():
                try:
                    held, client = future.result()
                except ReportError as error:
                    opened[alias] = error
                else:
                    stack.push(held)
                    opened[alias] = client
        yield Clients(opened)


def _open(cluster: Cluster, credentials: Credentials) -> tuple[contextlib.ExitStack, ClusterClient]:
    stack = contextlib.ExitStack()
    client = stack.enter_context(connect(cluster, credentials))
    return stack, client


def literals(flow: Flow) -> Collection[str]:
    """Topics a flow names without a regular expression and mirrors."""
    names = () if flow.is_regex else (one.replace("\\", "") for one in flow.topics)
    return sorted({one for one in names if flow.matches(one)})


def source_snapshot(clients: Clients, flow: Flow) -> ClusterSnapshot:
    """Matched topics of the source."""
    return clients.get(flow.source).snapshot(flow.matches, literals(flow))


def target_snapshot(
    clients: Clients, flow: Flow, source: ClusterSnapshot | None = None
) -> ClusterSnapshot:
    """Mirrored topics of the target: those of a source snapshot, or all that match."""
    client = clients.get(flow.target)
    if source is None:
        return client.snapshot(flow.matches, literals(flow))
    return client.snapshot(None, [flow.target_topic(name) for name in source.topics])


def look(clients: Clients, flow: Flow) -> Observed:
    """Look once at everything a flow touches.

    :raises ReportError: a cluster or the group cannot be read.
    """
    # A target that is away is known before time is spent on the source.
    target_client = clients.get(flow.target)
    source = source_snapshot(clients, flow)
    group = mm1.group(clients.get(flow.source), flow.group_id)
    positions = mm1.committed(clients.get(flow.source), flow.group_id)
    target = target_snapshot(clients, flow, source)
    return Observed(source, positions, group, target, target_client.auto_creates_topics())


class Take:
    """Fresh snapshots for the parity engine; every call connects anew, for runs are long."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def source(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the source's matched topics."""
        with open_clients(self._settings, [flow.source]) as clients:
            return source_snapshot(clients, flow)

    def positions(self, flow: Flow) -> Positions:
        """Take the committed positions of the flow's group."""
        with open_clients(self._settings, [flow.source]) as clients:
            return mm1.committed(clients.get(flow.source), flow.group_id)

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the target's mirrored topics."""
        with open_clients(self._settings, [flow.target]) as clients:
            return target_snapshot(clients, flow)
