"""The report on a terminal: worst first; a whole mirror is one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mirror_report.render import figures

STYLES = {"ok": "green", "warning": "yellow", "critical": "bold red", "unknown": "magenta"}
STATE_STYLES = {"OK": "green", "IDLE": "dim", "LAGGING": "yellow", "REWOUND": "yellow",
                "UNKNOWN": "magenta", "verified": "green", "in_flight": "dim",
                "skipped": "yellow", "unverifiable": "yellow", "unknown": "magenta"}  # fmt: skip
PLAIN_WIDTH = 160
TOP = 10


def console(stream: TextIO) -> Console:
    """Console for a stream: plain when it is no terminal; rich itself honours NO_COLOR."""
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def show(
    report: Mapping[str, Any], out: Console, html_path: str | None = None, *, wide: bool = False
) -> None:
    """Print a whole report document."""
    verdict_line(report["verdict"], out)
    coverage = figures.share(report["coverage"])
    verified = sum(one["verified_records"] for one in report["parity"])
    engines = ", ".join(sorted({one["engine"] for one in report["flows"]}))
    out.print(
        f"{len(report['flows'])} flow(s) by {engines}, {figures.number(verified)} records "
        f"verified, coverage {coverage}, run {report['run_id']} in "
        f"{figures.seconds(report['duration_seconds'])}"
        + (f", page {html_path}" if html_path else ""),
        markup=False,
    )
    if report["verdict"]["exit_code"] == 0 and not report["findings"]:
        return
    findings(report["findings"], out)
    lag(report["lag"], out, wide=wide)
    parity(report["parity"], out)
    if report["backlog_records"]:
        out.print(
            f"Backlog: {figures.number(report['backlog_records'])} records "
            f"({figures.bytes_(report['backlog_bytes'])}) wait for the next run"
        )
    for one in report["errors"]:
        out.print(one, markup=False, style="magenta")


def verdict_line(verdict: Mapping[str, Any], out: Console) -> None:
    """Print the verdict."""
    style = STYLES[verdict["severity"]]
    out.print(f"[{style}]{escape(verdict['text'])}[/{style}]", soft_wrap=True)


def findings(rows: Sequence[Mapping[str, Any]], out: Console) -> None:
    """Print findings, each with what to do next."""
    for one in rows:
        accounted = " (accounted: reported by an earlier run)" if one["accounted"] else ""
        style = STYLES["ok" if one["accounted"] else one["severity"]]
        out.print(
            f"[{style}]{one['severity']:<8}[/{style}] {escape(one['kind'])}  "
            f"{escape(figures.said(one))}{accounted}",
            soft_wrap=True,
        )
        if one["action"] and not one["accounted"]:
            out.print(f"         what to do next: {escape(one['action'])}", soft_wrap=True)


def lag(rows: Sequence[Mapping[str, Any]], out: Console, *, wide: bool = False) -> None:
    """Print lag by topic."""
    topics = figures.lag_by_topic(rows)
    if not topics:
        return
    table = _table("Lag", "flow", "topic", "state")
    estimated = any(one["estimated_records"] is not None for one in topics)
    columns = ("partitions", "records", *(("estimated",) if estimated else ()))
    for name in (*columns, "oldest waits", "lost"):
        table.add_column(name, justify="right")
    for one in topics if wide else topics[:TOP]:
        table.add_row(
            escape(one["flow"]), escape(one["topic"]), _state(one["state"]),
            str(one["partitions"]), figures.number(one["lag_records"]),
            *((figures.estimate(one["estimated_records"]),) if estimated else ()),
            figures.seconds(one["lag_seconds"]), figures.number(one["lost"]),
        )  # fmt: skip
    out.print(table)
    if not wide and len(topics) > TOP:
        out.print(f"... and {len(topics) - TOP} more topics: --wide shows them")


def parity(rows: Sequence[Mapping[str, Any]], out: Console) -> None:
    """Print content parity by topic."""
    if not rows:
        return
    table = _table("Parity", "flow", "topic", "status")
    classes = figures.classes(rows)
    shown = [figures.class_name(one) for one in classes]
    for name in ("verified", "in flight", "skipped", *shown, "verified through"):
        table.add_column(name, justify="right")
    for one in figures.parity_worst_first(rows):
        table.add_row(
            escape(one["flow"]), escape(one["topic"]), _state(one["status"]),
            figures.number(one["verified_records"]), figures.number(one["in_flight_records"]),
            figures.number(one["skipped_records"]),
            *(figures.number(one["counts"].get(name)) for name in classes),
            figures.moment(one["verified_through_ms"]),
        )  # fmt: skip
    out.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, show_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _state(state: str) -> str:
    style = STATE_STYLES.get(state, "bold red")
    return f"[{style}]{state}[/{style}]"
