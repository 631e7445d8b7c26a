"""Connectors follow the inventory: what differs is sent, and nothing else."""

from __future__ import annotations

import re

import pytest
from labkit.answers import changed

FOREIGN = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "tasks.max": "1",
    "source.cluster.alias": "elsewhere",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "nowhere:1",
}
INTERVAL = "sync.group.offsets.interval.seconds"


def config(rest, name):
    status, found = rest.ask(f"/connectors/{name}/config")
    assert status == 200
    return found


def started(worker, since):
    """Connectors that a worker has started, or tasks of theirs."""
    return set(re.findall(r"Starting (?:connector|task) (orders-[a-z]+)", worker.journal(since)))


@pytest.fixture
def foreign(rest):
    """A connector that is nobody's of ours."""
    assert rest.ask("/connectors/foreign/config", method="PUT", body=FOREIGN)[0] == 201
    yield config(rest, "foreign")
    assert rest.ask("/connectors/foreign", method="DELETE")[0] == 204


def test_one_changed_key_is_sent_to_the_connector_that_reads_it(lab, rest, units, foreign):
    before = config(rest, "orders-source")
    since = lab.desk.now()
    other = lab.changed(lambda v: v["mirror_flows"][0]["properties"].update({INTERVAL: 3}))
    first, *others = lab.mirrors
    tasks = changed(lab.playbook("kafka-connect.yml", other).stdout)
    assert len(tasks.pop(first.name)) == 1
    assert tasks == {host.name: [] for host in others}
    assert config(rest, "orders-checkpoint")[INTERVAL] == "3"
    assert config(rest, "orders-source") == before
    assert set().union(*(started(worker, since) for worker in units)) == {"orders-checkpoint"}
    assert config(rest, "foreign") == foreign


@pytest.mark.long
def test_a_connector_that_is_gone_comes_back(lab, rest):
    assert rest.ask("/connectors/orders-checkpoint", method="DELETE")[0] == 204
    lab.playbook("kafka-connect.yml")
    found = config(rest, "orders-checkpoint")
    assert (found[INTERVAL], found["kafka.mirror.flow"]) == ("2", "orders")
