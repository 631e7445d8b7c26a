"""Records the source dropped before they were mirrored, and the memory of them: no I/O.

A loss is a range of source offsets. It is certain if the mirror was before the range while the
log began after it; it is a bound if the mirror was moving: it may have copied some of the range
before it went. Both are kept until a new baseline, whatever the mirror does next.

What is kept: ``{topic: {partition: {"at": ms, "lost": [[from, to], ...], "maybe": [...]}}}``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mirror_report.checks import positions, remedies
from mirror_report.checks.partition_history import FlowHistory
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow
from mirror_report.model import Baseline, ClusterSnapshot, Finding, Observed, OffsetSync, Place

# Offsets from, and up to but without; disjoint and in order.
Ranges = list[list[int]]

Losses = Mapping[str, Mapping[str, Mapping[str, Any]]]


def newly_lost(
    flow: Flow,
    observed: Observed,
    next_offsets: Mapping[Place, int],
    history: FlowHistory,
    *,
    baseline: Baseline,
    rises: Mapping[Place, int],
) -> dict[Place, tuple[Ranges, Ranges]]:
    """Offsets that this observation shows to be lost, and that may be lost, by partition.

    :param next_offsets: to copy; without the partitions of recreated topics.
    :param history: earlier observations.
    :param baseline: the flow's; what had gone when it was recorded is accepted.
    :param rises: offsets the mirror has passed over since the last run, by its offset syncs.
    """
    source, mirror = observed.source, observed.mirror
    losses: dict[Place, tuple[Ranges, Ranges]] = {}
    for place, offset in next_offsets.items():
        name, number = place
        begun = positions.begin(flow, source.topics[name], number, baseline)
        start = source.topics[name].partitions[number].log_start
        accepted = baseline.topic(name).log_start.get(number, 0)
        before = _next_offset_before(history, place, begun[0] if begun else None)
        if start <= max(accepted, min(offset, offset if before is None else before)):
            continue
        sync = mirror.syncs.get(place)
        passed = sync is not None and sync.upstream >= start
        if offset < start and not passed:
            begin = max(offset, accepted, _copied(flow, observed.target, place, sync))
            # A mirror at work is further than what it has committed last.
            committed = mirror.positions.get(name, {}).get(number, offset)
            since = history.at(place).unmoved_since(committed)
            still = since is not None and source.taken_at_ms - since >= flow.commit_interval_ms
            certain = still or not observed.group.members
        else:
            begin = offset if offset < start else start if before is None else before
            begin = max(begin, accepted)
            if passed and place in rises:
                begin = max(begin, start - max(0, rises[place]))
            certain = False
        if begin < start:
            gone = [[begin, start]]
            losses[place] = (gone, []) if certain else ([], gone)
    return losses


def _next_offset_before(history: FlowHistory, place: Place, begin: int | None) -> int | None:
    """Next offset to copy at the observation before, if records waited.

    :param begin: where the mirror was before its first commit; ``None``: not known.
    """
    past = history.at(place)
    if not past.ends:
        return None
    committed = past.next_offset_at(history.observed_at[-1])
    following = begin if committed is None else committed
    return following if following is not None and following < past.ends[-1][1] else None


def _copied(flow: Flow, target: ClusterSnapshot, place: Place, sync: OffsetSync | None) -> int:
    """Offset up to which records were copied, by what the target holds past the newest sync."""
    copy = target.log(flow.target_topic(place[0]), place[1])
    if sync is None or copy is None or sync.downstream >= copy.end:
        return 0
    return sync.upstream + copy.end - sync.downstream


def with_new(
    before: Losses,
    new: Mapping[Place, tuple[Ranges, Ranges]],
    at_ms: int,
    baseline: Baseline,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Losses up to this observation; a baseline forgets the time before.

    :param new: of this observation, by :func:`newly_lost`.
    :param baseline: the flow's.
    """
    kept: dict[str, dict[str, dict[str, Any]]] = {}
    for name, partitions in before.items():
        since_ms = accepted_ms(baseline, name)
        for number, entry in partitions.items():
            if entry["at"] > since_ms:
                kept.setdefault(name, {})[number] = dict(entry)
    for (name, partition), (lost, maybe) in new.items():
        topic = kept.setdefault(name, {})
        entry = topic.get(str(partition), {"lost": [], "maybe": []})
        certain = merged([*entry["lost"], *lost])
        topic[str(partition)] = {
            "at": at_ms,
            "lost": certain,
            "maybe": less(merged([*entry["maybe"], *maybe]), certain),
        }
    return kept


def accepted_ms(baseline: Baseline, topic: str) -> int:
    """Until when losses of a topic of the source are accepted (ms)."""
    since = (of.losses_since_ms or 0 for of in (baseline, baseline.topic(topic)))
    return max(*since, baseline.accepted.get(topic, 0))


def counts(kept: Losses) -> dict[Place, tuple[int, int]]:
    """Offsets lost, and offsets that may be lost besides."""
    return {
        (name, int(number)): (offsets_in(entry["lost"]), offsets_in(entry["maybe"]))
        for name, partitions in kept.items()
        for number, entry in partitions.items()
    }


def merged(ranges: Sequence[Sequence[int]]) -> Ranges:
    """The same offsets in disjoint ranges."""
    disjoint: Ranges = []
    for begin, end in sorted(map(tuple, ranges)):
        if disjoint and begin <= disjoint[-1][1]:
            disjoint[-1][1] = max(disjoint[-1][1], end)
        else:
            disjoint.append([begin, end])
    return disjoint


def less(ranges: Ranges, taken: Ranges) -> Ranges:
    """Ranges less what others hold."""
    for begin, end in taken:
        ranges = [
            part
            for a, b in ranges
            for part in ([a, min(b, begin)], [max(a, end), b])
            if part[0] < part[1]
        ]
    return ranges


def offsets_in(ranges: Ranges) -> int:
    """Number of offsets in ranges."""
    return sum(end - begin for begin, end in ranges)


def findings(flow: Flow, kept: Losses, cluster: Cluster) -> Iterator[Finding]:
    """One finding per topic and kind.

    :param cluster: the source.
    """
    for name, partitions in sorted(kept.items()):
        entries = partitions.values()
        lost = {int(number): offsets_in(entry["lost"]) for number, entry in partitions.items()}
        certain, maybe = sum(lost.values()), sum(offsets_in(entry["maybe"]) for entry in entries)
        first = [
            f"partition {number}: {count}" for number, count in sorted(lost.items())[:5] if count
        ]
        action = (
            "They cannot be mirrored any more. Compare retention.ms and retention.bytes with how "
            "long the mirror may be away: "
            + remedies.tool(
                cluster, "kafka-configs.sh", "--describe", "--all",
                "--entity-type", "topics", "--entity-name", name,
            )
            + f"; once this is read, accept it: {remedies.renew(flow, name)}"
        )  # fmt: skip
        for kind, count, what in (
            ("truncated", certain,
             f"{certain} records left the source before they were mirrored ({', '.join(first)})"),
            ("possible_loss", maybe,
             f"up to {maybe} records may have left the source before they were mirrored: the log's "
             "start overtook the mirror's position while it moved"),
        ):  # fmt: skip
            if count:
                yield finding(
                    kind, f"{name}: {what}", action, flow=flow.name, topic=name, count=count
                )
