"""What MirrorMaker 2 must be allowed, as measured with brokers that refuse everything else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from .. import acls
from ..keys import Flow
from .settings import is_on
from .topics import Policy, connector_topics, prefix, unmirrored


@dataclass(frozen=True)
class Places:
    """Where workers and connectors keep what they have to remember, on the target.

    :param named: the policy of the connectors' names.
    :param group: the group by which workers find each other.
    :param workers: the workers' topics: ``config_topic``, ``offset_topic`` and ``status_topic``.
    :param heartbeats: the side of a flow on which its heartbeats are written.
    """

    named: Policy
    group: str
    workers: Mapping[str, str]
    heartbeats: Literal["source", "target"] = "target"


def permissions(flow: Flow, places: Places) -> list[acls.Row]:
    """What the mirror needs for a flow."""
    source, target = flow["source"], flow["target"]
    groups, excluded = acls.names(flow["consumer_groups"]), unmirrored(flow, places.named)
    topics = {
        "CREATE": "MirrorMaker 2 does not create the topics on the target and only warns",
        "WRITE": "MirrorMaker 2's tasks fail at the first record",
        "ALTER": "MirrorMaker 2 does not add the source's new partitions and only warns",
    }
    if is_on(flow, "sync.topic.configs.enabled"):
        topics["ALTER_CONFIGS"] = "topic configs do not follow; MirrorMaker 2 only warns"
    if groups:
        topics["READ"] = "group offsets do not follow: 'Unable to sync offsets', without a reason"
    return [
        *acls.rows(source, "topic", acls.topics(flow, excluded), {
            "READ": "MirrorMaker 2 cannot read the topics, or does not see them",
            "DESCRIBE_CONFIGS": "MirrorMaker 2 creates no new topic on the target",
        }),
        *acls.rows(source, "group", groups, {
            "DESCRIBE": "group offsets do not follow: 'Error querying offsets'",
        }),
        *acls.rows(target, "group", acls.literal(places.group), {
            "READ": "MirrorMaker 2 ends with status 1 after most of a minute",
        }),
        *acls.rows(
            target, "topic", acls.literal(*places.workers.values()),
            dict.fromkeys(("CREATE", "READ", "WRITE"), "MirrorMaker 2 ends with status 1"),
        ),
        *acls.rows(
            target, "topic", acls.topics(flow, excluded, prefix(flow, places.named)), topics
        ),
        *acls.rows(target, "group", groups, {
            "READ": "group offsets do not follow: 'Error querying for consumer group'",
        }),
        *_optional(flow, places),
    ]  # fmt: skip


def _optional(flow: Flow, places: Places) -> Iterator[acls.Row]:
    """What is needed for what a flow can do without: MirrorMaker 2's own topics, and ACLs."""
    groups, own = acls.names(flow["consumer_groups"]), connector_topics(flow, places.named)
    source, target = flow["source"], flow["target"]
    if is_on(flow, "emit.offset-syncs.enabled"):
        syncs = dict.fromkeys(("CREATE", "WRITE"), "MirrorMaker 2 cannot keep offset syncs")
        if groups:
            syncs["READ"] = "MirrorMaker 2 floods its journal, and group offsets do not follow"
        yield from acls.rows(target, "topic", acls.literal(own["offset_syncs_topic"]), syncs)
    if groups:
        yield from acls.rows(target, "topic", acls.literal(own["checkpoints_topic"]), {
            "CREATE": "group offsets do not follow",
            "WRITE": "group offsets do not follow",
            "READ": "group offsets are translated less exactly after a start",
        })  # fmt: skip
    if is_on(flow, "emit.heartbeats.enabled"):
        yield from acls.rows(
            flow[places.heartbeats], "topic", acls.literal("heartbeats"),
            dict.fromkeys(("CREATE", "WRITE"), "the heartbeat task fails"),
        )  # fmt: skip
    if is_on(flow, "sync.topic.acls.enabled"):
        yield from acls.on_cluster(
            source, {"DESCRIBE": "ACLs do not follow: an error at every interval"}
        )
        yield from acls.on_cluster(target, {"ALTER": "ACLs do not follow"})


def report_permissions(flow: Flow, places: Places) -> list[acls.Row]:
    """What the report needs beyond what it needs for every engine."""
    source, target = flow["source"], flow["target"]
    groups = acls.names(flow["consumer_groups"])
    own = {**places.workers, **connector_topics(flow, places.named)}
    read = {
        own["offset_topic"]: "the report cannot tell how far the mirror is",
        own["status_topic"]: "the report cannot tell which task failed",
    }
    if is_on(flow, "emit.offset-syncs.enabled"):
        read[own["offset_syncs_topic"]] = "the report cannot estimate between two commits"
    rows = []
    if groups:
        read[own["checkpoints_topic"]] = "the report cannot tell whether group offsets follow"
        rows = acls.on_cluster(source, {
            "DESCRIBE": "the report does not see the groups whose offsets follow",
        })  # fmt: skip
    for alias in (source, target):
        rows += acls.rows(alias, "group", groups, {
            "DESCRIBE": "the report cannot tell what a group would lose or read again after a "
            "failover",
        })  # fmt: skip
    for topic, why in read.items():
        rows += acls.rows(target, "topic", acls.literal(topic), {"READ": why})
    return [
        *rows,
        *acls.rows(target, "topic", acls.literal(*read, own["config_topic"]), {
            "DESCRIBE": "the report cannot tell whether MirrorMaker 2's topics are there",
            "DESCRIBE_CONFIGS": "the report cannot tell whether they are compacted",
        }),
        *acls.rows(target, "group", acls.literal(places.group), {
            "DESCRIBE": "the report cannot tell whether the mirror runs",
        }),
    ]  # fmt: skip
