"""Why a mirror ends or stands still, by lines as Kafka 3.9.2 and 4.3.1 log them."""

from __future__ import annotations

import re

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
    "Caused by: javax.net.ssl.SSLHandshakeException: Received fatal alert: certificate_expired": (
        Cause("certificate_ended")
    ),
    "[AdminClient clientId=a] Connection to node -1 (target1/10.0.0.3:9093) failed authentication "
    "due to: Failed to process post-handshake messages": Cause(
        "certificate_refused", "target1:9093"
    ),
    "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: "
    "[orders.eu]": Cause("permission", topic="orders.eu"),
    "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access: ": (
        Cause("permission")
    ),
    "ERROR WorkerSourceTask{id=MirrorSourceConnector-0} failed to send record to east.orders:  "
    "(org.apache.kafka.connect.runtime.AbstractWorkerSourceTask) [kafka-producer-network-thread | "
    "p] \\norg.apache.kafka.common.errors.RecordTooLargeException: The message is 2000 bytes | ": (
        Cause("record_refused", topic="east.orders")
    ),
    "WARN Could not create topic a. (org.apache.kafka.connect.mirror.MirrorSourceConnector) [t] "
    "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.InvalidTopicException"
    ": Topic name is illegal | \tat java.base/java.util (Unknown Source) [?:?] | ": (
        Cause("name_refused")
    ),
    "ERROR Failed (org.apache.kafka.connect.runtime.Worker) [t] org.apache.kafka.connect.errors."
    "ConnectException: Unrecoverable exception | \tat a.B.c(B.java:1) [connect-runtime.jar:?] | "
    "Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to "
    "access topics: [orders]": Cause("permission", topic="orders"),
    "org.apache.kafka.common.errors.InvalidRecordException: One or more records": Cause(
        "record_refused"
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
    "m.service: Main process exited, code=exited, status=243/CREDENTIALS": Cause(
        "credential_missing"
    ),
    "m.service: A process of this unit has been killed by the OOM killer.": Cause("memory"),
    "m.service: Failed with result 'oom-kill'.": Cause("memory"),
    "Caused by: org.apache.kafka.common.errors.PolicyViolationException: Topic orders is not "
    "allowed": Cause("policy_refused"),
    "org.apache.kafka.common.errors.TimeoutException: Topic orders not present in metadata after "
    "60000 ms.": Cause("topic_unknown", topic="orders"),
    "org.apache.kafka.common.errors.TimeoutException: Partition 5 of topic orders with partition "
    "count 3 is not present in metadata after 60000 ms.": Cause("topic_unknown", topic="orders"),
    "WARN [Producer clientId=p] Got error produce response with correlation id 5 on "
    "topic-partition orders-0, retrying (3 attempts left). Error: NOT_ENOUGH_REPLICAS "
    "(org.apache.kafka.clients.producer.internals.Sender)": Cause(
        "replicas_missing", topic="orders"
    ),
    "WARN [Producer clientId=p] Got error produce response with correlation id 5 on "
    "topic-partition orders-0, retrying (3 attempts left). Error: KAFKA_STORAGE_ERROR "
    "(org.apache.kafka.clients.producer.internals.Sender)": Cause("storage_failed", topic="orders"),
    "org.apache.kafka.common.errors.KafkaStorageException: Disk error when trying to access log "
    "file on the disk.": Cause("storage_failed"),
    "Caused by: java.io.IOException: No space left on device": Cause("disk_full"),
    "java.lang.OutOfMemoryError: Java heap space": Cause("memory"),
    "Terminating due to java.lang.OutOfMemoryError: Java heap space": Cause("memory"),
    "Error: Could not create the Java Virtual Machine.": Cause("options"),
}


def lines(*texts: str, at: float = 0.0) -> list[JournalLine]:
    return [JournalLine(at, text) for text in texts]


def said(*texts: str) -> Cause | None:
    return causes.cause(lines(*texts), 0.0)


@pytest.mark.parametrize("text", SAID)
def test_what_is_logged_has_a_cause_with_what_it_names(text):
    assert said("[main] started", text, "[main] closed") == SAID[text]


def test_an_exception_on_a_line_of_its_own_concerns_what_stands_before_it():
    sending = (
        "ERROR Error when sending message to topic orders with key: null, value: 7 bytes with "
        "error: (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)"
    )
    refused = "org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000 bytes"
    assert said(sending, refused) == Cause("record_refused", topic="orders")
    assert said(sending, "INFO x (a.B)", refused) == Cause("record_refused")


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
    assert said(text) is None


