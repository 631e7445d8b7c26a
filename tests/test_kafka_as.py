"""kafka-as: what role kafka_as writes, and Kafka's own scripts run by it against a real broker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_model.errors import ModelError
from mirror_model.operators import operator_files
from mirror_model.render import to_java_properties

from tests.loading import ROOT, certificates, load
from tests.model.conftest import CACHE, SITE

PROGRAM = ROOT / "roles/kafka_as/files/kafka_as.py"
RELEASE = "kafka_2.13-4.3.1"
GROUP = "games"  # a group that every Debian has and nobody is a member of
PASSWORD = 'CANARY"p\\a ss$x é'
SERVERS = "--bootstrap-server"


program = load("roles/kafka_as/files/kafka_as.py", "kafka_as")

# The program's table, and where the library keeps what each script takes.
TOOLS = "org/apache/kafka/tools"
OPTIONS = {
    "kafka-acls.sh": "AclCommand$AclCommandOptions",
    "kafka-broker-api-versions.sh": "BrokerApiVersionsCommand$BrokerVersionCommandOptions",
    "kafka-client-metrics.sh": "ClientMetricsCommand$ClientMetricsCommandOptions",
    "kafka-cluster.sh": "ClusterTool",
    "kafka-configs.sh": "kafka/admin/ConfigCommand$ConfigCommandOptions",
    "kafka-console-consumer.sh": "consumer/ConsoleConsumerOptions",
    "kafka-console-producer.sh": "ConsoleProducer$ConsoleProducerOptions",
    "kafka-console-share-consumer.sh": "consumer/ConsoleShareConsumerOptions",
    "kafka-consumer-groups.sh": "consumer/group/ConsumerGroupCommandOptions",
    "kafka-consumer-perf-test.sh": "ConsumerPerformance$ConsumerPerfOptions",
    "kafka-delegation-tokens.sh": "DelegationTokenCommand$DelegationTokenCommandOptions",
    "kafka-delete-records.sh": "DeleteRecordsCommand$DeleteRecordsCommandOptions",
    "kafka-e2e-latency.sh": "EndToEndLatency$EndToEndLatencyCommandOptions",
    "kafka-features.sh": "FeatureCommand",
    "kafka-get-offsets.sh": "GetOffsetShell$GetOffsetShellOptions",
    "kafka-groups.sh": "GroupsCommand$GroupsCommandOptions",
    "kafka-leader-election.sh": "LeaderElectionCommand$LeaderElectionCommandOptions",
    "kafka-log-dirs.sh": "LogDirsCommand$LogDirsCommandOptions",
    "kafka-metadata-quorum.sh": "MetadataQuorumCommand",
    "kafka-producer-perf-test.sh": "ProducerPerformance",
    "kafka-reassign-partitions.sh": "reassign/ReassignPartitionsCommandOptions",
    "kafka-share-consumer-perf-test.sh": "ShareConsumerPerformance$ShareConsumerPerfOptions",
    "kafka-share-groups.sh": "consumer/group/ShareGroupCommandOptions",
    "kafka-streams-application-reset.sh": "StreamsResetter$StreamsResetterOptions",
    "kafka-streams-groups.sh": "streams/StreamsGroupCommandOptions",
    "kafka-topics.sh": "TopicCommand$TopicCommandOptions",
    "kafka-transactions.sh": "TransactionsCommand",
    "kafka-verifiable-consumer.sh": "VerifiableConsumer",
    "kafka-verifiable-producer.sh": "VerifiableProducer",
    "kafka-verifiable-share-consumer.sh": "VerifiableShareConsumer",
}


# What is written


def test_only_named_identities_are_written() -> None:
    files = operator_files(SITE["clusters"], {"east": ["report"], "west": []}, "/c")
    assert list(files["properties"]) == ["east.report.properties", "west.properties"]
    assert set(files["credentials"]) == {"east.report.jaas", "east.report.ca.pem"}
    assert "CANARY" not in str(files["properties"])
    text = to_java_properties(files["properties"]["east.report.properties"])
    assert "config.providers.dir.param.allowed.paths=/c\n" in text
    assert program.REFERENCE.findall(text) == [
        ("/c", "east.report.jaas"),
        ("/c", "east.report.ca.pem"),
    ]


def test_properties_of_the_cluster_reach_scripts_as_far_as_they_are_for_all() -> None:
    own = {"ssl.protocol": "TLSv1.3", "request.timeout.ms": 9, "acks": 1, "my.plugin": "x"}
    clusters = {**SITE["clusters"], "west": {**SITE["clusters"]["west"], "properties": own}}
    properties = operator_files(clusters, {"west": []}, "/c")["properties"]["west.properties"]
    assert {name: properties.get(name) for name in own} == {**own, "acks": None}


@pytest.mark.parametrize(
    ("identities", "words"),
    [
        ({"eastt": ["mirror"]}, "did you mean 'east'?"),
        ({"east": ["admin"]}, "kafka_as_identities.east: 'admin' is no identity"),
        ({"east": "mirror"}, "must be a list"),
        ({"east": []}, "known: mirror, report"),
        ({"west": ["mirror"]}, "none is defined"),
    ],
)
def test_nothing_stands_in_for_an_identity_that_is_not_defined(
    identities: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=re.escape(words)):
        operator_files(SITE["clusters"], identities, "/c")


def test_a_reference_to_a_credential_of_a_service_is_refused() -> None:
    own = {"ssl.truststore.password": "${dir:/run/credentials/mirrormaker.service:x}"}
    clusters = {**SITE["clusters"], "west": {**SITE["clusters"]["west"], "properties": own}}
    with pytest.raises(ModelError, match="no operator has"):
        operator_files(clusters, {"west": []}, "/c")


# What the command line says


def site(tmp_path: Path) -> Any:
    for name in program.SCRIPTS:
        (tmp_path / name).touch(0o755)
    return program.Site(
        "ops", str(tmp_path), "/java", "256m", {"east": ["admin", "report"], "west": []}
    )


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("east kafka-topics.sh --list", ("east", "admin", "kafka-topics.sh", ["--list"])),
        ("east kafka-topics --list", ("east", "admin", "kafka-topics.sh", ["--list"])),
        ("east report kafka-groups.sh", ("east", "report", "kafka-groups.sh", [])),
        ("west kafka-groups.sh admin", ("west", "", "kafka-groups.sh", ["admin"])),
    ],
)
def test_what_is_chosen(tmp_path: Path, words: str, wanted: Any) -> None:
    assert program.chosen(site(tmp_path), words.split()) == wanted


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("eastt kafka-topics.sh", "unknown cluster 'eastt'; did you mean 'east'?"),
        ("nowhere kafka-topics.sh", "unknown cluster 'nowhere'; known: east, west"),
        ("east adminn kafka-topics.sh", "unknown identity 'adminn' of east; did you mean 'admin'?"),
        ("west admin kafka-topics.sh", "nobody logs in there"),
        ("east kafka-topic.sh", "did you mean 'kafka-topics.sh'?"),
        ("east", "which script?"),
        ("east report", "which script?"),
        ("east kafka-storage.sh format", "kafka-storage.sh works on files of its host"),
        ("east kafka-dump-log", "kafka-dump-log.sh works on files of its host"),
    ],
)
def test_what_cannot_be_chosen(tmp_path: Path, words: str, message: str) -> None:
    with pytest.raises(program.UsageError, match=re.escape(message)):
        program.chosen(site(tmp_path), words.split())


@pytest.mark.parametrize(
    "argument",
    [SERVERS, f"{SERVERS}=x:1", "--boots", "-bootstrap-server", "--bootstrap-controller",
     "--broker-list", "--command-config", "--command-conf=/x", "--producer.config",
     "--consumer.config=/x", "--config-file"],
)  # fmt: skip
def test_a_connection_of_the_users_own_is_refused(argument: str) -> None:
    with pytest.raises(program.UsageError, match="leave it out"):
        program.check_arguments("east", "kafka-topics.sh", ["--list", argument])


@pytest.mark.parametrize(
    "argument", ["--config", "--command-property", "--consumer-property", "-", "bootstrap-server"]
)
def test_other_arguments_pass(argument: str) -> None:
    program.check_arguments("east", "kafka-topics.sh", [argument])


def test_the_old_word_of_one_script_is_refused_there() -> None:
    with pytest.raises(program.UsageError, match="'--config'"):
        program.check_arguments("east", "kafka-cluster.sh", ["cluster-id", "--config", "x"])


@pytest.mark.parametrize(
    "argument",
    ["SCRAM-SHA-512=[password=CANARY]", "ssl.key.password=CANARY", "sasl.jaas.config=CANARY"],
)
def test_a_password_among_the_arguments_is_refused_and_not_repeated(argument: str) -> None:
    with pytest.raises(program.UsageError, match="--add-config-file") as refusal:
        program.check_arguments("east", "kafka-configs.sh", ["--add-config", argument])
    assert "CANARY" not in str(refusal.value)


# The real distribution


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that every user may enter, unlike pytest's own."""
    directory = Path(tempfile.mkdtemp(prefix="kafka-as-", dir="/var/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def release(place: Path) -> Path:
    """The unpacked distribution."""
    archive = CACHE / f"archives/{RELEASE}.tgz"
    assert archive.exists(), f"no {archive}: run 'make bootstrap' first"
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(place), "--no-same-owner"], check=True)
    # The lab's archive holds the launchers that scenarios need; the others are of the same line.
    launcher = '#!/usr/bin/env bash\nexec "$(dirname -- "$0")/kafka-run-class.sh" {} "$@"\n'
    for name, options in OPTIONS.items():
        script = place / RELEASE / "bin" / name
        if not script.exists():
            inner = options.partition("$")[0].removesuffix("Options")
            script.write_text(launcher.format(f"{TOOLS}/{inner}".replace("/", ".")))
            script.chmod(0o755)
    return place / RELEASE


