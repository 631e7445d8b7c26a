"""What is said of permissions, for everything a cluster may have answered."""

from dataclasses import replace
from typing import Any

import pytest

from mirror_report import engines
from mirror_report.checks import permissions
from mirror_report.checks.permissions import NOBODYS
from mirror_report.config import Cluster, Flow, Permission
from mirror_report.model import Access, Finding, Resource

EAST = Cluster("east", ("east1:9092", "east2:9092"), identity="mirror", principal="User:mirror")
WEST = Cluster("west", ("west1:9092",), identity="mirror", principal="User:mirror")
FLOW = Flow(
    "orders", "east", "west", "pay.*", engines.MM2, topics=("pay.*",), replication_policy="prefix",
    consumer_groups=("app-.*",),
)  # fmt: skip


def row(**changes: Any) -> Permission:
    literal = Permission("west", "topic", "east.pay", "literal", "WRITE", "records are lost")
    return replace(literal, **changes)


def wide(**changes: Any) -> Permission:
    return row(name="east.pay", pattern="prefixed", wider=True, **changes)


def judge(
    permission: Permission, answers: dict[Resource, Access], cluster: Cluster = WEST, **given: Any
) -> list[Finding]:
    names: dict[str, Any] = {"topics": ["pay-1", "pay-2"], "groups": ["app-1"], **given}
    return [*permissions.findings(FLOW, cluster, [permission], answers, **names)]


def topic(name: str, exists: bool | None = True, **operations: bool) -> dict[Resource, Access]:
    return {("topic", name): Access(exists, operations)}


def test_what_is_allowed_is_no_finding() -> None:
    assert judge(row(), topic("east.pay", WRITE=True)) == []


def test_missing_permission_is_named_with_its_command() -> None:
    (found,) = judge(row(), topic("east.pay", WRITE=False))
    assert (found.severity, found.kind, found.flow, found.topic) == (
        "critical", "missing_permission", "orders", "east.pay",
    )  # fmt: skip
    assert found.message == (
        "User:mirror (identity mirror) lacks WRITE on topic east.pay on west: records are lost"
    )
    assert found.action == (
        "kafka-acls.sh --bootstrap-server west1:9092 --add --allow-principal User:mirror "
        "--operation Write --topic east.pay"
    )


@pytest.mark.parametrize(
    ("permission", "severity"),
    [
        (row(operation="READ"), "unknown"),
        (row(resource="group", operation="DESCRIBE"), "unknown"),
        (row(operation="DESCRIBE_CONFIGS"), "warning"),
        (row(resource="cluster", name="kafka-cluster", operation="DESCRIBE"), "warning"),
    ],
)
def test_what_another_identity_lacks_does_not_end_the_mirror(
    permission: Permission, severity: str
) -> None:
    answers = {(permission.resource, permission.name): Access(True, {permission.operation: False})}
    (found,) = judge(permission, answers, replace(WEST, identity="report"))
    assert found.severity == severity


@pytest.mark.parametrize(
    ("cluster", "principal"),
    [
        (Cluster("west", ("w:1",), username="m"), "User:m"),
        (Cluster("west", ("w:1",)), "User:ANONYMOUS"),
        (
            Cluster("west", ("w:1",), "SSL", ssl_certificate=True),
            "User:<subject of its certificate>",
        ),
        (Cluster("west", ("w:1",), username="m", principal="User:CN=a b"), "User:CN=a b"),
    ],
)
def test_principal_is_the_configured_one_or_the_user(cluster: Cluster, principal: str) -> None:
    assert permissions.principal_of(cluster) == principal


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        (row(operation="ALTER_CONFIGS"), "--operation AlterConfigs --topic east.pay"),
        (row(resource="group", name="g", operation="READ"), "--operation Read --group g"),
        (
            row(resource="cluster", name="kafka-cluster", operation="IDEMPOTENT_WRITE"),
            "--operation IdempotentWrite --cluster",
        ),
        (row(resource="transactional-id", name="t"), "--operation Write --transactional-id t"),
        (wide(), "--operation Write --topic east.pay --resource-pattern-type prefixed"),
        (row(name="*"), "--operation Write --topic '*'"),
    ],
)
def test_command_is_exact(permission: Permission, words: str) -> None:
    start = "kafka-acls.sh --bootstrap-server east1:9092,east2:9092 --add --allow-principal "
    assert permissions.grant(EAST, permission) == f"{start}User:mirror {words}"
    hostile = replace(EAST, principal="User:CN=a b,O=$x")
    assert permissions.grant(hostile, permission) == f"{start}'User:CN=a b,O=$x' {words}"


