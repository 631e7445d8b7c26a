"""``units``: what this host's mirrors say of themselves; for root, who alone may read it.

The report's user reads no journal and no credential of a mirror. So root leaves a record for it:
fixed words, numbers, topics' legal names and addresses of brokers, and nothing else of what was
logged.
"""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirror_report import units
from mirror_report.checks import causes, processes
from mirror_report.commands.confirm import UnitWatch, ended_before
from mirror_report.config import Flow, Settings
from mirror_report.config.load import parse
from mirror_report.model import Ended, Finding, PartitionLag, ReportError, UnitRecord
from mirror_report.observe import open_clients
from mirror_report.render import Answer, formats

TEXT = 500
# Of a journal that is read each minute.
LINES = 1000
YOUNG_SECONDS = 60
MINUTE = 60.0
FRESH_INTERVALS = 3


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
    """Look at every mirror of this host.

    :raises ReportError: nothing can be written.
    """
    if options.ended:
        lost = UnitWatch.of(options.ended, options.ended_before).failed()
        return formats.lines(*([lost] if lost else []))
    before = units.read(units.RECORD) or ()
    former = {record.name: record for record in before}
    records = [_looked_at(name, former.get(name), logins=options.logins) for name in units.ours()]
    if options.record:
        units.write(units.RECORD, records)
    return formats.lines(*map(_line, records))


def processes_of(
    settings: Settings,
    flows: Sequence[Flow],
    found: Sequence[Finding],
    rows: Sequence[PartitionLag] = (),
) -> list[Finding]:
    """What was recorded of the flows' processes on this host, as findings.

    :param found: what is known of the flows beside it; ``rows``: their lag.
    """
    if not settings.units_file:
        return []
    records = units.read(Path(settings.units_file))
    # A record that is not renewed says nothing of now.
    oldest = time.time() - FRESH_INTERVALS * max(settings.lag_interval_seconds, MINUTE)
    if records is None or any(record.at < oldest for record in records):
        return processes.not_recorded(settings.units_file)
    kinds = {flow.name: [one.kind for one in found if one.flow == flow.name] for flow in flows}
    of_flows = [
        each
        for flow in flows
        for each in processes.judge(
            flow, records, kinds[flow.name], [row for row in rows if row.flow == flow.name]
        )
    ]
    if (here := settings.instances) is None:
        return of_flows
    resting = [
        each for flow in flows for each in processes.resting(flow, records, here, kinds[flow.name])
    ]
    return [*of_flows, *resting, *processes.undeclared(records, here)]


def _looked_at(name: str, former: UnitRecord | None, *, logins: bool) -> UnitRecord:
    """As :func:`look`; one unit that cannot be looked at hides no other."""
    try:
        return look(name, former, logins=logins)
    except ReportError as error:
        problem = f"{error.message} on {name}.service"
        history = former.history if former else ()
        return UnitRecord(name, "unknown", "unknown", time.time(), history=history, problem=problem)


def look(name: str, former: UnitRecord | None, *, logins: bool) -> UnitRecord:
    """What is to be known of one unit.

    :param former: what was recorded of it last.
    :param logins: whether to log in as it does, too.
    :raises ReportError: systemd or its journal does not answer.
    """
    state = units.state(f"{name}.service")
    now = time.time()
    if state is None:
        return UnitRecord(name, "inactive", "dead", at=now)
    lines = units.journal(f"{name}.service", LINES)
    ended, own, until = causes.ended(lines), causes.running(lines), now
    if ended and (state.running_seconds or 0) < YOUNG_SECONDS:
        # The last one's words, as long as this one has not said more.
        own = [*ended[-1][1], *own]
        until = ended[-1][1][-1].at if state.running_seconds is None else now
    tried = now if logins else former.tried if former else 0.0
    refused = _refused(name) if logins else former.refused if former else ()
    seen = former.history if former else _seen(state.ends, ended)
    return UnitRecord(
        name=name,
        active=state.active,
        sub=state.sub,
        at=now,
        running_seconds=state.running_seconds,
        history=causes.counted([*seen, (now, state.ends)]),
        ended=ended[-1][0] if ended else "",
        cause=causes.cause(own, until),
        # Kept for the command that asked for it; the timer may look in between.
        refused=tuple(refused) if now - tried < YOUNG_SECONDS else (),
        tried=tried,
    )


def _seen(ends: int, ended: Sequence[Ended]) -> tuple[tuple[float, int], ...]:
    """When a process ended before anything was recorded, by the journal; some were told to."""
    first = ends - len(ended)
    return tuple((said[-1].at, max(0, first + at)) for at, (_, said) in enumerate(ended))


def _refused(name: str) -> list[str]:
    """What clusters say to the mirror's own login, as far as they refuse it."""
    try:
        kept: Mapping[str, Any] = json.loads(Path(f"/etc/{name}/last-good.json").read_text("utf-8"))
        settings = parse(json.loads(kept["client"]))
    except (OSError, ValueError, KeyError, ReportError):
        return []  # it was never confirmed, or by another release
    said = []
    with open_clients(settings, settings.clusters) as clients:
        for alias in settings.clusters:
            try:
                clients.get(alias)
            except ReportError as error:
                if error.kind == "authentication":
                    said.append(str(error.message)[:TEXT])
    return said


def _line(record: UnitRecord) -> str:
    why = causes.sentence(record.cause) + causes.since(record.cause, record.at)
    said = [
        f"{record.active} ({record.sub})",
        *([f"its last process ended with {record.ended}"] if record.ended else []),
        *([why] if why else []),
        *([record.problem] if record.problem else []),
    ]
    return f"{record.name}: {'; '.join(said)}"
