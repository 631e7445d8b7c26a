"""How old a stored report is, and until when it holds: no I/O.

A report holds for :data:`INTERVALS` intervals of its timer after it was written. Later nothing is
known of the mirror any more, whatever the report contains.
"""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.model import Finding, ReportError
from mirror_report.render import figures, rows

INTERVALS = 3
FORM = "%Y-%m-%dT%H:%M:%SZ"
KIND = "outdated"


def holds_until(made: datetime, duration_seconds: float, interval_seconds: float) -> datetime:
    """Until when a report holds, counted from when it was written.

    :param duration_seconds: how long it took to be made.
    :param interval_seconds: of the timer that makes reports.
    :raises OverflowError: no calendar reaches that time.
    """
    return made + timedelta(seconds=duration_seconds + INTERVALS * interval_seconds)


def shown(
    report: Mapping[str, Any], interval_seconds: float, now: datetime | None = None
) -> dict[str, Any]:
    """A report document as it is now: its age in the verdict, and unknown once it is too old.

    The verdict says as well how old the oldest scan of a compacted topic is. ``critical`` beats
    ``unknown`` here as everywhere: what an old report proved lost stays in the verdict.

    :param now: ``None``: the moment it was made.
    :raises ReportError: it has no valid time.
    """
    try:
        # When it was begun: its observations are of then, or of a little later.
        made = datetime.fromisoformat(report["generated_at"])
        made = made if made.tzinfo else made.replace(tzinfo=UTC)
        until = holds_until(made, report["duration_seconds"], interval_seconds)
    except (ValueError, TypeError, OverflowError):
        raise ReportError(
            "the last report does not say when it was made", "Make a new one: mirror-report run"
        ) from None
    now = made if now is None else now
    age = (now - made).total_seconds()
    plain = {**report, "age_seconds": max(0.0, age), "valid_until": until.strftime(FORM)}
    if problem := _problem(age, now > until, interval_seconds):
        findings = worst_first([problem, *(Finding(**finding) for finding in report["findings"])])
        plain["findings"] = [dataclasses.asdict(finding) for finding in findings]
        plain["verdict"] = dataclasses.asdict(verdict(findings))
    text = str(plain["verdict"]["text"])
    if (scanned := scan_age(report, now)) is not None:
        text += f"; compacted topics compared as a whole {figures.seconds(scanned)} ago"
    text += f" (made {f'{figures.seconds(age)} ago' if age >= 1 else 'now'})"
    return plain | {"verdict": plain["verdict"] | {"text": text}}


def scan_age(report: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds since the compacted topic that waits longest was compared as a whole."""
    at_ms = rows.oldest_scan(report)
    return None if at_ms is None else max(0.0, now.timestamp() - at_ms / 1000)


def _problem(age: float, late: bool, interval_seconds: float) -> Finding | None:
    action = (
        "systemctl list-timers mirror-report.timer; journalctl -u mirror-report; then "
        "sudo mirror-report run"
    )
    if late:
        return finding(
            KIND,
            f"the last report is too old: reports stopped, or take longer than {INTERVALS} "
            "intervals of their timer",
            action,
        )
    if age < -interval_seconds:
        return finding(
            KIND, "the last report bears a time to come: a clock is wrong", f"timedatectl; {action}"
        )
    return None
