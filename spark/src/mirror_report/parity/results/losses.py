"""Losses that are known of topics, and what becomes of them when a topic is forgotten.

A topic that is compared again gets new findings; what it was known to lack is reported once. The
losses of a topic that is compared no more stay until they are accepted.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from mirror_report.checks import remedies
from mirror_report.checks.content import TEXTS
from mirror_report.checks.losses import Losses, accepted_ms, offsets_in
from mirror_report.config import Flow
from mirror_report.model import Baseline, Finding, TopicParity
from mirror_report.parity import BY_LANE, LASTING
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan import RunPlan, Superseded, TopicPlan, scans
from mirror_report.parity.results import retention
from mirror_report.parity.state import Loss, Manifest, TopicKey, changes, files
from mirror_report.state.store import Store

KINDS = (*LASTING, BY_LANE)
# What the source dropped before it was mirrored: :mod:`checks.losses` remembers it.
OF_SOURCE = {
    "truncated": "records left the source before they were mirrored",
    "possible_loss": "records may have left the source before they were mirrored",
}
# Why it is unknown whether a loss was mended.
REMOVED = "the records are gone, and what came since may have mended it"
_TEXTS = {**TEXTS, **OF_SOURCE}


def of_manifest(manifest: Manifest, flows: Iterable[Flow], now_ms: int) -> list[Loss]:
    """Losses that last of those earlier runs have found, by topic and class."""
    of_name = {flow.name: flow for flow in flows}

    def origin(flow: str, topic: str) -> str:
        return (of_name[flow].origin(topic) if flow in of_name else None) or topic

    counts: defaultdict[TopicKey, Counter[str]] = defaultdict(Counter)
    for flow, topics in manifest.summaries.items():
        for topic, summary in topics.items():
            counts[flow, topic].update({kind: summary.next.get(kind, 0) for kind in KINDS})
    for flow, scanned in manifest.scans.items():
        for topic, plain in scanned.items():
            scan = scans.Scan(**plain)
            counts[flow, topic].update({kind: scan.total(kind) for kind in LASTING})
    for gone in (gone for gone in manifest.gone if gone.certain):
        early, _ = retention.gone([gone], now_ms)
        counts[gone.flow, gone.topic]["deleted_early"] += early.total()
    return [
        *manifest.losses,
        *(
            Loss(*key, origin(*key), kind, count, now_ms)
            for key, of_topic in sorted(counts.items())
            for kind, count in of_topic.items()
            if count
        ),
    ]


def of_report(document: Mapping[str, Any], flow: Flow) -> list[Loss]:
    """Losses of a flow in the last report; none, if it is no report.

    :param document: as JSON has it.
    """
    name = flow.name
    try:
        at_ms = int(datetime.fromisoformat(document["generated_at"]).timestamp() * 1000)
        rows = {row["topic"]: row for row in document["parity"] if row["flow"] == name}
        shown = [
            Loss(name, topic, row["source_topic"], kind, row["counts"][kind], at_ms)
            for topic, row in rows.items()
            for kind in KINDS
            if row["counts"].get(kind) and (kind in LASTING or kind in row["partitions"])
        ]
        return shown + [
            Loss(
                name, finding["topic"], flow.origin(finding["topic"]) or finding["topic"],
                finding["kind"], finding["count"], at_ms,
            )
            for finding in document["findings"]
            if finding["flow"] == name and finding["kind"] in KINDS and finding["topic"] not in rows
            and finding["severity"] == "critical" and finding["count"]
        ]  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return []


def of_source(losses: Mapping[str, Losses]) -> list[Loss]:
    """Records that the source dropped before they were mirrored.

    :param losses: the manifest ``losses``.
    """
    return [
        Loss(flow, name, name, kind, count, max(entry["at"] for entry in partitions.values()))
        for flow, topics in sorted(losses.items())
        for name, partitions in sorted(topics.items())
        for kind, ranges in zip(OF_SOURCE, ("lost", "maybe"), strict=True)
        if (count := sum(offsets_in(entry[ranges]) for entry in partitions.values()))
    ]


def settle(
    context: RunContext, before: Manifest, manifest: Manifest, plan: RunPlan, former: Superseded
) -> tuple[Manifest, list[Loss]]:
    """Keep what was known of topics that are compared no more.

    :param before: what the run began with; ``manifest``: what is left of it.
    :param former: what rests on another baseline: the command that recorded it has named that.
    :returns: with what else was known and is forgotten.
    """
    settings = context.settings
    planned = {(settings.flow(topic.flow).target, topic.topic) for topic in plan.topics}

    def compared(flow: str, topic: str) -> bool:
        return flow not in plan.snapshots or (settings.flow(flow).target, topic) in planned

    known_before = of_manifest(before, settings.flows, context.now_ms)
    scanned = [(flow, topic) for flow, topics in manifest.scans.items() for topic in topics]
    for key in (key for key in scanned if not compared(*key)):
        manifest = changes.forget_numbers(manifest, *key)
    earlier = {
        loss.place: loss
        for loss in manifest.losses
        if loss.at_ms > accepted_ms(context.baseline(loss.flow), loss.origin)
    }
    manifest = replace(manifest, losses=())
    left = {loss.place[:2] for loss in of_manifest(manifest, settings.flows, context.now_ms)}
    reported = [
        loss
        for name in sorted(plan.snapshots.keys() - before.baselines.keys())
        for loss in last_known(context.store, settings.flow(name), context.baseline(name))
    ]
    gone = [
        loss
        for loss in (*known_before, *reported)
        if loss.place[:2] not in left and loss not in before.losses
        and not _renewed(context, before, former, loss)
    ]  # fmt: skip
    kept = {loss.place: loss for loss in gone if not compared(loss.flow, loss.topic)}
    manifest = replace(manifest, losses=tuple((earlier | kept).values()))
    return manifest, [loss for loss in gone if loss.place not in kept]


def _renewed(context: RunContext, before: Manifest, former: Superseded, loss: Loss) -> bool:
    """Whether the baseline of a loss was recorded again since it was known."""
    based = before.baselines.get(loss.flow)
    recorded = context.baseline(loss.flow).recorded_at_ms
    return (loss.flow, loss.topic) in former.rebuilt or (based is not None and based[0] != recorded)


def last_known(store: Store, flow: Flow, baseline: Baseline) -> list[Loss]:
    """Losses of a flow in the last report that no baseline has accepted since."""
    reported = of_report(files.last_report(store, flow.name), flow)
    return [loss for loss in reported if loss.at_ms > accepted_ms(baseline, loss.origin)]


def text(losses: Iterable[Loss]) -> str:
    """Several losses of a topic, in words."""
    return ", ".join(f"{loss.count} {_TEXTS[loss.kind]}" for loss in losses)


def lasting(loss: Loss, flow: Flow, why: str) -> Finding:
    """A loss of a topic that is not compared now.

    :param why: that is so.
    """
    return Finding(
        "critical", loss.kind, loss.flow, loss.topic, None, loss.count,
        f"{loss.flow}/{loss.topic}: {text([loss])}, as an earlier run found; {why}",
        f"Once this is read, accept it: {remedies.renew(flow, loss.origin)}",
    )  # fmt: skip


def out_of_sight(
    again: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], topics: Iterable[TopicPlan]
) -> list[Loss]:
    """Losses that are unverifiable by now, because records are gone and the rest is no proof.

    :param again: buckets that were classified again: as they were before, and as found now.
    """
    counts: defaultdict[TopicKey, Counter[str]] = defaultdict(Counter)
    for was, now in again:
        left = now["unverifiable"] - max(0, was["unverifiable"] - was["replaced"])
        for kind in KINDS if was["lane"] >= 0 else LASTING:
            count = max(0, min(left, was[kind] - now[kind]))
            counts[was["flow"], was["topic"]][kind] += count
            left -= count
    return [
        Loss(*topic.key, topic.origins[0], kind, count, 0)
        for topic in topics
        for kind, count in counts[topic.key].items()
        if count
    ]


def reported_once(loss: Loss, why: str = "what was kept of the topic no longer counts") -> Finding:
    """A loss that no later run reports, because its topic is compared from the start.

    :param why: if it is for another reason.
    """
    return Finding(
        "critical", loss.kind, loss.flow, loss.topic, None, loss.count,
        f"{loss.flow}/{loss.topic}: {text([loss])}, as an earlier run found; {why}, so this is "
        "said once",
        "See what this report finds of the topic: what its source has removed since cannot be "
        "found again",
    )  # fmt: skip


def unseen(
    losses: Iterable[Loss],
    reported: Collection[TopicParity],
    flows: Iterable[Flow],
    observed: Collection[str],
) -> Iterator[Finding]:
    """Losses that the rows of a report do not show, because their topics are not compared now.

    :param flows: that are reported; ``observed``: those of them that could be.
    """
    rows = {(row.flow, row.topic): row for row in reported}
    of_name = {flow.name: flow for flow in flows}
    for loss in (loss for loss in losses if loss.flow in of_name):
        row = rows.get((loss.flow, loss.topic))
        if row is None:
            why = (
                f"{loss.origin} is no longer on the source, or no longer mirrored"
                if loss.flow in observed
                else "its flow could not be observed"
            )
        elif loss.count <= (row.counts.get(loss.kind) or 0):
            continue
        elif row.status in ("skipped", "unknown") or row.strategy == "none":
            why = f"it is not compared now: {row.reason}"
        else:
            why = "it came back since"
        yield lasting(loss, of_name[loss.flow], why)
