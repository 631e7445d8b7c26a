"""What is recorded of a mirror's unit on this host; for root, who alone may read it."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirror_report import units
from mirror_report.checks import causes
from mirror_report.config.load import parse
from mirror_report.model import Ended, ReportError, UnitRecord
from mirror_report.observe import open_clients

# Of what a cluster answers.
TEXT = 500
# Of a journal that is read each minute.
LINES = 1000
YOUNG_SECONDS = 60


def unit_record(name: str, former: UnitRecord | None, *, logins: bool) -> UnitRecord:
    """What is to be known of one unit, or why it is not.

    :param former: what was recorded of it last.
    :param logins: whether to log in as it does, too.
    """
    try:
        state = units.state_of(f"{name}.service")
        now = time.time()
        lines = units.journal_of(f"{name}.service", LINES) if state else []
    except ReportError as error:
        problem = f"{error.message} on {name}.service"
        history = former.history if former else ()
        return UnitRecord(name, "unknown", "unknown", time.time(), history=history, problem=problem)
    if state is None:
        return UnitRecord(name, "inactive", "dead", at=now)
    (ended, own), until = causes.by_process(lines), now
    if ended and (state.running_seconds or 0) < YOUNG_SECONDS:
        # What the last one logged, as long as this one has not logged more.
        own = [*ended[-1][1], *own]
        until = ended[-1][1][-1].at if state.running_seconds is None else now
    tried = now if logins else former.tried if former else 0.0
    refused = _refused(name) if logins else former.refused if former else ()
    history = former.history if former else _history(state.ends, ended)
    return UnitRecord(
        name=name,
        active=state.active,
        sub=state.sub,
        at=now,
        running_seconds=state.running_seconds,
        history=causes.counted([*history, (now, state.ends)]),
        ended=ended[-1][0] if ended else "",
        cause=causes.cause(own, until),
        # Kept for the command that asked for it; the timer may record it again in between.
        refused=tuple(refused) if now - tried < YOUNG_SECONDS else (),
        tried=tried,
    )


def _history(ends: int, ended: Sequence[Ended]) -> tuple[tuple[float, int], ...]:
    """When a process ended before anything was recorded, by the journal; stops by hand are some."""
    first = ends - len(ended)
    return tuple((lines[-1].at, max(0, first + at)) for at, (_, lines) in enumerate(ended))


def _refused(name: str) -> list[str]:
    """What clusters answer to the mirror's own login, as far as they refuse it."""
    try:
        kept: Mapping[str, Any] = json.loads(Path(f"/etc/{name}/last-good.json").read_text("utf-8"))
        settings = parse(json.loads(kept["client"]))
    except (OSError, ValueError, KeyError, ReportError):
        return []  # it was never confirmed, or by another release
    refusals = []
    with open_clients(settings, settings.clusters) as clients:
        for alias in settings.clusters:
            try:
                clients.get(alias)
            except ReportError as error:
                if error.kind == "authentication":
                    refusals.append(str(error.message)[:TEXT])
    return refusals
