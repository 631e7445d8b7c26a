"""Real brokers for the tests that talk to Kafka: single KRaft nodes on random local ports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

KAFKA = "kafka_2.13-4.3.1"
KAFKA_3 = "kafka_2.13-3.9.2"
KILL = signal.SIGKILL
SASL_USERS = {
    "reader": 'se"cr\\et é $x',
    "nobody": "nothing-allowed",
    "mirror": "what-a-mirror-needs",
}


LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "SCRAM": "SASL_SSL",
    "CERTIFIED": "SSL",
    "ELSEWHERE": "SASL_SSL",
    "EXPIRED": "SASL_SSL",
    "CONTROLLER": "PLAINTEXT",
}


@dataclass(frozen=True)
class Broker:
    """One running broker: everything allowed on ``bootstrap``, ACLs enforced elsewhere.

    :param sasl: wants a login, PLAIN.
    :param scram: TLS, and wants a login; ``elsewhere`` and ``expired`` too, with a certificate of
        another host and with one of the past.
    :param certified: TLS, and knows its clients by their certificates; CN=report may do anything.
    """

    bootstrap: str
    sasl: str
    scram: str
    certified: str
    elsewhere: str
    expired: str


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


@pytest.fixture(scope="session")
def free_port() -> int:
    """A local port that nobody listens on."""
    return _free_ports(1)[0]


def _cache() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-mirror-lab"
    return Path(os.environ.get("MIRROR_LAB_CACHE", default))


def _need(condition: bool, what: str) -> None:
    if condition:
        return
    # The gate counts a skipped test as failed: there the variable makes this an error.
    if os.environ.get("MIRROR_REQUIRE_KAFKA"):
        pytest.fail(f"{what} needed: run `make bootstrap`")
    pytest.skip(f"{what} needed: run `make bootstrap`")


@pytest.fixture(scope="session")
def jars_directory() -> Path:
    """The Spark jars of the lab's cache."""
    found = _cache() / "jars"
    _need(any(found.glob("spark-sql-kafka*.jar")), f"jars in {found} are")
    return found


@pytest.fixture(scope="session")
def kafka_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked distribution of the lab's cache."""
    return _unpacked(KAFKA, tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="session")
def kafka3_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked distribution with MirrorMaker 1."""
    return _unpacked(KAFKA_3, tmp_path_factory.mktemp("kafka3"))


def _unpacked(name: str, directory: Path) -> Path:
    archive = _cache() / "archives" / f"{name}.tgz"
    _need(archive.exists() and shutil.which("java") is not None, f"{archive} and java are")
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(directory)], check=True)
    return directory / name


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PEM files: lab.ca, other.ca; certificates and keys of broker, elsewhere, expired, report."""
    directory = tmp_path_factory.mktemp("certificates")
    wanted = [
        {"name": "broker"},
        {"name": "elsewhere", "hosts": ["elsewhere"]},
        {"name": "expired", "days": -1},
        {"name": "report"},
        {"name": "stranger", "authority": "other"},
    ]
    asked = {"directory": str(directory), "certificates": wanted}
    command = [sys.executable, str(Path(__file__).parents[2] / "lab/certificates.py")]
    subprocess.run(command, input=json.dumps(asked).encode(), check=True, capture_output=True)
    for name in ("broker", "elsewhere", "expired"):
        pair = [(directory / f"{name}.{kind}").read_text() for kind in ("key", "pem")]
        (directory / f"{name}.pair").write_text("".join(pair))
    return directory


def _secured(pems: Path) -> dict[str, str]:
    """Properties of the listeners with TLS."""
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pems / "broker.pair"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(pems / "lab.ca.pem"),
        "listener.name.certified.ssl.client.auth": "required",
        **{
            f"listener.name.{name}.scram-sha-512.sasl.jaas.config": scram
            for name in ("scram", "elsewhere", "expired")
        },
        **{
            f"listener.name.{name}.ssl.keystore.{key}": value
            for name in ("elsewhere", "expired")
            for key, value in (("type", "PEM"), ("location", str(pems / f"{name}.pair")))
        },
    }


