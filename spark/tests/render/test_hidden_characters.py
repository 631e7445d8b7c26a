"""Characters that steer a reader's screen, or that nobody sees, are shown by every format."""

import json

import pytest
from sample_reports import report

from mirror_report.checks.verdict import finding
from mirror_report.commands import shared
from mirror_report.model import GroupParity
from mirror_report.render import formats, nagios
from mirror_report.render import json as render_json

# A cursor's, one of a single byte, a turn of direction, no width, an end of line, half a pair.
HIDDEN = "\x1b\x9b\u202e\u200b\u2028\U000e0001"


@pytest.mark.parametrize("name", formats.FORMATS)
def test_nothing_that_is_hidden_in_a_name_reaches_a_reader(name: str) -> None:
    evil = f"a{HIDDEN}b"
    group = GroupParity("f", evil, "skip", None, None, 3, ())
    found = finding("group_skip", f"{evil} would skip", f"see {evil}")
    answer = formats.report(
        render_json.document(report(groups=[group], findings=[found])), "/x/latest.html"
    )
    shown = formats.text(name, answer)
    assert [char for char in HIDDEN if char in shown] == []
    assert r"\u202e" in shown or name == "nagios"


def test_the_one_line_shows_what_is_hidden_in_its_sentence() -> None:
    assert nagios.status_line("critical", f"a{HIDDEN}b", {}).isprintable()


def test_what_a_command_says_on_the_way_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    shared.show_error(HIDDEN)
    shared.show_progress(HIDDEN)
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("name", ["terminal", "json"])
def test_nothing_that_is_hidden_is_said_by_a_command(name: str) -> None:
    shown = formats.text(name, formats.lines(f"{HIDDEN}: published"))
    assert [char for char in HIDDEN if char in shown] == []


def test_a_document_is_the_same_with_what_is_hidden_in_it() -> None:
    document = {"name": f"a{HIDDEN}é\n"}
    assert json.loads(render_json.dumps(document)) == document
