"""Small tables a run is judged by: positions of the mirrors, topics to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from mirror_report.parity.frames import compare
from mirror_report.parity.frames.tables import table
from mirror_report.parity.plan.ranges import feeder

if TYPE_CHECKING:
    from mirror_report.parity.plan.cofed import Look
    from mirror_report.parity.run import Run


class Standing:
    """What one run knows beside the digests."""

    def __init__(self, run: Run, session: SparkSession) -> None:
        self.run = run
        self.session = session
        self.flows = {one.name for one in run.settings.flows}
        self.by_partition = [one.name for one in run.settings.flows if one.engine.keeps_partitions]

    def positions(self, look: Look, looks: Mapping[str, Look]) -> list[dict[str, Any]]:
        """Rows of one flow; without a commit, mirroring begins where the report's reading did.

        Of :data:`frames.compare.POSITIONS_SCHEMA`, of both sides.

        :param looks: all flows that could be looked at, whose positions count.
        """
        rows = []
        for (flow, side, origin), begun in self.run.memory.sides.items():
            if flow != look.flow.name:
                continue
            where = {"flow": flow, "side": side, "origin": origin}
            if side == "target":
                rows += [
                    {**where, "partition": partition, "first": begun.first.get(partition),
                     "older": begun.older.get(partition)}
                    for partition in begun.sought.keys() | begun.older.keys()
                ]  # fmt: skip
                continue
            via, name = feeder(flow, origin)
            if via not in self.flows or (via in looks and name not in looks[via].source.topics):
                # Nothing more is going to come of it: what was read is due.
                committed = dict.fromkeys(begun.first, 2**62)
            elif via in looks:
                committed = looks[via].positions.get(name, {})
            else:
                continue
            rows += [
                {
                    **where,
                    "partition": partition,
                    "position": committed.get(partition, first),
                    "required": begun.required.get(partition),
                }
                for partition, first in begun.first.items()
            ]
        return rows

    def position_table(self, rows: Mapping[str, list[dict[str, Any]]]) -> DataFrame:
        """Positions of all flows as a small table."""
        return table(
            self.session, compare.POSITIONS_SCHEMA, [row for some in rows.values() for row in some]
        )

    def topic_rows(self) -> list[dict[str, Any]]:
        """Topics whose content is compared in this run."""
        run = self.run
        unread = {(one.flow, one.topic) for one in run.backlog} | run.braked_topics()
        gaps = self.gaps()
        return [
            {
                "flow": one.flow,
                "topic": one.topic,
                "unread": (one.flow, one.topic) in unread,
                "source_gap": gaps.get((one.flow, one.topic, "source")),
                "target_gap": gaps.get((one.flow, one.topic, "target")),
            }
            for look in run.looks
            for one in look.plan.topics
            if one.judged
        ]

    def gaps(self) -> dict[tuple[str, str, str], int]:
        """(flow, topic, side) -> until when records expired before they were read."""
        found: dict[tuple[str, str, str], int] = {}
        for gap in self.run.memory.gaps:
            key = (gap.flow, gap.topic, gap.side)
            found[key] = max(gap.until_ms, found.get(key, gap.until_ms))
        return found
