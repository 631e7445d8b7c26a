"""What our identity may do, asked as that identity; nothing is created, changed or read.

A broker lists authorized operations of what exists and may be described. For a name that does not
exist it still refuses a request before that: so creating, growing and altering are asked for
with ``validate_only``. Writing idempotently, a permission below 2.8, is asked for by requesting a
producer id, which nobody uses.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResourceType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.admin._acls import valid_acl_operations
from kafka.errors import KafkaError
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.producer import InitProducerIdRequest

from mirror_report.kafka import groups
from mirror_report.kafka.connection import REQUEST_TIMEOUT_MS, DeniedError, explained
from mirror_report.kafka.metadata import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC, ClusterClient
from mirror_report.model import Access, Resource

GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
IMPLY_DESCRIBE = ("READ", "WRITE", "DELETE", "ALTER")
OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "topic": (
        "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    ),
    "group": ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "cluster": (
        "CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
    ),
}  # fmt: skip

_REFUSED = (TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED)
INVALID_TOPIC = 17
# Answers of a broker that has let the request pass its authorizer.
_PASSED = (
    0,
    UNKNOWN_TOPIC,
    INVALID_TOPIC,  # the name is not a topic's
    36,  # it exists already
    37,  # its partitions
    38,  # or its replication factor are not right
    44,  # the site's own policy for topics refuses it
)

# Admin client and names -> error code per name.
Request = Callable[[Any, list[str]], Awaitable[dict[str, int]]]


def ask(
    client: ClusterClient, resources: Mapping[Resource, Collection[str]], nobodys: str
) -> dict[Resource, Access]:
    """Ask what our identity may do.

    :param resources: resource -> operations of interest.
    :param nobodys: name of a topic that does not exist.
    :raises ClusterError: the cluster does not answer at all.
    """
    topics = {name: operations for (kind, name), operations in resources.items() if kind == "topic"}
    answers = {("topic", name): access for name, access in _topics(client, topics).items()}
    for (kind, name), operations in resources.items():
        if kind == "group":
            answers[kind, name] = _group(client, name)
        elif kind == "cluster":
            answers[kind, name] = _cluster(client, operations, nobodys)
    return answers


def may_create(client: ClusterClient, topics: Collection[str]) -> dict[str, bool]:
    """Whether our identity may create each of these topics; what could not be asked is left out."""
    return _allowed(client, _create, topics)


def not_creatable(client: ClusterClient, topics: Collection[str]) -> list[str]:
    """Those of some topics whose legal names the cluster refuses: another differs in '.' and '_'.

    The other topic may be hidden from us; but only an identity that may create topics is answered.
    """
    codes = _codes(client, _create, topics)
    return [name for name, code in codes.items() if code == INVALID_TOPIC]


def granted(client: ClusterClient, topic: str) -> list[tuple[str, str, bool]] | None:
    """Everybody's permissions on a topic, those on wider names included.

    :returns: principal, operation, and whether it is allowed or denied; ``None``: the cluster does
        not list them.
    """
    acls_of_topic = ACLFilter(
        None, None, ACLOperation.ANY, ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.MATCH),
    )  # fmt: skip
    try:
        acls, _ = client.admin.describe_acls(acls_of_topic)
    except KafkaError:
        return None
    return [
        (acl.principal, acl.operation.name, acl.permission_type is ACLPermissionType.ALLOW)
        for acl in acls
    ]


def _topics(client: ClusterClient, topics: Mapping[str, Collection[str]]) -> dict[str, Access]:
    if not topics:
        return {}
    with explained(client.cluster, "describe topics", "DESCRIBE on the topics"):
        described = {topic["name"]: topic for topic in client.admin.describe_topics(sorted(topics))}
    exists: dict[str, bool | None] = {}
    allowed: dict[str, dict[str, bool]] = {}
    for name in topics:
        topic = described.get(name, {})
        # Brokers below 2.3 leave the operations out.
        code, operations = topic.get("error_code"), topic.get("authorized_operations")
        exists[name] = {0: True, UNKNOWN_TOPIC: False}.get(code)
        allowed[name] = {}
        if code == TOPIC_AUTHORIZATION_FAILED:
            allowed[name] = dict.fromkeys((*IMPLY_DESCRIBE, "DESCRIBE"), False)
        elif code == UNKNOWN_TOPIC or (code == 0 and operations is None):
            allowed[name] = {"DESCRIBE": True}
        elif code == 0:
            allowed[name] = _every("topic", operations)
            # The cluster's permission to create topics is not listed with a topic.
            if not allowed[name]["CREATE"]:
                del allowed[name]["CREATE"]
    for operation, request in _REQUESTS.items():
        not_listed = [
            name for name in topics if operation in topics[name] and operation not in allowed[name]
        ]
        for name, is_allowed in _allowed(client, request, not_listed).items():
            allowed[name][operation] = is_allowed
    return {name: Access(exists[name], allowed[name]) for name in topics}


def _allowed(client: ClusterClient, request: Request, names: Collection[str]) -> dict[str, bool]:
    codes = _codes(client, request, names)
    return {name: code in _PASSED for name, code in codes.items() if code in (*_PASSED, *_REFUSED)}


def _codes(client: ClusterClient, request: Request, names: Collection[str]) -> dict[str, int]:
    codes: dict[str, int] = {}
    if names:
        with contextlib.suppress(KafkaError):
            codes = client.admin._manager.run(request, client.admin, sorted(names))
    return codes


async def _create(admin: Any, names: list[str]) -> dict[str, int]:
    answer = await admin._send_request_to_controller(
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
                )
                for name in names
            ],
            timeout_ms=REQUEST_TIMEOUT_MS,
            validate_only=True,
            min_version=1,
        )
    )
    return {topic.name: topic.error_code for topic in answer.topics}


async def _grow(admin: Any, names: list[str]) -> dict[str, int]:
    answer = await admin._send_request_to_controller(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=1, assignments=None)
                for name in names
            ],
            timeout_ms=REQUEST_TIMEOUT_MS,
            validate_only=True,
        )
    )
    return {result.name: result.error_code for result in answer.results}


async def _alter_configs(admin: Any, names: list[str]) -> dict[str, int]:
    answer = await admin._manager.send(
        IncrementalAlterConfigsRequest(
            resources=[(ConfigResourceType.TOPIC, name, []) for name in names], validate_only=True
        )
    )
    return {response.resource_name: response.error_code for response in answer.responses}


async def _describe_configs(admin: Any, names: list[str]) -> dict[str, int]:
    answer = await admin._manager.send(
        DescribeConfigsRequest(resources=[(ConfigResourceType.TOPIC, name, []) for name in names])
    )
    return {result.resource_name: result.error_code for result in answer.results}


# Operation on a topic -> request that needs it.
_REQUESTS: Mapping[str, Request] = {
    "CREATE": _create,
    "ALTER": _grow,
    "ALTER_CONFIGS": _alter_configs,
    "DESCRIBE_CONFIGS": _describe_configs,
}


def _group(client: ClusterClient, name: str) -> Access:
    try:
        group = groups.described(client, name)
    except DeniedError:
        return Access(operations=dict.fromkeys(("READ", "DELETE", "DESCRIBE"), False))
    # The older version of the answer lists them for a group that does not exist, too.
    operations = getattr(group, "authorized_operations", None)
    if operations is None:
        return Access(operations={"DESCRIBE": True})
    return Access(
        operations=_every(
            "group", (operation.name for operation in valid_acl_operations(operations))
        )
    )


def _cluster(client: ClusterClient, asked: Collection[str], nobodys: str) -> Access:
    with explained(client.cluster, "describe the cluster", "DESCRIBE on the cluster"):
        described = client.admin.describe_cluster()
    operations = described.get("authorized_operations")
    if operations:
        return Access(operations=_every("cluster", operations))
    # An empty list means that DESCRIBE is refused, and nothing about the rest.
    allowed = {} if operations is None else {"DESCRIBE": False, "ALTER": False}
    first_broker = [str(broker["broker_id"]) for broker in described["brokers"][:1]]
    for operation, request, names in (
        ("CREATE", _create, [nobodys]),
        ("DESCRIBE_CONFIGS", _describe_broker, first_broker),
        ("IDEMPOTENT_WRITE", _init_producer, ["producer"]),
    ):
        if operation in asked:
            for is_allowed in _allowed(client, request, names).values():
                allowed[operation] = is_allowed
    return Access(operations=allowed)


async def _describe_broker(admin: Any, brokers: list[str]) -> dict[str, int]:
    (broker,) = brokers
    answer = await admin._manager.send(
        DescribeConfigsRequest(resources=[(ConfigResourceType.BROKER, broker, [])]),
        node_id=int(broker),
    )
    return {broker: answer.results[0].error_code}


async def _init_producer(admin: Any, names: list[str]) -> dict[str, int]:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=REQUEST_TIMEOUT_MS
    )
    return dict.fromkeys(names, (await admin._manager.send(request)).error_code)


def _every(kind: str, allowed: Iterable[str]) -> dict[str, bool]:
    names = set(allowed)
    return {operation: operation in names for operation in OPERATIONS[kind]}
