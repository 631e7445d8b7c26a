"""What the tests hold in their hands: the lab's hosts, its clusters, and runs of the playbooks."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import re
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = "/var/tmp/lab-tools"  # noqa: S108
ACKS = "/var/tmp/lab-acks"  # noqa: S108
PYTHON = "/opt/mirror-report/venv/bin/python"
CACHE = Path(
    os.environ.get("MIRROR_LAB_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-mirror-lab"
)
ENVIRONMENT = {
    **os.environ,
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "CONTAINERS_CONF": str(ROOT / "lab/containers.conf"),
    "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
}

Offsets = dict[str, dict[int, int]]
Variables = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Result:
    """A finished command."""

    status: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Everything it said."""
        return self.stdout + self.stderr


def wait(what: str, check: Callable[[], Any], seconds: float = 120, pause: float = 0.5) -> Any:
    """Poll until ``check`` answers something true, and return it.

    :raises AssertionError: it did not within ``seconds``; names ``what`` and the last answer.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s, last: {answer!r}"
        time.sleep(pause)


class Host:
    """One lab host, by way of its container."""

    def __init__(self, prefix: str, name: str) -> None:
        self.name = name
        self.container = f"{prefix}-{name}"

    def command(self, *argv: str) -> list[str]:
        """Compose the command line that runs ``argv`` on this host."""
        return [str(ROOT / "lab/enter"), self.container, *argv]

    def run(self, *argv: str, stdin: str = "", check: bool = True, timeout: float = 300) -> Result:
        """Run a command as root; its standard error is part of the message if it fails."""
        done = subprocess.run(
            self.command(*argv),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=ENVIRONMENT,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        if check:
            assert result.status == 0, f"{self.name}: {' '.join(argv)}: {result.text[-4000:]}"
        return result

    def shell(self, script: str, check: bool = True) -> str:
        """Run a shell script and return what it printed."""
        return self.run("sh", "-c", script, check=check).stdout

    def now(self) -> str:
        """The host's own time, as journalctl takes it; what happened before lies before it."""
        return "@" + self.shell("sleep 1; date +%s").strip()

    def read(self, path: str) -> str:
        """Read a file."""
        return self.run("cat", path).stdout

    def write(self, path: str, content: str) -> None:
        """Replace a file's content, keeping owner and mode."""
        self.run("sh", "-c", f"cat > '{path}'", stdin=content)

    def copy(self, folder: Path, to: str) -> None:
        """Copy a directory's content into a directory of the host."""
        self.run("mkdir", "-p", to)
        argv = ["podman", "cp", f"{folder}/.", f"{self.container}:{to}/"]
        subprocess.run(argv, check=True, capture_output=True, env=ENVIRONMENT)

    def tree(self) -> str:
        """Fingerprint what stands below the roots that deployments write to."""
        file = f"/var/tmp/lab-tree-{secrets.token_hex(4)}.json"  # noqa: S108
        self.run("python3", f"{TOOLS}/tree.py", "save", file)
        return file

    def changes(self, tree: str) -> str:
        """Tell what became of the files since ``tree`` was taken; empty: nothing."""
        return self.run("python3", f"{TOOLS}/tree.py", "compare", tree, check=False).stdout.strip()


@dataclasses.dataclass(frozen=True)
class Unit:
    """A systemd unit of a host."""

    host: Host
    name: str

    def show(self) -> dict[str, str]:
        """Read every property."""
        lines = self.host.run("systemctl", "show", self.name).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def pid(self) -> int:
        """Its main process, 0 if none."""
        return int(self.show()["MainPID"])

    @property
    def restarts(self) -> int:
        """How often systemd started it again by itself."""
        return int(self.show()["NRestarts"])

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return self.show()["ActiveState"] == "active"

    def control(self, verb: str) -> None:
        """Call ``systemctl`` and wait for it."""
        self.host.run("systemctl", verb, self.name)

    def starts(self, since: str) -> int:
        """How often systemd has started it since :meth:`Host.now` said so."""
        lines = self.journal(since).splitlines()
        return sum(line.startswith("Started ") for line in lines)

    def journal(self, since: str = "-1h") -> str:
        """Read what it logged."""
        argv = ["journalctl", "--no-pager", "--output=cat", "--unit", self.name, "--since", since]
        return self.host.run(*argv).stdout


