"""What parity remembers between runs: the manifest ``parity``. No Spark, no I/O.

How far each partition of each side was read, which topic id it had then, which digests hold that,
and what was said of each topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mirror_report.config import Flow
from mirror_report.model import Positions
from mirror_report.parity.ranges import SIDES, Side

UNTOLD = 100
"""Runs in a row without a report of which the news are kept."""


@dataclass(frozen=True)
class Gap:
    """Records that expired before the report could read them.

    :param until_ms: they had been written by then.
    """

    flow: str
    side: Side
    topic: str
    origin: str
    partition: int
    start: int
    end: int
    until_ms: int


@dataclass(frozen=True)
class SideMemory:
    """How far one side of a topic was read.

    :param first: where reading began; ``next``: the offset to go on from.
    """

    topic_id: str
    first: dict[int, int]
    next: dict[int, int]


@dataclass
class Memory:
    """What the report remembers of content; the manifest ``parity``.

    :param digests: directories of digest rows, below the parity directory; they add up.
    :param results: directory of drill results.
    :param baselines: flow -> what its digests and results rest on, as :func:`basis` says.
    :param positions: committed positions at the last run.
    :param summaries: flow -> target topic -> the topic's numbers, as the next run may repeat them.
    :param scans: flow -> compacted topic on the target -> what its last scan found, as
        :class:`mirror_report.parity.scans.Scan` says.
    :param open_work: something is left to read or to drill.
    :param untold: runs whose report was never written, this one the last: what they found is news.
    """

    fingerprint_version: int
    bucket_ms: int
    digests: list[str] = field(default_factory=list)
    results: str | None = None
    baselines: dict[str, Any] = field(default_factory=dict)
    sides: dict[tuple[str, Side, str], SideMemory] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    positions: dict[str, Positions] = field(default_factory=dict)
    summaries: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    scans: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    open_work: bool = False
    untold: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, data: Mapping[str, Any], fingerprint_version: int, bucket_ms: int) -> Memory:
        """What the manifest holds; nothing if digests of its kind cannot be compared with ours."""
        if (data.get("fingerprint_version"), data.get("bucket_ms")) != (
            fingerprint_version,
            bucket_ms,
        ):
            return cls(fingerprint_version, bucket_ms)
        return cls(
            fingerprint_version,
            bucket_ms,
            digests=list(data["digests"]),
            results=data["results"],
            baselines=dict(data["baselines"]),
            sides={
                (one["flow"], one["side"], one["origin"]): SideMemory(
                    one["topic_id"], offsets(one["first"]), offsets(one["next"])
                )
                for one in data["sides"]
            },
            gaps=[Gap(**one) for one in data["gaps"]],
            positions={
                flow: {topic: offsets(parts) for topic, parts in topics.items()}
                for flow, topics in data["positions"].items()
            },
            summaries={flow: dict(topics) for flow, topics in data["summaries"].items()},
            scans={flow: dict(topics) for flow, topics in data.get("scans", {}).items()},
            open_work=bool(data["open_work"]),
            untold=list(data.get("untold", [])),
        )

    def dump(self) -> dict[str, Any]:
        """The manifest: JSON types only."""
        return {
            "fingerprint_version": self.fingerprint_version,
            "bucket_ms": self.bucket_ms,
            "digests": self.digests,
            "results": self.results,
            "baselines": self.baselines,
            "sides": [
                {
                    "flow": flow,
                    "side": side,
                    "origin": origin,
                    "topic_id": one.topic_id,
                    "first": {str(p): offset for p, offset in one.first.items()},
                    "next": {str(p): offset for p, offset in one.next.items()},
                }
                for (flow, side, origin), one in sorted(self.sides.items())
            ],
            "gaps": [asdict(one) for one in self.gaps],
            "positions": {
                flow: {
                    topic: {str(p): offset for p, offset in parts.items()}
                    for topic, parts in topics.items()
                }
                for flow, topics in self.positions.items()
            },
            "summaries": self.summaries,
            "scans": self.scans,
            "open_work": self.open_work,
            "untold": self.untold,
        }

    def now_runs(self, run_id: str, was_told: Callable[[str], bool]) -> None:
        """Begin a run: what runs have found that ended before their report stays news."""
        self.untold = [*[one for one in self.untold if not was_told(one)][-UNTOLD:], run_id]

    def forget(self, flow: str) -> None:
        """Drop all that is remembered of a flow, except for its digest rows."""
        self.sides = {key: one for key, one in self.sides.items() if key[0] != flow}
        self.gaps = [one for one in self.gaps if one.flow != flow]
        self.positions.pop(flow, None)
        self.summaries.pop(flow, None)
        self.scans.pop(flow, None)


def basis(flow: Flow, baseline: Mapping[str, Any]) -> list[Any]:
    """What must not change between runs that go on from each other; JSON types only.

    Another baseline begins elsewhere; another engine keeps partitions or does not; another policy
    gives topics other names; another isolation takes other records for real.
    """
    isolation = [flow.isolation(side) for side in SIDES]
    return [baseline.get("recorded_at_ms"), flow.engine, flow.target_topic(""), *isolation]


def offsets(values: Mapping[Any, int]) -> dict[int, int]:
    """Offsets by partition, as numbers again after JSON has made text of them."""
    return {int(partition): int(offset) for partition, offset in values.items()}
