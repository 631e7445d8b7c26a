"""Kafka's own scripts, run by kafka-as against a real broker."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_as.installed import GROUP, PASSWORD, Installed, program


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
    """SCRAM and PLAIN over TLS, a client certificate, and no authentication."""
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


def test_by_sudo_no_variable_of_the_caller_reaches_the_script(kafka_as: Installed) -> None:
    chosen = {**os.environ, "KAFKA_OPTS": "-XX:NoSuchOption", "KAFKA_HEAP_OPTS": "-Xmx1"}
    words = ["east", "kafka-topics.sh", "--list"]
    assert kafka_as(*words, env=chosen).returncode != 0
    done = kafka_as(*words, env={**chosen, "SUDO_UID": "1000"})
    assert done.returncode == 0, done.stderr
    done = kafka_as(*words, "--command-property", "a=b", env={**os.environ, "SUDO_UID": "1000"})
    assert done.returncode == program.FAILED
    assert "sudo would open for its caller" in done.stderr


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
        contents = {
            path: path.read_bytes()
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if path.exists()
        }
        own = Path(f"/proc/{process.pid}")
        contents[own / "environ"] = (own / "environ").read_bytes()
        limits = (own / "limits").read_text()
    finally:
        process.terminate()
        status = process.wait(30)
    assert b"ConsoleConsumer" in contents[own / "cmdline"]
    mine = {"cmdline": contents[own / "cmdline"], "environ": contents[own / "environ"]}
    assert not [name for name, text in mine.items() if b"CANARY" in text]
    assert not [path for path, text in contents.items() if PASSWORD.encode() in text]
    assert re.search(r"Max core file size +0 +0", limits)
    assert status in (-15, 143)
    left = {path.name for path in set(Path("/tmp").iterdir()) - before}  # noqa: S108
    assert not [name for name in left if str(process.pid) in name]


def as_nobody(*groups: str) -> dict[str, Any]:
    return {"user": "nobody", "group": "nogroup", "extra_groups": list(groups)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_whoever_is_not_in_the_group_is_refused_with_the_reason(kafka_as: Installed) -> None:
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
