"""Instances restart once, if they changed; a run after an aborted run completes it."""

from __future__ import annotations

import json

import pytest

FOLDER = "/etc/mirrormaker"
PAYMENTS = "/etc/mirrormaker-payments"
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


def restarted(lab, units, outputs, variables=None):
    """Those of the units that have another process after a run of the mirrors' playbook."""
    pids = [unit.pid for unit in units]
    outputs.append(lab.playbook("mirrormaker.yml", variables).text)
    return [unit for unit, pid in zip(units, pids, strict=True) if unit.pid != pid]


@pytest.fixture
def generation(lab):
    """Change what the payments' instance recorded of one credential."""
    path = f"{PAYMENTS}/generations.json"

    def write(value):
        generations = json.loads(lab.mirror.read(path))
        lab.mirror.write(path, json.dumps({**generations, min(generations): value}))

    return write


def runs_as_wanted(unit):
    """Whether the process has the fingerprint of its unit."""
    wanted = unit.host.shell(f"grep -o 'MM_FINGERPRINT=.*' /etc/systemd/system/{unit.name}")
    environment = unit.host.shell(f"tr '\\0' '\\n' < /proc/{unit.pid}/environ")
    return wanted.strip() in environment.splitlines()


@pytest.mark.long
def test_a_run_that_died_before_a_restart_is_healed_by_the_next(
    lab, orders, payments, base, changed, generation, outputs
):
    """Of the orders after the unit was written, of the payments after the generation was."""
    assert changed
    for name, content in base.items():
        lab.mirror.write(name, content)
    generation("0" * 16)
    assert restarted(lab, [orders, payments], outputs) == [orders, payments]
    assert live(orders, "linger.ms") != "35"
    assert runs_as_wanted(orders)
    assert runs_as_wanted(payments)


@pytest.mark.long
def test_a_run_that_died_between_files_is_healed_by_the_next(
    lab, orders, payments, changed, generation, outputs
):
    """Of the orders before the unit was written, of the payments after the credential was."""
    properties = f"{FOLDER}/producer.properties"
    lab.mirror.write(properties, changed["files"][properties])
    credential = f"{PAYMENTS}/credentials/east.payments.jaas"
    right = lab.mirror.read(credential)
    lab.mirror.write(credential, right.replace("password=", "password=x"))
    generation("1" * 16)
    assert restarted(lab, [orders, payments], outputs, with_linger(lab, 35)) == [orders, payments]
    assert lab.mirror.read(credential) == right
    assert live(orders, "linger.ms") == "35", "the value the run asked for is live"
    assert runs_as_wanted(orders)
    assert runs_as_wanted(payments)
