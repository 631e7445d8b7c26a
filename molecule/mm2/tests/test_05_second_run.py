"""A second run changes nothing: the scenario default shows it of what both engines share."""

from __future__ import annotations

import re

import pytest


@pytest.mark.long
def test_a_second_run_changes_nothing(lab, mirror):
    running = mirror.pid
    again = lab.playbook("site.yml").stdout
    changed = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", again, flags=re.MULTILINE)
    assert set(dict(changed)) >= {host.name for host in lab.hosts}
    assert {count for _, count in changed} == {"0"}, changed
    assert mirror.pid == running
