"""Clusters that encrypt and want to know who asks: what works, what leaks, what fails and how."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import jsonschema
import pyspark
import pytest
import report_schema
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from parity_mirror import RECORDS, T0, Mirror
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report import cli
from mirror_report.config import Settings
from mirror_report.config.load import parse
from mirror_report.parity import ParityError
from mirror_report.parity.plan import Range
from mirror_report.parity.spark import session, source
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.state.store import Store

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

CANARY = "CANARY-ab12cd34"
SPARK_SECRET = "CLUSTER-ef56ab78"
PASSWORD = f'{CANARY}"\\ é$x'
"""What is searched for has no character that an output might write in another way."""
USER = "report"
SCRAM = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "username": USER}


def jaas(password: str) -> str:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{USER}" password="{quoted}";'


class Secured:
    """The mirror of one topic between both clusters, and files to reach them by.

    :param mirror: the topic's records; it works on the plain listeners.
    """

    def __init__(self, mirror: Mirror, brokers: tuple[Any, Any], pems: Path, base: Path) -> None:
        self.mirror = mirror
        self.source, self.target = brokers
        self.pems = pems
        self.base = base
        self.topic = mirror.topic("secured", 2)
        mirror.produce(self.topic)
        mirror.copy(self.topic)
        for admin in mirror.admins:
            made = ScramMechanism.SCRAM_SHA_512
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion(USER, made, PASSWORD)])
        self.credentials = base / "credentials"
        self.credentials.mkdir()
        self.give("east")
        for kind, name in (("ca.pem", "lab.ca.pem"), ("cert.pem", "report.pem"),
                           ("key.pem", "report.key")):  # fmt: skip
            (self.credentials / f"west.report.{kind}").write_text((pems / name).read_text())
        defaults = self.credentials / "spark-defaults.conf"
        defaults.touch(mode=0o400)
        defaults.write_text(f"spark.authenticate.secret={SPARK_SECRET}\n", encoding="utf-8")

    def give(self, alias: str, password: str = PASSWORD, authority: str = "lab") -> None:
        """Write the credential files of one cluster with a login."""
        files = {
            "password": password,
            "jaas": jaas(password),
            "ca.pem": (self.pems / f"{authority}.ca.pem").read_text(),
        }
        for kind, text in files.items():
            (self.credentials / f"{alias}.report.{kind}").write_text(text, encoding="utf-8")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be nowhere else: the password, a line of the private key."""
        return CANARY, (self.pems / "report.key").read_text().splitlines()[1]

    def document(self, state: Path, east: dict[str, str] | None = None) -> dict[str, Any]:
        """The configuration: one flow into the target for every source.

        :param east: alias -> address of the sources.
        """
        sources = east or {"east": self.source.scram}
        include = self.topic.replace(".", "\\.")
        west = {"bootstrap_servers": [self.target.certified], "security_protocol": "SSL",
                "ssl_ca": True, "ssl_certificate": True}  # fmt: skip
        return {
            "version": 1,
            "clusters": {
                "west": west,
                **{
                    alias: {"bootstrap_servers": [address], "ssl_ca": True, **SCRAM}
                    for alias, address in sources.items()
                },
            },
            "flows": [
                {"name": alias, "source": alias, "target": "west", "topics": [include],
                 "include": include, "group_id": self.mirror.group}
                for alias in sources
            ],
            "state_directory": str(state),
        }  # fmt: skip

    def settings(self, state: Path, east: dict[str, str] | None = None) -> Settings:
        """The same as a command reads it."""
        return parse(self.document(state, east), self.credentials)


@pytest.fixture(scope="module")
def secured(
    spark: SparkSession,
    source_broker: Any,
    target_broker: Any,
    certificates: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    base = tmp_path_factory.mktemp("secured")
    mirror = Mirror(spark, (source_broker.bootstrap, target_broker.bootstrap), base / "unused")
    yield Secured(mirror, (source_broker, target_broker), certificates, base)
    mirror.close()


@dataclass
class Watched:
    """What everybody could see of a run while it ran, and what it left."""

    status: int = -1
    out: str = ""
    err: str = ""
    processes: dict[int, bytes] = field(default_factory=dict)
    arguments: dict[int, bytes] = field(default_factory=dict)
    below_executors: set[int] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)


def parents() -> dict[int, int]:
    """Process -> the one that started it."""
    found = {}
    for directory in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            found[int(directory.name)] = int(
                (directory / "stat").read_text().rpartition(")")[2].split()[1]
            )
    return found


def below(of: int, known: dict[int, int]) -> set[int]:
    """A process and all that descend from it."""
    found, more = set[int](), {of}
    while more:
        found |= more
        more = {pid for pid, parent in known.items() if parent in found} - found
    return found


