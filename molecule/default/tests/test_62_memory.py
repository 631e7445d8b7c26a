"""When a host runs out of memory, the report is ended and no mirror."""

from __future__ import annotations

import re

import pytest
from labkit.controller import wait
from labkit.hosts import Unit
from labkit.memory import MIB, Limit

# Prints its OOM score, waits for a file, then allocates so many megabytes at once: step by step the
# kernel makes room for minutes, with code of other programs that they soon need again.
GROW = """
import os, sys, time
print("SCORE", open("/proc/self/oom_score_adj").read().strip(), flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
held = b"x" * (int(sys.argv[1]) * 1_000_000)
print("HELD", flush=True)
"""
LEFT = 80
"""Mebibytes of the host that are free."""


@pytest.fixture
def limit(lab):
    """The limit of the mirror's host; none afterwards, as before."""
    limit = Limit(lab.mirror)
    yield limit
    limit.set(limit.unlimited)


def score(host, pid):
    """What the kernel adds to how much a process holds when it chooses one to end."""
    return int(host.read(f"/proc/{pid}/oom_score_adj"))


def journal(host, unit, since):
    """What a unit said, and what systemd said of it."""
    argv = ["journalctl", "--no-pager", "--output=cat", "--since", since, "--unit", unit]
    return host.run(*argv).stdout


@pytest.mark.parametrize("name", ["mirror-report", "mirror-report-lag"])
def test_the_report_is_ended_while_it_is_small_and_no_mirror_is(
    lab, orders, payments, limit, measured, name
):
    host = lab.mirror
    mirrors = {unit: (unit.pid, unit.restarts) for unit in (orders, payments)}
    pids = [pid for pid, _ in mirrors.values()]
    sizes = [
        int(host.shell(f"awk '/VmRSS/ {{print $2}}' /proc/{pid}/status")) // 1024 for pid in pids
    ]
    script, go = "/usr/local/lib/lab-grow.py", "/usr/local/lib/lab-grow.go"
    copy = f"{name}-lab-grow.service"
    # The unit as it is, except for what it runs.
    text = host.read(f"/etc/systemd/system/{name}.service")
    command = f"/usr/bin/python3 {script} 400 {go}"
    text = re.sub(r"^ExecStart=.*$", f"ExecStart={command}", text, flags=re.MULTILINE)
    text = re.sub(r"^(StandardOutput|LogLevelMax|SyslogLevel)=.*\n", "", text, flags=re.MULTILINE)
    try:
        host.shell("mkdir -p /usr/local/lib")
        host.write(script, GROW)
        host.write(f"/run/systemd/system/{copy}", text)
        host.run("systemctl", "daemon-reload")
        since = host.now()
        host.run("systemctl", "start", "--no-block", copy)
        wait("the report", lambda: "SCORE" in journal(host, copy, since))
        # The kernel may end a mirror too that wants memory just when the report is being ended.
        host.run("kill", "-STOP", *map(str, pids))
        limit.set(limit.held() + LEFT * MIB)
        host.write(go, "")
        wait("its end", lambda: Unit(host, copy).show()["ActiveState"] in {"failed", "inactive"})
        said = journal(host, copy, since)
    finally:
        limit.set(limit.unlimited)
        host.run("kill", "-CONT", *map(str, pids), check=False)
        host.shell(f"rm -f {script} {go} /run/systemd/system/{copy}; systemctl daemon-reload")
        host.run("systemctl", "reset-failed", copy, check=False)
    scores = [score(host, pid) for pid in pids]
    measured(report=re.findall(r"SCORE (-?\d+)", said)[0], mirrors=scores, mib=sizes)
    assert "HELD" not in said, "the limit was reached"
    assert re.search("status=9/KILL|oom-kill", said), said
    assert re.findall(r"SCORE (-?\d+)", said) == ["1000"]
    # Where the kernel does not allow a lower score, systemd leaves it unchanged.
    assert max(scores) <= 0
    assert min(sizes) > LEFT, "each of the mirrors held more than it did"
    assert {unit: (unit.pid, unit.restarts) for unit in mirrors} == mirrors
