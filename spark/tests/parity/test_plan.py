"""What a run reads: decided from offsets, ids, baseline and budget, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_report.config import Budget, Flow
from mirror_report.model import Baseline, ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import FlowSnapshot, Range
from mirror_report.parity.plan import topics as plan
from mirror_report.parity.plan.boundaries import within_budget
from mirror_report.parity.plan.ranges import chunks, join
from mirror_report.parity.plan.snapshots import of_present_topics
from mirror_report.parity.state import Boundary, Manifest, SideState, basis
from mirror_report.state.baselines import of_flow

FLOW = Flow(name="f", source="a", target="b", include="t|u", topics=("t", "u"))
MINUTE = 60_000


def topic(name: str = "t", ident: str = "id", logs: Any = ((0, 10),), **configs: str) -> Any:
    partitions = {p: PartitionSnapshot(*log) for p, log in enumerate(logs)}
    return TopicSnapshot(name, ident, partitions, configs, None)


def cluster(*topics: TopicSnapshot, errors: dict[str, str] | None = None) -> ClusterSnapshot:
    return ClusterSnapshot(
        "a", "id", 1_000, {snapshot.name: snapshot for snapshot in topics}, errors or {}
    )


def manifest(**sides: SideState) -> Manifest:
    known: dict[Any, SideState] = {("f", side, "t"): state for side, state in sides.items()}
    return Manifest(MINUTE, sides=known)


def planned(
    source_topic: TopicSnapshot,
    target_topic: TopicSnapshot | None = None,
    known: Manifest | None = None,
    baseline: Mapping[str, Any] | None = None,
) -> plan.FlowPlan:
    return of_clusters(
        cluster(source_topic), cluster(*([target_topic] if target_topic else [])), known, baseline
    )


def of_clusters(
    source: ClusterSnapshot,
    target: ClusterSnapshot,
    known: Manifest | None = None,
    baseline: Mapping[str, Any] | None = None,
    flow: Flow = FLOW,
) -> plan.FlowPlan:
    recorded = {} if baseline is None else {"f": of_flow(baseline)}
    seen = FlowSnapshot(flow, {}, source, target)
    return plan.plan_flow(seen, known or manifest(), recorded)


def spans(found: plan.FlowPlan) -> list[tuple[str, int, int, int]]:
    return [(wanted.side, wanted.partition, wanted.start, wanted.end) for wanted in found.ranges]


def test_everything_is_read_the_first_time() -> None:
    found = planned(topic(logs=((0, 10), (5, 7), (3, 3))), topic(ident="other", logs=((0, 4),)))
    assert spans(found) == [("source", 0, 0, 10), ("source", 1, 5, 7), ("target", 0, 0, 4)]
    assert (found.gaps, found.reopened) == ((), ())


def test_reading_goes_on_where_it_stopped() -> None:
    known = manifest(source=SideState("id", {0: 0}, {0: 8}))
    assert spans(planned(topic(), known=known)) == [("source", 0, 8, 10)]
    grown = planned(topic(logs=((0, 8), (0, 3))), known=known)
    assert spans(grown) == [("source", 1, 0, 3)], "a new partition is read from its start"


def test_a_mirror_copies_up_to_the_high_watermark() -> None:
    log = PartitionSnapshot(0, 5, 9)
    snapshot = TopicSnapshot("t", "id", {0: log}, {}, None)
    assert spans(planned(snapshot)) == [("source", 0, 0, 9)]


def test_a_side_that_is_read_committed_ends_where_transactions_are_decided() -> None:
    snapshot = TopicSnapshot("t", "id", {0: PartitionSnapshot(0, 5, 9)}, {}, None)
    committed = replace(FLOW, source_isolation="read_committed")
    known = manifest()
    for flow, spans_of_both in (
        (committed, [("source", 0, 0, 5), ("target", 0, 0, 9)]),
        (FLOW, [("source", 0, 0, 9), ("target", 0, 0, 9)]),
    ):
        found = of_clusters(cluster(snapshot), cluster(snapshot), known, flow=flow)
        assert spans(found) == spans_of_both
    assert basis(committed, Baseline()) != basis(FLOW, Baseline()), "other records are for real"


BASELINE = {
    "recorded_at_ms": 1,
    "topics": {
        "t": {
            "source": {"0": 4},
            "target": {"0": 6},
            "required": {"0": 5},
            "untouched": {"0": 8},
            "sought": {"0": 1},
            "recorded_at_ms": 1,
            "source_id": "id",
            "target_id": "there",
        }
    },
}


def test_reading_begins_at_the_baseline() -> None:
    found = planned(topic(), topic(ident="there"), baseline=BASELINE)
    assert spans(found) == [("source", 0, 4, 10), ("target", 0, 6, 10)]
    source, target = (found.begin["f", side, "t"] for side in ("source", "target"))
    assert (source.required, source.untouched, source.sought) == ({0: 5}, {0: 8}, {})
    assert (target.required, target.untouched, target.sought) == ({}, {}, {0: 1})


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_is_left_open_by_a_baseline_ends_with_the_logs_it_is_of(side: str) -> None:
    """Records of a recreated topic count all, whatever their offsets."""
    known = manifest()
    idents = {"source": "id", "target": "there"}
    for made in (idents, {**idents, side: "another"}):
        found = planned(topic(ident=made["source"]), topic(ident=made["target"]), known, BASELINE)
        known = replace(known, sides=found.begin)
    assert [reopened.kind for reopened in found.reopened] == ["topic_reset"]
    for state in known.sides.values():
        assert (state.required, state.untouched, state.sought) == ({}, {}, {})


def test_a_source_that_got_shorter_has_no_records_from_before_the_baseline() -> None:
    known = manifest()
    for end in (10, 6):
        found = planned(topic(logs=((0, end),)), topic(ident="there"), known, BASELINE)
        read = {
            key: replace(state, next=dict.fromkeys(state.next, end))
            for key, state in found.begin.items()
        }
        known = replace(known, sides=read)
    assert [reopened.kind for reopened in found.reopened] == ["rewind"]
    assert known.sides["f", "source", "t"].required == {}
    assert known.sides["f", "target", "t"].sought == {0: 1}


def test_a_source_that_lost_its_beginning_before_the_first_run_is_remembered() -> None:
    def older(
        known: Manifest, start: int, baseline: Mapping[str, Any] | None = None
    ) -> tuple[Mapping[int, int], Manifest]:
        found = planned(topic(logs=((start, 10),)), topic(), known, baseline)
        return found.begin["f", "target", "t"].older, replace(known, sides=found.begin)

    assert older(manifest(), 4)[0] == {0: 10}
    first, known = older(manifest(), 0)
    assert first == {}
    assert older(known, 4)[0] == {}, "it was whole in the first run"
    entry = {"source": {"0": 4}, "required": {"0": 4}, "target": {"0": 0}, "older": {"0": 7}}
    full = {"recorded_at_ms": 1, "topics": {"t": entry}}
    assert older(manifest(), 4, full)[0] == {0: 7}


def test_a_topic_that_appeared_after_the_baseline_counts_from_its_first_record() -> None:
    found = planned(topic("u", logs=((2, 5),)), baseline=BASELINE)
    assert spans(found) == [("source", 0, 2, 5)]
    assert [(gap.start, gap.end) for gap in found.gaps] == [(0, 2)]


@pytest.mark.parametrize(("start", "gap"), [(8, []), (9, [(8, 9)]), (10, [(8, 10)])])
def test_what_expired_unread_is_a_gap(start: int, gap: list[tuple[int, int]]) -> None:
    known = manifest(source=SideState("id", {0: 0}, {0: 8}))
    found = planned(topic(logs=((start, 10),)), known=known)
    assert [(unread.start, unread.end) for unread in found.gaps] == gap
    assert all(unread.until_ms == 1_000 for unread in found.gaps)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_topic_created_again_is_read_again(side: str) -> None:
    known = manifest(
        source=SideState("id", {0: 0}, {0: 8}), target=SideState("there", {0: 0}, {0: 8})
    )
    ids = {"source": "id", "target": "there"} | {side: "new"}
    found = planned(topic(ident=ids["source"]), topic(ident=ids["target"]), known=known)
    assert [(reopened.kind, reopened.side) for reopened in found.reopened] == [
        ("topic_reset", side)
    ]
    assert [(drop.side, drop.origin) for drop in found.drops] == [(side, "t")]
    assert (side, 0, 0, 10) in spans(found)
    # What a new source topic no longer has may well be on the target.
    assert len(found.gaps) == (side == "source")


def test_a_topic_created_again_since_the_baseline_is_noticed() -> None:
    found = planned(topic(ident="new"), topic(ident="there"), baseline=BASELINE)
    assert [reopened.kind for reopened in found.reopened] == ["topic_reset"]
    assert ("source", 0, 0, 10) in spans(found), "the baseline of the old topic means nothing"


def test_a_log_that_got_shorter_is_read_again() -> None:
    known = manifest(source=SideState("id", {0: 0, 1: 0}, {0: 12, 1: 3}))
    found = planned(topic(logs=((0, 10), (0, 3))), known=known)
    assert [(reopened.kind, reopened.partition) for reopened in found.reopened] == [("rewind", 0)]
    assert spans(found) == [("source", 0, 0, 10), ("source", 1, 0, 3)]


def grown_again(*logs: tuple[int, tuple[tuple[int, int], ...]], ident: str = "id") -> Any:
    """A topic: end and leader epochs of each partition."""
    partitions = {
        p: PartitionSnapshot(0, end, epochs=epochs) for p, (end, epochs) in enumerate(logs)
    }
    return TopicSnapshot("t", ident, partitions, {}, None)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_log_that_lost_its_tail_and_grew_past_it_is_read_again(side: str) -> None:
    state = SideState("id", {0: 0, 1: 0}, {0: 12, 1: 3}, leader_epochs={0: ((2, 0),), 1: ((2, 0),)})
    now = grown_again((20, ((2, 0), (5, 9))), (3, ((2, 0), (5, 3))))
    other = topic(ident="other", logs=((0, 0), (0, 0)))
    found = planned(
        *((now, other) if side == "source" else (other, now)), manifest(**{side: state})
    )
    assert [(each.kind, each.side, each.partition, each.detail, each.regrown)
            for each in found.reopened] == [("rewind", side, 0, "12 → 9", True)]  # fmt: skip
    assert [span for span in spans(found) if span[0] == side] == [(side, 0, 0, 20), (side, 1, 0, 3)]
    assert found.begin["f", side, "t"].leader_epochs[0] == ((2, 0), (5, 9))  # type: ignore[index]
    assert len(found.gaps) == (side == "source"), "copies of what it lost may be on the target"


def test_another_leader_alone_changes_nothing() -> None:
    state = SideState("id", {0: 0}, {0: 12}, leader_epochs={0: ((2, 0),)})
    found = planned(grown_again((20, ((2, 0), (5, 12)))), known=manifest(source=state))
    assert (found.reopened, found.drops, spans(found)) == ((), (), [("source", 0, 12, 20)])


@pytest.mark.parametrize("first_run", [True, False])
def test_of_a_baseline_that_the_log_was_cut_below_the_rest_holds(first_run: bool) -> None:
    """Below the cut a record may have been copied before the baseline, as before."""
    epochs = {"source": {"0": [[2, 0]]}, "target": {"0": [[0, 0]]}}
    entry = BASELINE["topics"]["t"] | {"leader_epochs": epochs, "required": {"0": 7}}  # type: ignore[index]
    baseline = {**BASELINE, "topics": {"t": entry}}
    known = manifest()
    if not first_run:
        whole = planned(grown_again((10, ((2, 0),))), topic(ident="there"), known, baseline)
        read = {key: replace(state, next={0: 10}) for key, state in whole.begin.items()}
        known = replace(known, sides=read)
    cut = grown_again((30, ((2, 0), (4, 3))))
    found = planned(cut, topic(ident="there"), known, baseline)
    assert [each.kind for each in found.reopened] == ["rewind"]
    assert ("source", 0, 3, 30) in spans(found)
    source = found.begin["f", "source", "t"]
    assert (source.required, source.untouched) == ({0: 3}, {0: 3})


def test_a_deleted_target_is_noticed() -> None:
    known = manifest(target=SideState("there", {0: 0}, {0: 8}))
    found = planned(topic(), known=known)
    assert [(reopened.kind, reopened.side, reopened.detail) for reopened in found.reopened] == [
        ("topic_reset", "target", "deleted")
    ]


def test_a_source_topic_that_is_gone_is_left_behind() -> None:
    known = manifest(source=SideState("id", {0: 0}, {0: 8}))
    found = of_clusters(cluster(), cluster(topic()), known)
    assert found.topics == ()
    assert [(departed.topic, departed.origins) for departed in found.departed] == [("t", ("t",))]
    assert [(drop.side, drop.origin) for drop in found.drops] == [("source", "t"), ("target", "t")]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_compacted_topic_is_not_read_by_bucket(side: str) -> None:
    compacted = topic(**{"cleanup.policy": "compact"})
    plain = topic(**{"cleanup.policy": "delete"})
    found = planned(*((compacted, plain) if side == "source" else (plain, compacted)))
    assert (found.ranges, found.topics[0].compared) == ((), False)
    assert (found.topics[0].strategy, found.topics[0].skip) == ("latest_by_key", None)


def test_a_topic_that_cannot_be_read_is_unknown() -> None:
    found = of_clusters(cluster(errors={"t": "forbidden"}), cluster())
    assert [(entry.topic, entry.unknown) for entry in found.topics] == [("t", "source: forbidden")]
    found = of_clusters(cluster(topic()), cluster(errors={"t": "forbidden"}))
    assert [(entry.topic, entry.unknown) for entry in found.topics] == [("t", "target: forbidden")]
    assert found.ranges == ()


def test_a_position_past_the_end_is_of_an_earlier_topic() -> None:
    taken = {"t": {0: 10, 1: 4, 2: 7}, "gone": {0: 5}}
    after = cluster(topic(logs=((0, 10), (0, 3))))
    assert of_present_topics(taken, after) == {"t": {0: 10, 2: 7}, "gone": {0: 5}}


ranges = st.lists(
    st.tuples(st.sampled_from(["source", "target"]), st.integers(0, 50), st.integers(1, 1000)),
    min_size=1,
    max_size=8,
).map(
    lambda some: [
        Range("f", side, "t", "t", number, start, start + length, 10.0)  # type: ignore[arg-type]
        for number, (side, start, length) in enumerate(some)
    ]
)


def offsets(some: list[Range]) -> list[tuple[str, int, int]]:
    return [(r.side, r.partition, at) for r in some for at in range(r.start, r.end)]


@given(ranges, st.integers(1, 20_000))
def test_a_budget_cuts_the_newest_and_loses_nothing(some: list[Range], budget: int) -> None:
    now, later = within_budget(some, Budget(max_bytes=budget))
    assert sorted(offsets([*now, *later])) == sorted(offsets(some))
    assert now, "each topic gets on"
    cut = {wanted.partition: wanted.end for wanted in now}
    begun = {wanted.partition: wanted.start for wanted in some} | cut
    assert all(begun[wanted.partition] == wanted.start for wanted in later), "oldest first"
    assert sum(wanted.bytes for wanted in now) <= budget + 10 * len(some)
    assert within_budget(some, Budget(max_bytes=None)) == (some, [])


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4),
       st.integers(1, 200))  # fmt: skip
def test_a_budget_reads_no_source_that_cannot_be_judged(
    steps: list[tuple[int, int]], budget: int
) -> None:
    bounds, at = [], (0, 0)
    for step in steps:
        at = (at[0] + step[0], at[1] + step[1])
        bounds.append(Boundary({"t": {0: at[0]}}, {0: at[1]}))
    some = [Range("f", side, "t", "t", 0, 0, end) for side, end in
            (("source", at[0] + 9), ("target", at[1] + 9))]  # fmt: skip
    now, later = within_budget(
        some, Budget(max_bytes=None, max_records=budget), {("f", "t"): bounds}
    )
    assert sorted(offsets([*now, *later])) == sorted(offsets(some))
    ends = {"source": 0, "target": 0} | {wanted.side: wanted.end for wanted in now}
    assert sum(ends.values()) > 0, "it gets on"
    if not later:
        return
    assert sum(ends.values()) <= max(1, budget)
    below = [bound for bound in bounds if bound.source["t"][0] < ends["source"]]
    needed = [bound.target[0] for bound in below]
    assert ends["target"] >= max(needed, default=0)


@given(ranges, st.integers(10, 20_000))
def test_pieces_are_bounded_and_complete(some: list[Range], size: int) -> None:
    pieces = chunks(some, size)
    assert sorted(offsets([wanted for piece in pieces for wanted in piece])) == sorted(
        offsets(some)
    )
    for piece in pieces:
        assert sum(wanted.bytes for wanted in piece) <= size + 10 * len(some)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8)), max_size=12))
def test_ranges_are_joined_into_reads(some: list[tuple[int, int, int]]) -> None:
    given_ranges = [Range("f", "source", "t", "t", p, at, at + n) for p, at, n in some]
    groups = join(given_ranges)
    read = offsets([wanted for group in groups for wanted in group])
    assert len(read) == len(set(read)), "nothing is read twice"
    assert set(read) == set(offsets(given_ranges))
    for group in groups:
        assert len({wanted.partition for wanted in group}) == len(group)
