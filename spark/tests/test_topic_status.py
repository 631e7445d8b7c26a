"""What is said of every topic: mirrored, left out and why, orphaned; and who disagrees."""

from dataclasses import replace
from typing import Any

import pytest

from mirror_report import engines
from mirror_report.checks import coverage, selection, topic_status, topics
from mirror_report.config import Flow
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    ConfigDifference,
    Finding,
    GroupMember,
    GroupSnapshot,
    PartitionSnapshot,
    TopicSnapshot,
)
from mirror_report.state.baselines import of_flow

NOW = 1_800_000_000_000
FLOW = Flow(
    "orders", "east", "west",
    r"(?!(?:orders-old|mm2.*\.internal|__.*|(.*\.)?west\..+)$)(?:orders.*|.*\.copied|mm2.*|__.*)",
    engines.MM2, topics=(r"orders.*", r".*\.copied", r"mm2.*", r"__.*"),
    topics_exclude=("orders-old",),
    group_id="east-mm2", replication_policy="prefix", instance="mirrormaker",
)  # fmt: skip
KEEPS_NAMES = replace(FLOW, replication_policy="identity")
MM1 = Flow("orders", "east", "west", "orders.*|__.*", topics=("orders.*", "__.*"), group_id="g")
GUARDED = replace(
    FLOW, topics=(".*",), left_out=("connect-.*", ".{245}.*"),
    include="(?!(?:connect-.*|.{245}.*)$)(?:.*)",
)  # fmt: skip
NOBODY = GroupSnapshot("east-mm2", "Stable", (GroupMember("c", "h", ()),))
OVERRIDDEN, FILE, DEFAULT = "DYNAMIC_TOPIC_CONFIG", "STATIC_BROKER_CONFIG", "DEFAULT_CONFIG"


def topic(
    name: str = "orders", partitions: int = 1, end: int = 5, **configs: tuple[str, str]
) -> TopicSnapshot:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return TopicSnapshot(
        name, "id", {p: PartitionSnapshot(0, end, end) for p in range(partitions)},
        {"index.interval.bytes": "4096", **{key: value[0] for key, value in named.items()}},
        10, None,
        {key: value[1] for key, value in named.items()},
    )  # fmt: skip


def cluster(
    *topics: TopicSnapshot, errors: dict[str, str] | None = None, at_ms: int = NOW
) -> ClusterSnapshot:
    return ClusterSnapshot(
        "c", "c", at_ms, {snapshot.name: snapshot for snapshot in topics}, errors or {}
    )


def statuses(flow: Flow = FLOW, **more: Any) -> dict[str, tuple[bool, str]]:
    given: dict[str, Any] = {
        "source": cluster(), "target": cluster(), "on_source": {}, "gone": (), "on_target": {},
    } | more  # fmt: skip
    return {row.topic: (row.selected, row.reason) for row in topic_status.statuses(flow, **given)}


def test_selected_topic_has_the_partitions_of_both_sides() -> None:
    (row,) = topic_status.statuses(
        FLOW, cluster(topic(partitions=3)), cluster(topic("east.orders", 4)), {"orders": 3}, (),
        {"east.orders": 4},
    )  # fmt: skip
    assert (row.selected, row.target_topic, row.reason) == (True, "east.orders", "")
    assert (row.source_partitions, row.target_partitions) == (3, 4)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (cluster(), "not on west"),
        (cluster(topic("east.orders")), "fewer partitions on west"),
        (cluster(errors={"east.orders": "hidden"}), "hidden"),
    ],
)
def test_selected_topic_says_what_is_wrong_with_it(target: ClusterSnapshot, reason: str) -> None:
    assert statuses(source=cluster(topic(partitions=2)), target=target) == {
        "orders": (True, reason)
    }


def test_hidden_topic_is_selected_and_unknown() -> None:
    (row,) = topic_status.statuses(
        FLOW, cluster(errors={"orders": "hidden"}), cluster(), {}, (), {}
    )
    assert (row.selected, row.reason, row.source_partitions) == (True, "hidden", None)


