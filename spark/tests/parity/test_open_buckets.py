"""Which buckets have been open for long, and which offsets of them are to be counted: no Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import FlowSnapshot, RunPlan, TopicPlan, open_buckets
from mirror_report.parity.plan.open_buckets import OpenBucket, OpenTopic
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


def noted(manifest: Manifest, at_ms: int, *buckets: tuple[int, int], more: int = 0) -> Manifest:
    """A manifest after a run that saw some buckets open, ``more`` of which it does not name."""
    rows = [{"bucket": bucket, "below": below} for bucket, below in buckets]
    lane = {"flow": "f", "topic": "t", "lane": -1, "open": rows, "n_open": len(rows) + more}
    return open_buckets.note(manifest, plan(), [lane], at_ms)


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
            {**where, "side": side, "off_min": first, "off_max": last}
            for side, (first, last) in (("source", source), ("target", target))
        ]
    }


def snapshots(start: int = 0) -> Any:
    def cluster(alias: str, start: int) -> ClusterSnapshot:
        topic = TopicSnapshot("t", "", {0: PartitionSnapshot(start, 100)}, {}, None)
        return ClusterSnapshot(alias, alias, NOW, {"t": topic})

    return {"f": FlowSnapshot(FLOW, {}, cluster("a", 0), cluster("z", start))}


def counted(manifest: Manifest, position: int, start: int = 0, **more: int) -> dict[str, Any]:
    """Side -> offsets to count of the bucket."""
    found = open_buckets.slices(
        manifest, snapshots(start), TOPIC, of(manifest).buckets, positions(position, **more),
        extents((20, 59), (22, 69)),
    )  # fmt: skip
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
    found = open_buckets.slices(
        first, snapshots(), TOPIC, of(first).buckets, positions(45), extents((20, 49), (22, 49))
    )
    done = open_buckets.with_counted(first, found)
    then = noted(read_to(done, 60, 70), NOW + 1, (BUCKET, 5))
    assert counted(then, 55) == {"source": (45, 55), "target": (50, 70)}
    assert counted(then, 30) == {"target": (50, 70)}


def test_a_bucket_of_which_the_target_lost_what_was_not_counted_is_left_out() -> None:
    first = noted(read_to(Manifest(60_000), 60, 70), NOW, (BUCKET, 5))
    assert counted(first, 55, start=30) == {}
    known = open_buckets.open_for_long(of(first), NOW + HOUR, 60)
    assert (known.records, known.since_ms, known.unjudged) == (5, NOW, 5)


@pytest.mark.parametrize(
    ("end", "lane", "judged"), [(45, -1, True), (46, -1, False), (46, 1, True)]
)
def test_a_bucket_of_which_records_expired_unread_on_the_target_is_left_out(
    end: int, lane: int, judged: bool
) -> None:
    """Copies of what is not lost may be among them."""
    closed = noted(read_to(Manifest(60_000), 40, 45), NOW)
    row = {"bucket": BUCKET, "below": 5}
    of_lane = {"flow": "f", "topic": "t", "lane": lane, "open": [row], "n_open": 1}
    then = open_buckets.note(read_to(closed, 60, 70), plan(), [of_lane], NOW + 1)
    gap = Gap("f", "target", "t", "t", 0, 30, end, NOW)
    found = open_buckets.slices(
        replace(then, gaps=(gap,)), snapshots(), TOPIC, of(then).buckets, positions(55),
        {(*KEY, lane, BUCKET): []},
    )  # fmt: skip
    assert bool(found.buckets) == judged


def test_what_is_kept_comes_back_as_it_was() -> None:
    closed = noted(read_to(Manifest(60_000), 40, 45), NOW)
    then = of(noted(read_to(closed, 60, 70), NOW + 1, (BUCKET, 5)))
    assert OpenTopic.load(then.dump()) == then
    assert then.begins == {NOW + 1: {SOURCE: 40, TARGET: 45}}


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

    def run(self, *, dies: bool) -> None:
        """Read all; then compare, unless the run dies before, and count what is open."""
        sides = {
            ("f", side, "t"): SideState("", {0: 0, 1: 0}, {p: len(log) for p, log in logs.items()})
            for side, logs in self.logs.items()
        }  # fmt: skip
        self.manifest = replace(self.manifest, sides=sides)
        self.now += 1
        if dies:
            return
        rows, left = [], 0
        for bucket in (0, 60_000):
            source, target = (
                Counter(r for log in logs.values() for r in log if r[0] == bucket)
                for logs in self.logs.values()
            )
            below = sum(record[0] == bucket for record in self.below(self.committed))
            is_due = below == source.total()
            if not (is_due and source == target):
                if self.chance.random() < 0.1:
                    left += 1
                else:
                    rows.append({"bucket": bucket, "below": 0 if is_due else below})
        lane = {"flow": "f", "topic": "t", "lane": -1, "open": rows, "n_open": len(rows) + left}
        self.manifest = open_buckets.note(self.manifest, plan(), [lane], self.now)
        self.count()

    def count(self) -> None:
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
        found = open_buckets.slices(self.manifest, seen, TOPIC, late, at, extents)
        assert len(found.buckets) == len(late)
        sliced = {bucket.bucket for bucket in late if bucket.sliced}
        self.known = {b: known for b, known in self.known.items() if b in sliced}
        self.known |= {bucket.bucket: Counter() for bucket in late if bucket.bucket not in sliced}
        for bound in found.bounds:
            log = self.logs[bound["side"]][bound["partition"]][bound["start"] : bound["end"]]
            step = 1 if bound["side"] == "source" else -1
            for record in log:
                if record[0] == bound["bucket"]:
                    self.known[bound["bucket"]][record] += step
        self.manifest = open_buckets.with_counted(self.manifest, found)
        for bucket in late:
            lost = sum(n for n in self.known[bucket.bucket].values() if n > 0)
            # A position that was set back does not take back what was judged below it.
            least, most = (
                sum(n for r, n in self.missing(at).items() if r[0] == bucket.bucket)
                for at in (self.committed, self.highest)
            )
            assert least <= lost <= most
            assert lost == most or self.committed != self.highest


@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_slices_lose_and_make_up_no_record(seed: int) -> None:
    chance = Random(seed)  # noqa: S311
    model = Model(chance)
    for _ in range(15):
        model.live()
        model.run(dies=chance.random() < 0.15)
    assert model.known or not of(model.manifest).buckets
