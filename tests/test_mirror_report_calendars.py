"""Calendars of the report's timers: validated by systemd, with the interval they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.loading import load
from tests.playing import run_module

MODULE = "roles/mirror_report/library/mirror_report_calendars.py"
DAY = 86_400
ANSWER = """
  Original form: yearly
    Next elapse: Fri 2027-01-01 00:00:00 UTC
{label:>15}: Sat 2028-01-01 00:00:00 UTC
       From now: 1 year 1 month left
"""


def validated(**calendars: str) -> dict[str, Any]:
    """Run the module as Ansible does."""
    return run_module(MODULE, {"calendars": calendars})


@pytest.mark.parametrize("label", ["Iter. #2", "Iteration #2"])
def test_times_are_read_as_each_systemd_writes_them(label: str) -> None:
    found = load(MODULE, "calendars").times(ANSWER.format(label=label))
    assert [time.year for time in found] == [2027, 2028]


@pytest.mark.parametrize(
    ("calendar", "seconds"),
    [
        ("*:0/15", 900),
        ("minutely", 60),
        ("*-*-* 03:00 Europe/Berlin", DAY + 3600),
        ("Mon..Fri *:*", 2 * DAY + 60),
        ("Mon..Fri *-*-* 8..17:0/15", 2 * DAY + 14 * 3600 + 900),
        ("yearly", 366 * DAY),
    ],
)
def test_interval_is_the_longest_time_between_two_runs(calendar: str, seconds: float) -> None:
    answer = validated(a=calendar)
    assert not answer["changed"]
    assert answer["intervals"] == {"a": seconds}


@pytest.mark.parametrize(
    ("calendar", "why"),
    [
        ("every 5 minutes", "is no calendar of systemd"),
        ("", "is no calendar of systemd"),
        ("--version", "is no calendar of systemd"),
        ("2020-01-01", "never elapses again"),
        ("2190-01-01", "elapses only once more"),
    ],
)
def test_a_calendar_that_starts_no_runs_is_refused_with_the_variable_and_the_cure(
    calendar: str, why: str
) -> None:
    answer = validated(mirror_report_schedule=calendar, mirror_report_lag_schedule="minutely")
    assert answer["failed"]
    assert answer["msg"].startswith(f"mirror_report_schedule: {calendar!r} {why}")
    assert "'*:0/5'" in answer["msg"]
    assert "mirror_report_lag_schedule" not in answer["msg"]


def test_every_wrong_calendar_is_named_at_once() -> None:
    message = validated(mirror_report_schedule="x", mirror_report_lag_schedule="y")["msg"]
    assert "mirror_report_schedule: 'x'" in message
    assert "mirror_report_lag_schedule: 'y'" in message
