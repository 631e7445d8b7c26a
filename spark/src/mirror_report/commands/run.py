"""``run``: the whole report."""

import dataclasses
from argparse import ArgumentParser, Namespace

from mirror_report import metrics
from mirror_report.commands import shared
from mirror_report.model import (
    Report,
)
from mirror_report.render import Answer, formats, freshness
from mirror_report.report.make import make_report
from mirror_report.state.store import PUBLISHED, Store, last_report_name


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``run``."""
    shared.flow(parser)
    shared.formats(parser)
    shared.wide(parser)
    parser.add_argument(
        "--max-bytes", metavar="N", type=shared.whole, help="read at most so many bytes"
    )
    parser.add_argument(
        "--max-records", metavar="N", type=shared.whole, help="read at most so many records"
    )
    parser.add_argument(
        "--deadline", metavar="SECONDS", type=shared.positive, help="end within this time"
    )
    parser.add_argument(
        "--max-lag", metavar="N", type=shared.whole,
        help="leave a flow's content alone while its mirror is more records behind",
    )  # fmt: skip


def answer(options: Namespace) -> Answer:
    """Make the report, and leave it in the state directory, in the metrics and in the web view.

    :raises ReportError: another run holds the state, or the state cannot be used.
    """
    settings = shared.settings(options)
    budget = {
        "max_bytes": options.max_bytes,
        "max_records": options.max_records,
        "deadline_seconds": options.deadline,
        "max_lag_records": options.max_lag,
    }
    given = {name: bound for name, bound in budget.items() if bound is not None}
    settings = dataclasses.replace(settings, budget=dataclasses.replace(settings.budget, **given))
    store = Store(settings.state_directory)
    on_crash = shared.show_traceback if options.debug else lambda _: None
    page = store.reports_directory / last_report_name("html", options.flow)
    with metrics.recorded(settings, "run", options.flow) as recorded, store.lock():

        def publish(made: Report) -> Report:
            made = recorded.write(made)
            written = formats.with_verdict(made)
            store.write_report(page.name, formats.text("html", written))
            text = formats.text("json", written)
            store.write_report(last_report_name("json", options.flow), text)
            # What the run found counts as reported from here on.
            store.write_report(f"{made.run_id}.json", text)
            store.prune_reports()
            if settings.web_directory and options.flow is None:
                store.publish(settings.web_directory, PUBLISHED)
            return made

        report = make_report(
            settings, options.flow, shared.show_progress, publish, on_crash=on_crash
        )
    document = formats.with_verdict(report).document
    return formats.report(freshness.shown(document, settings.interval_seconds), str(page))
