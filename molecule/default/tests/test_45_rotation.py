"""New passwords reach brokers, report and mirrors while data flows: one restart, nothing lost."""

from __future__ import annotations

from labkit import complete


def test_new_passwords_are_one_restart_of_what_uses_them(lab, orders, payments, outputs, measured):
    before = lab.compare("orders")
    brokers = [host.run("pidof", "java").stdout for host in lab.hosts if host is not lab.mirror]
    since = orders.host.now()
    with lab.producing("orders", rate=500) as production:
        production.wait_more(500)
        for cluster, identity in (("east", "mirror"), ("west", "mirror"), ("east", "report")):
            lab.retire(cluster, identity)
        outputs.append(lab.playbook("site.yml", None, "-vvv", "--diff").text)
        production.wait_more(500)
    lab.wait_mirrored("orders", ["orders"])
    found = lab.compare("orders")
    measured(
        acknowledged=found["acknowledged"] - before["acknowledged"],
        duplicated=found["duplicated"] - before["duplicated"],
    )
    assert complete(found) == {}
    assert (orders.starts(since), payments.starts(since)) == (1, 1)
    again = [host.run("pidof", "java").stdout for host in lab.hosts if host is not lab.mirror]
    assert again == brokers, "a new password of a SCRAM user needs no restart of a broker"


def test_the_report_logs_in_with_its_new_password(lab):
    status, document = lab.report("lag")
    assert status == 0, document["findings"]
