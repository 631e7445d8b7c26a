"""A change that one of two hosts cannot take: that host goes back, the other keeps what it has.

Scenarios link to this file as tests/test_wrong_change.py; their conftest defines the differences.
"""

from __future__ import annotations

import re

import pytest
from labkit.answers import changed, complete
from labkit.controller import wait

pytestmark = pytest.mark.long

LOGGER = "org.apache.kafka.clients.admin"
CHANGE = {"mirrormaker_log_levels": {LOGGER: "WARN"}}
# Java does not start with it.
OPTION = "-XX:+NoSuchOption"
BACK = "The configuration that was confirmed last is back and mirrors"


def configured(unit):
    """What the unit is started with: files as root reads them."""
    name = unit.name.removesuffix(".service")
    files = f"/etc/{name}/*.properties /etc/{name}/log4j* /etc/sysconfig/{name}"
    return unit.host.shell(f"cat {files} /etc/systemd/system/{unit.name}")


def both_mirror(lab, engine, units):
    """Both hosts take part, and everything arrives."""
    step = {"do": "members", "cluster": engine.cluster, "group": engine.group}
    wait("both in the group", lambda: len(set(lab.probe(step)[0].get("hosts", ()))) == 2)
    lab.produce("orders", count=500)
    lab.wait_mirrored("orders", ["orders"])
    assert [unit.show()["SubState"] for unit in units] == ["running", "running"]
    assert complete(lab.compare("orders", prefix=engine.prefix)) == {}


@pytest.fixture(scope="module")
def play(lab, engine, outputs):
    """Deploy the scenario's inventory with other variables beside it."""

    def run(variables, check=False):
        given = lab.changed(engine.change) | variables
        outputs.append((done := lab.playbook(engine.playbook, given, check=check)).text)
        return done

    return run


@pytest.fixture(scope="module", autouse=True)
def base(play):
    """Every host has the same before, and again afterwards."""
    play({}, check=True)
    yield
    play({}, check=True)


@pytest.fixture(scope="module")
def failed(play, units):
    """A run that the last host fails: what both had before, what they have now, what it said."""
    before = {unit.host.name: configured(unit) for unit in units}
    wrong = f"['{OPTION}'] if inventory_hostname == ansible_play_hosts_all | last else []"
    done = play(CHANGE | {"mirrormaker_jvm_options": f"{{{{ {wrong} }}}}"})
    assert done.status != 0
    found = re.search(r"mirrormaker on (\S+) is not confirmed: .*", done.text)
    assert found, done.text[-3000:]
    now = {unit.host.name: configured(unit) for unit in units}
    return {"before": before, "now": now, "wrong": found[1], "message": found[0]}


def test_the_host_that_fails_has_its_last_good_configuration_back(failed, measured):
    measured(message=failed["message"])
    assert re.search("its process ended [0-9]+ times, exit status 1", failed["message"])
    assert BACK in failed["message"]
    assert failed["now"][failed["wrong"]] == failed["before"][failed["wrong"]]


def test_the_host_confirmed_before_keeps_the_new_one(failed):
    (name,) = failed["now"].keys() - {failed["wrong"]}
    assert LOGGER in failed["now"][name]
    assert LOGGER not in failed["before"][name]


def test_both_hosts_mirror(lab, engine, units, failed):
    assert failed
    both_mirror(lab, engine, units)


def test_a_host_that_cannot_be_written_goes_on_untouched(lab, units, play):
    play({}, check=True)
    before = [(unit.pid, configured(unit)) for unit in units]
    for unit in units:
        # What is mounted cannot be replaced: all is written but the unit, which comes last.
        unit.host.shell(f"cd /etc/systemd/system && mount --bind {unit.name} {unit.name}")
    try:
        done = play(CHANGE)
    finally:
        for unit in units:
            unit.host.run("umount", f"/etc/systemd/system/{unit.name}")
    assert done.status != 0
    assert BACK in done.text
    assert [(unit.pid, configured(unit)) for unit in units] == before
    again = play({}, check=True).stdout
    assert changed(again) == {host.name: [] for host in lab.mirrors}
    assert [unit.pid for unit in units] == [pid for pid, _ in before]


def test_a_change_that_no_host_can_take_stops_at_the_first(lab, engine, units, play):
    """It goes back too where a former release deployed it, and the second is not touched."""
    before = {unit.host.name: (unit.pid, configured(unit)) for unit in units}
    for unit in units:
        unit.host.run("rm", "/etc/mirrormaker/last-good.json")
    done = play(CHANGE | {"mirrormaker_jvm_options": [OPTION]})
    assert done.status != 0
    assert BACK in done.text
    (failed,) = set(re.findall(r"mirrormaker on (\S+) is not confirmed: ", done.text))
    now = {unit.host.name: (unit.pid, configured(unit)) for unit in units}
    assert now[failed][1] == before[failed][1]
    assert now[failed][0] != before[failed][0]
    (other,) = now.keys() - {failed}
    assert now[other] == before[other]
    both_mirror(lab, engine, units)
