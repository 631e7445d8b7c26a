"""Whether a process of Kafka would open a JMX port to whoever reaches it."""

from collections.abc import Mapping
from typing import Any

JMX = "-Dcom.sun.management.jmxremote"
# What kafka-run-class.sh takes where KAFKA_JMX_OPTS is empty. Alone they open no port.
LAUNCHER = f"{JMX} {JMX}.authenticate=false {JMX}.ssl=false"
# Variables whose options Java gets, in the order in which it reads them: the last of two wins.
VARIABLES = (
    "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS", "KAFKA_JMX_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_OPTS", "_JAVA_OPTIONS",
)  # fmt: skip
# A file of settings may open a port, too, and lies on the host.
FILE = "-Dcom.sun.management.config.file"


def open_jmx_port(environment: Mapping[str, Any]) -> str:
    """What opens a JMX port at which nobody has to log in; who connects there runs code.

    A port counts as closed to strangers with passwords (``authenticate``, Java's default) or with
    certificates of clients (``ssl.need.client.auth``).

    :param environment: of a script of Kafka, as in its environment file.
    :returns: the variable and the option; empty: no such port.

    Options: Java's Monitoring and Management guide, and Kafka's ``kafka-run-class.sh``.
    """
    given = {name: str(value) for name, value in environment.items() if value is not None}
    given["KAFKA_JMX_OPTS"] = given.get("KAFKA_JMX_OPTS") or LAUNCHER
    values: dict[str, str] = {}
    opened = ""
    for variable in VARIABLES:
        for option in given.get(variable, "").split():
            name, _, value = option.partition("=")
            values[name] = value
            if name in (f"{JMX}.port", FILE):
                opened = f"{option} in {variable}"
    if port := given.get("JMX_PORT"):
        opened = f"JMX_PORT={port}"
    passwords = _true(values.get(f"{JMX}.authenticate", "true"))
    certificates = _true(values.get(f"{JMX}.ssl", "true")) and _true(
        values.get(f"{JMX}.ssl.need.client.auth", "false")
    )
    closed = FILE not in values and (passwords or certificates)
    return "" if closed else opened


def _true(text: str) -> bool:
    """What Java reads as true."""
    return text.lower() == "true"
