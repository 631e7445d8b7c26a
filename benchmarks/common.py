"""What benchmarks share: single-node brokers on loopback, and processes that end with them."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

RELEASE = "kafka_2.13-4.3.1"
LIMIT = 420.0
TICKS = os.sysconf("SC_CLK_TCK")
GIVEN: set[int] = set()


class MeasurementError(Exception):
    """A trial failed before it could be measured."""


class Node:
    """One Java process with a log of its own."""

    def __init__(self, command: Sequence[str], log: Path, **environment: str) -> None:
        self.log = log
        self.started = time.monotonic()
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                # Ended with us, even if we are killed.
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
            )

    def cpu(self) -> float:
        """Processor time so far, in seconds; other load changes it less than elapsed time."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def joined(self) -> None:
        """Wait until the node is a member of the workers' group."""
        wait_for("the worker", lambda: b"Successfully joined group" in self.log.read_bytes())

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end; returns the exit code as a shell shows it."""
        self.process.send_signal(number)
        code = self.process.wait(90)
        return code if code >= 0 else 128 - code


def threads(pid: int, kinds: Mapping[str, Sequence[str]]) -> Counter[str]:
    """Processor seconds of a process by kind of thread; those of threads that ended are lost.

    :param kinds: kind -> what the names of its threads begin with, of which Linux keeps 15
        characters. All others are ``other``.
    """
    found: Counter[str] = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            used = fields.split()
            kind = next(
                (kind for kind, begins in kinds.items() if name.startswith(tuple(begins))), "other"
            )
            found[kind] += (int(used[11]) + int(used[12])) / TICKS  # type: ignore[assignment]
    return found


def free_ports(count: int) -> list[int]:
    """Unused ports of 127.0.0.1, none of which was given before."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            sock = stack.enter_context(socket.socket())
            sock.bind(("127.0.0.1", 0))
            if (port := sock.getsockname()[1]) not in GIVEN:
                found.append(port)
    GIVEN.update(found)
    return found


def properties_text(properties: Mapping[str, str]) -> str:
    """A properties file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


@contextmanager
def broker(
    kafka: Path,
    directory: Path,
    advertised: Mapping[int, int] | None = None,
    heap: str = "512m",
    tls: tuple[int, Path] | None = None,
) -> Iterator[str]:
    """A running single-node cluster; gives its bootstrap address.

    :param advertised: port of a further listener -> port it sends its clients to.
    :param tls: port of a listener for ``localhost`` with TLS, and the file of its key and
        certificate.
    """
    directory.mkdir()
    plain, controller = free_ports(2)
    further = dict(enumerate((advertised or {}).items()))
    ports = {"PLAINTEXT": plain, **{f"VIA{n}": port for n, (port, _) in further.items()}}
    shown = {"PLAINTEXT": plain, **{f"VIA{n}": port for n, (_, port) in further.items()}}
    protocols = [f"{name}:PLAINTEXT" for name in (*ports, "CONTROLLER")]
    secure = {}
    if tls is not None:
        ports["TLS"] = shown["TLS"] = tls[0]
        protocols.append("TLS:SSL")
        secure = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tls[1])}
    configuration = directory / "server.properties"
    configuration.write_text(
        properties_text({
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": ",".join(
                f"{name}://127.0.0.1:{port}"
                for name, port in {**ports, "CONTROLLER": controller}.items()
            ),
            "advertised.listeners": ",".join(
                f"{name}://{'localhost' if name == 'TLS' else '127.0.0.1'}:{port}"
                for name, port in shown.items()
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(protocols),
            **secure,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        })
    )  # fmt: skip
    java = ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-cp", f"{kafka}/libs/*"]
    identity = f"bench{plain:05d}".ljust(22, "A")
    format_storage = ["kafka.tools.StorageTool", "format", f"--cluster-id={identity}"]
    subprocess.run(
        [*java, *format_storage, "-c", str(configuration)], check=True, stdout=subprocess.DEVNULL
    )
    node = Node([*java, "kafka.Kafka", str(configuration)], directory / "log")
    try:
        wait_for("a broker", lambda: answers(plain), 90)
        yield f"127.0.0.1:{plain}"
    finally:
        node.process.kill()
        node.process.wait(30)


def routes_of(trips: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Round trip in milliseconds -> a listener for a broker, and the port of a proxy to it."""
    ports = free_ports(2 * len(trips))
    return dict(zip(trips, zip(ports[::2], ports[1::2], strict=True), strict=True))


@contextmanager
def proxies(routes: Mapping[int, tuple[int, int]]) -> Iterator[dict[int, str]]:
    """Running proxies; gives the address of the broker behind each.

    :param routes: :func:`routes_of`.
    """
    program = Path(__file__).with_name("proxy.py")
    started: list[subprocess.Popen[bytes]] = []
    try:
        for trip, (listener, port) in routes.items():
            argv = [sys.executable, str(program), str(port), str(listener), str(trip / 1000)]
            started.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv]))
            wait_for("a proxy", functools.partial(answers, port), 30)
        yield {trip: f"127.0.0.1:{port}" for trip, (_, port) in routes.items()}
    finally:
        for process in started:
            process.kill()
            process.wait(30)


def answers(port: int) -> bool:
    """Whether something listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: str, happened: Callable[[], bool], limit: float = LIMIT) -> float:
    """Wait until a condition holds; returns when that was seen."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if happened():
            return time.monotonic()
        time.sleep(0.05)
    raise MeasurementError(f"{what} did not come within {limit:.0f} s")