def observe(process: int, port: int, seen: Watched) -> None:
    """Take down arguments and environments of the processes, and what Spark's REST API tells."""
    known = parents()
    for pid in below(process, known):
        with contextlib.suppress(OSError):
            read = [Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
            seen.arguments[pid], seen.processes[pid] = read[0], b"\0".join(read)
            if b"CoarseGrainedExecutorBackend" in read[0]:
                seen.below_executors |= below(pid, known)

    def ask(path: str) -> str:
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", f"/api/v1/applications{path}")
            return connection.getresponse().read().decode()

    with contextlib.suppress(OSError, ValueError, LookupError, HTTPException):
        name = json.loads(ask(""))[0]["id"]
        for kind in ("environment", "sql?details=true&planDescription=true", "allexecutors"):
            text = ask(f"/{name}/{kind}")
            # Later answers forget nothing, yet the last one may come from a session that ends.
            seen.answers[kind] = max(text, seen.answers.get(kind, ""), key=len)


def spark_home(base: Path) -> Path:
    """Spark as it is, in a place where executors may have their working directories."""
    home = base / "spark"
    home.mkdir()
    for name in ("bin", "jars", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


@pytest.fixture(scope="module")
def whole_run(secured: Secured, free_port: int) -> Watched:
    """One run with everything on that could show a secret, and with an executor of its own."""
    base = secured.base / "run"
    for name in ("", "events", "tmp", "state"):
        (base / name).mkdir()
    properties = {
        "spark.log.level": "INFO",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(free_port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (base / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.ui.explainMode": "extended",
        "spark.sql.maxMetadataStringLength": "100000",
        "spark.executor.memory": "512m",
        "spark.executor.extraClassPath": f"{jars_directory()}/*",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    document = secured.document(base / "state")
    document["spark"] = {
        "master": "local-cluster[1,1,512]",
        "heap": "512m",
        "jars_directory": str(jars_directory()),
        "properties": properties,
    }
    (base / "config.yaml").write_text(json.dumps(document))
    seen = Watched()
    environment = os.environ | {
        "PYTHONPATH": str(Path(cli.__file__).parents[1]),
        "CREDENTIALS_DIRECTORY": str(secured.credentials),
        "SPARK_HOME": str(spark_home(base)),
        "TMPDIR": str(base / "tmp"),
    }
    command = [sys.executable, "-m", "mirror_report.cli", "--config", str(base / "config.yaml")]
    with subprocess.Popen(
        [*command, "run", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=base,
    ) as process:  # fmt: skip
        ended = threading.Event()

        def keep_observing() -> None:
            while not ended.wait(0.3):
                observe(process.pid, free_port, seen)

        watcher = threading.Thread(target=keep_observing)
        watcher.start()
        try:
            out, err = process.communicate(timeout=1800)
        finally:
            process.kill()
            ended.set()
            watcher.join()
    seen.status, seen.out, seen.err = process.returncode, out.decode(), err.decode()
    return seen


def test_content_is_compared_behind_passwords_and_certificates(whole_run: Watched) -> None:
    assert whole_run.status == 1, whole_run.err[-5000:] + whole_run.out
    plain = json.loads(whole_run.out)
    jsonschema.validate(plain, report_schema.packaged())
    (parity,) = plain["parity"]
    assert (parity["status"], parity["verified_records"]) == ("verified", RECORDS)
    assert plain["coverage"] == 1.0
    assert [finding["kind"] for finding in plain["findings"]] == ["not_running"]


def test_no_secret_is_left_anywhere(whole_run: Watched, secured: Secured) -> None:
    base = secured.base / "run"
    files = {
        str(path.relative_to(base)): path.read_bytes()
        for path in base.rglob("*")
        if path.is_file() and not any(parent.is_symlink() for parent in path.parents)
    }
    shown = {
        "output": whole_run.out.encode(),
        "log": whole_run.err.encode(),
        **{f"process {pid}": text for pid, text in whole_run.processes.items()},
        **{kind: text.encode() for kind, text in whole_run.answers.items()},
        **files,
    }

    def having(*signs: str) -> set[str]:
        return {
            name for name, text in shown.items() if all(sign.encode() in text for sign in signs)
        }

    # Everything that could have shown it was there and showed what is no secret.
    assert any(
        name.startswith("events/")
        for name in having("EnvironmentUpdate", "Parsed Logical Plan", "BatchScan KafkaTable")
    )
    assert {"environment"} <= having("spark.redaction.regex")
    assert any(name.startswith("sql") for name in having("Parsed Logical Plan", "kafka"))
    assert any(name.endswith("stderr") for name in having("ConsumerConfig values", "[hidden]"))
    for program in ("org.apache.spark.deploy.SparkSubmit", "CoarseGrainedExecutorBackend"):
        assert any(name.startswith("process") for name in having(program, "SPARK_"))
    assert any(name.startswith("state/") for name in having(secured.topic))
    for secret in secured.secrets:
        assert having(secret) == set()
    # Spark itself hands its executors the cluster's secret so, and in no other way. What these
    # start for a moment inherits their environment.
    executors = having("CoarseGrainedExecutorBackend", f"_SPARK_AUTH_SECRET={SPARK_SECRET}\0")
    assert executors
    started = {f"process {pid}" for pid in whole_run.below_executors}
    assert executors <= having(SPARK_SECRET) <= executors | started
    assert {shown[name].count(SPARK_SECRET.encode()) for name in having(SPARK_SECRET)} == {1}
    assert not any(SPARK_SECRET.encode() in words for words in whole_run.arguments.values())


FAULTS = {
    "authority": "ssl_ca does not vouch",
    "elsewhere": "does not name",
    "expired": "expired",
    "password": "password",
    "nothing": "nothing.report.",
}
"""What is wrong with the way to a source, and words that the message must have."""


@pytest.fixture(scope="module")
def faulty(secured: Secured) -> dict[str, str]:
    """Alias of a source -> its address, each with its fault."""
    secured.give("authority", authority="other")
    secured.give("elsewhere")
    secured.give("expired")
    secured.give("password", password="no-" + PASSWORD)
    addresses = dict.fromkeys(FAULTS, secured.source.scram)
    return addresses | {name: getattr(secured.source, name) for name in ("elsewhere", "expired")}


def remembered(state: Path) -> dict[str, Any]:
    """Everything a run may rest on."""
    store = Store(state)
    manifests = ("baseline", "topics", "mirrors", "shifts", "parity")
    files = sorted(str(path) for path in store.parity_directory.rglob("*") if path.is_file())
    return {name: store.load(name) for name in manifests} | {"files": files}


@pytest.fixture
def state(secured: Secured, whole_run: Watched, tmp_path: Path) -> Path:
    """What the whole run left, to be spoiled."""
    assert whole_run.status == 1
    shutil.copytree(secured.base / "run/state", tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture
def command(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run a command on a state; its status and its document."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(secured.credentials))

    def run(
        name: str, state: Path, east: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        path = state.parent / "config.yaml"
        path.write_text(json.dumps(secured.document(state, east)))
        capfd.readouterr()
        status = cli.main(["--config", str(path), name, "--json"])
        out, err = capfd.readouterr()
        assert not any(secret in out + err for secret in secured.secrets)
        return status, json.loads(out)

    return run


@pytest.mark.parametrize("name", ["check", "lag", "run"])
def test_a_way_that_is_closed_is_reported_with_its_cause(
    name: str, command: Callable[..., Any], state: Path, faulty: dict[str, str]
) -> None:
    before = remembered(state)
    status, plain = command(name, state, {n: at for n, at in faulty.items() if n != "expired"})
    assert (status, plain["verdict"]["severity"]) == (3, "unknown")
    said = plain["findings"]
    # That it has expired is no guess, and critical.
    status, plain = command(name, state, {"expired": faulty["expired"]})
    assert (status, plain["verdict"]["severity"]) == (2, "critical")
    for fault, words in FAULTS.items():
        texts = {
            finding["message"] + finding["action"]
            for finding in [*said, *plain["findings"]]
            if finding["flow"] == fault and finding["severity"] == "unknown"
        }
        assert len(texts) == 1
        assert words in texts.pop()
    assert remembered(state) == before


@pytest.fixture(scope="module")
def refusals(secured: Secured, faulty: dict[str, str]) -> dict[str, str]:
    """What Spark's own clients say of each fault: all of them at once, they wait for each other."""
    settings = secured.settings(secured.base / "unused", faulty)
    ranges = [Range("f", "source", secured.topic, secured.topic, 0, 0, 10)]

    def read(alias: str) -> int:
        connect = source.options(settings.clusters[alias], secured.credentials)
        return source.read(secured.mirror.spark, ranges, connect).count()

    def refusal(alias: str) -> str:
        with pytest.raises(ParityError) as error, spark_errors():
            read(alias)
        return str(error.value)

    with ThreadPoolExecutor(len(faulty)) as pool:
        return dict(zip(faulty, pool.map(refusal, faulty), strict=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_spark_tells_the_same_causes(
    fault: str, refusals: dict[str, str], secured: Secured
) -> None:
    assert FAULTS[fault] in refusals[fault]
    assert not any(secret in refusals[fault] for secret in secured.secrets)


def test_a_run_that_spark_cannot_finish_changes_nothing(
    secured: Secured,
    command: Callable[..., Any],
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file that Spark logs in with holds another password than the report's own."""

    @contextlib.contextmanager
    def ours(*_: Any) -> Iterator[SparkSession]:
        yield secured.mirror.spark

    monkeypatch.setattr(session, "open_session", ours)
    secured.mirror.produce(secured.topic, 10, start=RECORDS)
    secured.mirror.copy_since(secured.topic, T0 + RECORDS * 1000)
    before = remembered(state)
    login = secured.credentials / "east.report.jaas"
    login.write_text(jaas("no-" + PASSWORD), encoding="utf-8")
    status, plain = command("run", state)
    assert status == 3
    (found,) = (one for one in plain["findings"] if one["kind"] != "not_running")
    assert (found["kind"], found["severity"]) == ("parity_unavailable", "unknown")
    assert FAULTS["password"] in found["message"] + found["action"]
    assert remembered(state) == before
    login.write_text(jaas(PASSWORD), encoding="utf-8")
    status, plain = command("run", state)
    assert (status, plain["parity"][0]["verified_records"]) == (1, RECORDS + 10)
