"""Kafka's releases and client properties, and which of them hold secrets or refer to some.

Tests compare the names with the libraries' own. What is security belongs to a cluster, whoever
connects.
"""

import re
from collections.abc import Mapping
from typing import Any

from .keys import ModelError, Properties

LINES = ("3.9", "4.3")

_SECURITY = frozenset((
    "bootstrap.servers", "sasl.client.callback.handler.class", "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name", "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor", "sasl.login.callback.handler.class",
    "sasl.login.class", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms", "sasl.mechanism",
    "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url", "security.protocol", "ssl.cipher.suites",
    "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class", "ssl.key.password", "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.keystore.type", "ssl.protocol", "ssl.provider",
    "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
    "ssl.truststore.type",
))  # fmt: skip
_SECURITY_43 = frozenset((
    "sasl.oauthbearer.assertion.algorithm", "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds", "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file", "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class", "sasl.oauthbearer.scope",
))  # fmt: skip
_COMMON = frozenset((
    "client.dns.lookup", "client.id", "connections.max.idle.ms", "enable.metrics.push",
    "metadata.max.age.ms", "metadata.recovery.strategy", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
    "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms", "security.providers",
    "send.buffer.bytes", "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
))  # fmt: skip

SECURITY = {"3.9": _SECURITY, "4.3": _SECURITY | _SECURITY_43}
_EVERY = {
    "3.9": SECURITY["3.9"] | _COMMON | {"auto.include.jmx.reporter"},
    "4.3": SECURITY["4.3"]
    | _COMMON
    | {"config.providers", "metadata.recovery.rebootstrap.trigger.ms"},
}
_CONSUMER = frozenset((
    "allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "check.crcs",
    "client.rack", "default.api.timeout.ms", "enable.auto.commit", "exclude.internal.topics",
    "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id", "group.instance.id",
    "group.protocol", "group.remote.assignor", "heartbeat.interval.ms", "interceptor.classes",
    "internal.throw.on.fetch.stable.offset.unsupported", "isolation.level", "key.deserializer",
    "max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records",
    "partition.assignment.strategy", "session.timeout.ms", "value.deserializer",
))  # fmt: skip
CONSUMER = {
    "3.9": _EVERY["3.9"] | _CONSUMER | {"internal.leave.group.on.close"},
    "4.3": _EVERY["4.3"] | _CONSUMER | {"share.acknowledgement.mode", "share.acquire.mode"},
}
_PRODUCER = frozenset((
    "acks", "batch.size", "buffer.memory", "compression.gzip.level", "compression.lz4.level",
    "compression.type", "compression.zstd.level", "delivery.timeout.ms", "enable.idempotence",
    "interceptor.classes", "key.serializer", "linger.ms", "max.block.ms",
    "max.in.flight.requests.per.connection", "max.request.size", "metadata.max.idle.ms",
    "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
    "partitioner.class", "partitioner.ignore.keys", "retries", "transaction.timeout.ms",
    "transactional.id", "value.serializer",
))  # fmt: skip
PRODUCER = {
    "3.9": _EVERY["3.9"] | _PRODUCER,
    "4.3": _EVERY["4.3"] | _PRODUCER | {"transaction.two.phase.commit.enable"},
}
_ADMIN = frozenset((
    "bootstrap.controllers", "default.api.timeout.ms", "retries",
))  # fmt: skip
ADMIN = {
    "3.9": _EVERY["3.9"] | _ADMIN,
    "4.3": _EVERY["4.3"] | _ADMIN,
}
CLIENTS = {"consumer": CONSUMER, "producer": PRODUCER, "admin": ADMIN}
ANY_CLIENT = frozenset().union(*(names[line] for names in CLIENTS.values() for line in LINES))
# Begins the properties of a Connect worker's own REST server with TLS.
REST_TLS = "listeners.https."

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
# What names of listeners' and plug-ins' own properties end with when they hold a secret.
SECRET_NAME = re.compile(r"(password|passphrase|secret|jaas\.config|keystore\.key)$", re.IGNORECASE)
# As org.apache.kafka.common.config.ConfigTransformer reads it: ${provider:path:key}.
REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


def of_client(properties: Properties, client: str, line: str) -> dict[str, Any]:
    """What of a cluster's properties one of its clients knows; a plug-in's own go to all.

    :param properties: name to value.
    :param client: ``consumer``, ``producer`` or ``admin``.
    :param line: one of :data:`LINES`.
    """
    return {
        key: value
        for key, value in properties.items()
        if key not in SECURITY[line] and (key in CLIENTS[client][line] or key not in ANY_CLIENT)
    }


def release(version: Any) -> tuple[int, int, int]:
    """The numbers of a release.

    :raises ModelError: not of the form 3.9.2.
    """
    numbers = re.fullmatch(r"([0-9]+)\.([0-9]+)\.([0-9]+)", str(version))
    if numbers is None:
        raise ModelError(f"Kafka version '{version}': write three numbers, such as 3.9.2")
    return int(numbers[1]), int(numbers[2]), int(numbers[3])


def line_of(version: Any) -> str:
    """The release line whose key tables hold for a release: 3.9 or 4.3.

    :raises ModelError: not of the form 3.9.2.
    """
    return "3.9" if release(version) < (4, 0, 0) else "4.3"


def exposed_properties(properties: Mapping[str, Any]) -> list[str]:
    """Which of a broker's properties would stand in clear, or refer to what the broker lacks.

    :param properties: Kafka's own name, with prefixes, to value; ``None`` removes a property.
    :returns: their names in order.
    """
    return sorted(
        name
        for name, value in properties.items()
        if value is not None and (SECRET_NAME.search(name) or "${" in str(value))
    )
