"""``digest``: one side of a flow as a bundle of digests, made near its cluster.

So kilobytes go between two data centres, instead of the records of one of them.
"""

import contextlib
import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mirror_report.commands import shared
from mirror_report.digests.side import digest_side
from mirror_report.model import ReportError
from mirror_report.parity.state import Bundle
from mirror_report.render import Answer, formats

SIDES = ("source", "target")


STANDARD_OUTPUT = "-"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``digest``."""
    shared.flow(parser, "the flow, if there are several")
    parser.add_argument("--side", choices=SIDES, required=True, help="which cluster is read")
    parser.add_argument(
        "--output", metavar="PATH", default=STANDARD_OUTPUT,
        help="file or directory of the bundle (default: standard output)",
    )  # fmt: skip


def answer(options: Namespace) -> Answer:
    """Write a bundle; the answer names the file.

    :raises ReportError: the cluster cannot be read, or the file cannot be written.
    """
    if options.output == STANDARD_OUTPUT and sys.stdout.isatty():
        raise ReportError("a digest is not for a terminal", "Name a file with --output")
    written: list[str] = []
    digest_side(
        shared.settings(options), options.flow, options.side,
        lambda bundle: _output(options.output, bundle, written), shared.show_progress,
    )  # fmt: skip
    return formats.lines(*written)


@contextlib.contextmanager
def _output(where: str, bundle: Bundle, written: list[str]) -> Iterator[BinaryIO]:
    """Open what a bundle is written to; a file appears when it is whole.

    :param where: file, directory (the file is named by flow and side), or ``-``.
    :param written: the file's name is added.
    """
    if where == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    path = Path(where)
    if path.is_dir():
        path /= f"{bundle.flow}-{bundle.side}.digest"
    new: Path | None = None
    try:
        # A name that nobody can have put a link to.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        new = Path(name)
        with os.fdopen(descriptor, "wb") as out:
            yield out
        new.chmod(0o640)
        new.replace(path)
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}",
            "Name another place with --output; - is standard output",
        ) from error
    finally:
        if new is not None:
            new.unlink(missing_ok=True)
    written.append(str(path))
