"""``show``: the last report."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from mirror_report.commands import shared
from mirror_report.render import Answer, formats, freshness
from mirror_report.render import json as render_json
from mirror_report.state.store import StateError, Store, last_report_name


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``show``."""
    shared.flow(parser, "the last report of run --flow NAME")
    shared.formats(parser).add_argument(
        "--html-path", action="store_true", help="print where the page lies"
    )
    shared.wide(parser)


def answer(options: Namespace) -> Answer:
    """Read the last report, and how old it is.

    :raises ReportError: there is none, or it cannot be read.
    """
    settings = shared.settings(options)
    if options.flow is not None:
        settings.flow(options.flow)
    store = Store(settings.state_directory)
    page = str(store.reports_directory / last_report_name("html", options.flow))
    last = render_json.loads(_last_report(store, options.flow))
    shown = formats.report(
        freshness.shown(last, settings.interval_seconds, datetime.now(UTC)), page
    )
    return formats.lines(page, exit_code=shown.exit_code) if options.html_path else shown


def _last_report(store: Store, flow: str | None) -> str:
    name = last_report_name("json", flow)
    path = store.reports_directory / name
    command = "mirror-report run" + (f" --flow {flow}" if flow else "")
    try:
        return store.report(name)
    except FileNotFoundError:
        raise StateError(f"no report yet in {path}", f"Make one: {command}") from None
    except OSError as error:
        raise StateError(
            f"{path} cannot be read: {error.strerror}",
            "Run as root, or join the group that may read reports"
            if isinstance(error, PermissionError)
            else f"Find out who put it there, remove it, and make a report: {command}",
        ) from error
