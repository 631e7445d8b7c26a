"""What a report has to say of a history, worked out on plain records: no Spark, no digest.

It knows what both logs hold and held, and what earlier runs could see of them; the rules are those
of docs/report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from history_world import Log, Mirrored
from parity_clusters import SIDES
from parity_records import KEPT, STAGES, Content, Heap, Record, Where, equal, late, paired

CRITICAL = ("missing", "corrupt_value", "corrupt_headers", "moved", "deleted_early")
ONCE = ("duplicate", "extra", "altered_timestamp")
ACROSS = ("moved", "altered_timestamp")
"""Classes of pairs that may lie in two buckets."""
SEVERITIES = {
    **dict.fromkeys(CRITICAL, "critical"), **dict.fromkeys(ONCE, "warning"),
    "unverifiable": "warning", "expired": "ok",
}  # fmt: skip
COSTS = ("missing", "unverifiable", "expired")
EXITS = {"ok": 0, "warning": 1, "unknown": 3, "critical": 2}
RANKS = ("ok", "warning", "unknown", "critical")

Finding = tuple[str, str, str]
"""Flow, kind, severity."""


@dataclass
class Answer:
    """What a report says.

    :param topics: flow -> status, and numbers that are not 0: classes, those accounted
        (``known_<class>``), records verified and in flight.
    :param findings: those that count.
    """

    exit: int
    topics: dict[str, tuple[str, dict[str, int]]]
    findings: set[Finding]


@dataclass
class Found:
    """What was found in a bucket when it was classified.

    :param pair: what both sides held then; ``new``: what no report has held; ``halves``: pairs
        whose other record may lie elsewhere.
    """

    pair: tuple[Counter[object], Counter[object]]
    counts: dict[str, int]
    new: dict[str, int]
    halves: int


@dataclass
class Side:
    """What runs have read of one side.

    :param born: which of the topics of this name it is; ``first``: where reading began.
    :param following: next offset to read; ``start``: first offset there at the last run.
    :param unread: partition -> records that were gone before they were read; ``gone_at``: until
        when they were written; ``left``: their offsets, of the target alone.
    """

    born: int
    first: list[int]
    following: list[int]
    start: list[int]
    seen: dict[tuple[int, int], Record] = field(default_factory=dict)
    unread: Counter[int] = field(default_factory=Counter)
    gone_at: int | None = None
    left: dict[int, set[int]] = field(default_factory=dict)


@dataclass
class Baseline:
    """Offsets from which on a topic counts, by side; and what is accepted of its source.

    :param before: below them the target may hold copies of what counts of the source.
    """

    born: dict[str, int]
    offsets: dict[str, list[int]]
    accepted: list[int]
    older: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


@dataclass
class Lag:
    """What earlier observations of offsets leave behind.

    :param born: ids as they were first seen, by side; ``last``: next offset to copy and end, by
        partition, at the last observation.
    """

    born: dict[str, int] = field(default_factory=dict)
    last: list[tuple[int | None, int]] = field(default_factory=list)
    lost: set[tuple[int, int]] = field(default_factory=set)
    maybe: set[tuple[int, int]] = field(default_factory=set)


class Memory:
    """One topic, as the reports know it."""

    def __init__(self, topic: Mirrored) -> None:
        self.topic = topic
        self.flow = topic.flow
        self.once = ONCE if topic.keeps_partitions else (*ONCE, "reordered")
        self.baseline: Baseline | None = None
        self.lag = Lag()
        self._forget()

    def _forget(self) -> None:
        self.sides: dict[str, Side] = {}
        self.older: list[int] = []
        self.before: list[int] = []
        self.gap: list[int] = []
        self.kept_from: int | None = None
        self.limits: int | None = None
        self.untold: set[Finding] = set()
        self._forget_numbers()

    def _forget_numbers(self) -> None:
        self.classes: Counter[str] = Counter()
        self.found: dict[Where, Found] = {}
        self.early = 0

    # -- baselines --------------------------------------------------------------------------------

    def start_over(self, *, full: bool) -> None:
        """Record a baseline of the flow while its mirror is stopped."""
        topic, lag = self.topic, self.lag
        source, target = topic.source, topic.target
        begin = list(source.starts) if full else self.stood(list(source.starts))
        accepted = list(source.starts)
        if full:
            accepted = [min(pair) for pair in zip(accepted, self.stood(accepted), strict=True)]
        else:
            lag.lost, lag.maybe = set(), set()
        self._forget()
        self.baseline = Baseline(
            {side: topic.log(side).born for side in SIDES},
            {"source": begin, "target": list(target.starts) if full else target.ends},
            accepted,
            target.ends if full and any(begin) else [],
            [] if full else self._before(begin),
        )
        lag.born = dict(self.baseline.born)

    def _before(self, begin: list[int]) -> list[int]:
        """Ends of the target's partitions that have copies of records from some offsets on."""
        topic = self.topic
        ahead = [end > start for end, start in zip(topic.source.ends, begin, strict=True)]
        if not topic.keeps_partitions:
            ahead = [any(ahead)] * len(topic.target.ends)
        return [end if may else 0 for end, may in zip(topic.target.ends, ahead, strict=False)]

    def positions(self, otherwise: list[int]) -> list[int]:
        """Committed positions, and where the mirror begins without one."""
        return [
            begin if committed is None else committed
            for committed, begin in zip(self.topic.committed, otherwise, strict=True)
        ]

    def stood(self, otherwise: list[int]) -> list[int]:
        """The same, but that a position past the end of its log is of an earlier topic."""
        return [
            position if position <= end else begin
            for position, end, begin in zip(
                self.positions(otherwise), self.topic.source.ends, otherwise, strict=True
            )
        ]

    # -- a run ------------------------------------------------------------------------------------

    def observe(self) -> set[Finding]:
        """What offsets and ids say, and what they leave behind."""
        topic, lag, log = self.topic, self.lag, self.topic.source
        changed = {
            side for side in SIDES if lag.born.setdefault(side, topic.log(side).born)
            != topic.log(side).born
        }  # fmt: skip
        recorded = self.baseline
        accepted = [0] * len(log.starts)
        if recorded is not None:
            accepted[: len(recorded.accepted)] = recorded.accepted
        begin = [0] * len(log.starts) if recorded is not None else log.starts
        if recorded is not None:
            begin[: len(recorded.offsets["source"])] = recorded.offsets["source"]
        positions = self.positions(begin)
        if not changed:
            for partition, (position, start) in enumerate(zip(positions, log.starts, strict=True)):
                self._lose(partition, position, start, accepted[partition])
        # Without a baseline nobody knows where the mirror began, once the log begins elsewhere.
        begun = topic.committed if recorded is None else positions
        lag.last = list(zip(begun, log.ends, strict=True))
        return self._of_offsets(changed, positions)

    def _lose(self, partition: int, position: int, start: int, accepted: int) -> None:
        before = position
        if partition < len(self.lag.last):
            then, end = self.lag.last[partition]
            before = position if then is None or then >= end else then
        if start <= max(accepted, min(position, before)):
            return
        certain = position < start
        gone = {
            (partition, at) for at in range(max(position if certain else before, accepted), start)
        }
        if certain:
            self.lag.lost |= gone
        else:
            self.lag.maybe |= gone
        self.lag.maybe -= self.lag.lost

    def _of_offsets(self, changed: set[str], positions: list[int]) -> set[Finding]:
        log, kinds = self.topic.source, set()
        waiting = [
            max(0, end - max(position, start))
            for end, position, start in zip(log.ends, positions, log.starts, strict=True)
        ]
        other = [position > end for position, end in zip(positions, log.ends, strict=True)]
        if changed or any(other):
            kinds.add(("reset", "critical"))
        if "source" not in changed and any(
            count for count, is_other in zip(waiting, other, strict=True) if not is_other
        ):
            kinds.add(("stopped", "critical"))
        if not any(waiting):
            kinds.add(("not_running", "warning"))
        if self.lag.lost:
            kinds.add(("truncated", "critical"))
        if self.lag.maybe:
            kinds.add(("possible_loss", "warning"))
        if self.topic.limit_ms is not None:
            kinds.add(("retention", "warning"))
        if not self._moved():
            kinds.add(("nothing_seen", "warning"))
        return {(self.flow, *kind) for kind in kinds}

    def _moved(self) -> bool:
        """Whether either side got a record since the baseline."""
        for side in SIDES:
            begin = self.baseline.offsets[side] if self.baseline is not None else []
            ends = self.topic.log(side).ends
            if any(end > start for end, start in zip_longest(ends, begin, fillvalue=0)):
                return True
        return False

    def read(self, now: int) -> None:
        """Read what is new, and compare."""
        renewed = [side for side in SIDES if self._renewed(side, now)]
        self.untold |= {(self.flow, "reset", "critical") for _ in renewed}
        unread = self.sides["source"].unread.total() if "source" in self.sides else 0
        for side in SIDES:
            self._read(side, now)
        if renewed:
            self.before = []
        if "source" in renewed or self.sides["source"].unread.total() > unread:
            self.gap = self.topic.target.ends
        removed = self._removed(now)
        self._compare()
        self._see_arrived()
        # What is in a bucket that differs is of one of its classes.
        self.early += sum(
            not self._allows(record.content) and not self._unequal(record.where)
            for record in removed
        )

    def _see_arrived(self) -> None:
        """Whether something that was missing is there by now, and is nothing else."""
        before, self.classes = self.classes, Counter()
        for where in self.source.keys() | self.target.keys():
            said = self._said(where)
            del said["known_unverifiable"]
            for name, number in said.items():
                self.classes[name.removeprefix("known_")] += number
        others = (*CRITICAL, "reordered", "altered_timestamp", "expired", "unverifiable")
        instead = sum(
            max(0, self.classes[name] - before[name]) for name in others if name != "missing"
        )
        if before["missing"] - self.classes["missing"] - instead > 0:
            self.untold.add((self.flow, "repaired", "ok"))

    def _renewed(self, side: str, now: int) -> bool:
        """Whether a topic is another one than that which was read; then that is forgotten."""
        log, known = self.topic.log(side), self.sides.get(side)
        born = known.born if known else self.baseline.born[side] if self.baseline else log.born
        if born == log.born:
            return False
        start = list(log.starts)
        self.sides[side] = Side(log.born, list(start), list(start), list(start))
        if known is not None:
            self.sides[side].unread = known.unread
        if side == "source":
            self.sides[side].gone_at = now
        elif known is not None:
            self.sides[side].gone_at = known.gone_at
            self.sides[side].left = known.left
        if side == "target":
            self.older, self.gap, self.kept_from, self.limits = [], [], None, None
        self._forget_numbers()
        return True

    def _begin(self, side: str, log: Log) -> Side:
        if self.baseline is None:
            first = list(log.starts)
            if side == "source" and any(first):
                self.older = self.topic.target.ends
        else:
            first = self.baseline.offsets[side]
            first = [*first, *[0] * (len(log.starts) - len(first))]
            first = [min(pair) for pair in zip(first, log.ends, strict=True)]
            if side == "target":
                self.older, self.before = self.baseline.older, self.baseline.before
        return Side(log.born, first, list(first), list(log.starts))

    def _read(self, side: str, now: int) -> None:
        log = self.topic.log(side)
        if side not in self.sides:
            self.sides[side] = self._begin(side, log)
            fresh = True
        else:
            fresh = False
        known = self.sides[side]
        for partition, (start, end) in enumerate(zip(log.starts, log.ends, strict=True)):
            if partition == len(known.following):
                known.first.append(0)
                known.following.append(0)
                known.start.append(0)
            begin = known.following[partition]
            if start > begin:
                known.gone_at = now
                self.untold.add((self.flow, "unverifiable", "warning"))
                if side == "target":
                    known.left.setdefault(partition, set()).update(range(begin, start))
                if side == "source":
                    known.unread[partition] += start - begin
                    if fresh:
                        known.first[partition] = start
            for offset in range(max(begin, start), end):
                known.seen[partition, offset] = self._record(
                    side, partition, offset, log.partitions[partition][offset]
                )
            known.following[partition] = end

    def _record(self, side: str, partition: int, offset: int, content: Content) -> Record:
        return Record(
            KEPT if self.topic.keeps_partitions else "loose", side, partition, offset, content
        )

    def _removed(self, now: int) -> list[Record]:
        """What left the target of what was read, and what its retention has allowed by now."""
        known, log, limit = self.sides["target"], self.topic.target, self.topic.limit_ms
        limits = [each for each in (limit, self.limits) if each is not None]
        bounds = [now - each for each in limits]
        bounds += [self.kept_from] if self.kept_from is not None else []
        self.kept_from, self.limits = max(bounds, default=None), limit
        removed = [
            record
            for (partition, offset), record in known.seen.items()
            if known.start[partition] <= offset < log.starts[partition]
        ]
        known.start = list(log.starts)
        return removed

    def _unequal(self, where: Where) -> bool:
        return self.due[where] and not self.same[where]

    def _allows(self, content: Content) -> bool:
        """Whether the retention of the target has allowed to remove a record."""
        return self.kept_from is not None and content[2] < self.kept_from

    # -- comparing --------------------------------------------------------------------------------

    def _logs(self) -> dict[str, dict[Where, list[Record]]]:
        logs: dict[str, dict[Where, list[Record]]] = {}
        for side in SIDES:
            logs[side] = defaultdict(list)
            for record in self.sides[side].seen.values():
                logs[side][record.where].append(record)
        return logs

    def _mirrored(self, record: Record) -> bool:
        positions = self.stood(self.sides["source"].first)
        return record.offset < positions[record.partition]

    def _gap(self, side: str, where: Where) -> bool:
        at = self.sides[side].gone_at
        return at is not None and where[2] <= at

    def _blind(self, where: Where, source: list[Record], target: list[Record]) -> bool:
        if not source and (self._gap("source", where) or self._all_older(target)):
            return True
        found = self.found.get(where)
        return (
            not target
            and self._gap("target", where)
            and (found is None or found.pair != pair_of(source, target))
            and len(source) <= self.may_have_left[where]
        )

    def _left_unread(self) -> dict[Where, int]:
        """How many records of each bucket may have left the target before they were read."""
        left = {lane: len(offsets) for lane, offsets in self.sides["target"].left.items()}
        if not self.topic.keeps_partitions:
            left = {-1: sum(left.values())}
        found = {}
        for where in sorted(self.due, key=lambda where: where[2]):
            found[where] = max(0, left.get(where[1], 0))
            if self._unequal(where) and self._gap("target", where):
                known = self.found[where].counts["missing"] if where in self.found else 0
                lacks = len(self.source[where]) - len(self.target[where]) - known
                left[where[1]] = found[where] - max(0, lacks)
        return found

    def _all_older(self, target: list[Record]) -> bool:
        return all(self._is_older(record) for record in target)

    def _is_older(self, record: Record) -> bool:
        return record.partition < len(self.older) and record.offset < self.older[record.partition]

    def _compare(self) -> None:
        logs = self._logs()
        self.source, self.target = logs["source"], logs["target"]
        self.due: dict[Where, bool] = {}
        self.same: dict[Where, bool] = {}
        self.blind: dict[Where, bool] = {}
        wrong: dict[Where, tuple[Counter[object], Counter[object]]] = {}
        for where in self.source.keys() | self.target.keys():
            source, target = self.source[where], self.target[where]
            self.due[where] = all(self._mirrored(record) for record in source)
            self.same[where] = equal(source, target)
        self.may_have_left = self._left_unread()
        for where in self.due:
            source, target = self.source[where], self.target[where]
            unequal = self._unequal(where)
            self.blind[where] = unequal and self._blind(where, source, target)
            if unequal and not self.blind[where]:
                wrong[where] = pair_of(source, target)
        fresh = [
            where for where, pair in wrong.items()
            if where not in self.found or self.found[where].pair != pair
        ]  # fmt: skip
        if not fresh:
            return
        again = [
            where
            for where in wrong
            if where not in fresh and self.found[where].halves and not self._hidden(where)
        ]
        self._classify(wrong, [*fresh, *again])

    def _hidden(self, where: Where) -> bool:
        return any(self._gone(side, where) for side in SIDES)

    def _gone(self, side: str, where: Where) -> bool:
        """Whether something that was read of it is no longer there."""
        starts = self.topic.log(side).starts
        logs = self.source if side == "source" else self.target
        return any(record.offset < starts[record.partition] for record in logs[where])

    def _classify(
        self,
        wrong: dict[Where, tuple[Counter[object], Counter[object]]],
        chosen: Iterable[Where],
    ) -> None:
        """Give records that do not match the names of their classes, bucket by bucket."""
        lost: Heap = {}
        foreign: Heap = {}
        counts = {where: self._left_over(where, lost, foreign) for where in chosen}
        halves: Counter[Where] = Counter()
        for name, agree in STAGES.items():
            # Without partitions nothing says what the older ones are copies of.
            aside = self._older(foreign) if name == "altered_timestamp" else Counter()
            sought = {leftover: number - aside[leftover] for leftover, number in foreign.items()}
            before_pairing = dict(sought)
            for where, number in paired(lost, sought, agree):
                counts[where][name] += number
            for (where, content), number in before_pairing.items():
                taken = number - sought[where, content]
                foreign[where, content] -= taken
                halves[where] += taken if name in ACROSS else 0
        older = dict(self._older(foreign))
        for where, number in paired(lost, older, STAGES["altered_timestamp"]):
            counts[where]["unverifiable"] += number
            halves[where] += number
        for leftover, number in self._older(foreign).items():
            halves[leftover[0]] += number - older[leftover]
        for (where, _), number in lost.items():
            counts[where]["missing"] += number
        for (where, content), number in foreign.items():
            older = (r for r in self._there("target", where) if self._is_older(r))
            known = min(number, sum(record.content == content for record in older))
            left = (r for r in self._there("target", where) if r.offset < self._end_of_gap(r))
            unseen = min(number - known, sum(record.content == content for record in left))
            counts[where]["extra"] += number - known - unseen
            counts[where]["older"] += known
            counts[where]["unverifiable"] += unseen
        for where, count in counts.items():
            before = self.found.get(where)
            new = {
                name: max(
                    0, count[name] - (before.counts[name] - before.new[name] if before else 0)
                )
                for name in self.once
            }
            halves[where] += sum(count[name] for name in ("missing", "extra", *ACROSS))
            self.found[where] = Found(wrong[where], count, new, halves[where])

    def _older(self, foreign: Heap) -> Counter[tuple[Where, Content]]:
        """How many of what is foreign the target had before, where partitions are not kept."""
        if self.topic.keeps_partitions:
            return Counter()
        return Counter(
            {
                (where, content): min(
                    number,
                    sum(record.content == content and self._is_older(record)
                        for record in self._there("target", where)),
                )
                for (where, content), number in foreign.items()
            }
        )  # fmt: skip

    def _copied_before(self, where: Where) -> Counter[Content]:
        """What the target had of a bucket before the baseline, and has still."""
        log = self.topic.target
        some = (
            self._record("target", partition, offset, log.partitions[partition][offset])
            for partition, end in enumerate(self.before)
            for offset in range(log.starts[partition], end)
        )
        return Counter(record.content for record in some if record.where == where)

    def _end_of_gap(self, record: Record) -> int:
        """Below it a record of the target may be the copy of one that left the source unread."""
        return self.gap[record.partition] if record.partition < len(self.gap) else 0

    def _there(self, side: str, where: Where) -> list[Record]:
        """What is still there of a bucket."""
        some = self.source if side == "source" else self.target
        starts = self.topic.log(side).starts
        return [record for record in some[where] if record.offset >= starts[record.partition]]

    def _left_over(self, where: Where, lost: Heap, foreign: Heap) -> Counter[str]:
        """What can be said of a bucket by itself; the rest of what does not match is added.

        Where one side has lost records, absence from it proves nothing.
        """
        of_source, of_target = (self._there(side, where) for side in SIDES)
        source, target = (Counter(r.content for r in some) for some in (of_source, of_target))
        blind = {side: self._gap(side, where) or self._gone(side, where) for side in SIDES}
        count: Counter[str] = Counter()
        lacking = source - target - self._copied_before(where)
        may_have_left = self._may_have_left(where, lacking.total()) if blind["target"] else 0
        first = {}
        for record in reversed(in_order(of_source)):
            first[record.content] = record.offset, record.partition
        for content, number in sorted(lacking.items(), key=lambda item: first[item[0]]):
            left = min(number, may_have_left)
            may_have_left -= left
            if left:
                count["expired" if self._allows(content) else "deleted_early"] += left
            if number > left:
                lost[where, content] = number - left
        for content, number in (target - source).items():
            if source[content]:
                older = (self._is_older(r) for r in of_target if r.content == content)
                known = min(number, sum(older))
                count["duplicate"] += number - known
                count["older"] += known
            elif blind["source"]:
                count["unverifiable"] += number
            else:
                foreign[where, content] = number
        if not any(blind.values()):
            count["reordered"] += late(of_source, of_target)
        if self._hidden(where):
            # What the counts of both sides leave unexplained: one at least, where no class does.
            read = len(self.source[where]) - len(self.target[where])
            seen = len(of_source) - len(of_target) + count.pop("unverifiable", 0)
            leftovers = any(place == where for place, _ in (*lost, *foreign))
            count["unverifiable"] = abs(read - seen) or int(not leftovers and not +count)
        return count

    def _may_have_left(self, where: Where, lacking: int) -> int:
        """How many of the records that the target lacks of a bucket have left it at most."""
        most = self.may_have_left[where] if self._gap("target", where) else 0
        digested: dict[int, list[int]] = {}
        for record in self.target[where]:
            digested.setdefault(record.partition, []).append(record.offset)
        for partition, offsets in digested.items():
            gone = self.topic.target.starts[partition] - min(offsets)
            most += min(len(offsets), max(0, gone))
        known = self.found[where].counts["missing"] if where in self.found else 0
        known = min(known, max(0, len(self.source[where]) - len(self.target[where])))
        return min(most, max(0, lacking - known))

    # -- what is said -----------------------------------------------------------------------------

    def told(self) -> None:
        """A report was written."""
        self.untold = set()
        for found in self.found.values():
            found.new = dict.fromkeys(self.once, 0)

    def numbers(self) -> tuple[str, dict[str, int], int]:
        """Status, numbers, and records that are due."""
        total: Counter[str] = Counter()
        buckets: Counter[str] = Counter()
        unread: Counter[int] = Counter()
        for partition, count in self.sides["source"].unread.items():
            unread[partition if self.topic.keeps_partitions else -1] += count
        gone = unread.total()
        for where in self.source.keys() | self.target.keys():
            counts, status = self._bucket(where)
            # What the target alone has of a lane may be what is gone: each record counts once.
            unread[where[1]] -= counts.pop("unmatched")
            total.update(counts)
            buckets[status] += 1
        total["unverifiable"] += (+unread).total()
        total["deleted_early"] += self.early
        total["source"] = sum(map(len, self.source.values()))
        total["target"] = sum(map(len, self.target.values()))
        settled = total["source"] - total["in_flight"]
        due = max(total["verified"], settled) + gone
        total = +total
        return self._status(total, buckets), dict(total), due

    def _bucket(self, where: Where) -> tuple[Counter[str], str]:
        """Numbers of a bucket, and its status."""
        source, target = self.source[where], self.target[where]
        said = self._said(where)
        status = self._status_of(where, said)
        wrong = sum(said[name] for name in (*CRITICAL, "unverifiable", "expired"))
        wrong += said["reordered"] if self.topic.keeps_partitions else 0
        compared = max(0, len(source) - wrong)
        said["unmatched"] += min(said["unverifiable"], max(0, len(target) - len(source)))
        if status == "in_flight":
            said["in_flight"] += len(source)
        elif status not in {"unverifiable", "skipped"}:
            # A bucket that is in flight again keeps what was found; the rest waits.
            said["verified" if self.due[where] else "in_flight"] += compared
        return said, status

    def _said(self, where: Where) -> Counter[str]:
        """Classes of a bucket, those that a report has told as known."""
        source, target = self.source[where], self.target[where]
        said: Counter[str] = Counter()
        found = self.found.get(where)
        if self.blind[where]:
            if not source and self._all_older(target):
                said["known_unverifiable"] += len(target)
            else:
                said["unverifiable"] += abs(len(source) - len(target))
        elif not self.same[where] and found is not None:
            for name, count in found.counts.items():
                new = found.new.get(name, count)
                said[name] += new
                said[f"known_{name}"] += count - new
            said["known_unverifiable"] += said.pop("older", 0)
        return +said

    def _status_of(self, where: Where, said: Counter[str]) -> str:
        if any(said[name] for name in (*CRITICAL, *ONCE, "reordered")):
            return "mismatch"
        if said["unverifiable"]:
            return "unverifiable"
        if self.due[where] and said["known_unverifiable"] and not self.source[where]:
            return "skipped"
        return "verified" if self.due[where] and not self.blind[where] else "in_flight"

    def _status(self, total: Counter[str], buckets: Counter[str]) -> str:
        if any(total[name] for name in (*CRITICAL, *ONCE, "reordered")):
            return "mismatch"
        if total["unverifiable"]:
            return "unverifiable"
        return "verified" if buckets["verified"] else "in_flight"


