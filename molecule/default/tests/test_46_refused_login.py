"""A mirror comes back by itself when what ended its process is gone, however long that took."""

from __future__ import annotations

import re

import pytest
from labkit.answers import complete
from labkit.controller import wait

TOPIC = "payments.back"
# Systemd once gave up for good after 120 starts within an hour.
ENDS = 125
# Of systemd, about each end: how it ended, that it is started again, what it used.
SYSTEMD_LINES = 10


@pytest.fixture(scope="module", autouse=True)
def topic(lab):
    """A topic of these tests alone, so that everything in it is known."""
    for cluster in ("west", "east"):
        step = {"do": "create", "cluster": cluster, "topics": {TOPIC: {"num_partitions": 2}}}
        lab.probe(step)


@pytest.fixture
def ending(payments):
    """The instance with a process that ends at once, so that ends are many in little time."""
    folder = f"/run/systemd/system/{payments.name}.d"
    payments.host.run("mkdir", "-p", folder)
    payments.host.run(
        "sh", "-c", f"cat > {folder}/ending.conf",
        stdin="[Service]\nExecStart=\nExecStart=/bin/false\nRestartSec=0\n",
    )  # fmt: skip
    payments.host.run("systemctl", "daemon-reload")
    payments.host.run("systemctl", "restart", payments.name, check=False)
    yield payments
    payments.host.run("rm", "-rf", folder)
    payments.host.run("systemctl", "daemon-reload")


def allowed(unit, since):
    """Lines that the unit's rate limit lets it log from a time to now, and systemd's of each end.

    Journald lets more through where its disk has room: a unit that needs that floods it.
    """
    text = unit.host.read(f"/etc/systemd/system/{unit.name}")
    limits = dict(re.findall("^LogRateLimit(IntervalSec|Burst)=([0-9]+)$", text, re.MULTILINE))
    seconds = int(unit.host.now().removeprefix("@")) - int(since.removeprefix("@"))
    intervals = 1 + seconds // int(limits["IntervalSec"])
    return int(limits["Burst"]) * intervals + SYSTEMD_LINES * (unit.restarts + 1)


def test_no_number_of_ends_keeps_a_mirror_from_coming_back(lab, ending, measured):
    wait("ends of the process", lambda: ending.restarts >= ENDS)
    folder = f"/run/systemd/system/{ending.name}.d"
    ending.host.run("rm", "-rf", folder)
    ending.host.run("systemctl", "daemon-reload")
    wait("the mirror", lambda: ending.show()["SubState"] == "running")
    measured(ends=ending.restarts)
    lab.produce(TOPIC, count=500)
    lab.wait_mirrored("payments", [TOPIC])
    assert complete(lab.compare(TOPIC)) == {}


@pytest.mark.long
def test_a_login_refused_for_longer_than_the_former_limit_mends_itself(
    lab, payments, give_password, measured
):
    since = payments.host.now()
    give_password("mirror", "another")
    payments.control("restart")
    wait("ends of the process", lambda: payments.restarts >= ENDS, 3000, 5)
    give_password("mirror", lab.passwords["east"]["mirror"])
    wait("the mirror", lambda: payments.show()["SubState"] == "running")
    lines = len(payments.journal(since).splitlines())
    measured(ends=payments.restarts, lines_an_end=lines // payments.restarts)
    assert lines <= allowed(payments, since)
    lab.produce(TOPIC, count=500)
    lab.wait_mirrored("payments", [TOPIC])
    assert complete(lab.compare(TOPIC)) == {}