def constants(data: bytes) -> set[str]:
    """The texts in the constant pool of a Java class."""
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4,
             18: 4, 19: 2, 20: 2}  # fmt: skip
    count, place, entry, texts = int.from_bytes(data[8:10], "big"), 10, 1, set()
    while entry < count:
        tag, place = data[place], place + 1
        if tag == 1:
            length = int.from_bytes(data[place : place + 2], "big")
            texts.add(data[place + 2 : place + 2 + length].decode("utf-8", "replace"))
            place += 2 + length
        else:
            place += sizes[tag]
        entry += 2 if tag in (5, 6) else 1
    return texts


def test_every_script_knows_the_two_options(release: Path) -> None:
    assert set(OPTIONS) == set(program.SCRIPTS)
    texts: dict[str, set[str]] = {}
    wanted = {
        name: f"{options}.class" if options.startswith("kafka/") else f"{TOOLS}/{options}.class"
        for name, options in OPTIONS.items()
    }
    for jar in (release / "libs").glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as archive:
            inside = set(archive.namelist())
            for name, path in wanted.items():
                # A class may leave its options to one beside it.
                for one in {
                    path,
                    path.partition("$")[0].removesuffix(".class") + ".class",
                } & inside:
                    texts.setdefault(name, set()).update(constants(archive.read(one)))
    for name in program.SCRIPTS:
        for option in ("bootstrap-server", "command-config"):
            assert {option, f"--{option}"} & texts[name], f"{name}: {option}"


