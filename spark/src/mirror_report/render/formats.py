"""The formats an answer can be had in: one table for every command."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from mirror_report.checks.verdict import EXIT_CODES
from mirror_report.model import ConfirmDocument, Judged, Lines, Report
from mirror_report.render import json, nagios
from mirror_report.render.json import Answer


class Write(Protocol):
    """Writes an answer to a stream."""

    def __call__(self, answer: Answer, out: TextIO, *, wide: bool) -> None:
        """Write it; ``wide``: every row of it, where a format leaves some out."""


@dataclass(frozen=True)
class Format:
    """One way to write answers.

    :param fail: writes why there is no answer, for those who read standard output alone.
    """

    write: Write
    fail: Callable[[str, TextIO], None] = lambda _text, _out: None


def _terminal(answer: Answer, out: TextIO, *, wide: bool) -> None:
    # Rich is needed by the terminal alone.
    from mirror_report.render import terminal  # noqa: PLC0415

    terminal.write(answer, out, wide=wide)


def _page(answer: Answer, out: TextIO, *, wide: bool) -> None:
    # Jinja is needed by the page alone.
    from mirror_report.render import html  # noqa: PLC0415

    html.write(answer, out, wide=wide)


FORMATS: Mapping[str, Format] = {
    "terminal": Format(_terminal),
    "json": Format(json.write),
    "nagios": Format(nagios.write, nagios.fail),
    "html": Format(_page),
}


def text(name: str, answer: Answer) -> str:
    """An answer in one format, for a file."""
    out = io.StringIO()
    FORMATS[name].write(answer, out, wide=False)
    return out.getvalue()


def judged(document: Judged) -> Answer:
    """Answer that ends with the exit status of its verdict."""
    return Answer(type(document), json.document(document), document.verdict.exit_code)


def report(document: Mapping[str, Any], page: str) -> Answer:
    """Answer of a report.

    :param document: of :class:`Report`, as plain data.
    :param page: where its page lies.
    """
    return Answer(Report, document, int(document["verdict"]["exit_code"]), page)


def confirmation(document: ConfirmDocument) -> Answer:
    """Answer that is critical unless every process took up its work."""
    return Answer(
        ConfirmDocument,
        json.document(document),
        EXIT_CODES["ok" if document.ok else "critical"],
    )


def lines(*said: str, exit_code: int = EXIT_CODES["ok"]) -> Answer:
    """Answer of a command that only says what it did."""
    return Answer(Lines, {"lines": said}, exit_code)
