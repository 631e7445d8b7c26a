"""The playbook prune.yml removes the releases that nothing uses, and no other."""

from __future__ import annotations

RELEASES = "/opt/kafka/releases"


def test_only_releases_that_nothing_uses_are_removed(lab, orders, payments):
    host = lab.mirror
    used = host.shell(f"ls {RELEASES}").split()
    host.shell(f"mkdir -p {RELEASES}/kafka_2.13-3.9.1/bin")
    before = (orders.pid, payments.pid)
    lab.playbook("prune.yml")
    assert host.shell(f"ls {RELEASES}").split() == used
    assert (orders.pid, payments.pid) == before
