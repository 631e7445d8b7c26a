"""Positions and lag of the flows over time, as lines of JSON: cheap to add to, bounded in size.

History supports estimates and the line on the page; content is proved without it. A line that a
crash cut off is ignored, and nothing is forced to the disk.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from mirror_report.state.store import (
    StateError,
    alone,
    open_plain,
    read_below,
    unwritable,
    write_atomically,
)

Line = dict[str, Any]

# A history of positions with more lines is made shorter.
LINES_KEPT = 96
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class History:
    """History of all flows, below the state directory.

    :param directory: the state directory.
    :param days: what is older is dropped.
    """

    def __init__(self, directory: Path, days: int) -> None:
        self.directory = directory / "history"
        self.days = days

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes from writing; each holds it for milliseconds, so it is waited for.

        :raises StateError: the directory cannot be written.
        """
        return alone(self.directory / "lock")

    def lines(self, flow: str) -> list[Line]:
        """History of one flow's positions, oldest first.

        :raises StateError: it cannot be read.
        """
        return _read(self._positions(flow))

    def append(
        self,
        flow: str,
        line: Mapping[str, Any],
        before: int,
        shorten: Callable[[list[Line]], list[Line]],
    ) -> None:
        """Add one observation.

        :param before: lines there were before; many enough are shortened, and replaced as a whole.
        :raises StateError: it cannot be written.
        """
        path = self._positions(flow)
        if before < LINES_KEPT:
            _append(path, line)
        else:
            write_atomically(path, _text(*shorten([*_read(path), dict(line)])))

    def append_lags(self, flow: str, at_ms: int, lags: Mapping[str, int | None]) -> None:
        """Add the lag of a flow's topics at one time; those without lag are left out.

        :param lags: topic -> records; ``None``: not known.
        :raises StateError: it cannot be written.
        """
        path = self._day(flow, at_ms)
        if not path.exists():
            self._age(flow, at_ms)
        _append(path, {"at": at_ms, "lag": {name: one for name, one in lags.items() if one != 0}})

    def lags(
        self, flow: str, since_ms: int, until_ms: int
    ) -> list[tuple[int, dict[str, int | None]]]:
        """Lag over time, oldest first: when (ms), and topic -> records; absent: none.

        :raises StateError: it cannot be read.
        """
        return [
            (line["at"], line["lag"])
            for at_ms in range(since_ms - since_ms % DAY_MS, until_ms + 1, DAY_MS)
            for line in _read(self._day(flow, at_ms))
            if _has_lags(line) and since_ms <= line["at"] <= until_ms
        ]

    def _age(self, flow: str, now_ms: int) -> None:
        """Drop the days past retention, and keep one line an hour of those before yesterday."""
        today = self._day(flow, now_ms).name
        oldest = self._day(flow, now_ms - self.days * DAY_MS).name
        yesterday = self._day(flow, now_ms - DAY_MS).name
        for path in sorted(self._day(flow, now_ms).parent.glob("*.jsonl")):
            if path.name < oldest:
                path.unlink(missing_ok=True)
            elif path.name not in (today, yesterday):
                lines = _read(path)
                hours = _hourly(lines)
                if len(hours) < len(lines):
                    write_atomically(path, _text(*hours))

    def _positions(self, flow: str) -> Path:
        return self.directory / "positions" / f"{flow}.jsonl"

    def _day(self, flow: str, at_ms: int) -> Path:
        day = time.strftime("%Y-%m-%d", time.gmtime(at_ms / 1000))
        return self.directory / "lag" / flow / f"{day}.jsonl"


def _has_lags(line: Line) -> bool:
    lags = line.get("lag")
    return isinstance(lags, dict) and {type(lag) for lag in lags.values()} <= {int, type(None)}


def _hourly(lines: list[Line]) -> list[Line]:
    """The highest lag of each hour."""
    hours: dict[int, Line] = {}
    for line in lines:
        if not _has_lags(line):
            continue
        hour = hours.setdefault(line["at"] // HOUR_MS, {"at": line["at"], "lag": {}})
        for name, lag in line["lag"].items():
            highest = hour["lag"].get(name)
            hour["lag"][name] = lag if highest is None else max(highest, lag or 0)
    return list(hours.values())


def _read(path: Path) -> list[Line]:
    try:
        text = read_below(path.parent, path.name, errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from error
    lines: list[Line] = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("at"), int):
                lines.append(entry)
    return lines


def _text(*lines: Mapping[str, Any]) -> str:
    texts = (json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines)
    return "".join(f"{text}\n" for text in texts)


def _append(path: Path, line: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+", opener=open_plain) as handle:
            # A line that a crash cut off ends before this one begins.
            size = handle.tell()
            if size and os.pread(handle.fileno(), 1, size - 1) != b"\n":
                handle.write(b"\n")
            handle.write(_text(line).encode())
    except OSError as error:
        raise unwritable(path, error) from error
