"""The report on a terminal: worst first, nothing cut, a whole mirror in one line."""

import io
import re
from collections.abc import Mapping
from typing import Any

import pytest
from sample_reports import COMMAND, EVIL, HOUR, NOW, empty, parity, partition_lag, report, whole

from mirror_report.checks.verdict import finding
from mirror_report.model import CLASSES, FlowStatus, GroupParity, Report
from mirror_report.render import figures, formats, sections, terminal
from mirror_report.render import json as render_json


class Screen(io.StringIO):
    """A terminal of 80 columns."""

    def isatty(self) -> bool:
        """Pretend."""
        return True


def text_of(base: Report, *, wide: bool = False, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    answer = formats.report(render_json.document(base), "/x/latest.html")
    terminal.write(answer, stream, wide=wide)
    return stream.getvalue()


def lag_text(*rows: Any, wide: bool = False) -> str:
    stream = io.StringIO()
    plain = render_json.document(report(lag=list(rows)))["lag"]
    sections.lag(plain, terminal.console(stream), wide=wide)
    return stream.getvalue()


def table(text: str, title: str) -> list[str]:
    """Header and rows of a table."""
    lines = text.splitlines()
    found = lines[lines.index(title) + 1 :]
    ends = [i for i, line in enumerate(found) if not line or line.startswith(("...", "too "))]
    return found[: ends[0]] if ends else found


def test_whole_mirror_is_one_line() -> None:
    (line,) = text_of(whole()).splitlines()
    assert line == (
        "whole: no finding; 1 flow by mm1, 100 records verified, coverage 100 %, "
        "run 20261121T100000Z-00 in 12 s, page /x/latest.html"
    )


def test_content_that_was_not_compared_is_not_0_records_verified() -> None:
    problem = finding("parity_unavailable", "no Spark", "install it")
    text = text_of(whole(parity=[], coverage=None, findings=[problem]))
    assert ", content not compared, " in text
    assert "records verified" not in text
    assert ", content not compared, " in text_of(whole(parity=[parity("t", "unknown")]))
    some = [parity("t"), parity("dark", "unknown", verified_records=0)]
    assert ", at least 100 records verified, " in text_of(whole(parity=some))
    rows = table(text_of(whole(parity=some), wide=True), "Parity")
    (row,) = [line for line in rows if line.startswith("dark ")]
    assert row.split()[:4] == ["dark", "unknown", "timestamp", "unknown"]


def test_compacted_topics_are_as_old_as_their_oldest_scan() -> None:
    topics = [
        parity("t", strategy="latest_by_key", scanned_at_ms=NOW - hours * HOUR,
               uncompared_records=3 * hours)
        for hours in (1, 5)
    ]  # fmt: skip
    text = text_of(whole(parity=[*topics, parity("plain")]), wide=True)
    since = figures.moment(NOW - 5 * HOUR)
    assert f", compacted topics compared as a whole since {since}, " in text
    header, *found = table(text, "Parity")
    assert "not compared" in header
    assert "compared as a whole" in header
    assert [figures.moment(NOW - HOUR) in row for row in found] == [False, True, False]
    assert sum(" 15 " in row for row in found) == 1
    assert "as a whole" not in text_of(whole(), wide=True)


def test_a_flow_that_is_away_has_no_known_number_of_topics() -> None:
    away = FlowStatus("away", "mm1", "east", "west", None, None, "g", None, None, ())
    rows = table(text_of(whole(flows=[away]), wide=True), "Flows")
    assert rows[1].split()[-2:] == ["unknown", "-"]


def test_whole_mirror_is_shown_in_full_if_asked() -> None:
    text = text_of(whole(), wide=True)
    for title in ("Flows", "Lag", "Lag by partition", "Parity"):
        assert table(text, title)


def test_worst_comes_first_with_what_to_do() -> None:
    text = text_of(report(), wide=True)
    assert text.splitlines()[0].startswith("critical: ")
    order = [re.match(r"(critical|unknown|warning) ", line) for line in text.splitlines()]
    found = [matched[1] for matched in order if matched]
    assert sorted(found[:-1], key=["critical", "unknown", "warning"].index) == found[:-1]
    assert text.index("1 duplicate (accounted") > text.index("what to do next: mirror-report run")


@pytest.mark.parametrize("stream", [io.StringIO, Screen])
def test_a_command_is_neither_wrapped_nor_cut(stream: type[io.StringIO]) -> None:
    text = text_of(report(), stream=stream(), wide=True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert f"what to do next: {COMMAND}\n" in plain


def test_many_findings_are_counted_not_listed() -> None:
    text = text_of(report())
    assert text.count("what to do next") <= sections.FINDINGS
    assert re.search(r"and \d+ more findings: .*1 duplicate.*\(--wide\)", text)


def test_plain_when_piped_and_colourless_if_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in text_of(report(), wide=True)
    assert "\x1b[31m" in text_of(report(), stream=Screen()) or "\x1b[1;31m" in text_of(
        report(), stream=Screen()
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", text_of(report(), stream=Screen()))


def test_markup_in_names_is_shown_not_obeyed() -> None:
    assert EVIL in text_of(report())


def test_names_cannot_steer_a_terminal() -> None:
    evil = "\x1b[2J\x9b31m\nwhole"
    group = GroupParity("f", evil, "skip", None, None, 3, ())
    found = finding("group_skip", f"{evil} would skip", f"see {evil}")
    text = text_of(report(groups=[group], findings=[found]), wide=True)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert not [line for line in text.splitlines() if line.startswith("whole")]


def test_unknown_is_said_and_never_0() -> None:
    text = text_of(report(), wide=True)
    (line,) = [row for row in table(text, "Lag") if " hidden " in row]
    assert re.split(r" {2,}", line)[2:7] == ["UNKNOWN", "unknown", "unknown", "-", "unknown"]
    assert line.count("unknown") == 8
    (line,) = [row for row in table(text, "Parity") if " dark " in row]
    assert line.count("unknown") == 2 + len(CLASSES)


def test_lag_says_never_if_the_mirror_does_not_catch_up() -> None:
    late = {"lag_records": 10, "position": 9990}
    text = lag_text(
        partition_lag("a", 0, "LAGGING", **late, catches_up=False, eta_seconds=None),
        partition_lag("b", 0, "LAGGING", **late, catches_up=True, eta_seconds=61.0),
        partition_lag("c", 0, "LAGGING", **late, catches_up=None, eta_seconds=None),
    )
    rows = {line.split()[0]: line for line in table(text, "Lag")[1:]}
    assert "never" in rows["a"]
    assert "1 m 1 s" in rows["b"]
    assert rows["c"].rstrip().endswith("unknown")


def test_lag_shows_the_worst_topics_and_sums_the_others() -> None:
    rows = [
        partition_lag(f"t{i:02}", 0, "LAGGING", lag_records=i, position=10_000 - i)
        for i in range(1, 31)
    ]
    lines = lag_text(*rows).strip().splitlines()
    assert lines[2].split()[0] == "t30"
    assert len(lines) == 2 + sections.TOP + 1
    assert lines[-1] == "... and 20 more: 20 LAGGING, 210 records behind (--wide)"
    assert len(table(lag_text(*rows, wide=True), "Lag by partition")) == 31


def test_lost_records_that_cannot_be_counted_are_bounded() -> None:
    text = lag_text(partition_lag("a", 0, "TRUNCATED", lost=3, lost_at_most=40))
    assert "3 to 40" in text
    assert "lost" not in lag_text(partition_lag("a", 0))


def test_wide_tells_where_a_position_is_from() -> None:
    text = lag_text(partition_lag("a", 7), wide=True)
    header, row = table(text, "Lag by partition")
    assert "position" in header
    assert "group commit" in row
    assert "4 s" in row


def test_parity_shows_only_classes_that_occur() -> None:
    some = parity("a", "mismatch", counts={"missing": 2, "moved": 0})
    header = table(text_of(report(parity=[some])), "Parity")[0]
    assert "missing" in header
    assert "moved" not in header
    assert "extra" not in header


def test_parity_tells_how_and_until_when() -> None:
    text = text_of(report())
    (line,) = [row for row in table(text, "Parity") if row.split()[1:2] == ["payments"]]
    assert "hash" in line
    assert "1 m 30 s ago" in line
    assert "in 2 h 0 m" in text
    assert "9223372036854775 ms" in text, "a time no calendar reaches is still shown"


def test_wide_tells_the_partitions_of_what_does_not_match() -> None:
    rows = table(text_of(report(), wide=True), "What does not match, by partition")
    assert [line.split() for line in rows[1:]] == [
        ["payments", "missing", "0", "1"],
        ["payments", "missing", "1", "1"],
    ]


def test_failover_puts_first_who_would_lose_records() -> None:
    rows = table(text_of(report()), "Failover now")
    assert [row.split()[1] for row in rows[1:4]] == ["skip", "skip", "unmapped"]
    assert "re-read" in rows[0]
    assert "unmapped" in rows[0]


def test_settings_at_risk_are_shown_others_counted() -> None:
    text = text_of(report())
    assert "max.message.bytes" in text
    assert "retention.ms" not in text
    assert "... and 1 more settings that differ, 1 topics not mirrored (--wide)" in text
    wide = text_of(report(), wide=True)
    assert "retention.ms" in wide
    assert "excluded: internal" in wide


def test_narrow_terminal_says_which_columns_it_leaves_out() -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", text_of(report(), stream=Screen()))
    header = table(text, "Lag")[0]
    note = next(line for line in text.splitlines() if line.startswith("too narrow for: produced"))
    assert note.endswith("(--wide)")
    assert "records" in header
    assert "produced" not in header


@pytest.mark.parametrize("wide", [False, True])
def test_report_without_anything_known_is_shown(wide: bool) -> None:
    text = text_of(empty(), wide=wide)
    assert "coverage -" in text
    assert "the west cluster was away" in text


def test_states_this_release_does_not_know_are_shown() -> None:
    plain: Mapping[str, Any] = render_json.document(report())
    for rows, key in (("lag", "state"), ("parity", "status"), ("groups", "state")):
        plain[rows][0][key] = "NOVEL"
    stream = io.StringIO()
    terminal.write(formats.report(plain, "/x/latest.html"), stream, wide=True)
    assert stream.getvalue().count("NOVEL") >= 4


def test_what_is_in_minutes_that_stay_open_is_said_with_since_when() -> None:
    stays = parity("t", open_records=1200, open_since_ms=1_795_000_000_000)
    text = text_of(report(parity=[stays]))
    assert "t: 1,200 records below the committed position are of minutes open since 2026-" in text
    assert ": judged for losses\n" in text
    assert "minutes open since" not in text_of(report(parity=[parity("t")]))


@pytest.mark.parametrize("unjudged", [1_100, 1_200])
def test_minutes_that_stay_open_are_called_judged_only_where_they_are(unjudged: int) -> None:
    stays = parity("t", open_records=1200, open_since_ms=1_795_000_000_000, open_unjudged=unjudged)
    text = text_of(report(parity=[stays]))
    assert f": {unjudged:,} of them not judged for losses\n" in text
    assert ": judged for losses" not in text
