#!/usr/bin/python3 -I
"""Run one of Kafka's own scripts as one identity of one cluster; installed as kafka-as.

Nothing secret is in an argument or in the environment: the script gets the name of a properties
file whose references Kafka resolves itself, and this program becomes the script, so its exit status
and its signals are the script's. Errors of this program end with 125, as those of env(1).
"""

import difflib
import json
import os
import re
import resource
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

HOME = Path("/etc/kafka-as")
FAILED = 125

# Clients of a cluster, and after how many of their own arguments a connection may be named. Since
# Kafka 4.2 all of them take it by the same two options.
SCRIPTS = {
    "kafka-acls.sh": 0,
    "kafka-broker-api-versions.sh": 0,
    "kafka-client-metrics.sh": 0,
    "kafka-cluster.sh": 1,
    "kafka-configs.sh": 0,
    "kafka-console-consumer.sh": 0,
    "kafka-console-producer.sh": 0,
    "kafka-console-share-consumer.sh": 0,
    "kafka-consumer-groups.sh": 0,
    "kafka-consumer-perf-test.sh": 0,
    "kafka-delegation-tokens.sh": 0,
    "kafka-delete-records.sh": 0,
    "kafka-e2e-latency.sh": 0,
    "kafka-features.sh": 0,
    "kafka-get-offsets.sh": 0,
    "kafka-groups.sh": 0,
    "kafka-leader-election.sh": 0,
    "kafka-log-dirs.sh": 0,
    "kafka-metadata-quorum.sh": 0,
    "kafka-producer-perf-test.sh": 0,
    "kafka-reassign-partitions.sh": 0,
    "kafka-share-consumer-perf-test.sh": 0,
    "kafka-share-groups.sh": 0,
    "kafka-streams-application-reset.sh": 0,
    "kafka-streams-groups.sh": 0,
    "kafka-topics.sh": 0,
    "kafka-transactions.sh": 0,
    "kafka-verifiable-consumer.sh": 0,
    "kafka-verifiable-producer.sh": 0,
    "kafka-verifiable-share-consumer.sh": 0,
}
FILES = "works on files of its host and logs in nowhere"
SERVER = "is or ends a server"
OTHERS = {
    "connect-distributed.sh": SERVER,
    "connect-mirror-maker.sh": SERVER,
    "connect-plugin-path.sh": FILES,
    "connect-standalone.sh": SERVER,
    "kafka-dump-log.sh": FILES,
    "kafka-jmx.sh": "talks to a JMX port",
    "kafka-metadata-shell.sh": FILES,
    "kafka-mirror-maker.sh": SERVER,
    "kafka-replica-verification.sh": "cannot log in: it takes no client configuration",
    "kafka-run-class.sh": "runs any class, whatever that takes",
    "kafka-server-start.sh": SERVER,
    "kafka-server-stop.sh": SERVER,
    "kafka-storage.sh": FILES,
}
# What kafka-as says itself, in the words of every release.
CONNECTION = frozenset((
    "admin.config", "bootstrap-controller", "bootstrap-server", "bootstrap-servers", "broker-list",
    "command-config", "config-file", "consumer-config", "consumer.config", "producer.config",
))  # fmt: skip
# What names a file of this host, or a class or property of the client: not for who calls by sudo.
LOCAL = frozenset((
    "add-config-file", "assignment-strategy", "command-property", "consumer-property", "formatter",
    "formatter-config", "formatter-property", "from-file", "key-deserializer", "line-reader",
    "offset-json-file", "path-to-json-file", "payload-file", "producer-property", "producer-props",
    "property", "reader-config", "reader-property", "reassignment-json-file",
    "topics-to-move-json-file", "value-deserializer",
))  # fmt: skip
# Options of some scripts that are the beginning of one of those, which other scripts would take
# them for.
WHOLE = {
    "add-config": {"kafka-configs.sh"},
    "config": {"kafka-topics.sh"},
    "consumer": {"kafka-acls.sh", "kafka-groups.sh"},
    "offset": {"kafka-console-consumer.sh"},
    "producer": {"kafka-acls.sh"},
    "topic": SCRIPTS.keys() - {"kafka-reassign-partitions.sh"},
}
PASSWORD = re.compile(r"(password|passphrase|jaas\.config)\s*=", re.IGNORECASE)
REFERENCE = re.compile(r"\$\{dir:([^:}]*):([^}]*)\}")


