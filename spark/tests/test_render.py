"""The report as document, terminal text and page: complete, valid, escaped, nothing external."""

import copy
import io
import json
import re
from importlib import resources
from typing import Any

import jsonschema
import pytest

from mirror_report.checks.verdict import finding, verdict
from mirror_report.model import FlowStatus, PartitionLag, Report, Sample, TopicParity
from mirror_report.render import figures, html, schema, terminal
from mirror_report.render import json as render_json
from mirror_report.render.json import DocumentError

EVIL = '<script>alert("x")</script>[bold]'


def parity(**changes: Any) -> TopicParity:
    sample = Sample("source", 0, 7, 1_800_000_000_000, "ab", "cd" * 16, None, 1024)
    values: dict[str, Any] = {
        "flow": "orders", "source_topic": "t", "topic": "t", "status": "mismatch",
        "source_records": 100, "target_records": 98, "verified_records": 90,
        "in_flight_records": 5, "skipped_records": 0,
        "counts": {"missing": 2, "duplicate": 1, "corrupt_value": 3, "extra": 4, "moved": None},
        "accounted": {"duplicate": 1, "extra": 0},
        "buckets": {"verified": 9, "in_flight": 1, "mismatch": 1, "unverifiable": 0, "skipped": 0},
        "verified_through_ms": 1_800_000_000_000, "newest_due_ms": 1_800_000_060_000,
        "reason": "", "samples": {"missing": [sample]},
    }  # fmt: skip
    return TopicParity(**values | changes)


def report(**changes: Any) -> Report:
    found = [
        finding("missing", f"t: 2 records missing {EVIL}", "kafka-x.sh --a", flow="orders"),
        finding("duplicate", "t: 1 duplicate", "wait", flow="orders", accounted=True),
    ]
    values: dict[str, Any] = {
        "schema_version": render_json.SCHEMA_VERSION,
        "tool": {"name": "mirror-report", "version": "0"},
        "run_id": "20261121T100000Z-00",
        "generated_at": "2026-11-21T10:00:00Z",
        "duration_seconds": 12.5,
        "verdict": verdict(found),
        "coverage": 0.9474,
        "flows": [FlowStatus("orders", "mm1", "east", "west", "A", None, "g", "Stable", 3, ("t",))],
        "lag": [
            PartitionLag("orders", "t", 0, "OK", 0, 10, 10, 0, 0.0),
            PartitionLag("orders", "t", 1, "UNKNOWN", 0, 10, None, None, None),
        ],
        "parity": [parity()],
        "backlog_records": 0,
        "backlog_bytes": None,
        "spark_started": True,
        "findings": found,
        "errors": [],
    }
    return Report(**values | changes)


WHOLE: dict[str, Any] = {
    "findings": [],
    "verdict": verdict([]),
    "coverage": 1.0,
    "parity": [parity(status="verified", counts={})],
}


def text_of(one: Report) -> str:
    stream = io.StringIO()
    terminal.show(render_json.document(one), terminal.console(stream), "/x/latest.html")
    return stream.getvalue()


def test_packaged_schema_is_the_one_of_the_records() -> None:
    written = resources.files("mirror_report.render").joinpath("report.schema.json").read_text()
    assert written == schema.text(render_json.SCHEMA_VERSION), "run docs/generate.py and commit"


def test_document_fits_the_packaged_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(render_json.schema())
    jsonschema.validate(render_json.document(report()), render_json.schema())
    jsonschema.validate(render_json.document(report(**WHOLE)), render_json.schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("lag", 0, "lag_records"), -1),
        (("verdict", "exit_code"), 4),
        (("schema_version",), "1.1.0"),
        (("parity", 0, "samples", "missing", 0, "record_hash"), "not hex"),
        (("findings", 0, "severity"), "bad"),
    ],
)
def test_schema_refuses_what_the_report_may_not_say(path: tuple[Any, ...], value: Any) -> None:
    plain = copy.deepcopy(render_json.document(report()))
    place: Any = plain
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, render_json.schema())


def test_unknown_is_null_in_the_document() -> None:
    plain = render_json.document(report())
    assert plain["lag"][1]["lag_records"] is None
    assert plain["flows"][0]["target_cluster_id"] is None


