"""Which settings open a JMX port to whoever reaches it."""

from __future__ import annotations

import pytest
from mirror_model.jmx import open_jmx_port

JMX = "-Dcom.sun.management.jmxremote"
OPEN = f"{JMX}.port=9010 {JMX}.authenticate=false"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"KAFKA_OPTS": "-XX:+ExitOnOutOfMemoryError"},
        {"KAFKA_JMX_OPTS": f"{JMX} {JMX}.authenticate=false {JMX}.ssl=false"},
        {"KAFKA_JMX_OPTS": f"{JMX}.port=9010"},
        {"KAFKA_JMX_OPTS": f"{JMX}.port=9010 {JMX}.authenticate=true {JMX}.ssl=false"},
        {"KAFKA_OPTS": f"{JMX}.port=9010 {JMX}.authenticate=true"},
        {"KAFKA_JMX_OPTS": f"{OPEN} {JMX}.ssl.need.client.auth=true"},
        {"KAFKA_JMX_OPTS": OPEN, "KAFKA_OPTS": f"{JMX}.authenticate=TRUE"},
        {"KAFKA_OPTS": "-javaagent:/opt/jmx_exporter.jar=9404:/etc/jmx.yml"},
        {"JMX_PORT": "", "KAFKA_JMX_OPTS": None},
    ],
    ids=str,
)
def test_no_port_or_one_that_asks_who_connects_is_none(environment: dict[str, str]) -> None:
    assert open_jmx_port(environment) == ""


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"JMX_PORT": 9010}, "JMX_PORT=9010"),
        ({"KAFKA_JMX_OPTS": OPEN}, "port=9010 in KAFKA_JMX_OPTS"),
        ({"KAFKA_OPTS": f"-Xshare:auto {JMX}.port=0"}, "port=0 in KAFKA_OPTS"),
        ({"KAFKA_JMX_OPTS": f"{JMX}.port=9010", "KAFKA_OPTS": f"{JMX}.authenticate=no"},
         "in KAFKA_JMX_OPTS"),
        ({"KAFKA_JMX_OPTS": f"{OPEN} {JMX}.ssl=false {JMX}.ssl.need.client.auth=true"},
         "in KAFKA_JMX_OPTS"),
        ({"JAVA_TOOL_OPTIONS": f"{JMX}.port=1"}, "in JAVA_TOOL_OPTIONS"),
        ({"KAFKA_OPTS": "-Dcom.sun.management.config.file=/x"}, "config.file=/x in KAFKA_OPTS"),
    ],
    ids=str,
)  # fmt: skip
def test_a_port_without_authentication_is_named(environment: dict[str, str], named: str) -> None:
    assert named in open_jmx_port(environment)
