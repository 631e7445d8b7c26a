"""The worker of a Connect cluster: its properties file and how it is started."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import kafka_names
from ...clusters import providers, reference
from ...connectors import properties, settings
from ...keys import Clusters, Flow, layered
from ...layout import Placed
from ...owners import Owner
from ...process import Process
from ...render import in_url, to_java_properties
from . import cluster, connectors

CLIENTS = tuple(f"{client}." for client in kafka_names.CLIENTS)
BASIC = "org.apache.kafka.connect.rest.basic.auth.extension"
# A client of a connector resolves no references of its own: the worker has resolved those that it
# allows, and a client's own config.providers could name any file.
NO_PROVIDERS = "-Dorg.apache.kafka.automatic.config.providers=none"
# Where the worker's own configuration finds the password of its REST server's stores. Connectors
# can refer to it too; it opens nothing without the stores, which they cannot read.
PASSWORDS = Placed("{runtime}/storepass")
LOGIN = "rest.jaas.conf"
# By this file a worker's REST server knows its users; it holds no secret.
# Format: javax.security.auth.login.Configuration (Java 17).
LOGIN_TEXT = Placed(
    f"KafkaConnect {{\n  {BASIC}.PropertyFileLoginModule required "
    'file="{credentials}/rest.users";\n};\n'
)
ANY_ADDRESS = "0.0.0.0"  # noqa: S104  # the port asks for a password
POLICY = "connector.client.config.override.policy"


def properties_of(
    clusters: Clusters, flows: Sequence[Flow], owner: Owner, node: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole ``worker.properties`` of one node.

    Lowest layer first: tuned default, derived from the model, ``kafka_clusters.*.properties``,
    ``worker_properties``.

    :param flows: the owner's flows, filled in.
    :param node: ``address`` to listen at, ``brokers`` of the workers' cluster; each may be missing.
    :returns: property name to value; secrets as references.
    """
    alias, line = owner.settings["kafka"], kafka_names.line_of(cluster.version(owner))
    factor = min(settings.MOST_REPLICAS, node.get("brokers") or settings.MOST_REPLICAS)
    own = owner.settings["worker_properties"]
    connection = connectors.connection(clusters, alias, owner, line)
    kept = cluster.topics(owner)
    allowed = connectors.allowlist(clusters, flows, owner)
    made = layered(
        settings.WORKER_DEFAULTS,
        dict.fromkeys(settings.WORKER_FACTORS, factor),
        connection,
        {
            "group.id": cluster.group(owner),
            "config.storage.topic": kept["config_topic"],
            "offset.storage.topic": kept["offset_topic"],
            "status.storage.topic": kept["status_topic"],
            "key.converter": connectors.CONVERTER,
            "value.converter": connectors.CONVERTER,
            "plugin.path": None,
            POLICY: "Allowlist" if allowed else "None",
            "connector.client.config.override.allowlist": allowed or None,
            **providers(owner.credentials, PASSWORDS),
            **listener(owner, node),
        },
        {k: v for k, v in own.items() if not k.startswith(CLIENTS)},
    )
    security = {k: v for k, v in connection.items() if k != "bootstrap.servers"}
    for client in kafka_names.CLIENTS:
        of_client = properties.worker_client(clusters, alias, owner, client, security)
        made |= {f"{client}.{key}": value for key, value in of_client.items()}
    return made


def listener(owner: Owner, node: Mapping[str, Any]) -> dict[str, Any]:
    """Where a worker's REST server listens, and how it knows who asks."""
    port, rest = owner.settings["port"], cluster.rest(owner)
    closed = {"rest.extension.classes": f"{BASIC}.BasicAuthSecurityRestExtension"}
    if rest["listener"] == "loopback":
        return {"listeners": f"http://127.0.0.1:{port}", **closed}
    kept: dict[str, Any] = {}
    for store, file in (("keystore", "rest.p12"), ("truststore", "rest.trust.p12")):
        kept |= {
            f"listeners.https.ssl.{store}.type": "PKCS12",
            f"listeners.https.ssl.{store}.location": Placed(f"{{runtime}}/{file}"),
            f"listeners.https.ssl.{store}.password": reference("dir", PASSWORDS, "rest.storepass"),
        }
    return {
        "listeners": f"https://{in_url(node.get('address') or ANY_ADDRESS)}:{port}",
        "rest.advertised.listener": "https",
        "rest.advertised.host.name": node.get("name"),
        "rest.advertised.port": port,
        **closed,
        "listeners.https.ssl.client.auth": "required" if rest["ssl_certificate"] else None,
        **kept,
    }


def memory(clusters: Clusters, flows: Sequence[Flow], owner: Owner) -> float:
    """The heap in mebibytes that the clients of a worker's tasks may take."""
    return properties.memory(clusters, flows, owner) if flows else settings.BASE_MIB


def started(clusters: Clusters, process: Process, node: Mapping[str, Any]) -> Process:
    """What a worker is started with, as ``Engine`` describes it."""
    owner = process.owner
    kept, users = cluster.topics(owner), cluster.rest(owner)["users"]
    return replace(
        process,
        script="connect-distributed.sh",
        arguments=[("", "CONNECT_CONFIG")],
        environment={"CONNECT_CONFIG": Placed("{configuration}/worker.properties")},
        properties={"worker.properties": properties_of(clusters, process.flows, owner, node)},
        texts={LOGIN: LOGIN_TEXT},
        jvm_options=[
            Placed(f"-Djava.security.auth.login.config={{configuration}}/{LOGIN}"),
            NO_PROVIDERS,
        ],
        prepare="worker-secrets.sh",
        credentials={
            **process.credentials,
            **({"rest.users": to_java_properties(users)} if users else {}),
        },
        identity={**process.identity, "group": cluster.group(owner), **kept},
        positions=f"topic {kept['offset_topic']} on {owner.settings['kafka']}",
    )
