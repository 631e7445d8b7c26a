"""``confirm``: whether the flows' processes took up their work; writes nothing."""

from argparse import ArgumentParser, Namespace

from mirror_report.commands import shared
from mirror_report.confirm.flows import confirm_flows
from mirror_report.processes.watch import UnitWatch
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``confirm``."""
    shared.flow(parser)
    parser.add_argument(
        "--member-host", metavar="HOST", action="append", default=[], nargs="+",
        help="host the process runs on (may be repeated; default: any)",
    )  # fmt: skip
    parser.add_argument(
        "--unit", metavar="UNIT",
        help="systemd unit of the process on this host: give up when it has ended three times",
    )  # fmt: skip
    ended_before(parser)
    parser.add_argument("--timeout", metavar="SECONDS", type=shared.positive, default=60.0)
    shared.json(parser, "result as one JSON object")


def answer(options: Namespace) -> Answer:
    """Watch the flows' processes.

    :raises ReportError: a cluster cannot be asked.
    """
    hosts = [host for hosts in options.member_host for host in hosts]
    return formats.confirmation(
        confirm_flows(
            shared.settings(options),
            options.flow,
            hosts,
            options.timeout,
            shared.show_progress,
            UnitWatch.of(options.unit, options.ended_before),
        )
    )


def ended_before(parser: ArgumentParser) -> None:
    """Add ``--ended-before``."""
    parser.add_argument(
        "--ended-before", metavar="N", type=int,
        help="ends of the process (NRestarts of its unit) that do not count (default: all so far)",
    )  # fmt: skip
