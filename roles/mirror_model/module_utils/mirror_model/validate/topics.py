"""Topics that would be mirrored twice, round in a circle, or into what belongs to others."""

from collections.abc import Iterator, Sequence
from typing import Any

from .. import regex
from ..clusters import aliases_of
from ..control import Control
from ..engines import control_of, engine_of
from ..keys import Flow
from ..overlap import Pairs, common_topic, pairs_alike
from ..validation import Validation

# Name of a flow to the patterns it takes and those it leaves out, its engine's included.
Selections = dict[str, tuple[list[str], list[str]]]
# Topics of other systems: a name that a pattern may match, and whose such names are.
OTHERS = {
    "_schemas": ("_schemas", "Schema Registry"),
    "_confluent.*": ("_confluent...", "Confluent's services"),
    "__.*": ("__...", "Kafka and its tools"),
}


def validate_topics(validation: Validation) -> None:
    """Refuse running flows that take the same topics, or carry one round in a circle.

    And whichever flow takes what an owner keeps.
    """
    control = control_of(validation.clusters, validation.flows.values(), validation.owners)
    for owner in validation.owners:
        for flow in validation.flows_of(owner):
            _validate_control(validation, flow, control, engine_of(flow).prefix(flow, owner))
    selections = {
        flow["name"]: (
            flow["topics"],
            [
                *flow["topics_exclude"],
                *engine_of(flow).unmirrored(flow, owner),
                *control.of_flow(flow, engine_of(flow).prefix(flow, owner)),
            ],
        )
        for owner, flow in validation.running()
    }
    alike = pairs_alike({name: topics for name, (topics, _) in selections.items()})
    _validate_overlaps(validation, selections, alike)
    _validate_loops(validation, selections, alike)
    _validate_others(validation, selections)


def _validate_control(validation: Validation, flow: Flow, control: Control, prefix: str) -> None:
    """Refuse names that an owner keeps, and those that no topic can have."""
    path = validation.paths[flow["name"]]
    for side, before in (("target", prefix), ("source", "")):
        for topic, owner in control.topics.claimed(flow[side], flow["topics"], before).items():
            validation.refuse(
                f"{path}.topics: '{before}{topic}' on '{flow[side]}' is where {owner} keeps its "
                f"state; remove '{topic}'"
            )
    for group, owner in control.groups.claimed(flow["target"], flow["consumer_groups"]).items():
        validation.refuse(
            f"{path}.consumer_groups: '{group}' on '{flow['target']}' is the group of {owner}, "
            "whose positions would be overwritten; remove it"
        )
    for topic in filter(regex.is_literal, flow["topics"]):
        if len(prefix + topic) > regex.LONGEST_NAME:
            validation.refuse(
                f"{path}.topics: '{prefix}{topic}' would have {len(prefix + topic)} letters, and a "
                f"topic's name has at most {regex.LONGEST_NAME}; remove '{topic}'"
            )


def _validate_others(validation: Validation, selections: Selections) -> None:
    """Warn of flows that would write what belongs to other systems on the target."""
    for name, selection in selections.items():
        flow = validation.flows[name]
        if flow["replication_policy"] != "identity":
            continue
        wide = [entry for entry in selection[0] if not regex.is_literal(entry)]
        taken = [
            f"'{topic}' ({whose})"
            for pattern, (topic, whose) in OTHERS.items()
            if wide and common_topic([(wide, selection[1]), ([pattern], [])])
        ]
        if taken:
            validation.warn(
                f"{validation.paths[name]}.topics: also take topics in which others keep their "
                f"state, {', '.join(taken)}, and would write them on '{flow['target']}'; list them "
                "in topics_exclude unless they are to be copied"
            )


def _validate_overlaps(validation: Validation, selections: Selections, alike: Pairs) -> None:
    """Refuse two flows that write the same records."""
    ways = {name: _way(validation, validation.flows[name]) for name in selections}
    places = {name: place for place, name in enumerate(selections)}
    for first, other in sorted(
        (sorted(pair, key=places.__getitem__) for pair in alike),
        key=lambda pair: [places[name] for name in pair],
    ):
        if ways[first] == ways[other] and (
            topic := common_topic([selections[first], selections[other]])
        ):
            flow = validation.flows[first]
            validation.refuse(
                f"{validation.paths[other]}.topics: topics such as '{topic}' are mirrored "
                f"by flow '{first}' from {flow['source']} to {flow['target']} "
                "already, so every record would arrive twice; narrow one of the two"
            )


def _way(validation: Validation, flow: Flow) -> dict[str, str]:
    """The clusters of a flow by side, each under the first of its aliases."""
    return {side: aliases_of(validation.clusters, flow[side])[0] for side in ("source", "target")}


def _validate_loops(validation: Validation, selections: Selections, alike: Pairs) -> None:
    """Only a topic that keeps its name goes round."""
    edges = [
        {**flow, **_way(validation, flow)}
        for flow in (validation.flows[name] for name in selections)
        if flow["replication_policy"] == "identity"
    ]
    edges = [flow for flow in edges if flow["source"] != flow["target"]]
    for first in edges:
        for circle in _circles(edges, [first], alike):
            names = [flow["name"] for flow in circle]
            if first["name"] == min(names) and (
                topic := common_topic(selections[name] for name in names)
            ):
                way = " -> ".join([flow["source"] for flow in circle] + [first["source"]])
                quoted = ", ".join(f"'{name}'" for name in names)
                validation.refuse(
                    f"mirror_flows: {quoted} carry topics such as '{topic}' in a circle ({way}) "
                    "without end; exclude them with topics_exclude in one of these flows"
                )


def _circles(
    edges: Sequence[dict[str, Any]], path: list[dict[str, Any]], alike: Pairs
) -> Iterator[list[dict[str, Any]]]:
    """Ways back to where a path begins, along flows that may share a topic."""
    if path[-1]["target"] == path[0]["source"]:
        yield path
        return
    visited = {flow["source"] for flow in path}
    for edge in edges:
        closes = edge["target"] == path[0]["source"]
        if (
            edge["source"] == path[-1]["target"]
            and (closes or edge["target"] not in visited)
            and all(frozenset((flow["name"], edge["name"])) in alike for flow in path)
        ):
            yield from _circles(edges, [*path, edge], alike)