@dataclass(frozen=True)
class Installed:
    """What the role installed, and what Ansible said of it."""

    home: Path
    command: Path
    output: str
    again: str

    def __call__(self, *words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return subprocess.run(
            [str(self.command), *words], capture_output=True, text=True, check=False, timeout=120,
            cwd="/", **settings,
        )  # fmt: skip


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="module")
def clusters(release: Path, place: Path) -> Iterator[dict[str, Any]]:
    """One broker, seen as three clusters: by passwords, by certificates, and by nobody's leave."""
    files = place / "certificates"
    files.mkdir(0o700)
    for name in ("localhost", "operator"):
        certificates.ensure(files, certificates.Wanted(name, ["localhost"]))
    pair = {
        "ssl_certificate": (files / "operator.pem").read_text(),
        "ssl_key": (files / "operator.key").read_text(),
    }
    (files / "broker.pem").write_text(
        (files / "localhost.key").read_text() + (files / "localhost.pem").read_text()
    )
    login, mutual, plain, controller = free_ports(4)
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security"
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"LOGIN://127.0.0.1:{login},MUTUAL://127.0.0.1:{mutual},"
        f"PLAIN://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"LOGIN://localhost:{login},MUTUAL://localhost:{mutual},"
        f"PLAIN://localhost:{plain}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "LOGIN:SASL_SSL,MUTUAL:SSL,PLAIN:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAIN",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files / "lab.ca.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule "
        "required;",
        "listener.name.login.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required "
        f'user_reader="{quoted}";',
        "log.dirs": str(place / "data"),
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    (place / "server.properties").write_text(to_java_properties(properties))
    (place / "scram").write_text("--add-scram\nSCRAM-SHA-512=[name=admin,password=CANARY-admin]\n")
    environment = {
        **os.environ, "KAFKA_HEAP_OPTS": "-Xmx256m",
        "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }  # fmt: skip
    log = place / "broker.log"
    with log.open("wb") as output:
        subprocess.run(
            [release / "bin/kafka-storage.sh", "format", "--cluster-id=kafkaAsTest00000000000Q",
             "--config", place / "server.properties", f"@{place}/scram"],
            check=True, stdout=output, stderr=output, env=environment,
        )  # fmt: skip
        broker = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", release / "bin/kafka-server-start.sh",
             place / "server.properties"],
            stdout=output, stderr=output, env=environment,
        )  # fmt: skip
    deadline = time.monotonic() + 90
    while "Kafka Server started" not in log.read_text(errors="replace"):
        assert broker.poll() is None, log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
        time.sleep(0.2)
    # As while authorities are exchanged: the old one and the new one.
    certificates.authority(files, "former")
    authority = (files / "former.ca.pem").read_text() + (files / "lab.ca.pem").read_text()
    yield {
        "east": {
            "bootstrap_servers": [f"localhost:{login}"],
            "security_protocol": "SASL_SSL",
            "ssl_ca": authority,
            "identities": {
                "mirror": {"sasl_mechanism": "PLAIN", "username": "x", "password": "CANARY-never"},
                "admin": {"sasl_mechanism": "SCRAM-SHA-512", "username": "admin",
                          "password": "CANARY-admin"},
                "reader": {"sasl_mechanism": "PLAIN", "username": "reader", "password": PASSWORD},
                "wrong": {"sasl_mechanism": "PLAIN", "username": "reader", "password": "CANARY-no"},
            },
        },
        "west": {
            "bootstrap_servers": [f"localhost:{mutual}"],
            "security_protocol": "SSL",
            "ssl_ca": authority,
            "identities": {"mirror": pair},
        },
        "open": {"bootstrap_servers": [f"localhost:{plain}"]},
    }  # fmt: skip
    broker.terminate()
    broker.wait(60)


