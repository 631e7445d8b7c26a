"""Both engines beside each other: every record arrives, also after kills, and a group can go on.

Scenarios link to this file.
"""

from __future__ import annotations

import pytest
from labkit.answers import changed, classes, complete, parity
from labkit.controller import wait
from labkit.kills import kill_rounds

# Engine -> flow, which is also a topic, the topic of kills, and what stands before their copies.
FLOWS = {"mm1": ("payments", "payments.killed", ""), "mm2": ("orders", "killed", "east.")}
engine = pytest.mark.parametrize("engine", FLOWS)


def test_a_second_run_changes_nothing(lab, mm1, mm2, outputs):
    running = [unit.pid for unit in (mm1, mm2)]
    outputs.append(lab.playbook("site.yml").stdout)
    assert changed(outputs[-1]) == {host.name: [] for host in lab.hosts}
    assert [unit.pid for unit in (mm1, mm2)] == running


@engine
def test_every_record_arrives_once_and_unchanged(lab, engine, measured):
    flow, _, prefix = FLOWS[engine]
    lab.produce(flow, count=10000)
    lab.wait_mirrored(flow, [flow])
    found = lab.compare(flow, prefix=prefix)
    measured(acknowledged=found["acknowledged"], found=found["found"])
    assert (found["acknowledged"], found["duplicated"]) == (10000, 0)
    assert complete(found) == {}


@engine
def test_a_killed_process_comes_back_by_itself_and_loses_nothing(lab, request, engine, measured):
    flow, topic, prefix = FLOWS[engine]
    rounds = kill_rounds(lab, request.getfixturevalue(engine), flow, topic)
    found = lab.compare(topic, prefix=prefix)
    measured(rounds=rounds, acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert complete(found) == {}
    assert found["acknowledged"] >= sum(each.acknowledged for each in rounds)


def test_a_consumer_group_can_go_on_at_the_target(lab):
    ends = lab.probe({"do": "ends", "cluster": "east", "topics": ["orders"]})[0]["orders"]
    move = {"do": "move", "cluster": "east", "group": "billing", "offsets": {"orders": ends}}
    assert set(lab.probe(move)[0].values()) == {"NoError"}

    def states():
        _, document = lab.report("groups", "--flow", "orders")
        return [(row["group"], row["state"]) for row in document["groups"]]

    wait("the group's failover", lambda: states() == [("billing", "ready")])


@engine
def test_every_duplicate_of_the_kills_is_counted_and_nothing_else(lab, whole, engine, measured):
    flow, topic, prefix = FLOWS[engine]
    known = lab.compare(topic, prefix=prefix)
    row = parity(whole[1], topic, flow)
    measured(known=known["duplicated"], duplicates=row["counts"]["duplicate"])
    assert complete(known) == {}
    assert {"duplicate": 0} | classes(row) == {"duplicate": known["duplicated"]}