@dataclasses.dataclass(frozen=True)
class Engine:
    """What differs between the engines when an instance runs on several hosts.

    :param cluster: where its processes find each other, as members of ``group``.
    :param prefix: stands before a topic's name on the target.
    :param change: changes something of the instance that its processes are started with.
    """

    cluster: str
    group: str
    prefix: str
    change: Callable[[Variables], None]


class Production:
    """A producer that runs in the background on a lab host."""

    def __init__(self, lab: Lab, cluster: str, arguments: Sequence[str], directory: str) -> None:
        self.lab = lab
        self.run_id = secrets.token_hex(4)
        self.directory = directory
        argv = [PYTHON, f"{TOOLS}/produce.py", "--directory", directory, "--run", self.run_id]
        self.process = subprocess.Popen(
            lab.desk.command(*argv, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdin
        self.process.stdin.write(json.dumps(lab.connection(cluster)))
        self.process.stdin.close()

    def acknowledged(self) -> int:
        """Count what is logged so far."""
        return self.lab.acknowledged(self.directory, f"{self.run_id}-*.tsv")

    def wait_more(self, records: int) -> None:
        """Wait until so many more records are acknowledged."""
        wanted = self.acknowledged() + records
        wait(f"{records} more records", lambda: self.acknowledged() >= wanted)

    def stop(self) -> None:
        """Ask it to end; what it has sent is acknowledged and logged first."""
        pid = f"{self.directory}/{self.run_id}.pid"
        self.lab.desk.shell(f"kill -TERM $(cat {pid}) || true")
        self.finish()

    def finish(self) -> None:
        """Wait for its end; a record it could not deliver is an error."""
        assert self.process.stdout
        output = self.process.stdout.read()
        assert self.process.wait(300) == 0, output


class Prober:
    """``lab/tools/probe.py`` on a lab host: started when it is asked first, or has died."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.process: subprocess.Popen[str] | None = None

    def ask(self, document: Mapping[str, Any]) -> list[Any]:
        """Have a document's steps taken, and return their answers."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.host.command(
                    "sh", "-c", f"exec {PYTHON} {TOOLS}/probe.py 2>{TOOLS}/probe.log"
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], 300)[0]:
            self.process.kill()
            raise AssertionError(f"{self.host.name}: the probe did not answer within 300 s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise AssertionError(
                f"{self.host.name}: {self.host.read(f'{TOOLS}/probe.log')[-4000:]}"
            )
        answers: list[Any] = json.loads(line)
        return answers

    def end(self) -> None:
        """End it, until it is asked again."""
        if self.process is not None:
            self.process.communicate(timeout=60)
            self.process = None