@pytest.mark.parametrize(
    ("flow", "name", "there"),
    [
        (GUARDED, "orders.eu", "east.orders_eu"),
        (GUARDED, "orders_eu", "east_orders.eu"),
        (KEEPS_NAMES, "orders.eu", "orders_eu"),
        (MM1, "orders.eu", "orders_eu"),
    ],
)
def test_a_topic_whose_name_collides_on_the_target_is_named_at_once(
    flow: Flow, name: str, there: str
) -> None:
    source = cluster(topic(name), topic("orders"))
    (found,) = topic_status.impossible_copies(flow, source, [name, "orders"], [there, "other"])
    assert (found.kind, found.severity, found.topic) == ("name_collides", "critical", name)
    assert there in found.message
    assert f"Delete it on {flow.source}" in found.action
    made = flow.target_topic(name)
    assert [*topic_status.impossible_copies(flow, source, [name], [there, made])] == [], (
        "it is there"
    )


def test_a_name_that_collides_with_what_is_hidden_is_named() -> None:
    source = cluster(topic("orders.eu"), topic("orders"))
    names = ["orders.eu", "orders"]
    (found,) = topic_status.impossible_copies(KEEPS_NAMES, source, names, ["orders"], ["orders.eu"])
    assert (found.kind, found.topic) == ("name_collides", "orders.eu")
    assert "cannot create orders.eu beside another that is hidden from us" in found.message


def test_a_topic_of_the_target_that_the_flow_did_not_make_is_named() -> None:
    empty, full = cluster(topic(end=0)), cluster(topic(end=5))
    flow = replace(KEEPS_NAMES, sync_topic_configs=True)
    (found,) = topic_status.foreign_topics(flow, empty, full, {}, [])
    assert (found.kind, found.severity, found.topic) == ("foreign_topic", "warning", "orders")
    assert "MirrorMaker 2 sets it as the source's is set" in found.message
    assert "cannot be left alone otherwise" in found.action
    (found,) = topic_status.foreign_topics(
        replace(flow, sync_topic_configs=False), empty, full, {}, []
    )
    assert "sets it" not in found.message
    assert [*topic_status.foreign_topics(flow, full, full, {}, [])] == []
    assert [*topic_status.foreign_topics(flow, empty, empty, {}, [])] == []
    assert [*topic_status.foreign_topics(flow, empty, full, {"orders": {0: 3}}, [])] == []
    fed = replace(flow, name="other", source="north")
    assert [*topic_status.foreign_topics(flow, empty, full, {}, [fed])] == [], (
        "another flow copies it"
    )


def test_a_topic_that_was_there_before_the_source_s_is_named_whatever_is_copied() -> None:
    full, known = cluster(topic(end=9)), {"held": ["orders", "orders-2"]}
    before = topic_status.not_made(KEEPS_NAMES, known, full, Baseline())
    assert before == ["orders"]
    (found,) = topic_status.foreign_topics(KEEPS_NAMES, full, full, {"orders": {0: 9}}, [], before)
    assert (found.kind, found.topic) == ("foreign_topic", "orders")
    assert "held records before east had orders" in found.message
    assert "baseline --flow orders --topic orders --renew" in found.action


def test_what_was_found_foreign_stays_so_until_a_baseline_takes_it() -> None:
    full, known = cluster(topic(end=9)), {"foreign": ["orders"]}
    assert topic_status.not_made(KEEPS_NAMES, known, full, Baseline()) == ["orders"]
    assert (
        topic_status.not_made(KEEPS_NAMES, known, full, of_flow({"topics": {"orders": {}}})) == []
    )
    assert topic_status.not_made(KEEPS_NAMES, known, cluster(), Baseline()) == ["orders"]
    assert [*topic_status.foreign_topics(KEEPS_NAMES, cluster(), full, {}, [], ["orders"])] == []


