"""``mirror-report``: commands, exit statuses, and words for an operator.

Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed (usage errors too).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from mirror_report import __version__, commands, config
from mirror_report.checks.verdict import EXIT_CODES, verdict
from mirror_report.config import Settings
from mirror_report.model import CheckDocument, LagDocument, ReportError, sentence
from mirror_report.render import json as render_json
from mirror_report.render import terminal
from mirror_report.state.store import StateError, Store

FAILED = EXIT_CODES["unknown"]


class _Parser(argparse.ArgumentParser):
    """Argument parser whose usage errors are ``unknown``, not ``critical``."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: the exit status.
    """
    options = _parser().parse_args(arguments)
    # Reports are for their group, never for everybody.
    os.umask(0o027)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except ReportError as error:
        _tell_crash(options, error)
        _say(str(error))
        return FAILED
    except BrokenPipeError:
        # The reader has left; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        _say("interrupted")
        return FAILED
    except Exception as error:  # a traceback never reaches an operator unasked
        _tell_crash(options, error)
        _say(f"failed: {sentence(error)}. `mirror-report --debug ...` shows where")
        return FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mirror-report",
        description="Says whether a Kafka mirror is whole: lag, topics, and every record's parity.",
        epilog="Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "--config",
        default=config.DEFAULT_PATH,
        metavar="PATH",
        help=f"configuration, - for standard input (default {config.DEFAULT_PATH})",
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    rooms = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Any, text: str, *, flow: str = "look only at this flow") -> Any:
        one = rooms.add_parser(name, help=text, description=text)
        one.set_defaults(command=command)
        if flow:
            one.add_argument("--flow", metavar="NAME", help=flow)
        return one

    one = add("check", _check, "judge clusters, permissions and topics; change nothing")
    one.add_argument("--json", action="store_true", help="findings as one JSON object")
    one = add("confirm", _confirm, "wait until the flows' process has taken up its work")
    one.add_argument(
        "--member-host", metavar="HOST", action="append", default=[], nargs="+",
        help="host the process runs on (may be repeated; default: any)",
    )  # fmt: skip
    one.add_argument("--timeout", metavar="SECONDS", type=_positive, default=60.0)
    one.add_argument("--json", action="store_true", help="result as one JSON object")
    one = add("baseline", _baseline, "record where verification starts; keeps what is recorded")
    how = one.add_mutually_exclusive_group()
    how.add_argument(
        "--full-history", action="store_true", help="start over: compare all both logs still hold"
    )
    how.add_argument("--renew", action="store_true", help="start over: compare from now on")
    one = add("lag", _lag, "measure lag; takes about a second")
    one.add_argument("--json", action="store_true", help="rows as one JSON object")
    one = add("run", _run, "make the whole report")
    one.add_argument("--json", action="store_true", help="print the report as JSON")
    one.add_argument("--max-bytes", metavar="N", type=_bytes, help="read at most so many bytes")
    one.add_argument("--deadline", metavar="SECONDS", type=_positive, help="end within this time")
    add("archive", _archive, "let Spark start faster: archive the classes it loads", flow="")
    one = add("show", _show, "show the last report", flow="")
    how = one.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print it as JSON")
    how.add_argument("--html-path", action="store_true", help="print where the page lies")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("a number above 0 is expected")
    return value


def _bytes(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("a number above 0 is expected")
    return value


def _check(options: argparse.Namespace) -> int:
    checked = commands.check(_settings(options), options.flow)
    result = verdict(checked.findings)
    findings = [asdict(one) for one in checked.findings]
    if options.json:
        plain = CheckDocument(render_json.SCHEMA_VERSION, result, checked.flows, checked.findings)
        _print_json(render_json.document(plain))
    else:
        out = terminal.console(sys.stdout)
        if not findings:
            out.print("ok: nothing stands against the flows", markup=False)
        terminal.findings(findings, out)
    return result.exit_code


def _confirm(options: argparse.Namespace) -> int:
    hosts = [one for some in options.member_host for one in some]
    found = commands.confirm(_settings(options), options.flow, hosts, options.timeout, _progress)
    ok = all(one.ok for one in found)
    if options.json:
        _print_json({"ok": ok, "flows": [asdict(one) for one in found]})
    else:
        for one in found:
            print(one.text)
    return EXIT_CODES["ok" if ok else "critical"]


def _baseline(options: argparse.Namespace) -> int:
    done = commands.baseline(
        _settings(options), options.flow, full_history=options.full_history, renew=options.renew
    )
    for flow, recorded in done.items():
        print(f"{flow}: {'recorded' if recorded else 'unchanged, recorded before'}")
    return EXIT_CODES["ok"]


def _lag(options: argparse.Namespace) -> int:
    settings = _settings(options)
    measured = commands.lag(settings, Store(settings.state_directory), options.flow)
    result = verdict(measured.findings)
    if options.json:
        plain = LagDocument(
            render_json.SCHEMA_VERSION, result, measured.flows, measured.rows, measured.findings
        )
        _print_json(render_json.document(plain))
    else:
        out = terminal.console(sys.stdout)
        terminal.findings([asdict(one) for one in measured.findings], out)
        terminal.lag([asdict(one) for one in measured.rows], out)
    return result.exit_code


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    store = Store(settings.state_directory)
    with store.lock():
        report = commands.run(
            settings,
            options.flow,
            _progress,
            max_bytes=options.max_bytes,
            deadline_seconds=options.deadline,
            on_crash=lambda error: _tell_crash(options, error),
        )
        plain = render_json.document(report)
        # Jinja is needed by this command alone.
        from mirror_report.render import html  # noqa: PLC0415

        text = render_json.dumps(plain)
        page = store.write_report("latest.html", html.render(plain))
        store.write_report(f"{report.run_id}.json", text)
        store.write_report("latest.json", text)
        store.prune_reports()
    if options.json:
        sys.stdout.write(text)
    else:
        terminal.show(plain, terminal.console(sys.stdout), str(page))
    return report.verdict.exit_code


def _archive(options: argparse.Namespace) -> int:
    path, made = commands.archive(_settings(options), _progress)
    print(f"{path}: {'made' if made else 'unchanged, it fits'}")
    return EXIT_CODES["ok"]


def _show(options: argparse.Namespace) -> int:
    settings = _settings(options)
    reports = Store(settings.state_directory).reports_directory
    page = reports / "latest.html"
    plain = render_json.loads(_last_report(reports / "latest.json"))
    if options.html_path:
        print(page)
    elif options.json:
        sys.stdout.write(render_json.dumps(plain))
    else:
        terminal.show(plain, terminal.console(sys.stdout), str(page))
    return int(plain["verdict"]["exit_code"])


def _last_report(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StateError(
            f"no report yet below {path.parent}. Make one: mirror-report run"
        ) from None
    except OSError as error:
        raise StateError(
            f"{path} cannot be read: {error.strerror}. Run as root, or join the group that may "
            "read reports"
        ) from error


def _settings(options: argparse.Namespace) -> Settings:
    return config.load(options.config)


def _print_json(plain: dict[str, Any]) -> None:
    print(json.dumps(plain, ensure_ascii=False, indent=2))


def _progress(text: str) -> None:
    stamp = time.strftime("%H:%M:%S ") if sys.stderr.isatty() else ""
    print(f"{stamp}{text}", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(f"mirror-report: {text}", file=sys.stderr, flush=True)


def _tell_crash(options: argparse.Namespace, error: BaseException) -> None:
    if options.debug:
        try:
            traceback.print_exception(error, file=sys.stderr)
        except Exception:  # see sentence()
            _say(sentence(error))


if __name__ == "__main__":
    sys.exit(main())
