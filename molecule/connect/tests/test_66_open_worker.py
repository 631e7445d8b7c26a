"""A worker that lets everybody in does not stay."""

from __future__ import annotations

import pytest

DROP_IN = "/etc/systemd/system/connect-west.service.d/open.conf"
OPEN = "/run/connect-west/open.properties"


@pytest.fixture
def opened(lab, units):
    """Somebody's drop-in on the first host starts the worker without its guard."""
    worker = units[0]
    started = worker.show()["ExecStart"].partition("argv[]=")[2].partition(" ;")[0].split()
    strip = (
        f'/bin/sh -c "grep -v rest.extension.classes /etc/connect-west/worker.properties > {OPEN}"'
    )
    worker.host.run("mkdir", "-p", DROP_IN.rpartition("/")[0])
    worker.host.write(
        DROP_IN,
        f"[Service]\nExecStartPre={strip}\nExecStart=\nExecStart={started[0]} {OPEN}\n",
    )
    worker.host.run("systemctl", "daemon-reload")
    worker.control("restart")
    yield worker
    worker.host.run("rm", "-r", DROP_IN.rpartition("/")[0])
    lab.playbook("kafka-connect.yml")
    assert worker.active


def test_the_playbook_stops_a_worker_that_lets_everybody_in(lab, rest, opened):
    done = lab.playbook("kafka-connect.yml", check=False)
    assert done.status != 0
    assert "https://connect1:8084 lets in whoever asks" in done.text
    assert "The worker was stopped" in done.text
    assert not opened.active
    assert rest.ask("/connectors", user=None)[0] < 0
