"""What a topic is, what it should be, and the steps between: created and grown, never shrunk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

try:
    from kafka import errors
    from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType
except ImportError:  # admin_client names the interpreter that lacks it
    errors = AlterConfigOp = ConfigResource = ConfigResourceType = None

from ansible.module_utils.kafka_admin_client import ClusterError


class TopicRefusedError(ClusterError):  # type: ignore[misc]  # Ansible's name of its module
    """The cluster takes no topic of this name or shape, whoever asks."""


@dataclass(frozen=True)
class Topic:
    """A topic as metadata shows it."""

    name: str
    partitions: int
    replication_factor: int
    internal: bool = False


@dataclass(frozen=True)
class Wanted:
    """A topic as it should be; -1 leaves the number to the cluster, a ``None`` config resets it."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Steps from a topic to the wanted one, and what is left as it is."""

    create: bool = False
    grow_to: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether anything has to be written."""
        return self.create or self.grow_to is not None or bool(self.configs)


def config_text(value: Any) -> str | None:
    """Write a configuration value as Kafka does: lower-case booleans, lists joined by commas."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(config_text(part)) for part in value)
    return str(value)


def plan(topic: Topic | None, configs: Mapping[str, Mapping[str, Any]], target: Wanted) -> Plan:
    """Find the steps that make a topic what is wanted.

    :param topic: the topic as it is, ``None`` if it does not exist.
    :param configs: its configuration, name to ``value`` and ``config_source``.
    :param target: the topic as it should be; only the configs it names are compared.
    :returns: the steps; partitions are never removed, replicas never moved.
    :raises ClusterError: a config that the cluster does not know.
    """
    if topic is None:
        return Plan(create=True)
    warnings = []
    if 0 < target.partitions < topic.partitions:
        warnings.append(
            f"topic {topic.name} has {topic.partitions} partitions, {target.partitions} are asked "
            "for: partitions are never removed"
        )
    if target.replication_factor not in (-1, topic.replication_factor):
        warnings.append(
            f"topic {topic.name} has replication factor {topic.replication_factor}, "
            f"{target.replication_factor} is asked for: replicas are not moved, use "
            "kafka-reassign-partitions.sh"
        )
    differing: dict[str, str | None] = {}
    for name, value in target.configs.items():
        if name not in configs:
            raise ClusterError(f"topic {topic.name}: the cluster knows no topic config {name}")
        own = configs[name]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
        if (own and configs[name]["value"] != value) or (not own and value is not None):
            differing[name] = value
    grow_to = target.partitions if target.partitions > topic.partitions else None
    return Plan(grow_to=grow_to, configs=differing, warnings=tuple(warnings))


def topics(admin: Any) -> dict[str, Topic]:
    """All topics the user may see.

    :param admin: a connected admin client.
    :returns: topic by name.
    """
    return {
        topic["name"]: Topic(
            name=topic["name"],
            partitions=len(topic["partitions"]),
            replication_factor=min(
                (len(partition["replica_nodes"]) for partition in topic["partitions"]), default=0
            ),
            internal=topic["is_internal"],
        )
        for topic in admin.describe_topics()
        if not topic["error_code"]
    }


def _configs(admin: Any, name: str) -> dict[str, Any]:
    topic = ConfigResource(ConfigResourceType.TOPIC, name)
    return dict(admin.describe_configs([topic], config_filter="all")["topic"][name])


def _apply(admin: Any, target: Wanted, steps: Plan, check: bool) -> None:
    if steps.create:
        admin.create_topics(
            {
                target.name: {
                    "num_partitions": target.partitions,
                    "replication_factor": target.replication_factor,
                    "configs": {k: v for k, v in target.configs.items() if v is not None},
                }
            },
            validate_only=check,
            wait_for_metadata=not check,
        )
    if steps.grow_to is not None:
        admin.create_partitions({target.name: steps.grow_to}, validate_only=check)
    if steps.configs:
        answer = admin.alter_configs(
            [
                ConfigResource(
                    ConfigResourceType.TOPIC,
                    target.name,
                    {
                        name: (AlterConfigOp.DELETE, None) if value is None else value
                        for name, value in steps.configs.items()
                    },
                )
            ],
            validate_only=check,
        )["topic"][target.name]
        if answer != "OK":
            raise ClusterError(f"topic {target.name}: {answer}")


def reconcile(admin: Any, topic: Topic | None, target: Wanted, check: bool) -> Plan:
    """Make a topic what is wanted.

    :param admin: a connected admin client.
    :param topic: the topic as it is, ``None`` if it does not exist.
    :param target: the topic as it should be.
    :param check: let the broker validate the steps without doing them.
    :returns: the steps that were taken (or would be).
    :raises TopicRefusedError: no such topic can be: its name collides with another, or a policy is
        against it.
    :raises ClusterError: the broker refused a step; the message says which and why.
    """
    configs = _configs(admin, target.name) if topic is not None and target.configs else {}
    steps = plan(topic, configs, target)
    if not steps.changes:
        return steps
    try:
        _apply(admin, target, steps, check)
    except (errors.TopicAlreadyExistsError, errors.InvalidPartitionsError) as error:
        # Another host of the same flow may have been faster.
        again = topics(admin).get(target.name)
        if again is None or again == topic:
            raise ClusterError(f"topic {target.name}: {reason(error)}") from error
        return reconcile(admin, again, target, check)
    except (errors.InvalidTopicError, errors.PolicyViolationError) as error:
        raise TopicRefusedError(f"topic {target.name}: {reason(error)}") from error
    except errors.KafkaError as error:
        raise ClusterError(f"topic {target.name}: {reason(error)}") from error
    return steps


def reason(error: Exception) -> str:
    """Find the broker's own words in an error of kafka-python, whose text is the whole exchange.

    :param error: an exception of kafka-python.
    :returns: the error's name with the broker's message.
    """
    text = str(error)
    for quote in ("'", '"'):
        marker = f"error_message={quote}"
        if marker in text:
            return f"{type(error).__name__}: {text.split(marker, 1)[1].split(quote, 1)[0]}"
    return type(error).__name__
