"""``mirror-report``: the parser and the exit status.

Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed (usage errors too).
"""

import argparse
import importlib
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from types import ModuleType
from typing import NoReturn

from mirror_report import __version__
from mirror_report.checks.verdict import EXIT_CODES
from mirror_report.commands import shared
from mirror_report.config import DEFAULT_PATH
from mirror_report.model import ReportError, sentence
from mirror_report.render import Answer, formats

FAILED = EXIT_CODES["unknown"]


# What may be typed, and its help; a file of ``commands/`` each.
COMMANDS: Mapping[str, str] = {
    "check": "judge clusters, permissions and topics; change nothing",
    "confirm": "wait until the flows' process has taken up its work",
    "baseline": "record where verification starts; keeps what is recorded",
    "lag": "measure lag; takes about a second",
    "run": "make the whole report",
    "groups": "tell what consumer groups would lose or read again on the target now",
    "prove": "compare topics at rest whatever their timestamps; remember nothing",
    "digest": "digest one side, near its cluster",
    "compare": "hold two digests against each other; ask no cluster",
    "units": "tell what this host's mirrors say of themselves; for root",
    "archive": "let Spark start faster: archive the classes it loads",
    "publish": "put the last report where the web view shows it",
    "show": "show the last report",
}


def command(name: str) -> ModuleType:
    """The module of a command, imported when it is typed: most need little of the others."""
    return importlib.import_module(f"mirror_report.commands.{name}")


class Parser(argparse.ArgumentParser):
    """Argument parser whose usage errors are ``unknown``, not ``critical``."""

    def error(self, message: str) -> NoReturn:
        """End with the usage, the message and status 3."""
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: {message}\n")


def parser(typed: Collection[str] = COMMANDS.keys()) -> Parser:
    """Parser of the whole command line; ``command`` names the command.

    :param typed: commands whose options may follow; the others are listed.
    """
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
    for name, text in COMMANDS.items():
        chosen = choices.add_parser(name, help=text, description=text)
        if name in typed:
            command(name).add_options(chosen)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: the exit status.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser(arguments).parse_args(arguments)
    # Reports are for their group, never for everybody.
    os.umask(0o027)
    try:
        answer: Answer = command(options.command).answer(options)
        formats.write(options.format, answer, sys.stdout, wide=options.wide)
        sys.stdout.flush()
    except ReportError as error:
        return _failed(options, error, str(error))
    except BrokenPipeError:
        # The reader has gone: nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        shared.show_error("interrupted")
        return FAILED
    except Exception as error:  # a traceback never reaches an operator unasked
        return _failed(
            options, error, f"failed: {sentence(error)}. `mirror-report --debug ...` shows where"
        )
    return answer.exit_code


def _failed(options: argparse.Namespace, error: BaseException, text: str) -> int:
    if options.debug:
        shared.show_traceback(error)
    shared.show_error(text)
    formats.fail(options.format, text, sys.stdout)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
