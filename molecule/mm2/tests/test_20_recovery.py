"""A stopped and a killed process lose nothing."""

from __future__ import annotations

from labkit.answers import complete
from labkit.controller import wait


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
    with lab.producing("killed", rate=300) as production:
        for number in range(3):
            there = mirrored(lab, "killed")
            # Otherwise a kill would come before anything was mirrored.
            wait("300 records mirrored", lambda n=there: mirrored(lab, "killed") >= n + 300)
            before, restarts = mirror.pid, mirror.restarts
            assert before
            mirror.host.run("kill", "-KILL", str(before))
            wait("a new process", lambda pid=before: mirror.pid not in {0, pid}, 60)
            assert mirror.restarts == restarts + 1
            measured(round=number + 1, acknowledged=production.acknowledged())
    lab.wait_mirrored("orders", ["killed"])
    found = lab.compare("killed", prefix="east.")
    measured(acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert found["acknowledged"] >= 900
    assert complete(found) == {}
    assert found["moved"] == 0
    assert found["duplicated"] > 0, "no kill came between a copy and its commit"
