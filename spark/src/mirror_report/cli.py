"""``mirror-report``: the parser and the exit status.

Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed (usage errors too).
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from mirror_report import __version__
from mirror_report.checks.verdict import EXIT_CODES
from mirror_report.commands import (
    archive,
    baseline,
    check,
    compare,
    confirm,
    digest,
    groups,
    lag,
    prove,
    publish,
    run,
    shared,
    show,
)
from mirror_report.config import DEFAULT_PATH
from mirror_report.model import ReportError, sentence
from mirror_report.render import Answer
from mirror_report.render.formats import FORMATS

FAILED = EXIT_CODES["unknown"]


class Command(Protocol):
    """A module of :mod:`mirror_report.commands`."""

    HELP: str

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what may be typed after the command's name."""

    def answer(self, options: argparse.Namespace) -> Answer:
        """Do what was asked.

        :raises ReportError: there is no answer.
        """


COMMANDS: Mapping[str, Command] = {
    "check": check,
    "confirm": confirm,
    "baseline": baseline,
    "lag": lag,
    "run": run,
    "groups": groups,
    "prove": prove,
    "digest": digest,
    "compare": compare,
    "archive": archive,
    "publish": publish,
    "show": show,
}


class Parser(argparse.ArgumentParser):
    """Argument parser whose usage errors are ``unknown``, not ``critical``."""

    def error(self, message: str) -> NoReturn:
        """End with the usage, the message and status 3."""
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: {message}\n")


def parser() -> Parser:
    """Parser of the whole command line; ``command`` names the command."""
    whole = Parser(
        prog="mirror-report",
        description="Says whether a Kafka mirror is whole: lag, topics, and every record's parity.",
        epilog="Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed.",
    )
    whole.set_defaults(format="terminal", wide=False)
    whole.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    whole.add_argument(
        "--config",
        default=DEFAULT_PATH,
        metavar="PATH",
        help=f"configuration, - for standard input (default {DEFAULT_PATH})",
    )
    whole.add_argument("--debug", action="store_true", help="show tracebacks")
    choices = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, command in COMMANDS.items():
        command.add_options(choices.add_parser(name, help=command.HELP, description=command.HELP))
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: the exit status.
    """
    options = parser().parse_args(arguments)
    # Reports are for their group, never for everybody.
    os.umask(0o027)
    try:
        answer = COMMANDS[options.command].answer(options)
        FORMATS[options.format].write(answer, sys.stdout, wide=options.wide)
        sys.stdout.flush()
    except ReportError as error:
        return _failed(options, error, str(error))
    except BrokenPipeError:
        # The reader has gone: nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        shared.say("interrupted")
        return FAILED
    except Exception as error:  # a traceback never reaches an operator unasked
        return _failed(
            options, error, f"failed: {sentence(error)}. `mirror-report --debug ...` shows where"
        )
    return answer.exit_code


def _failed(options: argparse.Namespace, error: BaseException, text: str) -> int:
    if options.debug:
        shared.show_traceback(error)
    shared.say(text)
    FORMATS[options.format].fail(text, sys.stdout)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
