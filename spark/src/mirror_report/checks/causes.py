"""Why a mirror's process ends or stands still, by its log: lines in, a cause out; no I/O.

Whoever may create topics chooses parts of what is logged. So a cause is one of a fixed list, and
what is taken over of a line is a legal topic's name or a host and port, and nothing else.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from mirror_report.model import Cause, Ended, JournalLine

# The last line is often only a consequence of an earlier one.
TOGETHER_SECONDS = 60
# A cause that was logged longer ago may be over.
RECENT_SECONDS = 900
# Ends of a process are counted over this time.
WINDOW_SECONDS = 3600
MOST = 200
_TOPIC = r"(?P<topic>[A-Za-z0-9._-]{1,249})"

# Kind -> the cause in words. Of several that a process logs at once the first in this table counts.
WORDS = {
    "record_refused": "the target refuses a record",
    "name_refused": "the target refuses the name of a topic",
    "policy_refused": "a policy of the target refuses a topic or its settings",
    "login_refused": "the login is refused",
    "certificate_ended": "a certificate has ended",
    "certificate_refused": "a certificate is not accepted",
    "permission": "a permission is missing",
    "credential_missing": "a file of its credentials is missing",
    "memory": "its memory does not suffice",
    "disk_full": "a disk of the mirror's host is full",
    "options": "Java does not start with these options",
    "configuration": "its configuration is refused",
    "unknown_host": "a name of a bootstrap server does not resolve",
    "storage_failed": "a broker's disk is full or fails",
    "replicas_missing": "too few replicas of a partition are in sync",
    "topic_missing": "a topic is missing on the target",
    "unreachable": "a broker cannot be reached",
    "topic_unknown": "no broker tells where a partition is: it is missing, or none can be reached",
}

# While they last, clients log these again and again.
REPEATED = frozenset(
    {"storage_failed", "replicas_missing", "topic_missing", "unreachable", "topic_unknown"}
)

# A line of a log begins with a level, in Kafka's own layout after the time. Other lines are of
# systemd, of Java itself, or of the exception that belongs to the line before.
_LEVEL = re.compile(r"(?:\[[^\]]{0,40}\] )?(?:FATAL|ERROR|WARN|INFO|DEBUG|TRACE) ")
# In our layout of MirrorMaker 2 an exception follows the message, logger, thread and an encoded
# end of line.
_TO_EXCEPTION = re.compile(r".*\([\w.$]+\) \[[^\]]*\] ?(?:\\n)?")
# What stands before the name of an exception: a topic may be called like one.
_THROWN = (
    r"(?:^|^Exception in thread \"[^\"]*\" |^Terminating due to |(?:^|\| )Caused by: |"
    r"(?:Exception|Error): )(?:[a-z]+\.)*"
)
# A client of Kafka begins with its own name.
_CLIENT = r"^\[[A-Z]\w* clientId=[^\]]*\] "
_PRODUCER = r"^\[Producer clientId=[^\]]*\] "
_REFUSED = rf"{_PRODUCER}Got error produce response .* Error: "
_SYSTEMD = r"^(?:[\w@.-]+\.service: )?"
_LOGIN = rf"{_CLIENT}Connection to node .* failed authentication due to: "

# Kind, the beginning of a message that names it, and that of an exception (Kafka 3.9 and 4.3).
# Messages and exceptions quote names of topics and groups, and none may be taken for one of these.
_SIGNS: tuple[tuple[str, str, str], ...] = (
    (
        "record_refused",
        "",
        r"(?:RecordTooLarge|InvalidRecord|InvalidTimestamp|CorruptRecord)Exception: |"
        r"IllegalArgumentException: Invalid timestamp: ",
    ),
    ("name_refused", rf"{_CLIENT}.*=INVALID_TOPIC_EXCEPTION[,}}]", r"InvalidTopicException: "),
    ("policy_refused", "", r"PolicyViolationException: "),
    (
        "certificate_ended",
        rf"{_LOGIN}.*Received fatal alert: certificate_expired",
        r"CertificateExpiredException: |SSLHandshakeException: "
        r"(?:\(certificate_expired\)|Received fatal alert: certificate_expired)",
    ),
    (
        "certificate_refused",
        rf"{_LOGIN}(?:SSL handshake failed|Failed to process post-handshake messages)",
        r"SslAuthenticationException: |SSLHandshakeException: |\w+Exception: PKIX path ",
    ),
    ("login_refused", _LOGIN, r"SaslAuthenticationException: "),
    (
        "permission",
        rf"{_CLIENT}Topic authorization failed for topics \[",
        r"(?:Topic|Group|Cluster|TransactionalId)AuthorizationException: ",
    ),
    (
        "credential_missing",
        rf"{_SYSTEMD}Main process exited, .*status=243/CREDENTIALS|"
        rf"{_SYSTEMD}Failed to set up credentials: ",
        "",
    ),
    (
        "memory",
        rf"{_SYSTEMD}[\w ]* (?:by|due to) the OOM killer|{_SYSTEMD}Failed with result 'oom-kill'",
        r"OutOfMemoryError: ",
    ),
    (
        "options",
        r"^Error: Could not create the Java Virtual Machine|^Unrecognized VM option |"
        r"^Error occurred during initialization of VM",
        "",
    ),
    ("disk_full", "", r"IOException: No space left on device"),
    ("configuration", "", r"ConfigException: "),
    ("unknown_host", r"^Couldn't resolve server ", ""),
    (
        "storage_failed",
        rf"{_REFUSED}KAFKA_STORAGE_ERROR",
        r"(?:KafkaStorageException|LogDirNotFoundException): ",
    ),
    (
        "replicas_missing",
        rf"{_REFUSED}NOT_ENOUGH_REPLICAS",
        r"NotEnoughReplicas(?:AfterAppend)?Exception: ",
    ),
    ("topic_missing", rf"{_PRODUCER}.*=UNKNOWN_TOPIC_OR_PARTITION[,}}]", ""),
    (
        "unreachable",
        rf"{_CLIENT}Connection to node .* could not be established\. Node may not be available",
        r"TimeoutException: Timed out waiting for a node",
    ),
    (
        "topic_unknown",
        "",
        r"TimeoutException: (?:Topic|Partition [0-9]+ of topic) [A-Za-z0-9._-]+ .*"
        r"not present in metadata",
    ),
)
_NEVER = "(?!)"
_CAUSES = tuple(
    (kind, re.compile(said or _NEVER), re.compile(f"{_THROWN}(?:{thrown or _NEVER})"))
    for kind, said, thrown in _SIGNS
)
_RANKS = {kind: rank for rank, kind in enumerate(WORDS)}
_NAMED = tuple(
    re.compile(sign)
    for sign in (
        rf"sending message to topic {_TOPIC} with key",
        rf"failed to send record to {_TOPIC}: ",
        rf"topics: \[{_TOPIC}\]",
        rf"on topic-partition {_TOPIC}-[0-9]+, retrying",
        rf"TimeoutException: (?:Topic|Partition [0-9]+ of topic) {_TOPIC} ",
        rf"\{{{_TOPIC}=(UNKNOWN_TOPIC_OR_PARTITION|INVALID_TOPIC_EXCEPTION)\}}",
    )
)
_ADDRESS = re.compile(
    r"node -?[0-9]+ \((?P<host>[A-Za-z0-9.-]{1,253})/[^)]{0,60}:(?P<port>[0-9]{1,5})\)"
)


def cause(lines: Sequence[JournalLine], until: float) -> Cause | None:
    """Why a process does not do its work, by its last lines; ``None``: they name no cause.

    :param lines: of one process, the oldest first.
    :param until: now, or when the process ended, in seconds since the epoch.
    """
    causes = [
        (at, kind, text)
        for at, kind, text in _named_causes(lines)
        if kind not in REPEATED or until - at <= RECENT_SECONDS
    ]
    if not causes:
        return None
    last = causes[-1][0]
    recent = [(kind, text) for at, kind, text in causes if last - at <= TOGETHER_SECONDS]
    kind = min((kind for kind, _ in recent), key=_RANKS.__getitem__)
    texts = [text for each, text in recent if each == kind]
    topics = [match["topic"] for text in texts for sign in _NAMED if (match := sign.search(text))]
    brokers = [match for text in texts if (match := _ADDRESS.search(text))]
    address = f"{brokers[-1]['host']}:{brokers[-1]['port']}" if brokers else ""
    return Cause(kind, address, topics[-1] if topics else "", last)


def _named_causes(lines: Sequence[JournalLine]) -> list[tuple[float, str, str]]:
    """Time, kind and words of each line that names a cause.

    MirrorMaker 1 logs an exception on lines of its own; what it concerns stands before it.
    """
    before = ["", *(line.text for line in lines)]
    return [
        (line.at, kind, line.text if _LEVEL.match(line.text) else f"{line.text}\n{former}")
        for former, line in zip(before, lines, strict=False)
        if (kind := _kind(line.text))
    ]


def _kind(text: str) -> str | None:
    """Kind of the cause that a line names by its message or the exception in it."""
    message, exception = text, text
    if level := _LEVEL.match(text):
        before = _TO_EXCEPTION.match(text)
        message, exception = text[level.end() :], text[before.end() :] if before else ""
    for kind, said, thrown in _CAUSES:
        if said.search(message) or thrown.search(exception):
            return kind
    return None


def counted(history: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Observations of a unit that count: when, and how often its process had ended by then.

    They are those of the last hour, or fewer: the count begins again when a person starts the unit.
    """
    own: list[tuple[float, int]] = []
    for at, ends in history:
        if own and ends < own[-1][1]:
            own = [(at, 0)]
        own.append((at, ends))
    return tuple(entry for entry in own[-MOST:] if own[-1][0] - entry[0] <= WINDOW_SECONDS)


