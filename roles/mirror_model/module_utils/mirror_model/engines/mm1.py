"""MirrorMaker 1: one flow per process, a consumer and a producer, positions of a consumer group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import acls, kafka_names, regex, tuned
from ..client_names import LEGACY_KEYS, REMOVED_OPTIONS, validate_names
from ..clusters import client_properties, cluster_of
from ..control import Kept, excluded
from ..engine import Engine
from ..keys import Clusters, Flow, Properties, layered, suggestion, within
from ..layout import Placed
from ..owners import INSTANCES, Owner
from ..process import Process
from ..validation import Validation

OPTIONS: dict[str, tuple[Any, str]] = {
    "abort.on.send.failure": (True, "Stop, uncommitted, when a record cannot be written."),
    "consumer.rebalance.listener": (None, "Class told about rebalances."),
    "message.handler": (None, "Class that sees, and may change, every record."),
    "message.handler.args": (None, "Argument of the message handler's constructor."),
    "offset.commit.interval.ms": (10000, "How often flushed positions are committed."),
    "rebalance.listener.args": (None, "Argument of the rebalance listener's constructor."),
}
CONSUMER_DEFAULTS = {
    "enable.auto.commit": False,
    "heartbeat.interval.ms": 3000,
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "session.timeout.ms": 10000,
}
# The process without records, and how often what a producer buffers, with room that spares the
# collector.
BASE_MIB, HELD = 128, 2
CLIENTS = {"consumer": kafka_names.CONSUMER["3.9"], "producer": kafka_names.PRODUCER["3.9"]}


def fill(flow: Flow) -> dict[str, Any]:
    """The group's name, by which positions are found again."""
    return {"group_id": flow["group_id"] or f"mirrormaker-{flow['name']}"}


def group(flow: Flow) -> tuple[str, str]:
    """The group that reads the source."""
    return flow["source"], flow["group_id"]


def kept(owner: Owner, flows: Sequence[Flow]) -> list[Kept]:
    """The groups whose positions are the mirrors'."""
    return [Kept("group", *group(flow), owner.path) for flow in flows]


def options(owner: Owner) -> dict[str, Any]:
    """MirrorMaker 1's command line options of one owner, defaults included."""
    return layered({k: value for k, (value, _) in OPTIONS.items()}, owner.settings["mm1_options"])


def streams(flow: Flow, owner: Owner) -> int:
    """Consumers of each process."""
    typed: int | None = owner.settings["num_streams"]
    return typed or tuned.readers(tuned.distance(owner.settings, flow["source"]))


def clients(clusters: Clusters, flow: Flow, owner: Owner) -> tuple[dict[str, Any], dict[str, Any]]:
    """The properties of the two clients of one process.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``mirror_flows[].properties``, the owner's ``consumer_properties``/``producer_properties``.

    :param clusters: ``kafka_clusters``.
    :param flow: the flow, filled in.
    :param owner: what runs it.
    :returns: consumer properties, producer properties; secrets as references.
    """
    source, target = (tuned.distance(owner.settings, flow[side]) for side in ("source", "target"))
    sides = (
        ("consumer", flow["source"], tuned.consumer(source) | CONSUMER_DEFAULTS,
         {"group.id": flow["group_id"], "auto.offset.reset": flow["start"]}),
        ("producer", flow["target"], tuned.producer(target), {"client.id": flow["group_id"]}),
    )  # fmt: skip
    consumer, producer = (
        layered(
            defaults,
            client_properties(clusters, alias, owner.identity, owner.credentials),
            derived,
            cluster_of(clusters, alias)["properties"],
            within(flow["properties"], f"{client}."),
            owner.settings[f"{client}_properties"],
        )
        for client, alias, defaults, derived in sides
    )
    return consumer, producer


def render(clusters: Clusters, process: Process, _node: Mapping[str, Any]) -> Process:
    """What a MirrorMaker 1 process is started with, as ``Engine`` describes it."""
    [flow], owner = process.flows, process.owner
    consumer, producer = clients(clusters, flow, owner)
    own = {
        "consumer.config": Placed("{configuration}/consumer.properties"),
        "producer.config": Placed("{configuration}/producer.properties"),
        "include": regex.include_regex(flow["topics"], excluded(flow)),
        "num.streams": streams(flow, owner),
        **dict(sorted(options(owner).items())),
    }
    variables = {option: f"MM_{option.replace('.', '_').upper()}" for option in own}
    return replace(
        process,
        script="kafka-mirror-maker.sh",
        arguments=[(f"--{option}", variable) for option, variable in variables.items()],
        environment={variables[option]: value for option, value in own.items()},
        properties={"consumer.properties": consumer, "producer.properties": producer},
        identity={
            **process.identity,
            "source": flow["source"],
            "group_id": flow["group_id"],
            "policy": flow["replication_policy"],
        },
        positions=f"group {flow['group_id']} on {flow['source']}",
    )


def memory(clusters: Clusters, flows: Sequence[Flow], owner: Owner) -> float:
    """The heap in mebibytes that the clients may take: one producer, a consumer per stream."""
    [flow] = flows
    consumer, producer = clients(clusters, flow, owner)
    fetched = streams(flow, owner) * tuned.fetched_mib(consumer)
    return BASE_MIB + fetched + HELD * tuned.buffered_mib(producer)


