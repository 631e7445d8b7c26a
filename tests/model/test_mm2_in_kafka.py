"""MirrorMaker 2's file, read by its own classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirror_model.render import text_of

from tests.model.conftest import Kafka, Site
from tests.model.test_mm2 import rendered, reported

MIRROR = "org.apache.kafka.connect.mirror"


class Reader:
    """``MirrorMakerConfig`` of one release over a rendered file."""

    def __init__(self, kafka: Kafka, site: Site) -> None:
        site.instance["kafka_version"] = kafka.version
        self.kafka = kafka
        # The files behind the references are not here.
        properties = {
            key: re.sub(r"\$\{.*", "secret", text_of(key, value))
            for key, value in rendered(site, address="10.0.0.1").items()
            if not key.startswith("config.providers")
        }
        self.config = self.make(f"{MIRROR}.MirrorMakerConfig", kafka.map(properties))
        self.pair = self.make(f"{MIRROR}.SourceAndTarget", "east", "west")

    def make(self, name: str, *arguments: Any) -> Any:
        """A new object of a class."""
        return self.kafka.class_named(name)(*arguments)

    def connector(self, kind: str) -> dict[str, str]:
        """What one of the pair's connectors is configured with."""
        name = f"{MIRROR}.Mirror{kind}Connector"
        found = self.kafka.class_named("java.lang.Class").forName(name)
        return dict(self.config.connectorBaseConfig(self.pair, found))

    def worker(self) -> dict[str, str]:
        """What the pair's workers are configured with."""
        return dict(self.config.workerConfig(self.pair))

    def source(self) -> Any:
        """``MirrorSourceConfig`` with the classes it configures."""
        return self.make(f"{MIRROR}.MirrorSourceConfig", self.kafka.map(self.connector("Source")))


def method(kafka: Kafka, target: Any, name: str) -> Callable[..., Any]:
    """A method that Java hides, to be called with texts alone."""
    text = kafka.class_named("java.lang.String")()
    kind = target.getClass()
    while True:
        for found in kind.getDeclaredMethods():
            if found.getName() == name and all(
                parameter.isInstance(text) for parameter in found.getParameterTypes()
            ):
                found.setAccessible(True)
                break
        else:
            kind = kind.getSuperclass()
            continue
        break

    def call(*texts: str) -> Any:
        array = kafka.class_named("java.util.ArrayList")()
        for argument in texts:
            array.add(argument)
        return found.invoke(target, array.toArray())

    return call


def test_exactly_the_flows_run(mm2_site: Site, kafka: Kafka) -> None:
    pairs = Reader(kafka, mm2_site).config.clusterPairs()
    assert {pair.toString() for pair in pairs} == {"east->west", "north->west"}


def test_every_setting_arrives(mm2_site: Site, kafka: Kafka) -> None:
    mm2_site.flow["properties"] = {
        "consumer.max.poll.records": 11, "producer.override.linger.ms": 12, "offset.lag.max": 13,
    }  # fmt: skip
    mm2_site.instance["worker_properties"] = {
        "producer.batch.size": 14, "session.timeout.ms": 15000, "replication.policy.separator": "_",
    }  # fmt: skip
    reader = Reader(kafka, mm2_site)
    worker, connector = reader.worker(), reader.connector("Source")
    assert worker["producer.batch.size"] == "14"
    assert worker["session.timeout.ms"] == "15000"
    assert worker["offset.flush.interval.ms"] == "10000"
    assert worker["offset.storage.replication.factor"] == "3"
    assert worker["replication.policy.separator"] == "_"
    assert connector["producer.override.linger.ms"] == "12"
    assert connector["offset.lag.max"] == "13"
    assert connector["topics"] == r"orders,payments\..*"
    consumer = method(kafka, reader.source(), "sourceConsumerConfig")("role")
    assert consumer["max.poll.records"] == "11"
    assert consumer["fetch.min.bytes"] == "65536"
    assert consumer["sasl.mechanism"] == "SCRAM-SHA-512"
    assert method(kafka, reader.source(), "offsetSyncsTopicLocation")() == "target"
    checkpoint = reader.connector("Checkpoint")
    assert checkpoint["groups"] == "billing"
    assert checkpoint["sync.group.offsets.enabled"] == "true"


@pytest.mark.parametrize("policy", ["prefix", "identity"])
@pytest.mark.parametrize("worker", [
    {}, {"replication.policy.separator": "_"},
    {"replication.policy.separator": "-",
     "replication.policy.internal.topic.separator.enabled": False},
])  # fmt: skip
def test_the_report_knows_the_names_of_internal_topics(
    mm2_site: Site, kafka: Kafka, policy: str, worker: dict[str, Any]
) -> None:
    for flow in mm2_site["flows"]:
        flow["replication_policy"] = policy
    mm2_site.instance["worker_properties"] = worker
    reader, model = Reader(kafka, mm2_site), reported(mm2_site)
    settings = reader.worker()
    assert model["group_id"] == settings["group.id"]
    for kind in ("offset", "status", "config"):
        assert model[f"{kind}_topic"] == settings[f"{kind}.storage.topic"]
    assert model["offset_syncs_topic"] == method(kafka, reader.source(), "offsetSyncsTopic")()
    checkpoints = reader.make(f"{MIRROR}.MirrorCheckpointConfig",
                              kafka.map(reader.connector("Checkpoint")))  # fmt: skip
    assert model["checkpoints_topic"] == method(kafka, checkpoints, "checkpointsTopic")()