def test_document_is_read_back() -> None:
    plain = render_json.document(report())
    assert render_json.loads(render_json.dumps(plain)) == plain


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": "9.0.0"}'])
def test_foreign_or_damaged_document_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="mirror-report run"):
        render_json.loads(text)


def test_whole_mirror_is_two_lines() -> None:
    lines = text_of(report(**WHOLE)).splitlines()
    assert lines[0] == "whole: no finding"
    assert len(lines) == 2


def test_terminal_shows_worst_first_with_the_cure() -> None:
    text = text_of(report())
    assert text.index("critical: t: 2 records missing") < text.index("accounted")
    assert "what to do next: kafka-x.sh --a" in text
    assert "unknown" in text.split("Lag", 1)[1].split("Parity", maxsplit=1)[0]


def test_terminal_is_plain_and_unfolded_when_piped() -> None:
    text = text_of(report())
    assert "\x1b" not in text
    assert EVIL in text, "markup in names is shown, not obeyed"


def test_page_escapes_everything() -> None:
    page = html.render(render_json.document(report()))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_page_refers_to_nothing_outside() -> None:
    page = html.render(render_json.document(report()))
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://""", page)
    assert "default-src 'none'" in page
    assert " style=" not in page, "inline styles are refused by the page's own policy"
    assert not re.search(r"\son\w+=", page)


def test_page_allows_exactly_its_own_style() -> None:
    import base64
    import hashlib

    page = html.render(render_json.document(report()))
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in page


def test_page_is_small_and_tells_what_to_do() -> None:
    page = html.render(render_json.document(report()))
    assert len(page) < 60_000
    assert "What to do next:" in page
    assert "kafka-x.sh --a" in page


def test_page_of_a_failed_run_is_still_a_page() -> None:
    failed = report(
        lag=[], parity=[], coverage=None, backlog_records=None, errors=["cluster east is away"]
    )
    page = html.render(render_json.document(failed))
    assert "cluster east is away" in page


def test_sum_with_an_unknown_part_is_unknown() -> None:
    (row,) = figures.lag_by_topic(render_json.document(report())["lag"])
    assert (row["lag_records"], row["lag_seconds"], row["state"]) == (None, None, "UNKNOWN")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "100 %"), (0.99999, "99.99 %"), (0.5, "50.00 %"), (None, "-")],
)
def test_share_never_rounds_up_to_whole(value: float | None, text: str) -> None:
    assert figures.share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (61, "1 m 1 s"), (3_700, "1 h 1 m"), (90_000, "1 d 1 h"), (None, "unknown")],
)
def test_seconds_are_readable(value: float | None, text: str) -> None:
    assert figures.seconds(value) == text


def test_document_is_plain_json() -> None:
    assert json.loads(json.dumps(render_json.document(report())))


def estimated() -> dict[str, Any]:
    row = PartitionLag(
        "orders", "t", 0, "LAGGING", 0, 5000, 3000, 2000, 9.0,
        estimate=4500, estimate_source="offset_syncs", estimate_age_seconds=1.0,
    )  # fmt: skip
    return render_json.document(report(lag=[row]))


def test_estimates_are_shown_as_such() -> None:
    jsonschema.validate(estimated(), render_json.schema())
    stream = io.StringIO()
    terminal.show(estimated(), terminal.console(stream))
    assert "~500" in stream.getvalue()
    page = html.render(estimated())
    assert "~500" in page
    assert "~4,500" in page
    assert "offset_syncs" in page


def test_without_estimates_none_are_shown() -> None:
    assert "estimated" not in text_of(report())
    assert "estimated" not in html.render(render_json.document(report()))


def test_sum_with_a_part_without_estimate_is_none() -> None:
    rows = estimated()["lag"] + render_json.document(report())["lag"]
    (row,) = figures.lag_by_topic(rows)
    assert row["estimated_records"] is None


def test_flow_is_named_once() -> None:
    plain = render_json.document(report())["findings"][0]
    assert figures.said(plain | {"message": "t: lost"}) == "orders: t: lost"
    assert figures.said(plain | {"message": "orders/t: lost"}) == "orders/t: lost"
    assert figures.said(plain | {"flow": None, "message": "lost"}) == "lost"
