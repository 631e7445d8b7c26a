"""A run that cannot confirm a host says why at the third end, and leaves its mirror mirroring."""

from __future__ import annotations

import json
import re

import pytest
from labkit.answers import changed, complete
from labkit.controller import wait

TOPIC = "payments.sound"
# Java does not start with this, and nothing that can be asked of clusters tells.
WRONG = {"mirrormaker_jvm_options": ["-XX:+NoSuchOption"]}


def message(done):
    """What the failed task says, in one line."""
    found = re.split("^(?:fatal|failed): ", done.text, flags=re.MULTILINE)
    assert len(found) > 1, done.text[-3000:]
    return " ".join(found[-1].split())


@pytest.fixture(scope="module")
def failed(lab, orders, payments, outputs):
    """A run with options that no process starts with."""
    before = {
        unit.name: lab.mirror.read(f"/etc/systemd/system/{unit.name}")
        for unit in (orders, payments)
    }
    done = lab.playbook("mirrormaker.yml", WRONG, check=False)
    outputs.append(done.text)
    assert done.status != 0
    return {"units": before, "message": message(done)}


def test_the_third_end_is_told_with_its_cause_and_true_status(failed, measured):
    measured(message=failed["message"])
    assert re.search("its process ended [0-9]+ times", failed["message"])
    assert "exit status 1" in failed["message"]
    assert "Java does not start with these options" in failed["message"]


def test_the_last_good_configuration_is_back_and_mirrors(lab, orders, failed):
    assert "The configuration that was confirmed last is back and mirrors" in failed["message"]
    for name, text in failed["units"].items():
        assert lab.mirror.read(f"/etc/systemd/system/{name}") == text
    assert orders.show()["SubState"] == "running"
    lab.produce("orders", count=500)
    lab.wait_mirrored("orders", ["orders"])
    assert complete(lab.compare("orders")) == {}


def test_what_is_kept_is_root_s_alone(lab, failed):
    assert failed
    shown = lab.mirror.run("stat", "--format=%U %G %a", "/etc/mirrormaker/last-good.json").stdout
    assert shown.split() == ["root", "root", "600"]


@pytest.mark.long
def test_the_next_run_tries_again_and_the_former_inventory_changes_nothing(
    lab, orders, failed, outputs
):
    assert failed
    done = lab.playbook("mirrormaker.yml", WRONG, check=False)
    outputs.append(done.text)
    assert "its process ended" in message(done), "the difference is seen again"
    running = orders.pid
    again = lab.playbook("mirrormaker.yml")
    outputs.append(again.text)
    assert changed(again.stdout)[lab.mirror.name] == []
    assert orders.pid == running


def test_check_tries_the_mirror_s_own_login(lab, give_password):
    status, document = lab.report("check", "--flow", "payments")
    assert "hindered" not in {each["kind"] for each in document["findings"]}, document["findings"]
    give_password("mirror", "another")
    status, document = lab.report("check", "--flow", "payments")
    found = [each for each in document["findings"] if each["kind"] == "hindered"]
    assert (status, len(found)) == (2, 1), document["findings"]
    assert "cluster east" in found[0]["message"]
    assert "refuses identity payments" in found[0]["message"]


def test_lag_names_why_a_mirror_ends_again_and_again(lab, payments, give_password):
    give_password("mirror", "another")
    payments.control("restart")
    wait("three ends", lambda: payments.restarts >= 3)
    lab.produce(TOPIC, count=100)
    _, document = lab.report("lag", "--flow", "payments")
    (found,) = (each for each in document["findings"] if each["kind"] == "restarting")
    assert "the login is refused by source1:9092" in found["message"]
    assert "exit status 255" in found["message"]


def test_the_record_holds_no_word_of_the_journal_and_no_secret(lab):
    path = "/run/mirror-report-units/units.json"
    shown = lab.mirror.run("stat", "--format=%U %G %a", path).stdout
    assert shown.split() == ["root", "root", "644"]
    records = json.loads(lab.mirror.read(path))
    assert {each["name"] for each in records} == {"mirrormaker", "mirrormaker-payments"}
    assert {key for each in records for key in each} == {
        "name", "active", "sub", "at", "running_seconds", "history", "ended", "cause", "refused",
        "tried", "problem",
    }  # fmt: skip


def test_a_mirror_that_no_inventory_names_any_more_is_told(lab, payments):
    config = "/etc/mirror-report/config.yaml"
    text = lab.mirror.read(config)
    lab.mirror.write(config, text.replace("- mirrormaker-payments\n", "", 1))
    try:
        _, document = lab.report("lag", "--flow", "orders")
    finally:
        lab.mirror.write(config, text)
    assert payments.name in " ".join(
        each["message"] for each in document["findings"] if each["kind"] == "undeclared"
    )
