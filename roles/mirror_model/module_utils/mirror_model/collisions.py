"""Topics that the target cannot create beside others, seen on the clusters alone.

A single one stops what is copied with it, and whoever may create topics on the source chooses its
name: a flow leaves it out from the next run on, until it is gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KIND = "name_collides"


def mirror_collisions(
    findings: Iterable[Mapping[str, Any]], flows: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Topics that flows can leave out because their copies cannot be.

    :param findings: of a check of the clusters.
    :param flows: ``mirror_flows``. What one names itself is not left out: that is for its owner.
    :returns: name of a flow to names of the source, sorted; flows without one are not in it.
    """
    named = {flow["name"]: flow.get("topics") or () for flow in flows}
    found: dict[str, set[str]] = {}
    for each in findings:
        flow, topic = each["flow"], each["topic"]
        if each["kind"] == KIND and flow in named and topic not in named[flow]:
            found.setdefault(flow, set()).add(topic)
    return {flow: sorted(topics) for flow, topics in found.items()}


def mirror_flows_without(
    flows: Sequence[Mapping[str, Any]], topics: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """The same flows, which leave out some topics more.

    :param flows: ``mirror_flows``.
    :param topics: as of :func:`mirror_collisions`.
    """
    return [
        {**flow, "topics_exclude": [*(flow.get("topics_exclude") or ()), *topics[flow["name"]]]}
        if flow["name"] in topics
        else dict(flow)
        for flow in flows
    ]