def test_what_the_broker_does_not_say_is_unknown() -> None:
    (found,) = judge(row(), topic("east.pay"))
    assert (found.severity, found.kind, found.count) == ("warning", "permission_unknown", 1)
    assert "WRITE on topic east.pay (Kafka does not say)" in found.message
    assert found.action.startswith(
        "kafka-acls.sh --bootstrap-server west1:9092 --list --principal User:mirror"
    )


def test_what_does_not_exist_yet_is_unknown() -> None:
    (found,) = judge(row(), topic("east.pay", exists=False, DESCRIBE=True))
    assert "WRITE on topic east.pay (east.pay does not exist yet)" in found.message


def test_what_was_not_answered_at_all_is_unknown() -> None:
    for permission in (row(), wide(), row(resource="transactional-id", name="t")):
        (found,) = judge(permission, {})
        assert found.kind == "permission_unknown"


def test_all_that_is_unknown_on_a_cluster_is_one_finding() -> None:
    rows = [row(), row(operation="READ"), row(operation="ALTER")]
    answers = topic("east.pay", READ=False)
    missing, unknown = permissions.findings(FLOW, WEST, rows, answers, [], [])
    assert (missing.kind, unknown.kind, unknown.count) == (
        "missing_permission", "permission_unknown", 2,
    )  # fmt: skip


def probe(allowed: bool | None, operation: str = "WRITE") -> dict[Resource, Access]:
    operations = {} if allowed is None else {operation: allowed}
    return topic(f"east.pay{NOBODYS}", exists=False, **operations)


def pays(first: bool | None, second: bool | None, **more: Any) -> dict[Resource, Access]:
    operation = more.pop("operation", "WRITE")
    return {
        key: access
        for name, allowed in (("east.pay-1", first), ("east.pay-2", second))
        for key, access in topic(
            name, **more, **({} if allowed is None else {operation: allowed})
        ).items()
    }


def test_prefix_is_judged_by_the_flows_topics() -> None:
    assert judge(wide(), pays(True, True) | probe(None)) == []
    (found,) = judge(wide(), pays(True, False) | probe(None))
    assert (found.kind, found.topic) == ("missing_permission", "east.pay-2")
    assert "lacks WRITE on topics that begin with east.pay on west (asked about east.pay-2)" in (
        found.message
    )
    assert found.action.endswith("--topic east.pay --resource-pattern-type prefixed")


def test_prefix_is_one_finding_whatever_the_number_of_topics() -> None:
    assert len(judge(wide(), pays(False, False) | probe(False))) == 1


def test_topics_outside_of_the_prefix_are_not_judged() -> None:
    answers = topic("east.pay-1", WRITE=False) | probe(None)
    (found,) = judge(wide(), answers, topics=["other"])
    assert "no topic that begins so is visible" in found.message


def test_prefix_under_which_nothing_is_visible_and_nothing_allowed_is_missing() -> None:
    (found,) = judge(wide(), probe(False), topics=[])
    assert (found.severity, found.kind, found.topic) == ("critical", "missing_permission", None)
    assert f"asked about east.pay{NOBODYS}" in found.message


