"""Answers on a terminal: worst first; a whole mirror is one line."""

from collections.abc import Callable, Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from mirror_report.model import (
    CheckDocument,
    CompareDocument,
    ConfirmDocument,
    GroupsDocument,
    LagDocument,
    Lines,
    ProofDocument,
    Report,
)
from mirror_report.render import figures, rows, sections, tables
from mirror_report.render.json import Answer
from mirror_report.render.sections import STYLES, line, print_table

PLAIN_WIDTH = 1000
# Differing buckets that are shown.
BUCKETS = 20


def console(stream: TextIO) -> Console:
    """Console for a stream: plain when it is no terminal; rich itself honours NO_COLOR."""
    return Console(
        file=stream,
        width=None if stream.isatty() else PLAIN_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def write(answer: Answer, out: TextIO, *, wide: bool) -> None:
    """Print an answer; ``wide``: every row, and partition by partition."""
    WRITERS[answer.kind](answer, console(out), wide)


def _report(answer: Answer, out: Console, wide: bool) -> None:
    report = answer.document
    verdict, findings = report["verdict"], report["findings"]
    headline = (verdict["text"], STYLES[verdict["severity"]])
    summary = (_summary(report, answer.page), "")
    if verdict["exit_code"] == 0 and not findings and not wide:
        line(out, headline, ("; ", ""), summary)
        return
    line(out, headline)
    line(out, summary)
    sections.findings(findings, out, wide=wide)
    for error in rows.unreported(report):
        line(out, (error, STYLES["unknown"]))
    if wide:
        print_table("Flows", tables.flows(report["flows"]), out, wide=True)
    sections.lag(report["lag"], out, wide=wide)
    sections.parity(report["parity"], out, wide=wide)
    sections.groups(report["groups"], out, wide=wide)
    sections.topics(report["topics"], out, wide=wide)


def _summary(report: Mapping[str, Any], page: str | None) -> str:
    flows = report["flows"]
    engines = ", ".join(sorted({flow["engine"] for flow in flows})) or "no engine"
    verified, all_of_it = rows.verified(report)
    content = f"{figures.number(verified)} records verified"
    parts = [
        f"{len(flows)} flow{'s' if len(flows) != 1 else ''} by {engines}",
        "content not compared"
        if verified is None
        else content
        if all_of_it
        else f"at least {content}",
        f"coverage {figures.share(report['coverage'])}",
        f"run {report['run_id']} in {figures.seconds(report['duration_seconds'])}",
    ]
    if (scanned := rows.oldest_scan(report)) is not None:
        parts.insert(3, f"compacted topics compared as a whole since {figures.moment(scanned)}")
    if report["backlog_records"]:
        size = figures.bytes_(report["backlog_bytes"])
        parts.insert(3, f"backlog {figures.number(report['backlog_records'])} records ({size})")
    return ", ".join(parts + ([f"page {page}"] if page else []))


def _lag(answer: Answer, out: Console, wide: bool) -> None:
    sections.findings(answer.document["findings"], out, wide=wide)
    sections.lag(answer.document["lag"], out, wide=wide)


def _check(answer: Answer, out: Console, _wide: bool) -> None:
    findings = answer.document["findings"]
    if not findings:
        out.print("ok: nothing stands against the flows")
    sections.findings(findings, out, wide=True)


def _with_verdict(answer: Answer, out: Console, wide: bool) -> None:
    plain = answer.document
    sections.verdict_line(plain["verdict"], out)
    sections.findings(plain["findings"], out, wide=wide)
    for name, show in (("groups", sections.groups), ("parity", sections.parity)):
        if name in plain:
            show(plain[name], out, wide=wide)


def _comparison(answer: Answer, out: Console, wide: bool) -> None:
    plain = answer.document
    sections.verdict_line(plain["verdict"], out)
    verified, waiting = (
        figures.number(rows.total(plain["topics"], f"{what}_records"))
        for what in ("verified", "in_flight")
    )
    out.print(
        f"flow {figures.plain(plain['flow'])}: {verified} records of "
        f"{len(plain['topics'])} topic(s) agree, "
        f"{waiting} are not mirrored yet"
    )
    sections.findings(plain["findings"], out, wide=wide)
    if plain["differences"]:
        out.print(_buckets(plain))
    if plain["differing_buckets"] > BUCKETS:
        more, named = plain["differing_buckets"] - BUCKETS, len(plain["differences"])
        out.print(f"... and {more} more: --json names the first {named}")


def _buckets(plain: Mapping[str, Any]) -> Table:
    buckets = Table(title=f"{plain['differing_buckets']} buckets differ", title_justify="left")
    for name in ("topic", "partition", "from", "source", "target", "net"):
        buckets.add_column(name, justify="left" if name in ("topic", "from") else "right")
    for bucket in plain["differences"][:BUCKETS]:
        buckets.add_row(
            figures.plain(bucket["topic"]),
            "all" if bucket["partition"] is None else str(bucket["partition"]),
            figures.moment(bucket["bucket_ms"]),
            figures.number(bucket["source_records"]),
            figures.number(bucket["target_records"]),
            f"{bucket['target_records'] - bucket['source_records']:+d}",
        )
    return buckets


def _confirmations(answer: Answer, out: Console, _wide: bool) -> None:
    for flow in answer.document["flows"]:
        print(figures.plain(flow["text"]), file=out.file)


def _lines(answer: Answer, out: Console, _wide: bool) -> None:
    for text in answer.document["lines"]:
        print(figures.plain(text), file=out.file)


WRITERS: Mapping[type, Callable[[Answer, Console, bool], None]] = {
    Report: _report,
    LagDocument: _lag,
    CheckDocument: _check,
    GroupsDocument: _with_verdict,
    ProofDocument: _with_verdict,
    CompareDocument: _comparison,
    ConfirmDocument: _confirmations,
    Lines: _lines,
}
