"""``groups``: what consumer groups would lose or read again if they moved to the target now."""

from argparse import ArgumentParser, Namespace

from mirror_report.commands import shared
from mirror_report.groups.moving import examine_groups
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``groups``."""
    shared.flow(parser)
    shared.formats(parser)
    shared.wide(parser)


def answer(options: Namespace) -> Answer:
    """Examine the flows' groups.

    :raises ReportError: the configuration or the flow's name is wrong.
    """
    return formats.with_verdict(
        examine_groups(shared.settings(options), options.flow, shared.show_progress)
    )
