"""``units``: what this host's mirrors log and answer; for root, who alone may read it.

The report's user reads no journal and no credential of a mirror. So root leaves a record for it:
fixed words, numbers, topics' legal names and addresses of brokers, and nothing else of what was
logged.
"""

from argparse import ArgumentParser, Namespace

from mirror_report import units
from mirror_report.checks import causes
from mirror_report.commands.confirm import ended_before
from mirror_report.model import UnitRecord
from mirror_report.processes.unit_record import unit_record
from mirror_report.processes.watch import UnitWatch
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``units``."""
    parser.add_argument("--record", action="store_true", help=f"leave it in {units.RECORD}")
    parser.add_argument(
        "--logins", action="store_true", help="log in to the clusters as the mirrors do"
    )
    parser.add_argument(
        "--ended", metavar="UNIT",
        help="say alone whether the process of this unit has ended three times, and why",
    )  # fmt: skip
    ended_before(parser)


def answer(options: Namespace) -> Answer:
    """Ask systemd for every mirror of this host.

    :raises ReportError: nothing can be written.
    """
    if options.ended:
        failed = UnitWatch.of(options.ended, options.ended_before).failed()
        return formats.lines(*([failed] if failed else []))
    before = units.read_records(units.RECORD) or ()
    former = {record.name: record for record in before}
    records = [unit_record(name, former.get(name), logins=options.logins) for name in units.ours()]
    if options.record:
        units.write_records(units.RECORD, records)
    return formats.lines(*map(_line, records))


def _line(record: UnitRecord) -> str:
    why = causes.in_words(record.cause) + causes.age_in_words(record.cause, record.at)
    clauses = [
        f"{record.active} ({record.sub})",
        *([f"its last process ended with {record.ended}"] if record.ended else []),
        *([why] if why else []),
        *([record.problem] if record.problem else []),
    ]
    return f"{record.name}: {'; '.join(clauses)}"
