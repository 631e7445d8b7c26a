"""Rows of permissions, as Kafka's ACLs have them.

Kafka's authorizers let READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS imply
DESCRIBE_CONFIGS.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import regex
from .control import excluded
from .keys import Flow

IMPLIED_BY = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}

Row = dict[str, Any]
# Name or beginning, pattern, and whether it stands for more than the flow takes.
Name = tuple[str, str, bool]


def rows(alias: str, resource: str, on: Iterable[Name], operations: Mapping[str, str]) -> list[Row]:
    """Every operation on every name.

    :param alias: the cluster.
    :param resource: topic, group or cluster.
    :param operations: operation to what fails without it.
    """
    return [
        {
            "cluster": alias, "resource": resource, "name": name, "pattern": pattern,
            "operation": operation, "why": why, "wider": wider,
        }
        for name, pattern, wider in on
        for operation, why in operations.items()
    ]  # fmt: skip


def on_cluster(alias: str, operations: Mapping[str, str]) -> list[Row]:
    """Every operation on the cluster as a whole."""
    return rows(alias, "cluster", literal("kafka-cluster"), operations)


def literal(*these: str) -> list[Name]:
    """Names that stand for themselves."""
    return [(name, "literal", False) for name in these]


def names(patterns: Iterable[str], prefix: str = "", taken: str = ".*") -> list[Name]:
    """The names and beginnings of patterns, as ACLs spell them.

    :param prefix: what stands before each name.
    :param taken: regular expression of the names that count.
    """
    named: list[Name] = []
    for pattern in patterns:
        for text, whole in regex.beginnings(pattern):
            if not whole:
                name = prefix + text
                named.append((name, "prefixed", True) if name else ("*", "literal", True))
            elif re.fullmatch(taken, text):
                named.append((prefix + text, "literal", False))
    return named


def topics(flow: Flow, unmirrored: Sequence[str] = (), prefix: str = "") -> list[Name]:
    """The topics of a flow.

    :param flow: the flow, filled in and with what it leaves out.
    :param unmirrored: patterns of topics that its engine leaves out by itself.
    :param prefix: what stands before each name.
    """
    taken = regex.include_regex(flow["topics"], [*excluded(flow), *unmirrored])
    return names(flow["topics"], prefix, taken)


def covers(row: Row, other: Row) -> bool:
    """Whether a permission includes another."""
    if any(row.get(key) != other.get(key) for key in ("cluster", "principal", "resource")):
        return False
    if row["operation"] not in (other["operation"], *IMPLIED_BY.get(other["operation"], ())):
        return False
    if row["pattern"] == "literal":
        same = row["name"] == other["name"] and other["pattern"] == "literal"
        return bool(row["name"] == "*" or same)
    return bool(other["name"] != "*" and other["name"].startswith(row["name"]))


def least(needed: Iterable[Row]) -> list[Row]:
    """The rows of which none includes another; each belongs to the flows of those it replaces."""
    fewest: list[Row] = []
    for row in needed:
        wide = next((kept for kept in fewest if covers(kept, row)), None)
        if wide is not None:
            _take_over(wide, row)
            continue
        replaced = [kept for kept in fewest if covers(row, kept)]
        place = fewest.index(replaced[0]) if replaced else len(fewest)
        merged = dict(row)
        for kept in reversed(replaced):
            _take_over(merged, kept, before=True)
        fewest.insert(place, merged)
        fewest = [kept for kept in fewest if not any(kept is other for other in replaced)]
    return fewest


def _take_over(row: Row, other: Row, *, before: bool = False) -> None:
    """Let a row stand for another, which it includes."""
    first, second = (other, row) if before else (row, other)
    if "flows" in row:
        row["flows"] = list(dict.fromkeys([*first["flows"], *second["flows"]]))
    if row["operation"] == other["operation"] and other["why"] not in row["why"]:
        row["why"] = f"{first['why']}; {second['why']}"
