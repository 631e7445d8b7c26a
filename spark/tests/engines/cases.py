"""A flow of some engine with everything its checks are given, so that each has something to say."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_report.checks import (
    failover,
    groups,
    lag,
    lag_findings,
    losses,
    partition_history,
    permissions,
    selection,
    shifts,
)
from mirror_report.checks import positions as position_checks
from mirror_report.config import Cluster, Flow, Warn
from mirror_report.model import (
    CLASSES,
    Access,
    Baseline,
    ClusterSnapshot,
    Finding,
    GroupMember,
    GroupOffsets,
    GroupSnapshot,
    LagState,
    MirrorStatus,
    Observed,
    OffsetSync,
    PartitionSnapshot,
    Sample,
    TopicParity,
    TopicSnapshot,
    Translation,
    WorkerState,
)

NOW = 1_800_000_000_000


def topic(name: str, start: int, end: int, **configs: str) -> TopicSnapshot:
    given = {
        "cleanup.policy": "delete",
        **{key.replace("_", "."): value for key, value in configs.items()},
    }
    log = {0: PartitionSnapshot(start, end, end)}
    return TopicSnapshot(
        name,
        f"id-{name}",
        log,
        given,
        None,
        ("READ",),
        dict.fromkeys(given, "DYNAMIC_TOPIC_CONFIG"),
    )


def snapshot(
    alias: str, *some: TopicSnapshot, errors: Mapping[str, str] | None = None
) -> ClusterSnapshot:
    return ClusterSnapshot(
        alias, alias, NOW, {entry.name: entry for entry in some}, dict(errors or {})
    )


CLUSTERS = {alias: Cluster(alias, (f"{alias}1:9092",)) for alias in ("east", "west")}
GROUP = GroupSnapshot("g", "Stable", (GroupMember("c", "mirror1", (("t", 0),)),))
EMPTY_GROUP = GroupSnapshot("g", "Empty", ())
FAILED = WorkerState("MirrorSourceConnector", 0, "FAILED", "boom")
EMPTY = TopicParity(
    flow="orders", source_topic="t", topic="t", status="mismatch", source_records=9,
    target_records=9, verified_records=0, in_flight_records=0, skipped_records=1,
    counts=dict.fromkeys(CLASSES, 2), accounted=dict.fromkeys(CLASSES, 1), buckets={},
    verified_through_ms=None, newest_due_ms=None, reason="because",
    samples={kind: [Sample("source", 0, 7, 0, "k", "r", None, None)] for kind in CLASSES},
)  # fmt: skip


@dataclass
class Case:
    """A flow of some engine, and everything its checks are given."""

    flow: Flow

    def __post_init__(self) -> None:
        flow = self.flow
        self.source = snapshot(
            "east", topic("t", 50, 200, max_message_bytes="9"), topic("t-new", 0, 9),
            topic("__in", 0, 9), errors={"t-hidden": "hidden"},
        )  # fmt: skip
        there = topic(flow.target_topic("t"), 0, 90, max_message_bytes="5")
        self.target = snapshot("west", replace(there, partitions={}), topic("z", 0, 1))
        self.copied = snapshot("west", there)
        self.mirror = MirrorStatus(
            {"t": {0: 100}}, {("t", 0): NOW - 5000}, {("t", 0): OffsetSync(120, 80, NOW)},
            (FAILED,), ("syncs could not be read",),
        )  # fmt: skip
        lines: list[dict[str, Any]] = []
        lines.append(
            partition_history.new_line(
                partition_history.FlowHistory(), self.source, {"t": {0: 40}}, {}, ""
            )
        )
        self.past = partition_history.of_lines([{**lines[0], "at": NOW - 900_000}])
        self.places = position_checks.mirror_positions(
            flow, self.source, self.mirror.positions, Baseline(), self.past
        )
        self.waiting = position_checks.waiting_ranges(flow, self.source, self.places)
        self.rows = lag.measure(
            flow, Observed(self.source, self.mirror, GROUP, self.copied, None),
            lag.Evidence(self.places), history=self.past, baseline=Baseline(), warn=Warn(),
        )  # fmt: skip
        self.offsets = [GroupOffsets("app-1", {"t": {0: 130}}, {there.name: {0: 95}}, "Empty")]
        self.scene = groups.Scene(
            flow, self.source, self.copied, Translation({("t", 0): (OffsetSync(120, 80, NOW),)}, {})
        )

    def shifted(self) -> list[Finding]:
        """Offset shifts that fell and rose."""
        found: list[Finding] = []
        for downstream in (70, 90):
            now = replace(self.mirror, syncs={("t", 0): OffsetSync(120, 80, NOW)})
            seen = shifts.offset_shifts(self.source, self.copied, now, self.flow, {})
            before = {
                name: {**observed, "partitions": {"0": [120, downstream, 20]}}
                for name, observed in seen.items()
            }
            found += shifts.findings(self.flow, self.source, seen, before, ())
        return found

    def selected(self) -> list[Finding]:
        """Topics that the mirror and the report do not agree on."""
        seen = selection.disagreements(
            self.flow, self.source, {"t": {0: 9}, "heartbeats": {0: 9}}, Baseline(), {}
        )
        before = {**seen, "unmatched": dict.fromkeys(seen["unmatched"], 1)}
        late = {"since_ms": 0, "moved": 0}
        seen["untouched"] = dict.fromkeys(seen["untouched"], late)
        return [*selection.findings(self.flow, self.source, {"t": {0: 9}}, GROUP, seen, before)]

    def lost(self) -> list[Finding]:
        """Records the source dropped."""
        seen = losses.newly_lost(
            self.flow,
            Observed(self.source, replace(self.mirror, syncs={}), EMPTY_GROUP, self.copied, None),
            {("t", 0): 10}, self.past, baseline=Baseline(), rises={},
        )  # fmt: skip
        lost = losses.with_new({}, seen, 1, Baseline())
        return [*losses.findings(self.flow, lost, CLUSTERS["east"])]

    def grouped(self) -> list[Finding]:
        """A consumer group in every state."""
        rows, _ = groups.parities(self.scene, self.offsets)
        assert groups.unproved(self.scene, self.offsets) is not None
        found = [failover.none_examined(self.flow)]
        for state in failover.STATES:
            every = [
                replace(row, partitions=tuple(replace(p, state=state) for p in row.partitions))
                for row in rows
            ]
            found += failover.findings(self.flow, CLUSTERS["west"], every)
        return found

    def lagging(self) -> list[Finding]:
        """A partition in every state."""
        states: tuple[LagState, ...] = (
            "STALLED", "STOPPED", "LAGGING", "REWOUND", "RESET", "UNKNOWN", "OK",
        )  # fmt: skip
        rows = [replace(self.rows[0], state=state) for state in states]
        return [*lag_findings.findings(self.flow, rows, GROUP, CLUSTERS["east"])]

    def allowed(self) -> list[Finding]:
        """A permission that is missing."""
        rows = permissions.rows_of(self.flow, "west")
        asked = permissions.questions(self.flow, rows, ["t"], [])
        answers = {
            resource: Access(True, dict.fromkeys(some, False)) for resource, some in asked.items()
        }
        return [*permissions.findings(self.flow, CLUSTERS["west"], rows, answers, ["t"], [])]
