"""Observing both clusters of a flow, always in the order source, positions, target.

Read in this order, what lies below a committed position must already be on the target.
"""

import contextlib
import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mirror_report.checks import topic_identity
from mirror_report.checks.verdict import failure
from mirror_report.config import Cluster, Credentials, Flow, Settings
from mirror_report.kafka import guarded, leader_epochs, offset_syncs, positions, records
from mirror_report.kafka.metadata import ClusterClient, connect
from mirror_report.kafka.mirror_topics import FlowTails
from mirror_report.model import (
    ClusterSnapshot,
    Epochs,
    EpochsAsked,
    Finding,
    FlowStatus,
    GroupSnapshot,
    MirrorStatus,
    Observed,
    OffsetSync,
    Place,
    Positions,
    ReportError,
)
from mirror_report.state.store import StateError, Store

# Manifest: cluster -> topic -> entry of a topic without an id (:mod:`checks.topic_identity`).
MARKS = "marks"


@dataclasses.dataclass(frozen=True)
class Clients:
    """Admin clients of several clusters; one that cannot be had raises when it is needed.

    :param opened: alias -> client, or why there is none.
    :param credentials: for what else has to connect.
    """

    opened: Mapping[str, ClusterClient | ReportError]
    credentials: Credentials

    def get(self, alias: str) -> ClusterClient:
        """Client of one cluster.

        :raises ReportError: it could not be reached, for the reason found when opening.
        """
        client = self.opened[alias]
        if isinstance(client, ReportError):
            raise client
        return client

    def worker_group(self, flow: Flow) -> GroupSnapshot:
        """The group of the mirror's processes: consumers of the source, or workers."""
        return positions.worker_group(self.get, flow)

    def mirror_status(self, flow: Flow, tails: FlowTails) -> MirrorStatus:
        """Committed positions, and what else the mirror keeps of itself.

        :param tails: what earlier observations read of the mirrors' topics; brought up to date.
        """
        return positions.mirror_status(self.get, self.credentials, flow, tails)


@contextlib.contextmanager
def open_clients(settings: Settings, aliases: Iterable[str]) -> Iterator[Clients]:
    """Connect to several clusters at once, each in a thread of its own."""
    clusters = {alias: settings.clusters[alias] for alias in sorted(set(aliases))}
    marks = _marks(settings)
    with contextlib.ExitStack() as stack:
        opened: dict[str, ClusterClient | ReportError] = {}
        with ThreadPoolExecutor(max_workers=max(1, len(clusters))) as pool:
            pending = {
                alias: pool.submit(
                    stack.enter_context,
                    connect(cluster, settings.credentials, marks.get(alias, {})),
                )
                for alias, cluster in clusters.items()
            }
            for alias, future in pending.items():
                try:
                    opened[alias] = future.result()
                except ReportError as error:
                    opened[alias] = error
        yield Clients(opened, settings.credentials)


def _marks(settings: Settings) -> dict[str, dict[str, str]]:
    """Cluster and topic -> what stands for its id; none if they cannot be read."""
    try:
        marks = Store(settings.state_directory).load(MARKS)
    except StateError:
        return {}
    return {
        alias: {name: entry["mark"] for name, entry in topics.items()}
        for alias, topics in marks.items()
    }


