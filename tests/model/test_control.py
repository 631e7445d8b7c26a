"""No flow writes what steers a mirror: topics and groups that owners keep."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirror_model import instances, permissions, regex
from mirror_model import report as reports
from mirror_model.engines.connect.connectors import name_of

from tests.model.conftest import SITE, Site, refused

ALIASES = ("east", "west", "connect-east", "a-checkpoints", "mm2-status")
SELECTIONS = ([".*"], ["orders", r".*\..*"], [r"connect.*|[a-z].*"], [r".+(internal|s|g)"])
WORKER_TOPICS: tuple[dict[str, str], ...] = (
    {},
    {"config": "connect-configs", "offsets": "connect-offsets", "status": "connect-status"},
    {"config": "theirs.settings", "offsets": "east.kept", "status": "east-_-status"},
)


def east_to_west(engine: str, policy: str, topics: list[str], **more: Any) -> dict[str, Any]:
    return {"name": "orders", "engine": engine, "source": "east", "target": "west",
            "topics": topics, "replication_policy": policy, **more}  # fmt: skip


def site_of(*flows: dict[str, Any], theirs: dict[str, str], **separated: Any) -> Site:
    """Flows of every engine with an owner each, beside two Connect clusters that exist."""
    made = copy.deepcopy(SITE)
    aliases = {flow[side] for flow in flows for side in ("source", "target")} | {"east", "west"}
    made["clusters"] = {alias: {"bootstrap_servers": [f"{alias}:9092"]} for alias in aliases}
    made["instances"], made["flows"] = {}, [copy.deepcopy(flow) for flow in flows]
    made["connect_clusters"] = {
        f"connect-{alias}": {"kafka": alias, "topics": theirs, "rest": {"urls": ["https://c:1"]}}
        for alias in aliases
    }
    for place, flow in enumerate(made["flows"]):
        if flow["engine"] == "mm2-connect":
            flow |= {"connect": f"connect-{flow['target']}", "properties": dict(separated)}
        else:
            worker = {"worker_properties": dict(separated)} if flow["engine"] == "mm2" else {}
            made["instances"][f"mirrormaker-{place}"] = {
                "hosts": ["mirror1"], "flows": [flow["name"]], **worker,
            }  # fmt: skip
    return Site(made)


def selection(site: Site, flow: dict[str, Any]) -> tuple[str, list[str]]:
    """What a flow's mirror is told to take and to leave out, as regular expressions."""
    if flow["engine"] == "mm2-connect":
        found = instances.mirror_connectors(site.model, flow["connect"], {}, {})
        [config] = [each["config"] for each in found if each["name"] == name_of(
            {"connectors": {}, **flow}, "source")]  # fmt: skip
        return config["topics"].replace(",", "|"), config["topics.exclude"].split(",")
    [name] = [name for name, each in site["instances"].items() if flow["name"] in each["flows"]]
    process = site.process(name)
    if flow["engine"] == "mm1":
        return process.environment["MM_INCLUDE"], []
    properties = process.properties["mm2.properties"]
    pair = f"{flow['source']}->{flow['target']}"
    return "|".join(properties[f"{pair}.topics"]), properties[f"{pair}.topics.exclude"]


def takes(site: Site, flow: dict[str, Any], topic: str) -> bool:
    return chooses(selection(site, flow), topic)


def chooses(selection: tuple[str, list[str]], topic: str) -> bool:
    chosen, left_out = selection
    return bool(re.fullmatch(chosen, topic)) and not any(
        re.fullmatch(pattern, topic) for pattern in left_out
    )


def reported(site: Site) -> dict[str, Any]:
    model = reports.mirror_report_model(site.model, "report")
    return {flow["name"]: flow for flow in model["flows"]}


