"""What differs between the engines that mirror a flow, as facts; no other module knows one by name.

A further engine is a further value of :class:`Engine`, and a branch where it keeps its positions or
its workers in a place of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal


class PositionStore(Enum):
    """Where an engine commits how far it has mirrored; ``kafka/positions.py`` reads it."""

    # A consumer group on the source.
    SOURCE_GROUP = "source_group"
    # Kafka Connect's offsets topic on the target.
    CONNECT_OFFSETS = "connect_offsets"


class WorkerStore(Enum):
    """What shows which processes are at work."""

    # The members of a consumer group on the source, and the partitions each of them has.
    GROUP_MEMBERS = "group_members"
    # Kafka Connect's status topic on the target, and the workers' group there.
    STATUS_TOPIC = "status_topic"


@dataclass(frozen=True)
class Parallelism:
    """How many records of a flow are mirrored side by side.

    :param key: of the inventory, such as ``tasks_max``; ``word``: what it counts.
    :param of_flow: it is set for a flow, not for an instance.
    """

    key: str
    word: str
    of_flow: bool


@dataclass(frozen=True)
class Engine:
    """What differs between the engines.

    :param name: as an inventory spells it; ``title``: as a person reads it.
    :param keeps_partitions: records arrive in the partition they came from.
    :param has_replication_policy: topics are called on the target as the flow's replication policy
        says; otherwise as on the source.
    :param positions: where it commits; ``workers``: what shows which processes are at work.
    :param has_offset_syncs: it writes which source offset became which target offset.
    :param has_heartbeats: it writes heartbeats, and mirrors topics of that name by itself.
    :param syncs_groups: it takes the offsets of consumer groups along.
    :param syncs_topic_configs: it sets topics' settings on the target.
    :param creates_topics: it creates topics on the target; otherwise the brokers may, and a record
        for a topic that is missing blocks all others.
    :param skips_internal_topics: its consumer drops what brokers mark as internal, whatever a flow
        asks for (``exclude.internal.topics``); other names that begin with ``__`` it mirrors.
    :param control: command for the flow's process, with ``{verb}`` (start, stop, restart) and
        ``{instance}``.
    :param connector_control: by verb, what starts, stops and restarts one connector of processes
        that others share, with ``{connector}`` and ``{instance}``; empty: the process does.
    """

    name: str
    title: str
    keeps_partitions: bool
    has_replication_policy: bool
    positions: PositionStore
    workers: WorkerStore
    has_offset_syncs: bool
    has_heartbeats: bool
    syncs_groups: bool
    syncs_topic_configs: bool
    creates_topics: bool
    skips_internal_topics: bool
    parallelism: Parallelism
    control: str = "systemctl {verb} {instance}.service"
    connector_control: Mapping[str, str] = field(default_factory=dict)

    @property
    def positions_side(self) -> Literal["source", "target"]:
        """On which side it commits."""
        return "source" if self.positions is PositionStore.SOURCE_GROUP else "target"

    @property
    def workers_side(self) -> Literal["source", "target"]:
        """On which side the group of its processes is."""
        return "source" if self.workers is WorkerStore.GROUP_MEMBERS else "target"


MM1 = Engine(
    name="mm1",
    title="MirrorMaker 1",
    keeps_partitions=False,
    has_replication_policy=False,
    positions=PositionStore.SOURCE_GROUP,
    workers=WorkerStore.GROUP_MEMBERS,
    has_offset_syncs=False,
    has_heartbeats=False,
    syncs_groups=False,
    syncs_topic_configs=False,
    creates_topics=False,
    skips_internal_topics=True,
    parallelism=Parallelism("num_streams", "streams", of_flow=False),
)

MM2 = Engine(
    name="mm2",
    title="MirrorMaker 2",
    keeps_partitions=True,
    has_replication_policy=True,
    positions=PositionStore.CONNECT_OFFSETS,
    workers=WorkerStore.STATUS_TOPIC,
    has_offset_syncs=True,
    has_heartbeats=True,
    syncs_groups=True,
    syncs_topic_configs=True,
    creates_topics=True,
    skips_internal_topics=False,
    parallelism=Parallelism("tasks_max", "tasks", of_flow=True),
)

# Requests to Connect's REST interface.
MM2_CONNECT = replace(
    MM2,
    name="mm2-connect",
    title="MirrorMaker 2 on Connect",
    connector_control={
        "stop": "PUT /connectors/{connector}/stop at a worker of {instance}",
        "start": "PUT /connectors/{connector}/resume at a worker of {instance}",
        "restart": "POST /connectors/{connector}/restart?includeTasks=true at a worker of "
        "{instance}",
    },
)

DEFAULT = MM1

# By the name an inventory gives them.
ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (MM1, MM2, MM2_CONNECT)}
