"""A second run changes nothing: the scenario default shows it of what both engines share."""

from __future__ import annotations

import pytest
from labkit.answers import changed


@pytest.mark.long
def test_a_second_run_changes_nothing(lab, mirror):
    running = mirror.pid
    again = lab.playbook("site.yml").stdout
    assert changed(again) == {host.name: [] for host in lab.hosts}
    assert mirror.pid == running