def kept(site: Site, alias: str, separator: str) -> Iterator[str]:
    """Topics that steer what runs on a cluster, by Kafka's own rules."""
    for flow in site["flows"]:
        if flow["target"] == alias and flow["engine"] != "mm1":
            yield f"mm2-offset-syncs{separator}{flow['source']}{separator}internal"
            yield f"{flow['source']}{separator}checkpoints{separator}internal"
        if flow["target"] == alias and flow["engine"] == "mm2":
            for kind in ("configs", "offsets", "status"):
                yield f"mm2-{kind}.{flow['source']}.internal"
    named = site["connect_clusters"][f"connect-{alias}"]["topics"]
    for kind in ("config", "offsets", "status"):
        yield named.get(kind, f"connect-{alias}-{kind}")
    yield from ("connect-configs", "connect-offsets", "connect-new-status")


FLOW = st.builds(
    lambda engine, policy, topics, source, target: {
        **east_to_west(engine, "identity" if engine == "mm1" else policy, topics),
        "source": source,
        "target": target,
    },
    st.sampled_from(["mm1", "mm2", "mm2-connect"]),
    st.sampled_from(["identity", "prefix"]),
    st.sampled_from(SELECTIONS),
    st.sampled_from(ALIASES),
    st.sampled_from(ALIASES),
)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(FLOW, min_size=1, max_size=3), st.sampled_from(WORKER_TOPICS),
       st.sampled_from("._-"))  # fmt: skip
def test_no_flow_takes_a_control_topic_under_the_name_it_would_get(
    flows: list[dict[str, Any]], theirs: dict[str, str], separator: str
) -> None:
    flows = [{**flow, "name": f"flow{place}"} for place, flow in enumerate(flows)]
    site = site_of(*flows, theirs=theirs, **{"replication.policy.separator": separator})
    includes = reported(site)
    for flow in site["flows"]:
        told, include = selection(site, flow), includes[flow["name"]]["include"]
        prefix = flow["source"] + separator if flow["replication_policy"] == "prefix" else ""
        of_target = kept(site, flow["target"], separator)
        taken = {name.removeprefix(prefix) for name in of_target if name.startswith(prefix)}
        for topic in taken | set(kept(site, flow["source"], separator)):
            if topic:
                assert not chooses(told, topic), (flow, topic)
                assert not re.fullmatch(include, topic), (flow, topic)


@pytest.mark.parametrize(("engine", "policy"), [
    ("mm1", "identity"), ("mm2", "identity"), ("mm2", "prefix"), ("mm2-connect", "prefix"),
])  # fmt: skip
def test_what_nobody_keeps_is_taken(engine: str, policy: str) -> None:
    site = site_of(east_to_west(engine, policy, [".*"]), theirs=WORKER_TOPICS[1])
    for topic in ("orders", "mm2", "internal", "connect", "connect-orders", "checkpoints",
                  "payments.internal", "a" * 200):  # fmt: skip
        assert takes(site, site.flow, topic), topic


@pytest.mark.parametrize("engine", ["mm2", "mm2-connect"])
def test_a_name_that_becomes_too_long_is_left_out(engine: str) -> None:
    site = site_of(east_to_west(engine, "prefix", [".*"]), theirs=WORKER_TOPICS[1])
    assert takes(site, site.flow, "x" * (249 - len("east.")))
    assert not takes(site, site.flow, "x" * (250 - len("east.")))
    site.flow["topics"] = ["x" * 245]
    [error] = site.validate()["errors"]
    assert "would have 250 letters" in error


@pytest.mark.parametrize("engine", ["mm2", "mm2-connect"])
@pytest.mark.parametrize(
    ("version", "warned"), [("3.8.1", True), ("3.9.2", True), ("4.3.1", False)]
)
def test_heartbeats_that_nothing_leaves_out_are_warned_of(
    engine: str, version: str, warned: bool
) -> None:
    site = site_of(east_to_west(engine, "prefix", ["orders"]), theirs=WORKER_TOPICS[1])
    owners = site["instances"].values() if engine == "mm2" else [
        site["connect_clusters"]["connect-west"]
    ]  # fmt: skip
    for owner in owners:
        owner["kafka_version"] = version
    said = [line for line in site.validate()["warnings"] if "heartbeats" in line]
    assert len(said) == warned
    assert not warned or "use 4.3.1" in said[0]


