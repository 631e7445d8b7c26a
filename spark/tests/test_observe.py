"""Which topics are asked for by name, and what is asked again."""

from collections.abc import Collection
from typing import Any

from mirror_report.config import Credentials, Flow
from mirror_report.model import (
    ClusterSnapshot,
    GroupSnapshot,
    MirrorStatus,
    Observed,
    PartitionSnapshot,
    TopicSnapshot,
)
from mirror_report.observe import Clients, literals, with_later_ends


def test_named_topics_are_asked_for_by_name() -> None:
    flow = Flow("f", "east", "west", "b|a\\.x", topics=("b", "a\\.x", "b"), group_id="g")
    assert literals(flow) == ["a.x", "b"]


def test_excluded_topics_are_not_asked_for() -> None:
    flow = Flow("f", "east", "west", "(?!(?:b)$)(?:a|b)", topics=("a", "b"), group_id="g")
    assert literals(flow) == ["a"]


def test_a_regex_names_nothing() -> None:
    assert literals(Flow("f", "east", "west", "a.*", topics=("a.*",), group_id="g")) == []


def snapshot(**ends: int) -> ClusterSnapshot:
    topics = {
        name: TopicSnapshot(name, "id", {0: PartitionSnapshot(0, end, end)}, {"kept": "yes"}, None)
        for name, end in ends.items()
    }
    return ClusterSnapshot("east", "id", 1, topics)


class Later:
    """A cluster that has changed since it was observed."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def snapshot(self, _: Any, names: Collection[str], *, settings: bool) -> ClusterSnapshot:
        """Ends of the topics asked for, as they are now."""
        assert not settings
        self.asked = sorted(names)
        return snapshot(**dict.fromkeys(names, 150))


def test_mirror_at_work_that_commits_past_the_ends_seen_is_held_against_newer_ones() -> None:
    east: Any = Later()
    clients = Clients({"east": east}, Credentials())
    flow = Flow("f", "east", "west", "a|b", topics=("a", "b"), group_id="g")
    positions = {"a": {0: 120}, "b": {0: 100}, "gone": {0: 5}}
    group = GroupSnapshot("g", "Stable", ())
    seen = Observed(snapshot(a=100, b=100), MirrorStatus(positions), group, snapshot(), None)
    after = with_later_ends(clients, flow, seen)
    assert east.asked == ["a"]
    assert after.source.topics["a"].partitions[0].end == 150
    assert after.source.topics["a"].configs == {"kept": "yes"}
    assert after.source.topics["b"] == seen.source.topics["b"]
    east.asked = []
    seen = Observed(snapshot(a=120, b=100), MirrorStatus(positions), group, snapshot(), None)
    assert with_later_ends(clients, flow, seen) is seen
    assert east.asked == []
