"""Every command against two real clusters and a consumer group that mirrors for real."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import NewTopic
from pairs import Pair, admin, kinds, member, need, produce

from mirror_report import cli
from mirror_report.baseline.record import record_baselines
from mirror_report.check.flows import check_flows
from mirror_report.config import Cluster, Settings
from mirror_report.confirm import flows as confirm
from mirror_report.confirm.flows import confirm_flows
from mirror_report.groups.moving import examine_groups
from mirror_report.kafka import groups
from mirror_report.kafka.connection import AuthenticationError, DeniedError
from mirror_report.kafka.metadata import connect
from mirror_report.lag.measure import measure_lag
from mirror_report.report.make import make_report
from mirror_report.state.history import History
from mirror_report.state.store import StateError


def test_lag_of_a_stopped_mirror_equals_what_was_produced(mirrored: Pair) -> None:
    result = measure_lag(mirrored.settings(), mirrored.store())
    rows = {row.partition: row for row in result.rows}
    assert (rows[0].lag_records, rows[0].state) == (3, "STOPPED")
    assert (rows[1].lag_records, rows[1].state) == (0, "IDLE")
    assert rows[0].lag_seconds is not None
    assert 0 <= rows[0].lag_seconds < 120
    assert [(finding.kind, finding.count) for finding in result.findings] == [("stopped", 3)]


def test_lag_of_a_mirror_that_is_through_is_zero(mirrored: Pair) -> None:
    mirrored.mirror(3)
    result = measure_lag(mirrored.settings(), mirrored.store())
    assert [row.lag_records for row in result.rows] == [0, 0]
    assert kinds(result.findings) == ["not_running"]


def test_groups_of_a_flow_that_takes_none_along_are_not_whole(mirrored: Pair) -> None:
    found = examine_groups(mirrored.settings(), None, lambda _: None)
    assert [(finding.kind, finding.severity) for finding in found.findings] == [
        ("no_groups", "warning")
    ]
    assert "MirrorMaker 1 takes no groups along" in found.findings[0].message


def test_lag_leaves_a_history(mirrored: Pair) -> None:
    measure_lag(mirrored.settings(), mirrored.store())
    (line,) = History(mirrored.settings().state_directory, 30).lines("f")
    assert line["seen"][mirrored.topic] == [0, 10, 7, None, 1, 0, 0, None]


def test_running_mirror_that_does_not_move_is_stalled(running: Pair) -> None:
    settings = running.settings(warn={"stalled_seconds": 1})
    measure_lag(settings, running.store())
    time.sleep(1.2)
    assert kinds(measure_lag(settings, running.store()).findings) == ["stalled"]


def test_records_deleted_before_they_were_mirrored_are_lost_by_number(mirrored: Pair) -> None:
    with admin(mirrored.source) as client:
        client.delete_records({TopicPartition(mirrored.topic, 0): 9})
    found = {finding.kind: finding.count for finding in measure_lag(mirrored.settings(),
                                                        mirrored.store()).findings}  # fmt: skip
    assert found == {"truncated": 2, "stopped": 1}


def test_recreated_source_topic_is_a_reset(mirrored: Pair) -> None:
    record_baselines(mirrored.settings(), None, full_history=False, renew=False)
    mirrored.delete("source")
    mirrored.create("source")
    mirrored.produce(20)
    found = measure_lag(mirrored.settings(), mirrored.store()).findings
    assert kinds(found) == ["reset"]
    record_baselines(mirrored.settings(), None, full_history=False, renew=True)
    found = measure_lag(mirrored.settings(), mirrored.store()).findings
    assert "reset" not in kinds(found)


def test_recreated_target_topic_is_a_reset(mirrored: Pair) -> None:
    mirrored.mirror(3)
    record_baselines(mirrored.settings(), None, full_history=False, renew=False)
    mirrored.delete("target")
    mirrored.create("target")
    assert kinds(measure_lag(mirrored.settings(), mirrored.store()).findings) == [
        "not_running",
        "reset",
    ]


@pytest.mark.usefixtures("no_spark")
def test_topic_ids_first_seen_by_a_run_are_remembered(mirrored: Pair) -> None:
    mirrored.mirror(3)
    make_report(mirrored.settings(), None, lambda _: None)
    mirrored.delete("target")
    mirrored.create("target")
    assert kinds(measure_lag(mirrored.settings(), mirrored.store()).findings) == [
        "not_running",
        "reset",
    ]


@pytest.mark.usefixtures("no_spark")
def test_a_topic_that_the_target_had_before_the_source_is_foreign_until_a_baseline_takes_it(
    mirrored: Pair,
) -> None:
    late = f"{mirrored.topic}-late"
    mirrored.flow = {"topics": [f"{mirrored.topic}.*"], "include": f"{mirrored.topic}.*"}
    settings = mirrored.settings()
    record_baselines(settings, None, full_history=False, renew=False)

    def foreign(findings: Any) -> list[str]:
        return [found.topic for found in findings if found.kind == "foreign_topic"]

    for bootstrap, count in ((mirrored.target, 3), (mirrored.source, 1)):
        with admin(bootstrap) as client:
            client.create_topics([NewTopic(late, 1, 1)])
            client.wait_for_topics([late])
        produce(bootstrap, late, count)
        report = make_report(settings, None, lambda _: None)
    assert foreign(report.findings) == [late]
    assert foreign(make_report(settings, None, lambda _: None).findings) == [late]
    assert foreign(check_flows(settings).findings) == [late]
    record_baselines(settings, "f", full_history=False, renew=True, topic=late)
    assert foreign(make_report(settings, None, lambda _: None).findings) == []
    assert foreign(check_flows(settings).findings) == []


def test_check_of_a_good_flow_finds_nothing(running: Pair) -> None:
    checked = check_flows(running.settings())
    assert checked.findings == []
    (flow,) = checked.flows
    assert flow.source_cluster_id != flow.target_cluster_id


def test_check_tells_a_state_that_it_cannot_read(running: Pair) -> None:
    running.store().commit("baseline", {})
    [manifest] = running.settings().state_directory.rglob("baseline*.json")
    manifest.write_text("{")
    (found,) = check_flows(running.settings()).findings
    assert (found.severity, f"{manifest.name} is damaged" in found.message) == ("unknown", True)


def test_check_tells_that_nobody_mirrors(mirrored: Pair) -> None:
    (found,) = check_flows(mirrored.settings()).findings
    assert (found.severity, found.kind) == ("warning", "not_running")
    assert f"group {mirrored.group} has no member" in found.message


def test_check_tells_a_cluster_mirrored_into_itself(mirrored: Pair) -> None:
    mirrored.target = mirrored.source
    assert "same_cluster" in kinds(check_flows(mirrored.settings()).findings)


def test_a_topic_that_the_target_cannot_create_is_named_for_that_alone(mirrored: Pair) -> None:
    """Where nobody creates topics on the target, it is missing there, too: no second cure."""
    mirrored.flow = {"topics": [f"{mirrored.topic}.*"], "include": f"{mirrored.topic}.*"}
    for bootstrap, letter in ((mirrored.source, "."), (mirrored.target, "_")):
        with admin(bootstrap) as client:
            client.create_topics([NewTopic(f"{mirrored.topic}{letter}x", 1, 1)])
            client.wait_for_topics([f"{mirrored.topic}{letter}x"])
    found = [
        finding.kind
        for finding in check_flows(mirrored.settings()).findings
        if finding.topic == f"{mirrored.topic}.x"
    ]
    assert found == ["name_collides"]


def test_check_tells_a_topic_missing_on_the_target(pair: Pair) -> None:
    pair.create("source")
    assert kinds(check_flows(pair.settings()).findings) == ["topic_missing"]


def test_check_tells_that_nothing_matches(pair: Pair) -> None:
    assert kinds(check_flows(pair.settings()).findings) == ["no_topics"]


def test_check_tells_what_the_target_cannot_hold(pair: Pair) -> None:
    pair.create("source", partitions=3)
    configs = {"cleanup.policy": "compact", "max.message.bytes": "1000"}
    pair.create("target", partitions=1, **configs)
    assert kinds(check_flows(pair.settings()).findings) == [
        "compact_null_keys", "message_size", "partitions_fewer",
    ]  # fmt: skip


def test_check_refuses_a_regex_into_a_cluster_that_creates_nothing(running: Pair) -> None:
    regex = f"{running.topic}.*"
    running.flow = {"topics": [regex], "include": regex}
    assert kinds(check_flows(running.settings()).findings) == ["regex_without_auto_creation"]
    running.flow["accept"] = ["regex-without-auto-creation:f"]
    assert check_flows(running.settings()).findings == []


def test_check_asks_the_target_whether_it_creates_topics(
    pair: Pair, auto_creating_broker: str
) -> None:
    pair.target = auto_creating_broker
    pair.create("source")
    regex = f"{pair.topic}.*"
    pair.flow = {"topics": [regex], "include": regex}
    assert check_flows(pair.settings()).findings == []


def test_check_without_known_permissions_says_so(running: Pair) -> None:
    running.flow = {"permissions": []}
    (found,) = check_flows(running.settings()).findings
    assert (found.severity, found.kind) == ("warning", "permission_unknown")


def test_check_tells_an_edited_environment_file(running: Pair) -> None:
    path = running.directory / "sysconfig"
    path.write_text('MM_INCLUDE="somethingelse"\n')
    running.flow = {"sysconfig": str(path)}
    assert kinds(check_flows(running.settings()).findings) == ["sysconfig_drift"]
    path.write_text(f'MM_INCLUDE="{running.topic}"\n')
    assert check_flows(running.settings()).findings == []


def sasl(user: str) -> dict[str, Any]:
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "username": user}


@pytest.fixture
def as_user(
    source_broker: Any, sasl_users: Mapping[str, str]
) -> Callable[[Pair, str, str | None], Settings]:
    """Settings that log in to the source as somebody whom ACLs apply to."""

    def settings(pair: Pair, user: str, password: str | None = None) -> Settings:
        pair.source = source_broker.sasl
        pair.clusters = {"east": sasl(user)}
        rows = [need("group", pair.group, "DESCRIBE"), need("topic", pair.topic, "READ")]
        pair.flow = {"permissions": rows}
        secret = sasl_users[user] if password is None else password
        return pair.settings(credentials={"east.report.password": secret})

    return settings


def allow(bootstrap: str, user: str, *rules: tuple[str, str, str]) -> None:
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        ResourcePattern,
        ResourceType,
    )

    with admin(bootstrap) as client:
        client.create_acls(
            [
                ACL(
                    f"User:{user}", "*", ACLOperation[operation], ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType[kind], name, ACLResourcePatternType.LITERAL),
                )
                for kind, name, operation in rules
            ]
        )  # fmt: skip


def test_wrong_password_is_refusal_not_absence(
    mirrored: Pair, as_user: Callable[..., Settings], capfd: pytest.CaptureFixture[str]
) -> None:
    settings = as_user(mirrored, "reader", "wrong-s3cret")
    with (
        pytest.raises(AuthenticationError, match=r"refuses identity report \(user reader"),
        connect(settings.clusters["east"], settings.credentials),
    ):
        pass
    assert kinds(check_flows(settings).findings) == ["authentication"]
    out, err = capfd.readouterr()
    assert (out, err) == ("", ""), "the client library's own log stays quiet"


def test_forbidden_topic_and_group_are_named_permissions(
    mirrored: Pair, as_user: Callable[..., Settings]
) -> None:
    plain, group = mirrored.source, mirrored.group
    settings = as_user(mirrored, "nobody")
    with (
        connect(settings.clusters["east"], settings.credentials) as client,
        pytest.raises(DeniedError, match=rf"DESCRIBE on groups {group}"),
    ):
        groups.committed(client, [group])
    assert kinds(check_flows(settings).findings) == ["missing_permission"] * 2
    allow(plain, "nobody", ("GROUP", group, "DESCRIBE"))
    (found,) = check_flows(settings).findings
    assert (found.severity, found.kind, found.topic) == (
        "unknown", "missing_permission", mirrored.topic,
    )  # fmt: skip
    assert f"User:nobody (identity report) lacks READ on topic {mirrored.topic}" in found.message


def test_password_with_hostile_characters_logs_in_and_read_is_missed(
    mirrored: Pair, as_user: Callable[..., Settings]
) -> None:
    plain, topic = mirrored.source, mirrored.topic
    settings = as_user(mirrored, "reader")
    allow(
        plain, "reader", ("GROUP", mirrored.group, "DESCRIBE"), ("TOPIC", topic, "DESCRIBE"),
    )  # fmt: skip
    lacking, hidden, stopped = check_flows(settings).findings
    assert (lacking.kind, hidden.kind, stopped.kind) == (
        "missing_permission", "not_checked", "not_running",
    )  # fmt: skip
    assert "lacks READ" in lacking.message
    assert f"settings of {topic} on east" in hidden.message
    rules = (("TOPIC", topic, "READ"), ("TOPIC", topic, "DESCRIBE_CONFIGS"))
    allow(plain, "reader", *rules)
    assert kinds(check_flows(settings).findings) == ["not_running"]
    result = measure_lag(settings, mirrored.store())
    assert [row.lag_records for row in result.rows] == [3, 0]


def test_confirm_fails_if_records_wait_and_the_position_stays(running: Pair) -> None:
    (found,) = confirm_flows(running.settings(), "f", ["localhost"], 5, lambda _: None).flows
    assert (found.ok, found.flowing) == (False, False)
    assert "3 records wait" in found.text


def test_confirm_is_content_with_an_idle_mirror(pair: Pair) -> None:
    pair.create("source")
    with member(pair):
        (found,) = confirm_flows(pair.settings(), "f", [], 20, lambda _: None).flows
    assert (found.ok, found.flowing) == (True, None)
    assert "flow not observed" in found.text


def test_confirm_sees_records_flow(mirrored: Pair) -> None:
    with member(mirrored) as commits:

        def progress(text: str) -> None:
            if "watching the position" in text:
                commits.set()

        (found,) = confirm_flows(mirrored.settings(), "f", ["localhost"], 20, progress).flows
    assert (found.ok, found.flowing) == (True, True)


def test_confirm_fails_without_an_own_member(running: Pair) -> None:
    (found,) = confirm_flows(running.settings(), "f", ["192.0.2.7"], 2, lambda _: None).flows
    assert not found.ok
    assert "expected one from 192.0.2.7" in found.text


def test_confirm_asks_for_addresses_until_a_name_resolves(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def not_yet(host: str, cluster: Cluster) -> set[str]:
        asked.append(host)
        return groups.addresses("localhost", cluster) if len(asked) > 1 else set()

    monkeypatch.setattr(confirm, "addresses", not_yet)
    pair.create("source")
    with member(pair):
        (found,) = confirm_flows(pair.settings(), "f", ["elsewhere"], 20, lambda _: None).flows
    assert found.ok
    assert len(asked) > 1


def test_confirm_fails_when_nobody_mirrors(mirrored: Pair) -> None:
    (found,) = confirm_flows(mirrored.settings(), "f", [], 1, lambda _: None).flows
    assert not found.ok
    assert f"unassigned: {mirrored.topic}-0" in found.text


def test_baseline_of_a_new_mirror_starts_at_both_logs(pair: Pair) -> None:
    pair.create("source")
    pair.create("target")
    pair.produce(5)
    produce(pair.target, pair.topic, 2)
    assert record_baselines(pair.settings(), None, full_history=False, renew=False) == {"f": True}
    entry = pair.store().load("baseline")["f"]
    recorded = entry["topics"][pair.topic]
    assert entry["group_existed"] is False
    assert recorded["source"] == recorded["required"] == {"0": 0, "1": 0}
    assert recorded["target"] == {"0": 2, "1": 0}
    assert recorded["sought"] == {"0": 0, "1": 0}, "five records may have been copied"


def test_baseline_of_a_new_latest_mirror_starts_at_the_source_end(pair: Pair) -> None:
    pair.flow = {"start": "latest"}
    pair.create("source")
    pair.produce(5)
    record_baselines(pair.settings(), None, full_history=False, renew=False)
    recorded = pair.store().load("baseline")["f"]["topics"][pair.topic]
    assert recorded["source"] == recorded["required"] == {"0": 5, "1": 0}
    assert (recorded["target"], recorded["target_id"]) == ({}, None)


def test_baseline_of_a_mirror_that_stands_still_starts_at_its_position(mirrored: Pair) -> None:
    record_baselines(mirrored.settings(), None, full_history=False, renew=False)
    entry = mirrored.store().load("baseline")["f"]
    recorded = entry["topics"][mirrored.topic]
    assert entry["group_existed"] is True
    assert recorded["source"] == recorded["required"] == {"0": 7, "1": 0}
    assert recorded["target"] == {"0": 7, "1": 0}
    assert recorded["untouched"] == {"0": 10, "1": 0}


def test_baseline_of_another_release_is_refused_with_the_command_that_renews_it(
    mirrored: Pair,
) -> None:
    settings = mirrored.settings()
    record_baselines(settings, None, full_history=False, renew=False)
    recorded = mirrored.store().load("baseline")
    del recorded["f"]["topics"][mirrored.topic]["required"]
    mirrored.store().commit("baseline", recorded)
    with pytest.raises(StateError, match="mirror-report baseline --flow f --renew"):
        record_baselines(settings, None, full_history=False, renew=False)
    assert mirrored.store().load("baseline") == recorded
    assert record_baselines(settings, None, full_history=False, renew=True) == {"f": True}


def test_a_state_and_a_baseline_of_another_release_are_refused_once_with_one_command(
    mirrored: Pair,
) -> None:
    """And what the last report knew to be lost is named until a baseline accepts it."""
    settings, store = mirrored.settings(), mirrored.store()
    record_baselines(settings, None, full_history=False, renew=False)
    recorded = store.load("baseline")
    del recorded["f"]["topics"][mirrored.topic]["required"]
    store.commit("baseline", recorded)
    store.commit("parity", {"format": 1})
    row = {"flow": "f", "topic": mirrored.topic, "source_topic": mirrored.topic, "partitions": {},
           "counts": {"missing": 10}}  # fmt: skip
    known = {"generated_at": "2100-01-01T00:00:00Z", "parity": [row], "findings": []}
    store.write_report("latest.json", json.dumps(known))
    report = make_report(settings, None, lambda _: None)
    (refused,) = [found for found in report.findings if found.kind == "parity_unavailable"]
    assert refused.action.startswith("Record where verification starts: mirror-report baseline")
    assert "mv " not in refused.action
    (lost,) = [found for found in report.findings if found.kind == "missing"]
    assert (lost.severity, lost.count, report.verdict.exit_code) == ("critical", 10, 2)

    said: list[str] = []
    record_baselines(settings, None, full_history=False, renew=True, progress=said.append)
    assert [text for text in said if text.startswith("accepted")] == [
        f"accepted, and reported no more: f/{mirrored.topic}: "
        "10 records of the source are not on the target"
    ]
    assert store.load("parity") == {}
    assert (store.directory / "parity.json.former").exists()


def test_a_flow_that_joins_later_renews_the_topics_it_shares(mirrored: Pair) -> None:
    """Another cluster brings the same topic: both begin at one end of the target."""
    (flow,) = mirrored.document()["flows"]
    joined = {**flow, "name": "g", "source": "north", "group_id": "north", "permissions": []}
    clusters = mirrored.document()["clusters"]
    settings = mirrored.settings(
        flows=[flow, joined], clusters={**clusters, "north": clusters["east"]}
    )
    asked = {"full_history": False, "renew": False}
    assert record_baselines(settings, "f", **asked) == {"f": True}
    first = mirrored.store().load("baseline")["f"]
    mirrored.mirror(2)
    said: list[str] = []
    assert record_baselines(settings, "g", progress=said.append, **asked) == {"g": True}
    assert said == [
        f"flow f feeds {mirrored.topic} too: verification of it starts again for all that feed it"
    ]
    recorded = mirrored.store().load("baseline")
    ours, theirs = (recorded[name]["topics"][mirrored.topic] for name in "fg")
    assert ours["target"] == theirs["target"] == {"0": 9, "1": 0}
    assert (ours["source"], theirs["source"]) == ({"0": 9, "1": 0}, {"0": 0, "1": 0})
    assert recorded["f"]["recorded_at_ms"] == first["recorded_at_ms"]
    assert ours["recorded_at_ms"] > first["topics"][mirrored.topic]["recorded_at_ms"]
    said.clear()
    assert record_baselines(settings, None, progress=said.append, **asked) == {
        "f": False, "g": False,
    }  # fmt: skip
    assert said == []


def test_full_history_takes_back_no_loss(mirrored: Pair) -> None:
    """What the source dropped above the position of a mirror that stands still stays a loss."""
    mirrored.produce(5)
    with admin(mirrored.source) as client:
        client.delete_records({TopicPartition(mirrored.topic, 0): 10})
    settings = mirrored.settings()
    for _ in range(2):
        record_baselines(settings, None, full_history=True, renew=False)
        measured = measure_lag(settings, mirrored.store())
        (found,) = [finding for finding in measured.findings if finding.kind == "truncated"]
        assert found.count == 3
    recorded = mirrored.store().load("baseline")["f"]["topics"][mirrored.topic]
    assert recorded["older"] == {"0": 7, "1": 0}


def test_baseline_is_kept_until_told_otherwise(mirrored: Pair) -> None:
    settings = mirrored.settings()
    record_baselines(settings, None, full_history=False, renew=False)
    first = mirrored.store().load("baseline")
    mirrored.mirror(3)
    again = record_baselines(settings, None, full_history=False, renew=False)
    assert again == {"f": False}
    assert mirrored.store().load("baseline") == first
    assert record_baselines(settings, None, full_history=True, renew=False) == {"f": True}
    recorded = mirrored.store().load("baseline")["f"]["topics"][mirrored.topic]
    assert recorded["source"] == {"0": 0, "1": 0}
    assert recorded["target"] == recorded["required"] == {"0": 0, "1": 0}
    assert recorded["older"] == {}, "the source holds its first record still"


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a host where the report's Spark part is not installed."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for name in [module for module in sys.modules if module.startswith("mirror_report.parity")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("no_spark")
def test_run_that_saw_nothing_is_not_whole(pair: Pair) -> None:
    pair.create("source")
    pair.create("target")
    record_baselines(pair.settings(), None, full_history=False, renew=False)
    report = make_report(pair.settings(), None, lambda _: None)
    assert "nothing_seen" in kinds(report.findings)
    assert report.verdict.exit_code != 0


@pytest.mark.usefixtures("no_spark")
def test_run_writes_one_document_and_one_page(
    mirrored: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    path = mirrored.directory / "config.yaml"
    path.write_text(json.dumps(mirrored.document()))
    code = cli.main(["--config", str(path), "run", "--json"])
    out, err = capsys.readouterr()
    plain = json.loads(out)
    assert code == plain["verdict"]["exit_code"] == 2
    assert "stopped" in {finding["kind"] for finding in plain["findings"]}
    assert "comparing content" in err
    reports = mirrored.directory / "state" / "reports"
    assert {file.name for file in reports.iterdir()} == {
        "latest.json", "latest.html", f"{plain['run_id']}.json",
    }  # fmt: skip


@pytest.mark.usefixtures("no_spark")
def test_run_without_spark_says_how_to_install_it(mirrored: Pair) -> None:
    mirrored.mirror(3)
    report = make_report(mirrored.settings(), None, lambda _: None)
    assert report.verdict.exit_code == 3
    assert kinds(report.findings) == ["not_running", "parity_unavailable"]
    (found,) = [each for each in report.findings if each.kind == "parity_unavailable"]
    assert "package pyspark is missing" in found.message
    assert "pip install" in found.action