@pytest.mark.parametrize("engine", ["mm1", "mm2", "mm2-connect"])
def test_another_owner_changes_no_mirror(engine: str) -> None:
    site = site_of(east_to_west(engine, "identity", [".*"]), theirs=WORKER_TOPICS[1])
    before = selection(site, site.flow)
    site["connect_clusters"]["connect-new"] = {"kafka": "west", "hosts": ["mirror2"]}
    site["flows"].append({**east_to_west("mm2", "prefix", ["refunds"]), "name": "more",
                          "source": "west", "target": "east"})  # fmt: skip
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    assert selection(site, site.flow) == before


@pytest.mark.parametrize("engine", ["mm1", "mm2"])
def test_names_alone_change_nothing(engine: str) -> None:
    """A flow that names all its topics is validated by name, and its mirror goes on as it is."""
    site = site_of(east_to_west(engine, "identity", ["orders", "a.b"]), theirs=WORKER_TOPICS[1])
    chosen, left_out = selection(site, site.flow)
    assert chosen == r"orders|a\.b"
    assert left_out in ([], [r"mm2.*\.internal", r".*\.replica", "__.*"])


def test_a_topic_that_only_looks_like_one_is_taken_when_it_is_named() -> None:
    flow = east_to_west("mm1", "identity", ["connect-orders-status", ".*-.*"])
    site = site_of(flow, theirs=WORKER_TOPICS[1])
    assert site.validate()["errors"] == []
    assert takes(site, site.flow, "connect-orders-status")
    assert not takes(site, site.flow, "connect-configs")
    assert not takes(site, site.flow, "mm2-offsets.east.internal")


@pytest.mark.parametrize(("engine", "policy", "topic", "name"), [
    ("mm1", "identity", "connect-configs", "connect-configs"),
    ("mm1", "identity", "theirs", "theirs"),
    ("mm2", "identity", "connect-configs", "connect-configs"),
    ("mm2", "prefix", "kept", "east.kept"),
    ("mm2-connect", "identity", "theirs", "theirs"),
])  # fmt: skip
def test_a_control_topic_cannot_be_named(engine: str, policy: str, topic: str, name: str) -> None:
    theirs = {"config": "connect-configs", "offsets": "east.kept", "status": "theirs"}
    site = site_of(east_to_west(engine, policy, [topic]), theirs=theirs)
    assert any(
        "mirror_flows[orders].topics" in error
        and f"'{name}' on 'west' is where kafka_connect_clusters.connect-west keeps" in error
        for error in site.validate()["errors"]
    )


def test_topics_of_another_mirror_cannot_be_named(mm2_site: Site) -> None:
    named = ["mm2-configs.east.internal"]
    mm2_site["flows"].append({**east_to_west("mm1", "identity", named), "name": "legacy"})
    mm2_site["instances"]["mirrormaker-legacy"] = {"hosts": ["mirror1"], "flows": ["legacy"]}
    refused(mm2_site, "mirror_flows[legacy].topics", "'mm2-configs.east.internal'",
            "mirrormaker_instances.mirrormaker keeps its state")  # fmt: skip


def aliased(site: Site) -> None:
    """Give the target a second alias, under which a Connect cluster keeps its state."""
    servers = ["other:9092", "WEST:9092"]
    site["clusters"]["west2"] = {"bootstrap_servers": ["west-b:9092", "other:9092"]}
    site["clusters"]["west3"] = {"bootstrap_servers": servers}
    site["connect_clusters"]["connect-theirs"] = {
        "kafka": "west2", "rest": {"urls": ["https://c:1"]}, "group_id": "workers",
        "topics": {"config": "settings", "offsets": "places", "status": "states"},
    }  # fmt: skip


@pytest.mark.parametrize("engine", ["mm1", "mm2", "mm2-connect"])
def test_aliases_that_share_a_broker_are_one_cluster(engine: str) -> None:
    site = site_of(east_to_west(engine, "identity", [".*"]), theirs={})
    assert takes(site, site.flow, "settings")
    aliased(site)
    for topic in ("settings", "places", "states"):
        assert not takes(site, site.flow, topic), topic
        assert not re.fullmatch(reported(site)["orders"]["include"], topic)
    site.flow["topics"] = ["settings"]
    assert any("'settings' on 'west' is where kafka_connect_clusters.connect-theirs keeps" in error
               for error in site.validate()["errors"])  # fmt: skip


