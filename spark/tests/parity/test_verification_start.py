"""From which offset on every record of the source has to be on the target, by what is committed."""

import pytest

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import Observation, Watch

PLACE = ("t", 0)


def cluster(alias: str, start: int, end: int) -> ClusterSnapshot:
    topic = TopicSnapshot("t", "id", {0: PartitionSnapshot(start, end, end)}, {}, None)
    return ClusterSnapshot(alias, alias, 1, {"t": topic})


def watch(committed: int | None, *, on_target: int = 40, alive: bool = True) -> Watch:
    """Over a source that holds offsets 10 to 99."""
    flow = Flow("f", "east", "west", "t", topics=("t",), group_id="g")
    positions = {} if committed is None else {"t": {0: committed}}
    west, east = cluster("west", 0, on_target), cluster("east", 10, 100)
    return Watch(Observation(flow, positions, alive, west, east))


def saw(watched: Watch, *committed: int | None, alive: bool = True) -> Watch:
    for position in committed:
        watched.saw({} if position is None else {"t": {0: position}}, alive=alive)
    return watched


def test_a_mirror_without_members_goes_on_from_its_position() -> None:
    watched = saw(watch(50), 50, alive=False)
    assert not watched.waits
    assert watched.decided() == {PLACE: 50}


def test_a_position_that_changed_twice_lies_past_what_was_copied() -> None:
    watched = saw(watch(50), 50, 60)
    assert watched.waits, "the first change may have been computed before the target was observed"
    watched.saw({"t": {0: 75}}, alive=True)
    assert not watched.waits
    assert watched.decided() == {PLACE: 75}


def test_the_first_observation_is_no_change() -> None:
    assert saw(watch(50), 60, 75).waits


def test_a_position_that_is_committed_for_the_first_time_is_a_change() -> None:
    assert saw(watch(None), None, 60, 75).decided() == {PLACE: 75}


@pytest.mark.parametrize("position", [100, 120])
def test_the_end_that_was_seen_is_far_enough(position: int) -> None:
    watched = saw(watch(50), position)
    assert not watched.waits
    assert watched.decided() == {PLACE: 100}


def test_a_position_that_stands_still_decides_nothing_and_the_end_is_taken() -> None:
    watched = saw(watch(50), *[60] * 10)
    assert watched.waits
    assert watched.decided() == {PLACE: 100}


def test_a_position_that_is_set_back_takes_no_record_in_again() -> None:
    assert saw(watch(50), 20, alive=False).decided() == {PLACE: 50}


def test_nothing_committed_and_an_empty_target_need_no_observation() -> None:
    watched = watch(None, on_target=0)
    assert not watched.waits
    assert watched.decided() == {PLACE: 10}


def test_an_empty_target_of_a_mirror_that_has_commits_is_waited_for() -> None:
    assert watch(50, on_target=0).waits


def test_a_mirror_that_reached_the_end_needs_no_observation() -> None:
    assert not watch(100).waits
