"""One line with performance data, as monitoring plug-ins print it.

Format: https://nagios-plugins.org/doc/guidelines.html (label=value[unit];;;minimum).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mirror_report.render import figures

LONGEST = 400
"""Characters of the sentence; the whole line stays below the kilobyte old agents pass on."""


def answer(document: Mapping[str, Any]) -> str:
    """Line of a report, of a lag or a check document."""
    found = Counter(one["severity"] for one in document["findings"] if not one["accounted"])
    values: dict[str, str | None] = {name: str(found[name]) for name in ("critical", "warning")}
    if "lag" in document:
        values |= _lag(document["lag"])
    if "parity" in document:
        values |= _parity(document)
    known = {name: value for name, value in values.items() if value is not None}
    return line(document["verdict"]["severity"], document["verdict"]["text"], known)


def line(severity: str, text: str, values: Mapping[str, str]) -> str:
    """One line; what would end the sentence or the line early is replaced."""
    plain = figures.plain(" ".join(text.replace("|", "/").split()))
    if len(plain) > LONGEST:
        plain = plain[: LONGEST - 3] + "..."
    data = " ".join(f"{name}={value};;;0" for name, value in values.items())
    return f"MIRROR {severity.upper()} - {plain}" + (f" | {data}" if data else "")


def _lag(rows: list[Mapping[str, Any]]) -> dict[str, str | None]:
    """Sum and maximum over partitions; unknown if one of them is."""
    records = [one["lag_records"] for one in rows]
    seconds = [one["lag_seconds"] for one in rows]
    return {
        "lag_records": None if None in records else str(sum(records)),
        "lag_seconds": None if None in seconds else f"{max(seconds, default=0):.0f}s",
    }


def _parity(report: Mapping[str, Any]) -> dict[str, str | None]:
    coverage, backlog = report["coverage"], report["backlog_records"]
    values: dict[str, str | None] = {
        "coverage": None if coverage is None else f"{int(coverage * 10_000) / 100:.2f}%",
        "verified": str(sum(one["verified_records"] for one in report["parity"])),
        "backlog": None if backlog is None else str(backlog),
    }
    counts = [one["counts"] for one in report["parity"]]
    for name in dict.fromkeys(name for one in counts for name in one):
        some = [one[name] for one in counts if name in one]
        values[name] = None if None in some else str(sum(some))
    return values
