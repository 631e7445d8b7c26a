"""Records are read without a group, from given offsets on, and every consumer is closed."""

import json
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import (
    CorruptRecordError,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
    UnsupportedVersionError,
)

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka import records
from mirror_report.kafka.connection import DeniedError, UnreadableError
from mirror_report.kafka.mirror_topics import Tail, catch_up, foreign_records
from mirror_report.kafka.record_formats import FormatError
from mirror_report.kafka.records import fetch
from mirror_report.model import ForeignRecords, PartitionSnapshot, TopicSnapshot

EAST = Cluster("east", ("east1:9092",))


class Log:
    """A consumer of one partition that holds offsets up to 5, of which 3 and 4 are markers."""

    opened: "Log"
    refuses = False
    # Whether kafka-python has begun to take the batch apart that it cannot read.
    broken: "Exception | None" = None
    begun = True
    # The topic that holds it; by default the one that is read first.
    breaks: "str | None" = None

    def __init__(self, **options: Any) -> None:
        Log.opened = self
        self.options = options
        self.closed = False
        self.at: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self._cluster = SimpleNamespace(config={})
        self._fetcher = SimpleNamespace(_next_partition_records=None)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Take partitions."""
        self.at = dict.fromkeys(partitions, 0)

    def assignment(self) -> set[TopicPartition]:
        """Partitions taken."""
        return set(self.at)

    def seek(self, at: TopicPartition, offset: int) -> None:
        """Go on from an offset."""
        self.at[at] = offset

    def position(self, at: TopicPartition) -> int:
        """Next offset."""
        return self.at[at]

    def pause(self, *some: TopicPartition) -> None:
        """Ask for no more of some partitions."""
        self.paused.update(some)

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        """Records of all partitions up to their end."""
        assert timeout_ms
        if self.refuses:
            raise TopicAuthorizationFailedError("t")
        first = next(iter(self.at))
        if self.broken and first not in self.paused and self.breaks in (None, first.topic):
            self._fetcher._next_partition_records = (
                SimpleNamespace(topic_partition=first) if self.begun else None
            )
            raise self.broken
        found = {
            at: [
                SimpleNamespace(
                    topic=at.topic, partition=at.partition, offset=offset, timestamp=1000 + offset,
                    timestamp_type=0, key=b"k", value=b"v", headers=[],
                )
                for offset in range(begin, 3)
            ]
            for at, begin in self.at.items()
            if at not in self.paused
        }  # fmt: skip
        self.at = {at: place if at in self.paused else 5 for at, place in self.at.items()}
        return {at: some for at, some in found.items() if some}

    def close(self, *, autocommit: bool) -> None:
        """Close without committing."""
        assert not autocommit
        self.closed = True


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> type[Log]:
    monkeypatch.setattr(records, "KafkaConsumer", Log)
    monkeypatch.setattr(Log, "refuses", False)
    monkeypatch.setattr(Log, "broken", None)
    monkeypatch.setattr(Log, "begun", True)
    monkeypatch.setattr(Log, "breaks", None)
    return Log


def test_age_is_of_the_first_record_and_markers_have_none() -> None:
    waiting = {("t", 0): (1, 5), ("t", 1): (3, 5)}
    found = records.oldest_waiting(EAST, Credentials(), waiting, isolation="read_committed")
    assert found.answers == {("t", 0): 1001, ("t", 1): None}
    options = Log.opened.options
    assert (options["group_id"], options["enable_auto_commit"]) == (None, False)
    assert (options["isolation_level"], options["client_id"]) == (
        "read_committed", "mirror-report-east-age",
    )  # fmt: skip
    assert Log.opened._cluster.config == {"allow_auto_create_topics": False}
    assert Log.opened.closed


def test_nothing_waiting_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "KafkaConsumer", None)
    assert records.oldest_waiting(EAST, Credentials(), {}).answers == {}
    assert fetch(EAST, Credentials(), {}).answers == {}


def test_one_fetch_brings_what_follows_an_offset() -> None:
    found = records.fetched_at(EAST, Credentials(), ("t", 0), 1, "read_uncommitted")
    assert [record.offset for record in found.answers["t", 0]] == [1, 2]
    probed = fetch(EAST, Credentials(), {("t", 0): (0, 2)})
    assert [record.offset for record in probed.answers["t", 0]] == [0, 1]


def test_compacted_topic_is_read_on_to_its_end() -> None:
    topic = TopicSnapshot("t", "id", {0: PartitionSnapshot(0, 5, 5)}, {}, None)
    tail = Tail(next={0: 1})
    read: list[int] = []

    def decode(record: Any) -> tuple[str, Any]:
        read.append(record.offset)
        return "k", None if record.offset == 2 else record.offset

    catch_up(EAST, Credentials(), [(topic, tail, decode)], 5)
    assert (read, tail.latest, tail.next) == ([1, 2], {}, {0: 5})
    assert Log.opened.closed


def test_record_of_another_format_is_passed_over_and_counted() -> None:
    topic = TopicSnapshot("t", "id", {0: PartitionSnapshot(0, 5, 5)}, {}, None)
    tail = Tail("id", read_at_ms=7, next={0: 0})

    def decode(record: Any) -> tuple[str, Any]:
        if record.offset < 2:
            raise FormatError(f"{record.offset} is no number")
        return "k", record.offset

    catch_up(EAST, Credentials(), [(topic, tail, decode)], 5)
    assert tail.latest == {"k": 2}
    assert foreign_records({"t": tail, "u": tail}, ["t", "gone"]) == (
        ForeignRecords("t", 0, 2, 1, "1 is no number", 7),
    )
    assert Tail.load(json.loads(json.dumps(tail.dump()))) == tail
    former = {key: value for key, value in tail.dump().items() if key != "foreign"}
    assert Tail.load(former).foreign == {}, "the state of a release before this one"
    tail.fit(TopicSnapshot("t", "another", {0: PartitionSnapshot(0, 5, 5)}, {}, None), 8)
    assert not tail.foreign


def test_refusal_names_the_topics_and_closes_the_consumer(log: type[Log]) -> None:
    log.refuses = True
    topic = TopicSnapshot("t", "id", {0: PartitionSnapshot(0, 5, 5)}, {}, None)
    with pytest.raises(DeniedError) as raised:
        catch_up(EAST, Credentials(), [(topic, Tail(next={0: 0}), lambda _: None)], 5)
    assert "may not read t" in raised.value.message
    assert raised.value.action == "Grant it READ on topics t"
    assert Log.opened.closed
    with pytest.raises(DeniedError, match="may not read records"):
        records.oldest_waiting(EAST, Credentials(), {("t", 0): (0, 5)})


BROKEN = [
    UnsupportedCodecError("Unrecognized compression type: 7"),
    CorruptRecordError("failed crc check"),
    # As a broker says that a client is too old for the format of its records.
    UnsupportedVersionError("Unexpected error while fetching data"),
    ValueError("zstd: input is corrupt"),
    struct.error("unpack requires a buffer of 4 bytes"),
]


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_batch_that_cannot_be_read_fails_its_partition_alone(
    log: type[Log], error: Exception
) -> None:
    log.broken = error
    for found in (
        records.oldest_waiting(EAST, Credentials(), {("t", 0): (1, 5), ("t", 1): (1, 5)}),
        fetch(EAST, Credentials(), {("t", 0): (1, 5), ("t", 1): (1, 5)}),
    ):
        assert found.answers.keys() == {("t", 1)}
        assert type(error).__name__ in found.failed.pop(("t", 0))
        assert found.failed == {}
    (why,) = records.fetched_at(
        EAST, Credentials(), ("t", 0), 1, "read_uncommitted"
    ).failed.values()
    assert str(error) in why


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_batch_of_an_unknown_partition_is_no_fault_of_the_cluster(
    log: type[Log], error: Exception
) -> None:
    log.broken, log.begun = error, False
    with pytest.raises(UnreadableError, match=type(error).__name__):
        records.oldest_waiting(EAST, Credentials(), {("t", 0): (1, 5), ("t", 1): (1, 5)})


@pytest.mark.parametrize("begun", [True, False], ids=["its partition is known", "it is not"])
@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_batch_of_a_topic_of_the_mirror_that_cannot_be_read_fails_that_topic_alone(
    log: type[Log], error: Exception, begun: bool
) -> None:
    tails = {name: Tail(next={0: 1}) for name in ("t", "u")}
    reads = [
        (TopicSnapshot(name, "id", {0: PartitionSnapshot(0, 5, 5)}, {}, None), tail,
         lambda record: ("k", record.offset))
        for name, tail in tails.items()
    ]  # fmt: skip
    log.broken, log.begun, log.breaks = error, begun, "t"
    failed = catch_up(EAST, Credentials(), reads, 5)
    assert failed.keys() == {"t"}
    assert (failed["t"].kind, str(error) in failed["t"].message) == ("unreadable", True)
    assert (tails["t"].next, tails["t"].latest) == ({0: 1}, {}), "the next run asks again"
    assert (tails["u"].next, tails["u"].latest) == ({0: 5}, {"k": 2})


def test_codec_that_is_not_installed_is_named(
    log: type[Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    log.broken = UnsupportedCodecError("Libraries for zstd compression codec not found")
    monkeypatch.setattr("kafka.codec.zstd", None)
    found = records.oldest_waiting(EAST, Credentials(), {("t", 0): (1, 5)})
    assert "zstandard is not installed" in found.failed["t", 0]
