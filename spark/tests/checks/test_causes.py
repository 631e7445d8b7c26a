"""Why a mirror ends or stands still, by lines as Kafka 3.9.2 and 4.3.1 log them."""

from __future__ import annotations

import pytest

from mirror_report.checks import causes
from mirror_report.model import Cause, JournalLine

REFUSED = (
    "[Consumer clientId=m-0, groupId=m] Connection to node -1 (source1/10.0.0.2:9092) failed "
    "authentication due to: Authentication failed during authentication due to invalid credentials "
    "with SASL mechanism SCRAM-SHA-512 (org.apache.kafka.clients.NetworkClient)"
)
SAID = {
    REFUSED: Cause("login_refused", "source1:9092"),
    "[Producer clientId=p] Connection to node 2 (target1/10.0.0.3:9093) failed authentication due "
    "to: SSL handshake failed (org.apache.kafka.clients.NetworkClient)": Cause(
        "certificate_refused", "target1:9093"
    ),
    "Caused by: java.security.cert.CertificateExpiredException: NotAfter: Sat Jan 01 00:00:00": (
        Cause("certificate_ended")
    ),
    "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: "
    "[orders.eu]": Cause("permission", topic="orders.eu"),
    "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access: ": (
        Cause("permission")
    ),
    "WorkerSourceTask{id=MirrorSourceConnector-0} failed to send record to east.orders:  | "
    "org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000 bytes": Cause(
        "record_refused", topic="east.orders"
    ),
    "Error when sending message to topic orders with key: null, value: 7 bytes with error: | "
    "org.apache.kafka.common.errors.InvalidRecordException: One or more records": Cause(
        "record_refused", topic="orders"
    ),
    "[Producer clientId=p] Error while fetching metadata with correlation id 3 : "
    "{orders=UNKNOWN_TOPIC_OR_PARTITION} (org.apache.kafka.clients.NetworkClient)": Cause(
        "topic_missing", topic="orders"
    ),
    "[Producer clientId=p] Connection to node -1 (target1/10.0.0.3:9092) could not be established. "
    "Node may not be available.": Cause("unreachable", "target1:9092"),
    "org.apache.kafka.common.errors.InvalidTopicException: Topic name is illegal, it can't be "
    "longer than 249 characters": Cause("name_refused"),
    "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in "
    "bootstrap.servers": Cause("configuration"),
    "Main process exited, code=exited, status=243/CREDENTIALS": Cause("credential_missing"),
    "java.lang.OutOfMemoryError: Java heap space": Cause("memory"),
    "Error: Could not create the Java Virtual Machine.": Cause("options"),
}


def lines(*texts: str, at: float = 0.0) -> list[JournalLine]:
    return [JournalLine(at, text) for text in texts]


@pytest.mark.parametrize("text", SAID)
def test_what_is_logged_has_a_cause_with_what_it_names(text):
    assert causes.cause(lines("[main] started", text, "[main] closed")) == SAID[text]


@pytest.mark.parametrize(
    "text",
    [
        "[Consumer clientId=m-0, groupId=m] Resetting offset for partition "
        "org.apache.kafka.common.errors.SaslAuthenticationException-0 to position 0",
        "\tsasl.login.class = null",
        "",
    ],
)
def test_a_topic_that_is_called_like_an_error_is_no_cause(text):
    assert causes.cause(lines(text)) is None


@pytest.mark.parametrize("name", ["a\x1b[31m", "a b", "a" * 250, "<b>"])
def test_nothing_but_a_legal_name_is_taken_over(name):
    error = "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access "
    found = causes.cause(lines(f"{error}topics: [{name}]"))
    assert found == Cause("permission")


def test_what_was_said_last_counts_and_of_that_the_first_cause():
    gone = lines(REFUSED)
    now = lines(
        *(text for text in SAID if "established" in text or "RecordTooLarge" in text), at=600
    )
    found = causes.cause([*gone, *now])
    assert found == Cause("record_refused", topic="east.orders")


def test_the_first_end_is_told_with_its_cause():
    ended = [JournalLine(1, "Main process exited", "exit status 255")]
    journal = [*lines(REFUSED), *ended, *lines("closing"), *ended, *lines("starting")]
    found = causes.ended(journal)
    assert [how for how, _ in found] == ["exit status 255"] * 2
    assert causes.first_of(found) == "exit status 255: the login is refused by source1:9092"
    assert [line.text for line in causes.running(journal)] == ["starting"]


def test_ends_are_counted_over_an_hour_and_from_the_last_start_by_hand():
    assert causes.counted([(0, 5), (60, 6), (120, 9)]) == ((0, 5), (60, 6), (120, 9))
    assert causes.counted([(0, 5), (4000, 9)]) == ((4000, 9),)
    assert causes.counted([(0, 500), (60, 0), (120, 3)]) == ((60, 0), (60, 0), (120, 3))