def test_topics_that_the_flow_would_copy_into_are_known() -> None:
    there = ["orders", "orders-1", "orders-2", "orders-3", "payments"]

    def unfed(flow: Flow, *others: Flow) -> list[str]:
        return topic_status.unfed(flow, ["orders"], there, ["orders-1"], others)

    assert unfed(KEEPS_NAMES) == ["orders-2", "orders-3"]
    assert unfed(MM1) == ["orders-2", "orders-3"]
    assert unfed(FLOW) == [], "a prefix is the flow's own"
    assert unfed(KEEPS_NAMES, replace(MM1, source="north", include="orders-3")) == ["orders-2"]


def test_a_topic_whose_name_becomes_too_long_is_named() -> None:
    names = ["x" * 244, "x" * 245, "y" * 245]
    flow = replace(GUARDED, topics_exclude=("y.*",))
    (found,) = topic_status.impossible_copies(flow, cluster(topic()), names, [])
    assert (found.kind, found.severity, found.topic) == ("name_too_long", "warning", names[1])
    assert "would have 250 letters" in found.message
    assert [
        *topic_status.impossible_copies(KEEPS_NAMES, cluster(topic()), ["orders" + "x" * 243], [])
    ] == []


def test_topic_named_beside_a_pattern_and_absent_is_reported() -> None:
    flow = replace(FLOW, topics=(*FLOW.topics, "orders-eu"))
    found = statuses(flow, source=cluster(topic()), target=cluster(topic("east.orders")))
    assert found["orders-eu"] == (True, "named by the flow and not on east")


@pytest.mark.parametrize(
    ("flow", "name", "reason"),
    [
        (FLOW, "payments", "no pattern of topics matches"),
        (FLOW, "orders-old", "topics_exclude: orders-old"),
        (FLOW, "__consumer_offsets",
         "internal topic of Kafka: MirrorMaker 2 leaves it out, also if it is named"),
        (FLOW, "west.copied", "it came from west: mirrored back it would go in a circle"),
        (FLOW, "north.west.copied", "it came from west: mirrored back it would go in a circle"),
        (FLOW, "mm2-offsets.x.internal",
         "MirrorMaker 2 leaves it out by itself: internal, or among its default excludes"),
        (FLOW, "heartbeats",
         "heartbeats: MirrorMaker 2 brings them along by itself or not at all"),
        (MM1, "__consumer_offsets",
         "internal topic of Kafka: MirrorMaker 1 leaves it out, also if it is named"),
        (MM1, "heartbeats", "no pattern of topics matches"),
        (GUARDED, "connect-configs", "mirrors are steered by topics of such names: no flow takes "
                                     "one"),
        (GUARDED, "x" * 245, "the name of its copy would have more than 249 letters"),
    ],
)  # fmt: skip
def test_topic_left_out_has_its_reason(flow: Flow, name: str, reason: str) -> None:
    assert statuses(flow, on_source={name: 2}) == {name: (False, reason)}


def test_topic_created_between_two_observations_is_not_called_left_out() -> None:
    assert statuses(on_source={"orders": 1}) == {}


def differences(
    flow: Flow = FLOW, *, key: str = "retention.ms", ours: tuple[str, str], theirs: tuple[str, str]
) -> list[tuple[str, str]]:
    name = key.replace(".", "_")
    found = topics.setting_differences(flow, topic(**{name: ours}), topic(**{name: theirs}))
    return [(difference.name, difference.kind) for difference in found]


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (("1000", OVERRIDDEN), ("900", OVERRIDDEN), "synced"),
        (("900", OVERRIDDEN), ("1000", DEFAULT), "synced"),
        (("1000", "DYNAMIC_DEFAULT_BROKER_CONFIG"), ("900", DEFAULT), "synced"),
        # Of Kafka's default MirrorMaker 2 only takes a value away that the target's topic has.
        (("1000", DEFAULT), ("2000", OVERRIDDEN), "synced"),
        (("1000", DEFAULT), ("2000", FILE), None),
        (("1000", DEFAULT), ("900", FILE), "risk"),
        (("1000", FILE), ("2000", OVERRIDDEN), None),
        (("1000", FILE), ("900", OVERRIDDEN), "risk"),
        (("1000", OVERRIDDEN), ("1000", DEFAULT), None),
    ],
)
def test_what_mirrormaker_2_would_set_differs_from_what_nobody_sets(
    ours: tuple[str, str], theirs: tuple[str, str], kind: str | None
) -> None:
    assert differences(ours=ours, theirs=theirs) == ([("retention.ms", kind)] if kind else [])


