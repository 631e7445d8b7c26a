"""Which buckets have been open for long, and which offsets of them are to be counted: no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mirror_report.config import Budget, Flow
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import FlowSnapshot, RunPlan, TopicPlan, open_buckets, open_slices
from mirror_report.parity.plan.open_buckets import OpenBucket, OpenTopic
from mirror_report.parity.plan.open_slices import Slices
from mirror_report.parity.plan.ranges import Spent
from mirror_report.parity.state import SIDES, Gap, Manifest, SideState

FLOW = Flow(name="f", source="a", target="z", include="t", group_id="g")
TOPIC = TopicPlan("f", "t", ("t",))
KEY = ("f", "t")
NOW = 10_000_000
HOUR = 3_600_000
BUCKET = 600_000
SOURCE, TARGET = ("source", "t", 0), ("target", "t", 0)


def plan(*topics: TopicPlan) -> RunPlan:
    return RunPlan({}, topics or (TOPIC,))


def read_to(manifest: Manifest, source: int, target: int) -> Manifest:
    sides = {("f", side, "t"): SideState("", {0: 0}, {0: end})
             for side, end in (("source", source), ("target", target))}  # fmt: skip
    return replace(manifest, sides=sides)


def noted(
    manifest: Manifest, at_ms: int, *buckets: tuple[int, int], more: int = 0, below: int = 0
) -> Manifest:
    """A manifest after a run that saw some buckets open.

    :param more: how many others, which it does not name; ``below``: their records below it.
    """
    # Where there are any, one at least is named.
    some = buckets or ((1, 0),) * bool(more)
    return open_buckets.note(manifest, plan(), still_open(some, more, below), at_ms)


def still_open(
    buckets: Sequence[tuple[int, int]], more: int = 0, below: int = 0, lane: int = -1
) -> list[dict[str, Any]]:
    """Rows of ``frames.totals.still_open``."""
    every = {
        "n_open": len(buckets) + more, "n_below": below + sum(below for _, below in buckets),
    }  # fmt: skip
    return [
        {"flow": "f", "topic": "t", "lane": lane, "bucket": bucket, "below": below, **every}
        for bucket, below in buckets
    ]


def open_for_an_hour(known: OpenTopic, now_ms: int) -> tuple[int, int, int]:
    """Records in buckets that have been open for an hour, since when, and those not counted."""
    buckets = open_buckets.open_for_long(known, now_ms, 60)
    return (
        sum(bucket.below for bucket in buckets),
        min(bucket.since_ms for bucket in buckets),
        sum(bucket.unjudged for bucket in buckets),
    )


def of(manifest: Manifest) -> OpenTopic:
    return open_buckets.of_topic(manifest, KEY)


def late(manifest: Manifest, now_ms: int) -> list[OpenBucket]:
    return open_buckets.late(manifest, plan(), now_ms, 60).get(KEY, [])


def positions(position: int, **more: int) -> Any:
    return {("f", *SOURCE): {"position": position, **more}}


def extents(source: tuple[int, int], target: tuple[int, int]) -> Any:
    key = (*KEY, -1, BUCKET)
    where = {"flow": "f", "topic": "t", "lane": -1, "bucket": BUCKET, "origin": "t", "partition": 0}
    return {
        key: [
            {**where, "side": side, "off_min": first, "off_max": last, "n": last - first + 1}
            for side, (first, last) in (("source", source), ("target", target))
        ]
    }


def snapshots(start: int = 0, source_start: int = 0) -> Any:
    def cluster(alias: str, start: int) -> ClusterSnapshot:
        topic = TopicSnapshot("t", "", {0: PartitionSnapshot(start, 100)}, {}, None)
        return ClusterSnapshot(alias, alias, NOW, {"t": topic})

    return {"f": FlowSnapshot(FLOW, {}, cluster("a", source_start), cluster("z", start))}


def slices(
    manifest: Manifest, position: int, start: int = 0, source_start: int = 0, **more: int
) -> list[Slices]:
    """What is to be counted of the followed buckets."""
    return open_slices.slices(
        manifest, snapshots(start, source_start), TOPIC, of(manifest).buckets,
        positions(position, **more), extents((20, 59), (22, 69)),
    )  # fmt: skip


def counted(manifest: Manifest, position: int, start: int = 0, **more: int) -> dict[str, Any]:
    """Side -> offsets to count of the bucket."""
    (found,) = slices(manifest, position, start, **more)
    return spans(found)


def spans(found: Slices) -> dict[str, Any]:
    """Side -> offsets of bounds."""
    return {bound["side"]: (bound["start"], bound["end"]) for bound in found.bounds}


def test_a_bucket_is_late_when_it_was_open_in_every_run_for_long() -> None:
    first = noted(Manifest(60_000), NOW, (BUCKET, 5))
    again = noted(first, NOW + HOUR, (BUCKET, 7))
    (bucket,) = late(again, NOW + HOUR)
    assert (bucket.since_ms, bucket.below) == (NOW, 7)
    assert late(first, NOW + HOUR - 1) == []
    closed = noted(noted(first, NOW + 1), NOW + HOUR, (BUCKET, 7))
    assert late(closed, NOW + HOUR) == [], "it was closed in between"


def test_what_is_not_below_a_position_or_cut_by_offsets_is_not_late() -> None:
    first = noted(Manifest(60_000), NOW, (BUCKET, 0))
    assert late(first, NOW + HOUR) == []
    cut = open_buckets.late(
        noted(Manifest(60_000), NOW, (BUCKET, 5)),
        plan(replace(TOPIC, strategy="offset_syncs")), NOW + HOUR, 60,
    )  # fmt: skip
    assert cut == {}


def test_slices_begin_where_the_bucket_was_seen_closed_last_and_end_at_the_position() -> None:
    closed = noted(read_to(Manifest(60_000), 40, 45), NOW)
    then = noted(read_to(closed, 60, 70), NOW + 1, (BUCKET, 5))
    assert counted(then, 55) == {"source": (40, 55), "target": (45, 70)}
    assert counted(then, 55, required=50)["source"] == (50, 55)
    assert counted(then, 55, boundary=48)["source"] == (40, 48)


def test_slices_of_a_bucket_of_which_nobody_knows_when_it_was_closed_begin_with_it() -> None:
    first = noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 5))
    assert counted(first, 55) == {"source": (20, 55), "target": (22, 70)}
    left_out = noted(read_to(Manifest(60_000), 40, 45), NOW, more=1)
    again = noted(read_to(left_out, 60, 70), NOW + 1, (BUCKET, 5))
    assert counted(again, 55) == {"source": (20, 55), "target": (22, 70)}


def test_a_run_counts_what_came_since_the_last_one_also_when_the_position_went_back() -> None:
    first = noted(read_to(Manifest(60_000), 50, 50), NOW, (BUCKET, 5))
    (found,) = open_slices.slices(
        first, snapshots(), TOPIC, of(first).buckets, positions(45), extents((20, 49), (22, 49))
    )
    done = open_slices.with_counted(first, found)
    then = noted(read_to(done, 60, 70), NOW + 1, (BUCKET, 5))
    assert counted(then, 55) == {"source": (45, 55), "target": (50, 70)}
    assert counted(then, 30) == {"target": (50, 70)}


def test_a_bucket_of_which_the_target_lost_what_was_not_counted_is_left_out() -> None:
    first = noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 5))
    assert counted(first, 55, start=30) == {}
    assert open_for_an_hour(of(first), NOW + HOUR) == (5, NOW, 5)


@pytest.mark.parametrize(
    ("end", "lane", "judged"), [(45, -1, True), (46, -1, False), (46, 1, True)]
)
def test_a_bucket_of_which_records_expired_unread_on_the_target_is_left_out(
    end: int, lane: int, judged: bool
) -> None:
    """Copies of what is not lost may be among them."""
    closed = noted(read_to(Manifest(60_000), 40, 45), NOW)
    rows = still_open([(BUCKET, 5)], lane=lane)
    then = open_buckets.note(read_to(closed, 60, 70), plan(), rows, NOW + 1)
    gap = Gap("f", "target", "t", "t", 0, 30, end, NOW)
    (found,) = open_slices.slices(
        replace(then, gaps=(gap,)), snapshots(), TOPIC, of(then).buckets, positions(55),
        {(*KEY, lane, BUCKET): []},
    )  # fmt: skip
    assert bool(found.buckets) == judged


def test_what_is_kept_comes_back_as_it_was() -> None:
    closed = noted(read_to(Manifest(60_000), 40, 45), NOW)
    then = of(noted(read_to(closed, 60, 70), NOW + 1, (BUCKET, 5)))
    assert OpenTopic.load(then.dump()) == then
    assert then.begins == {NOW + 1: {SOURCE: 40, TARGET: 45}}


def test_buckets_that_are_not_followed_count_as_open_and_not_judged_after_the_bound() -> None:
    first = noted(Manifest(60_000), NOW, (BUCKET, 5), more=8, below=800)
    then = noted(first, NOW + HOUR - 1, (BUCKET, 5), more=9, below=900)
    assert open_buckets.open_for_long(of(then), NOW + HOUR - 1, 60) == []
    assert open_for_an_hour(of(then), NOW + HOUR) == (905, NOW, 905)
    followed = noted(then, NOW + HOUR, (BUCKET, 5))
    assert open_for_an_hour(of(followed), NOW + HOUR) == (5, NOW, 5)


def test_a_bucket_that_was_not_followed_is_open_for_as_long_as_those_may_be() -> None:
    first = noted(read_to(Manifest(60_000), 40, 45), NOW)
    left_out = noted(read_to(first, 50, 55), NOW + 1, (0, 1), more=1, below=7)
    then = noted(read_to(left_out, 60, 70), NOW + HOUR, (0, 1), (BUCKET, 7))
    assert [bucket.since_ms for bucket in of(then).buckets] == [NOW + 1, NOW + 1]
    begun_with = [b.from_first for b in of(then).buckets]
    assert begun_with == [False, True], "whether it was closed before, nobody knows"


def test_what_a_run_can_not_read_at_once_is_counted_in_parts_and_judged_when_all_is() -> None:
    first = noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 5))
    (found,) = slices(first, 55)
    budget = Budget(max_bytes=None, max_records=20)
    now, _ = open_slices.part(found, Spent().share_of(budget, found.ranges))
    assert (spans(now), now.whole) == ({"source": (20, 28), "target": (22, 33)}, False)
    begun = open_slices.with_counted(first, now)
    (bucket,) = of(begun).buckets
    assert (bucket.begun, bucket.sliced, bucket.judged) == (True, False, False)
    assert open_buckets.waits(begun, plan(), NOW, 0), "the next run goes on"
    (rest,) = slices(begun, 55)
    assert spans(rest) == {"source": (28, 55), "target": (33, 70)}
    done = open_slices.with_counted(begun, rest)
    (bucket,) = of(done).buckets
    assert (bucket.begun, bucket.sliced, bucket.judged) == (False, True, True)
    assert not open_buckets.waits(done, plan(), NOW, 0)
    assert counted(noted(done, NOW + 1, (BUCKET, 5)), 57) == {"source": (55, 57)}


def test_nothing_is_counted_without_a_budget_and_all_of_it_without_a_bound() -> None:
    (found,) = slices(noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 5)), 55)
    assert Spent().share_of(Budget(max_bytes=0), found.ranges) == 0
    whole = Spent().share_of(Budget(max_bytes=None), found.ranges)
    assert open_slices.part(found, whole) == (found, None)


def test_buckets_that_come_late_are_counted_up_to_the_others_before_they_go_on_with_them() -> None:
    first = noted(read_to(Manifest(60_000), 40, 45), NOW, (BUCKET, 5), more=1)
    (found,) = slices(first, 40)
    ahead = open_slices.with_counted(first, found)
    both = noted(read_to(ahead, 60, 70), NOW + 1, (BUCKET, 5), (0, 5))
    its = extents((20, 59), (22, 69))
    of_other = {(*KEY, -1, 0): [{**where, "bucket": 0} for where in its[*KEY, -1, BUCKET]]}

    def to_count(manifest: Manifest) -> list[Slices]:
        return open_slices.slices(
            manifest, snapshots(), TOPIC, of(manifest).buckets, positions(55), {**its, **of_other}
        )

    front, behind = to_count(both)
    assert spans(front) == {"source": (40, 55), "target": (45, 70)}
    assert spans(behind) == {"source": (20, 55), "target": (22, 70)}
    now, _ = open_slices.part(behind, 0.5)
    done = open_slices.with_counted(open_slices.with_counted(both, front), now)
    assert [b.judged for b in of(done).buckets] == [True, False]
    (rest,) = to_count(done)[1:]
    assert spans(rest) == {"source": (37, 55), "target": (46, 70)}
    together = of(open_slices.with_counted(done, rest))
    assert [b.sliced for b in together.buckets] == [True, True]
    assert together.partly == {}


def test_what_left_the_source_before_it_was_counted_is_not_judged() -> None:
    first = noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 35))
    (found,) = slices(first, 55, source_start=30)
    done = open_slices.with_counted(first, found)
    assert open_for_an_hour(of(done), NOW + HOUR) == (35, NOW, 10)
    again = noted(done, NOW + 1, (BUCKET, 37))
    (found,) = slices(again, 57, source_start=56)
    now = of(open_slices.with_counted(again, found))
    assert open_for_an_hour(now, NOW + HOUR)[2] == 11, "one more, and none of them twice"


def test_what_an_earlier_release_kept_is_read() -> None:
    first = of(noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 5)))
    plain = first.dump()
    for later in ("partly", "more", "more_since_ms"):
        del plain[later]
    for later in ("begun", "gone", "from_first"):
        del plain["buckets"][0][later]
    (bucket,) = OpenTopic.load(plain).buckets
    assert (bucket.since_ms, bucket.unjudged, OpenTopic.load(plain).more) == (NOW, 5, 0)


class Model:
    """Logs of numbers, a mirror that chooses partitions of its own, and runs without Spark.

    A record is (bucket, number); each run judges by slices what is open, all it sees.
    """

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.logs: dict[str, dict[int, list[tuple[int, int]]]] = {
            side: {0: [], 1: []} for side in SIDES
        }
        self.copied = {0: 0, 1: 0}
        self.committed = {0: 0, 1: 0}
        self.highest = {0: 0, 1: 0}
        self.manifest = Manifest(60_000)
        self.known: dict[int, Counter[tuple[int, int]]] = {}
        self.now = NOW
        self.judged = 0

    def live(self) -> None:
        """Produce, start again, copy (lose, repeat, mend) and commit some of it."""
        for partition, log in self.logs["source"].items():
            log += [(self.chance.choice((0, 0, 60_000)), self.chance.randrange(99))
                    for _ in range(self.chance.randrange(5))]  # fmt: skip
            if self.chance.random() < 0.2:
                self.copied[partition] = self.committed[partition]
            end = self.chance.choice(
                (len(log), self.chance.randint(self.copied[partition], len(log)))
            )
            for record in log[self.copied[partition] : end]:
                for _ in range(self.chance.choice((0, 1, 1, 1, 1, 1, 1, 2))):
                    self.logs["target"][self.chance.randrange(2)].append(record)
            self.copied[partition] = end
            if self.chance.random() < 0.7:
                self.committed[partition] = end
                self.highest[partition] = max(end, self.highest[partition])
            elif self.chance.random() < 0.2:  # somebody sets it back
                self.committed[partition] = self.chance.randint(0, self.committed[partition])
        if self.chance.random() < 0.3:
            self.logs["target"][0] += list(self.missing(self.committed))[:1]

    def below(self, positions: dict[int, int]) -> list[tuple[int, int]]:
        """Records of the source below some positions."""
        return [r for p, log in self.logs["source"].items() for r in log[: positions[p]]]

    def missing(self, positions: dict[int, int]) -> Counter[tuple[int, int]]:
        """Those of them that are not on the target."""
        there = Counter(r for log in self.logs["target"].values() for r in log)
        return Counter(self.below(positions)) - there

    def run(self, *, dies: bool, in_parts: bool = True) -> None:
        """Read all; then compare, unless the run dies before, and count what is open."""
        sides = {
            ("f", side, "t"): SideState("", {0: 0, 1: 0}, {p: len(log) for p, log in logs.items()})
            for side, logs in self.logs.items()
        }  # fmt: skip
        self.manifest = replace(self.manifest, sides=sides)
        self.now += 1
        if dies:
            return
        rows, left, hidden = [], 0, 0
        for bucket in (0, 60_000):
            source, target = (
                Counter(r for log in logs.values() for r in log if r[0] == bucket)
                for logs in self.logs.values()
            )
            below = sum(record[0] == bucket for record in self.below(self.committed))
            is_due = below == source.total()
            if not (is_due and source == target):
                if self.chance.random() < 0.1:
                    left, hidden = left + 1, hidden + (0 if is_due else below)
                else:
                    rows.append((bucket, 0 if is_due else below))
        self.manifest = noted(self.manifest, self.now, *rows, more=left, below=hidden)
        self.count(in_parts=in_parts)

    def count(self, *, in_parts: bool) -> None:
        """Add what slices say is new."""
        late = open_buckets.late(self.manifest, plan(), self.now, 0).get(KEY, [])
        if not late:
            return
        at = {("f", "source", "t", p): {"position": end} for p, end in self.committed.items()}
        extents: Any = {
            (*KEY, -1, bucket.bucket): [
                {
                    "flow": "f", "topic": "t", "lane": -1, "bucket": bucket.bucket, "side": side,
                    "origin": "t", "partition": p, "off_min": min(its), "off_max": max(its),
                    "n": len(its),
                }
                for side, logs in self.logs.items()
                for p, log in logs.items()
                if (its := [at for at, record in enumerate(log) if record[0] == bucket.bucket])
            ]
            for bucket in late
        }  # fmt: skip
        logs = {p: PartitionSnapshot(0, len(log)) for p, log in self.logs["target"].items()}
        there = ClusterSnapshot("z", "z", NOW, {"t": TopicSnapshot("t", "", logs, {}, None)})
        seen = {"f": FlowSnapshot(FLOW, {}, there, there)}
        found = open_slices.slices(self.manifest, seen, TOPIC, late, at, extents)
        counted = {bucket.bucket for bucket in late if bucket.sliced or bucket.begun}
        self.known = {b: known for b, known in self.known.items() if b in counted}
        for some in found:
            if not in_parts:
                self.add(some)
            elif self.chance.random() < 0.8:
                share = self.chance.choice((1.0, 1.0, self.chance.random()))
                self.add(open_slices.part(some, share)[0])

    def add(self, some: Slices) -> None:
        """Count some slices."""
        for bound in some.bounds:
            log = self.logs[bound["side"]][bound["partition"]][bound["start"] : bound["end"]]
            step = 1 if bound["side"] == "source" else -1
            for record in log:
                if record[0] == bound["bucket"]:
                    self.known.setdefault(record[0], Counter())[record] += step
        self.manifest = open_slices.with_counted(self.manifest, some)
        for bucket in of(self.manifest).buckets:
            if bucket.judged and some.whole and bucket.bucket in {b.bucket for b in some.buckets}:
                self.judge(bucket.bucket)

    def judge(self, bucket: int) -> None:
        """Hold what slices say of a bucket against what is lost."""
        lost = sum(n for n in self.known.get(bucket, Counter()).values() if n > 0)
        # A position that was set back does not take back what was judged below it.
        least, most = (
            sum(n for r, n in self.missing(at).items() if r[0] == bucket)
            for at in (self.committed, self.highest)
        )
        assert least <= lost <= most
        assert lost == most or self.committed != self.highest
        self.judged += 1


@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_slices_lose_and_make_up_no_record(seed: int) -> None:
    chance = Random(seed)  # noqa: S311
    model = Model(chance)
    for _ in range(15):
        model.live()
        model.run(dies=chance.random() < 0.15)
    model.run(dies=False, in_parts=False)
    assert model.judged or not any(bucket.below for bucket in of(model.manifest).buckets)