# Nothing is left in /tmp, and a script that runs out of memory ends. What ends after seconds starts
# with half the work; what measures gets Java's own choice.
LASTING = "-XX:-UsePerfData -XX:+ExitOnOutOfMemoryError"
BRIEF = f"{LASTING} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# All that a script gets of the environment by sudo: variables choose what Java loads.
FOR_SUDO = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class UsageError(Exception):
    """What cannot be run, and the cure."""


@dataclass(frozen=True)
class Site:
    """What the role installed.

    :param bin: directory of Kafka's scripts.
    :param clusters: alias to identities, the one that is taken unasked first.
    """

    group: str
    bin: str
    java_home: str
    heap: str
    clusters: dict[str, list[str]]


def read_site() -> Site:
    """Read what the role installed."""
    try:
        return Site(**json.loads((HOME / "site.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{HOME}/site.json: {error}; run playbooks/kafka-as.yml") from None


def usage(site: Site) -> str:
    """What --help says."""
    return "\n".join([
        "usage: kafka-as CLUSTER [IDENTITY] SCRIPT [ARGUMENT ...]",
        "",
        f"Runs a script of {site.bin} with the brokers and credentials of a cluster,",
        f"for root and members of the group {site.group}. As an example:",
        "",
        f"  kafka-as {next(iter(site.clusters))} kafka-topics.sh --list",
        "",
        "clusters and their identities (the first one is taken unasked):",
        *(
            f"  {alias}: {', '.join(who) or 'nobody logs in'}"
            for alias, who in site.clusters.items()
        ),
        "",
        "scripts (.sh may be left out):",
        *(f"  {name}" for name in SCRIPTS),
        "",
        f"KAFKA_HEAP_OPTS replaces the heap of {site.heap}. The exit status is the script's, or",
        f"{FAILED} if it was not run.",
    ])  # fmt: skip


def nearest(word: str, choices: Iterable[str]) -> str:
    """The end of a message about an unknown word."""
    names = list(choices)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"


def named(word: str) -> str:
    """A script's name with its ending."""
    return word if word.endswith(".sh") else f"{word}.sh"


def chosen(site: Site, words: Sequence[str]) -> tuple[str, str, str, list[str]]:
    """What the command line asks for.

    :returns: alias, identity (empty where nobody logs in), script, its arguments.
    """
    alias, *rest = words
    if alias not in site.clusters:
        raise UsageError(f"unknown cluster '{alias}'; {nearest(alias, site.clusters)}")
    identities = site.clusters[alias]
    identity = identities[0] if identities else ""
    if rest and rest[0] in identities:
        identity, *rest = rest
    elif len(rest) > 1 and named(rest[0]) not in SCRIPTS and named(rest[1]) in SCRIPTS:
        here = nearest(rest[0], identities) if identities else "nobody logs in there: leave it out"
        raise UsageError(f"unknown identity '{rest[0]}' of {alias}; {here}")
    if not rest:
        raise UsageError(f"which script? kafka-as {alias} kafka-topics.sh --list, for example")
    script, arguments = named(rest[0]), list(rest[1:])
    if script in OTHERS:
        raise UsageError(
            f"{script} {OTHERS[script]}, so it needs nobody's credentials; run {site.bin}/{script}"
        )
    if script not in SCRIPTS:
        raise UsageError(f"unknown script '{rest[0]}'; {nearest(script, SCRIPTS)}")
    if not os.access(f"{site.bin}/{script}", os.X_OK):
        raise UsageError(f"{site.bin} holds no {script}; is it of Kafka's own distribution?")
    return alias, identity, script, arguments


def names_connection(script: str, argument: str) -> bool:
    """Whether an argument says where to connect, or how; scripts take unique beginnings, too."""
    name = argument.lstrip("-").partition("=")[0]
    if not argument.startswith("-"):
        return False
    return (
        name in CONNECTION
        or (script == "kafka-cluster.sh" and name in ("b", "c", "C", "config"))
        or any(
            whole.startswith(name) and len(name) > len(shared)
            for whole, shared in (("bootstrap-server", "bo"), ("command-config", "command-"))
        )
    )


def names_local(script: str, argument: str) -> bool:
    """Whether an argument names, or begins the name of, an option of :data:`LOCAL`."""
    name = argument.lstrip("-").partition("=")[0]
    if not argument.startswith("-") or not name or script in WHOLE.get(name, ()):
        return False
    return any(whole.startswith(name) for whole in LOCAL | CONNECTION)


def check_arguments(
    alias: str, script: str, arguments: Sequence[str], *, by_sudo: bool = False
) -> None:
    """Refuse a connection other than the alias's, and passwords that everyone could read.

    :param by_sudo: refuse what would be opened or loaded for the caller, too.
    """
    for argument in arguments:
        if by_sudo and names_local(script, argument):
            raise UsageError(
                f"'{argument.partition('=')[0]}' names a file, class or property, which sudo would "
                "open for its caller; leave it out, or be made a member of the group that may run "
                "kafka-as without sudo"
            )
        if names_connection(script, argument):
            raise UsageError(
                f"'{argument.partition('=')[0]}' is what kafka-as gives {script} for {alias}; "
                f"leave it out, or run {script} without kafka-as"
            )
        if PASSWORD.search(argument):
            raise UsageError(
                "a password among the arguments can be read by every user of this host; give it "
                "in a file that only you can read (kafka-configs.sh takes --add-config-file, with "
                "lines such as SCRAM-SHA-512=password=...)"
            )


def connection(site: Site, alias: str, identity: str) -> tuple[Path, str]:
    """The properties file of an identity, and the brokers it names; every secret can be read."""
    path = HOME / f"{alias}.{identity}.properties" if identity else HOME / f"{alias}.properties"
    try:
        text = path.read_text(encoding="ascii")
        for directory, name in REFERENCE.findall(text):
            # Kafka does not say so: it would use the literal text.
            with (Path(directory) / name).open("rb"):
                pass
    except PermissionError:
        raise UsageError(
            f"only root and members of the group {site.group} may use the credentials of {alias}: "
            f"use sudo, or be made a member (usermod --append --groups {site.group} NAME, then "
            "log in anew)"
        ) from None
    except OSError as error:
        raise UsageError(
            f"{error.filename}: {error.strerror}; run playbooks/kafka-as.yml"
        ) from None
    match = re.search(r"^bootstrap\.servers=(.+)$", text, re.MULTILINE)
    if match is None:
        raise UsageError(f"{path} names no brokers; run playbooks/kafka-as.yml")
    return path, match.group(1)


def run(words: Sequence[str]) -> NoReturn:
    """Become the script."""
    site = read_site()
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(usage(site) + "\n")
        raise SystemExit(0 if words else FAILED)
    alias, identity, script, arguments = chosen(site, words)
    # sudo itself sets SUDO_UID; a caller who can take it away runs what he likes as root anyway.
    by_sudo = os.environ.get("SUDO_UID", "0") != "0"
    check_arguments(alias, script, arguments, by_sudo=by_sudo)
    path, servers = connection(site, alias, identity)
    at = SCRIPTS[script]
    command = [
        f"{site.bin}/{script}",
        *arguments[:at], "--bootstrap-server", servers, "--command-config", str(path),
        *arguments[at:],
    ]  # fmt: skip
    measures = script.endswith(("perf-test.sh", "latency.sh"))
    environment = {
        "KAFKA_HEAP_OPTS": f"-Xmx{site.heap}",
        "KAFKA_JVM_PERFORMANCE_OPTS": LASTING if measures else BRIEF,
        **(FOR_SUDO if by_sudo else os.environ),
        "JAVA_HOME": site.java_home,
    }
    if by_sudo:
        # Java writes beside itself when it fails.
        os.chdir("/")
    # A dump of the JVM's memory would hold the password.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execve(command[0], command, environment)  # noqa: S606 (there is no shell in between)


def main() -> None:
    """Run the program."""
    try:
        run(sys.argv[1:])
    except (UsageError, OSError) as error:
        sys.stderr.write(f"kafka-as: {error}\n")
    raise SystemExit(FAILED)


if __name__ == "__main__":
    main()
