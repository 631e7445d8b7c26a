"""Whether the target's topics can hold what the source's contain, and how their settings differ."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import (
    ClusterSnapshot,
    ConfigDifference,
    Finding,
    Positions,
    TopicSnapshot,
)

UNLIMITED = -1
OF_TOPIC = "DYNAMIC_TOPIC_CONFIG"
OF_BROKER_FILE = "STATIC_BROKER_CONFIG"
OF_KAFKA = "DEFAULT_CONFIG"


def findings(
    flow: Flow,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    *,
    auto_creation: bool | None,
    positions: Positions | None = None,
    forbidden: Collection[str] = (),
) -> Iterator[Finding]:
    """What is wrong with the topics of one flow.

    :param auto_creation: whether the target creates topics by itself; ``None``: not known.
    :param positions: committed positions; a topic already mirrored must exist on the target.
    :param forbidden: topics of the target that the mirror's identity may not create, so that
        their first record does not create them either.
    """
    yield from [*not_readable(flow, source), *not_readable(flow, target)]
    if not source.topics and not source.errors:
        yield finding(
            "no_topics",
            f"no topic of {flow.source} matches {flow.include}",
            f"Correct topics of flow {flow.name}, create the topic, or grant the identity "
            "DESCRIBE on it (Kafka hides what one may not see)",
            flow=flow.name,
        )
    yield from [
        *_named_but_absent(flow, source),
        *blocking_topics(
            flow, source, target,
            auto_creation=auto_creation, positions=positions, forbidden=forbidden,
        ),
        *_risks(flow, source, target),
        *settings_not_read(flow, (source, target)),
        *_regex(flow, auto_creation),
    ]  # fmt: skip


def blocking_topics(
    flow: Flow,
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    *,
    auto_creation: bool | None,
    positions: Positions | None = None,
    forbidden: Collection[str] = (),
) -> Iterator[Finding]:
    """Topics of the target that stop the mirror at their next record: missing, or too small.

    Parameters are those of :func:`findings`.
    """
    for name, ours in source.topics.items():
        copy = flow.target_topic(name)
        theirs = target.topics.get(copy)
        if theirs is not None:
            yield from _fewer(flow, ours, theirs)
        elif copy not in target.errors:
            creates = False if copy in forbidden else auto_creation
            yield from _missing(flow, ours, creates, bool((positions or {}).get(name)))


def not_readable(flow: Flow, snapshot: ClusterSnapshot) -> list[Finding]:
    """Topics that could not be read: refused to our identity, or out of order."""
    return [
        finding(
            "permission", message, f"Grant the identity DESCRIBE and READ on {name}",
            flow=flow.name, topic=name,
        )
        if name in snapshot.refused
        else finding(
            "unreadable", message,
            f"kafka-topics.sh --describe --topic {name} on {snapshot.alias} shows whether its "
            "partitions have leaders",
            flow=flow.name, topic=name,
        )
        for name, message in snapshot.errors.items()
    ]  # fmt: skip


def _named_but_absent(flow: Flow, source: ClusterSnapshot) -> list[Finding]:
    return [
        finding(
            "no_topics",
            f"{name}: named by the flow and not on {flow.source}",
            f"Create it, or take it out of topics of flow {flow.name}",
            flow=flow.name,
            topic=name,
        )
        for name in flow.named
        if source.topics and name not in source.topics
        if name not in source.errors and flow.matches(name)
    ]


def _missing(
    flow: Flow, ours: TopicSnapshot, auto_creation: bool | None, mirrored: bool
) -> Iterator[Finding]:
    create = (
        f"kafka-topics.sh --create --topic {flow.target_topic(ours.name)} "
        f"--partitions {len(ours.partitions)} on {flow.target}, or run playbooks/mirrormaker.yml: "
        "it creates mirrored topics"
    )
    # Whether the identity of an engine that creates topics may do so is a check of permissions.
    created = flow.engine.creates_topics or auto_creation
    if mirrored or (auto_creation is not None and not created):
        yield finding(
            "topic_missing",
            f"{ours.name}: matched by the flow and missing on {flow.target}"
            + (" although records of it were mirrored" if mirrored else ""),
            create,
            flow=flow.name,
            topic=ours.name,
        )
    elif not created:
        yield finding(
            "not_checked",
            f"{ours.name}: missing on {flow.target}, and whether its brokers create topics "
            "could not be asked: if they do not, its first record blocks the mirror",
            f"Grant the identity DESCRIBE_CONFIGS on the cluster {flow.target}, or create "
            f"the topic: {create}",
            flow=flow.name,
            topic=ours.name,
        )


def _regex(flow: Flow, auto_creation: bool | None) -> Iterator[Finding]:
    accepted = f"regex-without-auto-creation:{flow.name}"
    created = flow.engine.creates_topics or auto_creation
    if created or not flow.is_regex or accepted in flow.accept:
        return
    if auto_creation is None:
        yield finding(
            "regex_without_auto_creation",
            f"flow {flow.name} is a regex, and whether {flow.target} creates topics could not "
            "be asked: if it does not, a topic that matches later blocks the mirror's one "
            "producer for ever",
            "List the topics by name, grant the identity DESCRIBE_CONFIGS on the cluster "
            f"{flow.target}, or accept it by name and create topics in time: "
            f"mirror_accept: [{accepted}]",
            flow=flow.name,
        ).rated("unknown")
    else:
        yield finding(
            "regex_without_auto_creation",
            f"flow {flow.name} is a regex and {flow.target} creates no topics: a topic that "
            "matches later blocks the mirror's one producer for ever",
            "List the topics by name, switch auto.create.topics.enable on at the target, or "
            f"accept it by name and create topics in time: mirror_accept: [{accepted}]",
            flow=flow.name,
        )


def _fewer(flow: Flow, ours: TopicSnapshot, theirs: TopicSnapshot) -> Iterator[Finding]:
    kept = flow.engine.keeps_partitions
    if len(theirs.partitions) < len(ours.partitions):
        yield finding(
            "partitions_fewer",
            f"{theirs.name}: {len(theirs.partitions)} partitions on {flow.target}, "
            f"{len(ours.partitions)} on {flow.source}"
            + (": the first record for a missing one blocks the mirror for ever" if kept else ""),
            f"kafka-topics.sh --alter --topic {theirs.name} --partitions {len(ours.partitions)} "
            f"on {flow.target}; records already there keep their partition",
            flow=flow.name,
            topic=ours.name,
        ).rated("critical" if kept else "warning")


def _risks(flow: Flow, source: ClusterSnapshot, target: ClusterSnapshot) -> list[Finding]:
    return [
        finding(
            kind,
            f"{theirs.name}: {message}",
            f"kafka-configs.sh --alter --entity-type topics --entity-name {theirs.name} "
            f"--add-config {key}={ours.configs.get(key, '')} on {flow.target}",
            flow=flow.name,
            topic=ours.name,
        )
        for ours in source.topics.values()
        if (theirs := target.topics.get(flow.target_topic(ours.name))) is not None
        and ours.configs
        and theirs.configs
        for kind, message, key in risks(ours.configs, theirs.configs)
    ]


def setting_differences(
    flow: Flow, ours: TopicSnapshot, theirs: TopicSnapshot
) -> tuple[ConfigDifference, ...]:
    """Settings the engine would set and that differ, and those nothing sets and that hurt."""
    if not ours.configs or not theirs.configs:
        return ()
    synced = [key for key in sorted(ours.configs) if _would_sync(flow, key, ours, theirs)]
    risky = {key for _, _, key in risks(ours.configs, theirs.configs)} - set(synced)
    return tuple(
        ConfigDifference(
            key, ours.configs.get(key), theirs.configs.get(key),
            "synced" if key in synced else "risk",
        )
        for key in sorted({*synced, *risky})
    )  # fmt: skip


def _would_sync(flow: Flow, key: str, ours: TopicSnapshot, theirs: TopicSnapshot) -> bool:
    """Whether MirrorMaker 2 would change a setting on the target.

    It sets what the source's topic does not leave to Kafka's own default or to the file of the
    source's brokers; where it is Kafka's default, it takes the target topic's own value away
    (``MirrorSourceConnector.targetConfig``, ``use.defaults.from=target``).
    """
    if ours.configs[key] == theirs.configs.get(key) or not flow.syncs_setting(key):
        return False
    basis = ours.config_sources.get(key)
    if basis == OF_KAFKA:
        return theirs.config_sources.get(key) == OF_TOPIC
    return basis is not None and basis != OF_BROKER_FILE


def risks(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Settings that endanger the mirror: kind, message, setting."""
    policies = ours.get("cleanup.policy", ""), theirs.get("cleanup.policy", "")
    if "compact" in policies[1] and "compact" not in policies[0]:
        yield (
            "compact_null_keys",
            "compacted on the target only: a record without key is refused there and ends the "
            "mirror, and old values of a key disappear",
            "cleanup.policy",
        )
    if _smaller(theirs, ours, "max.message.bytes"):
        yield (
            "message_size",
            f"the target takes records up to {theirs['max.message.bytes']} bytes, the source "
            f"{ours['max.message.bytes']}: a larger one ends the mirror",
            "max.message.bytes",
        )
    key = "message.timestamp.type"
    if (ours.get(key), theirs.get(key)) == ("CreateTime", "LogAppendTime"):
        yield (
            "timestamp_type",
            "the target stamps records with its own clock, so timestamps are not preserved",
            key,
        )
    for key in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"):
        if _smaller(theirs, ours, key):
            yield (
                "timestamp_limit",
                f"{key} is {theirs[key]} on the target and {ours[key]} on the source: records "
                "outside are refused",
                key,
            )
    for key in ("retention.ms", "retention.bytes"):
        if _smaller(theirs, ours, key) and "delete" in theirs.get("cleanup.policy", "delete"):
            yield (
                "retention",
                f"{key} is {theirs[key]} on the target and {ours[key]} on the source",
                key,
            )


def _smaller(theirs: Mapping[str, str], ours: Mapping[str, str], key: str) -> bool:
    """Whether a setting is lower; -1 means no limit."""
    try:
        left, right = int(theirs[key]), int(ours[key])
    except (KeyError, ValueError):
        return False
    return left != UNLIMITED and (right == UNLIMITED or left < right)


def settings_not_read(flow: Flow, snapshots: Iterable[ClusterSnapshot]) -> Iterator[Finding]:
    """Topics whose settings our identity may not read."""
    hidden = {
        snapshot.alias: sorted(name for name, topic in snapshot.topics.items() if not topic.configs)
        for snapshot in snapshots
    }
    where = [
        f"of {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} on {alias}"
        for alias, names in hidden.items()
        if names
    ]
    if where:
        yield finding(
            "not_checked",
            f"settings {' and '.join(where)} may not be read and were not checked",
            "Grant the identity DESCRIBE_CONFIGS on these topics if they are to be checked",
            flow=flow.name,
            count=sum(map(len, hidden.values())),
        )