def _jaas_quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _properties_escaped(text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    return "".join(c if ord(c) < 128 else f"\\u{ord(c):04x}" for c in escaped)


@pytest.fixture(scope="session")
def start_broker(
    kafka_home: Path, certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Broker]]:
    """Factory of brokers; all of them end with the session."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(**overrides: str) -> Broker:
        directory = tmp_path_factory.mktemp("broker")
        ports = dict(zip(LISTENERS, _free_ports(len(LISTENERS)), strict=True))
        plain = ports["PLAINTEXT"]
        users = " ".join(
            f'user_{name}="{_jaas_quoted(password)}"' for name, password in SASL_USERS.items()
        )
        jaas = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="none" password="none" {users};'
        )
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            # Certificates are for names, not for addresses.
            "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in LISTENERS.items()
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.quorum.voters": f"1@localhost:{ports['CONTROLLER']}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": jaas,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:report;User:CN=report",
            "log.dirs": str(directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "log.retention.check.interval.ms": "500",
            "log.initial.task.delay.ms": "500",
            "log.cleaner.backoff.ms": "500",
            **_secured(certificates),
            **overrides,
        }
        configuration = directory / "server.properties"
        configuration.write_text(
            "".join(f"{key}={_properties_escaped(value)}\n" for key, value in properties.items())
        )
        java = [
            "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", f"{kafka_home}/libs/*",
        ]  # fmt: skip
        with (directory / "log").open("wb") as log:
            subprocess.run(
                [*java, "kafka.tools.StorageTool", "format",
                 "--cluster-id=" + f"test{plain:05d}".ljust(22, "A"),
                 "-c", str(configuration)],
                check=True, stdout=log, stderr=log,
            )  # fmt: skip
            # Ended with us, even if pytest is killed.
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *java, "kafka.Kafka", str(configuration)],
                stdout=log, stderr=log,
            )  # fmt: skip
        processes.append(process)
        _wait_until_ready(plain, process, directory / "log")
        at = {name.lower(): f"localhost:{port}" for name, port in ports.items()}
        del at["controller"]
        return Broker(at.pop("plaintext"), **at)

    yield start
    for process in processes:
        process.kill()
    for process in processes:
        process.wait(30)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail("broker ended:\n" + log.read_text(errors="replace")[-4000:])
        with closing(socket.socket()) as probe:
            # The listener opens only after the broker has caught up with its metadata.
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail("broker did not start:\n" + log.read_text(errors="replace")[-4000:])


@pytest.fixture(scope="session")
def source_broker(start_broker: Callable[..., Broker]) -> Broker:
    """The broker tests use as source."""
    return start_broker()


@pytest.fixture(scope="session")
def target_broker(start_broker: Callable[..., Broker]) -> Broker:
    """The broker tests use as target."""
    return start_broker()


@pytest.fixture(scope="session")
def kafka_broker(source_broker: Broker) -> str:
    """Bootstrap address of one plaintext broker."""
    return source_broker.bootstrap


@pytest.fixture(scope="session")
def two_brokers(source_broker: Broker, target_broker: Broker) -> tuple[str, str]:
    """Bootstrap addresses of two clusters: source, target."""
    return source_broker.bootstrap, target_broker.bootstrap


class MirrorMaker2:
    """One dedicated MirrorMaker 2 process from ``east`` to ``west``; it logs into ``directory``.

    :param home: the unpacked distribution.
    """

    def __init__(self, home: Path, directory: Path, source: str, target: str) -> None:
        self.directory = directory
        self._script = home / "bin" / "connect-mirror-maker.sh"
        self._brokers = source, target
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, policy: str) -> None:
        """Start it with one replication policy, unless it runs; the caller waits for records."""
        if self._process is not None:
            return
        flow = "east->west"
        properties = {
            "clusters": "east,west",
            # Connectors are found by their manifests instead of a scan of all jars, twice.
            "plugin.discovery": "service_load",
            "west.plugin.discovery": "service_load",
            "east.bootstrap.servers": self._brokers[0],
            "west.bootstrap.servers": self._brokers[1],
            "replication.policy.class": "org.apache.kafka.connect.mirror."
            f"{'Default' if policy == 'prefix' else 'Identity'}ReplicationPolicy",
            "west->east.enabled": "false",
            "west->east.emit.heartbeats.enabled": "false",
            f"{flow}.enabled": "true",
            f"{flow}.topics": f"{policy}-.*",
            f"{flow}.tasks.max": "1",
            f"{flow}.emit.heartbeats.enabled": "false",
            f"{flow}.groups": "follow-.*",
            f"{flow}.sync.group.offsets.enabled": "true",
            f"{flow}.sync.topic.acls.enabled": "false",
            f"{flow}.offset-syncs.topic.location": "target",
            **{
                f"{flow}.{activity}.interval.seconds": "1"
                for activity in (
                    "refresh.topics",
                    "refresh.groups",
                    "emit.checkpoints",
                    "sync.group.offsets",
                )
            },
            "west.offset.flush.interval.ms": "2000",
            "west.scheduled.rebalance.max.delay.ms": "0",
            "west.session.timeout.ms": "6000",
            "west.heartbeat.interval.ms": "1000",
        } | {
            f"{prefix}.replication.factor": "1"
            for prefix in (
                flow,
                f"{flow}.offset-syncs.topic",
                f"{flow}.checkpoints.topic",
                "west.offset.storage",
                "west.status.storage",
                "west.config.storage",
            )
        }
        configuration = self.directory / f"{policy}.properties"
        configuration.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        environment = {
            "KAFKA_HEAP_OPTS": "-Xmx384m",
            "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "LOG_DIR": str(self.directory),
        }
        with (self.directory / "log").open("ab") as log:
            # The scripts replace themselves, so the process is the JVM; it ends with us.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "bash", str(self._script), str(configuration),
                 "--clusters", "west"],
                stdout=log, stderr=log, env=os.environ | environment,
            )  # fmt: skip

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, to stop it in its tracks and let it go on."""
        if self._process is not None:
            self._process.send_signal(number)

    def end(self, number: int = KILL) -> None:
        """Kill it as a crash does, or end it by another signal."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None


@pytest.fixture(scope="session")
def mirror_maker2(
    kafka_home: Path, tmp_path_factory: pytest.TempPathFactory, two_brokers: tuple[str, str]
) -> Iterator[MirrorMaker2]:
    """A MirrorMaker 2 between the two brokers, not started yet."""
    process = MirrorMaker2(kafka_home, tmp_path_factory.mktemp("mirror-maker2"), *two_brokers)
    yield process
    process.end()


@pytest.fixture(scope="session")
def auto_creating_broker(start_broker: Callable[..., Broker]) -> str:
    """Bootstrap address of a cluster that creates topics on first use and enforces no ACLs."""
    open_to_all = {"auto.create.topics.enable": "true", "authorizer.class.name": ""}
    return start_broker(**open_to_all).bootstrap


@pytest.fixture(scope="session")
def sasl_users() -> dict[str, str]:
    """Users of the SASL listener and their passwords; ACLs decide what they may do."""
    return dict(SASL_USERS)
