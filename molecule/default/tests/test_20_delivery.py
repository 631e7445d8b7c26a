"""Every acknowledged record arrives byte for byte after stops, kills and restarts."""

from __future__ import annotations

from labkit.answers import complete, parity
from labkit.controller import wait
from labkit.kills import kill_rounds


def test_every_acknowledged_record_arrives_byte_for_byte_and_once(lab, measured):
    lab.produce("orders", count=20000)
    lab.wait_mirrored("orders", ["orders"])
    found = lab.compare("orders")
    measured(acknowledged=found["acknowledged"], found=found["found"])
    assert found["acknowledged"] == 20000
    assert complete(found) == {}
    assert found["duplicated"] == 0


def test_a_stop_is_clean_and_a_start_goes_on_without_loss_or_duplicate(lab, orders, measured):
    with lab.producing("stopped", rate=1500) as production:
        wait("3000 records", lambda: production.acknowledged() >= 3000)
        orders.control("stop")
        stopped = orders.show()
        assert stopped["Result"] == "success"
        assert stopped["ActiveState"] == "inactive"
        mirrored = lab.ends("west", ["stopped"])["stopped"]
        more = production.acknowledged() + 1500
        wait("1500 more records", lambda: production.acknowledged() >= more)
    assert orders.show()["ActiveState"] == "inactive", "it came back by itself"
    total = production.acknowledged()
    status, document = lab.report("lag", "--flow", "orders")
    lag = sum(row["lag_records"] for row in document["lag"])
    measured(acknowledged=total, mirrored_before_stop=mirrored, lag=lag)
    assert mirrored > 0
    assert lag == total - mirrored, "lag of a stopped mirror is what was produced since"
    assert status == 2, "records wait and nobody mirrors them"
    orders.control("start")
    lab.wait_mirrored("orders", ["stopped"])
    found = lab.compare("stopped")
    assert found["acknowledged"] == total
    assert complete(found) == {}
    assert found["duplicated"] == 0


def test_the_report_calls_a_whole_mirror_whole(whole, measured):
    status, document = whole
    assert status == 0, (document["verdict"], document["findings"])
    row = parity(document, "orders")
    assert row["source_records"] == row["verified_records"] == 20000
    measured(coverage=document["coverage"], seconds=document["duration_seconds"])


def test_a_killed_process_comes_back_by_itself_and_loses_nothing(lab, orders, measured):
    rounds = kill_rounds(lab, orders, "orders", "killed")
    found = lab.compare("killed")
    measured(rounds=rounds, acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert found["acknowledged"] >= sum(each.acknowledged for each in rounds)
    assert complete(found) == {}


def test_a_terminated_process_is_started_again(orders):
    before, restarts = orders.pid, orders.restarts
    orders.host.run("kill", "-TERM", str(before))
    wait("a new process", lambda: orders.pid not in {0, before}, 60)
    assert orders.restarts == restarts + 1


def test_records_that_another_client_copies_are_duplicates_too(lab):
    lab.wait_mirrored("orders", ["killed"])
    before = lab.compare("killed")["duplicated"]
    copy = {"topic": "killed", "target": "killed", "partition": 0, "begin": 10, "count": 2}
    step = {"do": "tamper", "cluster": "east", "into": "west"}
    lab.probe({**step, "copies": [{**copy, "how": "same"}]})
    assert lab.compare("killed")["duplicated"] == before + 2
