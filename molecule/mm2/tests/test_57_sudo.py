"""By a real sudo and the documented rules, an operator looks at the mirror and becomes nobody."""

from __future__ import annotations

import re

import pytest
from labkit.controller import ROOT

OPERATOR = "operator7"
RULES = "/etc/sudoers.d/mirror-report"
# Rules that somebody has written too wide: any words, and the caller's variables.
COMMANDS = "/usr/local/bin/mirror-report *, /usr/local/bin/kafka-as *"
WIDE = f"Defaults:{OPERATOR} !env_reset\n{OPERATOR} ALL = (root) NOPASSWD: {COMMANDS}\n"


@pytest.fixture(scope="module")
def host(lab):
    """The host of mirror and report, with an operator and the rules of the documentation."""
    rules = re.search(r"```sudoers\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.DOTALL)
    text = rules.group(1).replace("east report kafka-consumer-groups.sh --describe --group "
                                  "mirrormaker-orders", "west kafka-topics.sh --list")  # fmt: skip
    host = lab.mirror
    host.shell(f"groupadd --system mirror-operators; useradd --groups mirror-operators {OPERATOR}")
    host.run("install", "--mode=0440", "/dev/stdin", RULES, stdin=text)
    host.run("visudo", "--check", f"--file={RULES}")
    yield host
    host.shell(f"rm -f {RULES} {RULES}-wide; userdel --remove {OPERATOR} 2>&1; "
               "groupdel mirror-operators")  # fmt: skip


def by_sudo(host, *words, environment=()):
    argv = ["runuser", "-u", OPERATOR, "--", "env", *environment, "sudo", "--non-interactive"]
    return host.run(*argv, *words, check=False)


def test_an_operator_may_do_what_the_rules_name(host):
    assert by_sudo(host, "mirror-report", "lag").status in {0, 1, 2}
    assert "orders" in by_sudo(host, "mirror-report", "lag").stdout
    done = by_sudo(host, "kafka-as", "west", "kafka-topics.sh", "--list")
    assert (done.status, "north.orders" in done.stdout) == (0, True), done.text


@pytest.mark.parametrize(
    "words",
    [
        ["mirror-report", "--config", "mine.yaml", "lag"],
        ["mirror-report", "lag", "--flow", "orders"],
        ["mirror-report", "baseline", "--renew"],
        ["kafka-as", "west", "kafka-topics.sh", "--delete", "--topic", "north.orders"],
        ["sh"],
    ],
    ids=" ".join,
)
def test_sudo_refuses_other_words(host, words):
    done = by_sudo(host, *words)
    assert done.status == 1
    assert "password is required" in done.stderr


def test_a_rule_that_is_too_wide_still_gives_no_file_and_no_variable(host):
    """The configuration of the operator would run a Java of his as root."""
    host.run("install", "--mode=0440", "/dev/stdin", f"{RULES}-wide", stdin=WIDE)
    host.shell("printf '#!/bin/sh\\ntouch /root/taken\\n' > /tmp/java; chmod 0755 /tmp/java; "
               "mkdir -p /tmp/mine; cp /tmp/java /tmp/mine/sitecustomize.py")  # fmt: skip
    for words in (
        ["mirror-report", "--config=/tmp/mine.yaml", "archive"],
        ["mirror-report", "--conf", "-", "show"],
        ["mirror-report", "digest", "--side", "source", "--output", "/etc/cron.d/mine"],
        ["mirror-report", "compare", "/etc/shadow", "/etc/shadow"],
    ):
        done = by_sudo(host, *words)
        assert (done.status, "sudo would open for its caller" in done.stderr) == (3, True), words
    topics = ["kafka-as", "west", "kafka-topics.sh", "--list"]
    for words in (
        ["kafka-as", "west", "kafka-configs.sh", "--alter", "--add-config-file", "/etc/shadow"],
        [*topics, "--command-property", "ssl.truststore.location=/etc/shadow"],
    ):
        done = by_sudo(host, *words)
        assert (done.status, "sudo would open for its caller" in done.stderr) == (125, True), words
    taken = ["KAFKA_OPTS=-XX:NoSuchOption", "PYTHONPATH=/tmp/mine", "SUDO_UID=0"]
    for words in (topics, ["mirror-report", "--version"]):
        done = by_sudo(host, *words, environment=taken)
        assert done.status == 0, done.text
    assert host.run("test", "-e", "/root/taken", check=False).status == 1
    host.shell(f"rm -rf /tmp/java /tmp/mine {RULES}-wide")
