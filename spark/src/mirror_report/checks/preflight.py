"""What only matters before a mirror starts: snapshots in, findings out; no I/O."""

from collections.abc import Iterable, Iterator

from mirror_report.checks.topics import settings_not_read
from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.engines import PositionStore, WorkerStore
from mirror_report.model import ClusterSnapshot, Finding, GroupSnapshot, Positions

NEAR_MS = 1
# A busy host adds as much to a round trip; no buffer is sized by it.
NO_DIFFERENCE_MS = 10


def same_cluster(flow: Flow, source: ClusterSnapshot, target: ClusterSnapshot) -> Iterator[Finding]:
    """Source and target that are one cluster."""
    if source.cluster_id == target.cluster_id:
        yield finding(
            "same_cluster",
            f"{flow.source} and {flow.target} are one cluster ({source.cluster_id}): "
            "the mirror would feed itself",
            f"Correct bootstrap_servers of kafka_clusters.{flow.source} or "
            f"kafka_clusters.{flow.target}",
            flow=flow.name,
        )


def takeover(
    flow: Flow, target: ClusterSnapshot, positions: Positions, group: GroupSnapshot
) -> Iterator[Finding]:
    """A flow that was never mirrored by this group, into topics that hold records already."""
    accepted = f"takeover:{flow.name}"
    filled = sorted({name for (name, _), log in target.logs() if log.end > log.log_start})
    if filled and not (positions or group.members or accepted in flow.accept):
        shown = ", ".join(filled[:3]) + (", ..." if len(filled) > 3 else "")
        where = flow.alias(flow.engine.workers_side)
        yield finding(
            "takeover",
            f"flow {flow.name} has no position ({flow.group_id} on {where}) and {shown} on "
            f"{flow.target} hold records: what another mirror copied would be copied again",
            "If another process or engine mirrored them, stop it and give this one its positions "
            "first. To mirror into these topics as they are, accept it by name: "
            f"mirror_accept: [{accepted}]",
            flow=flow.name,
            count=len(filled),
        )


def idle_tasks(flow: Flow, source: ClusterSnapshot) -> Iterator[Finding]:
    """More streams or tasks than partitions to share among them."""
    partitions = sum(len(topic.partitions) for topic in source.topics.values())
    idle, parallelism = flow.parallelism - partitions, flow.engine.parallelism
    if partitions and idle > 0:
        yield finding(
            "idle_tasks",
            f"flow {flow.name} has {flow.parallelism} {parallelism.word} for {partitions} "
            f"partition(s): {idle} of them stay idle",
            f"Lower {parallelism.key}, or give the topics more partitions on both sides",
            flow=flow.name,
            count=idle,
        )


def distance(flow: Flow, alias: str, measured_ms: float) -> Iterator[Finding]:
    """A cluster that is farther or nearer than the mirror's properties are made for.

    :param alias: one of the flow's clusters.
    :param measured_ms: a round trip from here, in milliseconds.
    """
    typed = flow.round_trips_ms.get(alias, NEAR_MS)
    if abs(measured_ms - typed) > max(NO_DIFFERENCE_MS, typed / 2):
        expected = f"{typed} ms" if alias in flow.round_trips_ms else "that it is near"
        yield finding(
            "distance",
            f"a round trip from here to {alias} takes {measured_ms:.0f} ms, and the inventory says "
            f"{expected}: the clients of {flow.instance} ask for too little or hold too much",
            f"If {flow.instance} is as far from it, set distance.{alias}.round_trip_ms of "
            f"{flow.instance} to {max(1, round(measured_ms))}",
        )


def replication_factors(flow: Flow, brokers: int) -> list[Finding]:
    """More replicas asked for than the target has brokers."""
    return [
        finding(
            "replication_factor",
            f"{key} asks for {replicas} replicas and {flow.target} has {brokers} broker(s): the "
            "topics cannot be created",
            f"Lower {key} of flow {flow.name} or of instance {flow.instance}, or leave it out: "
            "it is then chosen by the number of brokers",
            flow=flow.name,
            count=replicas,
        )
        for key, replicas in sorted(flow.replication_factors.items())
        if replicas > brokers
    ]


def internal_names(flow: Flow) -> list[str]:
    """Topics of the target that the engine keeps for itself."""
    engine = flow.engine
    return [
        name
        for name, kept in (
            (flow.offset_topic, engine.positions is PositionStore.CONNECT_OFFSETS),
            (flow.status_topic, engine.workers is WorkerStore.STATUS_TOPIC),
            (flow.config_topic, engine.workers is WorkerStore.STATUS_TOPIC),
            (flow.offset_syncs_topic, engine.has_offset_syncs),
            (flow.checkpoints_topic, engine.syncs_groups and flow.consumer_groups),
        )
        if name and kept
    ]


def internal_topics(flow: Flow, internal: ClusterSnapshot) -> Iterator[Finding]:
    """Those that exist and are not compacted.

    :param internal: the topics of :func:`internal_names`.
    """
    for name, topic in internal.topics.items():
        policy = topic.configs.get("cleanup.policy", "compact")
        if policy != "compact":
            yield finding(
                "internal_topic",
                f"{name}: cleanup.policy is {policy}: Kafka Connect starts only with compact, and "
                "what expires there is mirrored again",
                f"Ask who made it or changed it: {flow.instance} makes it compacted. Only its "
                "owner knows whether it holds positions of a mirror",
                flow=flow.name,
                topic=name,
            )
    yield from settings_not_read(flow, (internal,))


def no_groups(flow: Flow, groups: Iterable[str]) -> Iterator[Finding]:
    """Groups to sync that nobody uses.

    :param groups: group ids of the source.
    """
    if flow.consumer_groups and not any(map(flow.syncs, groups)):
        yield finding(
            "no_groups",
            f"no consumer group of {flow.source} matches {', '.join(flow.consumer_groups)}",
            f"Correct consumer_groups of flow {flow.name}, or grant the identity DESCRIBE on the "
            "groups (Kafka hides what one may not see)",
            flow=flow.name,
        )