class Lab:
    """The hosts of a scenario, its clusters and its inventory; all flows lead to ``west``."""

    def __init__(self, scenario: Path) -> None:
        self.inventory = scenario / "inventory"
        text = (self.inventory / "group_vars/all.yml").read_text(encoding="utf-8")
        self.variables: Variables = yaml.safe_load(text)
        self.prefix = self.variables["lab_prefix"]
        self.clusters: Variables = self.variables["kafka_clusters"]
        self.secrets: Path = CACHE / "secrets" / self.prefix
        self.retired: list[str] = []
        self.authorities = ["lab"]
        groups = yaml.safe_load((self.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]
        self.hosts = self._group(groups, "lab")
        self.mirrors = self._group(groups, "mirrormaker")
        self.mirror = self.mirrors[0]
        # Where the report and the tests' own tools run.
        self.desk = self._group(groups, "mirror_report")[0]
        self.prober = Prober(self.desk)

    def _group(self, groups: Variables, name: str) -> tuple[Host, ...]:
        return tuple(Host(self.prefix, host) for host in groups["children"][name]["hosts"])

    def host(self, name: str) -> Host:
        """One host by its name."""
        (found,) = (host for host in self.hosts if host.name == name)
        return found

    @property
    def passwords(self) -> dict[str, dict[str, str]]:
        """The password of every identity of every cluster, as it is now."""
        text = (self.secrets / "passwords.json").read_text(encoding="utf-8")
        passwords: dict[str, dict[str, str]] = json.loads(text)
        return passwords

    def retire(self, cluster: str, identity: str) -> None:
        """Give an identity a new password in the vault; the next run of the site makes it so."""
        passwords = self.passwords
        self.retired.append(passwords[cluster][identity])
        passwords[cluster][identity] = f'{cluster}{identity}"\\$ é{secrets.token_hex(8)}'
        (self.secrets / "passwords.json").write_text(json.dumps(passwords), encoding="utf-8")

    def archive(self, version: str) -> Path:
        """The cached archive of a Kafka release."""
        return CACHE / "archives" / f"kafka_2.13-{version}.tgz"

    def certificate(self, name: str) -> str:
        """PEM text of one of the lab's certificates or keys: a file's name."""
        return (self.secrets / "tls" / name).read_text(encoding="ascii")

    def authority(self) -> str:
        """PEM text of the authorities that clients trust now."""
        return "".join(self.certificate(f"{name}.ca.pem") for name in self.authorities)

    def renew(self, *names: str, authority: str = "lab") -> None:
        """Make certificates anew, with new keys; the next run of the site uses them."""
        for name in names:
            for ending in ("pem", "key"):
                (self.secrets / "tls" / f"{name}.{ending}").unlink()
        document = {
            "directory": str(self.secrets / "tls"),
            "certificates": [{"name": name, "authority": authority} for name in names],
        }
        argv = [sys.executable, str(ROOT / "lab/certificates.py")]
        subprocess.run(argv, input=json.dumps(document), text=True, check=True, capture_output=True)

    def connection(self, cluster: str, identity: str = "admin") -> dict[str, Any]:
        """Say how the lab's tools reach a cluster."""
        model = self.clusters[cluster]
        connection = {key: model[key] for key in ("bootstrap_servers", "security_protocol")}
        who = model["identities"][identity]
        if model["security_protocol"].endswith("SSL"):
            connection["ssl_ca"] = self.authority()
        if "ssl_certificate" in who:
            connection["ssl_certificate"] = self.certificate(f"{cluster}-{identity}.pem")
            connection["ssl_key"] = self.certificate(f"{cluster}-{identity}.key")
        if "username" in who:
            connection |= {key: who[key] for key in ("sasl_mechanism", "username")}
            connection["password"] = self.passwords[cluster][identity]
        return connection

    def probe(self, *steps: Mapping[str, Any]) -> list[Any]:
        """Run the steps of ``lab/tools/probe.py`` and return their answers."""
        clusters = {name: self.connection(name) for name in self.clusters}
        return self.prober.ask({"clusters": clusters, "steps": steps})

    def ends(self, cluster: str, topics: Sequence[str]) -> dict[str, int]:
        """Sum of the log end offsets per topic."""
        found = self.probe({"do": "ends", "cluster": cluster, "topics": list(topics)})[0]
        return {topic: sum(parts.values()) for topic, parts in found.items()}

    def positions(self, flow: str) -> dict[str, Any]:
        """Compose the step that reads what a flow has committed."""
        (model,) = (each for each in self.variables["mirror_flows"] if each["name"] == flow)
        if model["engine"] == "mm1":
            return {"do": "positions", "cluster": model["source"], "group": f"mirrormaker-{flow}"}
        topic = f"mm2-offsets.{model['source']}.internal"
        return {"do": "connect_positions", "cluster": model["target"], "topic": topic}

    def lag(self, flow: str, topics: Sequence[str]) -> int:
        """Records that the flow has not committed, by end offsets and positions."""
        (source,) = (
            each["source"] for each in self.variables["mirror_flows"] if each["name"] == flow
        )
        ends, starts, positions = self.probe(
            {"do": "ends", "cluster": source, "topics": list(topics)},
            {"do": "starts", "cluster": source, "topics": list(topics)},
            self.positions(flow),
        )
        return sum(
            end - positions.get(topic, {}).get(partition, starts[topic][partition])
            for topic, parts in ends.items()
            for partition, end in parts.items()
        )

    def wait_mirrored(self, flow: str, topics: Sequence[str], seconds: float = 120) -> None:
        """Wait until the flow has committed everything."""
        wait(f"{flow} mirrored", lambda: self.lag(flow, topics) == 0, seconds)

    def acknowledged(self, directory: str, pattern: str = "*.tsv") -> int:
        """Count the log lines of a directory on the host of the producer."""
        counted = self.desk.shell(f"cat {directory}/{pattern} 2>/dev/null | wc -l", check=False)
        return int(counted)

    @contextmanager
    def producing(
        self, *topics: str, cluster: str = "east", **options: object
    ) -> Iterator[Production]:
        """Keep a producer writing; it has ended when the block is left."""
        production = self.start_producer(*topics, cluster=cluster, **options)
        try:
            yield production
        finally:
            production.stop()

    def start_producer(self, *topics: str, cluster: str = "east", **options: object) -> Production:
        """Start a producer; options are those of ``lab/tools/produce.py``."""
        arguments = [part for topic in topics for part in ("--topic", topic)]
        for name, value in options.items():
            arguments += [f"--{name}", str(value)]
        return Production(self, cluster, arguments, f"{ACKS}/{cluster}/{topics[0]}")

    def produce(self, *topics: str, count: int, cluster: str = "east") -> None:
        """Write a number of records and wait for their acknowledgement."""
        self.start_producer(*topics, cluster=cluster, count=count).finish()

    def compare(self, topic: str, source: str = "east", prefix: str = "") -> dict[str, Any]:
        """Compare what arrived of a topic with everything a source acknowledged for it.

        :param prefix: stands before the topic's name on the target.
        """
        argv = [PYTHON, f"{TOOLS}/verify.py", "--topic", topic, f"--prefix={prefix}"]
        argv += ["--directory", f"{ACKS}/{source}/{topic}"]
        done = self.desk.run(*argv, stdin=json.dumps(self.connection("west")), check=False)
        assert done.status in {0, 1}, f"nothing to compare for {topic}: {done.text}"
        answer: dict[str, Any] = json.loads(done.stdout)[topic]
        return answer

    def report(self, command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run ``mirror-report <command> --json``; returns exit status and document."""
        done = self.desk.run("mirror-report", command, "--json", *arguments, check=False)
        try:
            document: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"mirror-report {command}: {done.status} {done.text}") from None
        return done.status, document

    def changed(self, change: Callable[[Variables], None]) -> Variables:
        """Copy the inventory's variables and change the copy."""
        variables = copy.deepcopy(self.variables)
        change(variables)
        return {key: value for key, value in variables.items() if value != self.variables.get(key)}

    def playbook(
        self,
        name: str | Path,
        variables: Variables | None = None,
        *arguments: str,
        check: bool = True,
    ) -> Result:
        """Run one playbook of the repository, or a file, against this scenario's hosts."""
        argv = [
            "ansible-playbook",
            "--inventory",
            str(self.inventory),
            "--extra-vars",
            json.dumps(variables or {}),
            *arguments,
            str(ROOT / "playbooks" / name),
        ]
        environment = {
            **ENVIRONMENT,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORCE_COLOR": "0",  # Molecule asks for colours
            "ANSIBLE_INJECT_FACT_VARS": "false",
        }
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
            timeout=600,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        if check:
            assert result.status == 0, result.text[-6000:]
        return result


def parity(document: Mapping[str, Any], topic: str, flow: str | None = None) -> dict[str, Any]:
    """Pick one topic's parity from a report; the flow is needed where two have such a topic."""
    rows = [
        row
        for row in document["parity"]
        if row["source_topic"] == topic and flow in {None, row["flow"]}
    ]
    assert len(rows) == 1, f"{topic}: {document['parity']} {document['findings']}"
    row: dict[str, Any] = rows[0]
    return row


def classes(row: Mapping[str, Any]) -> dict[str, int]:
    """Reduce a topic's parity to the classes that have records."""
    return {name: count for name, count in row["counts"].items() if count}


def complete(comparison: Mapping[str, Any]) -> dict[str, int]:
    """Name the lost, altered and foreign records of a topic."""
    return {name: comparison[name] for name in ("lost", "altered", "foreign") if comparison[name]}


def exposure(host: Host, unit: str) -> float:
    """Measure a unit by systemd's own scale, from 0 (shut in) to 10."""
    text = host.run("systemd-analyze", "security", "--no-pager", unit).stdout
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", text)
    assert found, text[-500:]
    return float(found.group(1))


def words(secret: str) -> str:
    """Take the part of a password that no escaping changes: what a leak must show."""
    return max((str(part) for part in re.findall(r"[A-Za-z0-9]+", secret)), key=len)
