"""What the modules of roles kafka_broker and kafka_topics decide about topics and logins."""

from __future__ import annotations

import logging
import ssl

import pytest
import yaml
from ansible.module_utils import kafka_admin_client as client
from ansible.module_utils import kafka_topic_state as state

from tests.loading import load

fragment = load("roles/kafka_client/doc_fragments/kafka_client.py", "kafka_client_fragment")
mirrored = load("roles/kafka_topics/library/kafka_mirrored_topics.py", "kafka_mirrored_topics")

DEFAULTS = {
    "retention.ms": {"value": "604800000", "config_source": "DEFAULT_CONFIG"},
    "cleanup.policy": {"value": "compact", "config_source": "DYNAMIC_TOPIC_CONFIG"},
}
ORDERS = state.Topic("orders", partitions=3, replication_factor=1)


def test_a_missing_topic_is_created():
    assert state.plan(None, {}, state.Wanted("orders", 3)).create


def test_a_topic_as_wanted_needs_no_step():
    assert not state.plan(ORDERS, {}, state.Wanted("orders", 3, 1)).changes


def test_a_topic_grows():
    assert state.plan(ORDERS, {}, state.Wanted("orders", 5)).grow_to == 5


def test_a_topic_never_shrinks_and_says_so():
    steps = state.plan(ORDERS, {}, state.Wanted("orders", 2))
    assert not steps.changes
    assert "never removed" in steps.warnings[0]


def test_replicas_are_not_moved():
    steps = state.plan(ORDERS, {}, state.Wanted("orders", 3, 2))
    assert not steps.changes
    assert "not moved" in steps.warnings[0]


def test_numbers_left_to_the_cluster_are_not_compared():
    assert state.plan(ORDERS, {}, state.Wanted("orders")) == state.Plan()


def test_only_named_configs_are_compared():
    wanted = state.Wanted("orders", configs={"retention.ms": "1000"})
    assert state.plan(ORDERS, DEFAULTS, wanted).configs == {"retention.ms": "1000"}


def test_a_value_that_only_equals_the_default_is_pinned():
    wanted = state.Wanted("orders", configs={"retention.ms": "604800000"})
    assert state.plan(ORDERS, DEFAULTS, wanted).configs == {"retention.ms": "604800000"}


def test_null_resets_a_config_once():
    reset = state.Wanted("orders", configs={"cleanup.policy": None, "retention.ms": None})
    assert state.plan(ORDERS, DEFAULTS, reset).configs == {"cleanup.policy": None}


def test_an_unknown_config_is_refused():
    with pytest.raises(client.ClusterError, match=r"retention\.mss"):
        state.plan(ORDERS, DEFAULTS, state.Wanted("orders", configs={"retention.mss": "1"}))


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (1000, "1000"), (["compact", "delete"], "compact,delete"), (None, None)],
)
def test_config_values_are_written_as_kafka_writes_them(value, text):
    assert state.config_text(value) == text


def test_the_brokers_words_are_found_in_an_exchange():
    error = ValueError("Request 'x' failed with response 'T(error_message='too many', y=1)'.")
    assert state.reason(error) == "ValueError: too many"


def test_a_mirror_takes_whole_names_but_no_internal_topics():
    source = {
        name: state.Topic(name, partitions, 3, internal)
        for name, partitions, internal in [
            ("orders", 6, False),
            ("orders-old", 1, False),
            ("payments.eu", 2, False),
            ("__consumer_offsets", 50, True),
        ]
    }
    wanted = mirrored.wanted_topics(source, r"orders|payments\..*|__.*", 1, {})
    assert [(topic.name, topic.partitions) for topic in wanted] == [
        ("orders", 6),
        ("payments.eu", 2),
    ]
    assert {topic.replication_factor for topic in wanted} == {1}


def reasons(*messages: str) -> object:
    handler = client._Reasons()
    for message in messages:
        handler.emit(logging.LogRecord("kafka", logging.ERROR, "", 0, message, None, None))
    return handler


def test_a_refused_login_is_reported():
    recorded = reasons(
        "Exchanging credentials in the clear during Sasl Authentication",
        "Bootstrap connection to bootstrap-0 failed: [Error 58] SaslAuthenticationFailedError:"
        " invalid credentials (backoff 0.06 secs)",
    )
    assert recorded.refusal() == "[Error 58] SaslAuthenticationFailedError: invalid credentials"


def test_a_connection_closed_after_the_version_exchange_counts_as_refused():
    recorded = reasons(
        "<KafkaConnection node_id=bootstrap-0 broker_version=(4, 3) (disconnected)>:"
        " Connection lost: KafkaConnectionError: socket disconnected"
    )
    assert recorded.refusal()


def test_a_cluster_that_never_answered_did_not_refuse():
    recorded = reasons(
        "Exchanging credentials in the clear during Sasl Authentication",
        "<KafkaConnection node_id=bootstrap-0 broker_version=unknown (disconnected)>:"
        " Connection lost: KafkaConnectionError: socket disconnected",
        "Bootstrap connection to bootstrap-0 failed: KafkaConnectionError: 111 ECONNREFUSED"
        " (backoff 0.06 secs)",
    )
    assert recorded.refusal() is None
    assert recorded.texts() == ["KafkaConnectionError: 111 ECONNREFUSED"]


def test_a_key_without_its_certificate_is_reported_and_not_quoted():
    with pytest.raises(client.ClusterError, match="no PEM text") as problem:
        client.tls_context({"ssl_certificate": "none", "ssl_key": "CANARY"})
    assert "CANARY" not in str(problem.value)


def test_host_names_are_verified():
    context = client.tls_context({})
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_the_connection_is_documented_as_it_is_taken():
    def without(options, key):
        return {
            name: {k: v for k, v in option.items() if k != key} for name, option in options.items()
        }

    taken = without(client.CONNECTION["options"], "no_log")
    documented = yaml.safe_load(fragment.CONNECTION)["suboptions"]
    assert without(documented, "description") == taken
    assert all(option["description"] for option in documented.values())
