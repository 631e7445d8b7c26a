"""The line for monitoring: one line, its status first, performance data that is known."""

import re

import pytest
from sample_reports import empty, partition_lag, report, whole

from mirror_report.checks.verdict import finding
from mirror_report.model import CLASSES, CheckDocument, FlowStatus, LagDocument, Report
from mirror_report.render import json as render_json
from mirror_report.render import nagios


def line(base: Report) -> str:
    return nagios.summary(render_json.document(base))


def data(text: str) -> dict[str, str]:
    """Performance data, by label."""
    return dict(pair.split("=", 1) for pair in text.partition(" | ")[2].split())


def test_whole_mirror() -> None:
    assert line(whole()) == (
        "MIRROR OK - whole: no finding | critical=0;;;0 warning=0;;;0 lag_records=0;;;0 "
        "lag_seconds=0s;;;0 coverage=100.00%;;;0 verified=100;;;0 backlog=0;;;0 "
        + " ".join(f"{name}=0;;;0" for name in render_json.document(whole())["parity"][0]["counts"])
    )


@pytest.mark.parametrize("base", [report(), whole(), empty()])
def test_one_line_that_agents_pass_on(base: Report) -> None:
    text = line(base)
    assert re.fullmatch(r"MIRROR (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+( \| [^|\n]+)?", text)
    assert len(text) < 1024
    for value in data(text).values():
        assert re.fullmatch(r"([0-9.]+(s|%)?|U);;;0", value)


def test_a_value_that_is_not_known_is_no_number() -> None:
    found = data(line(report()))
    for name in ("lag_records", "verified", "missing"):
        assert found[name] == "U;;;0"
    assert found["critical"] != "0;;;0"


def test_nothing_is_0_where_no_flow_could_be_observed() -> None:
    found = data(line(empty()))
    assert {name for name, value in found.items() if value != "U;;;0"} == {"critical", "warning"}


def test_a_flow_that_is_away_leaves_no_sum_known() -> None:
    away = FlowStatus("away", "mm1", "east", "west", None, None, "g", None, None, ())
    found = data(line(whole(flows=[*whole().flows, away])))
    assert {found[name] for name in ("lag_records", "lag_seconds", "verified", "missing")} == {
        "U;;;0"
    }


def test_content_that_was_not_compared_is_not_0_records_verified() -> None:
    problem = finding("parity_unavailable", "content was not compared: no Spark", "install it")
    found = data(line(whole(parity=[], coverage=None, backlog_records=None, findings=[problem])))
    for name in ("verified", "coverage", "backlog", *CLASSES):
        assert found[name] == "U;;;0", name
    assert found["lag_records"] == "0;;;0", "lag was measured"


def test_share_is_never_rounded_up() -> None:
    assert data(line(whole(coverage=0.99999)))["coverage"] == "99.99%;;;0"


def test_sum_and_maximum_over_partitions() -> None:
    rows = [partition_lag("t", p, lag_records=5, lag_seconds=p * 1.0) for p in range(3)]
    found = data(line(whole(lag=rows)))
    assert (found["lag_records"], found["lag_seconds"]) == ("15;;;0", "2s;;;0")


def test_lag_and_check_have_their_line_too() -> None:
    base = whole()
    lag = LagDocument(base.schema_version, base.verdict, base.flows, base.lag, base.findings)
    check = CheckDocument(base.schema_version, base.verdict, base.flows, base.findings)
    assert "lag_records" in data(nagios.summary(render_json.document(lag)))
    assert list(data(nagios.summary(render_json.document(check)))) == ["critical", "warning"]


def test_what_would_end_the_line_early_is_replaced() -> None:
    text = nagios.status_line("unknown", "a|b\nc" + "x" * 1000, {})
    assert text.startswith("MIRROR UNKNOWN - a/b cxxx")
    assert "|" not in text
    assert len(text) < 500
