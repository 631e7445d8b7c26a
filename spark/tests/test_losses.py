"""What the source dropped before it was mirrored: certain by number, or no more than a bound."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mirror_report import engines
from mirror_report.checks import losses, partition_history
from mirror_report.config import Cluster, Flow
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    GroupMember,
    GroupSnapshot,
    MirrorStatus,
    Observed,
    OffsetSync,
    PartitionSnapshot,
    Place,
    Positions,
    TopicSnapshot,
)
from mirror_report.state.baselines import of_flow

NOW = 1_800_000_000_000
ALIVE = GroupSnapshot("g", "Stable", (GroupMember("c", "10.0.0.1", (("t", 0),)),))
EMPTY = GroupSnapshot("g", "Empty", ())
AT: Place = ("t", 0)
EAST = Cluster("east", ("east1:9092",))
MM1 = Flow("orders", "east", "west", "t", topics=("t",), group_id="g", commit_interval_ms=10_000)
MM2 = Flow("orders", "east", "west", "t", engines.MM2, group_id="g", commit_interval_ms=60_000)


def cluster(alias: str, start: int, end: int, at: int = NOW) -> ClusterSnapshot:
    topic = TopicSnapshot("t", "id", {0: PartitionSnapshot(start, end, end)}, {}, None)
    return ClusterSnapshot(alias, alias, at, {"t": topic})


def earlier(*observations: tuple[float, int, int | None]) -> partition_history.FlowHistory:
    """Earlier observations: seconds ago, log end, position (``None``: nothing committed yet)."""
    lines: list[dict[str, Any]] = []
    for seconds_ago, end, position in observations:
        snapshot = cluster("east", 0, end, NOW - int(seconds_ago * 1000))
        positions: Positions = {"t": {} if position is None else {0: position}}
        lines.append(
            partition_history.new_line(
                partition_history.of_lines(lines), snapshot, positions, {}, "read_uncommitted"
            )
        )
    return partition_history.of_lines(lines)


def losses_of(
    position: int,
    start: int,
    *,
    end: int = 1000,
    flow: Flow = MM1,
    history: Sequence[tuple[float, int, int | None]] = (),
    alive: bool = True,
    sync: tuple[int, int] | None = None,
    target_end: int = 0,
    rises: Mapping[Place, int] | None = None,
    baseline: Mapping[str, Any] | None = None,
) -> tuple[int, int]:
    """Offsets lost, and those that may be."""
    syncs = {} if sync is None else {AT: OffsetSync(*sync, NOW)}
    found = losses.newly_lost(
        flow,
        Observed(
            cluster("east", start, end),
            MirrorStatus({"t": {0: position}}, {}, syncs),
            ALIVE if alive else EMPTY,
            cluster("west", 0, target_end),
            None,
        ),
        {AT: position},
        earlier(*history),
        baseline=of_flow(baseline or {}),
        rises=rises or {},
    )
    lost, maybe = found.get(AT, ([], []))
    return losses.offsets_in(lost), losses.offsets_in(maybe)


def test_log_start_before_the_position_is_no_loss() -> None:
    assert losses_of(100, 100, alive=False) == (0, 0)
    assert losses_of(100, 99, alive=False) == (0, 0)


def test_what_went_while_nobody_mirrored_is_lost_by_number() -> None:
    assert losses_of(100, 150, alive=False) == (50, 0)


def test_what_went_while_the_mirror_stood_still_is_lost_by_number() -> None:
    assert losses_of(100, 150, history=[(11, 1000, 100)]) == (50, 0)


def test_what_went_while_the_mirror_moved_is_no_more_than_a_bound() -> None:
    assert losses_of(100, 150, history=[(9, 1000, 100)]) == (0, 50)
    assert losses_of(100, 150, history=[(60, 1000, 80), (9, 1000, 100)]) == (0, 50)
    assert losses_of(100, 150) == (0, 50), "no observation before"


def test_mirror_that_jumped_over_what_went_is_bounded() -> None:
    assert losses_of(1000, 500, history=[(60, 900, 400)]) == (0, 100)
    assert losses_of(450, 500, history=[(60, 900, 400), (5, 900, 450)]) == (0, 50), (
        "since the last observation"
    )
    assert losses_of(1000, 400, history=[(60, 900, 400)]) == (0, 0)


def test_first_commit_beyond_what_went_is_a_jump_from_where_the_mirror_began() -> None:
    baseline = {"topics": {"t": {"source": {"0": 100}, "log_start": {"0": 100}}}}
    assert losses_of(1000, 500, history=[(60, 900, None)], baseline=baseline) == (0, 400)
    assert losses_of(1000, 50, history=[(60, 900, None)], baseline=baseline) == (0, 0)
    assert losses_of(1000, 500, history=[(60, 900, None)]) == (0, 0), "where it began is not known"


def test_records_that_came_and_went_unobserved_are_not_suspected_at_the_end_of_the_log() -> None:
    assert losses_of(1000, 950, history=[(60, 900, 900)]) == (0, 0)


def test_what_went_from_the_log_is_no_run_of_transaction_markers() -> None:
    known = partition_history.FlowHistory()
    drained, positions = {AT: 600}, {"t": {0: 500}}

    def through(start: int) -> dict[Place, int]:
        return partition_history.ends_of_markers(
            known, cluster("east", start, 600), positions, drained
        )

    assert through(0) == through(500) == {AT: 600}
    assert through(501) == through(600) == {}


def test_records_on_the_target_past_the_sync_were_copied_before_they_went() -> None:
    stopped = {"flow": MM2, "alive": False}
    assert losses_of(100, 150, sync=(90, 90), target_end=130, **stopped) == (20, 0)
    assert losses_of(100, 150, sync=(90, 90), target_end=160, **stopped) == (0, 0)
    assert losses_of(100, 150, sync=(90, 90), target_end=0, **stopped) == (50, 0)


def test_syncs_that_moved_apart_tell_how_much_was_passed_over() -> None:
    jumped: dict[str, Any] = {"flow": MM2, "history": [(60, 900, 400)]}
    assert losses_of(1000, 600, sync=(600, 420), rises={AT: 180}, **jumped) == (0, 180)
    assert losses_of(1000, 600, sync=(700, 700), rises={AT: 0}, **jumped) == (0, 0)
    assert losses_of(1000, 600, sync=(590, 590), rises={AT: 0}, **jumped) == (0, 200), (
        "older than that"
    )
    assert losses_of(400, 600, sync=(600, 420), rises={AT: 180}, **jumped) == (0, 180), (
        "not committed"
    )


def test_what_had_gone_at_the_baseline_is_accepted() -> None:
    baseline = {"topics": {"t": {"source": {"0": 100}, "log_start": {"0": 150}}}}
    assert losses_of(100, 150, alive=False, baseline=baseline) == (0, 0)
    assert losses_of(100, 170, alive=False, baseline=baseline) == (20, 0)
    assert losses_of(1000, 170, history=[(60, 900, 100)], baseline=baseline) == (0, 20)


def kept(*observations: tuple[losses.Ranges, losses.Ranges], baseline_ms: int = 0) -> losses.Losses:
    found: losses.Losses = {}
    baseline = Baseline(losses_since_ms=baseline_ms)
    for number, observation in enumerate(observations):
        found = losses.with_new(found, {AT: observation}, NOW + number, Baseline())
    return json.loads(json.dumps(losses.with_new(found, {}, NOW + 9, baseline)))  # type: ignore[no-any-return]


def test_loss_is_remembered_once_however_often_it_is_seen() -> None:
    found = kept(([[100, 150]], []), ([[100, 180]], []), ([], []))
    assert losses.counts(found) == {AT: (80, 0)}


def test_what_is_certain_is_no_longer_a_bound() -> None:
    found = kept(([], [[100, 200]]), ([[120, 150]], []), ([], [[190, 210]]))
    assert losses.counts(found) == {AT: (30, 80)}


def test_new_baseline_forgets_what_was_lost_before_it() -> None:
    assert losses.counts(kept(([[1, 5]], []), baseline_ms=NOW - 1)) == {AT: (4, 0)}
    assert kept(([[1, 5]], []), baseline_ms=NOW) == {}
    lost = losses.with_new({}, {AT: ([[1, 5]], []), ("u", 0): ([[7, 9]], [])}, NOW, Baseline())
    of_topic = of_flow({"topics": {"t": {"losses_since_ms": NOW}}})
    assert losses.with_new(lost, {}, NOW + 9, of_topic).keys() == {"u"}, "of that topic alone"


def test_certain_loss_is_critical_and_a_bound_a_warning() -> None:
    found = [*losses.findings(MM1, kept(([[100, 150]], [[200, 207]])), EAST)]
    assert [(finding.severity, finding.kind, finding.count) for finding in found] == [
        ("critical", "truncated", 50), ("warning", "possible_loss", 7),
    ]  # fmt: skip
    assert "partition 0: 50" in found[0].message
    for finding in found:
        assert "kafka-configs.sh --bootstrap-server east1:9092 --describe" in finding.action
        assert "mirror-report baseline --flow orders --topic t --renew" in finding.action
