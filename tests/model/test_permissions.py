"""Permissions of each identity: exactly what is needed, by the right name."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror_model import permissions, regex
from mirror_model import report as reports
from mirror_model.site import mirror_site

from tests.model.conftest import Site


def rows(site: Site, **more: Any) -> list[dict[str, Any]]:
    return permissions.mirror_permissions(site.model, **more)


def short(found: Iterable[dict[str, Any]], *keys: str) -> list[str]:
    """Rows of one line each; a prefix ends in '*'."""
    return [
        " ".join(
            [*(str(row[key]) for key in keys), row["resource"],
             row["name"] + ("*" if row["pattern"] == "prefixed" else ""), row["operation"]]
        )
        for row in found
    ]  # fmt: skip


def of(site: Site, cluster: str, identity: str, **more: Any) -> list[str]:
    return short(
        row for row in rows(site, **more)
        if (row["cluster"], row["identity"]) == (cluster, identity)
    )  # fmt: skip


def test_mm1_of_literal_names(mm1: Site) -> None:
    assert of(mm1, "east", "mirror") == [
        "topic orders READ", "topic payments.eu READ", "group mirrormaker-orders READ",
    ]  # fmt: skip
    assert of(mm1, "west", "mirror") == ["topic orders WRITE", "topic payments.eu WRITE"]


def test_the_report_on_mm1(mm1: Site) -> None:
    topics = [
        f"topic {topic} {operation}"
        for topic in ("orders", "payments.eu")
        for operation in ("READ", "DESCRIBE_CONFIGS")
    ]
    cluster = "cluster kafka-cluster"
    group = "group mirrormaker-orders DESCRIBE"
    assert of(mm1, "east", "report") == [*topics, f"{cluster} DESCRIBE", group]
    assert of(mm1, "west", "report") == [
        *topics, f"{cluster} DESCRIBE", f"{cluster} DESCRIBE_CONFIGS"
    ]  # fmt: skip


def test_a_row_says_whom_and_what_for(mm1: Site) -> None:
    first = rows(mm1)[0]
    assert "255" in first.pop("why")
    assert first == {
        "cluster": "east", "identity": "mirror", "principal": "User:mirror", "flows": ["orders"],
        "resource": "topic", "name": "orders", "pattern": "literal", "operation": "READ",
        "wider": False,
    }  # fmt: skip


def test_mm1_of_a_regex(mm1: Site) -> None:
    mm1.flow["topics"] = [r"payments\..*", "orders"]
    mm1.flow["topics_exclude"] = ["orders"]
    assert of(mm1, "east", "mirror")[:-1] == ["topic payments.* READ"]
    assert of(mm1, "west", "mirror") == ["topic payments.* WRITE"]
    assert {row["wider"] for row in rows(mm1) if row["pattern"] == "prefixed"} == {True}


def test_a_regex_that_begins_with_anything_is_about_every_topic(mm1: Site) -> None:
    mm1.flow["topics"] = [".*-orders", "orders"]
    [row] = [row for row in rows(mm1) if row["operation"] == "WRITE"]
    assert (row["name"], row["pattern"], row["wider"]) == ("*", "literal", True)


def test_what_several_flows_need_is_given_once(mm1: Site) -> None:
    mm1["flows"] += [
        {**mm1.flow, "name": "more", "topics": [r"payments\..*"], "target": "north"},
        {**mm1.flow, "name": "same", "topics": ["orders"], "target": "north"},
    ]
    mm1["instances"] |= {
        f"mirrormaker-{name}": {"hosts": ["mirror2"], "flows": [name]} for name in ("more", "same")
    }
    found = {
        (row["resource"], row["name"], row["operation"]): row["flows"]
        for row in rows(mm1)
        if row["cluster"] == "east" and row["identity"] == "mirror"
    }
    assert found == {
        ("topic", "orders", "READ"): ["orders", "same"],
        ("topic", "payments.", "READ"): ["orders", "more"],
        ("group", "mirrormaker-orders", "READ"): ["orders"],
        ("group", "mirrormaker-more", "READ"): ["more"],
        ("group", "mirrormaker-same", "READ"): ["same"],
    }


def test_one_principal_for_both_gets_each_permission_once(mm1: Site) -> None:
    del mm1["clusters"]["east"]["identities"]["report"]  # both clusters share one map
    mm1.flow["topics"] = ["orders"]
    assert short(rows(mm1), "cluster", "principal") == [
        "east User:mirror topic orders READ",
        "east User:mirror group mirrormaker-orders READ",
        "west User:mirror topic orders WRITE",
        "east User:mirror topic orders DESCRIBE_CONFIGS",
        "west User:mirror topic orders READ",
        "west User:mirror topic orders DESCRIBE_CONFIGS",
        "east User:mirror cluster kafka-cluster DESCRIBE",
        "west User:mirror cluster kafka-cluster DESCRIBE",
        "west User:mirror cluster kafka-cluster DESCRIBE_CONFIGS",
    ]
    assert short(rows(mm1, report_identity="mirror")) == short(rows(mm1))


@pytest.mark.parametrize("change", [{"state": "absent"}, {"hosts": []}])
def test_what_has_no_place_needs_nothing(mm1: Site, change: dict[str, Any]) -> None:
    mm1.instance.update(change)
    assert rows(mm1) == []


def test_the_report_is_given_what_its_identity_needs(mm2: Site) -> None:
    for identity in ("mirror", "report"):
        model = reports.mirror_report_model(mm2.model, identity)
        listed = model["flows"][0]["permissions"]
        assert short(listed, "cluster") == short(
            (row for row in rows(mm2) if row["identity"] == identity), "cluster"
        )
        assert set(listed[0]) == {
            "cluster", "resource", "name", "pattern", "operation", "why", "wider",
        }  # fmt: skip


def test_the_reports_flow_is_given_its_own_permissions_alone(mm2_site: Site) -> None:
    model = reports.mirror_report_model(
        mm2_site.model,
        "report",
    )
    for flow in model["flows"]:
        assert {row["cluster"] for row in flow["permissions"]} == {flow["source"], "west"}


PATTERNS = ["orders", r"payments\..*", "pay.*", ".*", "orders|payments", "o.?", "payments.eu"]


@settings(max_examples=60, deadline=None)
@given(
    engine=st.sampled_from(["mm1", "mm2"]),
    chosen=st.lists(st.lists(st.sampled_from(PATTERNS), min_size=1, unique=True), min_size=1,
                    max_size=3),
    shared=st.booleans(),
)  # fmt: skip
def test_no_permission_implies_another(engine: str, chosen: list[list[str]], shared: bool) -> None:
    identity = {"sasl_mechanism": "PLAIN", "username": "mirror", "password": "CANARY"}
    identities = {"mirror": identity}
    if not shared:
        identities["report"] = {**identity, "username": "report"}
    cluster = {"security_protocol": "SASL_SSL", "identities": identities}
    clusters = dict.fromkeys(("east", "west"), cluster)
    flows = [
        {"name": f"f{number}", "engine": engine, "source": "east", "target": "west",
         "topics": topics}
        for number, topics in enumerate(chosen)
    ]  # fmt: skip
    instances = {
        f"mirrormaker-{number}": {"hosts": ["h"], "flows": [f"f{number}"]}
        for number in range(len(chosen))
    }
    found = permissions.mirror_permissions(mirror_site(clusters, flows, instances, {}))
    for first, second in itertools.permutations(found, 2):
        assert not allows(first, second), (first, second)
    # Everything that a flow needs is granted.
    for number, _ in enumerate(chosen):
        alone = permissions.mirror_permissions(
            mirror_site(clusters, [flows[number]], instances, {})
        )
        for needed in alone:
            granted = [row for row in found if allows(row, needed)]
            assert any(f"f{number}" in row["flows"] for row in granted), needed


def allows(held: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether Kafka's StandardAuthorizer allows what is asked to the holder of a permission."""
    if any(held[key] != asked[key] for key in ("cluster", "principal", "resource")):
        return False
    implied = {
        "DESCRIBE": {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"},
        "DESCRIBE_CONFIGS": {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
    }
    if held["operation"] not in implied.get(asked["operation"], {asked["operation"]}):
        return False
    if held["name"] == "*":
        return True
    if held["pattern"] == "prefixed":
        return bool(asked["name"].startswith(held["name"]))
    return bool(asked["pattern"] == "literal" and asked["name"] == held["name"])


# Commands for Kafka's tool.


def test_commands(mm1: Site) -> None:
    mm1.flow["topics"] = ["orders"]
    commands = permissions.to_kafka_acls(rows(mm1), mm1.model)
    login = "--command-config admin.properties"
    assert commands["west"] == [
        f"kafka-acls.sh --bootstrap-server west1:9092 {login} --add --allow-principal {rest}"
        for rest in (
            "User:mirror --operation Write --topic orders --resource-pattern-type literal",
            "User:mirror-report --operation Read --operation DescribeConfigs --topic orders "
            "--resource-pattern-type literal",
            "User:mirror-report --operation Describe --operation DescribeConfigs --cluster",
        )
    ]
    assert "--bootstrap-server east1:9092,east2:9092 " in commands["east"][0]


def test_commands_survive_a_shell(mm1: Site) -> None:
    principal = """User:CN=it's \\"m\\",O=$(id) `x` *"""
    mm1["clusters"]["east"]["identities"]["mirror"]["principal"] = principal
    mm1.flow["topics"] = [".*"]
    words = shlex.split(permissions.to_kafka_acls(rows(mm1), mm1.model)["east"][0])
    assert words[words.index("--allow-principal") + 1] == principal
    assert words[words.index("--topic") + 1] == "*"


# What names begin with.


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("payments.eu", [("payments.eu", True)]),
        (r"payments\..*", [("payments.", False)]),
        ("orders(-dlq)?", [("orders", True), ("orders-dlq", True)]),
        (r"prd-(a|b)\.x+", [("prd-a.x", False), ("prd-b.x", False)]),
        ("orders|orders-.*|o.*", [("o", False)]),
        (r"topic-\d", [("topic-", False)]),
        (".*", [("", False)]),
        ("[^-]+", [("", False)]),
        ("(ab){2}", [("abab", True)]),
        ("a{0}b?", [("b", True)]),
    ],
)
def test_beginnings(pattern: str, found: list[tuple[str, bool]]) -> None:
    assert regex.beginnings(pattern) == found