# Lines of both engines that quote names, none of them for a cause that they have.
CLIENT = "[Consumer clientId=m-0, groupId=m]"
THREAD = "(org.apache.kafka.connect.mirror.MirrorCheckpointTask) [task-thread-0]"
QUOTING_TOPICS = (
    f"INFO {CLIENT} Adding newly assigned partitions: {{}}-0, {{}}-1 {THREAD}",
    f"INFO {CLIENT} Resetting offset for partition {{}}-0 to position 0 {THREAD}",
    f"INFO {CLIENT} Subscribed to topic(s): {{}}, {{}} (org.apache.kafka.clients.Consumer)",
    f"WARN {CLIENT} Error while fetching metadata with correlation id 3 : "
    f"{{{{{{}}=LEADER_NOT_AVAILABLE}}}} {THREAD}",
    f"ERROR WorkerSourceTask{{{{id=a-0}}}} failed to send record to {{}}:  {THREAD}",
    f"ERROR a-0 failed to send record to {{}}:  {THREAD} org.apache.kafka.common.errors."
    "TimeoutException: Expiring 5 record(s) for {}-0:120000 ms has passed | ",
    "ERROR Error when sending message to topic {} with key: null, value: 7 bytes with error: "
    "(org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)",
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic {} is not there: [{}]",
    f"WARN [Producer clientId=p] Got error produce response with correlation id 5 on "
    f"topic-partition {{}}-0, retrying (3 attempts left). Error: NOT_LEADER_OR_FOLLOWER {THREAD}",
    f"INFO Found new topic-partitions on east: [{{}}-0, {{}}-1] {THREAD}",
    f"WARN Could not create topic {{}}. {THREAD} java.lang.IllegalStateException: no",
    f"INFO Created topic '{{}}' {THREAD}",
    "\ttopics = {}",
)
QUOTING_GROUPS = (
    f"INFO Found new consumer groups: [{{}}, {{}}] {THREAD}",
    f"INFO Started MirrorCheckpointConnector with consumer groups: [{{}}] {THREAD}",
    f"WARN Unable to sync offsets for consumer group {{}}. This is likely caused by x {THREAD}",
    f"ERROR Error querying offsets for consumer group {{}} on cluster east. {THREAD} "
    "java.lang.IllegalStateException: no | \tat a.B.c(B.java:1) [b.jar:?] | ",
)
# Whatever of the lines above may be a topic's name, and the words of the signs themselves.
WORDS = {
    word.strip(".")
    for text in (*SAID, *(f"{said} {thrown}" for _, said, thrown in causes._SIGNS))
    for word in re.findall(r"[A-Za-z0-9._-]+", text)
} | {
    "certificate_expired", "NotAfter", "java.lang.OutOfMemoryError", "a.Exception", "Error",
    "org.apache.kafka.common.errors.SaslAuthenticationException", "InvalidRecordException",
    "SSLHandshakeException", "org.apache.kafka.common.config.ConfigException", "PKIX",
    "243", "CREDENTIALS", "INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION",
}  # fmt: skip


@pytest.mark.parametrize("line", QUOTING_TOPICS)
def test_no_topic_can_be_called_so_that_a_line_tells_a_cause(line):
    told = {name: said(line.format(name, name)) for name in {"orders", *WORDS}}
    assert {name: found for name, found in told.items() if found} == {}


@pytest.mark.parametrize("line", QUOTING_GROUPS)
def test_no_group_can_be_called_so_that_a_line_tells_a_cause(line):
    names = {*WORDS, *SAID, *(f"x {THREAD} {text}" for text in SAID)}
    told = {name: said(line.format(name, name)) for name in names}
    assert {name: found for name, found in told.items() if found} == {}


@pytest.mark.parametrize("name", ["a\x1b[31m", "a b", "a" * 250, "<b>"])
def test_nothing_but_a_legal_name_is_taken_over(name):
    error = "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access "
    found = said(f"{error}topics: [{name}]")
    assert found == Cause("permission")


def test_what_was_said_last_counts_and_of_that_the_first_cause():
    gone = lines(REFUSED)
    now = lines(
        *(text for text in SAID if "established" in text or "RecordTooLarge" in text), at=600
    )
    found = causes.cause([*gone, *now], 600)
    assert found == Cause("record_refused", topic="east.orders")


UNREACHABLE = next(text for text in SAID if "established" in text)


def test_what_clients_repeat_while_it_lasts_is_over_when_they_say_it_no_more():
    two_days = 2 * 86400.0
    assert causes.cause(lines(UNREACHABLE), causes.RECENT_SECONDS) == SAID[UNREACHABLE]
    assert causes.cause(lines(UNREACHABLE), two_days) is None
    before = causes.cause([*lines(REFUSED), *lines(UNREACHABLE, at=two_days / 2)], two_days)
    assert before == SAID[REFUSED]


def test_what_is_said_once_is_told_with_its_time_when_it_is_old():
    found = causes.cause(lines(REFUSED, at=1000), 90_000)
    assert found == SAID[REFUSED]
    assert causes.age_in_words(found, 1000 + causes.RECENT_SECONDS) == ""
    assert causes.age_in_words(found, 90_000) == ", last said at 1970-01-01 00:16:40 UTC"
    assert causes.age_in_words(None, 90_000) == ""


def test_an_end_is_explained_by_what_was_so_when_it_came():
    ended = [JournalLine(1, "Main process exited", "exit status 1")]
    ((how,), _) = causes.by_process([*lines(UNREACHABLE), *ended])
    assert causes.first_end([how]) == "exit status 1: a broker cannot be reached (target1:9092)"


def test_the_first_end_is_told_with_its_cause():
    ended = [JournalLine(1, "Main process exited", "exit status 255")]
    journal = [*lines(REFUSED), *ended, *lines("closing"), *ended, *lines("starting")]
    found, running = causes.by_process(journal)
    assert [how for how, _ in found] == ["exit status 255"] * 2
    assert causes.first_end(found) == "exit status 255: the login is refused by source1:9092"
    assert [line.text for line in running] == ["starting"]


def test_ends_are_counted_over_an_hour_and_from_the_last_start_by_hand():
    assert causes.counted([(0, 5), (60, 6), (120, 9)]) == ((0, 5), (60, 6), (120, 9))
    assert causes.counted([(0, 5), (4000, 9)]) == ((4000, 9),)
    assert causes.counted([(0, 500), (60, 0), (120, 3)]) == ((60, 0), (60, 0), (120, 3))
