"""A stopped and a killed process lose nothing."""

from __future__ import annotations

from labkit.answers import complete
from labkit.controller import wait
from labkit.kills import kill_rounds


def mirrored(lab, topic):
    return lab.ends("west", [f"east.{topic}"])[f"east.{topic}"]


def test_a_stopped_mirror_goes_on_where_it_was(lab, mirror, measured):
    with lab.producing("stopped", rate=1000) as production:
        wait("1000 records mirrored", lambda: mirrored(lab, "stopped") >= 1000)
        mirror.control("stop")
        stopped = mirror.show()
        assert (stopped["Result"], stopped["ActiveState"]) == ("success", "inactive")
        production.wait_more(1000)
    total = production.acknowledged()
    assert not mirror.active, "it came back by itself"
    assert mirrored(lab, "stopped") < total
    mirror.control("start")
    lab.wait_mirrored("orders", ["stopped"])
    found = lab.compare("stopped", prefix="east.")
    measured(acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert found["acknowledged"] == total
    assert complete(found) == {}
    assert found["moved"] == 0


def test_a_killed_process_comes_back_by_itself_and_loses_nothing(lab, mirror, measured):
    rounds = kill_rounds(lab, mirror, "orders", "killed")
    found = lab.compare("killed", prefix="east.")
    measured(rounds=rounds, acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert found["acknowledged"] >= sum(each.acknowledged for each in rounds)
    assert complete(found) == {}
    assert found["moved"] == 0
    assert found["duplicated"] > 0, "no kill came between a copy and its commit"