def test_prefix_allowed_name_by_name_is_unknown_for_names_to_come() -> None:
    (found,) = judge(wide(), pays(True, True) | probe(False))
    assert found.kind == "permission_unknown"
    assert "allowed on the names that are visible, and not on others" in found.message


def test_prefix_allowed_to_names_to_come_is_no_finding() -> None:
    assert judge(wide(operation="DESCRIBE"), probe(True, "DESCRIBE"), topics=[]) == []


def test_topics_of_a_prefix_that_do_not_exist_yet_are_unknown() -> None:
    (found,) = judge(wide(), pays(None, None, exists=False) | probe(None))
    assert "(east.pay-1 does not exist yet)" in found.message


def test_on_the_source_topics_have_the_sources_names() -> None:
    permission = row(cluster="east", name="pay", pattern="prefixed", operation="READ")
    answers = topic("pay-1", READ=True) | topic("pay-2", READ=False)
    (found,) = judge(permission, answers, EAST)
    assert found.topic == "pay-2"


def test_star_is_about_every_topic_of_the_flow() -> None:
    permission = row(name="*")
    (found,) = judge(permission, pays(True, False) | topic(NOBODYS))
    assert "lacks WRITE on every topic on west (asked about east.pay-2)" in found.message
    asked = permissions.questions(FLOW, [permission], ["pay-1", "pay-2"], [])
    assert set(asked) == {("topic", name) for name in ("east.pay-1", "east.pay-2", NOBODYS)}


def test_groups_of_a_prefix_are_those_the_flow_syncs() -> None:
    permission = row(
        cluster="east", resource="group", name="app-", pattern="prefixed", operation="READ"
    )
    held = Access(None, {"READ": True})
    assert (
        judge(permission, {("group", "app-1"): held, ("group", f"app-{NOBODYS}"): held}, EAST) == []
    )
    refused = Access(None, {"READ": False})
    (found,) = judge(permission, {("group", f"app-{NOBODYS}"): refused}, EAST, groups=[])
    assert (found.kind, found.topic) == ("missing_permission", None)


def test_cluster_is_asked_as_one_resource() -> None:
    permission = row(cluster="east", resource="cluster", name="kafka-cluster", operation="DESCRIBE")
    assert permissions.questions(FLOW, [permission], [], []) == {
        ("cluster", "kafka-cluster"): {"DESCRIBE"}
    }
    (found,) = judge(
        permission, {("cluster", "kafka-cluster"): Access(None, {"DESCRIBE": False})}, EAST
    )
    assert "lacks DESCRIBE on the cluster on east: records are lost" in found.message


def test_operations_on_one_resource_are_asked_together() -> None:
    rows = [row(), row(operation="READ"), wide(operation="ALTER")]
    assert permissions.questions(FLOW, rows, ["pay-1"], []) == {
        ("topic", "east.pay"): {"WRITE", "READ"},
        ("topic", "east.pay-1"): {"ALTER"},
        ("topic", f"east.pay{NOBODYS}"): {"ALTER"},
    }


@pytest.mark.parametrize(
    ("answers", "severity"),
    [
        (pays(False, False, operation="CREATE"), "warning"),
        (pays(True, True, operation="CREATE"), "warning"),
        (pays(False, False, operation="CREATE", exists=False), "critical"),
        ({}, "critical"),
    ],
    ids=["all exist", "allowed name by name", "none exists", "none is known"],
)
def test_creating_what_exists_is_not_pressing(answers: Any, severity: str) -> None:
    topics = ["pay-1", "pay-2"] if answers else []
    (found,) = judge(wide(operation="CREATE"), answers | probe(False, "CREATE"), topics=topics)
    assert (found.severity, found.kind) == (severity, "missing_permission")


def test_without_rows_nothing_was_checked() -> None:
    found = permissions.not_configured(FLOW)
    assert (found.severity, found.kind) == ("warning", "permission_unknown")
