"""The report as a document: complete, valid, unknown is null; and numbers as people read them."""

import copy
import dataclasses
from typing import Any

import jsonschema
import pytest
import report_schema
from sample_reports import BEYOND, empty, partition_lag, report, whole

from mirror_report.cli import parser
from mirror_report.model import CheckDocument, LagDocument, Report
from mirror_report.render import figures, rows
from mirror_report.render import json as render_json
from mirror_report.state.store import StateError


def against(name: str) -> jsonschema.Draft202012Validator:
    """Validator of one kind of document."""
    return jsonschema.Draft202012Validator(report_schema.packaged() | {"$ref": f"#/$defs/{name}"})


def test_packaged_schema_is_the_one_of_the_records() -> None:
    written = report_schema.PACKAGED.read_text()
    assert written == report_schema.text(render_json.SCHEMA_VERSION), "run docs/generate.py"


@pytest.mark.parametrize("base", [report(), whole(), empty()])
def test_document_fits_the_packaged_schema(base: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(report_schema.packaged())
    jsonschema.validate(render_json.document(base), report_schema.packaged())


def test_documents_of_lag_and_check_are_described_too() -> None:
    base = report()
    lag = LagDocument(base.schema_version, base.verdict, base.flows, base.lag, base.findings)
    check = CheckDocument(base.schema_version, base.verdict, base.flows, base.findings)
    against("LagDocument").validate(render_json.document(lag))
    against("CheckDocument").validate(render_json.document(check))
    with pytest.raises(jsonschema.ValidationError):
        against("LagDocument").validate(render_json.document(check))


def test_every_command_that_prints_json_is_described() -> None:
    (commands,) = [action for action in parser()._actions if action.dest == "command"]
    printing = {
        name
        for name, command in dict(commands.choices or {}).items()
        if "--json" in command._option_string_actions
    }
    # What confirm says is for the role alone.
    assert printing - {"confirm"} == set(report_schema.DOCUMENTS)


def test_every_field_is_described_and_required() -> None:
    described = report_schema.packaged()["$defs"]
    fields = {field.name for field in dataclasses.fields(Report)}
    assert set(described["Report"]["properties"]) == set(described["Report"]["required"]) == fields
    assert "lost" in described["PartitionLag"]["properties"]
    assert "certainly dropped" in described["PartitionLag"]["properties"]["lost"]["description"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("lag", 0, "lag_records"), -1),
        (("lag", 0, "state"), "FINE"),
        (("groups", 0, "readiness"), 1.5),
        (("parity", 0, "counts", "missing"), "2"),
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
        jsonschema.validate(plain, report_schema.packaged())


def test_unknown_is_null_in_the_document() -> None:
    plain = render_json.document(report())
    (row,) = [row for row in plain["lag"] if row["topic"] == "hidden"]
    assert row["lag_records"] is None
    assert plain["flows"][0]["target_cluster_id"] is None


def test_what_is_no_number_is_unknown() -> None:
    row = partition_lag("t", 0, eta_seconds=float("inf"), lag_seconds=float("nan"))
    (plain,) = render_json.document(report(lag=[row]))["lag"]
    assert (plain["eta_seconds"], plain["lag_seconds"]) == (None, None)


def test_document_is_read_back() -> None:
    plain = render_json.document(report())
    assert render_json.loads(render_json.dumps(plain)) == plain


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema_version": "9.0.0"}', '{"schema_version": "2.0.0", "flows": [1]}'],
)
def test_foreign_or_damaged_document_is_refused(text: str) -> None:
    with pytest.raises(StateError, match="mirror-report run"):
        render_json.loads(text)


def test_document_of_an_earlier_minor_release_is_completed() -> None:
    plain = render_json.document(report())
    old = copy.deepcopy(plain)
    del old["history"]
    for row in old["lag"]:
        del row["catches_up"]
    del old["flows"][0]["coverage"]
    completed = render_json.loads(render_json.dumps(old))
    assert completed["flows"][0]["coverage"] is None
    assert completed["history"] == []
    assert completed["lag"][0]["catches_up"] is None


def sums(*some: Any) -> dict[str, Any]:
    (row,) = rows.lag_by_topic(render_json.document(report(lag=list(some)))["lag"])
    return row


def test_sum_with_an_unknown_part_is_unknown() -> None:
    nothing: dict[str, Any] = {"lag_records": None, "lag_seconds": None, "produce_rate": None}
    row = sums(partition_lag("t", 0), partition_lag("t", 1, "UNKNOWN", **nothing))
    assert (row["lag_records"], row["lag_seconds"], row["state"]) == (None, None, "UNKNOWN")
    assert row["produce_rate"] is None
    assert row["mirror_rate"] == 24.0


def test_topic_never_catches_up_if_one_of_its_partitions_does_not() -> None:
    late: dict[str, Any] = {"lag_records": 5}
    slow = partition_lag("t", 1, "LAGGING", **late, catches_up=False, eta_seconds=None)
    row = sums(partition_lag("t", 0, "LAGGING", **late, eta_seconds=9.0), slow)
    assert (row["catches_up"], figures.eta(row)) == (False, "never")
    unknown = partition_lag("t", 2, "LAGGING", **late, catches_up=None, eta_seconds=None)
    row = sums(partition_lag("t", 0, "LAGGING", **late, eta_seconds=9.0), unknown)
    assert (row["catches_up"], figures.eta(row)) == (None, "unknown")


def test_topic_with_a_part_without_estimate_has_none() -> None:
    known = partition_lag("t", 0, "LAGGING", lag_records=2000, position=8000, estimate=9500)
    assert sums(known)["estimated_records"] == 500
    assert sums(known, partition_lag("t", 1))["estimated_records"] is None


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "1970-01-01 00:00:00Z"),
        (None, "-"),
        (BEYOND, f"{BEYOND} ms"),
        (-BEYOND, f"{-BEYOND} ms"),
    ],
)
def test_moment_outside_every_calendar_is_shown_as_a_number(value: int | None, text: str) -> None:
    assert figures.moment(value) == text


def test_flow_is_named_once() -> None:
    plain = render_json.document(report())["findings"][0] | {"flow": "orders"}
    assert figures.message(plain | {"message": "t: lost"}) == "orders: t: lost"
    assert figures.message(plain | {"message": "orders/t: lost"}) == "orders/t: lost"
    assert figures.message(plain | {"flow": None, "message": "lost"}) == "lost"
