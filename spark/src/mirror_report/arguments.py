"""The command line: commands and their options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from mirror_report import __version__
from mirror_report.checks.verdict import EXIT_CODES
from mirror_report.config.settings import DEFAULT_PATH

SIDES = ("source", "target")
FORMATS = ("terminal", "json", "nagios")


class Parser(argparse.ArgumentParser):
    """Argument parser whose usage errors are ``unknown``, not ``critical``."""

    def error(self, message: str) -> NoReturn:
        """End with the usage, the message and status 3."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_CODES["unknown"], f"{self.prog}: {message}\n")


def parser() -> Parser:
    """Parser of the whole command line; ``command`` names the command."""
    whole = Parser(
        prog="mirror-report",
        description="Says whether a Kafka mirror is whole: lag, topics, and every record's parity.",
        epilog="Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed.",
    )
    whole.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    whole.add_argument(
        "--config",
        default=DEFAULT_PATH,
        metavar="PATH",
        help=f"configuration, - for standard input (default {DEFAULT_PATH})",
    )
    whole.add_argument("--debug", action="store_true", help="show tracebacks")
    rooms = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def add(name: str, text: str, *, flow: str = "look only at this flow") -> Any:
        one = rooms.add_parser(name, help=text, description=text)
        if flow:
            one.add_argument("--flow", metavar="NAME", help=flow)
        return one

    one = add("check", "judge clusters, permissions and topics; change nothing")
    _outputs(one)
    one = add("confirm", "wait until the flows' process has taken up its work")
    one.add_argument(
        "--member-host", metavar="HOST", action="append", default=[], nargs="+",
        help="host the process runs on (may be repeated; default: any)",
    )  # fmt: skip
    one.add_argument("--timeout", metavar="SECONDS", type=_positive, default=60.0)
    one.add_argument("--json", action="store_true", help="result as one JSON object")
    one = add("baseline", "record where verification starts; keeps what is recorded")
    how = one.add_mutually_exclusive_group()
    how.add_argument(
        "--full-history", action="store_true", help="start over: compare all both logs still hold"
    )
    how.add_argument("--renew", action="store_true", help="start over: compare from now on")
    one = add("lag", "measure lag; takes about a second")
    _outputs(one)
    _wide(one)
    one = add("run", "make the whole report")
    _outputs(one)
    _wide(one)
    one.add_argument("--max-bytes", metavar="N", type=_whole, help="read at most so many bytes")
    one.add_argument("--max-records", metavar="N", type=_whole, help="read at most so many records")
    one.add_argument("--deadline", metavar="SECONDS", type=_positive, help="end within this time")
    one.add_argument(
        "--max-lag", metavar="N", type=_whole,
        help="leave a flow's content alone while its mirror is more records behind",
    )  # fmt: skip
    one = add("groups", "tell what consumer groups would lose or read again on the target now")
    _outputs(one)
    _wide(one)
    one = add(
        "prove", "compare topics at rest whatever their timestamps; remember nothing", flow=""
    )
    one.add_argument("--flow", metavar="NAME", required=True, help="the flow that mirrors them")
    one.add_argument("--topic", metavar="NAME", help="only this one, by its name on either side")
    one.add_argument(
        "--json", action="store_const", const="json", dest="format", default="terminal",
        help="what was found as one JSON object",
    )  # fmt: skip
    one = add("digest", "digest one side, near its cluster", flow="the flow, if there are several")
    one.add_argument("--side", choices=SIDES, required=True, help="which cluster is read")
    one.add_argument(
        "--output", metavar="PATH", default="-",
        help="file or directory of the bundle (default: standard output)",
    )  # fmt: skip
    one = add("compare", "hold two digests against each other; ask no cluster", flow="")
    one.add_argument("bundles", metavar="BUNDLE", nargs=2, type=Path)
    one.add_argument("--json", action="store_true", help="result as one JSON object")
    add("archive", "let Spark start faster: archive the classes it loads", flow="")
    add("publish", "put the last report where the web view shows it", flow="")
    one = add("show", "show the last report", flow="the last report of run --flow NAME")
    how = _outputs(one)
    how.add_argument("--html-path", action="store_true", help="print where the page lies")
    _wide(one)
    return whole


def _outputs(one: argparse.ArgumentParser) -> Any:
    """Add what a command may print; returns the group of options that exclude each other."""
    how = one.add_mutually_exclusive_group()
    how.add_argument(
        "--format", choices=FORMATS, default="terminal",
        help="text, one JSON object, or one line with performance data (default terminal)",
    )  # fmt: skip
    how.add_argument(
        "--json", action="store_const", const="json", dest="format", help="short for --format json"
    )
    return how


def _wide(one: argparse.ArgumentParser) -> None:
    one.add_argument("--wide", action="store_true", help="every row, and partition by partition")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("a number above 0 is expected")
    return value


def _whole(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("a number above 0 is expected")
    return value
