"""A worker that cannot run with a change is given up at the third end, and works again."""

from __future__ import annotations

import re

import pytest
from labkit.answers import complete

# Java does not start with this.
WRONG = {"mirrormaker_jvm_options": ["-XX:+NoSuchOption"]}


@pytest.fixture(scope="module")
def failed(lab, units, outputs):
    """A run with options that no process starts with: what it said, and what was before."""
    before = [unit.host.read(f"/etc/systemd/system/{unit.name}") for unit in units]
    running = [unit.pid for unit in units]
    done = lab.playbook("kafka-connect.yml", WRONG, check=False)
    outputs.append(done.text)
    assert done.status != 0
    found = re.search(r"connect-west on (\S+) is not confirmed: .*", done.text)
    assert found, done.text[-3000:]
    return {"before": before, "running": running, "wrong": found[1], "message": found[0]}


def test_the_third_end_is_told_with_its_cause_and_true_status(failed, measured):
    measured(message=failed["message"])
    assert re.search("its process ended [0-9]+ times, exit status 1", failed["message"])
    assert "Java does not start with these options" in failed["message"]
    assert "The configuration that was confirmed last is back and answers" in failed["message"]


def test_every_worker_works_and_the_next_was_not_touched(lab, units, failed):
    now = [unit.host.read(f"/etc/systemd/system/{unit.name}") for unit in units]
    assert now == failed["before"]
    same = {unit.host.name for unit, pid in zip(units, failed["running"], strict=True)
            if unit.pid == pid}  # fmt: skip
    assert same == {unit.host.name for unit in units} - {failed["wrong"]}
    lab.produce("orders", count=500)
    lab.wait_mirrored("orders", ["orders"])
    assert complete(lab.compare("orders", prefix="east.")) == {}
