"""Topics that would be mirrored twice, or round in a circle."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from .. import regex
from ..engines import engine_of
from ..inventory import Inventory

# Name of a flow to the patterns it takes and those it leaves out, its engine's included.
Selections = dict[str, tuple[list[str], list[str]]]


def judge_topics(found: Inventory) -> None:
    """Refuse running flows that take the same topics, or carry one round in a circle."""
    selections = {
        flow["name"]: (
            flow["topics"], [*flow["topics_exclude"], *engine_of(flow).unmirrored(flow, owner)]
        )
        for owner, flow in found.running()
    }  # fmt: skip
    _judge_overlaps(found, selections)
    _judge_loops(found, selections)


def _judge_overlaps(found: Inventory, selections: Selections) -> None:
    for first, other in itertools.combinations((found.flows[name] for name in selections), 2):
        if (first["source"], first["target"]) != (other["source"], other["target"]):
            continue
        if topic := regex.common_topic([selections[first["name"]], selections[other["name"]]]):
            found.refuse(
                f"{found.paths[other['name']]}.topics: topics such as '{topic}' are mirrored "
                f"by flow '{first['name']}' from {first['source']} to {first['target']} "
                "already, so every record would arrive twice; narrow one of the two"
            )


def _judge_loops(found: Inventory, selections: Selections) -> None:
    """Only a topic that keeps its name goes round."""
    edges = [
        flow
        for flow in (found.flows[name] for name in selections)
        if flow["replication_policy"] == "identity" and flow["source"] != flow["target"]
    ]
    for first in edges:
        for circle in _circles(edges, [first]):
            names = [flow["name"] for flow in circle]
            if first["name"] == min(names) and (
                topic := regex.common_topic(selections[name] for name in names)
            ):
                way = " -> ".join([flow["source"] for flow in circle] + [first["source"]])
                quoted = ", ".join(f"'{name}'" for name in names)
                found.refuse(
                    f"mirror_flows: {quoted} carry topics such as '{topic}' in a circle ({way}) "
                    "without end; exclude them with topics_exclude in one of these flows"
                )


def _circles(
    edges: Sequence[dict[str, Any]], path: list[dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    if path[-1]["target"] == path[0]["source"]:
        yield path
        return
    visited = {flow["source"] for flow in path}
    for edge in edges:
        closes = edge["target"] == path[0]["source"]
        if edge["source"] == path[-1]["target"] and (closes or edge["target"] not in visited):
            yield from _circles(edges, [*path, edge])
