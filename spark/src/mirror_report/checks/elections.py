"""Elections of leaders: by one, a log may have lost its newest records and grown past them; no I/O.

What was written of such records before is about others now. So of each log in which groups have
committed it is kept which leader epoch was its newest one, and where later ones began: an unclean
leader begins where the log was cut, any other at its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_report.model import ClusterSnapshot, Epochs, EpochsAsked, Place

# Clocks of brokers, of the mirror and of this host may differ by so much.
SLACK_MS = 60_000
# Kept of one log; of more the oldest become one.
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
        for topic, partitions in plain.items()
        for number, (epoch, since_ms, begun) in partitions.items()
    }


def dump(elections: Mapping[Place, Elections]) -> dict[str, Any]:
    """JSON types only."""
    plain: dict[str, Any] = {}
    for (topic, number), log in sorted(elections.items()):
        begun = [list(one) for one in log.begun]
        plain.setdefault(topic, {})[str(number)] = [log.epoch, log.since_ms, begun]
    return plain


def epochs_to_ask(
    now: ClusterSnapshot, before: Mapping[Place, Elections]
) -> dict[Place, EpochsAsked]:
    """Logs that have another leader than at the observation before."""
    return {
        place: EpochsAsked(log.leader_epoch, log.log_start, ((before[place].epoch, -1),))
        for place, log in now.logs()
        if place in before and log.leader_epoch is not None
        if log.leader_epoch > before[place].epoch >= 0
    }


def updated(
    now: ClusterSnapshot, before: Mapping[Place, Elections], epochs: Mapping[Place, Epochs]
) -> dict[Place, Elections]:
    """Elections up to this observation.

    :param epochs: of the logs of :func:`epochs_to_ask`; of a log that keeps none, none; without
        those of leaders that did not answer.
    """
    at_ms = now.taken_at_ms
    elections = dict(before)
    for place, log in now.logs():
        former = before.get(place)
        if former is None or log.leader_epoch is None or former.epoch < 0:
            epoch = -1 if log.leader_epoch is None else log.leader_epoch
            # A log with its first leader has seen no election.
            elections[place] = Elections(epoch, at_ms if epoch else 0)
        elif log.leader_epoch > former.epoch:
            newer = [start for epoch, start in epochs.get(place, ()) if epoch > former.epoch]
            later = replace(former, epoch=log.leader_epoch) if place in epochs else former
            elections[place] = (
                replace(later, begun=_with(former.begun, min(newer), at_ms)) if newer
                else replace(later, since_ms=at_ms)
            )  # fmt: skip
    return elections


def _with(
    begun: tuple[tuple[int, int], ...], start: int, seen_ms: int
) -> tuple[tuple[int, int], ...]:
    """Later epochs with a new one, which stands for all that begin behind it."""
    kept = [*(one for one in begun if one[0] < start), (start, seen_ms)]
    while len(kept) > KEPT:
        kept[:2] = [(kept[0][0], kept[1][1])]
    return tuple(kept)
