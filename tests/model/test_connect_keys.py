"""Which keys of flows and workers on Kafka Connect are refused, each with a cure."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirror_model import kafka_names
from mirror_model.connectors import settable
from mirror_model.engines.connect import keys

from tests.model.conftest import Site, refused

FLOW = "mirror_flows[orders].properties"
WORKER = "kafka_connect_clusters.connect-west.worker_properties"
BEATS = "emit.heartbeats.enabled"
VERSION = {"3.9": "3.9.2", "4.3": "4.3.1"}


@pytest.fixture
def site(connect_site: Site) -> Site:
    # Workers of old releases let connectors override nothing.
    connect_site["flows"].pop()
    return connect_site


def write(site: Site, key: str, place: str, line: str = "4.3") -> None:
    """Set a key in one place."""
    site.flow["properties"] = {key: "x"} if place == "flow" else {}
    site["connect_clusters"]["connect-west"].update(
        worker_properties={key: "x"} if place == "worker" else {}, kafka_version=VERSION[line]
    )


@pytest.mark.parametrize("key", sorted({**keys.OWNED_FLOW_KEYS, **settable.REMOVED_FLOW_KEYS}))
def test_flow_key_that_is_gone_or_the_models(site: Site, key: str) -> None:
    write(site, key, "flow")
    cures = {**settable.REMOVED_FLOW_KEYS, **keys.OWNED_FLOW_KEYS}
    refused(site, f"{FLOW}['{key}']", cures[key])


@pytest.mark.parametrize("key", sorted({**keys.OWNED_WORKER_KEYS, **settable.REMOVED_WORKER_KEYS}))
def test_worker_key_that_is_gone_or_the_models(site: Site, key: str) -> None:
    write(site, key, "worker")
    cures = {**settable.REMOVED_WORKER_KEYS, **keys.OWNED_WORKER_KEYS}
    refused(site, f"{WORKER}['{key}']", cures[key])


@pytest.mark.parametrize("line", kafka_names.LINES)
def test_every_other_key_can_be_set(site: Site, line: str) -> None:
    # Null leaves a key to Kafka, which would switch heartbeats on.
    site.flow["properties"] = {
        **dict.fromkeys(settable.connector_keys(line, keys.OWNED_FLOW_KEYS)),
        BEATS: False,
    }
    site["connect_clusters"]["connect-west"].update(
        worker_properties=dict.fromkeys(keys.worker_keys(line)), kafka_version=VERSION[line]
    )
    assert site.validate()["errors"] == []


def test_any_key_is_settable_or_refused_with_a_cure(site: Site) -> None:
    words = sorted({
        *keys.OWNED_FLOW_KEYS, *keys.OWNED_WORKER_KEYS, *settable.REMOVED_FLOW_KEYS,
        *settable.REMOVED_WORKER_KEYS, *settable.REMOVED_IN_4, *kafka_names.PRODUCER["4.3"],
        *kafka_names.CONSUMER["3.9"],
        *(key for line in kafka_names.LINES
          for key in (*settable.connector_keys(line, keys.OWNED_FLOW_KEYS),
                      *keys.worker_keys(line))),
    })  # fmt: skip
    prefixes = ["", "producer.", "consumer.", "admin.", "producer.override.", "source.consumer.",
                "target.producer.", "source.cluster."]  # fmt: skip

    @settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(words), st.sampled_from(prefixes), st.sampled_from(["flow", "worker"]),
           st.sampled_from(kafka_names.LINES))  # fmt: skip
    def refused_as_it_is_read(word: str, prefix: str, place: str, line: str) -> None:
        key = prefix + word
        write(site, key, place, line)
        if prefix == "" and word in settable_at(place, line):
            return
        clients = {
            "flow": {"consumer.": kafka_names.CONSUMER, "producer.override.": kafka_names.PRODUCER},
            "worker": {"consumer.": kafka_names.CONSUMER, "producer.": kafka_names.PRODUCER,
                       "admin.": kafka_names.ADMIN},
        }[place]  # fmt: skip
        found = site.validate()["errors"]
        if found:
            assert f"['{key}']" in found[0]
            assert any(mark in found[0] for mark in (";", ": write", ": set", "remove"))
        else:
            # What no client knows may belong to a plug-in.
            assert key.startswith(tuple(clients))

    refused_as_it_is_read()


def settable_at(place: str, line: str) -> frozenset[str]:
    """Keys that may be written in a place."""
    return (
        settable.connector_keys(line, keys.OWNED_FLOW_KEYS)
        if place == "flow"
        else keys.worker_keys(line)
    )
