"""Which flow judges a co-fed topic, and what had to leave the target: without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import FlowSnapshot, Range, RunPlan, co_fed_topics, positions
from mirror_report.parity.plan import topics as plan
from mirror_report.parity.plan.ranges import join
from mirror_report.parity.plan.run_plan import misplaced
from mirror_report.parity.results import retention
from mirror_report.parity.state import (
    NEVER,
    Gap,
    Gone,
    Manifest,
    Removal,
    Side,
    SideState,
    co_fed,
    fed_by,
)
from mirror_report.state.baselines import of_flow

HOUR = 3_600_000
NOW = 100 * HOUR
EAST = Flow(name="east", source="a", target="z", include=".*", group_id="g", engine=MM2)
WEST = Flow(name="west", source="b", target="z", include=".*", group_id="g")


def topic(
    name: str, ident: str, start: int = 0, end: int = 10, size: int | None = None, **configs: str
) -> TopicSnapshot:
    plain = {key.replace("_", "."): value for key, value in configs.items()}
    return TopicSnapshot(name, ident, {0: PartitionSnapshot(start, end, bytes=size)}, plain, None)


def cluster(alias: str, *topics: TopicSnapshot, errors: Any = None) -> ClusterSnapshot:
    return ClusterSnapshot(
        alias, alias, NOW, {snapshot.name: snapshot for snapshot in topics}, errors or {}
    )


def manifest(**known: Any) -> Manifest:
    return Manifest(60_000, **known)


def seen(flow: Flow, *names: str, errors: Any = None) -> FlowSnapshot:
    topics = [topic(name, f"{flow.source}-{name}") for name in names]
    return FlowSnapshot(flow, {}, cluster(flow.source, *topics, errors=errors), cluster("z"))


KEPT = {"retention_ms": str(10 * HOUR), "retention_bytes": "-1"}


def target_after(
    start: int, known: SideState | None, size: int | None = 5000, **configs: str
) -> plan.FlowPlan:
    found = manifest(sides={} if known is None else {("east", "target", "t"): known})
    there = cluster("z", topic("t", "z-t", start, 50, size, **configs))
    return plan.plan_flow(
        FlowSnapshot(EAST, {}, cluster("a", topic("t", "a-t", 0, 50)), there), found, {}
    )


def remembered(**changes: Any) -> SideState:
    known = SideState("z-t", {0: 0}, {0: 30}, {0: 0}, 10 * HOUR, NOW - 11 * HOUR)
    return replace(known, **changes)


def test_what_went_is_what_was_read_and_is_no_longer_there() -> None:
    assert target_after(0, remembered(), **KEPT).removals == ()
    assert target_after(20, None, **KEPT).removals == (), "nothing was read yet"
    (removal,) = target_after(20, remembered(), **KEPT).removals
    assert removal == Removal("east", "t", 0, 0, 20, NOW - 10 * HOUR, 10 * HOUR)
    (removal,) = target_after(40, remembered(), **KEPT).removals
    assert removal.end == 30, "what was not read is a gap"
    (removal,) = target_after(20, remembered(log_start={0: 15}), **KEPT).removals
    assert (removal.start, removal.end) == (15, 20), "each goes once"


@pytest.mark.parametrize(
    ("known", "configs", "kept_from"),
    [
        ({}, KEPT, NOW - 10 * HOUR),
        # Either retention may have been in force between two runs.
        ({"retention_ms": HOUR}, KEPT, NOW - HOUR),
        ({}, {**KEPT, "retention_ms": str(HOUR)}, NOW - HOUR),
        # What once had to go may have gone then.
        ({"kept_from_ms": NOW - HOUR}, KEPT, NOW - HOUR),
        ({"retention_ms": -1, "kept_from_ms": NEVER}, {**KEPT, "retention_ms": "-1"}, NEVER),
        ({"retention_ms": None}, KEPT, NOW),
        ({}, {}, NOW),
    ],
)
def test_what_had_to_go_follows_from_the_shortest_retention_so_far(
    known: dict[str, Any], configs: dict[str, str], kept_from: int
) -> None:
    found = target_after(20, remembered(**known), **configs)
    assert found.begin["east", "target", "t"].kept_from_ms == kept_from
    assert [removal.kept_from_ms for removal in found.removals] == [kept_from]


@pytest.mark.parametrize(
    ("known", "size", "configs", "kept_from", "certain"),
    [
        ({}, 5000, {"retention_bytes": "1000"}, NOW, True),
        ({}, 1000, {"retention_bytes": "1000"}, NOW, True),
        # Removal by size leaves at least as much as is allowed.
        ({}, 999, {"retention_bytes": "1000"}, NOW - 10 * HOUR, True),
        # Either setting may have been in force between two runs.
        ({"retention_bytes": 1000}, 5000, {}, NOW, True),
        ({"retention_bytes": 10_000}, 5000, {"retention_bytes": "1000"}, NOW, True),
        ({"retention_bytes": 1000}, 999, {"retention_bytes": "10000"}, NOW - 10 * HOUR, True),
        # What once had to go may have gone then, in that partition.
        ({"sized": {0: NOW - HOUR}}, 5000, {}, NOW - HOUR, True),
        ({"sized": {1: NOW - HOUR}}, 5000, {}, NOW - 10 * HOUR, True),
        # Nobody can say how large it was.
        ({}, None, {"retention_bytes": "1000"}, NOW - 10 * HOUR, False),
        ({}, 10, {"retention_bytes": "1000", "remote_storage_enable": "true"}, NOW - 10 * HOUR,
         False),
        ({"doubted": {0: NOW - HOUR}}, 999, {"retention_bytes": "1000"}, NOW - 10 * HOUR, True),
    ],
)  # fmt: skip
def test_what_had_to_go_by_size_follows_from_what_is_left_of_the_leaders_log(
    known: dict[str, Any], size: int | None, configs: dict[str, str], kept_from: int, certain: bool
) -> None:
    (removal,) = target_after(20, remembered(**known), size, **(KEPT | configs)).removals
    assert (removal.kept_from_ms, removal.certain) == (kept_from, certain)


def test_what_nobody_can_say_of_one_partition_holds_for_all_that_are_compared_with_it() -> None:
    state = remembered(sized={0: NOW - 5 * HOUR}, doubted={1: NOW - 2 * HOUR, 2: NOW - 6 * HOUR})
    assert state.allowed_until([0]) == NOW - 5 * HOUR
    assert state.allowed_until([0, 2]) is None
    assert state.allowed_until([1]) is None
    assert replace(state, kept_from_ms=NOW - HOUR).allowed_until([0, 1, 2]) == NOW - HOUR


def test_what_left_unread_is_counted_once_by_partition_and_in_all() -> None:
    def gap(partition: int, start: int, end: int, side: Side = "target") -> Gap:
        return Gap("east", side, "t", "t", partition, start, end, NOW)

    gaps = (gap(0, 0, 5), gap(0, 3, 8), gap(1, 2, 4), gap(0, 0, 99, side="source"))
    run = RunPlan({}, (plan.TopicPlan("east", "t", ("t",)), plan.TopicPlan("east", "u", ("u",))))
    rows = {row["topic"]: row for row in positions.topic_rows(manifest(gaps=gaps), run)}
    assert json.loads(rows["t"]["target_left"]) == {"0": 8, "1": 2, "-1": 10}
    assert rows["u"]["target_left"] is None


def test_doubt_is_said_until_the_records_would_have_left_by_their_age() -> None:
    left = [
        Gone("east", "t", 0, 3, 60, NOW + 1, certain=False),
        Gone("east", "t", 0, 3, 60, None),
        Gone("west", "t", 0, 0, 60, None, certain=False),
    ]
    (found,) = retention.doubted(left, [EAST], NOW)
    assert (found.kind, found.severity, found.count) == ("unverifiable", "warning", 60)
    assert "DESCRIBE on the cluster z" in found.action
    assert retention.doubted(left, [EAST], NOW + 2) == []


def test_a_topic_of_several_flows_is_judged_by_one_of_them() -> None:
    snapshots = {"east": seen(EAST, "t", "e"), "west": seen(WEST, "t", "w")}
    found = co_fed_topics.co_fed_topics((EAST, WEST), snapshots, manifest())
    assert {topic: [name for _, name in some] for topic, some in found["west"].here.items()} == {
        "t": ["t"]
    }, "MirrorMaker 1 goes first: it keeps no partitions"
    assert (found["west"].elsewhere, found["east"].elsewhere) == ([], ["t"])
    assert not found["east"].here
    prefixed = replace(EAST, replication_policy="prefix")
    snapshots = {"east": seen(prefixed, "t"), "west": seen(WEST, "t")}
    found = co_fed_topics.co_fed_topics((prefixed, WEST), snapshots, manifest())
    assert not any(
        cofed_topics.here or cofed_topics.elsewhere for cofed_topics in found.values()
    ), "other names"


def test_a_flow_that_cannot_be_observed_leaves_in_doubt_what_it_may_feed() -> None:
    east = seen(EAST, "t", "e")
    found = co_fed_topics.co_fed_topics((EAST, WEST), {"east": east}, manifest())
    assert found["east"].doubtful.keys() == {"t", "e"}, "nothing is known of west"
    known = manifest(
        baselines={"west": []},
        sides={("west", "source", co_fed("east", "e")): SideState("", {}, {}),
               ("west", "source", "t"): SideState("", {}, {})},
    )  # fmt: skip
    found = co_fed_topics.co_fed_topics((EAST, WEST), {"east": east}, known)
    assert found["east"].doubtful.keys() == {"t"}, "west has never fed the other"
    assert "west feeds it too" in found["east"].doubtful["t"]
    failing = seen(WEST, errors={"t": "READ is not allowed"})
    both = {"east": east, "west": failing}
    found = co_fed_topics.co_fed_topics((EAST, WEST), both, manifest())
    assert found["east"].doubtful.keys() == {"t"}


def test_a_topic_whose_judge_changes_is_left_by_the_former_one() -> None:
    snapshots = {"east": seen(EAST, "t"), "west": seen(WEST, "t")}
    topics = [plan.TopicPlan("west", "t", ("t", co_fed("east", "t")))]
    known = manifest(sides={("east", "target", "t"): SideState("", {}, {})})
    assert misplaced(snapshots, topics, known) == [("east", "t")]
    known = manifest(sides={("west", "target", "t"): SideState("", {}, {})})
    assert misplaced(snapshots, topics, known) == []


def test_co_fed_topics_are_read_where_they_are() -> None:
    assert fed_by("west", co_fed("east", "t")) == ("east", "t")
    assert fed_by("west", "t") == ("west", "t")
    mixed = [
        Range("west", "source", "t", "t", 0, 0, 5),
        Range("west", "source", co_fed("east", "t"), "t", 0, 0, 5),
    ]
    assert [len(group) for group in join(mixed)] == [1, 1], "one read asks one cluster"


def test_expected_is_what_all_flows_bring_from_the_one_end_of_the_target() -> None:
    there = cluster("z", topic("t", "z-t", 0, 50))
    first = {"east": 4, "west": 3}
    recorded = {
        flow: of_flow({"recorded_at_ms": 7, "topics": {
            "t": {"source": {"0": start}, "target": {"0": 20}, "recorded_at_ms": 7}}})
        for flow, start in first.items()
    }  # fmt: skip
    east = FlowSnapshot(EAST, {}, cluster("a", topic("t", "a-t", 0, 40)), there)
    west = FlowSnapshot(WEST, {}, cluster("b", topic("t", "b-t", 0, 40)), there)
    found = plan.plan_flow(west, manifest(), recorded, co_fed_topics.CoFed({"t": [(east, "t")]}))
    assert {(wanted.origin, wanted.start, wanted.end) for wanted in found.ranges} == {
        ("t", 3, 40), ("east/t", 4, 40), ("t", 20, 50),
    }  # fmt: skip
    (judged,) = found.topics
    assert judged.origins == ("t", "east/t")


def test_time_to_the_breach_is_that_of_the_shorter_retention() -> None:
    here = topic("t", "i", retention_ms=str(5 * HOUR))
    there = topic("t", "i", retention_ms=str(3 * HOUR))
    assert retention.breach_seconds(NOW - HOUR, [here], there, NOW) == 2 * 3600
    assert retention.breach_seconds(NOW - 6 * HOUR, [here], None, NOW) == -3600, "it has begun"
    assert retention.breach_seconds(None, [here], there, NOW) is None
    assert retention.breach_seconds(NOW, [topic("t", "i", retention_ms="-1")], None, NOW) is None
    assert retention.breach_seconds(NOW, [topic("t", "i")], None, NOW) is None, "not known"


def test_what_waits_unread_and_is_mirrored_is_due() -> None:
    waiting = [
        Range("east", "source", "t", "t", 0, 5, 20),
        Range("east", "target", "t", "t", 0, 0, 9),
    ]
    assert retention.unread_below(waiting, {"east": {"t": {0: 12}}}) == 7
    assert retention.unread_below(waiting, {}) == 0
