"""Places of groups on the target, found by comparing records."""

from collections.abc import Mapping, Sequence
from itertools import islice

from mirror_report.checks.groups import Probe
from mirror_report.config import Flow
from mirror_report.kafka import guarded
from mirror_report.kafka.records import PARTITIONS, WAITING_SECONDS, HashedRecord, fetch
from mirror_report.model import GroupPlace, Place
from mirror_report.observe import Clients

# Places of one partition that are compared, one after the other.
ROUNDS = 8


# First offset and the one behind the last, of the source and of the target.
BothRanges = tuple[tuple[int, int], tuple[int, int]]


def proved_places(
    clients: Clients, flow: Flow, probes: Mapping[GroupPlace, Probe]
) -> dict[GroupPlace, int]:
    """Places on the target found by comparing records.

    One record is compared for each group and partition; its copy has to be the only one around.
    Groups that stand around one place, as those at the end do, are found by the same records.
    """
    together: dict[tuple[Place, BothRanges], list[GroupPlace]] = {}
    for group_place, probe in probes.items():
        ranges = (probe.ours, probe.theirs)
        together.setdefault((group_place[1:], ranges), []).append(group_place)
    left = list(islice(together, PARTITIONS))
    proved: dict[GroupPlace, int] = {}
    for _ in range(ROUNDS):
        # One consumer can stand at one offset of a partition alone.
        turn: dict[Place, BothRanges] = {}
        for place, ranges in left:
            turn.setdefault(place, ranges)
        if not turn:
            break
        left = [each for each in left if each not in turn.items()]
        source_ranges = {place: ours for place, (ours, _) in turn.items()}
        target_ranges = {
            (flow.target_topic(topic), number): theirs
            for (topic, number), (_, theirs) in turn.items()
        }
        on_source = _fetched(clients, flow.source, source_ranges, flow.source_isolation)
        on_target = _fetched(clients, flow.target, target_ranges, flow.target_isolation)
        for (topic, number), ranges in turn.items():
            ours = on_source.get((topic, number), [])
            theirs = on_target.get((flow.target_topic(topic), number), [])
            for group_place in together[(topic, number), ranges]:
                proof = _place(probes[group_place], ours, theirs)
                if proof is not None:
                    proved[group_place] = proof
    return proved


def _place(
    probe: Probe, ours: Sequence[HashedRecord], theirs: Sequence[HashedRecord]
) -> int | None:
    """Where the next record of a group is on the target, by the records around it.

    If none is left for it, and the last one on the target is the copy of the last one that it has
    read, then nothing is behind that copy and the place is the end.
    """
    following = [record for record in ours if record.offset >= probe.offset]
    if not ours or (not following and probe.end is None):
        return None
    original = following[0] if following else ours[-1]
    copies = [record.offset for record in theirs if record.same_as(original)]
    if len(copies) != 1:
        return None
    if following:
        return copies[0]
    return probe.end if copies[0] == theirs[-1].offset else None


def _fetched(
    clients: Clients, alias: str, ranges: Mapping[Place, tuple[int, int]], isolation: str
) -> dict[Place, list[HashedRecord]]:
    """Records of some ranges, as :func:`fetch`; partitions that cannot be read are missing."""
    cluster = clients.get(alias).cluster
    return guarded.each(
        lambda part: fetch(cluster, clients.credentials, part, isolation=isolation),
        ranges,
        WAITING_SECONDS,
    ).answers
