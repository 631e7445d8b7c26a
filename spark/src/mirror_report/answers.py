"""What a command prints, in the format that was asked for."""

from __future__ import annotations

import contextlib
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from mirror_report.model.document import (
    ApartDocument,
    CheckDocument,
    GroupsDocument,
    LagDocument,
    ProofDocument,
)
from mirror_report.model.errors import ReportError
from mirror_report.parity.bundle import Bundle
from mirror_report.render import apart as render_apart
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
    terminal.findings(plain["findings"], out, wide=True)


def lag(options: Namespace, document: LagDocument) -> None:
    """Print how far the flows are behind."""
    plain = render_json.document(document)
    if _as_data(options, plain):
        return
    out = terminal.console(sys.stdout)
    terminal.findings(plain["findings"], out, wide=options.wide)
    terminal.lag(plain["lag"], out, wide=options.wide)


def groups(options: Namespace, document: GroupsDocument) -> None:
    """Print what a failover now would mean for the consumer groups."""
    plain = render_json.document(document)
    if _as_data(options, plain):
        return
    out = terminal.console(sys.stdout)
    terminal.verdict_line(plain["verdict"], out)
    terminal.findings(plain["findings"], out, wide=options.wide)
    terminal.groups(plain["groups"], out, wide=options.wide)


def prove(options: Namespace, document: ProofDocument) -> None:
    """Print what a proof found, topic by topic."""
    plain = render_json.document(document)
    if _as_data(options, plain):
        return
    out = terminal.console(sys.stdout)
    terminal.verdict_line(plain["verdict"], out)
    terminal.findings(plain["findings"], out)
    terminal.parity(plain["parity"], out)


def report(options: Namespace, plain: Mapping[str, Any], page: str) -> None:
    """Print a report document.

    :param page: where its page lies.
    """
    if not _as_data(options, plain):
        terminal.show(plain, terminal.console(sys.stdout), page, wide=options.wide)


def apart(options: Namespace, document: ApartDocument) -> None:
    """Print what two digest bundles say of each other."""
    plain = render_json.document(document)
    if options.json:
        sys.stdout.write(render_json.dumps(plain))
    else:
        render_apart.show(plain, terminal.console(sys.stdout))


@contextlib.contextmanager
def bundle(where: str, made: Bundle) -> Iterator[BinaryIO]:
    """Open what a digest bundle is written to: a file appears when it is whole.

    :param where: file, directory (the file is named by flow and side), or ``-``.
    """
    if where == "-":
        yield sys.stdout.buffer
        return
    path = Path(where)
    if path.is_dir():
        path /= f"{made.flow}-{made.side}.digest"
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as out:
            yield out
        new.chmod(0o640)
        new.replace(path)
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}. Name another place with --output; - is "
            "standard output"
        ) from error
    finally:
        new.unlink(missing_ok=True)
    print(path)


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