def validate(validation: Validation, flows: Sequence[Flow]) -> None:
    """Validate the flows of MirrorMaker 1, and its keys of owners wherever they stand."""
    for flow in flows:
        _validate_flow(
            validation, f"{validation.paths[flow['name']]}.properties", flow["properties"]
        )
    for owner in (*validation.owners, *validation.absent):
        if owner.kind is not INSTANCES:
            continue
        _validate_options(validation, f"{owner.path}.mm1_options", owner.settings["mm1_options"])
        for client in CLIENTS:
            key = f"{client}_properties"
            _validate_client(validation, f"{owner.path}.{key}", client, owner.settings[key])
    for owner, flow in validation.running():
        if flow in flows and {flow["source"], flow["target"]} <= validation.sound:
            _validate_dangers(validation, owner, flow)


def _validate_flow(validation: Validation, path: str, properties: Properties) -> None:
    for client in CLIENTS:
        _validate_client(validation, path, client, within(properties, f"{client}."), f"{client}.")
    for key in properties:
        if not key.startswith(tuple(f"{client}." for client in CLIENTS)):
            validation.refuse(
                f"{path}['{key}']: begin it with 'consumer.' or 'producer.' for engine mm1"
            )


def _validate_client(
    validation: Validation, path: str, client: str, properties: Properties, prefix: str = ""
) -> None:
    for name in properties:
        if name in OPTIONS:
            validation.refuse(
                f"{path}['{prefix}{name}']: is a command line option and ignored here; set "
                "mm1_options of the instance"
            )
    validate_names(validation, path, properties, CLIENTS[client], prefix)


def _validate_options(validation: Validation, path: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        where = f"{path}['{name}']"
        if name in REMOVED_OPTIONS:
            validation.refuse(f"{where}: is not an option (any more); {REMOVED_OPTIONS[name]}")
        elif name in LEGACY_KEYS:
            validation.refuse(f"{where}: is no longer read by any client; {LEGACY_KEYS[name]}")
        elif name not in OPTIONS:
            validation.refuse(f"{where}: unknown option; {suggestion(name, OPTIONS)}")
        elif name == "abort.on.send.failure" and not (value is None or isinstance(value, bool)):
            validation.refuse(f"{where}: must be true or false, without quotes")
        elif name == "offset.commit.interval.ms" and not _is_interval(value):
            validation.refuse(f"{where}: must be a whole number of milliseconds, at least 1")


def _is_interval(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def _validate_dangers(validation: Validation, owner: Owner, flow: Flow) -> None:
    """Refuse or mention settings that lose or misplace records."""
    label, path = flow["name"], owner.path
    if options(owner).get("abort.on.send.failure") is False:
        validation.danger(
            "abort.on.send.failure", label,
            f"{path}.mm1_options['abort.on.send.failure']: false drops records that cannot be "
            "written and commits past them; set it to true",
        )  # fmt: skip
    consumer, producer = clients(validation.clusters, flow, owner)
    if str(consumer.get("enable.auto.commit", False)).lower() != "false":
        validation.danger(
            "enable.auto.commit", label,
            f"{path}.consumer_properties['enable.auto.commit']: commits records that may never "
            "reach the target; remove it",
        )  # fmt: skip
    if "producer.type" in producer:
        validation.danger(
            "producer.type", label,
            f"{path}.producer_properties['producer.type']: sends one record at a time; "
            "remove it",
        )  # fmt: skip
    if str(producer.get("acks", "all")) not in ("all", "-1"):
        validation.warn(
            f"{path}.producer_properties['acks']: records are lost when a broker of "
            f"'{flow['target']}' fails; remove it"
        )


def permissions(flow: Flow, _owner: Owner) -> list[acls.Row]:
    """What the mirror needs for a flow."""
    topics = acls.topics(flow)
    return [
        *acls.rows(flow["source"], "topic", topics, {
            "READ": "MirrorMaker 1 ends with status 255, or mirrors nothing and says nothing if it "
            "may see none of the topics",
        }),
        *acls.rows(flow["source"], "group", acls.literal(flow["group_id"]), {
            "READ": "MirrorMaker 1 ends with status 255",
        }),
        *acls.rows(flow["target"], "topic", topics, {
            "WRITE": "MirrorMaker 1 ends with status 255 at the first record",
        }),
    ]  # fmt: skip


def report_permissions(flow: Flow, _owner: Owner) -> list[acls.Row]:
    """What the report needs beyond what it needs for every engine."""
    return [
        *acls.rows(flow["source"], "group", acls.literal(flow["group_id"]), {
            "DESCRIBE": "the report cannot tell how far the mirror is",
        }),
        *acls.on_cluster(flow["target"], {
            "DESCRIBE_CONFIGS": "the report cannot tell whether the brokers create topics",
        }),
    ]  # fmt: skip


def report(clusters: Clusters, flow: Flow, owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine.

    No record of a transaction is written: the target is read as it is.
    """
    consumer, _ = clients(clusters, flow, owner)
    return {
        "commit_interval_ms": options(owner).get("offset.commit.interval.ms", 60000),
        "parallelism": streams(flow, owner) * len(owner.hosts),
        "source_isolation": consumer.get("isolation.level") or "read_uncommitted",
        "target_isolation": "read_uncommitted",
    }


ENGINE = Engine(
    name="mm1",
    title="MirrorMaker 1",
    kafka_version="3.9.2",
    last_line="3.9",
    policies=("identity",),
    flow_keys=frozenset(("group_id",)),
    owner_keys=frozenset(
        ("consumer_properties", "mm1_options", "num_streams", "producer_properties")
    ),
    layers={"consumer_properties": "source", "producer_properties": "target"},
    flow_clients={"consumer": "source", "producer": "target"},
    fill=fill,
    group=group,
    control_groups=(r"mirrormaker-.*",),
    kept=kept,
    validate=validate,
    memory=memory,
    render=render,
    permissions=permissions,
    report_permissions=report_permissions,
    report=report,
)