def test_the_report_reads_the_source_as_the_mirror_does(mm2_site: Site) -> None:
    assert reported(mm2_site)["source_isolation"] == "read_uncommitted"
    mm2_site.flow["properties"] = {"consumer.isolation.level": "read_committed"}
    assert rendered(mm2_site)["east.consumer.isolation.level"] == "read_committed"
    assert reported(mm2_site)["source_isolation"] == "read_committed"
    assert reported(mm2_site)["target_isolation"] == "read_uncommitted"


@pytest.mark.parametrize("policy", ["prefix", "identity"])
@pytest.mark.parametrize("separator", [".", "_"])
def test_the_report_expects_what_is_mirrored(
    mm2_site: Site, kafka: Kafka, policy: str, separator: str
) -> None:
    for flow in mm2_site["flows"]:
        flow["replication_policy"] = policy
    mm2_site.flow.update({"topics": [r".*"], "topics_exclude": [r"payments\..*"]})
    mm2_site.instance["worker_properties"] = {"replication.policy.separator": separator}
    source = Reader(kafka, mm2_site).source()
    connector = kafka.class_named(f"{MIRROR}.MirrorSourceConnector")
    pair = kafka.class_named(f"{MIRROR}.SourceAndTarget")("east", "west")
    replicated = mirrors(kafka, connector, pair, source)
    include = re.compile(reported(mm2_site)["include"])
    parts = ["orders", "payments", "west", "east", "mm2", "mm2-offsets", "internal", "checkpoints",
             "__x", "replica", "heartbeat", "", "a-internal", "connect", "configs", "offsets",
             "y" * 240]  # fmt: skip

    @settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(parts), min_size=1, max_size=4), st.sampled_from("._-"))
    def same(chosen: list[str], between: str) -> None:
        topic = between.join(chosen)
        if topic and not topic.endswith(separator):
            assert (include.fullmatch(topic) is not None) == replicated(topic), topic

    same()


@pytest.mark.parametrize(("policy", "topic", "copy"), [
    ("identity", "connect-configs", "connect-configs"),
    ("identity", "connect-west-offsets", "connect-west-offsets"),
    ("identity", "theirs", "theirs"),
    ("prefix", "checkpoints.internal", "east.checkpoints.internal"),
    ("prefix", "kept", "east.kept"),
    ("prefix", "y" * 245, "east." + "y" * 245),
])  # fmt: skip
def test_mirrormaker_2_takes_no_topic_whose_copy_would_steer_a_mirror(
    mm2_site: Site, kafka: Kafka, policy: str, topic: str, copy: str
) -> None:
    """By its own classes: what a producer on the source could make a command on the target."""
    for flow in mm2_site["flows"]:
        flow["replication_policy"] = policy
    mm2_site.flow["topics"] = [".*"]
    mm2_site["connect_clusters"]["connect-theirs"] = {
        "kafka": "west", "rest": {"urls": ["https://c:1"]},
        "topics": {"config": "theirs", "offsets": "east.kept", "status": "connect-status"},
    }  # fmt: skip
    source = Reader(kafka, mm2_site).source()
    connector = kafka.class_named(f"{MIRROR}.MirrorSourceConnector")
    pair = kafka.class_named(f"{MIRROR}.SourceAndTarget")("east", "west")
    named = method(kafka, source, "replicationPolicy")()
    assert method(kafka, named, "formatRemoteTopic")("east", topic) == copy
    replicated = mirrors(kafka, connector, pair, source)
    assert replicated("orders")
    assert not replicated(topic)


def mirrors(kafka: Kafka, connector: Any, pair: Any, source: Any) -> Callable[[str], bool]:
    """Ask ``MirrorSourceConnector`` itself whether it takes a topic."""
    policy, chosen = (
        method(kafka, source, "replicationPolicy")(),
        method(kafka, source, "topicFilter")(),
    )
    it = connector()
    for name, value in (
        ("sourceAndTarget", pair),
        ("replicationPolicy", policy),
        ("topicFilter", chosen),
        ("heartbeatsReplicationEnabled", False),
    ):
        fields = [f for f in it.getClass().getDeclaredFields() if f.getName() == name]
        for field in fields:
            field.setAccessible(True)
            field.set(it, value)
    return method(kafka, it, "shouldReplicateTopic")


def test_a_group_of_any_name_is_kept_out_and_no_other(kafka: Kafka, mm2_site: Site) -> None:
    """Kafka splits lists at commas, and trims what it finds."""
    chosen = ["a,b", "blanks , too ", r"back\slash,", "(é|x)"]
    for place, group in enumerate(chosen):
        mm2_site["flows"].append({
            "name": f"f{place}", "engine": "mm1", "source": "west", "target": "north",
            "topics": [f"t{place}"], "group_id": group,
        })  # fmt: skip
        mm2_site["instances"][f"mirrormaker-{place}"] = {
            "hosts": ["mirror1"],
            "flows": [f"f{place}"],
        }
    mm2_site.flow["consumer_groups"] = [".*"]
    assert mm2_site.validate()["errors"] == []
    groups = kafka.class_named(f"{MIRROR}.DefaultGroupFilter")()
    groups.configure(kafka.map(Reader(kafka, mm2_site).connector("Checkpoint")))
    for group in chosen:
        assert not groups.shouldReplicateGroup(group), group
    for group in ("a", "b", "blanks", "too", "x", "é", "back"):
        assert groups.shouldReplicateGroup(group), group
    for group in chosen:
        assert any(re.fullmatch(each, group) for each in reported(mm2_site)["groups_exclude"])
