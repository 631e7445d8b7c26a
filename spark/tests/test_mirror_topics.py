"""Reading on where an earlier observation ended must give what reading everything gives."""

import pytest

from mirror_report.kafka.mirror_topics import TOMBSTONES_KEPT_MS, Tail
from mirror_report.model import PartitionSnapshot, TopicSnapshot

NOW = 1_800_000_000_000


def topic(start: int = 0, end: int = 100, id_: str = "id") -> TopicSnapshot:
    return TopicSnapshot("t", id_, {0: PartitionSnapshot(start, end, end)}, {}, None)


def read() -> Tail:
    return Tail("id", NOW, {0: 80}, {"key": [1]})


def test_tail_comes_back_from_its_state() -> None:
    assert Tail.load(read().dump()) == read()


def test_tail_goes_on_where_it_ended() -> None:
    tail = read()
    tail.fit(topic(), NOW + 1)
    assert (tail.next, tail.latest, tail.left(topic())) == ({0: 80}, {"key": [1]}, 20)


def test_new_tail_begins_at_the_log_start() -> None:
    tail = Tail()
    tail.fit(topic(start=30), NOW)
    assert (tail.next, tail.left(topic(start=30))) == ({0: 30}, 70)


@pytest.mark.parametrize(
    ("seen", "later"),
    [(topic(id_="new"), 1), (topic(end=79), 1), (topic(), TOMBSTONES_KEPT_MS)],
    ids=["another topic", "shorter log", "tombstones may be gone"],
)
def test_tail_begins_again_if_it_cannot_go_on(seen: TopicSnapshot, later: int) -> None:
    tail = read()
    tail.fit(seen, NOW + later)
    assert (tail.next, tail.latest, tail.topic_id) == ({0: 0}, {}, seen.topic_id)
