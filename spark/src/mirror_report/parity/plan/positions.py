"""Rows a comparison is made by: offsets that decide, and topics to compare."""

import json
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Any

from mirror_report.checks.losses import merged, offsets_in
from mirror_report.config import Flow
from mirror_report.parity import grouped
from mirror_report.parity.plan import boundaries
from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.snapshots import FlowSnapshots
from mirror_report.parity.state import BEHIND_ALL, Manifest, SideState, TopicKey, fed_by


def position_rows(
    manifest: Manifest,
    snapshots: FlowSnapshots,
    flows: Iterable[Flow],
    unread: Collection[TopicKey] = (),
) -> list[dict[str, Any]]:
    """Rows of :data:`frames.compare.POSITIONS_SCHEMA`, of both sides of some flows.

    Without a commit, mirroring begins where the report's reading did.

    :param snapshots: flows that count.
    :param flows: all there are.
    :param unread: topics of which something is left for a later run.
    """
    of_name = {flow.name: flow for flow in flows}
    reached = {key: boundaries.reached(manifest, key) for key in unread}
    rows: list[dict[str, Any]] = []
    for (flow, side, origin), begun in manifest.sides.items():
        if flow not in snapshots:
            continue
        if side == "source":
            via, name = fed_by(flow, origin)
            of_side = _of_source(via, name, begun, snapshots, of_name)
            topic = of_name[via].target_topic(name) if via in of_name else origin
            if (flow, topic) in reached:
                at = reached[flow, topic]
                ends = at.source.get(origin, {}) if at is not None else {}
                of_side = [{**row, "boundary": ends.get(row["partition"], 0)} for row in of_side]
        else:
            of_side = [
                {
                    "partition": p, "first": begun.first.get(p), "older": begun.older.get(p),
                    "gap": begun.gap.get(p), "following": begun.next.get(p),
                }
                for p in begun.next.keys() | begun.sought.keys() | begun.older.keys()
                | begun.gap.keys()
            ]  # fmt: skip
        rows += [{"flow": flow, "side": side, "origin": origin} | row for row in of_side]
    return rows


def _of_source(
    via: str, name: str, begun: SideState, snapshots: FlowSnapshots, flows: Collection[str]
) -> list[dict[str, Any]]:
    gone = via in snapshots and name not in snapshots[via].source.topics
    if via in flows and via not in snapshots:
        return []
    # Nothing more comes of what is gone: what was read is due.
    committed = (
        dict.fromkeys(begun.first, BEHIND_ALL)
        if gone or via not in flows
        else snapshots[via].positions.get(name, {})
    )
    return [
        {
            "partition": partition,
            "position": committed.get(partition, first),
            "required": begun.required.get(partition),
            "following": begun.next.get(partition),
        }
        for partition, first in begun.first.items()
    ]


def topic_rows(manifest: Manifest, plan: RunPlan) -> list[dict[str, Any]]:
    """Rows of :data:`frames.status.TOPICS_SCHEMA`: topics whose content is compared."""
    unread = plan.unread
    gaps, by_hour = gaps_until(manifest), manifest.bucket_widths.by_hour
    return [
        {
            "flow": topic.flow,
            "topic": topic.topic,
            "unread": topic.key in unread,
            "source_gap": gaps.get((*topic.key, "source")),
            "target_gap": gaps.get((*topic.key, "target")),
            "target_left": _left_unread(manifest, topic.key),
            "by_hour": topic.key in by_hour,
        }
        for topic in plan.compared
    ]


def _left_unread(manifest: Manifest, topic: TopicKey) -> str | None:
    """Offsets that left a topic of the target unread, by partition and (-1) in all, as JSON."""
    gaps = (gap for gap in manifest.gaps if (gap.flow, gap.topic, gap.side) == (*topic, "target"))
    left = {
        partition: offsets_in(merged([(gap.start, gap.end) for gap in of_partition]))
        for partition, of_partition in grouped(gaps, lambda gap: gap.partition).items()
    }
    return json.dumps({**left, -1: sum(left.values())}) if left else None


def gaps_until(manifest: Manifest) -> dict[tuple[str, str, str], int]:
    """(flow, topic, side) -> until when records expired before they were read."""
    return {
        key: max(gap.until_ms for gap in gaps)
        for key, gaps in grouped(manifest.gaps, attrgetter("flow", "topic", "side")).items()
    }
