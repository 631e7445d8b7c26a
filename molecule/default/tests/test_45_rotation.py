"""New passwords are deployed while data flows: one restart of each mirror, nothing lost."""

from __future__ import annotations

import pytest
from labkit.answers import complete
from labkit.hosts import Unit

pytestmark = pytest.mark.long


def test_new_passwords_are_one_restart_of_what_uses_them(lab, orders, payments, outputs, measured):
    before = lab.compare("orders")
    brokers = [Unit(lab.host(name), "kafka-broker.service") for name in ("source1", "target1")]
    running = [broker.pid for broker in brokers]
    since = orders.host.now()
    with lab.producing("orders", rate=200) as production:
        production.wait_more(200)
        for cluster, identity in (("east", "mirror"), ("west", "mirror"), ("east", "report")):
            lab.retire(cluster, identity)
        outputs.append(lab.playbook("site.yml", None, "-vvv", "--diff").text)
        production.wait_more(200)
    lab.wait_mirrored("orders", ["orders"])
    found = lab.compare("orders")
    measured(
        acknowledged=found["acknowledged"] - before["acknowledged"],
        duplicated=found["duplicated"] - before["duplicated"],
    )
    assert complete(found) == {}
    assert (orders.starts(since), payments.starts(since)) == (1, 1)
    assert [broker.pid for broker in brokers] == running, "a user with SCRAM needs no restart"


def test_the_report_logs_in_with_its_new_password(lab):
    # The other flow has lost records, which stays critical until its baseline is recorded again.
    status, document = lab.report("lag", "--flow", "orders")
    assert status == 0, document["findings"]
