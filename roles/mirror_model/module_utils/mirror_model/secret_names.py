"""Properties that hold secrets, and references to secrets that stand elsewhere."""

import re
from collections.abc import Mapping
from typing import Any

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