PLAY = """
- name: Install kafka-as
  hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: Judge the inputs
      ansible.builtin.include_role:
        name: kafka_as
        tasks_from: inputs
    - name: Write what the command needs
      ansible.builtin.include_role:
        name: kafka_as
        tasks_from: configure
"""


@pytest.fixture(scope="module")
def kafka_as(place: Path, clusters: dict[str, Any]) -> Installed:
    """The command as the role installs it, but below a directory of the test."""
    home, command = place / "etc", place / "kafka-as"
    play, said = place / "play.yml", []
    play.write_text(PLAY)
    java = Path(shutil.which("java") or "/usr/bin/java").resolve().parents[1]
    for east in (["admin", "reader", "wrong"], ["admin", "reader"], ["admin", "reader"]):
        variables = {
            "ansible_python_interpreter": sys.executable,
            "kafka_clusters": clusters,
            "kafka_as_identities": {"east": east, "west": ["mirror"], "open": []},
            "kafka_as_group": GROUP,
            "kafka_releases_directory": str(place),
            "kafka_java_home": str(java),
            "__kafka_as_home": str(home),
            "__kafka_as_command": str(command),
        }
        (place / "variables.yml").write_text(yaml.safe_dump(variables))
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), "-vvv", "--diff",
             "--extra-vars", f"@{place}/variables.yml", str(play)],
            env={**os.environ, "ANSIBLE_ROLES_PATH": str(ROOT / "roles"), "ANSIBLE_NOCOLOR": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:]
        assert (home / "credentials/east.wrong.jaas").exists() == ("wrong" in east)
        said.append(done.stdout)
    text = command.read_text()
    assert text.count('Path("/etc/kafka-as")') == 1
    command.write_text(text.replace('Path("/etc/kafka-as")', f'Path("{home}")'))
    return Installed(home, command, "".join(said), said[-1])


