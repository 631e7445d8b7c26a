"""Two digest bundles held against each other, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from mirror_report.render import figures, terminal

SHOWN = 20


def show(plain: Mapping[str, Any], out: Console) -> None:
    """Print the comparison, worst first."""
    terminal.verdict_line(plain["verdict"], out)
    verified = sum(one["verified_records"] for one in plain["topics"])
    waiting = sum(one["in_flight_records"] for one in plain["topics"])
    out.print(
        f"flow {plain['flow']}: {figures.number(verified)} records of "
        f"{len(plain['topics'])} topic(s) agree, {figures.number(waiting)} are not mirrored yet",
        markup=False,
    )
    terminal.findings(plain["findings"], out)
    if not plain["differences"]:
        return
    table = Table(title=f"{plain['differing_buckets']} buckets differ", title_justify="left")
    for name in ("topic", "partition", "from", "source", "target", "net"):
        table.add_column(name, justify="left" if name in ("topic", "from") else "right")
    for one in plain["differences"][:SHOWN]:
        net = one["target_records"] - one["source_records"]
        table.add_row(
            one["topic"],
            "all" if one["partition"] is None else str(one["partition"]),
            figures.moment(one["bucket_ms"]),
            figures.number(one["source_records"]),
            figures.number(one["target_records"]),
            f"{net:+d}",
        )
    out.print(table)
    if plain["differing_buckets"] > SHOWN:
        out.print(f"... and {plain['differing_buckets'] - SHOWN} more: --json names them")
