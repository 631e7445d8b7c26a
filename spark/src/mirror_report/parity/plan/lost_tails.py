"""Logs that lost their newest records and grew past them: no I/O.

Who reads on from an offset does not see it. So of what was read it is kept which leader epochs it
is of: a log that holds another epoch there is another one from some offset on. Where a log keeps no
epochs, single records are held against what they were.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from mirror_report.config import Flow
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    Contents,
    Epochs,
    EpochsAsked,
    PartitionSnapshot,
    Place,
    TopicBaseline,
    another_topic,
)
from mirror_report.parity.plan import strategies
from mirror_report.parity.state import Manifest, Side, SideState, fed_by
from mirror_report.state.partitions import epochs_of

# Epochs kept below that of the newest record that was read.
OLDER = 8


@dataclass(frozen=True)
class LastLook:
    """One side of a topic as a run, a scan or a baseline saw it last.

    :param read: partition -> offset that reading goes on from.
    :param leaders: of a compacted topic: the epochs of the leaders that answered where it ends.
    :param compacted: a cleaner may have removed any record of it but the latest of each key.
    """

    topic_id: str = ""
    read: Mapping[int, int] = field(default_factory=dict)
    epochs: Mapping[int, Epochs] = field(default_factory=dict)
    contents: Mapping[int, Contents] = field(default_factory=dict)
    leaders: Mapping[int, int | None] = field(default_factory=dict)
    compacted: bool = False


def last_look(side: Side, state: SideState | None, recorded: TopicBaseline | None) -> LastLook:
    """The last look at one side of a topic: that of a run, or else that of its baseline."""
    if state is not None:
        return LastLook(state.topic_id, state.next, state.leader_epochs, state.last_records)
    baseline_side = (recorded or TopicBaseline()).side(side)
    return LastLook(
        baseline_side.topic_id or "",
        baseline_side.start,
        baseline_side.leader_epochs,
        baseline_side.last_records,
    )


def last_scan(side: Side, origin: str, rows: Iterable[Sequence[Any]]) -> LastLook:
    """The last look at one side of a compacted topic, which scans and looks at new records take.

    :param rows: the logs of :class:`plan.scans.Scan`.
    """
    for of, name, topic_id, logs in rows:
        if (of, name) == (side, origin):
            return LastLook(
                topic_id,
                {int(number): end for number, (end, _, _) in logs.items()},
                epochs_of({number: epochs for number, (_, _, epochs) in logs.items()}),
                leaders={int(number): leader for number, (_, leader, _) in logs.items()},
                compacted=True,
            )
    return LastLook(compacted=True)


def looks(
    flow: Flow, side: Side, manifest: Manifest, baseline: Baseline, now: ClusterSnapshot
) -> dict[str, LastLook]:
    """The last look at each topic of one side of a flow that is still the same topic.

    Of a compacted one that was never scanned nothing counts as read before.
    """
    states = {
        fed_by(owner, origin): state
        for (owner, of, origin), state in manifest.sides.items()
        if of == side
    }
    scans = manifest.scans.get(flow.name, {})
    last = {}
    for name, topic in now.topics.items():
        state = states.get((flow.name, name))
        scan = scans.get(flow.target_topic(name) if side == "source" else name)
        if strategies.is_compacted(topic) or (scan is not None and state is None):
            look = last_scan(side, name, (scan or {}).get("logs", ()))
            same = look.read and not another_topic(look.topic_id, topic.topic_id)
            if not same:
                # It is read from now on: only its newest record is asked for.
                ends = {number: log.end for number, log in topic.partitions.items()}
                look = LastLook(topic.topic_id, ends, compacted=True)
            last[name] = look
            continue
        origin = name if side == "source" else flow.source_topic(name)
        look = last_look(side, state, baseline.topics.get(origin or ""))
        same = not another_topic(look.topic_id, topic.topic_id)
        last[name] = look if same else LastLook(topic.topic_id)
    return last


def epochs_wanted(now: ClusterSnapshot, last: Mapping[str, LastLook]) -> dict[Place, EpochsAsked]:
    """Logs whose epochs have to be asked for: those that have another leader since the last look.

    One whose leader seems to be older than that was described by a broker that lags behind.
    """
    asked = {}
    for name, look in last.items():
        for number, log in now.topics[name].partitions.items():
            epochs = look.epochs.get(number, ())
            if log.leader_epoch is None or (epochs and log.leader_epoch <= epochs[-1][0]):
                continue
            low = epochs[0][1] if epochs else look.read.get(number, 0) - 1
            asked[name, number] = EpochsAsked(log.leader_epoch, max(log.log_start, low), epochs)
    return asked


def contents_wanted(
    now: ClusterSnapshot, last: Mapping[str, LastLook], epochs: Mapping[Place, Epochs]
) -> tuple[dict[Place, int], dict[Place, int]]:
    """Offsets of single records of logs whose epochs are not known.

    :param epochs: those that are known, by place.
    :returns: of those whose contents are kept, or else were read last, and of the newest ones.
    """
    before: dict[Place, int] = {}
    newest: dict[Place, int] = {}
    for name, look in last.items():
        for number, log in now.topics[name].partitions.items():
            place = (name, number)
            if look.compacted or epochs.get(place, look.epochs.get(number, ())):
                continue
            read = range(log.log_start, min(log.end, look.read.get(number, 0)))
            held = [offset for offset, _ in look.contents.get(number, ()) if offset in read]
            if read:
                before[place] = held[-1] if held else read[-1]
            if log.end > log.log_start:
                newest[place] = log.end - 1
    return before, newest


def with_answers(
    now: ClusterSnapshot,
    last: Mapping[str, LastLook],
    epochs: Mapping[Place, Epochs],
    contents: Mapping[Place, Contents],
) -> ClusterSnapshot:
    """A snapshot with what was found of its logs.

    A topic is an error if its new leader does not answer with its epochs: what was read on from
    there would be compared with epochs that it is not of. A compacted one can be read as a
    whole (:func:`is_doubtful`).
    """
    topics, errors = dict(now.topics), dict(now.errors)
    for name, number in sorted(epochs_wanted(now, last).keys() - epochs.keys()):
        if last[name].epochs.get(number) and not last[name].compacted:
            topics.pop(name, None)
            errors[name] = f"the new leader of partition {number} does not tell its leader epochs"
    for name in last.keys() & topics.keys():
        logs = {
            number: replace(
                log,
                epochs=epochs.get((name, number), last[name].epochs.get(number, ())),
                contents=contents.get((name, number), ()),
            )
            for number, log in topics[name].partitions.items()
        }
        topics[name] = replace(topics[name], partitions=logs)
    return replace(now, topics=topics, errors=errors)


def lost_from(look: LastLook, number: int, log: PartitionSnapshot) -> int | None:
    """Offset from which on a partition no longer holds what was read of it.

    :returns: ``None``: it is there, or has left the log at its beginning, or that is unknown.
    """
    following = look.read.get(number, 0)
    if log.log_start >= following:
        return None if log.end >= following else log.end
    epochs, now = look.epochs.get(number, ()), dict(log.contents)
    differing = (
        offset
        for offset, content in look.contents.get(number, ())
        if now.get(offset, content) != content
    )
    part = _written_over if look.compacted else _parted
    parted = part(epochs, log.epochs, following) if epochs and log.epochs else following
    at = min(parted, log.end, *differing)
    return at if at < following else None


def is_doubtful(look: LastLook, number: int, log: PartitionSnapshot) -> bool:
    """Whether it is unknown if a compacted partition with another leader holds what was read.

    The leader keeps no epochs, does not answer, or does not know the epoch of the newest record
    that was read: it lacks it, or has been a replica only since a cleaner removed all of it.
    """
    leader, present = look.leaders.get(number), dict(log.epochs)
    following = look.read.get(number, 0)
    if leader is None or (log.leader_epoch or 0) <= leader or log.log_start >= following:
        return False
    writer = _writer(look.epochs.get(number, ()), following)
    return max(present, default=-1) <= leader or writer not in present


def _parted(before: Epochs, now: Epochs, following: int) -> int:
    """Where two logs part, by their epochs: behind the newest epoch that both have.

    :param following: up to here they matter.
    """
    if now[0][1] >= following:
        return following
    present = dict(now)
    common = max((epoch for epoch, _ in before if epoch in present), default=-1)
    return min((start for epoch, start in chain(before, now) if epoch > common), default=following)


def _written_over(before: Epochs, now: Epochs, following: int) -> int:
    """Where a later leader wrote over what was read of a compacted log.

    That an epoch is gone proves nothing there (:func:`is_doubtful`), and of one that is not the
    beginning may be gone. No cleaner touches the newest record of a log.

    :param following: as there.
    """
    writer = _writer(before, following)
    later = (start for epoch, start in now if writer is not None and epoch > writer)
    return min(later, default=following)


def _writer(epochs: Epochs, following: int) -> int | None:
    """The epoch of the newest record that was read."""
    return max((epoch for epoch, start in epochs if start < following), default=None)


def kept(
    look: LastLook, number: int, log: PartitionSnapshot, following: int
) -> tuple[Epochs, Contents]:
    """Epochs and contents of a partition that are kept for the next run.

    :param look: the last one at this log; ``following``: where reading goes on.
    """
    older = [epoch for epoch in log.epochs if epoch[1] < following]
    newer = [epoch for epoch in log.epochs if epoch[1] >= following]
    contents = sorted({**dict(look.contents.get(number, ())), **dict(log.contents)}.items())
    read = [one for one in contents if one[0] < following]
    return (*older[-OLDER - 1 :], *newer), (*read[-1:], *contents[len(read) :][-1:])
