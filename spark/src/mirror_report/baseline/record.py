"""Recording where verification starts, and accepting known losses."""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mirror_report.baseline.observation import identified, observe_sides, watch
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.kafka.mirror_topics import FlowTails
from mirror_report.model import SIDES, Baseline, Place, Progress, ReportError, Side, TopicBaseline
from mirror_report.observe import Clients, aliases, open_clients
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
    again for these as well; ``progress`` names them, and each loss that is forgotten.

    :param full_history: compare everything both logs still hold, replacing what was recorded.
    :param renew: replace what was recorded by the state of now.
    :param topic: of the source, with one of these: replace what was recorded of it alone.
    :returns: flow -> whether its baseline was recorded; otherwise the former one stays.
    :raises ReportError: a cluster cannot be read, or a baseline that stays was recorded by an
        earlier release; nothing is recorded for any flow then.
    """
    store = Store(settings.state_directory)
    flows = settings.chosen(flow_name)
    with store.lock():
        recorded = store.load("baseline")
        reported = _reported_losses(store, settings.flows, settings.bucket_seconds * 1000)
        if topic is not None:
            flows = _mirroring(flows, topic, reported, recorded, start_over=full_history or renew)
        due = [flow for flow in flows if full_history or renew or flow.name not in recorded]
        for name in (flow.name for flow in flows if flow not in due):
            baselines.refuse_cut_by_time(name, baselines.of_flow(recorded[name]))
        accepted: list[Flow] = []
        if renew and topic is not None:
            lossy = [flow for flow in due if _has_lost(flow, topic, reported)]
            with open_clients(settings, [flow.source for flow in lossy]) as clients:
                accepted = _accept_departed(clients, store, recorded, lossy, topic)
        begun = [flow for flow in due if flow not in accepted]
        renewed: dict[str, list[str]] = {}
        if begun:
            others = [flow for flow in settings.flows if flow.name in recorded and flow not in due]
            tails: FlowTails = {}
            with open_clients(settings, aliases([*begun, *others])) as clients:
                observed = [
                    identified(settings, observation)
                    for observation in observe_sides(clients, begun, others, tails, topic)
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
        for text in _forgotten(reported, again, full_history=full_history):
            progress(text)
    return {flow.name: flow in due for flow in flows}


def _reported_losses(store: Store, flows: Sequence[Flow], bucket_ms: int) -> list[Loss]:
    """Losses that reports have named, of the content and of what the source dropped."""
    manifest = Manifest(bucket_ms)
    # What is of another release, or damaged, cannot be read; the last report can.
    with contextlib.suppress(ReportError):
        manifest = files.load(store, bucket_ms)
    reported = losses.of_manifest(manifest, flows, time.time_ns() // 1_000_000)
    for flow in (flow for flow in flows if flow.name not in manifest.baselines):
        reported += losses.of_report(files.last_report(store, flow.name), flow)
    return reported + losses.of_source(store.load("losses"))


def _has_lost(flow: Flow, topic: str, reported: Sequence[Loss]) -> bool:
    return any((loss.flow, loss.origin) == (flow.name, topic) for loss in reported)


def _accept_departed(
    clients: Clients, store: Store, recorded: dict[str, Any], lossy: Sequence[Flow], topic: str
) -> list[Flow]:
    """Accept the losses of a topic where it is no longer mirrored from the source.

    :param recorded: the manifest ``baseline``; changed.
    :param lossy: flows that have lost records of it.
    :returns: those of them that accept their losses.
    """
    departed = []
    for flow in lossy:
        source = clients.get(flow.source).snapshot(None, [topic], settings=False)
        if topic not in {*source.topics, *source.errors} or not flow.matches(topic):
            departed.append(flow)
            accepted = recorded[flow.name].setdefault("accepted", {})
            accepted[topic] = time.time_ns() // 1_000_000
    if departed:
        store.commit("baseline", recorded)
    return departed


def _forgotten(
    reported: Sequence[Loss], renewed: Mapping[str, Collection[str] | None], *, full_history: bool
) -> Iterator[str]:
    """Losses that a baseline forgets, in words.

    :param renewed: flow -> topics of its source; ``None``: all.
    """
    what = "known so far, compared again" if full_history else "accepted, and reported no more"
    for loss in reported:
        topics = renewed.get(loss.flow, ())
        stays = full_history and loss.kind in losses.OF_SOURCE
        if (topics is None or loss.origin in topics) and not stays:
            yield f"{what}: {loss.flow}/{loss.topic}: {losses.text([loss])}"


def _mirroring(
    flows: Sequence[Flow],
    topic: str,
    reported: Sequence[Loss],
    recorded: Mapping[str, Any],
    *,
    start_over: bool,
) -> tuple[Flow, ...]:
    """Those of the flows that mirror a topic of the source, or have lost records of it.

    :param recorded: the manifest ``baseline``: one topic of it is replaced.
    """
    if not start_over:
        raise ConfigError(
            "--topic starts over with one topic, so it needs to know how",
            "Add --full-history (compare all both logs hold) or --renew (compare from now on)",
        )
    mirroring = tuple(
        flow for flow in flows if flow.matches(topic) or _has_lost(flow, topic, reported)
    )
    if not mirroring:
        names = ", ".join(flow.name for flow in flows)
        raise ConfigError(
            f"--topic {topic}: {names} does not mirror it", "Name the topic as the source does"
        )
    for name in (flow.name for flow in mirroring if flow.name not in recorded):
        raise StateError(
            f"flow {name} has no baseline yet",
            f"Record one of all its topics first: mirror-report baseline --flow {name}",
        )
    return mirroring


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

    :param recorded: the manifest ``baseline`` so far; its entries of other topics stay as they are.
    :param required: ``None``: compare all both logs hold.
    :param only: a topic; the others of its flow keep their entries.
    :returns: flow -> topics that were renewed because a flow that is due feeds them too.
    """
    ids = store.load("topics")
    renewed = {}
    for one in observed:
        name = one.flow.name
        topics = full_entries(one) if required is None else entries(one, required[name], observed)
        before = baselines.of_flow(recorded.get(name, {}))
        if one.flow in due and only is None:
            ids[name] = {}
            recorded[name] = baselines.dump(_of_flow(one, topics, before, required is None))
        else:
            recorded[name]["topics"] |= {
                topic: baselines.dump_topic(_alone(entry, before.topic(topic), required is None))
                for topic, entry in topics.items()
            }
            if one.flow not in due:
                renewed[name] = sorted(topics)
        for side in SIDES:
            ids.setdefault(name, {}).setdefault(side, {}).update(_ids(one, side))
    store.commit("baseline", recorded)
    store.commit("topics", ids)
    return renewed


def _alone(entry: TopicBaseline, before: TopicBaseline, full: bool) -> TopicBaseline:
    """A topic whose baseline is replaced alone, with a time of its own for losses."""
    return replace(entry, losses_since_ms=before.losses_since_ms if full else entry.recorded_at_ms)


def _of_flow(
    one: Observation, topics: Mapping[str, TopicBaseline], before: Baseline, full: bool
) -> Baseline:
    at_ms = one.source.taken_at_ms
    return Baseline(
        at_ms,
        # Comparing more takes back no known loss.
        before.losses_since_ms if full else at_ms,
        group_existed=bool(one.positions),
        topics=topics,
        accepted=before.accepted if full else {},
    )


def _ids(one: Observation, side: Side) -> dict[str, str]:
    names = one.source.topics
    topics = names.values() if side == "source" else map(one.on_target, names)
    return {topic.name: topic.topic_id for topic in topics if topic is not None}
