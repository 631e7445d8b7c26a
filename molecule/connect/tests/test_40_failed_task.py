"""A task that fails is reported with its cause, and runs again when that is gone."""

from __future__ import annotations

import pytest
from labkit.controller import wait

pytestmark = pytest.mark.long
WRITE = {
    "principal": "User:west-mirror",
    "resource": "topic",
    "name": "east.orders",
    "pattern": "literal",
    "operation": "WRITE",
}
CAUSE = "Not authorized to access topics: [east.orders]"


@pytest.fixture(scope="module")
def failed(lab, rest):
    """A task that may not write any more; what mends its cause."""
    step = {"cluster": "west", "rows": [WRITE]}
    assert lab.probe({"do": "revoke", **step})[0] == 1
    lab.produce("orders", count=20)

    def states():
        status, found = rest.ask("/connectors/orders-source/status")
        assert status == 200
        return {task["state"] for task in found["tasks"]}

    wait("a task failed", lambda: "FAILED" in states())

    def mend():
        lab.probe({"do": "grant", **step})
        return states

    yield mend
    lab.probe({"do": "grant", **step})


@pytest.mark.usefixtures("failed")
def test_the_report_names_the_task_and_why_it_failed(lab):
    status, document = lab.report("lag")
    found = [each for each in document["findings"] if each["kind"] == "task_failed"]
    assert status == 2
    assert found
    for finding in found:
        assert "of orders-source" in finding["message"]
        assert CAUSE in finding["message"]
        assert "POST /connectors/orders-source/restart?includeTasks=true" in finding["action"]


@pytest.mark.usefixtures("failed")
def test_the_playbook_stops_at_what_the_mirror_lacks(lab):
    done = lab.playbook("kafka-connect.yml", check=False)
    assert done.status != 0
    assert "User:west-mirror (identity mirror) lacks WRITE on topic east.orders" in done.text


def test_it_runs_again_when_its_cause_is_gone(lab, failed):
    states = failed()
    lab.playbook("kafka-connect.yml")
    assert states() == {"RUNNING"}
    lab.wait_mirrored("orders", ["orders"])
    _, document = lab.report("lag")
    assert [each for each in document["findings"] if each["kind"] == "task_failed"] == []
