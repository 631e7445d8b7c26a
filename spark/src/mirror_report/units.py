"""Units of this host as systemd and its journal describe them; root alone may read both in full."""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from mirror_report.model import Cause, JournalLine, ReportError, UnitRecord, UnitState

# Where root leaves what the report's user may not ask.
RECORD = Path("/run/mirror-report-units/units.json")
UNITS = Path("/etc/systemd/system")
# Units that the role for mirrors and workers wrote carry this line.
UNIT_MARKER = "# Owner: role mirrormaker"
MOST = 100

# Of the journal of one unit: a process logs some hundred when it starts.
LINES = 4000
# An exception is one line, with all that led to it.
TEXT = 16_000
# journald cuts lines at 48 KiB; only what a process hands it by itself may be larger.
ENTRY_BYTES = 131_072
# A status or a signal.
NUMBER = 20
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


def state_of(unit: str) -> UnitState | None:
    """A unit as it is now; ``None``: systemd does not know it.

    :raises ReportError: systemd does not answer.
    """
    argv = ["systemctl", "show", f"--property={','.join(SHOWN)}", "--", unit]
    with _answering(argv[0]):
        done = subprocess.run(argv, capture_output=True, check=True, timeout=SECONDS)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    shown = dict(line.partition("=")[::2] for line in lines)
    if shown.get("LoadState") in (None, "not-found"):
        return None
    started = int(shown.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    runs = int(shown.get("MainPID") or 0) > 0
    return UnitState(
        active=shown["ActiveState"],
        sub=shown["SubState"],
        restarts=int(shown.get("NRestarts") or 0),
        running_seconds=time.monotonic() - started if runs else None,
    )


def journal_of(unit: str, lines: int = LINES) -> list[JournalLine]:
    """The end of a unit's journal, the oldest entry first, without entries that make no sense.

    :raises ReportError: it cannot be read.
    """
    printed = _printed(
        "journalctl", f"--unit={unit}", f"--lines={lines}", "--no-pager", "--quiet", "--all",
        "--output=json", f"--output-fields={','.join(FIELDS)}",
    )  # fmt: skip
    return [line for text in printed if (line := _line(text)) is not None]


def ours() -> list[str]:
    """Names of the mirrors and workers of this host, as far as our roles made their units."""
    names = []
    for path in sorted(UNITS.glob("*.service")):
        with contextlib.suppress(OSError):
            if UNIT_MARKER in path.read_text(encoding="utf-8", errors="replace"):
                names.append(path.stem)
    return names[:MOST]


def write_records(path: Path, records: Iterable[UnitRecord]) -> None:
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


def read_records(path: Path) -> tuple[UnitRecord, ...] | None:
    """The records root left; ``None``: none can be read."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return tuple(map(_record, entries)) if isinstance(entries, list) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _record(entry: Mapping[str, Any]) -> UnitRecord:
    cause = entry["cause"]
    typed = {
        "history": tuple((float(at), int(ends)) for at, ends in entry["history"]),
        "cause": None if cause is None else Cause(**cause),
        "refused": tuple(map(str, entry["refused"])),
    }
    return UnitRecord(**{**entry, **typed})


def _line(printed: bytes) -> JournalLine | None:
    """An entry of a journal; ``None``: it is none. A process may write any field as it likes."""
    try:
        entry = json.loads(printed)
        at = int(entry["__REALTIME_TIMESTAMP"]) / 1e6
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    ended = ""
    if entry.get("MESSAGE_ID") == PROCESS_EXIT and entry.get("_PID") == "1":
        word = "exit status" if entry.get("EXIT_CODE") == "exited" else "signal"
        ended = f"{word} {_text(entry.get('EXIT_STATUS'))[:NUMBER]}"
    return JournalLine(at, _text(entry.get("MESSAGE"))[:TEXT], ended)


def _text(field: Any) -> str:
    """A field of the journal: what is not UTF-8 comes as numbers, what is too long as null.

    One that stands several times in an entry comes as a list of these.
    """
    if isinstance(field, str):
        return field
    if not isinstance(field, list):
        return ""
    try:
        return bytes(field).decode("utf-8", "replace")
    except (ValueError, TypeError):
        return "\n".join(_text(each) for each in field)


def _printed(*argv: str) -> Iterator[bytes]:
    """The lines that a program prints, without those above :data:`ENTRY_BYTES`.

    :raises ReportError: it does not answer in time.
    """
    with (
        _answering(argv[0]),
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
    ):
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            yield from _short_lines(process.stdout)
        finally:
            timer.cancel()
        if process.wait() != 0:
            raise subprocess.CalledProcessError(process.returncode, argv)


def _short_lines(stream: IO[bytes] | None) -> Iterator[bytes]:
    begins = True
    while stream and (part := stream.readline(ENTRY_BYTES)):
        ends = part.endswith(b"\n")
        if begins and ends:
            yield part
        begins = ends


@contextlib.contextmanager
def _answering(program: str) -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:
        raise ReportError(
            f"{program} does not answer ({type(error).__name__})", "Ask as root, where systemd runs"
        ) from error
