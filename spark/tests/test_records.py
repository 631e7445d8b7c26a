"""Records are read without a group, from given offsets on, and every consumer is closed."""

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from mirror_report.config import Cluster, Credentials
from mirror_report.kafka import records
from mirror_report.kafka.connection import DeniedError
from mirror_report.kafka.records import fetch
from mirror_report.kafka.tails import Tail, catch_up
from mirror_report.model import PartitionSnapshot, TopicSnapshot

EAST = Cluster("east", ("east1:9092",))


class Log:
    """A consumer of one partition that holds offsets up to 5, of which 3 and 4 are markers."""

    opened: "Log"
    refuses = False

    def __init__(self, **options: Any) -> None:
        Log.opened = self
        self.options = options
        self.closed = False
        self.at: dict[TopicPartition, int] = {}
        self._cluster = SimpleNamespace(config={})

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

    def pause(self, *_: TopicPartition) -> None:
        """Ask for no more of some partitions."""

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        """Records of all partitions up to their end."""
        assert timeout_ms
        if self.refuses:
            raise TopicAuthorizationFailedError("t")
        found = {
            at: [
                SimpleNamespace(
                    topic=at.topic, partition=at.partition, offset=offset, timestamp=1000 + offset,
                    timestamp_type=0, key=b"k", value=b"v", headers=[],
                )
                for offset in range(begin, 3)
            ]
            for at, begin in self.at.items()
        }  # fmt: skip
        self.at = dict.fromkeys(self.at, 5)
        return {at: some for at, some in found.items() if some}

    def close(self, *, autocommit: bool) -> None:
        """Close without committing."""
        assert not autocommit
        self.closed = True


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> type[Log]:
    monkeypatch.setattr(records, "KafkaConsumer", Log)
    monkeypatch.setattr(Log, "refuses", False)
    return Log


def test_age_is_of_the_first_record_and_markers_have_none() -> None:
    waiting = {("t", 0): (1, 5), ("t", 1): (3, 5)}
    found = records.oldest_waiting(EAST, Credentials(), waiting, isolation="read_committed")
    assert found == {("t", 0): 1001, ("t", 1): None}
    options = Log.opened.options
    assert (options["group_id"], options["enable_auto_commit"]) == (None, False)
    assert (options["isolation_level"], options["client_id"]) == (
        "read_committed", "mirror-report-east-age",
    )  # fmt: skip
    assert Log.opened._cluster.config == {"allow_auto_create_topics": False}
    assert Log.opened.closed


def test_nothing_waiting_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "KafkaConsumer", None)
    assert records.oldest_waiting(EAST, Credentials(), {}) == {}
    assert fetch(EAST, Credentials(), {}) == {}


def test_one_fetch_brings_what_follows_an_offset() -> None:
    found = records.fetched_at(EAST, Credentials(), ("t", 0), 1, "read_uncommitted")
    assert [record.offset for record in found] == [1, 2]
    probed = fetch(EAST, Credentials(), {("t", 0): (0, 2)})
    assert [record.offset for record in probed["t", 0]] == [0, 1]


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