@pytest.mark.parametrize(
    "flow",
    [
        MM1,
        replace(FLOW, sync_topic_configs=False),
        replace(FLOW, config_exclude=(r"retention\..*",)),
    ],
)
def test_what_the_flow_does_not_sync_is_a_risk_if_it_hurts(flow: Flow) -> None:
    assert differences(flow, ours=("1000", OVERRIDDEN), theirs=("900", OVERRIDDEN)) == [
        ("retention.ms", "risk")
    ]
    assert differences(flow, ours=("1000", OVERRIDDEN), theirs=("2000", OVERRIDDEN)) == []


@pytest.mark.parametrize(
    ("key", "ours", "theirs", "kind"),
    [
        ("message.timestamp.type", "CreateTime", "LogAppendTime", "risk"),
        ("min.insync.replicas", "2", "1", None),
        ("max.message.bytes", "2000", "1000", "synced"),
        ("cleanup.policy", "delete", "compact", "synced"),
    ],
)
def test_default_excludes_are_never_synced(
    key: str, ours: str, theirs: str, kind: str | None
) -> None:
    found = differences(key=key, ours=(ours, OVERRIDDEN), theirs=(theirs, OVERRIDDEN))
    assert found == ([(key, kind)] if kind else [])


def test_difference_shows_both_values() -> None:
    (difference,) = topics.setting_differences(
        FLOW, topic(retention_ms=("1000", OVERRIDDEN)), topic(retention_ms=("900", DEFAULT))
    )
    assert difference == ConfigDifference("retention.ms", "1000", "900", "synced")


def test_settings_that_may_not_be_read_differ_in_nothing() -> None:
    hidden = replace(topic(), configs={})
    assert topics.setting_differences(FLOW, topic(retention_ms=("1", OVERRIDDEN)), hidden) == ()


def test_prefix_tells_what_was_mirrored() -> None:
    found = topic_status.candidates(
        FLOW, cluster(topic("orders-1")), ["orders-1"],
        ["east.orders-1", "east.orders-2", "orders-3", "east.payments"], (),
    )  # fmt: skip
    assert found == ["orders-2"]


def test_kept_names_need_a_memory_of_what_was_mirrored() -> None:
    there = ["orders-1", "orders-2"]
    assert topic_status.candidates(KEEPS_NAMES, cluster(), [], there, {"orders-2"}) == ["orders-2"]


def test_hidden_topic_is_not_gone() -> None:
    hidden = cluster(errors={"orders-2": "hidden"})
    assert topic_status.candidates(FLOW, hidden, [], ["east.orders-2"], ()) == []


def test_orphan_stays_a_row_and_is_a_finding_once() -> None:
    assert statuses(gone=["orders-2"], on_target={"east.orders-2": 2}) == {
        "orders-2": (False, "orphaned: no longer on east, what was mirrored is still on west")
    }
    (finding,) = topic_status.orphaned(FLOW, ["orders-2"], [])
    assert (finding.kind, finding.topic, finding.severity) == ("orphaned", "orders-2", "warning")
    assert "--delete --topic east.orders-2 on west" in finding.action
    assert topic_status.orphaned(FLOW, ["orders-2"], ["orders-2"]) == []


def observe(
    positions: dict[str, dict[int, int]], before: Any = None, *, minutes: float = 0,
    flow: Flow = FLOW, group: GroupSnapshot = NOBODY, source: Any = None,
    baseline: Baseline = Baseline(),  # noqa: B008
) -> tuple[list[Finding], dict[str, Any]]:  # fmt: skip
    at_ms = NOW + int(minutes * 60_000)
    snapshot = cluster(*(source or [topic("orders-1"), topic("orders-2")]), at_ms=at_ms)
    before = before or {}
    seen = selection.disagreements(flow, snapshot, positions, baseline, before)
    return [*selection.findings(flow, snapshot, positions, group, seen, before)], seen


