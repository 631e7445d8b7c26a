"""Somebody else's process on this host: what it reaches of Spark and of Python without a secret."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pyspark
from py4j import java_gateway
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError, get_return_value

JARS = Path(pyspark.__file__).parent / "jars"
BLOCK = "rdd_4711_0"
SECONDS = 20
ENDPOINTS = (
    "LocalSchedulerBackendEndpoint", "CoarseGrainedScheduler", "BlockManagerMaster",
    "MapOutputTracker", "HeartbeatReceiver", "OutputCommitCoordinator", "Executor", "Master",
    "Worker",
)  # fmt: skip
OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch")
]


class Stranger:
    """A JVM with Spark's own classes, as a user who owns nothing.

    :param directory: of Spark's jars, where that user can read them.
    """

    def __init__(self, directory: Path) -> None:
        command = ["setpriv", "--pdeathsig", "KILL"]
        if os.geteuid() == 0:
            command += ["--reuid=65534", "--regid=65534", "--clear-groups"]
        command += ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Duser.name=nobody", *OPENED]
        command += ["-cp", f"{directory}/*", "py4j.GatewayServer", "--die-on-broken-pipe", "0"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd="/", env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        self.gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        self.jvm = self.gateway.jvm

    def effects(self, ports: Iterable[int], guesses: Iterable[Mapping[str, str]]) -> list[str]:
        """What was answered or done; an empty list: nothing.

        :param guesses: Spark's keys for what this stranger says of itself.
        """
        spoken = [(port, guess) for port in ports for guess in guesses]
        # Who speaks another protocol may not answer at all.
        with ThreadPoolExecutor(len(spoken)) as pool:
            found = pool.map(lambda pair: [*self.found(*pair), *self.uploads(*pair)], spoken)
            answers = [
                (port, answer)
                for (port, _), some in zip(spoken, found, strict=True)
                for answer in some
            ]
        answers += [
            (port, answer) for port in ports for answer in (*_called(port), *_pickled(port))
        ]
        return [f"{port}: {answer}" for port, answer in answers]

    def found(self, port: int, settings: Mapping[str, str], *, stop: bool = True) -> Iterator[str]:
        """Names of the endpoints that are found there.

        :param stop: also tell an executor to stop.
        """
        conf = self._conf(settings)
        rpc = self.jvm.org.apache.spark.rpc
        environment = rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, self._manager(conf), True)
        try:
            for name in ENDPOINTS:
                try:
                    ref = environment.setupEndpointRef(rpc.RpcAddress("127.0.0.1", port), name)
                except Py4JJavaError as error:
                    if "RpcEndpointNotFoundException" in str(error):
                        continue
                    return
                yield f"endpoint {name}"
                if stop and name == "LocalSchedulerBackendEndpoint":
                    message = self._module("org.apache.spark.scheduler.local.StopExecutor$")
                    answer = ref.askSync(message, self._tag("java.lang.Object"))
                    yield f"StopExecutor answered {answer}"
        finally:
            environment.shutdown()

    def uploads(self, port: int, settings: Mapping[str, str]) -> Iterator[str]:
        """Whether a block is taken, by the protocol of block managers."""
        spark = self.jvm.org.apache.spark
        conf = self._conf(settings)
        level = self._module("org.apache.spark.storage.StorageLevel$").MEMORY_ONLY_SER()
        kind = self.jvm.scala.Tuple2(level, self._tag("java.lang.Object"))
        serializer = spark.serializer.JavaSerializer(conf).newInstance()
        metadata = serializer.serialize(kind, self._tag("scala.Tuple2")).array()
        message = spark.network.shuffle.protocol.UploadBlock(
            "app", "driver", BLOCK, metadata, b"stranger's"
        )
        transport = spark.network.netty.SparkTransportConf.fromSparkConf(
            conf, "shuffle", 0, self.jvm.scala.Option.empty(), self.jvm.scala.Option.empty()
        )
        context = spark.network.TransportContext(transport, spark.network.server.NoOpRpcHandler())
        factory = context.createClientFactory()
        try:
            with contextlib.suppress(Py4JJavaError):
                client = factory.createClient("127.0.0.1", port)
                client.sendRpcSync(message.toByteBuffer(), SECONDS * 1000)
                yield "block taken"
        finally:
            factory.close()
            context.close()

    def _conf(self, settings: Mapping[str, str]) -> Any:
        conf = self.jvm.org.apache.spark.SparkConf(False)
        mine = {"spark.rpc.askTimeout": f"{SECONDS}s", "spark.rpc.lookupTimeout": f"{SECONDS}s",
                "spark.network.timeout": f"{SECONDS}s",
                "spark.network.auth.rpcTimeout": f"{SECONDS}s"}  # fmt: skip
        for name, value in (mine | dict(settings)).items():
            conf.set(name, value)
        return conf

    def _manager(self, conf: Any) -> Any:
        kind = self.jvm.org.apache.spark.SecurityManager
        defaults = [getattr(kind, f"$lessinit$greater$default${number}")() for number in (2, 3)]
        return kind(conf, *defaults)

    def _module(self, name: str) -> Any:
        found = self.jvm.java.lang.Class.forName(name)
        return found.getField("MODULE$").get(None)

    def _tag(self, name: str) -> Any:
        return self.jvm.scala.reflect.ClassTag.apply(self.jvm.java.lang.Class.forName(name))

    def end(self) -> None:
        """End the process."""
        self.gateway.shutdown()  # or finalizers go on calling
        self.process.kill()
        self.process.wait(SECONDS)


def _called(port: int) -> Iterator[str]:
    """Whether a method is called there, by the protocol of Py4J."""
    reply = _say(port, b"c\nz:java.lang.System\ncurrentTimeMillis\ne\n")
    if reply.startswith(b"!y"):
        yield f"a method was called: {reply!r}"


class _Mark:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def _pickled(port: int) -> Iterator[str]:
    """Whether a pickle is loaded there, by the protocol of accumulators."""
    with tempfile.TemporaryDirectory() as directory:
        mark = Path(directory, "loaded")
        load = pickle.dumps(_Mark(str(mark)))
        # A token of Py4J has 43 or 64 characters; without one the number of updates comes first.
        for before in (b"", b"x" * 43, b"x" * 64):
            _say(port, before + struct.pack("!i", 1) + struct.pack("!i", len(load)) + load)
        if mark.exists():
            yield "a pickle was loaded"


def _say(port: int, words: bytes) -> bytes:
    """Say something and hear what comes back until the other is done, or is silent."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as line:
        line.settimeout(5)
        line.sendall(words)
        line.shutdown(socket.SHUT_WR)
        return line.recv(1000)
    return b""


