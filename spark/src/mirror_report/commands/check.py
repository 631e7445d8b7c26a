"""``check``: findings about flows, their topics, permissions and certificates.

It changes nothing.
"""

from argparse import ArgumentParser, Namespace

from mirror_report.check.flows import check_flows
from mirror_report.commands import shared
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``check``."""
    shared.flow(parser)
    shared.formats(parser)


def answer(options: Namespace) -> Answer:
    """Check the flows.

    :raises ReportError: the configuration or the flow's name is wrong.
    """
    return formats.with_verdict(check_flows(shared.settings(options), options.flow))
