"""Units of this host as systemd and its journal describe them; root alone may read both in full."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mirror_report.model import Cause, JournalLine, ReportError, UnitRecord, UnitState

# Where root leaves what the report's user may not find out.
RECORD = Path("/run/mirror-report-units/units.json")
UNITS = Path("/etc/systemd/system")
# Units that the role for mirrors and workers wrote carry this line.
UNIT_MARKER = "# Owner: role mirrormaker"
MOST = 100

# Of the journal of one unit: a process logs some hundred when it starts.
LINES = 4000
TEXT = 4000
SECONDS = 20
# systemd's own message about a process that ended (sd-messages.h, SD_MESSAGE_UNIT_PROCESS_EXIT).
PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
SHOWN = (
    "LoadState",
    "ActiveState",
    "SubState",
    "NRestarts",
    "ExecMainStartTimestampMonotonic",
    "MainPID",
)
FIELDS = ("MESSAGE", "MESSAGE_ID", "_PID", "EXIT_CODE", "EXIT_STATUS")


def state(unit: str) -> UnitState | None:
    """A unit as it is now; ``None``: systemd does not know it.

    :raises ReportError: systemd does not answer.
    """
    text = _output("systemctl", "show", f"--property={','.join(SHOWN)}", "--", unit)
    found = dict(line.partition("=")[::2] for line in text.splitlines())
    if found.get("LoadState") in (None, "not-found"):
        return None
    started = int(found.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    runs = int(found.get("MainPID") or 0) > 0
    return UnitState(
        active=found["ActiveState"],
        sub=found["SubState"],
        restarts=int(found.get("NRestarts") or 0),
        running_seconds=time.monotonic() - started if runs else None,
    )


def journal(unit: str, lines: int = LINES) -> list[JournalLine]:
    """The end of a unit's journal, the oldest entry first.

    :raises ReportError: it cannot be read.
    """
    text = _output(
        "journalctl", f"--unit={unit}", f"--lines={lines}", "--no-pager", "--quiet",
        "--output=json", f"--output-fields={','.join(FIELDS)}",
    )  # fmt: skip
    return [_line(json.loads(line)) for line in text.splitlines()]


def ours() -> list[str]:
    """Names of the mirrors and workers of this host, as far as our roles made their units."""
    found = []
    for path in sorted(UNITS.glob("*.service")):
        with contextlib.suppress(OSError):
            if UNIT_MARKER in path.read_text(encoding="utf-8", errors="replace"):
                found.append(path.stem)
    return found[:MOST]


def write(path: Path, records: Iterable[UnitRecord]) -> None:
    """Leave records for everybody to read; the file is there whole at any time.

    :raises ReportError: it cannot be written.
    """
    text = json.dumps([asdict(record) for record in records])
    temporary = path.with_suffix(".new")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}", "Run it as root"
        ) from error


def read(path: Path) -> tuple[UnitRecord, ...] | None:
    """Records that were left; ``None``: there are none that can be read."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_record(entry) for entry in entries)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _record(entry: Mapping[str, Any]) -> UnitRecord:
    cause = entry["cause"]
    more = {
        "history": tuple((float(at), int(ends)) for at, ends in entry["history"]),
        "cause": None if cause is None else Cause(**cause),
        "refused": tuple(map(str, entry["refused"])),
    }
    return UnitRecord(**{**entry, **more})


def _line(entry: dict[str, Any]) -> JournalLine:
    said = entry.get("MESSAGE")
    # What is not UTF-8 comes as numbers, what is too long as null.
    text = bytes(said).decode("utf-8", "replace") if isinstance(said, list) else str(said or "")
    ended = ""
    if entry.get("MESSAGE_ID") == PROCESS_EXIT and entry.get("_PID") == "1":
        word = "exit status" if entry.get("EXIT_CODE") == "exited" else "signal"
        ended = f"{word} {entry.get('EXIT_STATUS')}"
    return JournalLine(int(entry["__REALTIME_TIMESTAMP"]) / 1e6, text[:TEXT], ended)


def _output(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, check=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise ReportError(
            f"{argv[0]} does not answer ({type(error).__name__})", "Ask as root, where systemd runs"
        ) from error
    return done.stdout.decode("utf-8", "replace")
