"""As whom a mirror reaches its clusters: an identity of its own, or the one of all mirrors."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mirror_model.instances import mirror_connectors
from mirror_model.permissions import mirror_permissions, to_kafka_acls
from mirror_model.report import mirror_report_model

from tests.model.conftest import Site, refused

LOGIN = {"sasl_mechanism": "SCRAM-SHA-512", "username": "team", "password": "CANARY-team"}


def permissions(site: Site) -> list[dict[str, Any]]:
    return mirror_permissions(site.model)


@pytest.fixture
def teams(mm2_site: Site) -> Site:
    """Two instances that may write every topic of one target; one has an identity of its own."""
    mm2_site["clusters"]["west"] = {
        **copy.deepcopy(mm2_site["clusters"]["east"]), "bootstrap_servers": ["west1:9092"],
    }  # fmt: skip
    mm2_site["clusters"]["west"]["identities"]["team"] = LOGIN
    for flow in mm2_site["flows"]:
        flow |= {"topics": [".*"], "replication_policy": "identity", "consumer_groups": [".*"],
                 "properties": {"sync.topic.configs.enabled": True}}  # fmt: skip
    mm2_site["instances"] = {
        "mirrormaker": {"hosts": ["mirror1"], "flows": ["orders"], "identity": "team"},
        "mirrormaker-clicks": {"hosts": ["mirror1"], "flows": ["clicks"]},
    }
    return mm2_site


def test_process_has_the_login_of_its_identity_alone(teams: Site) -> None:
    own = teams.process("mirrormaker")
    assert "CANARY-team" in own.credentials["west.team.jaas"]
    # East has no such identity.
    assert "CANARY-east" in own.credentials["east.team.jaas"]
    assert not [name for name in own.credentials if ".mirror." in name]
    text = str(own.properties)
    assert "west.team.jaas" in text
    assert ".mirror.jaas" not in text
    other = teams.process("mirrormaker-clicks")
    assert "CANARY-team" not in str(other)
    assert "west.mirror.jaas" in other.credentials


def test_mirrormaker_1_connects_as_its_identity(site: Site) -> None:
    site["clusters"]["east"]["identities"]["team"] = LOGIN
    site.instance["identity"] = "team"
    assert site.validate()["errors"] == []
    own = site.process("mirrormaker")
    assert "CANARY-team" in own.credentials["east.team.jaas"]
    assert "east.team.jaas" in own.properties["consumer.properties"]["sasl.jaas.config"]


def test_workers_and_connectors_connect_as_their_identity(connect_site: Site) -> None:
    for alias in ("east", "west"):
        connect_site["clusters"][alias]["identities"]["team"] = LOGIN
    connect_site["connect_clusters"]["connect-west"]["identity"] = "team"
    assert connect_site.validate()["errors"] == []
    own = connect_site.process("connect-west")
    assert "west.team.jaas" in str(own.properties)
    assert {"east.team.jaas", "west.team.jaas"} <= set(own.credentials)
    (copies, *_) = mirror_connectors(connect_site.model, "connect-west", {}, {},
    )  # fmt: skip
    assert "east.team.jaas" in copies["config"]["source.cluster.sasl.jaas.config"]


def test_no_identity_may_alter_what_another_owner_keeps(teams: Site) -> None:
    denied = {
        (row["principal"], row["resource"], row["name"], row["operation"])
        for row in permissions(teams)
        if row.get("deny")
    }
    team, mirror = "User:team", "User:mirror"
    theirs = {"mm2-offsets.east.internal", "mm2-status.east.internal", "mm2-configs.east.internal"}
    ours = {name.replace("east", "north") for name in theirs}
    for principal, others in ((team, ours), (mirror, theirs)):
        for name in others:
            for operation in ("WRITE", "CREATE", "ALTER", "ALTER_CONFIGS"):
                assert (principal, "topic", name, operation) in denied
        for name in (theirs | ours) - others:
            assert not [row for row in denied if row[0] == principal and row[2] == name]
    assert (team, "topic", "mm2-configs.north.internal", "READ") in denied
    assert (mirror, "topic", "mm2-configs.east.internal", "READ") in denied
    commands = to_kafka_acls(permissions(teams), teams.model)["west"]
    [line] = [
        line for line in commands
        if "--deny-principal User:team" in line and "--topic mm2-offsets.north.internal" in line
    ]  # fmt: skip
    for operation in ("Write", "Create", "Alter", "AlterConfigs"):
        assert f"--operation {operation} " in line


def test_nothing_is_denied_that_nobody_is_allowed(teams: Site) -> None:
    for flow in teams["flows"]:
        flow["properties"] = {}
    found = {
        (row["identity"], row["operation"]) for row in permissions(teams)
        if row.get("deny") and row["name"] == "mm2-offsets.east.internal"
    }  # fmt: skip
    assert found == {("mirror", each) for each in ("WRITE", "CREATE", "ALTER")}


def test_what_two_owners_keep_is_denied_to_neither(teams: Site) -> None:
    """Connectors of two owners from one source keep their offset syncs in one topic."""
    teams["flows"].append({
        **teams.flow, "name": "more", "engine": "mm2-connect", "connect": "connect",
        "topics": ["more.*"],
    })  # fmt: skip
    teams["connect_clusters"] = {"connect": {"kafka": "west", "hosts": ["mirror1"]}}
    for name in ("mm2-offset-syncs.east.internal", "east.checkpoints.internal"):
        assert not [
            row for row in permissions(teams)
            if row.get("deny") and row["name"] == name and row["identity"] in ("team", "mirror")
        ]  # fmt: skip


def test_mirrors_of_one_identity_are_denied_nothing(teams: Site) -> None:
    del teams["instances"]["mirrormaker"]["identity"]
    assert {row["principal"] for row in permissions(teams) if row.get("deny")} <= {
        "User:mirror-report"
    }


def test_the_check_before_a_start_asks_as_the_mirror(teams: Site) -> None:
    model = mirror_report_model(teams.model, "team", "orders")
    (flow,) = model["flows"]
    assert (flow["identity"], flow["worker_principal"]) == ("team", "User:team")
    assert model["clusters"]["west"]["username"] == "team"
    writes = [row for row in flow["permissions"] if row["operation"] == "WRITE"]
    assert writes, "what the mirror needs, not what the report does"


def test_identity_that_no_cluster_knows(teams: Site) -> None:
    teams["instances"]["mirrormaker"]["identity"] = "tem"
    refused(teams, "mirrormaker_instances.mirrormaker.identity", "did you mean 'team'?")
