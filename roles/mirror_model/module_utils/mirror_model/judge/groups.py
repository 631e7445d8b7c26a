"""Inventory groups: what the playbooks deploy, and who proves that it mirrors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..inventory import Inventory


def judge_groups(found: Inventory, groups: Mapping[str, Any] | None) -> None:
    """Judge that owners' hosts are deployed to and that the report has a host.

    :param groups: inventory groups; ``None`` judges nothing.
    """
    if groups is None:
        return
    for owner in found.owners:
        group = owner.kind.group
        for host in owner.hosts:
            if host not in groups.get(group, ()):
                found.warn(
                    f"group {group}: '{host}' is to run '{owner.name}' and is not in it, so the "
                    "playbooks pass it by; add it"
                )
    if groups.get("mirror_report"):
        return
    mirroring = [owner.name for owner in found.owners if owner.hosts and owner.flows]
    if mirroring:
        found.refuse(
            f"group mirror_report: has no host, so nobody would prove what '{mirroring[0]}' "
            "mirrors; add a host to it"
        )
