"""In which order groups are observed, and what becomes of those that may not be seen."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_report.config import Cluster
from mirror_report.config.load import parse
from mirror_report.groups import moving, proofs
from mirror_report.kafka import guarded
from mirror_report.kafka import records as probe
from mirror_report.kafka.connection import DeniedError
from mirror_report.kafka.records import HashedRecord
from mirror_report.lag.measure import LagResult
from mirror_report.model import (
    ClusterSnapshot,
    GroupParity,
    OffsetSync,
    PartitionLag,
    PartitionSnapshot,
    Positions,
    TopicSnapshot,
    Translation,
)

SETTINGS = parse(
    {
        "version": 1,
        "clusters": {
            alias: {"bootstrap_servers": [f"{alias}1:9092"]} for alias in ("east", "west")
        },
        "flows": [
            {
                "name": "orders", "engine": "mm2", "source": "east", "target": "west",
                "topics": ["t"], "include": "t", "group_id": "east-mm2",
                "replication_policy": "prefix", "offset_topic": "offsets",
                "status_topic": "status", "offset_syncs_topic": "syncs",
                "checkpoints_topic": "checkpoints", "consumer_groups": ["billing.*", "connect-.*"],
            }
        ],
    }
)  # fmt: skip
FLOW = SETTINGS.flows[0]
SYNCS = (OffsetSync(0, 0, 1), OffsetSync(100, 90, 2))


@dataclass
class Side:
    """One cluster as its client shows it, and the calls in the order they came."""

    alias: str
    end: int
    groups: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, Positions] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        """Where it is."""
        return SETTINGS.clusters[self.alias]

    def snapshot(self, _: Any, names: Any, *, settings: bool) -> ClusterSnapshot:
        """Its one topic."""
        assert not settings
        self.calls.append(f"ends of {self.alias}")
        log = {0: PartitionSnapshot(0, self.end, self.end)}
        topics = {name: TopicSnapshot(name, "id", log, {}, None) for name in names}
        return ClusterSnapshot(self.alias, self.alias, 1_000_000, topics)

    def committed(self, names: Any) -> dict[str, Positions]:
        """Offsets, or a refusal."""
        self.calls.append(f"offsets of {self.alias}")
        if self.refused & set(names):
            raise DeniedError(f"no DESCRIBE on {sorted(names)}. Grant it")
        return {name: self.offsets.get(name, {}) for name in names}


@dataclass
class Observation:
    """Both sides, and what an observation of them finds."""

    east: Side
    west: Side
    syncs: tuple[OffsetSync, ...] = SYNCS
    records: dict[str, dict[Any, list[HashedRecord]]] = field(default_factory=dict)
    asked: list[dict[Any, tuple[int, int]]] = field(default_factory=list)

    def rows(
        self, findings: list[str] | None = None, *, drained: bool = False, settings: Any = SETTINGS
    ) -> dict[str, GroupParity]:
        """Observe once.

        :param drained: the mirror was through with the source.
        """
        clients: Any = SimpleNamespace(
            get=lambda alias: getattr(self, alias), credentials=SETTINGS.credentials
        )
        nothing = ClusterSnapshot("c", "c", 0, {})
        observed: Any = SimpleNamespace(source=nothing, target=nothing)
        end = self.east.end
        lag = PartitionLag(FLOW.name, "t", 0, "OK", 0, end, end, 0 if drained else 1, 0.0)
        groups = moving.flow_groups(
            clients, FLOW, LagResult([lag], observed={FLOW.name: observed}), {},
            others=settings.into_one(FLOW), most_reread=settings.warn.reread_records,
        )  # fmt: skip
        if findings is not None:
            findings += [finding.kind for finding in groups.findings]
        return {row.group: row for row in groups.rows}


@pytest.fixture
def observation(monkeypatch: pytest.MonkeyPatch) -> Observation:
    calls: list[str] = []
    known = {"billing": "Stable", "billing-2": "Empty", "connect-x": "Stable", "other": "Stable"}
    both = Observation(
        Side("east", 200, known, {"billing": {"t": {0: 50}}, "billing-2": {"t": {0: 50}}}),
        Side("west", 200, {"billing": "Empty"}, {"billing": {"east.t": {0: 1}}}),
    )
    both.east.calls = both.west.calls = calls

    def fetch(cluster: Any, *_: Any, isolation: str) -> Any:
        assert isolation == "read_uncommitted"
        return guarded.Guarded(dict(both.records.get(cluster.alias, {})))

    def each(read: Any, asked: Any, seconds: float) -> Any:
        both.asked.append(asked)  # a child's list would be lost
        return guarded.each(read, asked, seconds)

    monkeypatch.setattr(moving, "translation", lambda *_: Translation({("t", 0): both.syncs}, {}))
    monkeypatch.setattr(moving.group_client, "states", lambda side, _=(): side.groups)
    monkeypatch.setattr(moving.group_client, "committed", lambda side, names: side.committed(names))
    monkeypatch.setattr(proofs, "fetch", fetch)
    monkeypatch.setattr(proofs, "guarded", SimpleNamespace(each=each, Guarded=guarded.Guarded))
    return both


def test_target_is_read_before_source_and_the_ends_last(observation: Observation) -> None:
    observation.rows()
    assert observation.east.calls == [
        "offsets of west", "offsets of east", "ends of west", "ends of east",
    ]  # fmt: skip


def test_groups_of_the_flow_alone_have_rows(observation: Observation) -> None:
    found = observation.rows()
    assert {name: (row.state, len(row.partitions)) for name, row in found.items()} == {
        "billing": ("ready", 1), "billing-2": ("not_synced", 1), "connect-x": ("not_synced", 0),
    }  # fmt: skip


@pytest.mark.parametrize("side", ["east", "west"])
def test_group_that_may_not_be_seen_is_unknown_and_the_others_are_not(
    observation: Observation, side: str
) -> None:
    getattr(observation, side).refused = {"billing-2"}
    findings: list[str] = []
    found = observation.rows(findings)
    assert (found["billing"].state, found["billing-2"].state) == ("ready", "unknown")
    assert (found["billing-2"].readiness, found["billing-2"].skip) == (None, None)
    assert findings == ["permission"]


def test_one_record_is_asked_for_where_syncs_prove_nothing(observation: Observation) -> None:
    observation.west.groups = {"billing": "Empty", "billing-2": "Empty"}
    observation.records = {
        "east": {("t", 0): [HashedRecord(50, b"a", 1), HashedRecord(51, b"b", 1)]},
        "west": {
            ("east.t", 0): [
                HashedRecord(44, b"x", 1),
                HashedRecord(45, b"a", 1),
                HashedRecord(46, b"b", 1),
            ]
        },
    }
    (row,) = observation.rows()["billing"].partitions
    assert (row.image, row.image_exact, row.reread) == (45, True, 44)
    # Two groups stand there, and the same records tell of both.
    assert observation.asked == [{("t", 0): (50, 70)}, {("east.t", 0): (30, 70)}]


def test_places_of_one_partition_are_asked_for_in_turns(observation: Observation) -> None:
    observation.east.offsets["billing-2"] = {"t": {0: 60}}
    observation.west.groups = {"billing": "Empty", "billing-2": "Empty"}
    observation.records = {
        "east": {("t", 0): [HashedRecord(50, b"a", 1), HashedRecord(60, b"b", 1)]},
        "west": {("east.t", 0): [HashedRecord(45, b"a", 1), HashedRecord(55, b"b", 1)]},
    }
    found = observation.rows()
    assert [found[name].partitions[0].image for name in ("billing", "billing-2")] == [45, 55]
    assert observation.asked == [
        {("t", 0): (50, 70)}, {("east.t", 0): (30, 70)},
        {("t", 0): (60, 80)}, {("east.t", 0): (40, 80)},
    ]  # fmt: skip


def test_group_at_work_on_the_target_is_not_asked_for(observation: Observation) -> None:
    del observation.east.offsets["billing-2"]
    observation.west.groups = {"billing": "Stable"}
    assert observation.rows()["billing"].state == "active_on_target"
    assert observation.asked == []


def test_record_found_twice_proves_nothing(observation: Observation) -> None:
    observation.records = {
        "east": {("t", 0): [HashedRecord(50, b"a", 1)]},
        "west": {("east.t", 0): [HashedRecord(45, b"a", 1), HashedRecord(46, b"a", 1)]},
    }
    (row,) = observation.rows()["billing"].partitions
    assert (row.image, row.image_exact) == (1, False)


def test_so_many_partitions_are_asked_and_no_more(
    observation: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe.PARTITIONS <= 200
    monkeypatch.setattr(proofs, "PARTITIONS", 1)
    observation.rows()
    assert len(observation.asked) == 2


LAST = HashedRecord(199, b"last", 1)


@pytest.mark.parametrize(
    ("offset", "ours", "theirs", "expected"),
    [
        # Nothing is left for the group, and nothing is behind the copy of what it read last.
        (200, [LAST], [HashedRecord(198, b"x", 1), HashedRecord(199, b"last", 1)], (200, True)),
        # Between its position and the end there are markers alone, as there are on the target.
        (197, [HashedRecord(196, b"last", 1)], [HashedRecord(190, b"last", 1)], (200, True)),
        # Somebody else wrote behind it.
        (
            200,
            [LAST],
            [HashedRecord(198, b"last", 1), HashedRecord(199, b"foreign", 1)],
            (91, False),
        ),
        # The last record is not there.
        (200, [LAST], [HashedRecord(199, b"foreign", 1)], (91, False)),
        # Its copy is there twice.
        (200, [LAST], [HashedRecord(198, b"last", 1), HashedRecord(199, b"last", 1)], (91, False)),
        # A record is left for it.
        (
            199,
            [LAST],
            [HashedRecord(195, b"last", 1), HashedRecord(199, b"foreign", 1)],
            (195, True),
        ),
        # There is no record to compare.
        (200, [], [HashedRecord(199, b"foreign", 1)], (91, False)),
    ],
)
def test_end_is_proved_by_the_last_record(
    observation: Observation,
    offset: int,
    ours: list[HashedRecord],
    theirs: list[HashedRecord],
    expected: tuple[int, bool],
) -> None:
    observation.east.offsets["billing"] = {"t": {0: offset}}
    observation.records = {"east": {("t", 0): ours}, "west": {("east.t", 0): theirs}}
    (row,) = observation.rows(drained=True)["billing"].partitions
    assert (row.image, row.image_exact) == expected


def test_end_of_a_topic_that_another_flow_feeds_is_not_known(observation: Observation) -> None:
    other = replace(FLOW, name="other", replication_policy="identity", include="east.t")
    observation.east.offsets["billing"] = {"t": {0: 200}}
    observation.records = {
        "east": {("t", 0): [LAST]}, "west": {("east.t", 0): [HashedRecord(199, b"last", 1)]},
    }  # fmt: skip
    for flows, exact in (((FLOW, other), False), ((FLOW,), True)):
        settings = replace(SETTINGS, flows=flows)
        (row,) = observation.rows(drained=True, settings=settings)["billing"].partitions
        assert row.image_exact is exact
