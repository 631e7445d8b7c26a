"""The parts of an answer on a terminal: the verdict, findings, and tables, worst first.

No cell is ever wrapped or cut; columns that do not fit are named below the table.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mirror_report.render import figures, rows, tables
from mirror_report.render.rows import Row
from mirror_report.render.tables import Column, Table, Tone

TOP = 10
FINDINGS = 20
GAP = "  "
STYLES: Mapping[Tone, str] = {
    "ok": "green",
    "dim": "dim",
    "warning": "yellow",
    "critical": "bold red",
    "unknown": "magenta",
}


def verdict_line(verdict: Row, out: Console) -> None:
    """Print the verdict."""
    line(out, (verdict["text"], STYLES[verdict["severity"]]))


def findings(all_findings: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print findings, each with what to do next, in lines of their own that nothing wraps."""
    shown = all_findings if wide else all_findings[:FINDINGS]
    width = max((len(finding["kind"]) for finding in shown), default=0)
    for finding in shown:
        severity: Tone = "ok" if finding["accounted"] else finding["severity"]
        accounted = " (accounted: reported by an earlier run)" if finding["accounted"] else ""
        line(
            out,
            (f"{finding['severity']:<8}", STYLES[severity]),
            (f" {finding['kind']:<{width}}  {figures.message(finding)}{accounted}", ""),
        )
        if finding["action"] and not finding["accounted"]:
            line(out, ("         what to do next: ", "dim"), (finding["action"], ""))
    if left := Counter(finding["kind"] for finding in all_findings[len(shown) :]):
        kinds = ", ".join(f"{count} {kind}" for kind, count in left.most_common())
        line(out, (f"... and {left.total()} more findings: {kinds} (--wide)", "dim"))


def lag(partitions: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print lag: the worst topics and the sum of the others, or everything."""
    _worst("Lag", tables.lag(partitions), "state", out, wide=wide)
    if wide:
        print_table("Lag by partition", tables.lag_partitions(partitions), out, wide=True)


def parity(topics: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print content parity by topic, with the classes that occur."""
    by_topic = tables.parity(topics, strategy=wide)
    topics = by_topic[1]
    _worst("Parity", by_topic, "status", out, wide=wide)
    for row in topics if wide else topics[:TOP]:
        if row["reason"]:
            line(out, (f"{row['topic']}: {row['reason']}", "dim"))
        if row.get("open_records"):
            line(out, (f"{row['topic']}: {_stays_open(row)}", "dim"))
    if wide:
        print_table("What does not match, by partition", tables.mismatches(topics), out, wide=True)


def _stays_open(topic: Row) -> str:
    """The sentence about minutes of a topic that stay open."""
    number, since = figures.number(topic["open_records"]), figures.moment(topic["open_since_ms"])
    checked = "judged for losses"
    # Documents of earlier releases do not have it.
    if unchecked := topic.get("open_unjudged", 0):
        checked = f"{figures.number(unchecked)} of them not {checked}"
    return (
        f"{number} records below the committed position are of minutes open since {since}: "
        f"{checked}"
    )


def groups(all_groups: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print what a failover now would mean for the consumer groups."""
    by_group = tables.groups(all_groups)
    _worst("Failover now", by_group, "state", out, wide=wide)
    if wide:
        print_table("Failover by partition", tables.group_partitions(by_group[1]), out, wide=True)


def topics(all_topics: Sequence[Row], out: Console, *, wide: bool) -> None:
    """Print settings that differ and topics left out; risks always, the rest if asked for."""
    differ = rows.differences(all_topics)
    left_out = tables.not_selected(all_topics)
    shown = differ if wide else [row for row in differ if row["kind"] == "risk"][:TOP]
    print_table("Settings that differ", tables.differences(shown), out, wide=wide)
    if wide:
        print_table("Topics not mirrored", left_out, out, wide=True)
    hidden = [
        f"{count} {what}"
        for count, what in (
            (len(differ) - len(shown), "more settings that differ"),
            (len(left_out[1]), "topics not mirrored"),
        )
        if count and not wide
    ]
    if hidden:
        line(out, (f"... and {', '.join(hidden)} (--wide)", "dim"))


def _worst(title: str, whole: Table, state: str, out: Console, *, wide: bool) -> None:
    """Print the worst rows, and what the others add up to.

    :param state: the column that holds the state.
    """
    columns, worst_first = whole
    shown = worst_first if wide else worst_first[:TOP]
    print_table(title, (columns, shown), out, wide=wide)
    if left := worst_first[len(shown) :]:
        counts = Counter(figures.words(str(row[state])) for row in left).most_common()
        text = ", ".join(f"{count} {name}" for name, count in counts)
        if "lag_records" in left[0]:
            text += f", {figures.number(rows.total(left, 'lag_records'))} records behind"
        line(out, (f"... and {len(left)} more: {text} (--wide)", "dim"))


def line(out: Console, *parts: tuple[str, str]) -> None:
    """Print a line that is neither wrapped nor cut."""
    out.print(Text.assemble(*((figures.plain(text), style) for text, style in parts)),
              soft_wrap=True)  # fmt: skip


def print_table(title: str, whole: Table, out: Console, *, wide: bool) -> None:
    """Print a table, if it has rows.

    :param wide: leave no column out, however narrow the terminal is.
    """
    columns, table_rows = whole
    if not table_rows:
        return
    left = tables.shown(columns, table_rows)
    cells = {column: [figures.plain(column.cell(row)) for row in table_rows] for column in left}
    widths = {column: max(map(cell_len, (column.title, *cells[column]))) for column in left}
    spared: list[str] = []
    while not wide and sum(widths[column] + len(GAP) for column in left) - len(GAP) > out.width:
        least = max(left, key=lambda column: column.spare)
        if not least.spare:
            break
        left.remove(least)
        spared.append(least.title)
    out.line()
    _line(out, [Text(title, "bold")])
    _line(out, [_padded(column, column.title, "dim", widths[column]) for column in left])
    for i in range(len(table_rows)):
        _line(out, [_cell(column, cells[column][i], widths[column]) for column in left])
    if spared:
        _line(out, [Text(f"too narrow for: {', '.join(spared)} (--wide)", "dim")])


def _cell(column: Column, text: str, width: int) -> Text:
    tone = column.tone(text)
    shown = figures.words(text) if column.state else text
    return _padded(column, shown, STYLES[tone] if tone else "", width)


def _padded(column: Column, text: str, style: str, width: int) -> Text:
    space = " " * (width - cell_len(text))
    cell = (text, style)
    return Text.assemble(space, cell) if column.right else Text.assemble(cell, space)


def _line(out: Console, parts: Sequence[Text]) -> None:
    line = Text(GAP).join(parts)
    line.rstrip()
    out.print(line, soft_wrap=True)
