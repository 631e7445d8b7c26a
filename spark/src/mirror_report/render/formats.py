"""The formats an answer can be had in, each a module beside this one."""

import io
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TextIO

from mirror_report.checks.verdict import EXIT_CODES
from mirror_report.model import ConfirmDocument, DocumentWithVerdict, Lines, Report
from mirror_report.render import json, nagios
from mirror_report.render.json import Answer

FORMATS = ("terminal", "json", "nagios", "html")


def write(name: str, answer: Answer, out: TextIO, *, wide: bool = False) -> None:
    """Write an answer in one format, importing its module: Rich and Jinja take their time.

    :param wide: every row of it, where a format leaves some out.
    """
    import_module(f"mirror_report.render.{name}").write(answer, out, wide=wide)


def fail(name: str, text: str, out: TextIO) -> None:
    """Write why there is no answer, for those who read standard output alone."""
    if name == "nagios":
        nagios.fail(text, out)


def text(name: str, answer: Answer) -> str:
    """An answer in one format, for a file."""
    out = io.StringIO()
    write(name, answer, out)
    return out.getvalue()


def with_verdict(document: DocumentWithVerdict) -> Answer:
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


def lines(*texts: str, exit_code: int = EXIT_CODES["ok"]) -> Answer:
    """Answer of a command that only reports what it did."""
    return Answer(Lines, {"lines": texts}, exit_code)
