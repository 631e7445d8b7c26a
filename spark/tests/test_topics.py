"""What the target's topics must be able to hold."""

import dataclasses
from typing import Any

import pytest

from mirror_report import engines
from mirror_report.checks import topics
from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, Finding, PartitionSnapshot, TopicSnapshot

FLOW = Flow("orders", "east", "west", "t", topics=("t",), group_id="g")
CONFIGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "3600000",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
}


def topic(partitions: int = 2, **configs: str) -> TopicSnapshot:
    merged = CONFIGS | {key.replace("_", "."): value for key, value in configs.items()}
    every = {p: PartitionSnapshot(0, 5, 5) for p in range(partitions)}
    return TopicSnapshot("t", "id", every, merged, 10)


def cluster(alias: str, snapshot: TopicSnapshot | None, errors: Any = None) -> ClusterSnapshot:
    return ClusterSnapshot(alias, alias, 0, {"t": snapshot} if snapshot else {}, errors or {})


def judge(
    ours: TopicSnapshot | None,
    theirs: TopicSnapshot | None,
    flow: Flow = FLOW,
    auto: bool | None = False,
    **more: Any,
) -> list[Finding]:
    return [
        *topics.findings(
            flow, cluster("east", ours), cluster("west", theirs), auto_creation=auto, **more
        )
    ]


def kinds(found: list[Finding]) -> list[tuple[str, str]]:
    assert all(finding.action for finding in found), "every finding says what to do next"
    return [(finding.severity, finding.kind) for finding in found]


def test_equal_topics_are_no_finding() -> None:
    assert judge(topic(), topic()) == []


def test_more_partitions_on_the_target_are_fine() -> None:
    assert judge(topic(2), topic(3)) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ({"partitions": 6}, {"partitions": 3}, "partitions_fewer"),
        ({}, {"cleanup_policy": "compact"}, "compact_null_keys"),
        ({}, {"cleanup_policy": "compact,delete"}, "compact_null_keys"),
        ({"max_message_bytes": "2000000"}, {}, "message_size"),
        ({}, {"message_timestamp_type": "LogAppendTime"}, "timestamp_type"),
        ({}, {"message_timestamp_before_max_ms": "1000"}, "timestamp_limit"),
        ({}, {"retention_ms": "1000"}, "retention"),
        ({"retention_ms": "-1"}, {}, "retention"),
        ({}, {"retention_bytes": "1000"}, "retention"),
    ],
)
def test_risky_difference_is_a_warning(ours: Any, theirs: Any, kind: str) -> None:
    assert kinds(judge(topic(**ours), topic(**theirs))) == [("warning", kind)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"cleanup_policy": "compact"}, {"cleanup_policy": "compact"}),
        ({}, {"retention_ms": "-1"}),
        ({}, {"max_message_bytes": "9999999"}),
        ({"message_timestamp_type": "LogAppendTime"}, {}),
    ],
)
def test_harmless_difference_is_none(ours: Any, theirs: Any) -> None:
    assert judge(topic(**ours), topic(**theirs)) == []


def test_settings_that_may_not_be_read_are_unknown_not_equal() -> None:
    hidden = TopicSnapshot("t", "id", topic().partitions, {}, None)
    (found,) = judge(topic(), hidden)
    assert (found.severity, found.kind, found.count) == ("warning", "not_checked", 1)
    assert "settings of t on west may not be read" in found.message
    (found,) = judge(hidden, hidden)
    assert "of t on east and of t on west" in found.message


def test_missing_target_topic_is_critical_without_auto_creation() -> None:
    assert kinds(judge(topic(), None)) == [("critical", "topic_missing")]


def test_missing_target_topic_will_be_created_by_the_broker() -> None:
    assert judge(topic(), None, auto=True) == []


def test_missing_target_topic_with_mirrored_records_is_critical_anyway() -> None:
    found = judge(topic(), None, auto=True, positions={"t": {0: 5}})
    assert kinds(found) == [("critical", "topic_missing")]


def test_unknown_auto_creation_is_unknown() -> None:
    assert kinds(judge(topic(), None, auto=None)) == [("warning", "not_checked")]


def test_missing_target_topic_that_the_mirror_may_not_create_is_critical() -> None:
    found = judge(topic(), None, auto=None, forbidden=["t"])
    assert kinds(found) == [("critical", "topic_missing")]


