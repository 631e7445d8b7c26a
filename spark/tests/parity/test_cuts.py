"""Where both logs are cut alike."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from mirror_report.parity import thinned
from mirror_report.parity.plan import cuts
from mirror_report.parity.plan.cuts import Span
from mirror_report.parity.state import Cut, Track

MINUTE = 60_000
NONE = Track()


def advance(
    *offsets: tuple[int, int, int], begun: Track = NONE, repeats: bool = True
) -> tuple[Cut, ...] | None:
    """Cuts after syncs at (upstream, downstream, minute)."""
    found = after(begun, *offsets, repeats=repeats)
    return found.cuts if found else None


def after(begun: Track, *offsets: tuple[int, int, int], repeats: bool = True) -> Track | None:
    some = [Cut(u, d, m * MINUTE) for u, d, m in offsets]
    found = cuts.advance(begun, some, MINUTE, repeats=repeats)
    if found is not None:
        assert Track.load(json.loads(json.dumps(found.dump()))) == found
    return found


def begun(*offsets: tuple[int, int, int]) -> Track:
    found = after(NONE, *offsets)
    assert found is not None
    return found


HUNDREDS = begun(*((i * 100, i * 100, i) for i in range(5)))


def test_cuts_are_a_minute_apart_or_what_can_be_read_again() -> None:
    assert advance((5, 3, 10), (105, 103, 10), (205, 203, 11), (305, 303, 11)) == (
        Cut(5, 3, 10 * MINUTE), Cut(205, 203, 11 * MINUTE),
    )  # fmt: skip
    most = cuts.MOST_RECORDS
    assert advance((0, 0, 1), (most - 1, 9, 1), (most, 10, 1)) == (
        Cut(0, 0, MINUTE), Cut(most, 10, MINUTE + 1),
    )  # fmt: skip


def test_a_later_observation_goes_on_from_the_last_cut() -> None:
    first = begun((0, 0, 1), (100, 100, 2))
    assert advance((150, 150, 2), (200, 200, 3), begun=first) == (
        *first.cuts, Cut(200, 200, 3 * MINUTE),
    )  # fmt: skip


def test_a_clock_that_goes_back_leaves_the_order() -> None:
    most = cuts.MOST_RECORDS
    assert advance((0, 0, 9), (most, 5, 3)) == (Cut(0, 0, 9 * MINUTE), Cut(most, 5, 9 * MINUTE + 1))


def test_what_a_mirror_repeats_makes_one_bucket_of_all_it_repeats() -> None:
    # Killed after 450, it goes on from 250: offsets 450 to 650 of the target hold those again.
    killed = after(HUNDREDS, (250, 450, 16), (350, 550, 16))
    assert killed is not None
    assert killed.cuts == HUNDREDS.cuts[:3]
    later = advance((850, 1050, 16), (950, 1150, 17), begun=killed)
    assert later == (*HUNDREDS.cuts[:3], Cut(950, 1150, 17 * MINUTE))
    assert advance((400, 400, 5), begun=HUNDREDS) == HUNDREDS.cuts, "the same sync again"


def test_a_mirror_that_repeats_itself_from_beyond_its_last_sync_is_noticed() -> None:
    # Killed after 480, it goes on from 450: a cut there would part copies from their originals.
    killed = after(HUNDREDS, (450, 480, 60))
    assert killed is not None
    assert killed.cuts == HUNDREDS.cuts
    assert advance((530, 560, 60), (630, 660, 60), begun=killed) == (
        *HUNDREDS.cuts, Cut(630, 660, 60 * MINUTE),
    )  # fmt: skip


def test_another_writer_delays_cuts_and_does_not_prevent_them() -> None:
    trickle = [(500 + i * 100, 500 + i * 101, 5 + i) for i in range(60)]
    found = advance(*trickle, begun=HUNDREDS)
    assert found is not None
    assert len(HUNDREDS.cuts) + 2 <= len(found) < len(HUNDREDS.cuts) + 30


def test_markers_of_a_target_written_exactly_once_are_no_repetition() -> None:
    marked = [(500 + i * 100, 500 + i * 101, 5 + i) for i in range(9)]
    assert len(advance(*marked, begun=HUNDREDS, repeats=False) or ()) == 14


def test_offsets_that_the_source_passes_over_change_nothing() -> None:
    assert advance((600, 500, 6), (700, 600, 7), begun=HUNDREDS) == (
        *HUNDREDS.cuts, Cut(600, 500, 6 * MINUTE), Cut(700, 600, 7 * MINUTE),
    )  # fmt: skip


def test_syncs_that_go_back_on_the_target_or_before_everything_begin_again() -> None:
    later = begun((100, 100, 1), (200, 200, 2))
    assert advance((300, 50, 5), begun=later) is None
    assert advance((50, 300, 5), begun=later) is None


def test_the_ends_of_drained_logs_close_the_last_bucket() -> None:
    track = begun((0, 0, 0), (100, 100, 1))
    assert cuts.closed(track, 140, 141, 5 * MINUTE).cuts[-1] == Cut(140, 141, 5 * MINUTE)
    assert cuts.closed(track, 100, 100, 5 * MINUTE) == track
    assert cuts.closed(track, 90, 100, 5 * MINUTE) == track
    # Only the target has more: whoever wrote it, it lies in a bucket of its own.
    extra = cuts.closed(track, 100, 103, 5 * MINUTE)
    assert cuts.spans(extra.cuts, "target")[-1] == Span(100, 103, MINUTE)
    assert len(cuts.spans(extra.cuts, "source")) == 1
    assert advance((100, 103, 6), (200, 203, 7), begun=extra) == (
        *extra.cuts, Cut(200, 203, 7 * MINUTE),
    )  # fmt: skip


def test_of_very_many_cuts_the_older_ones_become_fewer() -> None:
    many = [Cut(i, i, i) for i in range(cuts.MOST_CUTS + 1)]
    found = thinned(many, cuts.MOST_CUTS)
    assert found[0] == many[0]
    assert found[-cuts.MOST_CUTS // 2 :] == many[-cuts.MOST_CUTS // 2 :]
    assert thinned(many[1:], cuts.MOST_CUTS) == many[1:]
    assert len(found) < 0.8 * cuts.MOST_CUTS


steps = st.lists(st.tuples(st.integers(1, 300), st.integers(0, 3)), min_size=2, max_size=60)


@given(steps, st.integers(1, 20))
def test_spans_cover_what_lies_between_the_cuts_once_and_on_both_sides(
    moved: list[tuple[int, int]], batch: int
) -> None:
    at, minute, syncs = 0, 0, []
    for records, minutes in moved:
        syncs.append(Cut(at, at + 7, minute * MINUTE))
        at, minute = at + records, minute + minutes
    track: Track | None = NONE
    for begin in range(0, len(syncs), batch):
        track = cuts.advance(track or NONE, syncs[begin : begin + batch], MINUTE)
    assert track == cuts.advance(NONE, syncs, MINUTE), "syncs may be read in any batches"
    assert track is not None
    found = track.cuts
    for side, first in (("source", 0), ("target", 7)):
        some = cuts.spans(found, side)
        assert [span.start for span in some[:1]] == [first][: len(some)]
        assert all(span.end == following.start for span, following in itertools.pairwise(some))
        assert [span.label for span in some] == sorted({span.label for span in some})
    assert cuts.spans(found, "source", 10, 11) == [
        span for span in cuts.spans(found, "source") if span.start <= 10 < span.end
    ]
