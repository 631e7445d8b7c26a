"""One line with performance data, as monitoring plug-ins print it.

Format: https://nagios-plugins.org/doc/guidelines.html (label=value[unit];;;minimum). A value that
is not known is ``U``, never 0; of a report that is too old none is known.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TextIO

from mirror_report.model import CLASSES
from mirror_report.render import figures, freshness, rows
from mirror_report.render.json import Answer

# Characters of the sentence; the whole line stays below the kilobyte old agents pass on.
LONGEST = 400
# Characters at the end of a sentence that is cut: the age of the report and of its scans.
END = 80


def write(answer: Answer, out: TextIO, *, wide: bool) -> None:  # noqa: ARG001
    """Print the line of a document that has a verdict and findings."""
    print(summary(answer.document), file=out)


def fail(text: str, out: TextIO) -> None:
    """Print why there is no answer."""
    print(status_line("unknown", text, {}), file=out)


def summary(document: Mapping[str, Any]) -> str:
    """Line of a document that has a verdict and findings."""
    counts = Counter(
        finding["severity"] for finding in document["findings"] if not finding["accounted"]
    )
    values: dict[str, str | None] = {name: str(counts[name]) for name in ("critical", "warning")}
    if "lag" in document:
        values |= _lag(document)
    if "parity" in document:
        values |= _parity(document)
    if any(finding["kind"] == freshness.KIND for finding in document["findings"]):
        values = dict.fromkeys(values)
    if document.get("age_seconds") is not None:
        values["age"] = f"{document['age_seconds']:.0f}s"
        made = datetime.fromisoformat(document["generated_at"])
        now = made + timedelta(seconds=document["age_seconds"])
        if (scan_age := freshness.scan_age(document, now)) is not None:
            values["scan_age"] = f"{scan_age:.0f}s"
    return status_line(
        document["verdict"]["severity"],
        document["verdict"]["text"],
        {name: "U" if value is None else value for name, value in values.items()},
    )


def status_line(severity: str, text: str, values: Mapping[str, str]) -> str:
    """One line; what would end the sentence or the line early is replaced."""
    plain = figures.plain(" ".join(text.replace("|", "/").split()))
    if len(plain) > LONGEST:
        plain = f"{plain[: LONGEST - END - 3]}...{plain[-END:]}"
    data = " ".join(f"{name}={value};;;0" for name, value in values.items())
    return f"MIRROR {severity.upper()} - {plain}" + (f" | {data}" if data else "")


def _lag(document: Mapping[str, Any]) -> dict[str, str | None]:
    """Sum and maximum over partitions; unknown if one of them is, or a whole flow."""
    whole = rows.all_observed(document)
    records = [row["lag_records"] for row in document["lag"]]
    seconds = [row["lag_seconds"] for row in document["lag"]]
    return {
        "lag_records": str(sum(records)) if whole and None not in records else None,
        "lag_seconds": f"{max(seconds, default=0):.0f}s" if whole and None not in seconds else None,
    }


def _parity(report: Mapping[str, Any]) -> dict[str, str | None]:
    coverage, backlog = report["coverage"], report["backlog_records"]
    verified, whole = rows.verified(report)
    values: dict[str, str | None] = {
        "coverage": None if coverage is None else f"{int(coverage * 10_000) / 100:.2f}%",
        "verified": str(verified) if whole and verified is not None else None,
        "backlog": None if backlog is None else str(backlog),
    }
    counts = [row["counts"] for row in report["parity"]]
    for name in CLASSES:
        of_class = [count[name] for count in counts if name in count]
        values[name] = str(sum(of_class)) if whole and None not in of_class else None
    return values
