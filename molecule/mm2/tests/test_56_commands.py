"""The commands of the report on its host, each as an operator calls it."""

from __future__ import annotations

import re

import pytest
from faults import FAULTS
from labkit.answers import classes, parity

BUNDLES = "/var/tmp/lab-bundles"  # noqa: S108
# What is told of records at rest: neither when nor in which order they came.
OF_CONTENT = ("altered", "duplicated", "foreign", "headers", "missing", "sound", "timestamp")


@pytest.mark.parametrize("command", ["lag", "show"])
def test_monitoring_gets_one_line_with_numbers(lab, damaged, command):
    assert damaged.answer[0] == 2
    done = lab.desk.run("mirror-report", command, "--format", "nagios", check=False)
    assert re.fullmatch(r"MIRROR CRITICAL - [^|\n]+ \|( \w+=\S+;;;0)+\n", done.stdout)
    status, document = lab.report(command)
    assert done.status == status == 2
    values = dict(re.findall(r" (\w+)=(\w+)", done.stdout.partition("|")[2]))
    found = [each for each in document["findings"] if not each["accounted"]]
    assert int(values["critical"]) == sum(each["severity"] == "critical" for each in found) > 0
    assert int(values["lag_records"]) == sum(row["lag_records"] for row in document["lag"])
    if command == "show":
        missing = sum(row["counts"]["missing"] for row in document["parity"])
        assert int(values["missing"]) == missing > 0


def test_a_group_s_failover_has_a_status(lab):
    status, document = lab.report("groups", "--flow", "orders")
    assert status == 0, document["findings"]
    (row,) = document["groups"]
    assert (row["group"], row["state"]) == ("billing", "ready")


def test_topics_at_rest_are_proved(lab, faulty, damaged, measured):
    assert damaged.answer[0] == 2
    status, document = lab.report("prove", "--flow", "orders")
    assert status == 2
    whole = parity(document, "late.one")
    assert (whole["status"], whole["verified_records"]) == ("verified", 4000)
    found = {name: classes(parity(document, faulty.topic(name))) for name in OF_CONTENT}
    measured(found=found)
    assert found == {name: dict(FAULTS[name].expected) for name in OF_CONTENT}


def test_two_sides_are_compared_by_their_digests_alone(lab, faulty, damaged, measured):
    assert damaged.answer[0] == 2
    bundles = [f"{BUNDLES}/{side}" for side in ("source", "target")]
    lab.desk.run("mkdir", "-p", BUNDLES)
    for bundle in bundles:
        side = bundle.rpartition("/")[2]
        argv = f"mirror-report digest --flow orders --side {side} > {bundle}"
        lab.desk.shell(argv)
    sizes = lab.desk.run("stat", "--format=%s", *bundles).stdout.split()
    status, document = lab.report("compare", *bundles)
    assert status == 2
    topics = {row["topic"]: row for row in document["topics"]}
    whole = topics["east.late.one"]
    assert (whole["status"], whole["verified_records"]) == ("verified", 4000)
    found = {name: topics[f"east.{faulty.topic(name)}"] for name in ("missing", "duplicated")}
    measured(bytes=sizes, topics=found)
    assert found["missing"]["fewer"] == FAULTS["missing"].expected["missing"]
    assert found["duplicated"]["more"] == FAULTS["duplicated"].expected["duplicate"]
