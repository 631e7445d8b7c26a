"""``compare``: two bundles of digests, on any host; no cluster is asked."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mirror_report.commands import shared
from mirror_report.digests.comparison import compare_bundles
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``compare``."""
    parser.add_argument("bundles", metavar="BUNDLE", nargs=2, type=Path)
    shared.json(parser, "result as one JSON object")


def answer(options: Namespace) -> Answer:
    """Compare two bundles.

    :raises ReportError: one cannot be read, or they do not belong together.
    """
    first, second = options.bundles
    return formats.with_verdict(
        compare_bundles(shared.settings(options).spark, first, second, shared.show_progress)
    )
