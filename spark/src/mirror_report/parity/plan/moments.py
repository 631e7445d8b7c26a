"""Moments of compacted topics: where the copies of what is new lie.

A run takes the ends of the source first, then the committed positions, then the ends of the target.
Whatever the source holds below those positions is on the target below those ends. And whatever the
target holds below its ends is a copy of what lies below the ends that the source has afterwards. So
copies of what lies beyond these lie beyond those, and nothing of the target below has to be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from mirror_report.parity import thinned
from mirror_report.parity.state import BEHIND_ALL, Offsets
from mirror_report.state.partitions import offsets, texts

# Per topic (:func:`parity.thinned`).
MOST = 32


@dataclass(frozen=True)
class Moment:
    """One moment of a topic.

    :param positions: below which everything was mirrored; ``ends``: of the target, taken after
        them.
    :param following: ends of the source, taken after those of the target; empty: not yet.
    """

    at_ms: int
    positions: Offsets
    ends: Mapping[int, int]
    following: Offsets = field(default_factory=dict)

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        positions, following = (
            {origin: offsets(parts) for origin, parts in plain[name].items()}
            for name in ("positions", "following")
        )
        return cls(plain["at_ms"], positions, offsets(plain["ends"]), following)

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "at_ms": self.at_ms,
            "ends": texts(self.ends),
            **{
                name: {origin: texts(parts) for origin, parts in getattr(self, name).items()}
                for name in ("positions", "following")
            },
        }

    def is_followed(self, bound: Offsets, partition: int | None) -> bool:
        """Whether copies of what lies at or beyond some offsets lie at or beyond its ends.

        :param partition: the only one that counts; ``None``: all do.
        """
        return bool(self.following) and all(
            end <= bound.get(origin, {}).get(number, 0)
            for origin, parts in self.following.items()
            for number, end in parts.items()
            if partition in (None, number)
        )


def followed(moments: Sequence[Moment], source_ends: Offsets) -> list[Moment]:
    """Moments of which each has ends that follow.

    :param source_ends: taken after all of them.
    """
    return [
        moment if moment.following else replace(moment, following=source_ends) for moment in moments
    ]


def noted(moments: Sequence[Moment], now: Moment) -> list[Moment]:
    """Moments with another one."""
    if moments:
        # A position that went back comes to what was mirrored before.
        now = replace(now, positions=_furthest(moments[-1].positions, now.positions))
    return thinned([*moments, now], MOST)


def start(
    moments: Sequence[Moment], bound: Offsets, partition: int, *, keeps_partitions: bool
) -> tuple[int, int | None]:
    """Where copies of what lies at or beyond some offsets begin in a partition of the target.

    :returns: the offset (0: nothing is known), and the time by which none of them was there.
    """
    scope = partition if keeps_partitions else None
    for moment in reversed(moments):
        if moment.is_followed(bound, scope):
            return moment.ends.get(partition, 0), moment.at_ms
    return 0, None


def gone_below(
    moments: Sequence[Moment],
    log_starts: Mapping[int, int],
    origin: str,
    partition: int,
    *,
    keeps_partitions: bool,
) -> int:
    """Source offset below which all copies lie below the log starts of the target."""
    for moment in reversed(moments):
        ends = {partition: moment.ends.get(partition, 0)} if keeps_partitions else moment.ends
        if all(log_starts.get(number, 0) >= end for number, end in ends.items()):
            return moment.positions.get(origin, {}).get(partition, 0)
    return 0


def kept_from(
    moments: Sequence[Moment],
    log_starts: Mapping[int, int],
    origin: str,
    partition: int,
    *,
    keeps_partitions: bool,
) -> int:
    """Source offset from which on no copy lies below the log starts of the target."""
    for moment in moments:
        if not moment.following:
            continue
        scope = [partition] if keeps_partitions else list(log_starts)
        if all(log_starts.get(number, 0) <= moment.ends.get(number, 0) for number in scope):
            return moment.following.get(origin, {}).get(partition, BEHIND_ALL)
    return BEHIND_ALL


def _furthest(former: Offsets, present: Offsets) -> dict[str, dict[int, int]]:
    return {
        origin: {
            partition: max(
                former.get(origin, {}).get(partition, 0), present.get(origin, {}).get(partition, 0)
            )
            for partition in {*former.get(origin, {}), *present.get(origin, {})}
        }
        for origin in {*former, *present}
    }
