"""Recording where verification starts, and accepting what is known to be lost."""

import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mirror_report.baseline.observation import known_again, observe, watch
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.kafka.mirror_topics import FlowTails
from mirror_report.model import SIDES, Baseline, Place, Progress, ReportError, Side, TopicBaseline
from mirror_report.observe import (
    aliases,
    open_clients,
)
from mirror_report.parity.plan import Observation
from mirror_report.parity.plan.verification_start import entries, full_entries
from mirror_report.parity.results import losses
from mirror_report.parity.state import Loss, Manifest, files
from mirror_report.state import baselines
from mirror_report.state.store import StateError, Store


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
    flows = settings.chosen(flow_name)
    with store.lock():
        recorded, known = store.load("baseline"), _known_losses(settings, store)
        if topic is not None:
            flows = _mirroring(flows, topic, known, start_over=full_history or renew)
            _know(recorded, flows)
        due = [flow for flow in flows if full_history or renew or flow.name not in recorded]
        for name in (flow.name for flow in flows if flow not in due):
            baselines.check(name, baselines.of_flow(recorded[name]))
        accepted = _accept_departed(settings, store, recorded, due, known, topic) if renew else []
        begun = [flow for flow in due if flow not in accepted]
        renewed: dict[str, list[str]] = {}
        if begun:
            others = [flow for flow in settings.flows if flow.name in recorded and flow not in due]
            tails: FlowTails = {}
            with open_clients(settings, aliases([*begun, *others])) as clients:
                observed = [
                    known_again(settings, seen)
                    for seen in observe(clients, begun, others, tails, topic)
                ]
                required = None if full_history else watch(clients, observed, tails, progress)
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
    found = losses.of_manifest(manifest, settings.flows, time.time_ns() // 1_000_000)
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

    :param recorded: the manifest ``baseline``; changed.
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

    :param recorded: the manifest ``baseline`` so far; what it holds of other topics stays as it is.
    :param required: ``None``: compare all both logs hold.
    :param only: a topic; the others of its flow keep what was recorded.
    :returns: flow -> topics that were renewed because a flow that is due feeds them too.
    """
    ids = store.load("topics")
    renewed = {}
    for seen in observed:
        name = seen.flow.name
        topics = full_entries(seen) if required is None else entries(seen, required[name], observed)
        before = baselines.of_flow(recorded.get(name, {}))
        known = ids.setdefault(name, {})
        if seen.flow in due and only is None:
            known.clear()
            recorded[name] = baselines.dump(_of_flow(seen, topics, before, required is None))
        else:
            recorded[name]["topics"] |= {
                topic: baselines.dump_topic(_alone(entry, before.topic(topic), required is None))
                for topic, entry in topics.items()
            }
            if seen.flow not in due:
                renewed[name] = sorted(topics)
        for side in SIDES:
            known[side] = known.get(side, {}) | _ids(seen, side)
    store.commit("baseline", recorded)
    store.commit("topics", ids)
    return renewed


def _alone(entry: TopicBaseline, before: TopicBaseline, full: bool) -> TopicBaseline:
    """A topic whose baseline is replaced alone: from when on losses are reported is of itself."""
    return replace(entry, losses_since_ms=before.losses_since_ms if full else entry.recorded_at_ms)


def _of_flow(
    seen: Observation, topics: Mapping[str, TopicBaseline], before: Baseline, full: bool
) -> Baseline:
    at_ms = seen.source.taken_at_ms
    return Baseline(
        at_ms,
        # Comparing more takes back nothing that is known to be lost.
        before.losses_since_ms if full else at_ms,
        group_existed=bool(seen.positions),
        topics=topics,
        accepted=before.accepted if full else {},
    )


def _ids(seen: Observation, side: Side) -> dict[str, str]:
    topics = seen.source.topics
    some = topics.values() if side == "source" else map(seen.on_target, topics)
    return {topic.name: topic.topic_id for topic in some if topic is not None}
