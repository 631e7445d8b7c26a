"""Each command has a file of its name, and each format writes every document a command offers."""

import io
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import report_schema
from sample_reports import empty, report, whole

from mirror_report import commands
from mirror_report.checks.verdict import EXIT_CODES
from mirror_report.cli import COMMANDS, command, parser
from mirror_report.commands.shared import FORMATS as OFFERED
from mirror_report.model import (
    BucketDifference,
    CheckDocument,
    CompareDocument,
    CompareTopic,
    Confirmation,
    ConfirmDocument,
    GroupsDocument,
    LagDocument,
    ProofDocument,
    Report,
)
from mirror_report.render import Answer, formats, terminal

TYPED = {
    "archive", "baseline", "check", "compare", "confirm", "digest", "groups", "lag", "prove",
    "publish", "run", "show", "units",
}  # fmt: skip
BUCKETS = {"verified": 1, "in_flight": 0, "mismatch": 30, "skipped": 0}


def test_a_command_has_a_file_of_its_name_that_holds_its_options_and_its_answer() -> None:
    (directory,) = map(Path, commands.__path__)
    assert set(COMMANDS) == TYPED
    for name, text in COMMANDS.items():
        module = command(name)
        assert Path(str(module.__file__)) == directory / f"{name}.py"
        assert text
        assert callable(module.add_options)
        assert callable(module.answer)


def test_a_command_is_parsed_without_the_options_of_the_others() -> None:
    typed = ["--config", "run", "lag", "--flow", "f"]
    options = parser(typed).parse_args(typed)
    assert (options.config, options.command, options.flow) == ("run", "lag", "f")


def compared(base: Report) -> CompareDocument:
    topic = CompareTopic("t", ["t"], "mismatch", "", 10, 9, 5, 2, 1, 1, 0, 2, BUCKETS)
    differences = [BucketDifference("t", None, 60_000 * i, i, 2 * i) for i in range(30)]
    return CompareDocument(
        base.schema_version, "orders", "A", "B", 1, 2, base.verdict, [topic], differences, 30,
        base.findings,
    )  # fmt: skip


def answers(base: Report) -> dict[str, Answer]:
    """An answer of each command that has a document."""
    version, verdict, found = base.schema_version, base.verdict, base.findings
    plain = formats.with_verdict(base).document
    confirmed = [Confirmation("orders", True, None, "orders: running"),
                 Confirmation("clicks", False, False, "clicks: 3 records wait")]  # fmt: skip
    return {
        "run": formats.report(plain, "/x/latest.html"),
        "show": formats.report(plain, "/x/latest.html"),
        "lag": formats.with_verdict(LagDocument(version, verdict, base.flows, base.lag, found)),
        "check": formats.with_verdict(CheckDocument(version, verdict, base.flows, found)),
        "groups": formats.with_verdict(GroupsDocument(version, verdict, base.groups, found)),
        "prove": formats.with_verdict(ProofDocument(version, verdict, base.parity, found)),
        "compare": formats.with_verdict(compared(base)),
        "confirm": formats.confirmation(ConfirmDocument(False, confirmed)),
    }


def offered() -> list[tuple[str, str]]:
    """Command and format, as far as the command line lets one choose."""
    (choices,) = [action for action in parser()._actions if action.dest == "command"]
    found = []
    for name, chosen in dict(choices.choices or {}).items():
        flags = chosen._option_string_actions
        found += (
            [(name, choice) for choice in flags["--format"].choices] if "--format" in flags else []
        )
        found += [(name, choice) for choice in ("terminal", "json") if "--json" in flags]
    return sorted(set(found))


def text_of(name: str, answer: Answer, *, wide: bool) -> str:
    out = io.StringIO()
    formats.write(name, answer, out, wide=wide)
    return out.getvalue()


@pytest.mark.parametrize("base", [report(), whole(), empty()], ids=["full", "whole", "empty"])
@pytest.mark.parametrize(("command", "name"), offered())
@pytest.mark.parametrize("wide", [False, True])
def test_a_format_writes_the_document_of_each_command_that_offers_it(
    base: Report, command: str, name: str, wide: bool
) -> None:
    answer = answers(base)[command]
    text = text_of(name, answer, wide=wide)
    # Without flows there is no lag to show.
    assert text.endswith("\n") or (command, answer.document["flows"]) == ("lag", [])
    if name == "json":
        assert json.loads(text) == answer.document
    if name == "nagios":
        assert text.startswith("MIRROR ")
        assert text.count("\n") == 1


def test_every_command_with_a_document_offers_it_as_text_and_as_json() -> None:
    documented = {*report_schema.DOCUMENTS, "confirm"}
    for name in ("terminal", "json"):
        assert {command for command, given in offered() if given == name} == documented
    assert set(answers(report())) == documented
    assert {name for _, name in offered()} == set(OFFERED) == set(formats.FORMATS) - {"html"}


def test_the_terminal_writes_every_kind_of_document() -> None:
    assert {answer.kind for answer in answers(report()).values()} < set(terminal.WRITERS)


def test_the_terminal_says_how_many_differences_only_json_names() -> None:
    text = text_of("terminal", answers(report())["compare"], wide=False)
    assert text.count(" 1970-01-01 ") == terminal.BUCKETS
    assert f"... and {30 - terminal.BUCKETS} more: --json names the first 30" in text


def test_what_a_command_did_is_written_line_by_line() -> None:
    said = formats.lines("orders: recorded", "clicks: unchanged")
    assert text_of("terminal", said, wide=False) == "orders: recorded\nclicks: unchanged\n"
    assert text_of("terminal", formats.lines(), wide=False) == ""


def test_the_page_is_a_format_too() -> None:
    assert formats.text("html", answers(report())["run"]).startswith("<!doctype html>")


def test_an_answer_ends_with_the_status_of_its_verdict() -> None:
    for base in (report(), whole()):
        some: dict[str, Any] = answers(base)
        assert {some.pop("confirm").exit_code} == {EXIT_CODES["critical"]}
        assert {answer.exit_code for answer in some.values()} == {base.verdict.exit_code}
    good = ConfirmDocument(True, [])
    assert formats.confirmation(good).exit_code == 0


def test_only_a_monitoring_system_reads_a_failure_on_standard_output() -> None:
    written = {}
    for name in formats.FORMATS:
        out = io.StringIO()
        formats.fail(name, "no report yet", out)
        written[name] = out.getvalue()
    assert written.pop("nagios") == "MIRROR UNKNOWN - no report yet\n"
    assert set(written.values()) == {""}


def test_documents_hold_what_an_answer_shows() -> None:
    for answer in answers(report()).values():
        assert set(answer.document) >= {field.name for field in fields(answer.kind)} - {
            "age_seconds"
        }
