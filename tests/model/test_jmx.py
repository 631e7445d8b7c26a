"""Which settings open a JMX port to whoever reaches it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from mirror_model.jmx import LAUNCHER, open_jmx_port

from tests.loading import ROOT

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


def shown(tmp_path: Path, **environment: str) -> dict[str, str]:
    """Properties of remote management that Java gets from the lab's launcher."""
    given = {**os.environ, "LOG_DIR": str(tmp_path), "KAFKA_LOG4J_OPTS": "-Da=b", **environment}
    done = subprocess.run(
        [ROOT / "lab/kafka/bin/kafka-run-class.sh", "-XshowSettings:properties", "-version"],
        env=given, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = (map(str.strip, line.partition("=")) for line in done.stderr.splitlines())
    return {name: value for name, _, value in lines if name.startswith("com.sun.management.")}


def test_the_labs_launcher_adds_the_flags_of_kafkas_own(tmp_path: Path) -> None:
    prefix = "com.sun.management.jmxremote"
    flags = {prefix: "", f"{prefix}.authenticate": "false", f"{prefix}.ssl": "false"}
    ports = {f"{prefix}.port": "0", f"{prefix}.rmi.port": "0"}
    assert shown(tmp_path) == flags
    assert shown(tmp_path, JMX_PORT="0") == flags | ports
    assert shown(tmp_path, KAFKA_JMX_OPTS="-Dc=d") == {}
    assert set(LAUNCHER.split()) == {
        f"-D{name}={value}" if value else f"-D{name}" for name, value in flags.items()
    }
