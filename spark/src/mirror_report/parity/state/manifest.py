"""What parity remembers between runs: the manifest ``parity``. No Spark, no I/O.

How far each partition of each side was read, which topic id it had then, which digests hold that,
and what was said of each topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mirror_report.config.flow import Flow
from mirror_report.model.cluster import Positions
from mirror_report.model.findings import Finding
from mirror_report.parity.errors import ParityError
from mirror_report.parity.plan.ranges import SIDES, Side
from mirror_report.state.store import anew

FORMAT = 3
"""Of the manifest itself."""

NEVER = -(2**62)
"""A time before all others, in milliseconds."""
UNTOLD = 100
"""Runs of a flow in a row without a report of which the news are kept."""

STARTS = ("required", "untouched", "sought", "older")
"""Fields of :class:`SideMemory` that come from a baseline: two of the source, two of the target."""
OFFSETS = ("first", "next", *STARTS, "log_start")
"""Fields of :class:`SideMemory` that hold an offset per partition."""

Origin = tuple[str, Side, str]
"""Flow, side, and the topic's name there (or a guest, see :mod:`plan.ranges`)."""


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
class Gone:
    """Digested records of one target partition that the target no longer holds.

    :param expired: as many as its retention had to remove; ``early``: as many as it had not.
    :param until_ms: when retention would have removed the newest of the early ones;
        ``None``: never.
    """

    flow: str
    topic: str
    partition: int
    expired: int
    early: int
    until_ms: int | None


@dataclass(frozen=True)
class Removal:
    """Digested offsets ``start`` to ``end`` (exclusive) that the target no longer holds.

    :param kept_from_ms: none of what was younger had to go.
    :param retention_ms: for how long records stay by now; ``None``: for ever, or not known.
    """

    flow: str
    topic: str
    partition: int
    start: int
    end: int
    kept_from_ms: int
    retention_ms: int | None


@dataclass(frozen=True)
class Unreadable:
    """A record that Spark cannot read, because its timestamp does not fit into microseconds.

    :param topic_id: of the topic it was met in; empty where nothing is remembered.
    """

    flow: str
    side: Side
    topic: str
    origin: str
    partition: int
    offset: int
    timestamp_ms: int
    topic_id: str = ""


@dataclass(frozen=True)
class SideMemory:
    """How far one side of a topic was read.

    :param first: where reading began; ``next``: the offset to go on from.
    :param log_start: first offset that was there; kept of the target alone, like what follows.
    :param retention_ms: for how long records stay; -1: for ever; ``None``: not known, or they may
        also go because the log is too large.
    :param kept_from_ms: no record younger than this had to go so far.
    :param required: source, of a baseline recorded while the mirror ran: records below may have
        been copied before it; ``untouched``: from here on none was.
    :param sought: target, likewise: from here to ``first`` lies what was copied last before it.
    :param older: target: ends when the source was first looked at and had lost its beginning.
    """

    topic_id: str
    first: dict[int, int]
    next: dict[int, int]
    log_start: dict[int, int] = field(default_factory=dict)
    retention_ms: int | None = None
    kept_from_ms: int = NEVER
    required: dict[int, int] = field(default_factory=dict)
    untouched: dict[int, int] = field(default_factory=dict)
    sought: dict[int, int] = field(default_factory=dict)
    older: dict[int, int] = field(default_factory=dict)


