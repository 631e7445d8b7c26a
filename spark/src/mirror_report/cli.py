"""``mirror-report``: commands, exit statuses, and words for an operator.

Exit status: 0 whole, 1 warning, 2 critical, 3 unknown or failed (usage errors too).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from mirror_report import answers, commands, metrics
from mirror_report.arguments import parser
from mirror_report.checks.verdict import EXIT_CODES, verdict, worst_first
from mirror_report.config.load import load
from mirror_report.config.settings import Settings
from mirror_report.model.document import (
    CheckDocument,
    GroupsDocument,
    LagDocument,
    ProofDocument,
    Report,
)
from mirror_report.model.errors import ReportError, sentence
from mirror_report.model.findings import Finding
from mirror_report.render import freshness
from mirror_report.render import json as render_json
from mirror_report.state.store import StateError, Store

D = TypeVar("D", LagDocument, Report)

FAILED = EXIT_CODES["unknown"]
PUBLISHED = ("latest.html", "latest.json")
"""What a web server shows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: the exit status.
    """
    options = parser().parse_args(arguments)
    if options.command == "lag":
        # It lives for a second and leaves nothing to collect.
        gc.disable()
    # Reports are for their group, never for everybody.
    os.umask(0o027)
    try:
        code = COMMANDS[options.command](options)
        sys.stdout.flush()
    except ReportError as error:
        return _failed(options, error, str(error))
    except BrokenPipeError:
        # The reader has left; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        _say("interrupted")
        return FAILED
    except Exception as error:  # a traceback never reaches an operator unasked
        text = f"failed: {sentence(error)}. `mirror-report --debug ...` shows where"
        return _failed(options, error, text)
    return code


def _failed(options: argparse.Namespace, error: BaseException, text: str) -> int:
    _tell_crash(options, error)
    _say(text)
    answers.failure(options, text)
    return FAILED


def _check(options: argparse.Namespace) -> int:
    checked = commands.check(_settings(options), options.flow)
    result = verdict(checked.findings)
    version = render_json.SCHEMA_VERSION
    answers.check(options, CheckDocument(version, result, checked.flows, checked.findings))
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
        _settings(options), options.flow, full_history=options.full_history, renew=options.renew,
        progress=_progress,
    )  # fmt: skip
    for flow, recorded in done.items():
        print(f"{flow}: {'recorded' if recorded else 'unchanged, recorded before'}")
    return EXIT_CODES["ok"]


def _lag(options: argparse.Namespace) -> int:
    settings = _settings(options)
    with metrics.recorded(settings, "lag", options.flow) as recorded:
        measured = commands.lag(settings, Store(settings.state_directory), options.flow)
        result = verdict(measured.findings)
        version = render_json.SCHEMA_VERSION
        document = LagDocument(version, result, measured.flows, measured.rows, measured.findings)
        document = _with(document, recorded.write(document))
    answers.lag(options, document)
    return document.verdict.exit_code


def _run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    asked = {
        "max_bytes": options.max_bytes,
        "max_records": options.max_records,
        "deadline_seconds": options.deadline,
        "max_lag_records": options.max_lag,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    settings = replace(settings, budget=replace(settings.budget, **given))
    store = Store(settings.state_directory)
    with metrics.recorded(settings, "run", options.flow) as recorded, store.lock():
        report = commands.run(
            settings,
            options.flow,
            _progress,
            on_crash=lambda error: _tell_crash(options, error),
        )
        report = _with(report, recorded.write(report))
        plain = render_json.document(report)
        # Jinja is needed by this command alone.
        from mirror_report.render import html  # noqa: PLC0415

        text = render_json.dumps(plain)
        page = store.write_report(_latest(options, "html"), html.render(plain))
        store.write_report(f"{report.run_id}.json", text)
        store.write_report(_latest(options, "json"), text)
        store.prune_reports()
        if settings.web_directory and options.flow is None:
            store.publish(settings.web_directory, PUBLISHED)
    answers.report(options, freshness.shown(plain, settings.interval_seconds), str(page))
    return report.verdict.exit_code


def _with(document: D, problem: Finding | None) -> D:
    """Document that also tells of a problem met while it was published."""
    if problem is None:
        return document
    findings = worst_first([*document.findings, problem])
    return replace(document, findings=findings, verdict=verdict(findings))


def _groups(options: argparse.Namespace) -> int:
    found = commands.groups(_settings(options), options.flow, _progress)
    result = verdict(found.findings)
    version = render_json.SCHEMA_VERSION
    answers.groups(options, GroupsDocument(version, result, found.groups, found.findings))
    return result.exit_code


def _prove(options: argparse.Namespace) -> int:
    proof = commands.prove(_settings(options), options.flow, options.topic, _progress)
    result = verdict(proof.findings)
    version = render_json.SCHEMA_VERSION
    answers.prove(options, ProofDocument(version, result, proof.topics, proof.findings))
    return result.exit_code


def _digest(options: argparse.Namespace) -> int:
    if options.output == "-" and sys.stdout.isatty():
        raise ReportError("a digest is not for a terminal. Name a file with --output")
    commands.digest(
        _settings(options),
        options.flow,
        options.side,
        lambda made: answers.bundle(options.output, made),
        _progress,
    )
    return EXIT_CODES["ok"]


def _compare(options: argparse.Namespace) -> int:
    one, other = options.bundles
    document = commands.compare(_settings(options), one, other, _progress)
    answers.apart(options, document)
    return document.verdict.exit_code


def _archive(options: argparse.Namespace) -> int:
    path, made = commands.archive(_settings(options), _progress)
    print(f"{path}: {'made' if made else 'unchanged, it fits'}")
    return EXIT_CODES["ok"]


def _publish(options: argparse.Namespace) -> int:
    settings = _settings(options)
    if settings.web_directory is None:
        raise ReportError("web_directory: not set, so there is no place to publish to. Set it")
    try:
        Store(settings.state_directory).publish(settings.web_directory, PUBLISHED)
    except FileNotFoundError:
        print("no report yet")
    else:
        print(f"{settings.web_directory}: published")
    return EXIT_CODES["ok"]


def _show(options: argparse.Namespace) -> int:
    settings = _settings(options)
    if options.flow is not None:
        settings.flow(options.flow)
    store = Store(settings.state_directory)
    page = store.reports_directory / _latest(options, "html")
    last = render_json.loads(_last_report(store, _latest(options, "json"), options.flow))
    plain = freshness.shown(last, settings.interval_seconds, datetime.now(UTC))
    if options.html_path:
        print(page)
    else:
        answers.report(options, plain, str(page))
    return int(plain["verdict"]["exit_code"])


def _latest(options: argparse.Namespace, kind: str) -> str:
    """Name of the last report; that of one flow does not stand for all of them."""
    return f"latest.{kind}" if options.flow is None else f"latest-{options.flow}.{kind}"


def _last_report(store: Store, name: str, flow: str | None) -> str:
    path = store.reports_directory / name
    command = "mirror-report run" + (f" --flow {flow}" if flow else "")
    try:
        return store.report(name)
    except FileNotFoundError:
        raise StateError(f"no report yet in {path}. Make one: {command}") from None
    except PermissionError as error:
        raise StateError(
            f"{path} cannot be read: {error.strerror}. Run as root, or join the group that may "
            "read reports"
        ) from error
    except OSError as error:
        raise StateError(
            f"{path} cannot be read: {error.strerror}. Find out who put it there, remove it, and "
            f"make a report: {command}"
        ) from error


def _settings(options: argparse.Namespace) -> Settings:
    return load(options.config)


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


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "archive": _archive,
    "check": _check,
    "compare": _compare,
    "confirm": _confirm,
    "digest": _digest,
    "baseline": _baseline,
    "groups": _groups,
    "lag": _lag,
    "prove": _prove,
    "publish": _publish,
    "run": _run,
    "show": _show,
}

if __name__ == "__main__":
    sys.exit(main())
