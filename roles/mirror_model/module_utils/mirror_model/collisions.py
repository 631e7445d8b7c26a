"""Topics that the target cannot create beside others, seen on the clusters alone.

A single one stops what is copied with it, and whoever may create topics on the source chooses its
name: a flow leaves it out from the next run on, until it is gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .site import Site

KIND = "name_collides"


def mirror_collisions(site: Site, findings: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Findings about topics that their flows can leave out because their copies cannot be.

    What a flow names itself is not left out: that is for its owner.

    :param findings: of a check of the clusters.
    """
    named = {flow["name"]: flow.get("topics") or () for flow in site.mirror_flows}
    return [
        each
        for each in findings
        if each["kind"] == KIND
        and each["flow"] in named
        and each["topic"] not in named[each["flow"]]
    ]


def mirror_site_without(site: Site, collisions: Iterable[Mapping[str, Any]]) -> Site:
    """The same site, whose flows leave out some topics more.

    :param collisions: as of :func:`mirror_collisions`; one topic may be in several.
    """
    left_out: dict[str, set[str]] = {}
    for each in collisions:
        left_out.setdefault(each["flow"], set()).add(each["topic"])
    flows = [
        {
            **flow,
            "topics_exclude": [
                *(flow.get("topics_exclude") or ()), *sorted(left_out[flow["name"]]),
            ],
        } if flow["name"] in left_out
        else flow
        for flow in site.mirror_flows
    ]  # fmt: skip
    return replace(site, mirror_flows=flows) if left_out else site
