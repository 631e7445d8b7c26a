"""Tables of the terminal: no cell is ever wrapped or cut; what does not fit is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mirror_report.render.rows import Row

GAP = "  "
DULL = frozenset(("", "-", "0", "unknown"))
STYLES = {
    "OK": "green", "IDLE": "dim", "LAGGING": "yellow", "REWOUND": "yellow", "UNKNOWN": "magenta",
    "verified": "green", "in_flight": "dim", "skipped": "yellow", "unverifiable": "yellow",
    "unknown": "magenta", "ready": "green", "reread": "yellow", "stale": "yellow",
    "active_on_target": "dim", "not_synced": "yellow", "synced": "dim",
}  # fmt: skip
"""State -> colour; a state that is not here is bold red."""


@dataclass(frozen=True)
class Column:
    """One column.

    :param cell: text of a row.
    :param always: show it even if no row has anything in it.
    :param spare: leave it out of a terminal that is too narrow, the highest first; 0: never.
    :param state: colour the text as a state.
    """

    title: str
    cell: Callable[[Row], str]
    right: bool = True
    always: bool = True
    spare: int = 0
    state: bool = False


def table(
    title: str, columns: Iterable[Column], rows: Sequence[Row], out: Console, *, wide: bool
) -> None:
    """Print a table.

    :param wide: leave no column out, however narrow the terminal is.
    """
    cells = {one: [one.cell(row) for row in rows] for one in columns}
    shown = [one for one, some in cells.items() if one.always or not DULL.issuperset(some)]
    widths = {one: max(map(cell_len, (one.title, *cells[one]))) for one in shown}
    spared: list[str] = []
    while not wide and sum(widths[one] + len(GAP) for one in shown) - len(GAP) > out.width:
        least = max(shown, key=lambda one: one.spare)
        if not least.spare:
            break
        shown.remove(least)
        spared.append(least.title)
    out.line()
    _line(out, [Text(title, "bold")])
    _line(out, [_padded(one, one.title, "dim", widths[one]) for one in shown])
    for i in range(len(rows)):
        _line(out, [_cell(one, cells[one][i], widths[one]) for one in shown])
    if spared:
        _line(out, [Text(f"too narrow for: {', '.join(spared)} (--wide)", "dim")])


def _cell(column: Column, text: str, width: int) -> Text:
    if not column.state:
        return _padded(column, text, "dim" if text in DULL else "", width)
    return _padded(column, text.replace("_", " "), STYLES.get(text, "bold red"), width)


def _padded(column: Column, text: str, style: str, width: int) -> Text:
    space = " " * (width - cell_len(text))
    return (
        Text.assemble(space, (text, style)) if column.right else Text.assemble((text, style), space)
    )


def _line(out: Console, parts: Sequence[Text]) -> None:
    line = Text(GAP).join(parts)
    line.rstrip()
    out.print(line, soft_wrap=True)
