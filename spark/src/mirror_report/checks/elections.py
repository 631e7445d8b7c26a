"""Elections of leaders: by one, a log may have lost its newest records and grown past them; no I/O.

What was written of such records before is about others now. So of each log that groups stand in it
is kept which leader epoch was its newest one, and where later ones began: an unclean leader begins
where the log was cut, any other at its end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_report.model import ClusterSnapshot, Epochs, EpochsWanted, Place

# Clocks of brokers, of the mirror and of this host may differ by so much.
SLACK_MS = 60_000
# Kept of one log; of more the oldest are put together.
KEPT = 8


@dataclass(frozen=True)
class Elections:
    """What is known of the leaders of one log.

    :param epoch: the newest; -1: not known.
    :param since_ms: since then no election went unseen.
    :param begun: where later epochs began, and by when (ms) that was seen; ascending offsets.
    """

    epoch: int
    since_ms: int
    begun: tuple[tuple[int, int], ...] = ()

    def allow(self, offset: int, at_ms: int) -> bool:
        """Whether the record at an offset is still the one that was there at some time."""
        return all(offset < start or at_ms > seen_ms + SLACK_MS for start, seen_ms in self.begun)

    @property
    def proves_from_ms(self) -> int:
        """What was written by then may be about records that were lost unseen."""
        return self.since_ms + SLACK_MS


def load(plain: Mapping[str, Any]) -> dict[Place, Elections]:
    """What :func:`dump` made."""
    return {
        (topic, int(number)): Elections(epoch, since_ms, tuple((s, at) for s, at in begun))
        for topic, some in plain.items()
        for number, (epoch, since_ms, begun) in some.items()
    }


def dump(known: Mapping[Place, Elections]) -> dict[str, Any]:
    """JSON types only."""
    plain: dict[str, Any] = {}
    for (topic, number), log in sorted(known.items()):
        begun = [list(one) for one in log.begun]
        plain.setdefault(topic, {})[str(number)] = [log.epoch, log.since_ms, begun]
    return plain


def wanted(now: ClusterSnapshot, known: Mapping[Place, Elections]) -> dict[Place, EpochsWanted]:
    """Logs that have another leader than when they were last looked at."""
    return {
        place: EpochsWanted(log.leader_epoch, log.log_start, ((known[place].epoch, -1),))
        for place, log in _logs(now)
        if place in known and log.leader_epoch is not None
        if log.leader_epoch > known[place].epoch >= 0
    }


def noted(
    now: ClusterSnapshot, known: Mapping[Place, Elections], found: Mapping[Place, Epochs]
) -> dict[Place, Elections]:
    """What is known by now.

    :param found: epochs of :func:`wanted`; of a log that keeps none, none; without those of leaders
        that did not tell.
    """
    at_ms = now.taken_at_ms
    noted = dict(known)
    for place, log in _logs(now):
        before = known.get(place)
        if before is None or log.leader_epoch is None or before.epoch < 0:
            epoch = -1 if log.leader_epoch is None else log.leader_epoch
            # A log with its first leader has seen no election.
            noted[place] = Elections(epoch, at_ms if epoch else 0)
        elif log.leader_epoch > before.epoch:
            newer = [start for epoch, start in found.get(place, ()) if epoch > before.epoch]
            told = replace(before, epoch=log.leader_epoch) if place in found else before
            noted[place] = (
                replace(told, begun=_with(before.begun, min(newer), at_ms)) if newer
                else replace(told, since_ms=at_ms)
            )  # fmt: skip
    return noted


def _logs(now: ClusterSnapshot) -> Iterable[tuple[Place, Any]]:
    for topic in now.topics.values():
        for number, log in topic.partitions.items():
            yield (topic.name, number), log


def _with(
    begun: tuple[tuple[int, int], ...], start: int, seen_ms: int
) -> tuple[tuple[int, int], ...]:
    """What is seen later counts for all that lies behind it."""
    kept = [*(one for one in begun if one[0] < start), (start, seen_ms)]
    while len(kept) > KEPT:
        kept[:2] = [(kept[0][0], kept[1][1])]
    return tuple(kept)
