"""The report as one HTML page: nothing external, everything escaped, bounded in size.

The page's own policy allows its style and its script by their hashes and nothing else.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, TextIO

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from mirror_report.render import charts, figures, rows, tables
from mirror_report.render.json import Answer
from mirror_report.render.rows import Row
from mirror_report.render.tables import Column

# Findings on the page unfolded, and at all.
OPEN, FINDINGS = 10, 100
ROWS = 300
CHARTS = 24
STRIPS = 60
REASONS = 50
DAY = "%d %b %H:%MZ"
# Characters of a text on the page.
LONGEST = 2000


def write(answer: Answer, out: TextIO, *, wide: bool) -> None:  # noqa: ARG001
    """Write the page of a report."""
    out.write(render(answer.document))


def render(report: Mapping[str, Any]) -> str:
    """Page of a report document."""
    style, script, page = (
        resources.files(__package__).joinpath("templates", name).read_text("utf-8")
        for name in ("report.css", "report.js", "report.html.j2")
    )
    environment = Environment(
        loader=DictLoader({"page": page}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": figures.number,
        "seconds": figures.seconds,
        "moment": figures.moment,
        "words": figures.words,
        "message": lambda finding: _short(figures.message(finding)),
    }
    lines = charts.lines(report["history"])
    strips, strips_left = charts.strips(rows.parity_worst_first(report["parity"]), STRIPS)
    return environment.get_template(
        "page"
    ).render(
        report=report,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        style_hash=_hash(style),
        script_hash=_hash(script),
        key_figures=_key_figures(report),
        first_findings=report["findings"][:OPEN],
        more_findings=report["findings"][OPEN:FINDINGS],
        findings_left=len(report["findings"][FINDINGS:]),
        errors=[_short(error) for error in rows.unreported(report)][:FINDINGS],
        tables=_tables(report),
        reasons=[row for row in rows.parity_worst_first(report["parity"]) if row["reason"]],
        lines=lines[:CHARTS],
        lines_left=len(lines[CHARTS:]),
        strips=strips,
        strips_left=strips_left,
        statuses=charts.STATUSES,
        REASONS=REASONS,
    )


def _shown(value: Any) -> Any:
    """Text of an expression of the template; markup is our own."""
    return figures.plain(value) if type(value) is str else value


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _key_figures(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    lag, parity, groups = report["lag"], report["parity"], report["groups"]
    behind = rows.total(lag, "lag_records") if rows.all_observed(report) else None
    late = [row for row in rows.lag_by_topic(lag) if row["lag_records"] != 0]
    never = any(row["catches_up"] is False for row in late)
    etas = [row["eta_seconds"] for row in late]
    verified, all_of_it = rows.verified(report)
    content = f"{'' if all_of_it or verified is None else '≥ '}{figures.number(verified)}"
    due = [row["verified_through_ms"] for row in parity if row["newest_due_ms"] is not None]
    through = figures.UNKNOWN if None in due else figures.moment(min(due, default=None), DAY)
    breach = min(rows.known_values(parity, "breach_seconds"), default=None)
    ready = len([group for group in groups if group["readiness"] == 1])
    shown = [
        ("coverage", figures.share(report["coverage"]), None),
        ("records verified", content, None),
        ("compacted topics as a whole since", figures.moment(scanned, DAY), None)
        if (scanned := rows.oldest_scan(report)) is not None
        else None,
        ("verified through, at least", through, None),
        ("records behind", figures.number(behind), None),
        (
            "caught up in",
            figures.NEVER
            if never
            else figures.seconds(None if None in etas else max(etas, default=0)),
            "critical" if never else None,
        )
        if late
        else None,
        ("backlog", figures.number(report["backlog_records"]), None)
        if report["backlog_records"] != 0
        else None,
        (
            "retention reaches records not verified",
            figures.breach(breach),
            "critical" if breach <= 0 else None,
        )
        if breach is not None
        else None,
        ("groups ready for a failover", f"{ready} of {len(groups)}", None) if groups else None,
    ]
    return [
        {"label": figure[0], "value": figure[1], "tone": figure[2] or ""}
        for figure in shown
        if figure is not None
    ]


def _tables(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    parity = tables.parity(report["parity"], strategy=False)
    groups = tables.groups(report["groups"])
    differences = rows.differences(report["topics"])
    return {
        name: _table(caption, *table)
        for name, caption, table in (
            ("flows", "From where to where", tables.flows(report["flows"])),
            ("lag", "Lag by topic", tables.lag(report["lag"])),
            ("lag_partitions", "Lag by partition", tables.lag_partitions(report["lag"])),
            ("parity", "Parity by topic", parity),
            ("mismatches", "What does not match, by partition", tables.mismatches(parity[1])),
            ("samples", "Samples of what does not match", tables.samples(parity[1])),
            ("groups", "Consumer groups, if they moved to the target now", groups),
            ("group_partitions", "Groups by partition", tables.group_partitions(groups[1])),
            ("differences", "Settings that differ", tables.differences(differences)),
            ("not_selected", "Topics not mirrored", tables.not_selected(report["topics"])),
        )
    }


def _table(caption: str, columns: Iterable[Column], table_rows: Sequence[Row]) -> dict[str, Any]:
    """What the template needs of a table: no more than :data:`ROWS` rows of it."""
    shown = tables.shown(columns, table_rows)
    return {
        "caption": caption,
        "columns": shown,
        "rows": [[_cell(column, row) for column in shown] for row in table_rows[:ROWS]],
        "count": len(table_rows),
        "left": len(table_rows[ROWS:]),
    }


def _cell(column: Column, row: Row) -> dict[str, Any]:
    text = _short(column.cell(row))
    return {
        "text": figures.words(text) if column.state else text,
        "tone": column.tone(text) or "",
        "value": None if column.value is None else _sortable(column.value(row)),
    }


def _sortable(value: Any) -> str:
    """Number as the script reads it; unknown is empty."""
    if value is None:
        return ""
    return "Infinity" if isinstance(value, float) and math.isinf(value) else str(value)
