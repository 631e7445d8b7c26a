"""What Spark's processes demand of their peers, and what no setting may loosen.

It needs the standard library alone: the role validates the inventory with this file, too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Where Spark reads what no argument may hold; a credential of the report.
DEFAULTS_FILE = "spark-defaults.conf"
SECRET = "spark.authenticate.secret"  # noqa: S105 - a name
_TLS = "spark.ssl.rpc.enabled"
_TRUST = "spark.ssl.rpc.trustStore"
# Spark's web page needs no login: it must not end jobs.
_ALWAYS = {"spark.authenticate": "true", "spark.ui.killEnabled": "false"}
_ENCRYPTED = {
    "spark.network.crypto.enabled": "true",
    # Or a peer chooses the older login, and with it to encrypt nothing.
    "spark.network.crypto.saslFallback": "false",
    # Spark's defaults do not notice what was changed on the way, and use a key as it was agreed on.
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.authEngineVersion": "2",
}
# Here the files lie in a directory of the report's own.
_ELSEWHERE = {"spark.io.encryption.enabled": "true"}
_HIDDEN_NAME = re.compile(
    r"(secret|password|passphrase|token|(access|secret)\.?key|jaas\.config)$", re.IGNORECASE
)
# Whoever connects to such a port runs code.
_OPEN_PORT = re.compile(
    r"-Dcom\.sun\.management\.jmxremote\.authenticate=false|jdwp", re.IGNORECASE
)
_HIDDEN_OPTION = re.compile(r"-D\S*(secret|password|passphrase|token)=", re.IGNORECASE)


def is_local(master: str) -> bool:
    """Whether Spark works in this process; ``local-cluster`` starts others, as a cluster does."""
    return re.fullmatch(r"local(\[[^\]]*\])?", master) is not None


def takes_secret(master: str) -> bool:
    """Whether a secret has to be given; Spark makes its own here, and YARN and Kubernetes do."""
    return not is_local(master) and re.match(r"yarn$|k8s://", master) is None


def secrets_in(defaults: str) -> set[str]:
    """Names of the secrets in the text of a ``spark-defaults.conf``.

    Format: java.util.Properties, without its continued lines.
    """
    lines = re.findall(r"^[ \t]*([^\s#!=:]+)(?:[ \t]*[=:]|[ \t])[ \t]*\S", defaults, re.MULTILINE)
    return {name for name in lines if _HIDDEN_NAME.search(name)}


def settled(master: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """Spark's keys that are the same in every session, whatever is configured.

    :param properties: Spark's keys as configured: they choose between the two ways to encrypt.
    """
    return {
        **_ALWAYS,
        **({} if _is(properties.get(_TLS), "true") else _ENCRYPTED),
        **({} if is_local(master) else _ELSEWHERE),
    }


def problems(master: str, properties: Mapping[str, Any]) -> Iterator[str]:
    """Why a session would be open to others, or a secret to be seen.

    :param properties: Spark's keys as configured.
    :returns: messages that name the variable and the cure, and quote no secret.
    """
    where = "mirror_report_spark_properties (spark.properties)"
    fixed = settled(master, properties)
    for name, value in properties.items():
        if name == "spark.master":
            yield f"{where}: {name} does not belong here; set mirror_report_spark_master"
        elif _HIDDEN_NAME.search(name) or _HIDDEN_OPTION.search(str(value)):
            yield (
                f"{where}: {name} holds a secret, which would stand in the report's configuration "
                "and among Spark's arguments; put it into mirror_report_spark_secrets"
            )
        elif _OPEN_PORT.search(str(value)):
            yield (
                f"{where}: {name} opens a JMX or debugging port at which nobody has to log in; "
                "leave it out, or let -Dcom.sun.management.jmxremote.authenticate be true"
            )
        elif not _is(value, fixed.get(name, value)):
            yield (
                f"{where}: {name} must be {fixed[name]}, or others than the report reach Spark's "
                f"processes; remove it, the report sets {fixed[name]}"
            )
    if _is(properties.get(_TLS), "true") and not properties.get(_TRUST):
        yield (
            f"{where}: {_TLS} without {_TRUST} takes every certificate; name a trust store that "
            "all hosts of Spark have"
        )


def _is(value: Any, expected: Any) -> bool:
    return str(value).strip().lower() == str(expected).strip().lower()
