"""Small tables a run is judged by: positions of the mirrors, topics to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from mirror_report.parity import compare
from mirror_report.parity.ranges import feeder
from mirror_report.parity.session import table

if TYPE_CHECKING:
    from mirror_report.parity.engine import Run
    from mirror_report.parity.looking import Look


class Standing:
    """What one run knows beside the digests."""

    def __init__(self, run: Run, session: SparkSession) -> None:
        self.run = run
        self.session = session
        self.flows = {one.name for one in run.settings.flows}
        self.by_partition = [one.name for one in run.settings.flows if one.engine == "mm2"]

    def positions(self, look: Look, looks: Mapping[str, Look]) -> list[dict[str, Any]]:
        """Rows of one flow; without a commit, mirroring begins where the report's reading did.

        :param looks: all flows that could be looked at, whose positions count.
        """
        rows = []
        for (flow, side, origin), begun in self.run.memory.sides.items():
            if (flow, side) != (look.flow.name, "source"):
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
                    "flow": flow,
                    "origin": origin,
                    "partition": partition,
                    "position": committed.get(partition, first),
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
                "skip_through": one.skip_through_ms,
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
