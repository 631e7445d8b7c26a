"""What real mirrors log, in the layout of role mirrormaker, names the cause of their failure."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from ansible.plugins.filter.core import FilterModule
from jinja2 import Environment, FileSystemLoader
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from spark.tests.conftest import (  # noqa: F401 (fixtures of real brokers)
    SASL_USERS,
    Broker,
    broker_processes,
    certificates,
    free_port,
    kafka3_home,
    kafka_home,
    source_broker,
    start_broker,
    target_broker,
)
from tests.loading import ROOT

sys.path.insert(0, str(ROOT / "spark/src"))

from mirror_report.checks import causes
from mirror_report.model import Cause, JournalLine

pytestmark = pytest.mark.long
NUMBERS = itertools.count()
PATIENCE = 120
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
# Which logging configuration each engine's Kafka reads, and by which option.
LAYOUTS = {
    "mm1": ("log4j.properties", "-Dlog4j.configuration=file:"),
    "mm2": ("log4j2.yaml", "-Dlog4j2.configurationFile="),
}


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two brokers with the topic on both sides, and where a mirror between them writes.

    :param homes: engine -> the unpacked distribution that has it.
    """

    source: Broker
    target: Broker
    homes: dict[str, Path]
    topic: str
    directory: Path

    def lines(self, engine: str, to: dict[str, str]) -> Generator[list[JournalLine], None, None]:
        """Run a mirror; what it has logged so far, again and again.

        :param to: properties that reach the target.
        """
        log = self.directory / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "bash", *self._command(engine, to)],
                stdout=output, stderr=output, env=os.environ | self._environment(engine),
            )  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                time.sleep(1)
                now = time.time()
                # systemd takes the priority off each line.
                texts = re.sub(r"(?m)^<\d>", "", log.read_text(errors="replace")).splitlines()
                yield [JournalLine(now, text) for text in texts]
        finally:
            process.kill()
            process.wait(30)

    def log_end(self) -> str:
        """The end of what the mirror logged."""
        return (self.directory / "log").read_text(errors="replace")[-4000:]

    def _command(self, engine: str, to: dict[str, str]) -> list[str]:
        here = {"bootstrap.servers": self.source.bootstrap}
        script = self.homes[engine] / "bin"
        if engine == "mm1":
            consumer = here | {"group.id": "mirror", "auto.offset.reset": "earliest"}
            return [
                str(script / "kafka-mirror-maker.sh"), "--include", self.topic,
                "--consumer.config", self._file("consumer", consumer),
                "--producer.config", self._file("producer", to | {"acks": "all"}),
            ]  # fmt: skip
        clusters = {"east": here, "west": to}
        properties = {
            "clusters": "east, west",
            "east->west.enabled": "true",
            "east->west.topics": self.topic,
            "east->west.sync.topic.configs.enabled": "false",
            "replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
        } | {
            f"{alias}.{key}": value
            for alias, client in clusters.items()
            for key, value in client.items()
        }
        return [str(script / "connect-mirror-maker.sh"), self._file("mm2", properties)]

    def _environment(self, engine: str) -> dict[str, str]:
        name, option = LAYOUTS[engine]
        templates = Environment(  # noqa: S701 (no page of the web)
            loader=FileSystemLoader(ROOT / "roles/mirrormaker/templates"), trim_blocks=True
        )
        templates.filters.update(FilterModule().filters())
        layout = templates.get_template(f"{name}.j2").render(
            ansible_managed="", mirrormaker_log_level="INFO", mirrormaker_log_levels={}
        )
        (self.directory / name).write_text(layout)
        return {
            "KAFKA_LOG4J_OPTS": f"{option}{self.directory / name}",
            "KAFKA_HEAP_OPTS": "-Xmx256m",
            "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "LOG_DIR": str(self.directory),
        }

    def _file(self, name: str, properties: dict[str, str]) -> str:
        path = self.directory / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return str(path)


