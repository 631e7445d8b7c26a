"""Topics that the target cannot create beside others, seen on the clusters alone.

A single one stops what is copied with it, and whoever may create topics on the source chooses its
name: a flow leaves it out from the next run on, until it is gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KIND = "name_collides"


def mirror_collisions(
    findings: Iterable[Mapping[str, Any]], flows: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Findings about topics that their flows can leave out because their copies cannot be.

    :param findings: of a check of the clusters.
    :param flows: ``mirror_flows``. What one names itself is not left out: that is for its owner.
    """
    named = {flow["name"]: flow.get("topics") or () for flow in flows}
    return [
        each
        for each in findings
        if each["kind"] == KIND
        and each["flow"] in named
        and each["topic"] not in named[each["flow"]]
    ]


def mirror_flows_without(
    flows: Sequence[Mapping[str, Any]], collisions: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The same flows, which leave out some topics more.

    :param flows: ``mirror_flows``.
    :param collisions: as of :func:`mirror_collisions`; one topic may be in several.
    """
    left_out: dict[str, set[str]] = {}
    for each in collisions:
        left_out.setdefault(each["flow"], set()).add(each["topic"])
    return [
        {
            **flow,
            "topics_exclude": [
                *(flow.get("topics_exclude") or ()), *sorted(left_out[flow["name"]]),
            ],
        } if flow["name"] in left_out
        else dict(flow)
        for flow in flows
    ]  # fmt: skip
