"""Tables of the terminal: no cell is ever wrapped or cut; what does not fit is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mirror_report.render.rows import Row

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
    spared: list[str] = []
    while True:
        drawn = _drawn(title, shown, cells, len(rows))
        width = Measurement.get(out, out.options.update(width=100_000), drawn).maximum
        least = max(shown, key=lambda one: one.spare)
        if wide or width <= out.width or not least.spare:
            break
        shown.remove(least)
        spared.append(least.title)
    out.print(drawn, width=width, crop=False, no_wrap=True, overflow="ignore")
    if spared:
        out.print(f"too narrow for: {', '.join(spared)} (--wide)", style="dim", soft_wrap=True)


def _drawn(
    title: str, columns: Sequence[Column], cells: dict[Column, list[str]], count: int
) -> Table:
    drawn = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False,
        show_edge=False, header_style="dim",
    )  # fmt: skip
    for one in columns:
        justify = "right" if one.right else "left"
        drawn.add_column(one.title, justify=justify, no_wrap=True, overflow="ignore")  # type: ignore[arg-type]
    for i in range(count):
        drawn.add_row(*(_styled(one, cells[one][i]) for one in columns))
    return drawn


def _styled(column: Column, text: str) -> Text:
    return (
        Text(text.replace("_", " "), STYLES.get(text, "bold red")) if column.state else Text(text)
    )
