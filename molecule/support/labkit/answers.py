"""What the report and the verifier answer, reduced to what tests compare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def parity(document: Mapping[str, Any], topic: str, flow: str | None = None) -> dict[str, Any]:
    """Pick one topic's parity from a report; the flow is needed where two have such a topic."""
    rows = [
        row
        for row in document["parity"]
        if row["source_topic"] == topic and flow in {None, row["flow"]}
    ]
    assert len(rows) == 1, f"{topic}: {document['parity']} {document['findings']}"
    row: dict[str, Any] = rows[0]
    return row


def classes(row: Mapping[str, Any]) -> dict[str, int]:
    """Reduce a topic's parity to the classes that have records."""
    return {name: count for name, count in row["counts"].items() if count}


def complete(comparison: Mapping[str, Any]) -> dict[str, int]:
    """Name the lost, altered and foreign records of a topic."""
    return {name: comparison[name] for name in ("lost", "altered", "foreign") if comparison[name]}


def changed(output: str) -> dict[str, list[str]]:
    """Names of the tasks that changed something, by host, from a playbook's output.

    Every host of the recap is there.
    """
    body, _, recap = output.partition("\nPLAY RECAP ")
    found: dict[str, list[str]] = {
        host: [] for host in re.findall(r"^(\S+) +: ok=", recap, flags=re.MULTILINE)
    }
    for task in re.split(r"^(?=(?:TASK|RUNNING HANDLER) \[)", body, flags=re.MULTILINE):
        name = task.partition("[")[2].partition("] *")[0]
        for host in dict.fromkeys(re.findall(r"^changed: \[([^\s\]]+)", task, re.MULTILINE)):
            found[host].append(name)
    return found
