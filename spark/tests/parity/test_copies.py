"""Looks at a topic say where the copies of its records may lie; no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity.plan import FlowSnapshot, FlowSnapshots, TopicPlan, copies
from mirror_report.parity.state import BEHIND_ALL, Look, Manifest, Summary, topic_value

FLOW = Flow(name="f", source="a", target="b", include="t", group_id="g", engine=MM2)
TOPIC = TopicPlan("f", "t", ("t",))


def seen(position: int | None, target: int, source: int, flow: Flow = FLOW) -> FlowSnapshots:
    """Snapshots of a topic of one partition: committed position, and ends."""

    def cluster(alias: str, end: int) -> ClusterSnapshot:
        topic = TopicSnapshot("t", alias, {0: PartitionSnapshot(0, end, end)}, {}, None)
        return ClusterSnapshot(alias, alias, 0, {"t": topic})

    positions = {} if position is None else {"t": {0: position}}
    return {flow.name: FlowSnapshot(flow, positions, cluster("a", source), cluster("b", target))}


def noted(manifest: Manifest, *values: tuple[int | None, int, int], last: bool = True) -> Manifest:
    """Looks one after the other.

    :param last: the source was observed last.
    """
    for each in values:
        manifest = copies.note(manifest, [TOPIC], seen(*each), source_last=last)
    return manifest


def looks_of(manifest: Manifest) -> tuple[Look, ...]:
    return topic_value(manifest.looks, TOPIC.key, ())


def row(manifest: Manifest, side: str) -> Mapping[str, Any]:
    """What the frames are given of the only partition of a side."""
    rows = copies.rows(manifest, [TOPIC])
    (found,) = [each for each in rows if each["side"] == side]
    return found


def test_each_look_is_kept_once_and_survives_the_file() -> None:
    manifest = noted(Manifest(60_000), (10, 12, 15), (10, 12, 20), (18, 22, 25))
    assert row(manifest, "source") == {
        "flow": "f", "side": "source", "origin": "t", "partition": 0,
        "looks": [10, 18], "following": [15, 25], "ends": [12, 22],
    }  # fmt: skip
    assert row(manifest, "target")["looks"] == [12, 22]
    plain = json.loads(json.dumps(manifest.dump()))
    assert looks_of(Manifest.load(plain, 60_000, None)) == looks_of(manifest)  # type: ignore[arg-type]


def test_what_a_state_of_another_release_lacks_is_no_look() -> None:
    plain = Manifest(60_000).dump()
    del plain["looks"]
    assert looks_of(Manifest.load(plain, 60_000, None)) == ()  # type: ignore[arg-type]


def test_an_end_of_the_source_counts_for_the_looks_before_it() -> None:
    manifest = noted(Manifest(60_000), (10, 12, 15), last=False)
    assert row(manifest, "source")["following"] == [BEHIND_ALL]
    manifest = noted(manifest, (18, 22, 25), last=False)
    assert row(manifest, "source")["following"] == [25, BEHIND_ALL]


def test_a_mirror_that_was_set_back_was_not_past_anything_before() -> None:
    manifest = noted(Manifest(60_000), (10, 12, 15), (20, 22, 25), (8, 22, 25), (20, 34, 25))
    assert row(manifest, "source")["looks"] == [8, 8, 20]
    manifest = noted(manifest, (None, 34, 25))
    assert set(row(manifest, "source")["looks"]) == {0}


def test_a_topic_of_which_not_everything_was_observed_gets_no_look() -> None:
    assert looks_of(copies.note(Manifest(60_000), [TOPIC], {})) == ()


def test_a_source_that_another_flow_observed_later_bounds_nothing() -> None:
    fed_twice = replace(TOPIC, origins=("t", "g/t"))
    other = replace(FLOW, name="g")
    snapshots = {**seen(10, 12, 15), **seen(11, 13, 16, other)}
    manifest = copies.note(Manifest(60_000), [fed_twice], snapshots, source_last=True)
    (look,) = looks_of(manifest)
    assert (look.following, look.boundary.target) == (None, {0: 13})


def test_looks_that_a_loss_rests_on_outlive_the_others_until_it_is_mended() -> None:
    manifest = noted(Manifest(60_000), *((n, n, n) for n in range(1, 5)))
    manifest = copies.need(manifest, {TOPIC.key: [2]})
    manifest = noted(manifest, *((n, n, n) for n in range(5, 100)))
    ends = row(manifest, "target")["looks"]
    assert 3 in ends
    assert ends == sorted(ends)
    assert len(ends) <= copies.MOST + 2
    summary = Summary("1", {"missing": 1}, {"missing": 1})
    known = replace(manifest, summaries={"f": {"t": summary}})
    manifest = copies.without_losses(known, [TOPIC])
    assert row(manifest, "target")["looks"] == ends
    found = {"f": {"t": replace(summary, now={"missing": 0})}}
    mended = copies.without_losses(replace(manifest, summaries=found), [TOPIC])
    assert not any(look.needed for look in looks_of(mended))


def test_what_no_look_has_seen_needs_none() -> None:
    manifest = noted(Manifest(60_000), (10, 12, 15), (None, 12, 15))
    manifest = copies.need(manifest, {TOPIC.key: [0, 2]})
    looks = looks_of(manifest)
    assert [look.needed for look in looks] == [True, False]


def test_what_waits_for_a_transaction_is_on_the_target() -> None:
    flow = replace(FLOW, target_isolation="read_committed")
    snapshots = seen(10, 12, 15, flow)
    waiting = PartitionSnapshot(0, 8, 12)
    snapshots["f"].target.topics["t"].partitions[0] = waiting
    (look,) = looks_of(copies.note(Manifest(60_000), [TOPIC], snapshots))
    assert look.boundary.target == {0: 12}


def test_needed_looks_are_bounded_and_the_first_stays() -> None:
    manifest = Manifest(60_000)
    for n in range(1, 4 * copies.MOST_NEEDED):
        manifest = noted(manifest, (n, n, n))
        newest = len(looks_of(manifest)) - 1
        manifest = copies.need(manifest, {TOPIC.key: [newest]})
    ends = row(manifest, "target")["looks"]
    assert len(ends) <= copies.MOST_NEEDED + copies.MOST
    assert ends[0] == 1
    assert ends[-1] == 4 * copies.MOST_NEEDED - 1