def test_nobody_reads_what_workers_keep_under_another_alias(mm2: Site) -> None:
    mm2.flow.update({"topics": [".*"], "replication_policy": "identity"})
    aliased(mm2)
    west = mm2["clusters"]["west"]
    for alias in ("west2", "west3"):
        mm2["clusters"][alias] = {**west, "bootstrap_servers": ["west1:9092"]}
    denied = {
        (row["cluster"], row["principal"], row["operation"]) for row in of_permissions(mm2)
        if row.get("deny") and row["name"] == "settings"
    }  # fmt: skip
    # As mirror the workers know their own topics.
    assert denied == {("west", "User:mirror-report", "READ")}


def test_checkpoints_cannot_be_named_where_they_would_become_the_flow_s_own(mm2_site: Site) -> None:
    mm2_site.flow["topics"] = ["checkpoints.internal"]
    refused(mm2_site, "'east.checkpoints.internal' on 'west'", "remove 'checkpoints.internal'")


# Groups


def synced(site: Site, flow: dict[str, Any], group: str) -> bool:
    found = site.process().properties["mm2.properties"]
    pair = f"{flow['source']}->{flow['target']}"
    left_out = found.get(f"{pair}.groups.exclude", ["console-consumer-.*", "connect-.*", "__.*"])
    assert reported(site)[flow["name"]]["groups_exclude"] == left_out
    return any(re.fullmatch(each, group) for each in found[f"{pair}.groups"]) and not any(
        re.fullmatch(each, group) for each in left_out
    )


@pytest.mark.parametrize("chosen", [None, ["old-.*"], "old-.*, test"])
def test_no_position_of_an_owner_is_overwritten(mm2_site: Site, chosen: Any) -> None:
    mm2_site["flows"].append({"name": "back", "engine": "mm1", "source": "west", "target": "north",
                              "topics": ["refunds"], "group_id": "legacy"})  # fmt: skip
    mm2_site["instances"]["mirrormaker-back"] = {"hosts": ["mirror1"], "flows": ["back"]}
    mm2_site["connect_clusters"]["connect-theirs"] = {
        "kafka": "west", "group_id": "workers", "topics": WORKER_TOPICS[1],
        "rest": {"urls": ["https://c:1"]},
    }  # fmt: skip
    mm2_site.flow["consumer_groups"] = ["billing", ".*"]
    if chosen:
        mm2_site.flow["properties"] = {"groups.exclude": chosen}
    assert mm2_site.validate()["errors"] == []
    for group in ("legacy", "workers", "connect-some-sink", "connect", "mirrormaker-new",
                  "east-mm2", "north-mm2"):  # fmt: skip
        assert not synced(mm2_site, mm2_site.flow, group), group
    assert synced(mm2_site, mm2_site.flow, "billing")
    assert synced(mm2_site, mm2_site.flow, "old-app") is not bool(chosen)


def test_a_group_of_an_owner_cannot_be_named(mm2_site: Site) -> None:
    mm2_site["flows"].append({"name": "back", "engine": "mm1", "source": "west", "target": "north",
                              "topics": ["refunds"]})  # fmt: skip
    mm2_site["instances"]["mirrormaker-back"] = {"hosts": ["mirror1"], "flows": ["back"]}
    mm2_site.flow["consumer_groups"] = ["mirrormaker-back"]
    refused(mm2_site, "mirror_flows[orders].consumer_groups: 'mirrormaker-back'",
            "mirrormaker_instances.mirrormaker-back")  # fmt: skip


def test_a_sink_that_is_named_follows_if_kafka_s_own_exclusion_is_lifted(mm2_site: Site) -> None:
    mm2_site.flow["consumer_groups"] = ["connect-sink", "app-.*"]
    mm2_site.flow["properties"] = {"groups.exclude": "test-.*"}
    assert mm2_site.validate()["errors"] == []
    assert synced(mm2_site, mm2_site.flow, "connect-sink")
    assert not synced(mm2_site, mm2_site.flow, "app-mm2")


