"""The parts of an answer on a terminal: the verdict, findings, and tables, worst first.

No cell is ever wrapped or cut; what does not fit is said.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mirror_report.render import columns, figures, rows
from mirror_report.render.columns import Column, Tone
from mirror_report.render.rows import Row

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


def findings(found: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print findings, each with what to do next, in lines of their own that nothing wraps."""
    shown = found if wide else found[:FINDINGS]
    width = max((len(finding["kind"]) for finding in shown), default=0)
    for finding in shown:
        severity: Tone = "ok" if finding["accounted"] else finding["severity"]
        accounted = " (accounted: reported by an earlier run)" if finding["accounted"] else ""
        line(out, (f"{finding['severity']:<8}", STYLES[severity]),
              (f" {finding['kind']:<{width}}  {figures.said(finding)}{accounted}", ""))  # fmt: skip
        if finding["action"] and not finding["accounted"]:
            line(out, ("         what to do next: ", "dim"), (finding["action"], ""))
    if left := Counter(finding["kind"] for finding in found[len(shown) :]):
        kinds = ", ".join(f"{count} {kind}" for kind, count in left.most_common())
        line(out, (f"... and {left.total()} more findings: {kinds} (--wide)", "dim"))


def lag(partitions: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print lag: the worst topics and the sum of the others, or everything."""
    topics = rows.lag_by_topic(partitions)
    _worst("Lag", columns.lag(topics), topics, "state", out, wide=wide)
    single = rows.lag_by_partition(partitions)
    if wide and single:
        table("Lag by partition", columns.lag_partitions(single), single, out, wide=True)


def parity(topics: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print content parity by topic, with the classes that occur."""
    some = rows.parity_worst_first(topics)
    _worst("Parity", columns.parity(some, strategy=wide), some, "status", out, wide=wide)
    for row in some if wide else some[:TOP]:
        if row["reason"]:
            line(out, (f"{row['topic']}: {row['reason']}", "dim"))
        if row.get("open_records"):
            line(out, (f"{row['topic']}: {_stays_open(row)}", "dim"))
    single = rows.mismatches(some)
    if wide and single:
        table(
            "What does not match, by partition",
            columns.mismatches(single),
            single,
            out,
            wide=True,
        )


def _stays_open(topic: Row) -> str:
    """What is said of minutes of a topic that stay open."""
    number, since = figures.number(topic["open_records"]), figures.moment(topic["open_since_ms"])
    # An older document does not tell.
    unjudged = topic.get("open_unjudged", 0)
    judged = "judged for losses"
    if unjudged:
        judged = f"{figures.number(unjudged)} of them not judged for losses"
    return (
        f"{number} records below the committed position are of minutes open since {since}: {judged}"
    )


def groups(found: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print what a failover now would mean for the consumer groups."""
    some = rows.groups_worst_first(found)
    _worst("Failover now", columns.groups(some), some, "state", out, wide=wide)
    single = rows.group_partitions(some)
    if wide and single:
        table("Failover by partition", columns.group_partitions(), single, out, wide=True)


def topics(found: Sequence[Row], out: Console, *, wide: bool) -> None:
    """Print settings that differ and topics left out; risks always, the rest if asked for."""
    differ = rows.differences(found)
    left_out = rows.not_selected(found)
    shown = differ if wide else [row for row in differ if row["kind"] == "risk"][:TOP]
    if shown:
        table("Settings that differ", columns.differences(shown), shown, out, wide=wide)
    if wide and left_out:
        table("Topics not mirrored", columns.not_selected(left_out), left_out, out, wide=True)
    hidden = [
        f"{len(some)} {what}"
        for some, what in (
            (differ[len(shown) :], "more settings that differ"),
            (left_out, "topics not mirrored"),
        )
        if some and not wide
    ]
    if hidden:
        line(out, (f"... and {', '.join(hidden)} (--wide)", "dim"))


def _worst(
    title: str,
    its: Sequence[Column],
    some: Sequence[Row],
    state: str,
    out: Console,
    *,
    wide: bool,
) -> None:
    """Print the worst rows, and what the others add up to.

    :param state: the column that holds the state.
    """
    if not some:
        return
    shown = some if wide else some[:TOP]
    table(title, its, shown, out, wide=wide)
    if left := some[len(shown) :]:
        summed = rows.rest(left, state)
        behind = (
            f", {figures.number(summed['lag_records'])} records behind"
            if "lag_records" in summed
            else ""
        )
        line(out, (f"... and {len(left)} more: {summed['states']}{behind} (--wide)", "dim"))


def line(out: Console, *parts: tuple[str, str]) -> None:
    """Print a line that is neither wrapped nor cut."""
    out.print(Text.assemble(*((figures.plain(text), style) for text, style in parts)),
              soft_wrap=True)  # fmt: skip


def table(
    title: str,
    its: Iterable[Column],
    some: Sequence[Row],
    out: Console,
    *,
    wide: bool,
) -> None:
    """Print a table.

    :param wide: leave no column out, however narrow the terminal is.
    """
    left = columns.shown(its, some)
    cells = {column: [figures.plain(column.cell(row)) for row in some] for column in left}
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
    for i in range(len(some)):
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
