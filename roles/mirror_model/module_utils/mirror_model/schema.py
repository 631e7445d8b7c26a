"""The keys a user may write, as data: the judge checks against it and the docs are made from it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["text", "secret", "whole", "texts", "properties", "map", "choice"]


@dataclass(frozen=True)
class Key:
    """One key of a map: what it holds, its default and what the reference page says about it.

    ``reasons`` says of values that look like choices why they are none.
    """

    name: str
    kind: Kind
    doc: str
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    engines: tuple[str, ...] = ()


ENGINES = ("mm1", "mm2", "mm2-connect")
SUPPORTED_ENGINES = ("mm1", "mm2")
KAFKA_VERSIONS = {"mm1": "3.9.2", "mm2": "4.3.1"}
CONFIGURATION = "/etc"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
# What else Kafka knows, and why it is not offered.
NO_MECHANISMS = {
    "GSSAPI": "GSSAPI (Kerberos) is not supported: nothing here hands a keytab to a service or "
    "renews its tickets, and the report and the checks would need the C library of Kerberos; use "
    "SCRAM-SHA-512, or a client certificate with security_protocol SSL",
    "OAUTHBEARER": "OAUTHBEARER is not supported: Java and kafka-python each need a class of "
    "their own that fetches tokens, and the services a way to the endpoint; use SCRAM-SHA-512, or "
    "a client certificate with security_protocol SSL",
    "AWS_MSK_IAM": "AWS_MSK_IAM is not supported: Java and Python each need Amazon's library for "
    "it, and the services the host's cloud credentials; use SCRAM-SHA-512, or a client "
    "certificate with security_protocol SSL",
}
NOT_YET = "not yet supported in this version"

ALIAS = re.compile(r"[A-Za-z0-9_-]+")
FLOW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
IDENTITY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
INSTANCE_NAME = re.compile(r"mirrormaker(-[a-z0-9]+)*")
LONGEST_INSTANCE_NAME = 32
HEAP = r"[1-9][0-9]*[mMgG]"

# First words of Kafka's own property names: "<alias>.x" must never be read as one of them.
RESERVED_ALIASES = frozenset((
    "acl", "acls", "admin", "alter", "auto", "bootstrap", "checkpoint", "checkpoints", "client",
    "clusters", "config", "configs", "connect", "connector", "consumer", "dedicated", "emit",
    "enabled", "errors", "exactly", "group", "groups", "header", "heartbeat", "heartbeats",
    "interceptor", "internal", "key", "listeners", "metadata", "metrics", "mm2", "name", "offset",
    "offset-syncs", "offsets", "plugin", "predicates", "producer", "reconnect", "refresh",
    "replication", "request", "rest", "retry", "sasl", "scheduled", "security", "socket",
    "source", "ssl", "status", "sync", "target", "task", "tasks", "topic", "topics", "transforms",
    "use", "value", "worker",
))  # fmt: skip

CLUSTER = (
    Key(
        "bootstrap_servers", "texts", "Brokers to ask first, each `host:port`.", required=True,
        pattern=r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}",
    ),
    Key(
        "security_protocol", "choice", "How clients reach the brokers.", "PLAINTEXT",
        choices=PROTOCOLS,
    ),
    Key("ssl_ca", "text", "Certificates of the authorities that signed the brokers', as PEM text."),
    Key(
        "identities", "map",
        "Who connects, by purpose: `mirror`, and for other purposes (`report`, `admin`, ...) their "
        "own or else `mirror`.", {},
    ),
    Key(
        "properties", "properties",
        "Java client properties, verbatim, for everything that connects to this cluster in Java.",
        {},
    ),
)  # fmt: skip

IDENTITY = (
    Key(
        "sasl_mechanism",
        "choice",
        "How the identity proves itself.",
        choices=MECHANISMS,
        reasons=NO_MECHANISMS,
    ),
    Key("username", "text", "The user name."),
    Key("password", "secret", "The password; keep it in a vault."),
    Key("ssl_certificate", "text", "Client certificate, with its chain, as PEM text."),
    Key(
        "ssl_key",
        "secret",
        "Private key of the client certificate as PEM text: PKCS#8, not "
        "encrypted; keep it in a vault.",
    ),
    Key(
        "principal",
        "text",
        "As whom the brokers know the identity, as `User:mirror`; needed where "
        "they map names (`ssl.principal.mapping.rules`). By default `User:` and the user name, or "
        "with SSL the certificate's subject.",
        pattern=r"[A-Za-z]+:.+",
    ),
)

FLOW = (
    Key(
        "name", "text", "Stable identity of the flow; MirrorMaker 1 reads as group "
        "`mirrormaker-<name>`.", required=True, pattern=FLOW_NAME.pattern,
    ),
    Key("engine", "choice", "What mirrors it.", required=True, choices=ENGINES),
    Key("source", "text", "Alias of the cluster to read.", required=True),
    Key("target", "text", "Alias of the cluster to write.", required=True),
    Key(
        "topics", "texts", "Topics to mirror. A legal topic name means just that topic; anything "
        "else is a regular expression over whole names in the portable subset.", required=True,
    ),
    Key("topics_exclude", "texts", "Topics to leave out, written like `topics`.", []),
    Key(
        "consumer_groups", "texts",
        "Consumer groups whose offsets follow, written like `topics`.", [],
        engines=("mm2", "mm2-connect"),
    ),
    Key(
        "replication_policy", "choice", "Names on the target: `prefix` puts the source's alias "
        "before them, `identity` keeps them. MirrorMaker 1 keeps them by nature.",
        choices=("prefix", "identity"),
    ),
    Key(
        "start", "choice", "Where a flow without committed positions starts.", "earliest",
        choices=("earliest", "latest"),
    ),
    Key(
        "tasks_max", "whole", "Upper bound of parallel tasks.", 4, engines=("mm2", "mm2-connect")
    ),
    Key("group_id", "text", "An existing consumer group to go on from.", engines=("mm1",)),
    Key(
        "connect", "text", "Which of `kafka_connect_clusters` runs it.", engines=("mm2-connect",)
    ),
    Key(
        "properties", "properties", "Kafka properties of this flow, verbatim; for `mm1` each "
        "begins with `consumer.` or `producer.`, for `mm2` see below.", {},
    ),
)  # fmt: skip

INSTANCE = (
    Key("hosts", "texts", "Inventory hosts that run it; several hosts share the work.", []),
    Key(
        "flows", "texts", "Names of `mirror_flows`; `mm1` takes exactly one, `mm2` any number into "
        "one target.", [],
    ),
    Key(
        "state", "choice", "Whether the process runs.", "started",
        choices=("started", "stopped", "absent"),
    ),
    Key(
        "kafka_version", "text", "The Kafka release it runs from; by default "
        + ", ".join(f"{version} for {engine}" for engine, version in KAFKA_VERSIONS.items())
        + ". Another number upgrades or goes back.", pattern=r"[0-9]+\.[0-9]+\.[0-9]+",
    ),
    Key("num_streams", "whole", "Consumer threads per host.", 1, engines=("mm1",)),
    Key("heap", "text", "Java heap, as `512m` or `2g`.", "1g", pattern=HEAP),
    Key("mm1_options", "properties", "MirrorMaker 1's command line options.", {}, engines=("mm1",)),
    Key(
        "consumer_properties", "properties", "Consumer properties in Kafka's own names; null "
        "removes a default.", {}, engines=("mm1",),
    ),
    Key(
        "producer_properties", "properties", "Producer properties in Kafka's own names; null "
        "removes a default.", {}, engines=("mm1",),
    ),
    Key(
        "worker_properties", "properties", "Worker properties in Kafka's own names; null "
        "removes a default.", {},
        engines=("mm2",),
    ),
)  # fmt: skip

# Tuned at unchanged guarantees: idempotence with five requests in flight keeps the order.
CONSUMER_DEFAULTS: dict[str, Any] = {
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 100,
    "fetch.min.bytes": 65536,
    "heartbeat.interval.ms": 3000,
    "max.poll.records": 4000,
    "metadata.max.age.ms": 60000,
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "receive.buffer.bytes": 1048576,
    "session.timeout.ms": 10000,
}
PRODUCER_DEFAULTS: dict[str, Any] = {
    "acks": "all",
    "batch.size": 327680,
    "buffer.memory": 67108864,
    "enable.idempotence": True,
    "linger.ms": 20,
    "max.in.flight.requests.per.connection": 5,
    "max.request.size": 8388608,
    "metadata.max.age.ms": 60000,
}
MM1_OPTIONS: dict[str, tuple[Any, str]] = {
    "abort.on.send.failure": (True, "Stop, uncommitted, when a record cannot be written."),
    "consumer.rebalance.listener": (None, "Class told about rebalances."),
    "message.handler": (None, "Class that sees, and may change, every record."),
    "message.handler.args": (None, "Argument of the message handler's constructor."),
    "offset.commit.interval.ms": (10000, "How often flushed positions are committed."),
    "rebalance.listener.args": (None, "Argument of the rebalance listener's constructor."),
}

# Names of older releases and where their meaning lives now.
REMOVED_OPTIONS = {
    "whitelist": "list the topics in mirror_flows[].topics",
    "include": "list the topics in mirror_flows[].topics",
    "blacklist": "list the topics in mirror_flows[].topics_exclude",
    "exclude": "list the topics in mirror_flows[].topics_exclude",
    "num.producers": "remove it; one producer serves all streams",
    "num.consumers": "set num_streams of the instance",
    "num.streams": "set num_streams of the instance",
    "queue.size": "remove it; set buffer.memory in producer_properties",
    "queue.byte.size": "remove it; set buffer.memory in producer_properties",
    "abortOnSendFail": "set mm1_options abort.on.send.failure",
    "new.consumer": "remove it; there is only one consumer since Kafka 2.0",
    "mirror.topics.whitelist": "list the topics in mirror_flows[].topics",
    "mirror.topics.blacklist": "list the topics in mirror_flows[].topics_exclude",
    "consumer.config": "set consumer_properties of the instance",
    "producer.config": "set producer_properties of the instance",
}
LEGACY_KEYS = {
    "groupid": "set mirror_flows[].group_id",
    "auto.commit.enabled": "remove it; positions are committed after each flush",
    "auto.commit.enable": "remove it; positions are committed after each flush",
    "autocommit.enable": "remove it; positions are committed after each flush",
    "autooffset.reset": "set mirror_flows[].start",
    "zookeeper.connect": "set kafka_clusters.<alias>.bootstrap_servers",
    "zk.connect": "set kafka_clusters.<alias>.bootstrap_servers",
    "zookeeper.session.timeout.ms": "set session.timeout.ms",
    "zookeeper.connection.timeout.ms": "remove it",
    "zk.sessiontimeout.ms": "set session.timeout.ms",
    "metadata.broker.list": "set kafka_clusters.<alias>.bootstrap_servers",
    "broker.list": "set kafka_clusters.<alias>.bootstrap_servers",
    "consumer.id": "remove it",
    "consumer.timeout.ms": "remove it",
    "fetch.size": "set fetch.max.bytes or max.partition.fetch.bytes",
    "fetch.message.max.bytes": "set max.partition.fetch.bytes",
    "fetch.wait.max.ms": "set fetch.max.wait.ms",
    "offsets.storage": "remove it; positions are kept in Kafka",
    "dual.commit.enabled": "remove it; positions are kept in Kafka",
    "shallow.iterator.enable": "remove it",
    "socket.receive.buffer.bytes": "set receive.buffer.bytes",
    "socket.buffersize": "set receive.buffer.bytes",
    "rebalance.max.retries": "remove it; brokers coordinate the group",
    "rebalance.backoff.ms": "remove it; brokers coordinate the group",
    "request.required.acks": "set acks",
    "request.timeout": "set request.timeout.ms",
    "serializer.class": "remove it; MirrorMaker 1 copies bytes",
    "key.serializer.class": "remove it; MirrorMaker 1 copies bytes",
    "compression.codec": "set compression.type",
    "compressed.topics": "remove it; set compression.type",
    "message.send.max.retries": "set delivery.timeout.ms",
    "queue.buffering.max.ms": "set linger.ms",
    "queue.buffering.max.messages": "set buffer.memory",
    "queue.enqueue.timeout.ms": "set max.block.ms",
    "queue.time": "set linger.ms",
    "batch.num.messages": "set batch.size, in bytes",
    "block.on.buffer.full": "set max.block.ms",
    "timeout.ms": "set request.timeout.ms",
    "metadata.fetch.timeout.ms": "set max.block.ms",
    "send.buffer.size": "set send.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "set metadata.max.age.ms",
    "max.message.size": "set max.request.size",
}
# What the model writes itself: a second word for it could only contradict.
OWNED_KEYS = {
    "bootstrap.servers": "set kafka_clusters.<alias>.bootstrap_servers",
    "security.protocol": "set kafka_clusters.<alias>.security_protocol",
    "sasl.mechanism": "set kafka_clusters.<alias>.identities.mirror.sasl_mechanism",
    "sasl.jaas.config": "set kafka_clusters.<alias>.identities.mirror; the value becomes a file "
    "that only the service can read",
    "group.id": "set mirror_flows[].group_id",
    "config.providers": "remove it; the role uses the provider for its credentials",
    "key.serializer": "remove it; MirrorMaker 1 copies bytes",
    "value.serializer": "remove it; MirrorMaker 1 copies bytes",
    "key.deserializer": "remove it; MirrorMaker 1 copies bytes",
    "value.deserializer": "remove it; MirrorMaker 1 copies bytes",
}
OWNED_BY_FLOW = {"auto.offset.reset": "set mirror_flows[].start"}

# Kafka's properties of type password: what it never prints.
_PAIR = (
    "give the client certificate as PEM text in kafka_clusters.<alias>.identities, ssl_certificate "
    "and ssl_key, which become files that only the service can read"
)
_NO_OAUTH = "remove it; OAUTHBEARER is not supported"
SECRET_KEYS = {
    "ssl.keystore.password": _PAIR,
    "ssl.keystore.key": _PAIR,
    "ssl.key.password": _PAIR,
    "sasl.oauthbearer.client.credentials.client.secret": _NO_OAUTH,
    "sasl.oauthbearer.assertion.private.key.passphrase": _NO_OAUTH,
}
HIDDEN_KEYS = frozenset((
    *SECRET_KEYS, "sasl.jaas.config", "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates", "ssl.truststore.password",
))  # fmt: skip
HOST_NAMES = "ssl.endpoint.identification.algorithm"

# Dangers that mirror_accept may name, and what the name behind the colon is.
ACCEPTANCES = {
    "abort.on.send.failure": "flow",
    "enable.auto.commit": "flow",
    "errors.tolerance": "flow",
    "producer.type": "flow",
    "regex-without-auto-creation": "flow",
    "takeover": "flow",
    "identity": "instance",
    HOST_NAMES: "cluster",
}

Report = Callable[[str], None]


def suggestion(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(names)}" if names else "none is defined"


def check_map(path: str, value: Any, keys: tuple[Key, ...], report: Report) -> bool:
    """Check one map against its keys.

    :param path: the variable as a user would write it, such as ``kafka_clusters.east``.
    :param value: what the inventory says.
    :param keys: the keys that may appear.
    :param report: called with one message per problem.
    :returns: whether the value is a map that can be looked into further.
    """
    if not isinstance(value, Mapping):
        report(f"{path}: must be a map; its keys are {', '.join(key.name for key in keys)}")
        return False
    known = {key.name: key for key in keys}
    for name in value:
        if name not in known:
            report(f"{path}: unknown key '{name}'; {suggestion(name, known)}")
    for key in keys:
        if value.get(key.name) is None:
            if key.required:
                report(f"{path}.{key.name}: is missing; {key.doc}")
        else:
            check_value(f"{path}.{key.name}", value[key.name], key, report)
    return True


def check_value(path: str, value: Any, key: Key, report: Report) -> None:
    """Check one value against its key; secrets are never quoted."""
    if key.kind in ("text", "secret"):
        if not isinstance(value, str) or not value:
            report(f"{path}: must be non-empty text (quote numbers)")
        elif key.pattern and not re.fullmatch(key.pattern, value):
            report(f"{path}: '{value}' does not match {key.pattern}")
    elif key.kind == "choice":
        if value not in key.choices:
            among = f"'{value}' is not one of {', '.join(key.choices)}"
            report(f"{path}: {key.reasons.get(str(value).upper(), among)}")
    elif key.kind == "whole":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            report(f"{path}: must be a whole number of at least 1")
    elif key.kind == "texts":
        _check_texts(path, value, key, report)
    elif not isinstance(value, Mapping):
        report(f"{path}: must be a map")
    elif key.kind == "properties":
        for name, item in value.items():
            _check_property(path, name, item, report)


def _check_texts(path: str, value: Any, key: Key, report: Report) -> None:
    if not isinstance(value, list):
        report(f"{path}: must be a list; write [a, b] or one '- a' per line")
        return
    if key.required and not value:
        report(f"{path}: must not be empty")
    for place, item in enumerate(value):
        if not isinstance(item, str) or not item:
            report(f"{path}[{place}]: must be non-empty text (quote numbers)")
        elif key.pattern and not re.fullmatch(key.pattern, item):
            report(f"{path}[{place}]: '{item}' does not match {key.pattern}")
    for item in sorted({item for item in value if isinstance(item, str) and value.count(item) > 1}):
        report(f"{path}: '{item}' is listed twice; remove one")


def _check_property(path: str, name: Any, value: Any, report: Report) -> None:
    if not isinstance(name, str) or not name:
        report(f"{path}: a property name must be non-empty text")
        return
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, (str, int, float, bool)) or item is None for item in items):
        report(f"{path}['{name}']: must be text, a number, a boolean, null or a list of these")


def defaults_of(keys: tuple[Key, ...]) -> dict[str, Any]:
    """The value every key has when it is left out."""
    return {key.name: key.default for key in keys}