# Others


@pytest.mark.parametrize(("change", "warned"), [
    ({"topics": [".*"]}, ["_schemas", "_confluent...", "__..."]),
    ({"topics": ["_.*"], "topics_exclude": ["_confluent.*"]}, ["_schemas", "__..."]),
    ({"topics": ["_schemas"]}, []),
    ({"topics": ["_schemas", "a.*"]}, []),
])  # fmt: skip
def test_topics_of_other_systems_are_warned_of(
    mm1: Site, change: dict[str, Any], warned: list[str]
) -> None:
    mm1.flow.update(change)
    found = mm1.validate()
    assert found["errors"] == []
    told = [w for w in found["warnings"] if "others keep their state" in w]
    assert len(told) == bool(warned)
    assert all(word in told[0] for word in warned)
    assert warned == [w for w in ("_schemas", "_confluent...", "__...") if told and w in told[0]]


# Permissions


def test_no_permission_is_asked_for_what_is_left_out(mm1: Site) -> None:
    mm1.flow["topics"] = ["(?:orders|connect-configs|mm2-offsets\\.a\\.internal)"]
    rows = permissions.mirror_permissions(mm1.model)
    assert {row["name"] for row in rows if row["resource"] == "topic"} == {"orders"}


# Patterns


PATTERN = st.sampled_from([
    "a.*", ".+[._-]c[._-]+i", "c(?:-[a-z0-9]+)*-(?:s?|t)", "a|bc|b", "(?:ab)+", "a{3}b?", "a.b",
])  # fmt: skip


@given(PATTERN, st.text("abcis.-", max_size=3), st.text("abcis.-", min_size=1, max_size=6))
@settings(deadline=None, max_examples=500)
def test_what_follows_a_beginning(pattern: str, beginning: str, rest: str) -> None:
    whole = re.fullmatch(regex.as_regex(pattern), beginning + rest)
    after = regex.after(pattern, beginning)
    for each in after:
        regex.parsed(each)
    assert bool(whole) == any(re.fullmatch(regex.as_regex(each), rest) for each in after)


# Who may read what steers workers


def of_permissions(site: Site) -> list[dict[str, Any]]:
    return permissions.mirror_permissions(site.model)


@pytest.mark.parametrize("policy", ["identity", "prefix"])
@pytest.mark.parametrize("topics", [[".*"], ["connect.*"], ["orders"]])
def test_nobody_but_workers_may_read_their_configuration(
    connect_site: Site, policy: str, topics: list[str]
) -> None:
    """It holds the key by which Connect takes orders without a password."""
    connect_site.flow.update({"topics": topics, "replication_policy": policy})
    kept = {"west": "connect-west-config", "east": "connect-east-config"}
    rows = of_permissions(connect_site)
    wide = [
        row for row in rows
        if row["operation"] == "READ" and row["resource"] == "topic" and not row.get("deny")
        and row["identity"] == "report"
        and (row["name"] == "*" or kept[row["cluster"]].startswith(row["name"]))
    ]  # fmt: skip
    denied = {(row["cluster"], row["principal"], row["name"]) for row in rows if row.get("deny")}
    assert denied == {(row["cluster"], row["principal"], kept[row["cluster"]]) for row in wide}
    assert {row["cluster"] for row in wide} == (
        set() if topics == ["orders"] else {"east"} if policy == "prefix" else {"east", "west"}
    )
    commands = permissions.to_kafka_acls(rows, connect_site.model)
    for alias, principal, name in denied:
        [command] = [one for one in commands[alias] if "--deny-principal" in one]
        assert f"--deny-principal {principal} --operation Read --topic {name} " in command


def test_workers_are_not_denied_their_own_topic(connect_site: Site) -> None:
    connect_site.flow.update({"topics": [".*"], "replication_policy": "identity"})
    for cluster in connect_site["clusters"].values():
        cluster.get("identities", {}).pop("report", None)
    assert not [row for row in of_permissions(connect_site) if row.get("deny")]
