"""Commands that need no Spark, with both clusters of a release that knows no topic ids."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pairs import Pair, admin, kinds, member, need, produce

from mirror_report.baseline.record import record_baselines
from mirror_report.check.flows import check_flows
from mirror_report.config import Cluster, Credentials
from mirror_report.confirm.flows import confirm_flows
from mirror_report.kafka import leader_epochs
from mirror_report.kafka.metadata import connect
from mirror_report.lag.measure import measure_lag
from mirror_report.model import ClusterSnapshot, EpochsAsked
from mirror_report.observe import open_clients, recognised, source_snapshot
from mirror_report.report.make import make_report

NUMBERS = itertools.count()
RELEASES = ["2.4.1", pytest.param("2.1.1", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=RELEASES)
def old_brokers(request: pytest.FixtureRequest, start_old_broker: Callable[[str], Any]) -> Any:
    """Two clusters of one release."""
    return request.param, start_old_broker(request.param), start_old_broker(request.param)


@pytest.fixture
def old(old_brokers: Any, tmp_path: Path) -> Pair:
    """Ten records, seven of them mirrored; the mirror is stopped."""
    _, source, target = old_brokers
    number = next(NUMBERS)
    pair = Pair(
        source.bootstrap, target.bootstrap, tmp_path, f"old-{number}", f"old-group-{number}"
    )
    pair.create("source")
    pair.create("target")
    pair.produce(10)
    pair.mirror(7)
    return pair


def test_lag_and_who_reads_are_those_of_a_new_cluster(old: Pair) -> None:
    settings = old.settings()
    result = measure_lag(settings, old.store(), topics=True)
    rows = {row.partition: row for row in result.rows}
    assert (rows[0].lag_records, rows[0].state) == (3, "STOPPED")
    assert rows[0].lag_seconds is not None
    assert [(finding.kind, finding.count) for finding in result.findings] == [("stopped", 3)]
    with member(old) as commits:
        commits.set()
        confirmed = confirm_flows(settings, None, [], 10, lambda _: None)
    assert confirmed.ok, confirmed


def test_an_unknown_id_is_no_reset_on_either_side(old: Pair) -> None:
    old.mirror(3)
    record_baselines(old.settings(), None, full_history=False, renew=False)
    for _ in range(2):
        assert kinds(measure_lag(old.settings(), old.store()).findings) == ["not_running"]


@pytest.mark.usefixtures("without_spark")
def test_a_report_is_made(old: Pair) -> None:
    report = make_report(old.settings(), None, lambda _: None)
    assert report.topics
    assert "reset" not in kinds(report.findings)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_topic_created_again_is_a_reset_even_if_it_is_longer(old: Pair, side: str) -> None:
    old.mirror(3)
    record_baselines(old.settings(), None, full_history=False, renew=False)
    old.delete(side)
    create_again(old, side)
    produce(old.source if side == "source" else old.target, old.topic, 20)
    for _ in range(2):
        assert "reset" in kinds(measure_lag(old.settings(), old.store()).findings)
    record_baselines(old.settings(), None, full_history=False, renew=True)
    assert "reset" not in kinds(measure_lag(old.settings(), old.store()).findings)


@pytest.mark.parametrize("first", ["earlier", "later"])
def test_observations_that_overlap_are_no_reset_in_either_order(old: Pair, first: str) -> None:
    settings = old.settings()
    with open_clients(settings, ["east", "west"]) as clients:
        recognised(settings, source_snapshot(clients, settings.flows[0]))
        earlier = source_snapshot(clients, settings.flows[0])
        old.produce(5)
        later = source_snapshot(clients, settings.flows[0])
    both = [earlier, later] if first == "earlier" else [later, earlier]
    ids = [recognised(settings, seen).topics[old.topic].topic_id for seen in both]
    assert ids[0] == ids[1]
    assert "reset" not in kinds(measure_lag(old.settings(), old.store()).findings)


def test_observations_of_several_processes_keep_the_marks_of_all(old: Pair) -> None:
    settings = old.settings()
    with open_clients(settings, ["east", "west"]) as clients:
        seen = source_snapshot(clients, settings.flows[0])
    names = [f"flow-{number}" for number in range(8)]

    def known_as(name: str) -> ClusterSnapshot:
        return replace(seen, topics={name: replace(seen.topics[old.topic], name=name)})

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: recognised(settings, known_as(name)), names))
    assert set(names) <= old.store().load("marks")["east"].keys()


def test_check_names_the_release_and_what_it_does_not_tell(old: Pair, old_brokers: Any) -> None:
    release, _, _ = old_brokers
    found = check_flows(old.settings()).findings
    told = [finding for finding in found if finding.kind == "broker_too_old"]
    assert [finding.severity for finding in told] == ["warning", "warning"]
    assert all(f"answers as Kafka {release[:3]} does" in finding.message for finding in told)
    assert all("a topic's id" in finding.message for finding in told)
    assert ("may do" in told[0].message) is (release == "2.1.1")


def test_a_target_that_alters_no_single_setting_is_refused_with_the_cure(
    old: Pair, old_brokers: Any
) -> None:
    release, _, _ = old_brokers
    old.flow = {
        "engine": "mm2", "offset_topic": "o", "status_topic": "s", "config_topic": "c",
        "offset_syncs_topic": "y", "checkpoints_topic": "k",
    }  # fmt: skip
    found = {
        (finding.kind, finding.severity): finding
        for finding in check_flows(old.settings()).findings
    }
    refused = found.get(("broker_too_old", "critical"))
    assert (refused is not None) is (release == "2.1.1")
    assert refused is None or "sync.topic.configs.enabled to false" in refused.action
    old.flow["sync_topic_configs"] = False
    left = check_flows(old.settings()).findings
    assert not [f for f in left if f.kind == "broker_too_old" and f.severity == "critical"]


def test_permissions_are_named_as_far_as_the_release_tells_them(
    old: Pair, old_brokers: Any, sasl_users: Mapping[str, str]
) -> None:
    release, source, target = old_brokers
    for broker in (source, target):
        grant(broker.bootstrap, "mirror", ACLOperation.READ, ResourceType.TOPIC, old.topic)
    old.clusters = {
        alias: {
            "bootstrap_servers": [broker.sasl], "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN", "username": "mirror", "identity": "mirror",
        }
        for alias, broker in (("east", source), ("west", target))
    }  # fmt: skip
    old.flow = {
        "permissions": [
            need("topic", old.topic, "READ"),
            need("topic", old.topic, "DESCRIBE"),
            need("group", old.group, "READ"),
            {**need("topic", old.topic, "WRITE"), "cluster": "west"},
        ],
    }
    secrets = {f"{alias}.mirror.password": sasl_users["mirror"] for alias in ("east", "west")}
    found = check_flows(old.settings(credentials=secrets)).findings
    lacking = {f.message.partition(" lacks ")[2] for f in found if f.kind == "missing_permission"}
    unknown = "; ".join(f.message for f in found if f.kind == "permission_unknown")
    no_group = f"READ on group {old.group} on east"
    no_writing = f"WRITE on topic {old.topic} on west"
    no_idempotence = (
        "IDEMPOTENT_WRITE on the cluster on west: an idempotent producer needs it below Kafka 2.8"
    )
    if release == "2.1.1":
        assert lacking == {no_group, no_idempotence}
        assert f"READ on topic {old.topic}" in unknown
        assert f"WRITE on topic {old.topic}" in unknown
        assert "DESCRIBE on topic" not in unknown
    else:
        assert lacking == {no_group, no_writing, no_idempotence}
        assert "on topic" not in unknown


def test_what_an_idempotent_producer_lacks_on_an_old_target_is_named(
    old: Pair, old_brokers: Any, sasl_users: Mapping[str, str]
) -> None:
    _, _, target = old_brokers
    old.clusters["west"] = {
        "bootstrap_servers": [target.sasl], "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN", "username": "nobody", "identity": "mirror",
    }  # fmt: skip
    secrets = {"west.mirror.password": sasl_users["nobody"]}
    grant(old.target, "nobody", ACLOperation.WRITE, ResourceType.TOPIC, old.topic)
    login = {
        "bootstrap_servers": target.sasl, "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN", "sasl_plain_username": "nobody",
        "sasl_plain_password": sasl_users["nobody"],
    }  # fmt: skip

    def writes() -> bool:
        with contextlib.closing(KafkaProducer(**login, enable_idempotence=True)) as producer:
            try:
                producer.send(old.topic, b"x").get(30)
            except KafkaError as error:
                return "ClusterAuthorizationFailedError" not in str(error)
            return True

    def named(kind: str) -> bool:
        found = check_flows(old.settings(credentials=secrets)).findings
        return any("IDEMPOTENT_WRITE" in f.message for f in found if f.kind == kind)

    assert (writes(), named("missing_permission")) == (False, True)
    grant(
        old.target, "nobody", ACLOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster"
    )
    assert writes()
    assert not named("permission_unknown")
    assert not named("missing_permission")


def test_leader_epochs_are_told_to_who_may_describe_unless_the_format_has_none(
    old: Pair, old_brokers: Any, sasl_users: Mapping[str, str]
) -> None:
    _, source, _ = old_brokers
    grant(old.source, "mirror", ACLOperation.DESCRIBE, ResourceType.TOPIC, old.topic)
    without = replace(old, topic=f"{old.topic}-0.10")
    without.create("source", **{"message.format.version": "0.10.2"})
    login = Cluster(
        "east", (source.sasl,), security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
        username="mirror", identity="mirror",
    )  # fmt: skip
    secrets = Credentials({"east.mirror.password": sasl_users["mirror"]})
    for cluster, topic, told in (
        (login, old.topic, ((0, 0),)), (Cluster("east", (old.source,)), without.topic, ()),
    ):  # fmt: skip
        with connect(cluster, secrets) as client:
            log = client.snapshot(None, [topic], settings=False).topics[topic].partitions[0]
            assert log.leader_epoch == 0
            wanted = {(topic, 0): EpochsAsked(0, log.log_start)}
            assert leader_epochs.of_logs(client, wanted) == {(topic, 0): told}


def grant(bootstrap: str, user: str, operation: Any, kind: Any, name: str) -> None:
    """Let a user do one thing more."""
    with admin(bootstrap) as client:
        client.create_acls([
            ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW,
                ResourcePattern(kind, name)),
        ])  # fmt: skip


def create_again(pair: Pair, side: str) -> None:
    """Create a topic whose deletion may not have come to its end."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return pair.create(side)
        except TopicAlreadyExistsError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
