"""``baseline``: where verification starts."""

import contextlib
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mirror_report.checks.preflight import same_cluster
from mirror_report.commands import shared
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.kafka.tails import FlowTails
from mirror_report.model import ClusterSnapshot, Place, Positions, Progress, ReportError
from mirror_report.observe import (
    Clients,
    Snapshots,
    mirror_status,
    observe_flow,
    open_clients,
    recognised,
    worker_group,
)
from mirror_report.parity.plan import Observation, Watch
from mirror_report.parity.plan.snapshots import of_present_topics
from mirror_report.parity.plan.verification_start import entries, full_entries
from mirror_report.parity.results import losses
from mirror_report.parity.state import Loss, Manifest, files
from mirror_report.parity.steps.look import looked_at
from mirror_report.render import Answer, formats
from mirror_report.state import baselines
from mirror_report.state.store import StateError, Store

# Commits to wait for; after so many intervals a position that stays says nothing more.
INTERVALS = 2
PAUSE_SECONDS = 1.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``baseline``."""
    shared.flow(parser)
    parser.add_argument(
        "--topic", metavar="NAME",
        help="with an option to start over: only this topic of the source; the others go on",
    )  # fmt: skip
    start_over = parser.add_mutually_exclusive_group()
    start_over.add_argument(
        "--full-history", action="store_true", help="start over: compare all both logs still hold"
    )
    start_over.add_argument("--renew", action="store_true", help="start over: compare from now on")


def answer(options: Namespace) -> Answer:
    """Record baselines.

    :raises ReportError: a cluster cannot be read, or an earlier release recorded a baseline.
    """
    recorded = record_baselines(
        shared.settings(options),
        options.flow,
        full_history=options.full_history,
        renew=options.renew,
        topic=options.topic,
        progress=shared.show_progress,
    )
    return formats.lines(
        *(
            f"{flow}: {'recorded' if new else 'unchanged, recorded before'}"
            for flow, new in recorded.items()
        )
    )


def record_baselines(
    settings: Settings,
    flow_name: str | None,
    *,
    full_history: bool,
    renew: bool,
    topic: str | None = None,
    progress: Progress = lambda _: None,
) -> dict[str, bool]:
    """Record where verification starts.

    Takes up to two commit intervals of a mirror that runs. Topics that other flows feed too begin
    again for these as well; ``progress`` names them, and each loss that is known no longer.

    :param full_history: compare everything both logs still hold, replacing what was recorded.
    :param renew: replace what was recorded by the state of now.
    :param topic: of the source, with one of these: replace what was recorded of it alone.
    :returns: flow -> whether something was recorded (what is kept is not recorded again).
    :raises ReportError: a cluster cannot be read, or what is kept was recorded by an earlier
        release; nothing is recorded for any flow then.
    """
    store = Store(settings.state_directory)
    flows = shared.chosen(settings, flow_name)
    with store.lock():
        recorded, known = store.load("baseline"), _known_losses(settings, store)
        if topic is not None:
            flows = _mirroring(flows, topic, known, start_over=full_history or renew)
            _know(recorded, flows)
        due = [flow for flow in flows if full_history or renew or flow.name not in recorded]
        for name in (flow.name for flow in flows if flow not in due):
            baselines.check(name, recorded[name])
        accepted = _accept_departed(settings, store, recorded, due, known, topic) if renew else []
        begun = [flow for flow in due if flow not in accepted]
        renewed: dict[str, list[str]] = {}
        if begun:
            others = [flow for flow in settings.flows if flow.name in recorded and flow not in due]
            tails: FlowTails = {}
            with open_clients(settings, shared.aliases([*begun, *others])) as clients:
                observed = [
                    _known_again(settings, seen)
                    for seen in _observe(clients, begun, others, tails, topic)
                ]
                required = None if full_history else _watch(clients, observed, tails, progress)
            renewed = _record(store, recorded, begun, observed, required, only=topic)
            if topic is None and (full_history or renew):
                files.leave_refused(store, settings.bucket_seconds * 1000)
            for name, topics in renewed.items():
                progress(
                    f"flow {name} feeds {', '.join(topics)} too: verification of it starts again "
                    "for all that feed it"
                )
        again = {flow.name: None if topic is None else [topic] for flow in due} | renewed
        for text in _dropped(known, again, full_history=full_history):
            progress(text)
    return {flow.name: flow in due for flow in flows}


def _known_losses(settings: Settings, store: Store) -> list[Loss]:
    """What reports have said to be lost, of the content and of what the source dropped."""
    manifest = Manifest(settings.bucket_seconds * 1000)
    # What is of another release, or damaged, cannot be read; the last report can.
    with contextlib.suppress(ReportError):
        manifest = files.load(store, manifest.bucket_ms)
    found = losses.known(manifest, settings.flows, time.time_ns() // 1_000_000)
    for flow in (flow for flow in settings.flows if flow.name not in manifest.baselines):
        found += losses.of_report(files.last_report(store, flow.name), flow)
    return found + losses.of_source(store.load("losses"))


def _accept_departed(
    settings: Settings,
    store: Store,
    recorded: dict[str, Any],
    due: Sequence[Flow],
    known: Sequence[Loss],
    topic: str | None,
) -> list[Flow]:
    """Accept what was lost of a topic that is not on the source any more; which flows brought it.

    :param recorded: the baselines so far; changed.
    """
    suspects = [
        flow for flow in due
        if any((loss.flow, loss.origin) == (flow.name, topic) for loss in known)
    ]  # fmt: skip
    if topic is None or not suspects:
        return []
    with open_clients(settings, [flow.source for flow in suspects]) as clients:
        snapshots = {
            flow.source: clients.get(flow.source).snapshot(None, [topic], settings=False)
            for flow in suspects
        }
    found = [
        flow for flow in suspects
        if topic not in {*snapshots[flow.source].topics, *snapshots[flow.source].errors}
        or not flow.matches(topic)
    ]  # fmt: skip
    for flow in found:
        accepted = recorded[flow.name].get("accepted", {})
        recorded[flow.name]["accepted"] = accepted | {topic: time.time_ns() // 1_000_000}
    if found:
        store.commit("baseline", recorded)
    return found


def _dropped(
    known: Sequence[Loss], renewed: Mapping[str, Collection[str] | None], *, full_history: bool
) -> list[str]:
    """What a baseline forgets, in words.

    :param renewed: flow -> topics of its source; ``None``: all.
    """
    gone = [
        loss
        for loss in known
        if loss.flow in renewed
        and ((topics := renewed[loss.flow]) is None or loss.origin in topics)
        and not (full_history and loss.kind in losses.OF_SOURCE)
    ]
    what = "known so far, compared again" if full_history else "accepted, and reported no more"
    return [f"{what}: {loss.flow}/{loss.topic}: {losses.text([loss])}" for loss in gone]


def _mirroring(
    flows: Sequence[Flow], topic: str, known: Sequence[Loss], *, start_over: bool
) -> tuple[Flow, ...]:
    """Those of some flows that mirror a topic of the source, or have lost records of it."""
    if not start_over:
        raise ConfigError(
            "--topic starts over with one topic, so it needs to know how",
            "Add --full-history (compare all both logs hold) or --renew (compare from now on)",
        )
    lossy = {loss.flow for loss in known if loss.origin == topic}
    if found := tuple(flow for flow in flows if flow.matches(topic) or flow.name in lossy):
        return found
    names = ", ".join(flow.name for flow in flows)
    raise ConfigError(
        f"--topic {topic}: {names} does not mirror it", "Name the topic as the source does"
    )


def _know(recorded: Mapping[str, Any], flows: Sequence[Flow]) -> None:
    """Make sure that flows have a baseline of which one topic can be replaced."""
    for name in (flow.name for flow in flows if flow.name not in recorded):
        raise StateError(
            f"flow {name} has no baseline yet",
            f"Record one of all its topics first: mirror-report baseline --flow {name}",
        )


def _record(
    store: Store,
    recorded: dict[str, Any],
    due: Sequence[Flow],
    observed: Sequence[Observation],
    required: Mapping[str, Mapping[Place, int]] | None,
    *,
    only: str | None,
) -> dict[str, list[str]]:
    """Write the manifests.

    :param recorded: the baselines so far; ``required``: ``None``: compare all both logs hold.
    :param only: a topic; the others of its flow keep what was recorded.
    :returns: flow -> topics that were renewed because a flow that is due feeds them too.
    """
    ids = store.load("topics")
    renewed = {}
    for seen in observed:
        name = seen.flow.name
        topics = full_entries(seen) if required is None else entries(seen, required[name], observed)
        known = ids.setdefault(name, {})
        if seen.flow in due and only is None:
            known.clear()
            recorded[name] = _of_flow(seen, topics, recorded.get(name), required is None)
        else:
            before = recorded[name]["topics"]
            recorded[name]["topics"] = before | {
                topic: entry | _accepted(seen, before.get(topic, {}), required is None)
                for topic, entry in topics.items()
            }
            if seen.flow not in due:
                renewed[name] = sorted(topics)
        for side in ("source", "target"):
            known[side] = known.get(side, {}) | _ids(seen, side)
    store.commit("baseline", recorded)
    store.commit("topics", ids)
    return renewed


def _accepted(seen: Observation, before: Mapping[str, Any], full: bool) -> dict[str, int]:
    """Of a topic whose baseline is replaced alone: from when on losses are reported."""
    since_ms = before.get("losses_since_ms") if full else seen.source.taken_at_ms
    return {} if since_ms is None else {"losses_since_ms": since_ms}


def _of_flow(
    seen: Observation, topics: dict[str, Any], before: dict[str, Any] | None, full: bool
) -> dict[str, Any]:
    at_ms = seen.source.taken_at_ms
    accepted = (before or {}).get("accepted", {}) if full else {}
    return {
        "recorded_at_ms": at_ms,
        # Comparing more takes back nothing that is known to be lost.
        "losses_since_ms": (before or {}).get("losses_since_ms", 0) if full else at_ms,
        "group_existed": bool(seen.positions),
        "topics": topics,
        **({"accepted": accepted} if accepted else {}),
    }


def _ids(seen: Observation, side: str) -> dict[str, str]:
    topics = seen.source.topics
    some = topics.values() if side == "source" else map(seen.on_target, topics)
    return {topic.name: topic.topic_id for topic in some if topic is not None}


def _observe(
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
        if same := same_cluster(flow, observed.source, observed.target):
            raise ConfigError(same[0].message, same[0].action)
        if only is None:
            _readable(observed.source, observed.target)
        elif only not in observed.source.topics:
            raise StateError(f"no baseline recorded: topic {only} is not on {flow.source}")
        names[flow.name] = observed.source.topics if only is None else [only]
        fed |= {(flow.target, flow.target_topic(name)) for name in names[flow.name]}
    sharing = []
    for flow in others:
        brought = [flow.source_topic(topic) for target, topic in fed if target == flow.target]
        wanted = [name for name in brought if name is not None and flow.matches(name)]
        source = clients.get(flow.source).snapshot(None, wanted) if wanted else None
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
    found = []
    for flow, (alive, positions) in zip(flows, mirrors, strict=True):
        source = clients.get(flow.source).snapshot(None, names[flow.name])
        _readable(source, targets[flow.target])
        found.append(
            Observation(
                flow, of_present_topics(positions, source), alive, targets[flow.target], source
            )
        )
    return found


def _known_again(settings: Settings, seen: Observation) -> Observation:
    """An observation with what its topics and logs are told by from others of the same name."""
    take, (source, target) = Snapshots(settings), seen.looks()
    return replace(
        seen,
        source=looked_at(take, recognised(settings, seen.source), source),
        target=looked_at(take, recognised(settings, seen.target), target),
    )


def _mirror(clients: Clients, flow: Flow, tails: FlowTails) -> tuple[bool, Positions]:
    """Whether the mirror runs, and its positions."""
    group = worker_group(clients, flow)
    return bool(group.members), mirror_status(clients, flow, tails).positions


def _watch(
    clients: Clients, observed: Sequence[Observation], tails: FlowTails, progress: Progress
) -> dict[str, dict[Place, int]]:
    """Wait for commits of the mirrors, and say of each flow from where on records are required."""
    watches = {seen.flow.name: Watch(seen) for seen in observed}
    begun = time.monotonic()
    deadlines = {
        seen.flow.name: begun + INTERVALS * seen.flow.commit_interval_ms / 1000 + PAUSE_SECONDS
        for seen in observed
    }
    announced = False
    while True:
        for seen in observed:
            watch = watches[seen.flow.name]
            if watch.waits:
                alive, positions = _mirror(clients, seen.flow, tails)
                # A position past the end that was seen has reached it.
                watch.saw(positions, alive=alive)
        open_ = [name for name, watch in watches.items()
                 if watch.waits and time.monotonic() < deadlines[name]]  # fmt: skip
        if not open_:
            return {name: watch.decided() for name, watch in watches.items()}
        if not announced:
            longest = max(deadlines[name] for name in open_) - begun
            progress(f"waiting for commits of {', '.join(open_)}: at most {longest:.0f} s")
            announced = True
        time.sleep(min(PAUSE_SECONDS, *(seen.flow.commit_interval_ms / 4000 for seen in observed)))


def _readable(*snapshots: ClusterSnapshot) -> None:
    if problems := [text for snapshot in snapshots for text in snapshot.errors.values()]:
        raise StateError("no baseline recorded: " + "; ".join(problems))
