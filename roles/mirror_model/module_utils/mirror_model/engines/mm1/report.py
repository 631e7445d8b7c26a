"""What the report has to know of a flow of MirrorMaker 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...owner import Owner
from .render import clients, options


def report(clusters: Mapping[str, Any], flow: Mapping[str, Any], owner: Owner) -> dict[str, Any]:
    """The flow's keys in the report's model that depend on the engine.

    No record of a transaction is written: the target is read as it is.
    """
    consumer, _ = clients(clusters, flow, owner)
    return {
        "commit_interval_ms": options(owner).get("offset.commit.interval.ms", 60000),
        "parallelism": owner.settings["num_streams"] * len(owner.hosts),
        "source_isolation": consumer.get("isolation.level") or "read_uncommitted",
        "target_isolation": "read_uncommitted",
    }