def test_nothing_matched_is_a_warning() -> None:
    assert kinds(judge(None, None)) == [("warning", "no_topics")]


def test_named_topic_absent_from_the_source_is_a_warning() -> None:
    flow = Flow("orders", "east", "west", "t|u", topics=("t", "u"), group_id="g")
    (found,) = judge(topic(), topic(), flow)
    assert (found.kind, found.topic) == ("no_topics", "u")


def test_forbidden_topic_is_a_permission_not_an_absence() -> None:
    hidden = cluster("east", None, {"t": "permission DESCRIBE on topic t is missing"})
    source = dataclasses.replace(hidden, refused=frozenset({"t"}))
    found = [*topics.findings(FLOW, source, cluster("west", None), auto_creation=True)]
    assert kinds(found) == [("unknown", "permission")]


def test_topic_out_of_order_is_no_matter_of_permissions() -> None:
    source = cluster("east", None, {"t": "topic t is not readable now (Kafka error 5)"})
    (finding,) = topics.findings(FLOW, source, cluster("west", None), auto_creation=True)
    assert (finding.severity, finding.kind) == ("unknown", "unreadable")
    assert "Grant" not in finding.action


def test_topic_named_beside_a_pattern_and_absent_is_a_warning() -> None:
    flow = Flow("orders", "east", "west", "t|u|v.*", topics=("t", "u", "v.*"), group_id="g")
    (found,) = judge(topic(), topic(), flow, auto=True)
    assert (found.kind, found.topic) == ("no_topics", "u")


REGEX = {"include": "t.*", "topics": ("t.*",), "group_id": "g"}


def test_regex_without_auto_creation_is_critical() -> None:
    flow = Flow("orders", "east", "west", **REGEX)  # type: ignore[arg-type]
    assert kinds(judge(topic(), topic(), flow)) == [("critical", "regex_without_auto_creation")]
    assert judge(topic(), topic(), flow, auto=True) == []


def test_regex_is_not_let_through_where_auto_creation_could_not_be_asked() -> None:
    flow = Flow("orders", "east", "west", **REGEX)  # type: ignore[arg-type]
    (found,) = judge(topic(), topic(), flow, auto=None)
    assert (found.severity, found.kind) == ("unknown", "regex_without_auto_creation")
    assert "mirror_accept: [regex-without-auto-creation:orders]" in found.action
    assert "DESCRIBE_CONFIGS on the cluster west" in found.action


@pytest.mark.parametrize("auto", [False, None])
def test_accepted_danger_is_silent(auto: bool | None) -> None:
    flow = Flow(
        "orders", "east", "west", **REGEX,  # type: ignore[arg-type]
        accept=("regex-without-auto-creation:orders",),
    )  # fmt: skip
    assert judge(topic(), topic(), flow, auto=auto) == []


def test_acceptance_of_another_flow_does_not_count() -> None:
    flow = Flow(
        "orders", "east", "west", **REGEX,  # type: ignore[arg-type]
        accept=("regex-without-auto-creation:other",),
    )  # fmt: skip
    assert kinds(judge(topic(), topic(), flow)) == [("critical", "regex_without_auto_creation")]


MM2 = Flow("orders", "east", "west", "t", engines.MM2, topics=("t",), replication_policy="prefix")


def judge_mm2(partitions: int | None, **more: Any) -> list[tuple[str, str]]:
    """Judge a topic with two partitions on the source and so many on the target."""
    theirs = None if partitions is None else topic(partitions)
    there = {} if theirs is None else {"east.t": dataclasses.replace(theirs, name="east.t")}
    found = [
        *topics.findings(
            dataclasses.replace(MM2, **more.pop("flow", {})),
            cluster("east", topic(2)),
            ClusterSnapshot("west", "west", 0, there, {}),
            auto_creation=False,
            **more,
        )
    ]
    return kinds(found)


def test_mirrormaker2_blocks_for_ever_on_a_missing_partition() -> None:
    assert judge_mm2(1) == [("critical", "partitions_fewer")]
    assert judge_mm2(2) == []


def test_mirrormaker2_creates_its_topics() -> None:
    assert judge_mm2(None) == []
    assert judge_mm2(None, flow={"topics": (".*",), "include": ".*"}) == []


def test_topic_mirrormaker2_has_mirrored_must_be_there() -> None:
    assert judge_mm2(None, positions={"t": {0: 5}}) == [("critical", "topic_missing")]