@dataclass
class Memory:
    """What the report remembers of content; the manifest ``parity``.

    :param columns: of the rows below: those of another layout are never read.
    :param digests: directories of digest rows, below the parity directory; they add up.
    :param sealed: likewise, of hours that are verified and closed.
    :param results: directory of drill results.
    :param files: directory -> file -> size in bytes.
    :param baselines: flow -> what its digests and results rest on, as :func:`basis` says.
    :param topic_baselines: flow -> topic of the source -> when its baseline was recorded (ms).
    :param positions: committed positions at the last run.
    :param summaries: flow -> target topic -> the topic's numbers, as the next run may repeat them.
    :param totals: flow -> target topic -> what was sealed, in numbers.
    :param gone: what the target no longer holds.
    :param unreadable: what cannot be read, and is read around.
    :param scrubbed: flow -> target topic -> newest bucket that was read again in this round.
    :param scrubbed_at_ms: when something was last read again.
    :param removals: what went from the target and was not looked at yet.
    :param scans: flow -> compacted topic on the target -> what its last scan found, as
        :class:`plan.scans.Scan` says.
    :param alignments: flow -> topic on the target that is cut by offsets -> ids of both sides,
        whether it was made anew, and by partition a :class:`plan.cuts.Track`.
    :param syncs: flow -> what was read of its offset syncs.
    :param untold: flow -> runs since its last report, this one included: what they found is news.
    :param news: findings that are said once, and that no report has told yet.
    :param finished: flow -> the run that said all of its news, if it came to its end.
    :param open_work: something is left to read or to drill.
    """

    fingerprint_version: int
    bucket_ms: int
    columns: str | None = None
    digests: list[str] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)
    results: str | None = None
    files: dict[str, dict[str, int]] = field(default_factory=dict)
    baselines: dict[str, Any] = field(default_factory=dict)
    topic_baselines: dict[str, dict[str, int]] = field(default_factory=dict)
    sides: dict[Origin, SideMemory] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    positions: dict[str, Positions] = field(default_factory=dict)
    summaries: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    totals: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    scrubbed: dict[str, dict[str, int]] = field(default_factory=dict)
    scrubbed_at_ms: int = 0
    removals: list[Removal] = field(default_factory=list)
    scans: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    alignments: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    syncs: dict[str, dict[str, Any]] = field(default_factory=dict)
    untold: dict[str, list[str]] = field(default_factory=dict)
    news: list[Finding] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    open_work: bool = False

    @classmethod
    def load(
        cls, data: Mapping[str, Any], fingerprint_version: int, bucket_ms: int, where: Path
    ) -> Memory:
        """What the manifest holds.

        :param where: the state directory, for messages.
        :raises ParityError: it is of another kind or damaged; the message says what to do.
        """
        if not data:
            return cls(fingerprint_version, bucket_ms)
        for name, ours, cure in (
            ("format", FORMAT, "Install the release that wrote it, or start anew"),
            ("fingerprint_version", fingerprint_version,
             "Install the release that wrote it, or start anew"),
            ("bucket_ms", bucket_ms, "Set bucket_seconds back, or start anew"),
        ):  # fmt: skip
            if data.get(name) != ours:
                raise ParityError(
                    f"the parity state has {name} {data.get(name)!r}, this run needs {ours}. "
                    f"{cure}: {anew(where)}"
                )
        try:
            return cls._of(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ParityError(
                f"{where}/parity.json is damaged ({type(error).__name__}: {error}). Start anew: "
                f"{anew(where)}"
            ) from error

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Memory:
        return cls(
            data["fingerprint_version"],
            data["bucket_ms"],
            columns=data["columns"],
            digests=list(data["digests"]),
            sealed=list(data["sealed"]),
            results=data["results"],
            files={name: dict(some) for name, some in data["files"].items()},
            baselines=dict(data["baselines"]),
            topic_baselines={
                flow: dict(one) for flow, one in data.get("topic_baselines", {}).items()
            },
            sides={
                (one["flow"], one["side"], one["origin"]): SideMemory(
                    one["topic_id"],
                    **{name: offsets(one.get(name, {})) for name in OFFSETS},
                    retention_ms=one["retention_ms"],
                    kept_from_ms=one["kept_from_ms"],
                )
                for one in data["sides"]
            },
            gaps=[Gap(**one) for one in data["gaps"]],
            positions={
                flow: {topic: offsets(parts) for topic, parts in topics.items()}
                for flow, topics in data["positions"].items()
            },
            summaries={flow: dict(topics) for flow, topics in data["summaries"].items()},
            totals={flow: dict(topics) for flow, topics in data["totals"].items()},
            gone=[Gone(**one) for one in data["gone"]],
            unreadable=[Unreadable(**one) for one in data.get("unreadable", [])],
            scrubbed={flow: dict(topics) for flow, topics in data["scrubbed"].items()},
            scrubbed_at_ms=int(data["scrubbed_at_ms"]),
            removals=[Removal(**one) for one in data["removals"]],
            scans={flow: dict(topics) for flow, topics in data["scans"].items()},
            alignments={flow: dict(one) for flow, one in data.get("alignments", {}).items()},
            syncs=dict(data.get("syncs", {})),
            untold={flow: list(runs) for flow, runs in data["untold"].items()},
            news=[Finding(**one) for one in data["news"]],
            finished=dict(data["finished"]),
            open_work=bool(data["open_work"]),
        )

    def dump(self) -> dict[str, Any]:
        """The manifest: JSON types only."""
        return {
            "format": FORMAT,
            "fingerprint_version": self.fingerprint_version,
            "bucket_ms": self.bucket_ms,
            "columns": self.columns,
            "digests": self.digests,
            "sealed": self.sealed,
            "results": self.results,
            "files": {
                name: self.files[name] for name in sorted(self.named()) if name in self.files
            },
            "baselines": self.baselines,
            "topic_baselines": self.topic_baselines,
            "sides": [
                {"flow": flow, "side": side, "origin": origin, **_plain(one)}
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
            "totals": self.totals,
            "gone": [asdict(one) for one in self.gone],
            "unreadable": [asdict(one) for one in self.unreadable],
            "scrubbed": self.scrubbed,
            "scrubbed_at_ms": self.scrubbed_at_ms,
            "removals": [asdict(one) for one in self.removals],
            "scans": self.scans,
            "alignments": self.alignments,
            "syncs": self.syncs,
            "untold": self.untold,
            "news": [asdict(one) for one in self.news],
            "finished": self.finished,
            "open_work": self.open_work,
        }

    def named(self) -> set[str]:
        """Directories of rows that are needed."""
        return {*self.digests, *self.sealed, *([self.results] if self.results else [])}

    def now_runs(self, run_id: str, flows: Iterable[str], was_told: Callable[[str], bool]) -> None:
        """Begin a run of some flows.

        What was found since the last report of a flow stays news: the run ended before its report.
        """
        for flow in flows:
            runs = self.untold.get(flow, [])
            told = max((at for at, one in enumerate(runs) if was_told(one)), default=-1)
            self.untold[flow] = [*runs[told + 1 :][-UNTOLD:], run_id]
            finished = self.finished.pop(flow, None)
            if finished is not None and was_told(finished):
                self.news = [one for one in self.news if one.flow != flow]

    def is_news(self, flow: str, run_id: str) -> bool:
        """Whether no report has told yet what a run found of a flow."""
        return run_id in self.untold.get(flow, [])

    def untimed(self, flow: str, topic: str) -> bool:
        """Whether no record of a topic of the target carried a timestamp on the source."""
        if self.alignments.get(flow, {}).get(topic, {}).get("untimed"):
            return True
        known = self.summaries.get(flow, {}).get(topic, {}).get("now", {})
        newest = known.get("newest_due_ms")
        return newest is not None and newest < 0

    def may_have_timestamps(self, flow: str, topic: str) -> bool:
        """Whether only records seen so far had none, and nothing was decided for good."""
        aligned = self.alignments.get(flow, {}).get(topic, {}).get("untimed")
        return self.untimed(flow, topic) and not aligned

    def now_timed(self, flow: str, topic: str) -> None:
        """Take back that no record carried one, until the next are compared."""
        self.summaries[flow][topic]["now"]["newest_due_ms"] = None

    def forget(self, flow: str) -> None:
        """Drop all that is remembered of a flow, except for its rows."""
        self.sides = {key: one for key, one in self.sides.items() if key[0] != flow}
        self.gaps = [one for one in self.gaps if one.flow != flow]
        self.gone = [one for one in self.gone if one.flow != flow]
        self.removals = [one for one in self.removals if one.flow != flow]
        self.unreadable = [one for one in self.unreadable if one.flow != flow]
        for kept in (
            self.topic_baselines,
            self.positions,
            self.summaries,
            self.scans,
            self.totals,
            self.scrubbed,
            self.alignments,
        ):
            kept.pop(flow, None)

    def forget_topic(self, flow: str, topic: str, origins: Iterable[str]) -> None:
        """Drop all that is remembered of one topic of the target, except for its rows."""
        for key in [(flow, "source", one) for one in origins] + [(flow, "target", topic)]:
            self.sides.pop(key, None)
        self.gaps = [one for one in self.gaps if (one.flow, one.topic) != (flow, topic)]
        self.unreadable = [one for one in self.unreadable if (one.flow, one.topic) != (flow, topic)]
        self.forget_numbers(flow, topic)

    def forget_numbers(self, flow: str, topic: str) -> None:
        """Drop what was said of one topic of the target."""
        self.gone = [one for one in self.gone if (one.flow, one.topic) != (flow, topic)]
        self.removals = [one for one in self.removals if (one.flow, one.topic) != (flow, topic)]
        for kept in (self.summaries, self.scans, self.totals, self.scrubbed):
            kept.get(flow, {}).pop(topic, None)


def basis(flow: Flow, baseline: Mapping[str, Any]) -> list[Any]:
    """What must not change between runs that go on from each other; JSON types only.

    Another baseline begins elsewhere; another engine keeps partitions or does not; another policy
    gives topics other names; another isolation takes other records for real.
    """
    isolation = [flow.isolation(side) for side in SIDES]
    return [baseline.get("recorded_at_ms"), flow.engine.name, flow.target_topic(""), *isolation]


def offsets(values: Mapping[Any, int]) -> dict[int, int]:
    """Offsets by partition, as numbers again after JSON has made text of them."""
    return {int(partition): int(offset) for partition, offset in values.items()}


def _plain(one: SideMemory) -> dict[str, Any]:
    return {
        name: {str(p): offset for p, offset in value.items()} if isinstance(value, dict) else value
        for name, value in asdict(one).items()
    }
