"""Units by what systemctl and journalctl print, and when a start is given up for lost."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from mirror_report import units
from mirror_report.commands.confirm import UnitWatch
from mirror_report.commands.units import look
from mirror_report.model import Cause, ReportError

REFUSED = (
    "[Consumer clientId=m-0] Connection to node -1 (source1/10.0.0.2:9092) failed authentication "
    "due to: Authentication failed"
)


def said(text: Any, second: int) -> dict[str, Any]:
    return {"MESSAGE": text, "__REALTIME_TIMESTAMP": str(second * 1_000_000), "_PID": "42"}


def ended(status: int, second: int, pid: str = "1") -> dict[str, Any]:
    message = f"Main process exited, code=exited, status={status}/n/a"
    more = {"MESSAGE_ID": units.PROCESS_EXIT, "EXIT_CODE": "exited", "EXIT_STATUS": str(status)}
    return said(message, second) | more | {"_PID": pid}


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """Stands for both programs: a function that says what they print from now on."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("systemctl", "journalctl"):
        (tmp_path / name).write_text(f"#!/bin/sh\ncat {tmp_path}/{name}.out\n")
        (tmp_path / name).chmod(0o755)

    def prints(sub: str, restarts: int, *entries: dict[str, Any], pid: int = 0) -> None:
        shown = {
            "LoadState": "loaded", "ActiveState": "active" if pid else "activating",
            "SubState": sub, "NRestarts": restarts, "MainPID": pid,
            "ExecMainStartTimestampMonotonic": 1,
        }  # fmt: skip
        lines = "".join(f"{key}={value}\n" for key, value in shown.items())
        (tmp_path / "systemctl.out").write_text(lines)
        journal = "".join(json.dumps(entry) + "\n" for entry in entries)
        (tmp_path / "journalctl.out").write_text(journal)

    return prints


def test_a_start_is_lost_at_the_third_end_with_its_first_cause_and_status(systemd):
    first = (said(REFUSED, 1), ended(255, 2))
    systemd("running", 0, *first, pid=0)
    watch = UnitWatch.of("m.service")
    systemd("auto-restart", 1, *first, said("x", 3), ended(1, 4))
    assert watch.failed() == ""
    systemd("auto-restart", 2, *first, said("x", 3), ended(1, 4), ended(1, 5))
    assert watch.failed() == (
        "its process ended 3 times, exit status 255: the login is refused by source1:9092"
    )


def test_ends_of_an_earlier_start_are_not_of_this_one(systemd):
    systemd("running", 7, pid=os.getpid())
    assert UnitWatch.of("m.service").failed() == ""


def test_without_a_unit_nothing_is_asked(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert (UnitWatch.of(None).failed(), UnitWatch.of(None).why()) == ("", "")
    with pytest.raises(ReportError):
        UnitWatch.of("m.service")


def test_a_process_cannot_say_that_it_has_ended(systemd):
    systemd("running", 0, ended(3, 1, pid="42"), said([104, 105, 255], 2), said(None, 3))
    assert [(line.text[:2], line.ended) for line in units.journal("m")] == [
        ("Ma", ""), ("hi", ""), ("", ""),
    ]  # fmt: skip


def test_a_unit_is_looked_at_with_its_ends_and_cause(systemd):
    entries = [entry for at in (10, 20, 30) for entry in (said(REFUSED, at), ended(255, at + 1))]
    systemd("auto-restart", 2, *entries)
    record = look("m", None, logins=False)
    assert (record.ended, record.cause) == (
        "exit status 255", Cause("login_refused", "source1:9092"),
    )  # fmt: skip
    systemd("auto-restart", 5, *entries)
    assert look("m", record, logins=False).ends == 3


def test_stops_by_hand_are_no_ends(systemd):
    systemd("running", 0, *(ended(143, at) for at in (10, 20, 30)), pid=os.getpid())
    assert look("m", None, logins=False).ends == 0
