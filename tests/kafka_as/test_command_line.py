"""What the command line of kafka-as chooses and refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_as.installed import PROGRAM, program

SERVERS = "--bootstrap-server"


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


@pytest.mark.parametrize(
    ("script", "argument"),
    [("configs", "--add-config-file"), ("configs", "--add-config-file=/etc/shadow"),
     ("console-producer", "--command-property"), ("console-producer", "--line-reader"),
     ("console-consumer", "--formatter"), ("console-consumer", "--consumer"),
     ("reassign-partitions", "--topic"), ("delete-records", "--offset"),
     ("producer-perf-test", "--payload-f"), ("consumer-groups", "--from-f"),
     ("verifiable-producer", "--producer.con"), ("e2e-latency", "--command-c")],
)  # fmt: skip
def test_what_sudo_would_open_for_its_caller_is_refused(script: str, argument: str) -> None:
    with pytest.raises(program.UsageError, match="sudo would open for its caller"):
        program.check_arguments("east", f"kafka-{script}.sh", [argument, "x"], by_sudo=True)


@pytest.mark.parametrize(
    ("script", "argument"),
    [("topics", "--topic"), ("topics", "--config"), ("topics", "--list"), ("acls", "--producer"),
     ("configs", "--add-config"), ("console-consumer", "--from-beginning"),
     ("console-consumer", "--offset"), ("consumer-groups", "--describe"), ("topics", "-")],
)  # fmt: skip
def test_what_opens_nothing_passes_by_sudo(script: str, argument: str) -> None:
    program.check_arguments("east", f"kafka-{script}.sh", [argument, "x"], by_sudo=True)


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


def test_a_host_without_the_role_says_what_to_run(tmp_path: Path) -> None:
    copy = tmp_path / "kafka-as"
    copy.write_text(PROGRAM.read_text().replace("/etc/kafka-as", str(tmp_path)))
    done = subprocess.run(
        [sys.executable, str(copy), "east"], capture_output=True, text=True, check=False
    )
    assert done.returncode == program.FAILED
    assert "run playbooks/kafka-as.yml" in done.stderr
