"""A real broker, seen as three clusters, and kafka-as installed by its role."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_model.render import to_java_properties

from tests.kafka_as.installed import GROUP, PASSWORD, RELEASE, Installed
from tests.kafka_as.options import OPTIONS, TOOLS
from tests.loading import ROOT, certificates
from tests.model.conftest import CACHE


@pytest.fixture(scope="package")
def place() -> Iterator[Path]:
    """A directory that every user may enter, unlike pytest's own."""
    directory = Path(tempfile.mkdtemp(prefix="kafka-as-", dir="/var/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="package")
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


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]


@pytest.fixture(scope="package")
def clusters(release: Path, place: Path) -> Iterator[dict[str, Any]]:
    """One broker, seen as three clusters: by passwords, by certificates, and by no login."""
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
    # Two authorities, as during their exchange.
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
    - name: Validate the inputs
      ansible.builtin.include_role:
        name: kafka_as
        tasks_from: inputs
    - name: Write what the command needs
      ansible.builtin.include_role:
        name: kafka_as
        tasks_from: configure
"""


@pytest.fixture(scope="package")
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
            "kafka_release_prefix": f"{place}/kafka_2.13-",
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


@pytest.fixture(scope="package")
def topic(kafka_as: Installed) -> str:
    """A topic with a record, both made by the command."""
    done = kafka_as("east", "kafka-topics.sh", "--create", "--topic", "orders")
    assert done.returncode == 0, done.stderr
    done = kafka_as("west", "kafka-console-producer.sh", "--topic", "orders", input="one\n")
    assert done.returncode == 0, done.stderr
    return "orders"
