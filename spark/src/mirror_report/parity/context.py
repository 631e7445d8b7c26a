"""The context of a run. Nothing in it changes."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from mirror_report.config import Flow, Settings
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    Epochs,
    EpochsAsked,
    OffsetSync,
    Place,
    Positions,
    Progress,
)
from mirror_report.state import baselines
from mirror_report.state.store import Store


class TakeSnapshots(Protocol):
    """Fresh snapshots of the clusters of a flow; each raises a ReportError if it cannot."""

    def source(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the source."""

    def positions(self, flow: Flow) -> Positions:
        """Take the committed positions."""

    def target(self, flow: Flow) -> ClusterSnapshot:
        """Take a snapshot of the target."""

    def syncs(
        self, flow: Flow, memory: Mapping[str, Any]
    ) -> tuple[dict[Place, list[OffsetSync]], dict[str, Any]]:
        """Take MirrorMaker 2's offset syncs since an earlier time, and what the next has to know.

        :param memory: what was returned then.
        """

    def timed(self, flow: Flow, topics: Collection[str]) -> set[str]:
        """Those of some topics of the source that hold records with timestamps."""

    def epochs(self, alias: str, logs: Mapping[Place, EpochsAsked]) -> dict[Place, Epochs]:
        """Leader epochs of some logs of a cluster, of those that answer; none if they keep none."""

    def contents(self, alias: str, offsets: Mapping[Place, int]) -> dict[Place, str]:
        """Contents of single records of a cluster, of those that can be read."""


@dataclass(frozen=True)
class ParityRequest:
    """The request for a run, within ``settings.budget``.

    :param flows: names of the flows to compare; ``None``: all. The others still count where they
        feed the same topics.
    """

    settings: Settings
    take: TakeSnapshots
    store: Store
    run_id: str
    flows: tuple[str, ...] | None = None


@dataclass(frozen=True)
class RunContext:
    """One run: what it may ask, where it keeps what, and what it is allowed to take.

    :param flows: the flows to compare.
    :param baselines: of the flows that have one.
    :param started: of :func:`time.monotonic`.
    :param attempt: counts up each time it reads again because Spark's JVM has ended.
    """

    settings: Settings
    take: TakeSnapshots
    store: Store
    run_id: str
    progress: Progress
    flows: tuple[Flow, ...]
    baselines: Mapping[str, Baseline]
    started: float
    now_ms: int
    attempt: int = 0

    @classmethod
    def begin(cls, request: ParityRequest, progress: Progress) -> Self:
        """Start the clock of a run.

        :raises StateError: the baseline cannot be read.
        """
        settings, chosen = request.settings, request.flows
        flows = tuple(flow for flow in settings.flows if chosen is None or flow.name in chosen)
        return cls(
            settings, request.take, request.store, request.run_id, progress, flows,
            baselines.load(request.store), time.monotonic(), int(time.time() * 1000),
        )  # fmt: skip

    @property
    def bucket_ms(self) -> int:
        """Width of a bucket of timestamps."""
        return self.settings.bucket_seconds * 1000

    @property
    def rows_name(self) -> str:
        """Name of the directory of this run's rows."""
        return f"{self.run_id}.{self.attempt}" if self.attempt else self.run_id

    def again(self) -> Self:
        """The same run, with rows of its own."""
        return replace(self, attempt=self.attempt + 1)

    @property
    def by_partition(self) -> tuple[str, ...]:
        """Names of the flows whose mirror keeps partitions."""
        return tuple(flow.name for flow in self.settings.flows if flow.engine.keeps_partitions)

    @property
    def seconds(self) -> float:
        """For how long the run has lasted."""
        return time.monotonic() - self.started

    def baseline(self, flow: str) -> Baseline:
        """The baseline of a flow, recorded or not."""
        return self.baselines.get(flow, Baseline())

    def time_is_over(self, share: float = 1.0) -> bool:
        """Whether so much of the time is over that no further part may begin."""
        return self.seconds > self.settings.budget.deadline_seconds * share
