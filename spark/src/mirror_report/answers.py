"""What a command prints, in the format that was asked for."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from mirror_report.model import CheckDocument, LagDocument
from mirror_report.render import json as render_json
from mirror_report.render import nagios, terminal


def check(options: Namespace, document: CheckDocument) -> None:
    """Print what stands against the flows."""
    plain = render_json.document(document)
    if _as_data(options, plain):
        return
    out = terminal.console(sys.stdout)
    if not plain["findings"]:
        out.print("ok: nothing stands against the flows", markup=False)
    terminal.findings(plain["findings"], out)


def lag(options: Namespace, document: LagDocument) -> None:
    """Print how far the flows are behind."""
    plain = render_json.document(document)
    if _as_data(options, plain):
        return
    out = terminal.console(sys.stdout)
    terminal.findings(plain["findings"], out)
    terminal.lag(plain["lag"], out, wide=options.wide)


def report(options: Namespace, plain: Mapping[str, Any], page: str) -> None:
    """Print a report document.

    :param page: where its page lies.
    """
    if not _as_data(options, plain):
        terminal.show(plain, terminal.console(sys.stdout), page, wide=options.wide)


def failure(options: Namespace, text: str) -> None:
    """Print why there is no answer, for those who read standard output alone."""
    if getattr(options, "format", None) == "nagios":
        print(nagios.line("unknown", text, {}))


def _as_data(options: Namespace, plain: Mapping[str, Any]) -> bool:
    """Print a document for a machine, if one asks; returns whether it did."""
    if options.format == "json":
        sys.stdout.write(render_json.dumps(plain))
    elif options.format == "nagios":
        print(nagios.answer(plain))
    return bool(options.format != "terminal")
