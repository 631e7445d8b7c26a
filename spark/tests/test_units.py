"""Units by what systemctl and journalctl print, and when a start is given up for lost."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

import pytest

from mirror_report import units
from mirror_report.cli import main
from mirror_report.commands.units import answer
from mirror_report.model import Cause, ReportError
from mirror_report.processes.unit_record import unit_record
from mirror_report.processes.watch import UnitWatch

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

    def prints(
        sub: str, restarts: int, *entries: dict[str, Any], pid: int = 0, runs: int = 60
    ) -> None:
        shown = {
            "LoadState": "loaded", "ActiveState": "active" if pid else "activating",
            "SubState": sub, "NRestarts": restarts, "MainPID": pid,
            "ExecMainStartTimestampMonotonic": max(1, int((time.monotonic() - runs) * 1e6)),
        }  # fmt: skip
        lines = "".join(f"{key}={value}\n" for key, value in shown.items())
        (tmp_path / "systemctl.out").write_text(lines)
        # As journalctl does it: line separators of Unicode stand there as they are.
        journal = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
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


@pytest.mark.parametrize("runs", [0, 60, 100_000])
def test_ends_before_the_watch_are_not_of_this_run(systemd, runs):
    former = [ended(255, second) for second in range(57)]
    systemd("running", 57, *former, pid=os.getpid(), runs=runs)
    watch = UnitWatch.of("m.service")
    assert watch.failed() == ""
    systemd("auto-restart", 59, *former, *(ended(1, second) for second in (90, 91, 92)))
    assert watch.failed() == "its process ended 3 times, exit status 1"


def test_an_end_that_the_watch_begins_with_is_not_of_this_run(systemd):
    systemd("auto-restart", 56, *(ended(255, second) for second in range(57)))
    watch = UnitWatch.of("m.service")
    systemd("running", 57, pid=os.getpid())
    assert watch.failed() == ""
    systemd("auto-restart", 59)
    assert watch.failed() == "its process ended 3 times"


def test_ends_between_a_restart_and_the_watch_are_of_this_run(systemd):
    entries = [ended(1, second) for second in (1, 2, 3)]
    systemd("running", 2, *entries[:2], pid=os.getpid())
    watch = UnitWatch.of("m.service", 0)
    systemd("auto-restart", 2, *entries)
    assert watch.failed() == "its process ended 3 times, exit status 1"


def test_units_say_of_one_that_is_lost_why_and_of_others_nothing(systemd, capsys):
    entries = [ended(1, second) for second in (1, 2, 3)]
    systemd("auto-restart", 2, *entries)
    assert main(["units", "--ended", "m.service", "--ended-before", "0"]) == 0
    assert capsys.readouterr().out == "its process ended 3 times, exit status 1\n"
    assert main(["units", "--ended", "m.service", "--ended-before", "1"]) == 0
    assert capsys.readouterr().out == ""


def test_without_a_unit_nothing_is_asked(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert (UnitWatch.of(None).failed(), UnitWatch.of(None).why()) == ("", "")
    with pytest.raises(ReportError):
        UnitWatch.of("m.service")


def test_a_process_cannot_say_that_it_has_ended(systemd):
    systemd("running", 0, ended(3, 1, pid="42"), said([104, 105, 255], 2), said(None, 3))
    assert [(line.text[:2], line.ended) for line in units.journal_of("m")] == [
        ("Ma", ""), ("hi", ""), ("", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("a\u2028b\x85c", "a\u2028b\x85c"),
        (["a", "b"], "a\nb"),
        ([[104, 105], "b", None], "hi\nb\n"),
        ([104, 999], "\n"),
        ([], ""),
        ({"a": 1}, ""),
        (7, ""),
        ("x" * 199_999, None),
    ],
)
def test_an_entry_that_a_process_wrote_as_it_likes_costs_itself_alone(systemd, message, text):
    systemd("running", 0, said("before", 1), said(message, 2), said("after", 3))
    texts = [line.text for line in units.journal_of("m")]
    assert texts == ["before", *([] if text is None else [text]), "after"]


def test_a_long_entry_is_asked_for_whole(systemd, tmp_path):
    systemd("running", 0, said("x" * 9000 + "end", 1))
    # What is above 4 KiB is null, unless it is asked for.
    (tmp_path / "journalctl").write_text(
        f"#!/bin/sh\ncase $* in *--all*) cat {tmp_path}/journalctl.out;; *) echo '{{}}';; esac\n"
    )
    (line,) = units.journal_of("m")
    assert line.text.endswith("xend")


@pytest.mark.parametrize(
    "more",
    [
        {"__REALTIME_TIMESTAMP": ["1", "2"]},
        {"__REALTIME_TIMESTAMP": "soon"},
        {"MESSAGE_ID": [units.PROCESS_EXIT], "_PID": ["1"]},
        {"EXIT_STATUS": [1, 2], "MESSAGE_ID": units.PROCESS_EXIT, "_PID": "1"},
    ],
)
def test_no_field_of_an_entry_hides_the_others(systemd, more):
    systemd("auto-restart", 1, said("x", 1) | more, said(REFUSED, 2), ended(255, 3))
    record = unit_record("m", None, logins=False)
    assert record.cause == Cause("login_refused", "source1:9092")


@pytest.mark.parametrize("text", ["[]", "7", "{", '{"MESSAGE": "a"}', "[" * 9999])
def test_what_is_no_entry_is_passed_over(systemd, tmp_path, text):
    systemd("running", 0, said("before", 1))
    with (tmp_path / "journalctl.out").open("a") as journal:
        journal.write(f"{text}\n{json.dumps(said('after', 3))}\n")
    assert [line.text for line in units.journal_of("m")] == ["before", "after"]


def test_a_journal_that_does_not_answer_is_an_error(systemd, tmp_path):
    systemd("running", 0)
    (tmp_path / "journalctl").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ReportError, match="journalctl does not answer"):
        units.journal_of("m")


def test_a_unit_that_cannot_be_asked_for_hides_no_other(systemd, tmp_path, monkeypatch):
    for name in ("bad", "good"):
        (tmp_path / f"{name}.service").write_text(units.UNIT_MARKER)
    monkeypatch.setattr(units, "UNITS", tmp_path)
    monkeypatch.setattr(units, "RECORD", tmp_path / "units.json")
    systemd("auto-restart", 1, said(REFUSED, 1), ended(255, 2))
    journal = (
        (tmp_path / "journalctl").read_text().replace("cat", "case $* in *bad*) exit 1;; esac; cat")
    )
    (tmp_path / "journalctl").write_text(journal)
    answer(argparse.Namespace(record=True, logins=False, ended=None))
    bad, good = units.read_records(units.RECORD) or ()
    assert bad.problem == "journalctl does not answer (CalledProcessError) on bad.service"
    assert (good.problem, good.cause) == ("", Cause("login_refused", "source1:9092"))


def test_a_unit_is_recorded_with_its_ends_and_cause(systemd):
    entries = [entry for at in (10, 20, 30) for entry in (said(REFUSED, at), ended(255, at + 1))]
    systemd("auto-restart", 2, *entries)
    record = unit_record("m", None, logins=False)
    assert (record.ended, record.cause) == (
        "exit status 255", Cause("login_refused", "source1:9092"),
    )  # fmt: skip
    systemd("auto-restart", 5, *entries)
    assert unit_record("m", record, logins=False).ends == 3


AWAY = (
    "WARN [Consumer clientId=m-0] Connection to node -1 (source1/10.0.0.2:9092) could not be "
    "established. Node may not be available. (org.apache.kafka.clients.NetworkClient)"
)


def test_a_broker_that_was_away_long_ago_is_no_cause_of_today(systemd):
    systemd("running", 0, said(AWAY, 1), pid=os.getpid())
    assert unit_record("m", None, logins=False).cause is None
    systemd("running", 0, said(AWAY, int(time.time())), pid=os.getpid())
    assert unit_record("m", None, logins=False).cause == Cause("unreachable", "source1:9092")


def test_the_last_end_keeps_its_cause(systemd):
    systemd("failed", 0, said(AWAY, 1), ended(1, 2))
    assert unit_record("m", None, logins=False).cause == Cause("unreachable", "source1:9092")


def test_stops_by_hand_are_no_ends(systemd):
    systemd("running", 0, *(ended(143, at) for at in (10, 20, 30)), pid=os.getpid())
    assert unit_record("m", None, logins=False).ends == 0
