"""Settings of topics that differ between the sides: snapshots in, findings out; no I/O."""

from collections.abc import Iterable, Iterator, Mapping

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, ConfigDifference, Finding, TopicSnapshot

UNLIMITED = -1
OF_TOPIC = "DYNAMIC_TOPIC_CONFIG"
OF_BROKER_FILE = "STATIC_BROKER_CONFIG"
OF_KAFKA = "DEFAULT_CONFIG"


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
