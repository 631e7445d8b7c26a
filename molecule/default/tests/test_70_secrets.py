"""Passwords stand only where a service or root reads them."""

from __future__ import annotations

import json

import pytest
from labkit.site import words

# Searches for the part of each password that no quoting changes. Words come on standard input.
SEARCH = r"""
import json, os, subprocess, sys
words = [word.encode() for word in json.load(sys.stdin)]
hits = {}
def check(place, content):
    if any(word in content for word in words):
        hits.setdefault(place, 0)
        hits[place] += 1
def output(*argv):
    return subprocess.run(argv, capture_output=True).stdout
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                check(f"process {name}", file.read())
        except OSError:
            pass
check("systemctl show", output("systemctl", "show", "--all", "*"))
check("systemctl cat", output("systemctl", "cat", "*.service", "*.timer"))
check("journal", output("journalctl", "--no-pager", "--all", "--output=export"))
searched = root_only = 0
for folder, _, names in os.walk("/"):
    if folder.startswith(("/proc", "/sys", "/dev", "/usr/lib/jvm", "/var/cache/apt")):
        continue
    for name in names:
        path = os.path.join(folder, name)
        try:
            found = os.lstat(path)
            if found.st_mode & 0o170000 != 0o100000 or found.st_size > 1 << 24:
                continue
            report = path.startswith("/var/lib/mirror-report/")
            open_ = found.st_mode & 0o004
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            continue
        if open_ or report or found.st_mode & 0o040 and found.st_gid:
            searched += 1
            check(path, content)
        elif any(word in content for word in words):
            root_only += 1
print(json.dumps({"hits": hits, "searched": searched, "root_only": root_only}))
"""


@pytest.fixture(scope="module")
def canaries(lab):
    """The part without special characters of every password that logs in or did before."""
    passwords = [
        lab.passwords[cluster][identity]
        for cluster in ("east", "west")
        for identity in ("mirror", "payments", "report")
    ]
    return [words(each) for each in (*passwords, *lab.retired)]


def search(host, canaries):
    """Search processes, systemd, journal and files of a host for words."""
    script = "import sys; exec(sys.argv[1])"
    done = host.run("python3", "-c", script, SEARCH, stdin=json.dumps(canaries))
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["mirror1", "source1", "target1"])
def test_no_password_stands_where_others_can_read_it(lab, canaries, measured, name):
    host = lab.host(name)
    found = search(host, canaries)
    measured(host=name, searched=found["searched"], root_only=found["root_only"])
    assert found["hits"] == {}
    assert found["searched"] > 1000
    if name == "mirror1":
        assert found["root_only"] >= 4, "the search finds them where they belong"


@pytest.mark.long
@pytest.mark.parametrize("name", ["mirror1", "source1", "target1"])
def test_a_retired_password_stands_nowhere_at_all(lab, name):
    assert len(lab.retired) == 3, "passwords were changed before"
    host = lab.host(name)
    found = search(host, [words(each) for each in lab.retired])
    assert found["hits"] == {}
    assert found["root_only"] == 0


def test_no_password_is_printed_by_ansible(outputs, canaries):
    assert len(outputs) >= 4, "the changes and refusals ran before"
    for word in canaries:
        assert not [text for text in outputs if word in text]


def test_no_process_ever_carried_a_password(watch):
    seen = watch()
    assert seen["observations"] > 100
    assert seen["hits"] == []


def test_no_report_shows_a_password(lab, canaries):
    shown = [
        lab.mirror.run("mirror-report", "show", *arguments, check=False).text
        for arguments in ([], ["--json"])
    ]
    shown.append(lab.mirror.shell("cat /var/lib/mirror-report/reports/*"))
    assert all(len(text) > 100 for text in shown)
    for word in canaries:
        assert not [text for text in shown if word in text]


def test_a_user_of_the_host_reads_no_secret(lab, orders, canaries, measured):
    host = lab.mirror
    places = host.shell(
        "find /etc/mirrormaker* /etc/mirror-report /run/credentials -type f "
        "\\( -name '*.jaas' -o -name '*.password' \\)"
    ).split()
    assert len(places) >= 8, "there is something to read"
    pid = orders.pid
    transient = (
        "systemd-run --quiet --wait --pipe --property=LoadCredential=x:"
        "/etc/mirrormaker/credentials/east.mirror.password sh -c 'cat $CREDENTIALS_DIRECTORY/x'"
    )
    attempts = [
        *(f"cat {place}" for place in places),
        *(f"cat /proc/{pid}/{name}" for name in ("environ", "mem", "cmdline", "maps")),
        f"ls -l /proc/{pid}/fd",
        "systemctl show mirrormaker mirror-report",
        "systemctl cat mirrormaker",
        "journalctl --no-pager --all -u mirrormaker -u mirrormaker-payments -u mirror-report",
        transient,
        transient.replace("systemd-run", "systemd-run --user"),
        f"kill -ABRT {pid}",
        "mirror-report check",
    ]
    said = [
        host.run("runuser", "-u", "nobody", "--", "sh", "-c", attempt, check=False)
        for attempt in attempts
    ]
    measured(attempts=len(said), refused=sum(result.status != 0 for result in said))
    for attempt, result in zip(attempts, said, strict=True):
        assert not [word for word in canaries if word in result.text], attempt
    assert all(result.status != 0 for result in said[: len(places)])
    assert orders.pid == pid
    limit = host.run("prlimit", f"--pid={pid}", "--core", "--noheadings", "--output=HARD").stdout
    assert limit.strip() == "0", "a crash writes no memory to disk"
