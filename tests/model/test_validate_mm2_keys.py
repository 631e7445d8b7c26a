"""Which keys of flows and workers MirrorMaker 2 is refused, each with a cure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirror_model import kafka_names, schema
from mirror_model.connectors import names as mm2_names
from mirror_model.connectors import settable
from mirror_model.engines.mm2 import keys as mm2_keys

from tests.model.conftest import Site, mentioned, refused
from tests.model.test_validate_mm2 import FLOW, WORKER

SETTABLE_FLOW = {
    line: sorted(settable.connector_keys(line, mm2_keys.OWNED_FLOW_KEYS))
    for line in kafka_names.LINES
}


SETTABLE_WORKER = {line: sorted(mm2_keys.worker_keys(line)) for line in kafka_names.LINES}


VERSION = {"3.9": "3.9.2", "4.3": "4.3.1"}


@pytest.mark.parametrize("key", sorted(mm2_keys.OWNED_FLOW_KEYS))
def test_flow_key_that_the_model_writes(mm2_site: Site, key: str) -> None:
    mm2_site.flow["properties"] = {key: "CANARY"}
    refused(mm2_site, f"{FLOW}['{key}']", mm2_keys.OWNED_FLOW_KEYS[key])


@pytest.mark.parametrize("key", ["source.cluster.bootstrap.servers", "target.cluster.ssl.protocol"])
def test_connection_among_flow_keys(mm2_site: Site, key: str) -> None:
    mm2_site.flow["properties"] = {key: "CANARY"}
    refused(mm2_site, f"{FLOW}['{key}']", "kafka_clusters")


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
@pytest.mark.parametrize("key", sorted(settable.REMOVED_FLOW_KEYS))
def test_flow_key_that_is_gone(mm2_site: Site, key: str, version: str) -> None:
    mm2_site.instance["kafka_version"] = version
    mm2_site.flow["properties"] = {key: "x"}
    refused(mm2_site, f"{FLOW}['{key}']", settable.REMOVED_FLOW_KEYS[key])


@pytest.mark.parametrize("key", sorted(settable.REMOVED_IN_4))
@pytest.mark.parametrize("place", ["flow", "worker", "consumer", "cluster"])
def test_key_that_ended_with_3_9(mm2_site: Site, key: str, place: str) -> None:
    if place == "flow":
        mm2_site.flow["properties"] = {key: True}
    elif place == "consumer":
        mm2_site.flow["properties"] = {f"consumer.{key}": True}
    elif place == "worker":
        mm2_site.instance["worker_properties"] = {key: True}
    else:
        mm2_site["clusters"]["west"]["properties"] = {key: True}
    refused(mm2_site, "Kafka 4.3.1 no longer reads it", settable.REMOVED_IN_4[key])


def test_every_key_that_the_new_release_lost_has_a_cure() -> None:
    cures = {**settable.REMOVED_IN_4, **settable.REMOVED_FLOW_KEYS}
    for table in (mm2_names.CONNECTOR, mm2_names.WORKER, kafka_names.CONSUMER,
                  kafka_names.PRODUCER, kafka_names.ADMIN):  # fmt: skip
        assert table["3.9"] - table["4.3"] <= set(cures)


def test_every_cure_that_names_a_key_names_one_that_both_releases_know() -> None:
    cures = {**settable.REMOVED_FLOW_KEYS, **settable.REMOVED_WORKER_KEYS,
             **settable.REMOVED_IN_4}  # fmt: skip
    own = {key.name for keys in (schema.FLOW, schema.INSTANCE) for key in keys}
    for cure in cures.values():
        if not cure.startswith("set "):
            continue
        word = cure.split()[1].rstrip(";,").removeprefix("mirror_flows[].")
        for line in kafka_names.LINES:
            known = frozenset(SETTABLE_FLOW[line]) | mm2_keys.worker_keys(line)
            assert word in known | own, cure


def test_key_of_a_newer_release(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"heartbeats.replication.enabled": True}
    assert mm2_site.validate()["errors"] == []
    mm2_site.instance["kafka_version"] = "3.9.2"
    refused(mm2_site, FLOW, "Kafka 3.9.2 does not know it here")


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("refresh.topic.interval.seconds", "did you mean 'refresh.topics.interval.seconds'?"),
        ("emit.heartbeats.intervall.seconds", "did you mean 'emit.heartbeats.interval.seconds'?"),
        ("offset.flush.interval.ms", "worker_properties"),
        ("producer.batch.size", "producer.override.batch.size"),
        ("target.producer.batch.size", "producer.batch.size in worker_properties"),
        ("source.consumer.max.poll.records", "write consumer.max.poll.records"),
        ("admin.request.timeout.ms", "kafka_clusters"),
    ],
)
def test_flow_key_that_means_nothing_there(mm2_site: Site, key: str, word: str) -> None:
    mm2_site.flow["properties"] = {key: 1}
    refused(mm2_site, f"{FLOW}['{key}']", word)


@pytest.mark.parametrize(
    "key", ["consumer.bootstrap.servers", "consumer.ssl.protocol", "consumer.group.id",
            "consumer.enable.auto.commit", "producer.override.key.serializer",
            "producer.override.sasl.jaas.config"],
)  # fmt: skip
def test_client_key_that_the_model_writes(mm2_site: Site, key: str) -> None:
    mm2_site.flow["properties"] = {key: "CANARY"}
    refused(mm2_site, f"{FLOW}['{key}']", "written from the model")


def test_client_key_of_another_age(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"consumer.fetch.message.max.bytes": 1}
    refused(mm2_site, FLOW, "set max.partition.fetch.bytes")


def test_client_key_that_looks_mistyped_is_mentioned(mm2_site: Site) -> None:
    mm2_site.flow["properties"] = {"producer.override.linger.m": 1}
    mentioned(mm2_site, "producer.override.linger.m", "did you mean 'linger.ms'?")


@pytest.mark.parametrize("key", sorted(mm2_keys.OWNED_WORKER_KEYS))
def test_worker_key_that_the_model_writes(mm2_site: Site, key: str) -> None:
    mm2_site.instance["worker_properties"] = {key: "CANARY"}
    refused(mm2_site, f"{WORKER}['{key}']", mm2_keys.OWNED_WORKER_KEYS[key])


@pytest.mark.parametrize("key", sorted(settable.REMOVED_WORKER_KEYS))
def test_worker_key_that_is_gone(mm2_site: Site, key: str) -> None:
    mm2_site.instance["worker_properties"] = {key: "x"}
    refused(mm2_site, f"{WORKER}['{key}']", settable.REMOVED_WORKER_KEYS[key])


@pytest.mark.parametrize("key", ["sasl.jaas.config", "ssl.keystore.location", "security.protocol"])
def test_security_among_worker_keys(mm2_site: Site, key: str) -> None:
    mm2_site.instance["worker_properties"] = {key: "CANARY"}
    refused(mm2_site, f"{WORKER}['{key}']", "kafka_clusters")


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("offset.flush.intervall.ms", "did you mean 'offset.flush.interval.ms'?"),
        ("sync.topic.configs.enabled", "properties of the flows"),
        ("producer.override.batch.size", "write producer.batch.size"),
        ("config.providers.file.class", "credentials"),
        ("consumer.group.id", "keeps positions itself"),
    ],
)
def test_worker_key_that_means_nothing_there(mm2_site: Site, key: str, word: str) -> None:
    mm2_site.instance["worker_properties"] = {key: "x"}
    refused(mm2_site, f"{WORKER}['{key}']", word)


@pytest.mark.parametrize("value", ["enabled", "preparing"])
def test_exactly_once(mm2_site: Site, value: str) -> None:
    mm2_site.instance["worker_properties"] = {"exactly.once.source.support": value}
    refused(mm2_site, WORKER, "two rolling restarts", "remove it")
    mm2_site.instance["worker_properties"] = {"exactly.once.source.support": "disabled"}
    assert mm2_site.validate() == {"errors": [], "warnings": []}


@pytest.mark.parametrize("line", kafka_names.LINES)
def test_every_other_key_can_be_set(mm2_site: Site, line: str) -> None:
    mm2_site.instance["kafka_version"] = VERSION[line]
    properties: dict[str, Any] = dict.fromkeys(SETTABLE_FLOW[line])
    properties |= {f"consumer.{key}": None for key in ("max.poll.records", "isolation.level")}
    mm2_site.flow["properties"] = properties
    mm2_site.instance["worker_properties"] = dict.fromkeys(
        set(SETTABLE_WORKER[line]) - mm2_names.REST
    ) | {"producer.linger.ms": 5, "admin.retries": 1}
    said = mm2_site.validate()
    assert said["errors"] == []
    # Of 3.9 itself: no key leaves out its heartbeats.
    assert [line for line in said["warnings"] if "heartbeats" not in line] == []


def test_any_key_is_settable_or_refused_with_a_cure(mm2_site: Site) -> None:
    words = sorted({
        *SETTABLE_FLOW["3.9"], *SETTABLE_FLOW["4.3"], *SETTABLE_WORKER["3.9"],
        *SETTABLE_WORKER["4.3"], *mm2_keys.OWNED_FLOW_KEYS, *mm2_keys.OWNED_WORKER_KEYS,
        *settable.REMOVED_FLOW_KEYS, *settable.REMOVED_WORKER_KEYS, *settable.REMOVED_IN_4,
        *kafka_names.PRODUCER["4.3"], *kafka_names.CONSUMER["3.9"],
    })  # fmt: skip
    prefixes = ["", "producer.", "consumer.", "admin.", "producer.override.", "source.consumer.",
                "target.producer.", "source.cluster."]  # fmt: skip

    @settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(words), st.sampled_from(prefixes), st.sampled_from(["flow", "worker"]),
           st.sampled_from(kafka_names.LINES))  # fmt: skip
    def refused_as_it_is_read(word: str, prefix: str, place: str, line: str) -> None:
        key = prefix + word
        mm2_site.flow["properties"] = {key: None} if place == "flow" else {}
        mm2_site.instance["worker_properties"] = {key: None} if place == "worker" else {}
        mm2_site.instance["kafka_version"] = VERSION[line]
        found = mm2_site.validate()
        clients = ({"consumer.": kafka_names.CONSUMER, "producer.override.": kafka_names.PRODUCER}
                   if place == "flow" else
                   {"consumer.": kafka_names.CONSUMER, "producer.": kafka_names.PRODUCER,
                    "admin.": kafka_names.ADMIN})  # fmt: skip
        settable = SETTABLE_FLOW[line] if place == "flow" else SETTABLE_WORKER[line]
        known = key in settable or word in clients.get(prefix, {}).get(line, ())
        if found["errors"]:
            assert f"['{key}']" in found["errors"][0]
            assert any(mark in found["errors"][0] for mark in (";", ": write", ": set", "remove"))
        else:
            # What no client knows may belong to a plug-in.
            assert known or key.startswith(tuple(clients))

    refused_as_it_is_read()
