"""Positions and workers are read where an engine keeps them."""

from collections.abc import Collection
from typing import Any

import pytest
from made_up import EVERY, flow_of

from mirror_report.config import Cluster, Credentials
from mirror_report.engines import Engine, PositionStore, WorkerStore
from mirror_report.kafka import positions
from mirror_report.model import GroupSnapshot


class Asked:
    """Clients that know who was asked, and a cluster on which everything is empty."""

    cluster = Cluster("west", ("west1:9092",))

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.aliases: set[str] = set()
        self.topics: set[str] = set()
        self.groups: list[str] = []

        def own_topics(_: Any, names: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
            self.topics |= set(names)
            return {}, {}

        monkeypatch.setattr(positions, "own_topics", own_topics)
        monkeypatch.setattr(positions, "catch_up", lambda *_: {})
        monkeypatch.setattr(positions.groups, "committed", lambda *_: {"g": {"t": {0: 7}}})
        monkeypatch.setattr(positions.groups, "snapshot", self.snapshot)

    def snapshot(self, _client: Any, group_id: str, *, consumers: bool) -> GroupSnapshot:
        """A question about a group that is only noted."""
        self.groups.append("consumers" if consumers else "workers")
        return GroupSnapshot(group_id, "Stable", ())

    def client(self, alias: str) -> Any:
        """Itself, for any cluster."""
        self.aliases.add(alias)
        return self


@pytest.mark.parametrize("engine", EVERY, ids=lambda engine: engine.name)
def test_positions_are_read_where_the_engine_keeps_them(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, flow = Asked(monkeypatch), flow_of(engine)
    in_group = engine.positions is PositionStore.SOURCE_GROUP
    found = positions.mirror_status(asked.client, Credentials(), flow, {})
    assert found.positions == ({"t": {0: 7}} if in_group else {})
    assert asked.aliases == positions.clusters(flow)
    assert ("east" in asked.aliases) is in_group
    assert ("offsets" in asked.topics) is not in_group
    assert ("status" in asked.topics) is (engine.workers is WorkerStore.STATUS_TOPIC)
    assert ("syncs" in asked.topics) is engine.has_offset_syncs
    assert asked.groups == []
    positions.worker_group(asked.client, flow)
    members = engine.workers is WorkerStore.GROUP_MEMBERS
    assert asked.groups == ["consumers" if members else "workers"]