@pytest.fixture(scope="module")
def topic(kafka_as: Installed) -> str:
    """A topic with a record, both made by the command."""
    done = kafka_as("east", "kafka-topics.sh", "--create", "--topic", "orders")
    assert done.returncode == 0, done.stderr
    done = kafka_as("west", "kafka-console-producer.sh", "--topic", "orders", input="one\n")
    assert done.returncode == 0, done.stderr
    return "orders"


def test_ansible_tells_no_secret_and_changes_nothing_again(kafka_as: Installed) -> None:
    assert "changed=0" in kafka_as.again
    assert "CANARY" not in kafka_as.output
    assert "PRIVATE KEY" not in kafka_as.output


def test_who_may_read_what(kafka_as: Installed) -> None:
    modes = {}
    for path in kafka_as.home.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        modes[str(path.relative_to(kafka_as.home))] = (path.owner(), path.group(), mode)
    clients = ("east.admin", "east.reader", "west.mirror", "open")
    files = ("east.admin.jaas", "east.admin.ca.pem", "east.reader.jaas", "east.reader.ca.pem",
             "west.mirror.ca.pem", "west.mirror.cert.pem", "west.mirror.key.pem")  # fmt: skip
    shared = [*(f"{name}.properties" for name in clients), *(f"credentials/{f}" for f in files)]
    assert modes == {
        "credentials": ("root", GROUP, 0o750),
        "site.json": ("root", "root", 0o644),
    } | dict.fromkeys(shared, ("root", GROUP, 0o640))
    outside = [path for path in kafka_as.home.glob("*") if path.is_file()]
    assert not any("CANARY" in path.read_text() for path in outside)


def test_help_names_clusters_identities_and_group(kafka_as: Installed) -> None:
    done = kafka_as("--help")
    assert done.returncode == 0
    for words in ("east: admin, reader", "open: nobody logs in", GROUP, "kafka-topics.sh"):
        assert words in done.stdout