def recognised(settings: Settings, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The same snapshot; topics without ids have marks, which are kept for the next one.

    :raises ReportError: their records cannot be read, or the marks not be kept.
    """
    if not (unnamed := topic_identity.unnamed(snapshot)):
        return snapshot
    store, cluster = Store(settings.state_directory), settings.clusters[snapshot.alias]

    with store.changing(MARKS):
        of_clusters = store.load(MARKS)
        marks = of_clusters.setdefault(snapshot.alias, {})
        topics = topic_identity.newly_observed(unnamed, marks, snapshot.taken_at_ms)
        before, now = (
            contents(cluster, settings.credentials, places)
            for places in (
                topic_identity.probes(topics, marks),
                topic_identity.last_records(topics),
            )
        )
        # The whole observation is over by now, and another is compared with its beginning.
        marks |= topic_identity.marked(topics, marks, before, now, time.time_ns() // 1_000_000)
        store.commit(MARKS, of_clusters)
    return topic_identity.with_marks(snapshot, marks)


def contents(
    cluster: Cluster, credentials: Credentials, offsets: Mapping[Place, int]
) -> dict[Place, str]:
    """What single records hold, of those that can be read; at most :data:`records.PARTITIONS`.

    :param offsets: within their logs.
    """

    def read(asked: Mapping[Place, int]) -> guarded.Guarded[str]:
        ranges = {place: (offset, offset + 1) for place, offset in asked.items()}
        fetched = records.fetch(cluster, credentials, ranges)
        return guarded.Guarded({
            place: f"{batch[0].content.hex()}@{batch[0].timestamp_ms}"
            for place, batch in fetched.answers.items()
            if batch and batch[0].offset == asked[place]
        }, fetched.failed)  # fmt: skip

    return guarded.each(read, offsets, records.WAITING_SECONDS).answers


def literals(flow: Flow) -> Collection[str]:
    """Topics a flow names one by one and mirrors."""
    return sorted({name for name in flow.named if flow.matches(name)})


def source_snapshot(clients: Clients, flow: Flow) -> ClusterSnapshot:
    """Matched topics of the source."""
    return clients.get(flow.source).snapshot(flow.matches, literals(flow))


def observe_flow(clients: Clients, flow: Flow, tails: FlowTails) -> Observed:
    """Ask for everything a flow touches, in the order source, positions, target.

    :param tails: what earlier observations read of the mirrors' own topics; brought up to date.
    :raises ReportError: a cluster, the group or the positions cannot be read.
    """
    # A target that is away is known before time is spent on the source.
    client = clients.get(flow.target)
    source = source_snapshot(clients, flow)
    group = clients.worker_group(flow)
    mirror = clients.mirror_status(flow, tails)
    target = client.snapshot(None, [flow.target_topic(name) for name in source.topics])
    return Observed(source, mirror, group, target, client.auto_creates_topics())


def observe_lag(clients: Clients, flow: Flow, tails: FlowTails) -> Observed:
    """Ask as :func:`observe_flow` does, but both clusters at once, and for no topic's settings.

    The sides are not in order here: what lies below a position need not be in the snapshot of the
    target, so nothing about content may be concluded from it.

    Without the target, the observation holds what an engine keeps on the source.

    :raises ReportError: the source, the group or the positions cannot be read.
    """
    source_client = clients.get(flow.source)
    try:
        target_client = clients.get(flow.target)
    except ReportError as error:
        if "target" in {flow.engine.positions_side, flow.engine.workers_side}:
            raise
        return _of_the_source(clients, flow, tails, error)
    with ThreadPoolExecutor(1) as at_source, ThreadPoolExecutor(1) as at_target:
        sides = {"source": at_source, "target": at_target}
        ours = at_source.submit(
            source_client.snapshot, flow.matches, literals(flow), settings=False
        )
        workers = sides[flow.engine.workers_side].submit(clients.worker_group, flow)
        status = sides[flow.engine.positions_side].submit(clients.mirror_status, flow, tails)
        theirs = at_target.submit(
            target_client.snapshot, lambda name: flow.source_topic(name) is not None, settings=False
        )
        creates = at_target.submit(target_client.auto_creates_topics)
    # The first failure in this order is the reason.
    source, group, mirror = ours.result(), workers.result(), status.result()
    every = theirs.result()
    copies = {flow.target_topic(name) for name in source.topics}
    target = dataclasses.replace(
        every,
        topics={name: topic for name, topic in every.topics.items() if name in copies},
        errors={name: why for name, why in every.errors.items() if name in copies},
        refused=every.refused & copies,
    )
    missing = copies - target.topics.keys() - target.errors.keys()
    if missing:
        # Asked by name, a topic that is hidden from us differs from one that does not exist.
        hidden = target_client.snapshot(None, missing, settings=False)
        target = dataclasses.replace(
            target,
            topics=target.topics | hidden.topics,
            errors=target.errors | hidden.errors,
            refused=target.refused | hidden.refused,
        )
    return Observed(source, mirror, group, target, creates.result())


def _of_the_source(clients: Clients, flow: Flow, tails: FlowTails, error: ReportError) -> Observed:
    source = clients.get(flow.source).snapshot(flow.matches, literals(flow), settings=False)
    group, mirror = clients.worker_group(flow), clients.mirror_status(flow, tails)
    hidden = dict.fromkeys(map(flow.target_topic, source.topics), str(error))
    target = ClusterSnapshot(flow.target, "", source.taken_at_ms, {}, hidden)
    return Observed(source, mirror, group, target, None, error)


def with_later_ends(clients: Clients, flow: Flow, observed: Observed) -> Observed:
    """The same observation with the ends of now where the mirror was ahead of its ends.

    A mirror at work commits past a snapshot that is older than its positions; only a position past
    the end that the log has afterwards is one of another log.
    """
    source, positions = observed.source, observed.positions
    ahead = {
        name
        for (name, number), log in source.logs()
        if positions.get(name, {}).get(number, 0) > log.end
    }
    if not ahead:
        return observed
    again = clients.get(flow.source).snapshot(None, ahead, settings=False)
    topics = {
        name: dataclasses.replace(source.topics[name], partitions=topic.partitions)
        for name, topic in again.topics.items()
    }
    return dataclasses.replace(
        observed, source=dataclasses.replace(source, topics=source.topics | topics)
    )


@dataclasses.dataclass(frozen=True)
class Snapshots:
    """Fresh snapshots for the parity engine; every call connects again, for runs are long.

    :param tails: see :func:`observe_flow`.
    """

    settings: Settings
    tails: FlowTails = dataclasses.field(default_factory=dict)

    def source(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the source's matched topics."""
        with open_clients(self.settings, [flow.source]) as clients:
            return source_snapshot(clients, flow)

    def positions(self, flow: Flow) -> Positions:
        """Take the committed positions of the flow."""
        with open_clients(self.settings, positions.clusters(flow)) as clients:
            return clients.mirror_status(flow, self.tails).positions

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the target's mirrored topics."""
        with open_clients(self.settings, [flow.target]) as clients:
            return clients.get(flow.target).snapshot(
                lambda name: flow.source_topic(name) is not None,
                [flow.target_topic(name) for name in literals(flow)],
            )

    def syncs(
        self, flow: Flow, memory: Mapping[str, Any]
    ) -> tuple[dict[Place, list[OffsetSync]], dict[str, Any]]:
        """Take the offset syncs written since an earlier call, as ``kafka.offset_syncs`` does."""
        with open_clients(self.settings, [flow.target]) as clients:
            return offset_syncs.since(clients.get(flow.target), clients.credentials, flow, memory)

    def timed(self, flow: Flow, topics: Collection[str]) -> set[str]:
        """Those topics of the source known to hold records with timestamps."""
        with open_clients(self.settings, [flow.source]) as clients:
            client = clients.get(flow.source)
            return {name for name in topics if client.has_timestamps(name)}

    def epochs(self, alias: str, logs: Mapping[Place, EpochsAsked]) -> dict[Place, Epochs]:
        """Leader epochs of a cluster's logs, as of ``kafka.leader_epochs``."""
        with open_clients(self.settings, [alias]) as clients:
            return leader_epochs.of_logs(clients.get(alias), logs)

    def contents(self, alias: str, offsets: Mapping[Place, int]) -> dict[Place, str]:
        """What single records of a cluster hold, of those that can be read."""
        cluster, credentials = self.settings.clusters[alias], self.settings.credentials
        places = list(offsets)
        read: dict[Place, str] = {}
        for at in range(0, len(places), records.PARTITIONS):
            batch = {place: offsets[place] for place in places[at : at + records.PARTITIONS]}
            read |= contents(cluster, credentials, batch)
        return read


def aliases(flows: Sequence[Flow]) -> list[str]:
    """Clusters of flows, with repetitions."""
    return [alias for flow in flows for alias in (flow.source, flow.target)]


def load_manifests(
    store: Store, names: Iterable[str], findings: list[Finding]
) -> dict[str, dict[str, Any]]:
    """Manifests by name; one that cannot be used is empty.

    :param findings: a finding is added for each of those.
    """
    manifests: dict[str, dict[str, Any]] = {name: {} for name in names}
    for name in manifests:
        try:
            manifests[name] = store.load(name)
        except StateError as error:
            findings.append(failure(error))
    return manifests


def status_of(flow: Flow, observed: Observed | None) -> FlowStatus:
    """One line of the report about a flow.

    :param observed: ``None``: it could not be observed.
    """
    return FlowStatus(
        name=flow.name,
        engine=flow.engine.name,
        source=flow.source,
        target=flow.target,
        source_cluster_id=observed.source.cluster_id if observed else None,
        target_cluster_id=observed.target.cluster_id or None if observed else None,
        group_id=flow.group_id,
        group_state=observed.group.state if observed else None,
        target_brokers=observed.target.brokers if observed else None,
        topics=tuple(observed.source.topics) if observed else (),
        source_brokers=observed.source.brokers if observed else None,
    )
