"""The state that parity keeps between runs: the manifest ``parity``. No Spark, no I/O.

How far each partition of each side was read, which topic id it had then, which digests hold that,
and what was reported of each topic. A manifest does not change: what a run finds makes another one
(:mod:`state.changes`), which :mod:`state.files` saves.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from mirror_report.config import Flow
from mirror_report.model import SIDES, Baseline, Finding, Positions
from mirror_report.parity import FINGERPRINT_VERSION, ParityError
from mirror_report.parity.state.manifest_records import (
    NUMBERS,
    PAIRS,
    Gap,
    Gone,
    Loss,
    Origin,
    Removal,
    SideState,
    TopicKey,
    Unreadable,
    Widths,
)
from mirror_report.parity.state.topics import (
    Alignment,
    Boundary,
    FatalTopic,
    Look,
    Numbers,
    Summary,
)
from mirror_report.state.partitions import contents_of, epochs_of, offsets, pairs_as_texts, texts
from mirror_report.state.store import start_again

T = TypeVar("T")

# Of the manifest itself.
FORMAT = 3

# Fields of :class:`Manifest` that have another key in the file.
KEYS = {
    "verified_again": "scrubbed",
    "verified_again_at_ms": "scrubbed_at_ms",
    "unreported": "untold",
    "new_findings": "news",
}
# Keys that came later than the format, and what they were without.
OPTIONAL: Mapping[str, Any] = {
    "topic_baselines": {}, "alignments": {}, "syncs": {}, "unreadable": [],
    "boundaries": {}, "fatal": {}, "losses": [], "looks": {},
    "open_buckets": {}, "slices": None, "spread": {},
}  # fmt: skip

# Fields by their type: tuples of records, values by flow, records and tuples
# of records by flow and topic, and maps in maps, of which all but ``files`` are likewise.
RECORDS: Mapping[str, Any] = {
    "gaps": Gap,
    "gone": Gone,
    "unreadable": Unreadable,
    "removals": Removal,
    "new_findings": Finding,
    "losses": Loss,
}
BY_FLOW = ("baselines", "syncs", "finished")
OF_TOPICS: Mapping[str, type[Summary | Alignment | FatalTopic]] = {
    "summaries": Summary,
    "alignments": Alignment,
    "fatal": FatalTopic,
}
LISTS_OF_TOPICS: Mapping[str, type[Boundary | Look]] = {"boundaries": Boundary, "looks": Look}
BY_TOPIC = (
    "files", "topic_baselines", "totals", "verified_again", "scans", "open_buckets", "spread",
)  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """All that is kept, typed; flows and topics are by name, topics by that on the target.

    :param columns: layout of the rows on disk.
    :param digests: directories of digest rows; ``sealed``: of those of closed hours; ``results``:
        of what was found in buckets that differ; ``slices``: of what was counted of open buckets
        (:mod:`plan.open_buckets`); ``files``: their files and sizes.
    :param baselines: flow -> :func:`basis`; ``topic_baselines``: flow -> topic of the source ->
        when its baseline was recorded.
    :param positions: committed, of the last comparison.
    :param summaries: numbers of each topic, as reported; ``totals``: of sealed hours.
    :param verified_again: last bucket that was read again.
    :param fatal: topics whose records end Spark's JVM (:mod:`plan.fatal_topics`).
    :param boundaries: of topics that have a backlog (:mod:`plan.boundaries`).
    :param looks: earlier ones at each topic (:mod:`plan.copies`).
    :param spread: topics with too many buckets: ``hours`` (they are compared by hours) or ``none``
        (not at all; :mod:`plan.spread`).
    :param unreported: flow -> runs whose report was not written, and the present one.
    :param new_findings: findings of these runs that no later run finds again.
    :param losses: known of topics that are compared no more, until they are accepted.
    :param finished: flow -> last run that came to its end.
    :param open_work: whether buckets wait to be classified.
    """

    bucket_ms: int
    fingerprint_version: int = FINGERPRINT_VERSION
    columns: str = ""
    digests: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()
    results: str | None = None
    slices: str | None = None
    files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    baselines: Mapping[str, list[Any]] = field(default_factory=dict)
    topic_baselines: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    sides: Mapping[Origin, SideState] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    positions: Mapping[str, Positions] = field(default_factory=dict)
    summaries: Mapping[str, Mapping[str, Summary]] = field(default_factory=dict)
    totals: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    gone: tuple[Gone, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    verified_again: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    verified_again_at_ms: int = 0
    removals: tuple[Removal, ...] = ()
    scans: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    boundaries: Mapping[str, Mapping[str, tuple[Boundary, ...]]] = field(default_factory=dict)
    fatal: Mapping[str, Mapping[str, FatalTopic]] = field(default_factory=dict)
    looks: Mapping[str, Mapping[str, tuple[Look, ...]]] = field(default_factory=dict)
    alignments: Mapping[str, Mapping[str, Alignment]] = field(default_factory=dict)
    open_buckets: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    spread: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    syncs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unreported: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    new_findings: tuple[Finding, ...] = ()
    losses: tuple[Loss, ...] = ()
    finished: Mapping[str, str] = field(default_factory=dict)
    open_work: bool = False

    @classmethod
    def load(cls, data: Mapping[str, Any], bucket_ms: int, where: Path) -> Self:
        """The manifest in the content of a file.

        :param where: the state directory, for messages.
        :raises ParityError: it is of another kind or damaged; the message says what to do.
        """
        if not data:
            return cls(bucket_ms)
        for name, ours, action in (
            ("format", FORMAT, "Install the release that wrote it, or start again"),
            ("fingerprint_version", FINGERPRINT_VERSION,
             "Install the release that wrote it, or start again"),
            ("bucket_ms", bucket_ms, "Set bucket_seconds back, or start again"),
        ):  # fmt: skip
            if data.get(name) != ours:
                raise ParityError(
                    f"the parity state has {name} {data.get(name)!r}, this run needs {ours}",
                    f"{action}: {start_again(where)}",
                )
        try:
            return cls(**_typed({**OPTIONAL, **data}))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ParityError(
                f"{where}/parity.json is damaged ({type(error).__name__}: {error})",
                f"Start again: {start_again(where)}",
            ) from error

    def dump(self) -> dict[str, Any]:
        """The content of the file: JSON types only."""
        plain = {KEYS.get(kept.name, kept.name): getattr(self, kept.name) for kept in fields(self)}
        records = {KEYS.get(name, name): getattr(self, name) for name in RECORDS}
        return plain | {
            "format": FORMAT,
            "files": {name: self.files[name] for name in sorted(self.rows()) if name in self.files},
            "sides": [
                {
                    "flow": flow,
                    "side": side,
                    "origin": origin,
                    **asdict(state),
                    **{name: texts(getattr(state, name)) for name in NUMBERS},
                    **{name: pairs_as_texts(getattr(state, name)) for name in PAIRS},
                }
                for (flow, side, origin), state in sorted(self.sides.items())
            ],
            "positions": {
                flow: {topic: texts(parts) for topic, parts in topics.items()}
                for flow, topics in self.positions.items()
            },
            **{name: [asdict(record) for record in of_kind] for name, of_kind in records.items()},
            **{
                name: {
                    flow: {topic: kept.dump() for topic, kept in topics.items()}
                    for flow, topics in plain[name].items()
                }
                for name in OF_TOPICS
            },
            **{
                name: {
                    flow: {topic: [each.dump() for each in kept] for topic, kept in topics.items()}
                    for flow, topics in plain[name].items()
                }
                for name in LISTS_OF_TOPICS
            },
        }

    def rows(self) -> set[str]:
        """Directories of rows that are needed."""
        return {*self.digests, *self.sealed, *filter(None, (self.results, self.slices))}

    @property
    def bucket_widths(self) -> Widths:
        """How wide the buckets of all topics are."""
        by_hour = [
            (flow, topic)
            for flow, topics in self.spread.items()
            for topic, how in topics.items()
            if how == "hours"
        ]
        return Widths(self.bucket_ms, by_hour)

    def is_unreported(self, flow: str, run_id: str) -> bool:
        """Whether no report holds yet what a run found of a flow."""
        return run_id in self.unreported.get(flow, ())

    def numbers(self, topic: TopicKey) -> Numbers:
        """Numbers of a topic at its last comparison; empty if there was none."""
        summary = topic_value(self.summaries, topic, None)
        return summary.now if summary else {}

    def untimed(self, flow: str, topic: str) -> bool:
        """Whether no record of a topic of the target carried a timestamp on the source."""
        newest = self.numbers((flow, topic)).get("newest_due_ms")
        return self._decided_untimed(flow, topic) or (newest is not None and newest < 0)

    def may_have_timestamps(self, flow: str, topic: str) -> bool:
        """Whether only records seen so far had none, and nothing was decided for good."""
        return self.untimed(flow, topic) and not self._decided_untimed(flow, topic)

    def _decided_untimed(self, flow: str, topic: str) -> bool:
        aligned = topic_value(self.alignments, (flow, topic), None)
        return aligned is not None and aligned.untimed


def topic_value(values: Mapping[str, Mapping[str, T]], topic: TopicKey, default: T) -> T:
    """The value of a topic, of values by flow and topic."""
    return values.get(topic[0], {}).get(topic[1], default)


def basis(flow: Flow, baseline: Baseline) -> list[Any]:
    """Settings that must not change between runs that go on from each other; JSON types only.

    Another baseline begins elsewhere; another engine keeps partitions or does not; another policy
    gives topics other names; another isolation level reads other records.
    """
    return [
        baseline.recorded_at_ms, flow.engine.name, flow.target_topic(""),
        *(flow.isolation(side) for side in SIDES),
    ]  # fmt: skip


def _typed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of :class:`Manifest` out of the content of the file."""
    plain = {kept.name: data[KEYS.get(kept.name, kept.name)] for kept in fields(Manifest)}
    return plain | {
        "sides": {
            (side["flow"], side["side"], side["origin"]): SideState(
                side["topic_id"],
                **{name: offsets(side.get(name)) for name in NUMBERS},
                retention_ms=side["retention_ms"],
                kept_from_ms=side["kept_from_ms"],
                retention_bytes=side.get("retention_bytes", -1),
                leader_epochs=epochs_of(side.get("leader_epochs")),
                last_records=contents_of(side.get("last_records")),
            )
            for side in plain["sides"]
        },
        "positions": {
            flow: {topic: offsets(parts) for topic, parts in topics.items()}
            for flow, topics in plain["positions"].items()
        },
        "unreported": {flow: tuple(runs) for flow, runs in plain["unreported"].items()},
        "verified_again_at_ms": int(plain["verified_again_at_ms"]),
        **{name: tuple(kind(**record) for record in plain[name]) for name, kind in RECORDS.items()},
        **{name: tuple(plain[name]) for name in ("digests", "sealed")},
        **{name: dict(plain[name]) for name in BY_FLOW},
        **{name: {key: dict(values) for key, values in plain[name].items()} for name in BY_TOPIC},
        **{
            name: {
                flow: {topic: kind.load(kept) for topic, kept in topics.items()}
                for flow, topics in plain[name].items()
            }
            for name, kind in OF_TOPICS.items()
        },
        **{
            name: {
                flow: {topic: tuple(map(kind.load, kept)) for topic, kept in topics.items()}
                for flow, topics in plain[name].items()
            }
            for name, kind in LISTS_OF_TOPICS.items()
        },
    }