def test_each_way_to_connect(kafka_as: Installed, topic: str) -> None:
    """SCRAM and PLAIN over TLS, a client certificate, and nobody at all."""
    for who in (["east"], ["east", "reader"], ["west"], ["open"]):
        done = kafka_as(*who, "kafka-topics.sh", "--list")
        assert (done.returncode, done.stderr) == (0, "")
        assert topic in done.stdout.split()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["kafka-cluster.sh", "cluster-id"], "kafkaAsTest00000000000Q"),
        (["kafka-features.sh", "describe"], "metadata.version"),
        (["kafka-metadata-quorum.sh", "describe", "--status"], "LeaderId"),
        (["kafka-get-offsets.sh", "--topic", "TOPIC"], "orders:0:"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_options_stand_where_each_kind_of_script_reads_them(
    kafka_as: Installed, topic: str, command: list[str], words: str
) -> None:
    done = kafka_as("east", *(word.replace("TOPIC", topic) for word in command))
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


def test_a_consumer_reads_what_a_producer_wrote(kafka_as: Installed, topic: str) -> None:
    done = kafka_as("east", "reader", "kafka-console-consumer.sh", "--topic", topic,
                    "--from-beginning", "--max-messages", "1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "one\n"


def test_the_exit_status_is_the_scripts(kafka_as: Installed) -> None:
    done = kafka_as("east", "kafka-topics.sh", "--describe", "--topic", "nowhere")
    assert done.returncode == 1
    assert "does not exist" in done.stderr + done.stdout


def test_a_secret_is_in_no_argument_and_no_environment_and_nothing_is_left(
    kafka_as: Installed, topic: str
) -> None:
    before = set(Path("/tmp").iterdir())  # noqa: S108
    process = subprocess.Popen(
        [str(kafka_as.command), "east", "reader", "kafka-console-consumer.sh", "--topic", topic,
         "--from-beginning"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/",
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"  # it has logged in
        told = {
            path: path.read_bytes()
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if path.exists()
        }
        own = Path(f"/proc/{process.pid}")
        told[own / "environ"] = (own / "environ").read_bytes()
        limits = (own / "limits").read_text()
    finally:
        process.terminate()
        status = process.wait(30)
    assert b"ConsoleConsumer" in told[own / "cmdline"]
    mine = {"cmdline": told[own / "cmdline"], "environ": told[own / "environ"]}
    assert not [name for name, text in mine.items() if b"CANARY" in text]
    assert not [path for path, text in told.items() if PASSWORD.encode() in text]
    assert re.search(r"Max core file size +0 +0", limits)
    assert status in (-15, 143)
    left = {path.name for path in set(Path("/tmp").iterdir()) - before}  # noqa: S108
    assert not [name for name in left if str(process.pid) in name]


def as_nobody(*groups: str) -> dict[str, Any]:
    return {"user": "nobody", "group": "nogroup", "extra_groups": list(groups)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_whoever_is_not_in_the_group_is_told_so(kafka_as: Installed) -> None:
    for who in (["east"], ["open"]):
        done = kafka_as(*who, "kafka-topics.sh", "--list", **as_nobody())
        assert done.returncode == program.FAILED
        assert f"only root and members of the group {GROUP}" in done.stderr
        assert "usermod" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_member_of_the_group_may(kafka_as: Installed, topic: str) -> None:
    done = kafka_as("east", "kafka-topics.sh", "--list", **as_nobody(GROUP))
    assert done.returncode == 0, done.stderr
    assert topic in done.stdout.split()


def test_a_credential_that_is_gone_is_named(kafka_as: Installed) -> None:
    lost = kafka_as.home / "credentials/west.mirror.key.pem"
    kept = lost.rename(lost.with_name("kept"))
    try:
        done = kafka_as("west", "kafka-topics.sh", "--list")
    finally:
        kept.rename(lost)
    assert done.returncode == program.FAILED
    assert f"{lost}: No such file or directory; run playbooks/kafka-as.yml" in done.stderr


def test_a_host_without_the_role_says_what_to_run(tmp_path: Path) -> None:
    copy = tmp_path / "kafka-as"
    copy.write_text(PROGRAM.read_text().replace("/etc/kafka-as", str(tmp_path)))
    done = subprocess.run(
        [sys.executable, str(copy), "east"], capture_output=True, text=True, check=False
    )
    assert done.returncode == program.FAILED
    assert "run playbooks/kafka-as.yml" in done.stderr
