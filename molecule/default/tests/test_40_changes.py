"""Instances restart once, if they changed; a run after an aborted run completes it."""

from __future__ import annotations

import json

import pytest

FOLDER = "/etc/mirrormaker"
UNIT = "/etc/systemd/system/mirrormaker.service"


def with_linger(lab, milliseconds):
    """Variables that give the instance of the orders another producer property."""

    def change(variables):
        properties = {"linger.ms": milliseconds}
        variables["mirrormaker_instances"]["mirrormaker"]["producer_properties"] = properties

    return lab.changed(change)


def live(unit, name):
    """A producer property of the running process, as it said itself when it started."""
    invocation = unit.show()["InvocationID"]
    argv = ["journalctl", "--no-pager", "--output=cat", f"_SYSTEMD_INVOCATION_ID={invocation}"]
    values = {
        line.partition(" = ")[2]
        for line in unit.host.run(*argv).stdout.splitlines()
        if line.strip().startswith(f"{name} = ")
    }
    assert len(values) == 1, f"{name}: {values}"
    return values.pop()


@pytest.fixture(scope="module")
def base(lab):
    """The files of the instance as the inventory wants them."""
    names = (f"{FOLDER}/producer.properties", UNIT)
    return {name: lab.mirror.read(name) for name in names}


@pytest.fixture(scope="module")
def changed(lab, orders, payments, base, outputs):
    """One run with a changed property and the most verbose output."""
    assert base
    before = {"orders": orders.pid, "payments": payments.pid, "since": orders.host.now()}
    done = lab.playbook("mirrormaker.yml", with_linger(lab, 35), "-vvv", "--diff")
    outputs.append(done.text)
    assert "linger.ms=35" in done.stdout, "the diff shows what is not secret"
    before["files"] = {name: lab.mirror.read(name) for name in base}
    return before


def test_a_changed_property_restarts_its_instance_once_and_is_live(changed, orders):
    assert orders.pid != changed["orders"]
    assert orders.starts(changed["since"]) == 1
    assert live(orders, "linger.ms") == "35"


def test_an_instance_with_nothing_changed_is_not_restarted(changed, payments):
    assert payments.pid == changed["payments"]
    assert payments.starts(changed["since"]) == 0


@pytest.fixture(scope="module")
def healed(lab, orders, payments, base, changed, outputs):
    """Two runs, each after two simulated aborts of an earlier run."""
    observed = []
    folder = "/etc/mirrormaker-payments"
    # Aborted between unit and restart; and between generation and credential.
    for name, content in base.items():
        lab.mirror.write(name, content)
    generations = json.loads(lab.mirror.read(f"{folder}/generations.json"))
    first = sorted(generations)[0]
    lab.mirror.write(f"{folder}/generations.json", json.dumps({**generations, first: "0" * 16}))
    pids, since = (orders.pid, payments.pid), orders.host.now()
    outputs.append(lab.playbook("mirrormaker.yml").text)
    observed.append((pids, since, live(orders, "linger.ms"), orders.pid, payments.pid))
    # Aborted between files and unit; and between credential and files.
    properties = f"{FOLDER}/producer.properties"
    lab.mirror.write(properties, changed["files"][properties])
    credential = f"{folder}/credentials/east.mirror.jaas"
    right = lab.mirror.read(credential)
    lab.mirror.write(credential, right.replace("password=", "password=x"))
    generations = json.loads(lab.mirror.read(f"{folder}/generations.json"))
    lab.mirror.write(f"{folder}/generations.json", json.dumps({**generations, first: "1" * 16}))
    pids, since = (orders.pid, payments.pid), orders.host.now()
    outputs.append(lab.playbook("mirrormaker.yml", with_linger(lab, 35)).text)
    observed.append((pids, since, live(orders, "linger.ms"), orders.pid, payments.pid))
    assert lab.mirror.read(credential) == right
    return observed


@pytest.mark.parametrize(
    ("run", "instance"),
    [
        pytest.param(0, "payments", id="generation-written"),
        pytest.param(1, "payments", id="credential-written"),
        pytest.param(1, "orders", id="files-written"),
        pytest.param(0, "orders", id="unit-written"),
    ],
)
def test_a_run_that_died_is_healed_by_the_next(healed, orders, payments, run, instance):
    pids, _, linger, orders_pid, payments_pid = healed[run]
    if instance == "orders":
        assert orders_pid != pids[0]
        assert (linger == "35") == (run == 1), "the value the run asked for is live"
    else:
        assert payments_pid != pids[1]
    unit = orders if instance == "orders" else payments
    wanted = unit.host.shell(f"grep -o 'MM_FINGERPRINT=.*' /etc/systemd/system/{unit.name}")
    environment = unit.host.shell(f"tr '\\0' '\\n' < /proc/{unit.pid}/environ")
    assert wanted.strip() in environment.splitlines()
