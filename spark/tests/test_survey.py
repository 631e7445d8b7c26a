"""What a report remembers of topics that the target alone has."""

from __future__ import annotations

from typing import Any

from mirror_report import engines
from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.report.survey import _held

FLOW = Flow("orders", "east", "west", ".*", engines.MM2)


class Cluster:
    """Answers for topics by name: (start, end) of a log, or why it cannot be read."""

    def __init__(self, logs: dict[str, tuple[int, int] | str]) -> None:
        self.logs = logs
        self.asked: list[str] = []

    def snapshot(self, _: None, names: Any, **_settings: bool) -> ClusterSnapshot:
        """As that of a client."""
        self.asked += names
        known = {name: self.logs[name] for name in names if name in self.logs}
        topics = {
            name: TopicSnapshot(name, "id", {0: PartitionSnapshot(log[0], log[1], log[1])}, {}, 1)
            for name, log in known.items()
            if not isinstance(log, str)
        }
        errors = {name: log for name, log in known.items() if isinstance(log, str)}
        return ClusterSnapshot("c", "c", 0, topics, errors)


def test_topics_of_the_target_that_hold_records_are_kept_unless_the_source_has_them() -> None:
    target = Cluster({"full": (0, 5), "empty": (0, 0), "expired": (5, 5), "here": (0, 5),
                      "hidden": (0, 5)})  # fmt: skip
    source = Cluster({"here": (0, 1), "hidden": "permission DESCRIBE is missing"})
    clients: Any = {"east": source, "west": target}
    unfed = ["empty", "expired", "full", "here", "hidden", "known"]
    assert _held(clients, FLOW, unfed, ["known", "gone"]) == ["full", "known"]
    assert "known" not in target.asked, "it is known to have held some"
    assert sorted(source.asked) == ["full", "here", "hidden"]


def test_without_such_topics_nobody_is_asked() -> None:
    assert _held({}, FLOW, [], ["gone"]) == []  # type: ignore[arg-type]
