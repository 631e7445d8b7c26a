"""The keys a user may write, as data: validation checks against it and the docs are made from it.

Which keys mean something to some engines alone is data of the engines; ``engines`` joins both.
"""

import re

from .kafka_names import HOST_NAMES
from .keys import Key

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

ALIAS = re.compile(r"[A-Za-z0-9_-]+")
FLOW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
IDENTITY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
INSTANCE_NAME = re.compile(r"mirrormaker(-[a-z0-9]+)*")
CONNECT_NAME = re.compile(r"connect(-[a-z0-9]+)*")
LONGEST_OWNER_NAME = 32
HEAP = r"[1-9][0-9]*[mMgG]"
DEFAULT_VERSIONS = "{the release of each engine}"

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
    Key("engine", "choice", "What mirrors it.", required=True),
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
        "tasks_max", "whole", "Upper bound of parallel tasks, of all hosts together; by default 2, "
        "or as many as there are hosts; of a source that is far three per host.",
    ),
    Key("group_id", "text", "An existing consumer group to go on from."),
    Key("connect", "text", "Which of `kafka_connect_clusters` runs it."),
    Key(
        "connectors", "map", "Names of its connectors, by `source`, `checkpoint` and `heartbeat`; "
        "by default `<flow>-source` and the like. Existing ones of these names are taken over.",
        {},
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
        "identity", "text", "As which of the `identities` of its clusters it connects; where a "
        "cluster has none of that name, as `mirror`.", "mirror", pattern=IDENTITY_NAME.pattern,
    ),
    Key(
        "kafka_version", "text", f"The Kafka release it runs from; by default {DEFAULT_VERSIONS}. "
        "Another number upgrades or goes back.", pattern=r"[0-9]+\.[0-9]+\.[0-9]+",
    ),
    Key(
        "num_streams", "whole", "Consumer threads per host; by default 1, or 3 for a source that "
        "is far.",
    ),
    Key(
        "distance", "map", "How far clusters are from these hosts, by alias; a cluster that is not "
        "named is near.", {},
    ),
    Key(
        "heap", "text", "Java heap, as `512m` or `2g`; by default what the clients' properties may "
        "take (docs/sizing.md).", pattern=HEAP,
    ),
    Key("mm1_options", "properties", "MirrorMaker 1's command line options.", {}),
    Key(
        "consumer_properties", "properties", "Consumer properties in Kafka's own names; null "
        "removes a default.", {},
    ),
    Key(
        "producer_properties", "properties", "Producer properties in Kafka's own names; null "
        "removes a default.", {},
    ),
    Key(
        "worker_properties", "properties", "Worker properties in Kafka's own names; null "
        "removes a default.", {},
    ),
)  # fmt: skip

DISTANCE = (
    Key(
        "round_trip_ms", "whole", "Milliseconds between a request and its answer, as `ping` shows "
        "them.", required=True,
    ),
    Key(
        "bandwidth_mbit", "whole", "What the mirror may use of the link, in megabits per second.",
        1000,
    ),
)  # fmt: skip

CONNECT_CLUSTER = (
    Key("kafka", "text", "Alias of the cluster that keeps the workers' topics: the target of its "
        "flows.", required=True),
    Key("hosts", "texts", "Inventory hosts that run a worker each. None: a Connect cluster that "
        "exists, to which only connectors are sent.", []),
    Key("state", "choice", "Whether the workers run.", "started",
        choices=("started", "stopped", "absent")),
    Key("identity", "text", "As which of the `identities` of its clusters the workers connect; "
        "where a cluster has none of that name, as `mirror`.", "mirror",
        pattern=IDENTITY_NAME.pattern),
    Key("kafka_version", "text", "The Kafka release the workers run from.",
        pattern=r"[0-9]+\.[0-9]+\.[0-9]+"),
    Key("group_id", "text", "Group by which the workers find each other; by default the cluster's "
        "name."),
    Key("port", "whole", "Port of the workers' REST servers.", 8084),
    Key("topics", "map", "Names of the workers' topics: `offsets`, `status` and `config`; by "
        "default `<name>-offsets` and the like. REST does not tell those of an existing cluster.",
        {}),
    Key("rest", "map", "How the workers' REST servers are reached, and by whom.", {}),
    Key("secrets", "map", "How the workers of an existing cluster get at secrets.", {}),
    Key("overrides", "texts", "What an existing cluster lets connectors override of their "
        "producers, in Kafka's own names; by default everything, as Connect does."),
    Key("distance", "map", "How far clusters are from the workers' hosts, by alias; a cluster that "
        "is not named is near.", {}),
    Key("heap", "text", "Java heap of a worker, as `512m` or `2g`; by default what the clients' "
        "properties may take (docs/sizing.md).", pattern=HEAP),
    Key("worker_properties", "properties", "Worker properties in Kafka's own names; null removes a "
        "default.", {}),
)  # fmt: skip

CONNECT_REST = (
    Key("listener", "choice", "`https`, or `loopback` for callers on the host itself: a single "
        "worker. Either asks for a user.", "https", choices=("https", "loopback")),
    Key("urls", "texts", "Addresses of workers, such as `https://connect1:8084`; by default those "
        "of the hosts.", [], pattern=r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"),
    Key("ssl_ca", "text", "Certificates of the authorities that signed the workers', as PEM text."),
    Key("ssl_certificate", "text", "Client certificate of who deploys connectors, as PEM text."),
    Key("ssl_key", "secret", "Its private key as PEM text; keep it in a vault."),
    Key("users", "map", "Name of everyone who may use REST to the password; keep it in a vault.",
        {}),
    Key("client", "text", "Which of the users deploys connectors."),
)  # fmt: skip

CONNECT_SECRETS = (
    Key("provider", "text", "Name of the workers' config provider.", required=True,
        pattern=r"[A-Za-z0-9_]+"),
    Key("path", "text", "Its path: a file, or a directory; none for one of the environment."),
    Key("keys", "map", "Name of a credential, such as `east.mirror.jaas`, to the key under which "
        "the workers' owner keeps it; by default the name itself.", {}),
)  # fmt: skip

CONNECT_TOPICS = tuple(
    Key(kind, "text", f"Topic of the workers' {words}.", pattern=r"[A-Za-z0-9._-]+")
    for kind, words in (
        ("offsets", "positions"),
        ("status", "states"),
        ("config", "configurations"),
    )
)

# Dangers that mirror_accept may name, and what the name behind the colon is.
ACCEPTANCES = {
    "abort.on.send.failure": "flow",
    "enable.auto.commit": "flow",
    "errors.tolerance": "flow",
    "jmx-without-authentication": "instance",
    "jmx-without-authentication-of-broker": "cluster",
    "producer.type": "flow",
    "regex-without-auto-creation": "flow",
    "takeover": "flow",
    "identity": "instance",
    "new-name": "flow",
    HOST_NAMES: "cluster",
}