def test_positions_of_matched_topics_are_no_finding() -> None:
    positions = {"orders-1": {0: 5}, "orders-2": {0: 5}}
    _, seen = observe(positions)
    found, _ = observe(positions, seen, minutes=60)
    assert found == []


def test_position_that_moves_in_a_topic_not_matched_is_reported() -> None:
    _, seen = observe({"orders-1": {0: 5}, "payments": {0: 5, 1: 2}})
    (finding,), _ = observe({"orders-1": {0: 5}, "payments": {0: 5, 1: 3}}, seen)
    assert (finding.kind, finding.topic) == ("regex_disagreement", "payments")


@pytest.mark.parametrize(("topic_name", "flow"), [("payments", FLOW), ("heartbeats", FLOW)])
def test_position_that_rests_or_is_of_heartbeats_is_not(topic_name: str, flow: Flow) -> None:
    _, seen = observe({topic_name: {0: 5}}, flow=flow)
    end = 6 if topic_name == "heartbeats" else 5
    found, _ = observe({topic_name: {0: end}}, seen, flow=flow)
    assert found == []


def test_selection_that_was_changed_begins_again() -> None:
    _, seen = observe({"payments": {0: 5}})
    found, _ = observe({"payments": {0: 9}}, {**seen, "include": "payments"})
    assert found == []


def test_assigned_topic_that_is_not_matched_is_reported_at_once() -> None:
    group = GroupSnapshot("g", "Stable", (GroupMember("c", "h", (("payments", 0),)),))
    (finding,), _ = observe({}, flow=MM1, group=group)
    assert (finding.kind, finding.topic) == ("regex_disagreement", "payments")


def test_matched_topic_never_touched_while_others_move_is_reported_after_a_while() -> None:
    _, seen = observe({"orders-1": {0: 5}})
    assert observe({"orders-1": {0: 9}}, seen, minutes=5)[0] == []
    assert observe({"orders-1": {0: 5}}, seen, minutes=30)[0] == []
    (finding,), later = observe({"orders-1": {0: 9}}, seen, minutes=30)
    assert (finding.kind, finding.topic) == ("regex_disagreement", "orders-2")
    assert later["untouched"] == seen["untouched"]


def test_empty_topic_and_records_before_the_start_need_no_position() -> None:
    source = [topic("orders-1"), topic("orders-2", end=0), topic("orders-3")]
    _, seen = observe(
        {"orders-1": {0: 5}},
        source=source,
        baseline=of_flow({"topics": {"orders-3": {"source": {"0": 5}}}}),
    )
    assert seen["untouched"] == {}


def test_assigned_topic_without_a_position_is_no_disagreement() -> None:
    group = GroupSnapshot("g", "Stable", (GroupMember("c", "h", (("orders-2", 0),)),))
    _, seen = observe({"orders-1": {0: 5}}, flow=MM1, group=group)
    assert observe({"orders-1": {0: 9}}, seen, minutes=30, flow=MM1, group=group)[0] == []


@pytest.mark.parametrize("flow", [FLOW, KEEPS_NAMES])
def test_a_flow_without_a_record_since_its_baseline_proves_nothing_whatever_its_topics_are_called(
    flow: Flow,
) -> None:
    """What both sides had before the baseline is no record that was compared."""
    baseline = of_flow({"topics": {"orders": {"source": {"0": 5}, "target": {"0": 5}}}})
    assert baseline.topic("orders").target.start == {0: 5}
    there = flow.target_topic("orders")

    def kinds(end: int) -> list[str]:
        found = coverage.nothing_seen(
            flow, cluster(topic()), cluster(topic(there, end=end)), baseline
        )
        return [finding.kind for finding in found]

    assert kinds(5) == ["nothing_seen"]
    assert kinds(6) == []
