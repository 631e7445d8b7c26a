"""After a reboot of the host all services start again."""

from __future__ import annotations

import subprocess

import pytest
from labkit.controller import ENVIRONMENT, wait


@pytest.mark.long
def test_a_rebooted_host_mirrors_again_and_nothing_is_lost(lab, orders, payments, watch, measured):
    before = lab.compare("stopped")
    production = lab.start_producer("stopped", count=2000)
    production.finish()
    # systemd stops all processes before it ends them. A command that entered the host would stop
    # with its process, never see its end, and keep the namespace alive.
    watch()
    lab.prober.end()
    # Longer than systemd itself waits for a service that does not stop.
    again = subprocess.run(
        ["podman", "restart", "--time", "120", lab.mirror.container],
        check=False,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stderr
    wait("systemd", lambda: lab.mirror.run("systemctl", "show", check=False).status == 0)
    wait("both mirrors", lambda: orders.active and payments.active)
    lab.wait_mirrored("orders", ["stopped"])
    after = lab.compare("stopped")
    measured(acknowledged=after["acknowledged"], duplicated=after["duplicated"])
    assert after["acknowledged"] == before["acknowledged"] + 2000
    assert (after["lost"], after["altered"], after["foreign"]) == (0, 0, 0)
    timers = lab.mirror.run("systemctl", "is-active", "mirror-report.timer").stdout.strip()
    assert timers == "active"
