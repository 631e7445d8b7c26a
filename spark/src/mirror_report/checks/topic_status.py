"""One row for every topic of a flow's source: mirrored and how, or not and why; no I/O.

Also for topics of the target whose source is gone.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from mirror_report.checks import remedies
from mirror_report.checks.topics import setting_differences
from mirror_report.checks.verdict import finding
from mirror_report.config import HEARTBEATS, Flow
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    Finding,
    Positions,
    TopicSnapshot,
    TopicStatus,
)

# Kafka's limit (org.apache.kafka.common.internals.Topic).
LONGEST_NAME = 249


def statuses(
    flow: Flow,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    on_source: Mapping[str, int],
    gone: Collection[str],
    on_target: Mapping[str, int],
) -> list[TopicStatus]:
    """Rows of one flow: selected topics first, then those left out, then those orphaned.

    :param on_source: every topic the source shows -> partitions; ``on_target`` likewise.
    :param gone: names on the source of topics that were mirrored and are no longer there.
    """
    rows = [_selected(flow, topic, target) for topic in source.topics.values()]
    hidden = source.errors | {
        name: f"named by the flow and not on {flow.source}"
        for name in flow.named
        if flow.matches(name) and name not in source.topics and name not in source.errors
    }
    rows += [
        TopicStatus(
            flow.name, name, flow.target_topic(name), True, why, None,
            on_target.get(flow.target_topic(name)),
        )
        for name, why in sorted(hidden.items())
    ]  # fmt: skip
    rows += [
        TopicStatus(flow.name, name, flow.target_topic(name), False, why, partitions, None)
        for name, partitions in sorted(on_source.items())
        if (why := why_not(flow, name)) is not None
    ]
    return rows + [
        TopicStatus(
            flow.name, name, flow.target_topic(name), False,
            f"orphaned: no longer on {flow.source}, what was mirrored is still on {flow.target}",
            None, on_target.get(flow.target_topic(name)),
        )
        for name in sorted(gone)
    ]  # fmt: skip


def _selected(flow: Flow, ours: TopicSnapshot, target: ClusterSnapshot) -> TopicStatus:
    name = flow.target_topic(ours.name)
    theirs = target.topics.get(name)
    if theirs is None:
        why = target.errors.get(name, f"not on {flow.target}")
        return TopicStatus(flow.name, ours.name, name, True, why, len(ours.partitions), None)
    ours_count, count = len(ours.partitions), len(theirs.partitions)
    why = f"fewer partitions on {flow.target}" if count < ours_count else ""
    return TopicStatus(
        flow.name, ours.name, name, True, why, ours_count, count,
        setting_differences(flow, ours, theirs),
    )  # fmt: skip


def why_not(flow: Flow, topic: str) -> str | None:
    """Why a flow does not mirror a topic; ``None``: it does."""
    if flow.matches(topic):
        return None
    if flow.engine.has_heartbeats and topic.endswith(HEARTBEATS):
        return f"heartbeats: {flow.engine.title} brings them along by itself or not at all"
    if not any(re.fullmatch(pattern, topic) for pattern in flow.topics or (flow.include,)):
        return "no pattern of topics matches"
    excluded = [pattern for pattern in flow.topics_exclude if re.fullmatch(pattern, topic)]
    return f"topics_exclude: {excluded[0]}" if excluded else _left_out(flow, topic)


def too_long(flow: Flow, topic: str) -> bool:
    """Whether no topic could have the name of the copy."""
    return len(flow.target_topic(topic)) > LONGEST_NAME


def _left_out(flow: Flow, topic: str) -> str:
    """Why an engine leaves out by itself what a flow asks for."""
    title = flow.engine.title
    if too_long(flow, topic):
        return f"the name of its copy would have more than {LONGEST_NAME} letters"
    if any(re.fullmatch(pattern, topic) for pattern in flow.left_out):
        return "mirrors are steered by topics of such names: no flow takes one"
    if topic.startswith("__"):
        return f"internal topic of Kafka: {title} leaves it out, also if it is named"
    # The target is among the clusters in the name.
    if flow.replication_policy == "prefix" and flow.target in topic.split(flow.separator)[:-1]:
        return f"it came from {flow.target}: mirrored back it would go in a circle"
    return f"{title} leaves it out by itself: internal, or among its default excludes"


def candidates(
    flow: Flow, source: ClusterSnapshot, on_source: Iterable[str], on_target: Iterable[str],
    mirrored: Collection[str],
) -> list[str]:  # fmt: skip
    """Names on the source of topics of the target that nothing on the source seems to feed.

    :param mirrored: source topics known to have been mirrored; needed where names are kept, since
        the target may have topics of its own.
    """
    fed = {*source.topics, *source.errors, *on_source}
    return [
        name
        for copy in on_target
        if (name := flow.source_topic(copy)) is not None
        and name not in fed
        and (name != copy or name in mirrored)
    ]


def impossible_copies(
    flow: Flow, source: ClusterSnapshot, on_source: Iterable[str], on_target: Collection[str],
    refused: Collection[str] = (),
) -> Iterator[Finding]:  # fmt: skip
    """Topics whose copy Kafka does not create; a single one stops all that its task copies.

    :param on_source: names of all topics of the source, ``on_target`` of the target.
    :param refused: names that the target would not take, though we see no topic in their way.
    """
    taken = {name.replace(".", "_"): name for name in sorted(on_target)}
    for name in source.topics:
        copy = flow.target_topic(name)
        hidden = "another that is hidden from us" if copy in refused else None
        other = taken.get(copy.replace(".", "_"), hidden)
        if other is not None and copy not in on_target:
            yield finding(
                "name_collides",
                f"{name}: {flow.target} cannot create {copy} beside {other}, from which it "
                "differs in '.' and '_' alone: its first record stops what is copied with it",
                f"Delete it on {flow.source} if nobody needs it; or run the playbook of flow "
                f"{flow.name}'s mirror, which leaves it out unless topics names it",
                flow=flow.name,
                topic=name,
            )
    for name in sorted(on_source):
        asked_for = any(re.fullmatch(pattern, name) for pattern in flow.topics)
        excluded = any(re.fullmatch(pattern, name) for pattern in flow.topics_exclude)
        if too_long(flow, name) and asked_for and not excluded:
            copy = flow.target_topic(name)
            yield finding(
                "name_too_long",
                f"{name}: left out, for {copy} would have {len(copy)} letters, and a topic's name "
                f"has at most {LONGEST_NAME}",
                f"Give it a shorter name, or list it in topics_exclude of flow {flow.name}",
                flow=flow.name,
                topic=name,
            )


def unfed(
    flow: Flow, on_source: Iterable[str], on_target: Iterable[str], mirrored: Collection[str],
    others: Collection[Flow],
) -> list[str]:  # fmt: skip
    """Topics of the target that the flow would copy into if the source had one of their name.

    :param on_source: topics that can be read.
    :param mirrored: source topics known to have been mirrored: theirs are the flow's own.
    :param others: flows that may copy into them.
    """
    fed = {*on_source, *mirrored}
    return sorted(
        name
        for name in on_target
        if flow.source_topic(name) == name
        and name not in fed
        and not any(other.source_topic(name) for other in others)
    )


def not_made(
    flow: Flow, before: Mapping[str, Any], source: ClusterSnapshot, baseline: Baseline
) -> list[str]:
    """Source topics that came when the target's topic of their name held records already.

    :param before: what the last report remembered: ``held``, topics of the target that held records
        while the source had none of their name, and ``foreign``, what this function returned then.
    :param baseline: its topics were accepted.
    """
    came = {name for name in before.get("held", ()) if name in source.topics and flow.matches(name)}
    return sorted({*before.get("foreign", ()), *came} - {*baseline.topics})


def foreign_topics(
    flow: Flow,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    positions: Positions,
    others: Collection[Flow],
    before: Collection[str] = (),
) -> Iterator[Finding]:
    """Topics of the target that hold records which the flow did not copy.

    :param others: flows that may have copied them.
    :param before: the topics of :func:`not_made`.
    """
    for name, topic in source.topics.items():
        copy = flow.target_topic(name)
        theirs = target.topics.get(copy)
        if theirs is None or any(other.source_topic(copy) for other in others):
            continue
        empty = not positions.get(name) and not any(log.end for log in topic.partitions.values())
        if name in before:
            yield _foreign(flow, name, f"held records before {flow.source} had {name}")
        elif empty and any(log.end for log in theirs.partitions.values()):
            why = f"holds records, and {name} on {flow.source} never had one"
            yield _foreign(flow, name, why)


def _foreign(flow: Flow, name: str, why: str) -> Finding:
    loses = flow.engine.syncs_topic_configs and flow.sync_topic_configs
    return finding(
        "foreign_topic",
        f"{flow.target_topic(name)} on {flow.target} {why}: the flow did not make it"
        + (f". {flow.engine.title} sets it as the source's is set" if loses else ""),
        f"Ask who made {name} on {flow.source}, and list it in topics_exclude of flow "
        f"{flow.name} unless they belong together: then {remedies.renew(flow, name)} takes them so"
        + (
            ". The settings of single topics cannot be left alone otherwise, only those of all "
            "(sync.topic.configs.enabled: false)"
            if loses
            else ""
        ),
        flow=flow.name,
        topic=name,
    )


def orphaned(flow: Flow, gone: Collection[str], reported: Collection[str]) -> list[Finding]:
    """Topics deleted on the source, each once.

    :param reported: those that an earlier report named.
    """
    return [
        finding(
            "orphaned",
            f"{name}: deleted on {flow.source}; {flow.target_topic(name)} on {flow.target} holds "
            "what was mirrored and grows no more",
            f"Keep it as long as somebody reads it, then kafka-topics.sh --delete --topic "
            f"{flow.target_topic(name)} on {flow.target}. It is not said again",
            flow=flow.name,
            topic=name,
        )
        for name in sorted(gone)
        if name not in reported
    ]
