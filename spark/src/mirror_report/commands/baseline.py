"""``baseline``: where verification starts."""

from argparse import ArgumentParser, Namespace

from mirror_report.baseline.record import record_baselines
from mirror_report.commands import shared
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``baseline``."""
    shared.flow(parser)
    parser.add_argument(
        "--topic", metavar="NAME",
        help="with an option to start over: only this topic of the source; the others go on",
    )  # fmt: skip
    start_over = parser.add_mutually_exclusive_group()
    start_over.add_argument(
        "--full-history", action="store_true", help="start over: compare all both logs still hold"
    )
    start_over.add_argument("--renew", action="store_true", help="start over: compare from now on")


def answer(options: Namespace) -> Answer:
    """Record baselines.

    :raises ReportError: a cluster cannot be read, or an earlier release recorded a baseline.
    """
    recorded = record_baselines(
        shared.settings(options),
        options.flow,
        full_history=options.full_history,
        renew=options.renew,
        topic=options.topic,
        progress=shared.show_progress,
    )
    return formats.lines(
        *(
            f"{flow}: {'recorded' if new else 'unchanged, recorded before'}"
            for flow, new in recorded.items()
        )
    )
