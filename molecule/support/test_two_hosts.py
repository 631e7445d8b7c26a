"""One instance on two hosts: each mirrors while the other is down, and nothing is lost.

Scenarios link to this file as tests/test_two_hosts.py; their conftest defines the differences.
"""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest
from labkit.answers import changed, complete
from labkit.controller import ENVIRONMENT, wait


def podman(*argv):
    subprocess.run(["podman", *argv], check=True, capture_output=True, env=ENVIRONMENT)


def member_hosts(lab, engine):
    """Addresses of the instance's processes in their group."""
    step = {"do": "members", "cluster": engine.cluster, "group": engine.group}
    found = lab.probe(step)[0]
    return set(found["hosts"]) if found["state"] == "Stable" else set()


def outages(unit, since):
    """Beginning and end of each outage of the unit, by its journal, in microseconds.

    An outage lasts from systemd's stop, or the process's end, until a new process is in its group.
    """
    argv = ["journalctl", "--no-pager", "--output=json", f"--unit={unit.name}", f"--since={since}"]
    found, began, started = [], None, False
    for entry in map(json.loads, unit.host.run(*argv).stdout.splitlines()):
        at, text = int(entry["__REALTIME_TIMESTAMP"]), str(entry["MESSAGE"])
        if entry["SYSLOG_IDENTIFIER"] == "systemd":
            if re.match("Stopping |.*Main process exited", text):
                began, started = began or at, False
            started = started or text.startswith("Started ")
        elif began and started and "Successfully joined group" in text:
            found.append((began, at))
            began = None
    assert began is None, "it did not come back"
    return found


def test_one_host_dies_and_the_other_carries_on(lab, engine, units, measured):
    first, second = units
    with lab.producing("orders", rate=1000):
        topic = f"{engine.prefix}orders"
        wait("2000 records mirrored", lambda: lab.ends("west", [topic])[topic] >= 2000)
        assert len(member_hosts(lab, engine)) == 2, "both are at work"
        podman("kill", first.host.container)
        began = time.monotonic()
        ends = lab.probe({"do": "ends", "cluster": "east", "topics": ["orders"]})[0]["orders"]

        def passed():
            position = lab.probe(lab.positions("orders"))[0]["orders"]
            return all(position.get(partition, 0) > end for partition, end in ends.items())

        wait("the other host mirrors every partition", passed, 180)
        measured(seconds_until_it_carried_on=round(time.monotonic() - began, 1))
        assert second.restarts == 0, "it never stopped"
    lab.wait_mirrored("orders", ["orders"])
    found = lab.compare("orders", prefix=engine.prefix)
    measured(acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert complete(found) == {}


def test_the_host_that_came_back_takes_part_again(lab, engine, units):
    first, _ = units
    podman("start", first.host.container)
    wait(
        "its unit",
        lambda: first.host.run("systemctl", "is-active", first.name, check=False).status == 0,
    )
    wait("both in the group", lambda: len(member_hosts(lab, engine)) == 2)


def test_a_change_goes_through_one_host_at_a_time(lab, engine, units, outputs, measured):
    before = lab.compare("orders", prefix=engine.prefix)
    since = "@" + lab.desk.shell("date +%s.%N").strip()
    with lab.producing("orders", rate=500) as production:
        production.wait_more(500)
        outputs.append(lab.playbook(engine.playbook, lab.changed(engine.change)).stdout)
        production.wait_more(500)
    lab.wait_mirrored("orders", ["orders"])
    (first,), (second,) = (outages(unit, since) for unit in units)
    found = lab.compare("orders", prefix=engine.prefix)
    measured(
        acknowledged=found["acknowledged"] - before["acknowledged"],
        duplicated=found["duplicated"] - before["duplicated"],
        seconds_away=[round((end - begin) / 1e6, 1) for begin, end in (first, second)],
    )
    assert first[1] < second[0] or second[1] < first[0], "both were away at once"
    assert complete(found) == {}
    for unit in units:
        files = unit.host.shell(f"cat /etc/{unit.name.removesuffix('.service')}/*.properties")
        assert "linger.ms=35" in files


@pytest.mark.long
def test_a_second_run_changes_nothing(lab, engine, units, outputs):
    assert outputs, "the change was made"
    running = [unit.pid for unit in units]
    again = lab.playbook(engine.playbook, lab.changed(engine.change)).stdout
    assert changed(again) == {host.name: [] for host in lab.mirrors}
    assert [unit.pid for unit in units] == running
