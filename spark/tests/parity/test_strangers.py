"""Nobody without the secret reaches Spark: not here, and not on a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parity_stranger import BLOCK, JARS, OPENED, Stranger, family, listening, shown, stranger

from mirror_report import spark_security

SCRIPT = Path(__file__).parent / "parity_session.py"
GUESSES: list[dict[str, str]] = [
    {},
    # The older login, and the newer one with a secret that is not theirs.
    {"spark.authenticate": "true", "spark.authenticate.secret": "guessed"},
    {
        "spark.authenticate": "true",
        "spark.authenticate.secret": "guessed",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.authEngineVersion": "2",
    },
]


class Held:
    """A session in a process of its own."""

    def __init__(self, directory: Path, environment: dict[str, str], **settings: Any) -> None:
        self.directory = directory
        self.log = directory / "log"
        scratch = {
            "SPARK_LOCAL_DIRS": str(directory),
            "TMPDIR": str(directory),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", sys.executable, str(SCRIPT),
                 json.dumps({"heap": "512m", **settings})],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, **scratch, **environment},
            )  # fmt: skip
        self.begun = self.hear()

    def hear(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-4000:]
        heard: dict[str, Any] = json.loads(line)
        return heard

    def work(self) -> dict[str, Any]:
        """Let it count, and say whether it holds the stranger's block."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{BLOCK}\n")
        self.process.stdin.flush()
        return self.hear()

    def end(self) -> None:
        """Let it end."""
        try:
            self.process.communicate(timeout=60)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def other() -> Iterator[Stranger]:
    """Start a stranger."""
    with stranger() as process:
        yield process


@contextlib.contextmanager
def session(environment: dict[str, str], **settings: Any) -> Iterator[Held]:
    """Hold a session, in a directory with a short name: sockets lie in it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        held = Held(Path(directory), environment, **settings)
        try:
            yield held
        finally:
            held.end()


@pytest.fixture(scope="module")
def local() -> Iterator[Held]:
    """Hold a local session."""
    with session({}, master="local[2]") as held:
        yield held


def test_no_port_of_a_local_session_does_anything_for_a_stranger(
    other: Stranger, local: Held
) -> None:
    pids = family(local.process.pid)
    ports = listening(pids)
    assert len(ports) >= 3, "Spark's two, and the one that Python calls"
    assert other.effects(ports, GUESSES) == []
    assert local.work() == {"count": 1000, "holds block": False}
    secret = local.begun["secret"]
    assert len(secret) >= 32
    assert secret not in shown(pids, "cmdline", "environ")
    assert secret not in json.dumps(local.begun["configured"])
    assert secret.encode() not in written(local.directory)


def test_whoever_knows_the_secret_is_heard(other: Stranger, local: Held) -> None:
    knows = {**GUESSES[-1], "spark.authenticate.secret": local.begun["secret"]}
    ports = listening(family(local.process.pid))
    found = [endpoint for port in ports for endpoint in other.found(port, knows, stop=False)]
    assert "endpoint LocalSchedulerBackendEndpoint" in found
    assert local.work()["count"] == 1000


@pytest.mark.long
def test_silent_strangers_hold_up_nothing() -> None:
    with session({}, master="local[2]") as held, contextlib.ExitStack() as lines:
        for port in listening(family(held.process.pid)):
            line = lines.enter_context(socket.create_connection(("127.0.0.1", port)))
            line.sendall(b"x")
        assert held.work()["count"] == 1000
        held.end()


SECRET = "known to the cluster alone"
DEMANDED = f"""\
spark.authenticate true
spark.authenticate.secret {SECRET}
spark.network.crypto.enabled true
spark.network.crypto.saslFallback false
spark.network.crypto.cipher AES/GCM/NoPadding
spark.network.crypto.authEngineVersion 2
"""


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Make a directory as systemd makes one of credentials."""
    directory = tmp_path / "private"
    directory.mkdir(mode=0o700)
    file = directory / spark_security.DEFAULTS_FILE
    file.touch(mode=0o400)
    file.write_text(DEMANDED)
    return directory


@pytest.fixture
def cluster(private: Path, tmp_path: Path, free_port: int) -> Iterator[tuple[str, list[int]]]:
    """Start Spark's own cluster: address of its master, and its processes."""
    common = ["--host", "127.0.0.1", "--webui-port", "0", "--properties-file",
              str(private / spark_security.DEFAULTS_FILE)]  # fmt: skip
    master = f"spark://127.0.0.1:{free_port}"
    daemons = {
        "master.Master": ["--port", str(free_port)],
        "worker.Worker": ["--cores", "2", "--memory", "600m", "--work-dir", str(tmp_path), master],
    }
    environment = {
        **os.environ, "SPARK_HOME": str(JARS.parent), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }  # fmt: skip
    processes: list[subprocess.Popen[bytes]] = []
    for name, arguments in daemons.items():
        java = ["setpriv", "--pdeathsig", "KILL", "java", "-Xmx256m", "-XX:TieredStopAtLevel=1",
                *OPENED, "-cp", f"{JARS}/*", f"org.apache.spark.deploy.{name}"]  # fmt: skip
        with (tmp_path / name).open("wb") as log:
            command = [*java, *common, *arguments]
            started = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        processes.append(started)
        wait_until_it_listens(started.pid, tmp_path / name)
    yield master, [process.pid for process in processes]
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(60)


def wait_until_it_listens(pid: int, log: Path) -> None:
    """Wait for both ports of a daemon, and show its log if they do not come."""
    deadline = time.monotonic() + 120
    while len(listening([pid])) < 2:
        assert time.monotonic() < deadline, log.read_text()[-4000:]
        time.sleep(0.2)


def all_listening(held: Held, daemons: list[int]) -> tuple[list[int], list[int], dict[int, int]]:
    """Wait until all processes of a cluster listen: the driver's, all of them, and their ports."""
    deadline = time.monotonic() + 120
    while True:
        own = family(held.process.pid)
        everyone = [*own, *(pid for daemon in daemons for pid in family(daemon))]
        ports = listening(everyone)
        # Python, driver, master, worker, executor; the first of them calls, and does not listen.
        if len(everyone) >= 5 and set(everyone[1:]) <= set(ports.values()):
            return own, everyone, ports
        assert time.monotonic() < deadline, held.log.read_text()[-4000:]
        time.sleep(0.2)


@pytest.mark.long
def test_a_cluster_works_for_the_report_and_does_nothing_for_a_stranger(
    other: Stranger, cluster: tuple[str, list[int]], private: Path
) -> None:
    master, daemons = cluster
    with session(
        {"CREDENTIALS_DIRECTORY": str(private)}, master=master,
        properties={"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"},
    ) as held:  # fmt: skip
        assert held.begun.get("secret") == SECRET
        own, everyone, ports = all_listening(held, daemons)
        assert other.effects(ports, [GUESSES[0], GUESSES[-1]]) == []
        assert held.work() == {"count": 1000, "holds block": False}
        assert SECRET not in shown(everyone, "cmdline")
        assert SECRET not in shown(own, "environ")
        assert SECRET.encode() not in written(held.directory)


def written(directory: Path) -> bytes:
    """Whatever stands in the files of a directory."""
    return b"\n".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
