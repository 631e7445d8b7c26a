"""Observations that baselines are made of: both sides of flows, and commits of their mirrors."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from mirror_report.checks.preflight import same_cluster
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.kafka.mirror_topics import FlowTails
from mirror_report.model import ClusterSnapshot, Place, Positions, Progress
from mirror_report.observe import (
    Clients,
    Snapshots,
    observe_flow,
    recognised,
)
from mirror_report.parity.plan import Observation, Watch
from mirror_report.parity.plan.snapshots import of_present_topics
from mirror_report.parity.steps.log_identity import with_identity
from mirror_report.state.store import StateError

# Commit intervals to wait for; a position that stays for longer is taken as it is.
INTERVALS = 2


PAUSE_SECONDS = 1.0


def observe_sides(
    clients: Clients,
    due: Sequence[Flow],
    others: Sequence[Flow],
    tails: FlowTails,
    only: str | None,
) -> list[Observation]:
    """Observe flows and those that feed the same topics: positions, target, source.

    All that feed a topic share one snapshot of it.

    :param only: a topic of the source; the others are left out.
    """
    names: dict[str, Collection[str]] = {}
    fed: set[tuple[str, str]] = set()
    for flow in due:
        observed = observe_flow(clients, flow, tails)
        for same in same_cluster(flow, observed.source, observed.target):
            raise ConfigError(same.message, same.action)
        if only is None:
            _readable(observed.source, observed.target)
        elif only not in observed.source.topics:
            raise StateError(f"no baseline recorded: topic {only} is not on {flow.source}")
        names[flow.name] = observed.source.topics if only is None else [only]
        fed |= {(flow.target, flow.target_topic(name)) for name in names[flow.name]}
    sharing = []
    for flow in others:
        origins = [flow.source_topic(topic) for target, topic in fed if target == flow.target]
        shared = [name for name in origins if name is not None]
        source = clients.get(flow.source).snapshot(None, shared) if shared else None
        if source is not None and (source.topics or source.errors):
            _readable(source)
            names[flow.name] = source.topics
            sharing.append(flow)
    flows = [*due, *sharing]
    mirrors = [_mirror(clients, flow, tails) for flow in flows]
    targets = {
        alias: clients.get(alias).snapshot(
            None,
            sorted({flow.target_topic(name) for flow in flows if flow.target == alias
                    for name in names[flow.name]}),
        )
        for alias in {flow.target for flow in flows}
    }  # fmt: skip
    observations = []
    for flow, (alive, positions) in zip(flows, mirrors, strict=True):
        target = targets[flow.target]
        source = clients.get(flow.source).snapshot(None, names[flow.name])
        _readable(source, target)
        observations.append(
            Observation(flow, of_present_topics(positions, source), alive, target, source)
        )
    return observations


def identified(settings: Settings, observation: Observation) -> Observation:
    """An observation with what tells its topics and logs from others of the same name."""
    snapshots, (source, target) = Snapshots(settings), observation.looks()
    return replace(
        observation,
        source=with_identity(snapshots, recognised(settings, observation.source), source),
        target=with_identity(snapshots, recognised(settings, observation.target), target),
    )


def _mirror(clients: Clients, flow: Flow, tails: FlowTails) -> tuple[bool, Positions]:
    """Whether the mirror runs, and its positions."""
    group = clients.worker_group(flow)
    return bool(group.members), clients.mirror_status(flow, tails).positions


def watch(
    clients: Clients, observed: Sequence[Observation], tails: FlowTails, progress: Progress
) -> dict[str, dict[Place, int]]:
    """Wait for commits of the mirrors; of each flow, offsets from which records are required."""
    flows = {one.flow.name: one.flow for one in observed}
    watches = {one.flow.name: Watch(one) for one in observed}
    begun = time.monotonic()
    deadlines = {
        name: begun + INTERVALS * flow.commit_interval_ms / 1000 + PAUSE_SECONDS
        for name, flow in flows.items()
    }
    announced = False
    while True:
        for name, watch in watches.items():
            if watch.waits:
                alive, positions = _mirror(clients, flows[name], tails)
                # A position past the end that was observed has reached it.
                watch.saw(positions, alive=alive)
        open_ = [name for name, watch in watches.items()
                 if watch.waits and time.monotonic() < deadlines[name]]  # fmt: skip
        if not open_:
            return {name: watch.decided() for name, watch in watches.items()}
        if not announced:
            longest = max(deadlines[name] for name in open_) - begun
            progress(f"waiting for commits of {', '.join(open_)}: at most {longest:.0f} s")
            announced = True
        time.sleep(min(PAUSE_SECONDS, *(f.commit_interval_ms / 4000 for f in flows.values())))


def _readable(*snapshots: ClusterSnapshot) -> None:
    if problems := [text for snapshot in snapshots for text in snapshot.errors.values()]:
        raise StateError("no baseline recorded: " + "; ".join(problems))
