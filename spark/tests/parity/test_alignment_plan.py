"""What a run reads of topics that are cut by offset syncs, and what their cuts leave out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import (
    ClusterSnapshot,
    OffsetSync,
    PartitionSnapshot,
    Positions,
    ReportError,
    TopicSnapshot,
)
from mirror_report.parity.plan import (
    FlowPlan,
    FlowSnapshot,
    Range,
    SyncsRead,
    buckets,
    offset_syncs,
)
from mirror_report.parity.plan.buckets import Outside
from mirror_report.parity.plan.topics import plan_flow
from mirror_report.parity.state import Manifest, SideState, Summary
from mirror_report.parity.steps import observe
from mirror_report.state.baselines import of_flow

MINUTE = 60_000
NOW = 100 * MINUTE
FLOW = Flow(
    name="f", source="a", target="b", include="t", engine=MM2, group_id="g",
    offset_syncs_topic="syncs",
)  # fmt: skip
BASELINE = {"recorded_at_ms": 1, "topics": {}}


def topic(end: int, ident: str = "id", log_start: int = 0, **configs: str) -> TopicSnapshot:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    return TopicSnapshot("t", ident, {0: PartitionSnapshot(log_start, end, end)}, settings, None)


def cluster(*topics: TopicSnapshot) -> ClusterSnapshot:
    return ClusterSnapshot("x", "id", NOW, {snapshot.name: snapshot for snapshot in topics})


@dataclass
class Taken:
    """What the clusters say when they are asked again."""

    syncs_now: list[tuple[int, int, int]] = field(default_factory=list)
    source_now: ClusterSnapshot | None = None
    failure: str = ""

    def syncs(self, _flow: Flow, memory: Any) -> tuple[Any, Any]:
        """Give the syncs at (upstream, downstream, minute)."""
        if self.failure:
            raise ReportError(self.failure)
        found = [OffsetSync(u, d, m * MINUTE) for u, d, m in self.syncs_now]
        self.syncs_now = []
        return {("t", 0): found}, {"looks": memory.get("looks", 0) + 1}

    def source(self, _flow: Flow) -> ClusterSnapshot:
        """Give the source as it is then."""
        assert self.source_now is not None, "nobody asks twice without a reason"
        return self.source_now


class Run:
    """As much of a run as alignment needs."""

    def __init__(self, **baseline: Any) -> None:
        self.manifest = Manifest(MINUTE)
        self.baseline = of_flow(BASELINE | baseline)
        self.take = Taken()

    def plan(
        self, source: TopicSnapshot, target: TopicSnapshot, position: int | None = None
    ) -> FlowPlan:
        """Plan, and keep that everything planned was read."""
        positions: Positions = {} if position is None else {"t": {0: position}}
        seen = FlowSnapshot(FLOW, positions, cluster(source), cluster(target))
        context: Any = self
        syncs = observe.read_syncs(context, self.manifest, {"f": seen})
        read = syncs.get("f", SyncsRead())
        aligned = offset_syncs.align(self.manifest, seen, self.baseline, read, MINUTE)
        self.manifest = replace(self.manifest, alignments={"f": aligned.topics})
        plan = plan_flow(seen, self.manifest, {"f": self.baseline})
        plan = buckets.limit(plan, aligned, seen)
        ends = {(wanted.key, wanted.partition): wanted.end for wanted in plan.ranges}
        states = {
            key: replace(
                SideState(side.topic_id, side.first, side.next),
                next={p: ends.get((key, p), offset) for p, offset in side.next.items()},
            )
            for key, side in plan.begin.items()
        }
        known = replace(self.manifest, sides={**self.manifest.sides, **states})
        plain = json.loads(json.dumps(known.dump()))
        self.manifest = Manifest.load(plain, MINUTE, Path("state"))
        return plan

    def outside(self, plan: FlowPlan, source: TopicSnapshot) -> Outside:
        """What the cuts leave out."""
        return buckets.outside(self.manifest, plan.topics[0], self.baseline, cluster(source))


def read(plan: FlowPlan) -> dict[str, tuple[int, int]]:
    """Offsets a plan reads, by side."""
    return {wanted.side: (wanted.start, wanted.end) for wanted in plan.ranges}


def appended(end: int, ident: str = "there") -> TopicSnapshot:
    return topic(end, ident, message_timestamp_type="LogAppendTime")


def test_only_closed_buckets_are_read_and_each_once() -> None:
    run = Run()
    run.take.syncs_now = [(0, 0, 1), (40, 41, 2), (80, 81, 3), (120, 121, 4)]
    plan = run.plan(topic(100), appended(101), 90)
    assert plan.topics[0].strategy == "offset_syncs"
    assert read(plan) == {"source": (0, 80), "target": (0, 81)}, (
        "the last sync is beyond the snapshot"
    )
    assert run.outside(plan, topic(100)) == Outside(open=20)
    plan = run.plan(topic(150), appended(151), 130)
    assert read(plan) == {"source": (80, 120), "target": (81, 121)}, "and waits for the next"
    assert run.plan(topic(150), appended(151), 130).ranges == ()


def test_a_drained_mirror_closes_the_last_bucket() -> None:
    run = Run()
    run.take.syncs_now = [(0, 0, 1), (40, 40, 2)]
    run.take.source_now = cluster(topic(101))
    assert read(run.plan(topic(100), appended(100), 100))["source"] == (0, 40)
    run.take.source_now = cluster(topic(100))
    plan = run.plan(topic(100), appended(100), 100)
    assert read(plan) == {"source": (40, 100), "target": (40, 100)}
    assert run.outside(plan, topic(100)) == Outside()
    run.take.source_now = None
    assert run.plan(topic(100), appended(100), 100).ranges == ()


def test_without_a_common_beginning_the_first_sync_is_one() -> None:
    recorded: dict[str, Any] = {
        "source": {"0": 30}, "required": {"0": 35}, "target": {"0": 25}, "source_id": None,
        "target_id": None, "recorded_at_ms": 1,
    }  # fmt: skip
    adopted = Run(topics={"t": recorded})
    adopted.take.syncs_now = [(40, 35, 1), (80, 75, 2)]
    plan = adopted.plan(topic(100), appended(100), 90)
    assert read(plan) == {"source": (40, 80), "target": (35, 75)}
    assert adopted.outside(plan, topic(100)) == Outside(straddling=10, open=20)
    begun = Run(topics={"t": recorded | {"required": recorded["source"]}})
    begun.take.syncs_now = [(40, 35, 1), (80, 75, 2)]
    assert read(begun.plan(topic(100), appended(100), 90)) == {
        "source": (30, 80), "target": (25, 75),
    }  # fmt: skip
    nothing = Run()
    nothing.baseline = of_flow({})
    nothing.take.syncs_now = [(40, 35, 1), (80, 75, 2)]
    expired = topic(100, log_start=5)
    plan = nothing.plan(expired, appended(100), 90)
    assert read(plan) == {"source": (40, 80), "target": (35, 75)}
    assert nothing.outside(plan, expired) == Outside(unaligned=35, open=20)


def test_a_recreated_topic_begins_with_the_first_sync_of_the_new_one() -> None:
    run = Run()
    run.take.syncs_now = [(0, 0, 1), (80, 80, 2)]
    run.plan(topic(100), appended(100), 90)
    run.take.syncs_now = [(90, 90, 3), (120, 0, 4), (180, 60, 5)]
    plan = run.plan(topic(200), appended(70, "another"), 190)
    assert {(drop.side, drop.origin) for drop in plan.drops} == {("source", "t"), ("target", "t")}
    assert read(plan) == {"source": (120, 180), "target": (0, 60)}
    assert run.outside(plan, topic(200)) == Outside(unaligned=120, open=20)
    assert [reopened.kind for reopened in plan.reopened] == ["topic_reset"]
    run.take.syncs_now = [(240, 120, 6)]
    again = run.plan(topic(300), appended(170, "another"), 290)
    assert (read(again), again.drops) == ({"source": (180, 240), "target": (60, 120)}, ())


def test_another_strategy_means_other_buckets_and_reads_again() -> None:
    run = Run()
    plan = run.plan(topic(100), topic(100, "there"), 90)
    assert read(plan) == {"source": (0, 100), "target": (0, 100)}
    run.take.syncs_now = [(0, 0, 1), (80, 80, 2)]
    plan = run.plan(topic(100), appended(100), 90)
    assert read(plan) == {"source": (0, 80), "target": (0, 80)}
    assert len(plan.drops) == 2
    back = run.plan(topic(100), topic(100, "there"), 90)
    assert read(back) == {"source": (0, 100), "target": (0, 100)}
    assert (len(back.drops), run.manifest.alignments["f"]) == (2, {})


def test_a_topic_whose_records_carry_no_timestamps_is_aligned_from_the_next_run_on() -> None:
    run = Run()
    timed = topic(100, "there")
    assert run.plan(topic(100), timed, 90).topics[0].strategy == "timestamp"
    summaries = {"f": {"t": Summary("1", {"newest_due_ms": -1}, {})}}
    run.manifest = replace(run.manifest, summaries=summaries)
    run.take.syncs_now = [(0, 0, 1), (80, 80, 2)]
    plan = run.plan(topic(100), timed, 90)
    assert (plan.topics[0].strategy, read(plan)["source"]) == ("offset_syncs", (0, 80))
    assert run.plan(topic(100), timed, 90).topics[0].strategy == "offset_syncs", "and stays so"


def test_syncs_that_cannot_be_read_make_the_topic_unknown() -> None:
    run = Run()
    run.take.failure = "may not read syncs. Grant it READ on topic syncs"
    plan = run.plan(topic(100), appended(100), 90)
    assert "Grant it READ" in (plan.topics[0].unknown or "")
    assert plan.ranges == ()


def test_spans_say_of_every_log_where_it_is_cut() -> None:
    run = Run(
        topics={"t": {"source": {"0": 0}, "required": {"0": 0}, "target": {"0": 5},
                      "source_id": None, "target_id": None}}
    )  # fmt: skip
    run.take.syncs_now = [(0, 5, 1), (40, 45, 2), (80, 85, 3)]
    plan = run.plan(topic(100), appended(101), 90)
    spans = [
        (span["side"], span["span_start"], span["span_end"], span["label"])
        for span in buckets.spans(run.manifest, plan.topics)
    ]
    assert [span[:3] for span in spans] == [
        ("source", 0, 40), ("source", 40, 80), ("target", 5, 45), ("target", 45, 85),
    ]  # fmt: skip
    assert spans[1][3] == spans[3][3] == 2 * MINUTE, "both sides call a bucket by the same time"
    (source, target) = plan.ranges

    def spans_of(wanted: list[Range]) -> list[dict[str, Any]]:
        return buckets.spans(run.manifest, plan.topics, wanted)

    later = [Range("f", "source", "t", "t", 0, 90, 100)]
    assert [(span["span_start"], span["span_end"]) for span in spans_of(later)] == [(0, 0)], (
        "a log without spans is cut too"
    )
    assert len(spans_of([source])) == len(spans_of([target])) == 2