@pytest.fixture
def pair(
    source_broker: Broker,  # noqa: F811
    target_broker: Broker,  # noqa: F811
    kafka_home: Path,  # noqa: F811
    kafka3_home: Path,  # noqa: F811
    tmp_path: Path,
) -> Pair:
    """A record of 5,000 bytes waits on the source; topics of the target take 1,000."""
    topic = f"orders-{next(NUMBERS)}"
    homes = {"mm1": kafka3_home, "mm2": kafka_home}
    pair = Pair(source_broker, target_broker, homes, topic, tmp_path)
    for broker, topics, most in (
        (pair.source, [topic], "100000"),
        (pair.target, [topic, f"east.{topic}"], "1000"),
    ):
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
            configs = {"max.message.bytes": most}
            client.create_topics([NewTopic(name, 1, 1, topic_configs=configs) for name in topics])
    with contextlib.closing(KafkaProducer(bootstrap_servers=pair.source.bootstrap)) as producer:
        producer.send(topic, os.urandom(5000)).get(60)
    return pair


def named(log: Generator[list[JournalLine], None, None], kind: str) -> Cause | None:
    """The cause that a mirror logs once it is of a kind, or else the last one.

    A mirror that starts also logs what is over soon, such as a topic that it is still making.
    """
    cause = None
    with contextlib.closing(log):
        for lines in log:
            cause = causes.cause(lines, lines[-1].at if lines else 0.0)
            if cause and cause.kind == kind:
                break
    return cause


@pytest.mark.parametrize(("engine", "prefix"), [("mm1", ""), ("mm2", "east.")])
def test_a_record_that_the_target_refuses_is_named_with_its_topic(
    pair: Pair, engine: str, prefix: str
) -> None:
    log = pair.lines(engine, {"bootstrap.servers": pair.target.bootstrap})
    cause = named(log, "record_refused")
    assert cause == Cause("record_refused", topic=prefix + pair.topic), pair.log_end()


def test_a_name_that_is_too_long_with_its_prefix_is_a_cause(pair: Pair) -> None:
    long = dataclasses.replace(pair, topic=pair.topic.ljust(246, "x"))
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=pair.source.bootstrap)) as client:
        client.create_topics([NewTopic(long.topic, 1, 1)])
    cause = named(long.lines("mm2", {"bootstrap.servers": pair.target.bootstrap}), "name_refused")
    assert cause, pair.log_end()
    assert cause.kind == "name_refused", pair.log_end()


def scram(broker: str, certificates: Path) -> dict[str, str]:  # noqa: F811
    """Properties that reach a listener with TLS by a login that no broker knows."""
    return {
        "bootstrap.servers": broker,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{LOGIN} username="mirror" password="nobody-s";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "lab.ca.pem"),
    }


@pytest.mark.parametrize("engine", ["mm1", "mm2"])
@pytest.mark.parametrize(
    "kind",
    ["certificate_ended", "certificate_refused", "login_refused", "permission", "unreachable"],
)
def test_a_target_that_does_not_take_the_mirror_is_a_cause(
    pair: Pair,
    certificates: Path,  # noqa: F811
    free_port: int,  # noqa: F811
    engine: str,
    kind: str,
) -> None:
    user = f'username="nobody" password="{SASL_USERS["nobody"]}"'
    to = {
        "certificate_ended": scram(pair.target.expired, certificates),
        "certificate_refused": scram(pair.target.elsewhere, certificates),
        "login_refused": scram(pair.target.scram, certificates),
        "permission": {
            "bootstrap.servers": pair.target.sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"{LOGIN.replace('scram.Scram', 'plain.Plain')} {user};",
        },
        "unreachable": {"bootstrap.servers": f"localhost:{free_port}"},
    }[kind]
    cause = named(pair.lines(engine, to), kind)
    assert cause, pair.log_end()
    assert cause.kind == kind, pair.log_end()