@contextlib.contextmanager
def stranger() -> Iterator[Stranger]:
    """A stranger, who can read Spark's jars wherever they are installed."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        for jar in JARS.glob("*.jar"):
            try:
                os.link(jar, Path(directory, jar.name))
            except OSError:
                shutil.copy(jar, directory)
        process = Stranger(Path(directory))
        try:
            # PySpark explains errors of every gateway by the JVM of its own session.
            with mock.patch.object(java_gateway, "get_return_value", get_return_value):
                yield process
        finally:
            process.end()


ENDED = (FileNotFoundError, ProcessLookupError)
"""What is raised of a process that has ended meanwhile."""


def family(pid: int) -> list[int]:
    """A process and all that it started, as far as they run."""
    found = [pid]
    for process in found:
        with contextlib.suppress(*ENDED):
            found += [
                int(child)
                for task in Path(f"/proc/{process}/task").iterdir()
                for child in (task / "children").read_text().split()
            ]
    return [process for process in found if _runs(process)]


def _runs(pid: int) -> bool:
    # A process that ended and was not waited for has no arguments.
    with contextlib.suppress(*ENDED):
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    return False


def listening(pids: list[int]) -> dict[int, int]:
    """Port -> process, of all TCP ports that some processes listen on."""
    sockets: dict[str, int] = {}
    for pid in pids:
        # Processes and files come and go meanwhile.
        with contextlib.suppress(*ENDED):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(*ENDED):
                    held = re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink()))
                    if held:
                        sockets[held[1]] = pid
    lines = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    return {
        int(fields[1].rpartition(":")[2], 16): sockets[fields[9]]
        for fields in lines
        if fields[3] == "0A" and fields[9] in sockets
    }


def shown(pids: list[int], *kinds: str) -> str:
    """What everybody sees of some processes, or their user does.

    :param kinds: ``cmdline``, ``environ``.
    """
    found = []
    for pid in pids:
        for kind in kinds:
            with contextlib.suppress(*ENDED):
                found.append(Path(f"/proc/{pid}/{kind}").read_text(errors="replace"))
    return "\n".join(found).replace("\0", "\n")
