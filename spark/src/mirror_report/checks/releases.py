"""What clusters of old releases cannot answer, and cannot do: releases in, findings out; no I/O.

Kafka's protocol has no release. It follows from the requests that brokers take, so two releases
that take the same are one.
"""

from collections.abc import Iterator, Mapping

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow, Permission
from mirror_report.model import Finding

# What a broker answers only from a release on.
ANSWERED_FROM: tuple[tuple[tuple[int, ...], str], ...] = (
    ((2, 3), "what our identity may do with a topic, a group or the cluster"),
    (
        (2, 8),
        "a topic's id (one that was created again is found by its offsets, leader epochs and last "
        "record)",
    ),
    ((2, 8), "the producers of a partition (an open transaction has no start)"),
    ((3, 0), "transactional ids (an open transaction has no owner)"),
    ((3, 0), "the newest timestamp of a topic (heartbeats have no age)"),
)
OLDEST = (2, 1)
# What an engine needs that sets topics' settings on the target (KIP-339).
ALTERS_ONE_SETTING = (2, 3)
# From here on whoever may write to a topic may do so idempotently (KIP-679).
WRITE_IS_ENOUGH = (2, 8)


def old_clusters(releases: Mapping[str, tuple[int, ...]]) -> Iterator[Finding]:
    """Clusters that are not supported, or leave something unknown; once per cluster.

    :param releases: alias of a cluster -> its release, as far as it could be asked.
    """
    for alias, release in releases.items():
        unanswered = [what for since, what in ANSWERED_FROM if release < since]
        if release < OLDEST:
            yield finding(
                "broker_too_old",
                f"{alias} answers as Kafka {dotted(release)} does: clusters below "
                f"{dotted(OLDEST)} are not supported",
                f"Upgrade {alias}",
            ).rated("critical")
        elif unanswered:
            yield finding(
                "broker_too_old",
                f"{alias} answers as Kafka {dotted(release)} does, and cannot be asked: "
                + "; ".join(unanswered),
                f"What it does not tell is reported as unknown. Upgrade {alias} to have it",
                count=len(unanswered),
            )


def unalterable_settings(flow: Flow, release: tuple[int, ...] | None) -> Iterator[Finding]:
    """A flow that would fail at setting a topic's settings.

    :param release: of its target; ``None``: it could not be asked.
    """
    sets = flow.engine.syncs_topic_configs and flow.sync_topic_configs
    if release is not None and sets and release < ALTERS_ONE_SETTING:
        yield finding(
            "broker_too_old",
            f"{flow.target} answers as Kafka {dotted(release)} does, where no single setting of a "
            f"topic can be altered: {flow.engine.title} fails when it takes settings along",
            f"Set sync.topic.configs.enabled to false in properties of flow {flow.name}, or "
            f"upgrade {flow.target} to {dotted(ALTERS_ONE_SETTING)} or later",
            flow=flow.name,
        ).rated("critical")


def more_permissions(flow: Flow, alias: str, release: tuple[int, ...]) -> list[Permission]:
    """What a mirror needs of an old target beside what it needs of every one."""
    if alias != flow.target or release >= WRITE_IS_ENOUGH:
        return []
    why = f"an idempotent producer needs it below Kafka {dotted(WRITE_IS_ENOUGH)}"
    return [Permission(alias, "cluster", "kafka-cluster", "literal", "IDEMPOTENT_WRITE", why)]


def dotted(release: tuple[int, ...]) -> str:
    """A release as people write it."""
    return ".".join(map(str, release))
