"""A stored report has an age: it is shown with it, and is unknown once it is too old."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from sample_reports import parity, report, whole

from mirror_report.checks.verdict import finding, verdict
from mirror_report.model import Report, ReportError
from mirror_report.render import freshness, nagios
from mirror_report.render import json as render_json

MADE = datetime.fromisoformat("2026-11-21T10:00:00Z")
INTERVAL = 900.0
HOLDS = timedelta(seconds=12.5 + 3 * INTERVAL)
"""It took 12.5 s to be made, and holds from then on."""


def shown(base: Report, age: timedelta | None) -> dict[str, Any]:
    plain = render_json.document(base)
    return freshness.shown(plain, INTERVAL, None if age is None else MADE + age)


@pytest.mark.parametrize(
    ("age", "ago"),
    [(None, "now"), (timedelta(seconds=200), "3 m 20 s ago"), (HOLDS, "45 m 12 s ago")],
)
def test_a_report_says_its_age_and_holds_for_three_intervals(
    age: timedelta | None, ago: str
) -> None:
    plain = shown(whole(), age)
    assert plain["verdict"] == {
        "exit_code": 0, "severity": "ok", "text": f"whole: no finding (made {ago})",
    }  # fmt: skip
    assert plain["age_seconds"] == (age or timedelta()).total_seconds()
    assert plain["valid_until"] == "2026-11-21T10:45:12Z"


def test_it_says_how_old_the_oldest_scan_of_a_compacted_topic_is() -> None:
    made_ms = int(MADE.timestamp() * 1000)
    topics = [parity("t", scanned_at_ms=made_ms - hours * 3_600_000) for hours in (1, 5)]
    for age, ago in ((None, "5 h 0 m ago (made now)"), (timedelta(hours=1), "6 h 0 m ago (made")):
        plain = shown(whole(parity=[*topics, parity("plain")]), age)
        assert f"; compacted topics compared as a whole {ago}" in plain["verdict"]["text"]
    assert "scan_age=21600s;;;0" in nagios.summary(plain)
    old = shown(whole(parity=topics), timedelta(days=13))
    assert "as a whole 13 d 5 h ago (made 13 d 0 h ago) | " in nagios.summary(old)
    lost = [finding("missing", "x" * 500, "look")]
    plain = shown(whole(parity=topics, findings=lost, verdict=verdict(lost)), None)
    sentence = nagios.summary(plain).partition(" | ")[0]
    assert sentence.endswith("; compacted topics compared as a whole 5 h 0 m ago (made now)")
    assert "as a whole" not in shown(whole(), None)["verdict"]["text"]


def test_a_report_that_is_too_old_is_unknown_and_none_of_its_numbers_is_known() -> None:
    plain = shown(whole(), timedelta(days=13, hours=2))
    assert plain["verdict"]["exit_code"] == 3
    assert plain["verdict"]["text"].startswith("unknown: the last report is too old")
    assert plain["verdict"]["text"].endswith("(made 13 d 2 h ago)")
    assert [entry["kind"] for entry in plain["findings"]] == ["outdated"]
    line = nagios.summary(plain)
    assert line.startswith("MIRROR UNKNOWN - unknown: the last report is too old")
    values = dict(pair.split("=") for pair in line.partition(" | ")[2].split())
    assert values.pop("age") == f"{314 * 3600}s;;;0"
    assert set(values.values()) == {"U;;;0"}


def test_what_an_old_report_proved_lost_stays_said() -> None:
    lost = [finding("missing", "t: 2 records missing", "look")]
    plain = shown(whole(findings=lost, verdict=verdict(lost)), timedelta(days=13))
    assert (plain["verdict"]["exit_code"], plain["verdict"]["severity"]) == (2, "critical")
    assert plain["verdict"]["text"] == "critical: t: 2 records missing (made 13 d 0 h ago)"
    assert [entry["kind"] for entry in plain["findings"]] == ["missing", "outdated"]


def test_a_warning_that_is_too_old_is_unknown() -> None:
    some = [finding("backlog", "10 records left", "run")]
    plain = shown(whole(findings=some, verdict=verdict(some)), timedelta(days=13))
    assert plain["verdict"]["exit_code"] == 3


def test_age_survives_a_sentence_that_is_cut() -> None:
    lost = [finding("missing", "x" * 1000, "look")]
    plain = shown(whole(findings=lost, verdict=verdict(lost)), timedelta(days=13))
    assert nagios.summary(plain).partition(" | ")[0].endswith("xx (made 13 d 0 h ago)")


def test_a_report_of_the_time_to_come_is_not_believed() -> None:
    assert shown(whole(), timedelta(seconds=-5))["verdict"]["exit_code"] == 0, "clocks differ a bit"
    plain = shown(whole(), timedelta(days=-1))
    assert plain["verdict"]["exit_code"] == 3
    assert "a clock is wrong" in plain["verdict"]["text"]


@pytest.mark.parametrize("generated_at", ["yesterday", "", None])
def test_a_report_without_its_time_is_refused(generated_at: Any) -> None:
    plain = render_json.document(report()) | {"generated_at": generated_at}
    with pytest.raises(ReportError, match="when it was made"):
        freshness.shown(plain, INTERVAL)