def pair_of(source: list[Record], target: list[Record]) -> tuple[Counter[object], Counter[object]]:
    """What both sides hold."""
    return (
        Counter(record.content for record in source),
        Counter(record.content for record in target),
    )


def in_order(records: list[Record]) -> list[Record]:
    """By offset, and partitions one after the other."""
    return sorted(records, key=lambda record: (record.offset, record.partition))


def answer(memories: Iterable[Memory], offsets: set[Finding]) -> Answer:
    """What a report says of all topics.

    :param offsets: what offsets and ids say.
    """
    findings = set(offsets)
    topics, verified, due = {}, 0, 0
    for memory in memories:
        status, numbers, of_topic = memory.numbers()
        topics[memory.flow] = status, numbers
        verified, due = verified + numbers.get("verified", 0), due + of_topic
        content = {
            (memory.flow, name, SEVERITIES[name]) for name in SEVERITIES if numbers.get(name)
        }
        if numbers.get("reordered"):
            severity = "critical" if memory.topic.keeps_partitions else "warning"
            content.add((memory.flow, "reordered", severity))
        if numbers.get("known_unverifiable"):
            content.add((memory.flow, "unverifiable", "ok"))
        content |= memory.untold
        events = {"reset", "truncated"} & {
            kind for flow, kind, _ in findings | content if flow == memory.flow
        }
        findings |= {each for each in content if not (events and each[1] in COSTS)}
    if due and verified / due < 0.95:
        findings.add(("", "coverage", "warning"))
    worst = max((severity for _, _, severity in findings), key=RANKS.index, default="ok")
    return Answer(EXITS[worst], topics, findings)
