"""Tables of the terminal: no cell is ever wrapped or cut; what does not fit is said."""

from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mirror_report.render import figures
from mirror_report.render.columns import Column, Tone, shown
from mirror_report.render.rows import Row

GAP = "  "
STYLES: Mapping[Tone, str] = {
    "ok": "green",
    "dim": "dim",
    "warning": "yellow",
    "critical": "bold red",
    "unknown": "magenta",
}


def table(
    title: str,
    columns: Iterable[Column],
    rows: Sequence[Row],
    out: Console,
    *,
    wide: bool,
) -> None:
    """Print a table.

    :param wide: leave no column out, however narrow the terminal is.
    """
    left = shown(columns, rows)
    cells = {one: [figures.plain(one.cell(row)) for row in rows] for one in left}
    widths = {one: max(map(cell_len, (one.title, *cells[one]))) for one in left}
    spared: list[str] = []
    while not wide and sum(widths[one] + len(GAP) for one in left) - len(GAP) > out.width:
        least = max(left, key=lambda one: one.spare)
        if not least.spare:
            break
        left.remove(least)
        spared.append(least.title)
    out.line()
    _line(out, [Text(title, "bold")])
    _line(out, [_padded(one, one.title, "dim", widths[one]) for one in left])
    for i in range(len(rows)):
        _line(out, [_cell(one, cells[one][i], widths[one]) for one in left])
    if spared:
        _line(out, [Text(f"too narrow for: {', '.join(spared)} (--wide)", "dim")])


def _cell(column: Column, text: str, width: int) -> Text:
    tone = column.tone(text)
    shown = text.replace("_", " ") if column.state else text
    return _padded(column, shown, STYLES[tone] if tone else "", width)


def _padded(column: Column, text: str, style: str, width: int) -> Text:
    space = " " * (width - cell_len(text))
    cell = (text, style)
    return Text.assemble(space, cell) if column.right else Text.assemble(cell, space)


def _line(out: Console, parts: Sequence[Text]) -> None:
    line = Text(GAP).join(parts)
    line.rstrip()
    out.print(line, soft_wrap=True)