def by_process(lines: Sequence[JournalLine]) -> tuple[list[Ended], list[JournalLine]]:
    """Processes that have ended, the oldest first, and the lines of the one that has not."""
    processes: list[Ended] = []
    own: list[JournalLine] = []
    for line in lines:
        own.append(line)
        if line.ended:
            processes.append((line.ended, own))
            own = []
    return processes, own


def in_words(why: Cause | None) -> str:
    """A cause in words, empty if it is not known."""
    if why is None:
        return ""
    where = f" by {why.address}" if why.kind.endswith("refused") else f" ({why.address})"
    topic = f" (topic {why.topic})" if why.topic else ""
    return f"{WORDS[why.kind]}{where if why.address else ''}{topic}"


def age_in_words(why: Cause | None, now: float) -> str:
    """When a cause was logged, as the end of its sentence; empty: not long ago."""
    if why is None or not why.at or now - why.at <= RECENT_SECONDS:
        return ""
    return datetime.fromtimestamp(why.at, UTC).strftime(", last said at %Y-%m-%d %H:%M:%S UTC")


def first_end(ends: Sequence[Ended]) -> str:
    """How the first of these processes ended, and the first cause that one of them names."""
    named = (in_words(cause(lines, lines[-1].at)) for _, lines in ends)
    why = next((text for text in named if text), "")
    return ends[0][0] + (f": {why}" if why else "") if ends else ""
