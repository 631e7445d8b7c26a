"""Where both logs of a partition are cut alike, by MirrorMaker 2's offset syncs.

A sync says that source offset u became target offset d. Between two of them lie the same records on
both sides, unless something is wrong. A cut is called by a time, that of its sync, so that whatever
orders buckets by time, or asks how old they are, holds for these as well.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mirror_report.parity import thinned
from mirror_report.parity.state import BEHIND_ALL, Cut, Track

# Source offsets after which a cut is made whatever the time: so much is read again at most.
MOST_RECORDS = 100_000
# Per partition (:func:`parity.thinned`).
MOST_CUTS = 4096
# Source offsets per record that is too many on the target: markers lie between records.
SLACK = 3
# Who adds to the target that often is no mirror that repeats itself: another writer.
MOST_RAISED = 20


class Span(NamedTuple):
    """Offsets ``start`` to ``end`` (exclusive) of one side that make a bucket."""

    start: int
    end: int
    label: int


def advance(
    track: Track, syncs: Iterable[Cut], every_ms: int, *, repeats: bool = True
) -> Track | None:
    """Cuts after some newer syncs.

    If u - d falls, the target got more records than the source had. Most likely the mirror repeats
    itself after a crash: what it repeats lies on the target behind everything else. So the cuts
    above u go, their buckets become one, and the next cut comes after all that may be repeated.

    :param track: so far; without cuts the first sync makes the first one.
    :param syncs: in the order in which they were written.
    :param every_ms: about the time from cut to cut.
    :param repeats: false of a mirror that writes exactly once, whose target holds transaction
        markers instead.
    :returns: ``None`` if the syncs begin again somewhere else: nothing known fits them.
    """
    cuts, newest, barrier, raised = list(track.cuts), track.newest, track.barrier, track.raised
    for sync in syncs:
        if not cuts or newest is None:
            cuts, newest = cuts or [sync], sync
            continue
        if sync.upstream <= newest.upstream and sync.downstream <= newest.downstream:
            continue  # read again
        if sync.downstream < newest.downstream or sync.upstream < cuts[0].upstream:
            return None
        surplus = (newest.upstream - newest.downstream) - (sync.upstream - sync.downstream)
        newest = sync
        if repeats and surplus > 0:
            while cuts[-1].upstream > sync.upstream:
                cuts.pop()
            barrier = max(barrier, sync.upstream + SLACK * surplus)
            raised += 1
        last = cuts[-1]
        further = sync.upstream > last.upstream and sync.downstream > last.downstream
        repeating = sync.upstream <= barrier and raised < MOST_RAISED
        wide = sync.upstream - last.upstream >= MOST_RECORDS
        if further and not repeating and (wide or sync.label - last.label >= every_ms):
            cuts.append(sync._replace(label=max(sync.label, last.label + 1)))
            raised = 0
    return Track(tuple(thinned(cuts, MOST_CUTS)), newest, barrier, raised)


def closed(track: Track, upstream: int, downstream: int, now_ms: int) -> Track:
    """Cut at the ends of both logs, of a mirror that is known to be drained there."""
    last = track.cuts[-1]
    behind = upstream < last.upstream or downstream < last.downstream
    if behind or (upstream, downstream) == last[:2]:
        return track
    end = Cut(upstream, downstream, max(now_ms, last.label + 1))
    return Track((*track.cuts, end), end, -1, 0)


def spans(cuts: Sequence[Cut], side: str, start: int = 0, end: int = BEHIND_ALL) -> list[Span]:
    """Closed buckets of one side that touch some offsets."""
    at = 0 if side == "source" else 1
    between = [
        Span(cut[at], following[at], cut.label) for cut, following in itertools.pairwise(cuts)
    ]
    return [
        span for span in between if span.start < span.end and span.start < end and span.end > start
    ]
