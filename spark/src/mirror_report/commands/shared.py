"""What commands share: options, the configuration, messages on standard error."""

import sys
import time
import traceback
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _MutuallyExclusiveGroup

from mirror_report.config import Settings
from mirror_report.config.load import load_settings
from mirror_report.model import sentence
from mirror_report.render import figures

FORMATS = ("terminal", "json", "nagios")


def flow(parser: ArgumentParser, text: str = "only this flow") -> None:
    """Add ``--flow``."""
    parser.add_argument("--flow", metavar="NAME", help=text)


def formats(parser: ArgumentParser) -> _MutuallyExclusiveGroup:
    """Add the formats of an answer; returns the group of options that exclude each other."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--format", choices=FORMATS, default="terminal",
        help="text, one JSON object, or one line with performance data (default terminal)",
    )  # fmt: skip
    json(group, "short for --format json")
    return group


def json(parser: ArgumentParser | _MutuallyExclusiveGroup, text: str) -> None:
    """Add ``--json``."""
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", default="terminal", help=text
    )


def wide(parser: ArgumentParser) -> None:
    """Add ``--wide``."""
    parser.add_argument("--wide", action="store_true", help="every row, and partition by partition")


def positive(text: str) -> float:
    """A number above 0."""
    if not 0 < (value := float(text)) < float("inf"):
        raise ArgumentTypeError("a number above 0 is expected")
    return value


def whole(text: str) -> int:
    """A whole number above 0."""
    if (value := int(text)) < 1:
        raise ArgumentTypeError("a number above 0 is expected")
    return value


def settings(options: Namespace) -> Settings:
    """Configuration that the options name.

    :raises ReportError: it cannot be read, or is wrong.
    """
    return load_settings(options.config)


def show_progress(text: str) -> None:
    """Print what is being done, with the time if a person may be watching."""
    stamp = time.strftime("%H:%M:%S ") if sys.stderr.isatty() else ""
    print(f"{stamp}{figures.plain(text)}", file=sys.stderr, flush=True)


def show_error(text: str) -> None:
    """Print what went wrong."""
    print(f"mirror-report: {figures.plain(text)}", file=sys.stderr, flush=True)


def show_traceback(error: BaseException) -> None:
    """Print where an error happened."""
    try:
        traceback.print_exception(error, file=sys.stderr)
    except Exception:  # see sentence()
        show_error(sentence(error))
