"""What is known to be lost is not forgotten without a word: without Spark."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from mirror_report.config import Cluster, Flow, Settings
from mirror_report.model import Baseline, ClusterSnapshot, TopicParity, TopicSnapshot
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan import FlowSnapshot, RunPlan, TopicPlan
from mirror_report.parity.plan.run_plan import Superseded, superseded
from mirror_report.parity.results import losses
from mirror_report.parity.state import Gone, Loss, Manifest, Summary, basis, files
from mirror_report.state.baselines import of_flow
from mirror_report.state.store import Store

NOW = 1_800_000_000_000
EAST = Flow(name="east", source="a", target="z", include=".*", group_id="g")
NUMBERS = dict.fromkeys(losses.KINDS, 0)


def context(directory: Path, **baselines: Any) -> RunContext:
    """A run of one flow."""
    settings = Settings(
        clusters={alias: Cluster(alias, ("nowhere:1",)) for alias in "az"},
        flows=(EAST,), state_directory=directory,
    )  # fmt: skip
    return RunContext(
        settings,
        None,
        Store(directory),
        "run-1",
        print,
        (EAST,),
        {flow: of_flow(plain) for flow, plain in baselines.items()},
        time.monotonic(),
        NOW,
    )  # type: ignore[arg-type]


def manifest(**found: int) -> Manifest:
    """What is known of topic t after a run that found something."""
    return Manifest(
        60_000,
        baselines={"east": basis(EAST, Baseline())},
        summaries={"east": {"t": Summary("1", NUMBERS | found, NUMBERS | found)}},
    )


def planned(*names: str) -> RunPlan:
    """A run that compares some topics."""
    topics = {name: TopicSnapshot(name, name, {}, {}, None) for name in names}
    seen = FlowSnapshot(
        EAST, {}, ClusterSnapshot("a", "a", NOW, topics), ClusterSnapshot("z", "z", NOW, {})
    )
    return RunPlan({"east": seen}, tuple(TopicPlan("east", name, (name,)) for name in names))


def reported(**counts: int | None) -> TopicParity:
    """The row of topic t in a report."""
    return TopicParity(
        "east", "t", "t", "unknown", 0, 0, 0, 0, 0, counts, {}, {}, None, None, "not readable", {}
    )


MISSING = Loss("east", "t", "t", "missing", 10, NOW)


def test_what_lasts_is_known_by_topic_and_class() -> None:
    known = losses.of_manifest(
        Manifest(
            60_000,
            summaries=manifest(missing=10).summaries,
            gone=(
                Gone("east", "t", 0, 5, 7, None),
                Gone("east", "t", 0, 5, 9, None, certain=False),
            ),
            scans={"east": {"keys": {"run_id": "1", "at_ms": 0, "state": [],
                                     "keys": {"missing": {"0": 3}, "duplicate": {"0": 2}}}}},
            losses=(Loss("east", "gone", "gone", "moved", 1, 5),),
        ),
        [EAST], NOW,
    )  # fmt: skip
    assert {(loss.topic, loss.kind): loss.count for loss in known} == {
        ("t", "missing"): 10, ("t", "deleted_early"): 7, ("keys", "missing"): 3,
        ("gone", "moved"): 1,
    }  # fmt: skip


def test_losses_of_a_topic_that_is_compared_no_more_are_kept(tmp_path: Path) -> None:
    before = manifest(missing=10)
    run = context(tmp_path)
    kept, said = losses.settle(
        run, before, Manifest(60_000, baselines=before.baselines), planned("u"), Superseded(before)
    )
    assert (kept.losses, said) == ((MISSING,), [])
    again, said = losses.settle(run, kept, kept, planned("u"), Superseded(kept))
    assert (again.losses, said) == ((MISSING,), []), "and again"
    for accepted in ({"losses_since_ms": NOW}, {"accepted": {"t": NOW}}):
        run = context(tmp_path, east=accepted)
        assert losses.settle(run, kept, kept, planned("u"), Superseded(kept))[0].losses == ()


def test_losses_of_compacted_topics_are_kept_likewise(tmp_path: Path) -> None:
    before = Manifest(
        60_000,
        baselines={"east": basis(EAST, Baseline())},
        scans={"east": {"t": {"run_id": "1", "at_ms": 0, "state": [],
                              "keys": {"missing": {"0": 10}}}}},
    )  # fmt: skip
    kept, said = losses.settle(context(tmp_path), before, before, planned("u"), Superseded(before))
    assert (kept.losses, said, kept.scans["east"]) == ((MISSING,), [], {})


def test_losses_of_a_topic_that_is_compared_again_are_said_once(tmp_path: Path) -> None:
    before = manifest(missing=10)
    left = Manifest(60_000, baselines=before.baselines)
    kept, said = losses.settle(context(tmp_path), before, left, planned("t"), Superseded(before))
    assert (kept.losses, said) == ((), [MISSING])
    found = losses.reported_once(MISSING)
    assert (found.kind, found.severity, found.count) == ("missing", "critical", 10)
    assert losses.settle(context(tmp_path), left, kept, planned("t"), Superseded(left))[1] == []


def test_what_a_new_baseline_drops_was_named_by_the_command(tmp_path: Path) -> None:
    before, run = manifest(missing=10), context(tmp_path, east={"recorded_at_ms": NOW})
    former = superseded(run, before)
    assert former.manifest.summaries == {"east": {}} or not former.manifest.summaries.get("east")
    assert losses.settle(run, before, former.manifest, planned("t"), former)[1] == []


def judged(lane: int = -1, **found: int) -> dict[str, Any]:
    """A bucket of topic t, or what was found in it."""
    names = dict.fromkeys((*losses.KINDS, "unverifiable", "replaced"), 0)
    return {"flow": "east", "topic": "t", "lane": lane, **names, **found}


def test_what_is_unverifiable_by_now_is_said_once_whatever_the_width_of_its_bucket() -> None:
    plan = planned("t", "u").topics
    again = [
        (judged(missing=10), judged(missing=6, unverifiable=4)),
        (judged(corrupt_value=2, replaced=1, unverifiable=1), judged(unverifiable=2)),
        # It was mended, or is called by another name.
        (judged(missing=3), judged(moved=3)),
        # Of a topic without lanes it was reported once.
        (judged(reordered=1), judged(unverifiable=1)),
        (judged(0, reordered=1), judged(unverifiable=1)),
    ]
    found = losses.out_of_sight(again, plan)
    assert {(loss.topic, loss.kind): loss.count for loss in found} == {
        ("t", "missing"): 4, ("t", "corrupt_value"): 2, ("t", "reordered"): 1,
    }  # fmt: skip
    said = losses.reported_once(found[0], losses.REMOVED)
    assert (said.severity, said.kind, said.count) == ("critical", "missing", 4)
    assert "so this is said once" in said.message


@pytest.mark.parametrize("flow", [None, "east"])
def test_a_state_that_is_started_again_says_what_the_last_report_knew(
    tmp_path: Path, flow: str | None
) -> None:
    row = {"flow": "east", "topic": "t", "source_topic": "t", "partitions": {},
           "counts": {"missing": 10, "duplicate": 3, "reordered": 2, "moved": None}}  # fmt: skip
    left = {"flow": "east", "topic": "u", "kind": "missing", "severity": "critical", "count": 4}
    report = {"generated_at": "2026-11-01T00:00:00Z", "parity": [row], "findings": [left]}
    store = Store(tmp_path)
    store.write_report("latest.json" if flow is None else f"latest-{flow}.json", json.dumps(report))
    nothing = Manifest(60_000)
    kept, said = losses.settle(
        context(tmp_path), nothing, nothing, planned("t"), Superseded(nothing)
    )
    assert [(loss.topic, loss.kind, loss.count) for loss in said] == [("t", "missing", 10)]
    assert [(loss.topic, loss.kind, loss.count) for loss in kept.losses] == [("u", "missing", 4)]
    accepted = context(tmp_path, east={"losses_since_ms": NOW})
    assert losses.settle(accepted, nothing, nothing, planned("t"), Superseded(nothing)) == (
        nothing, [],
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"generated_at": "x", "parity": 1}'])
def test_a_report_that_is_none_says_nothing(tmp_path: Path, text: str) -> None:
    Store(tmp_path).write_report("latest.json", text)
    nothing = Manifest(60_000)
    assert losses.settle(
        context(tmp_path), nothing, nothing, planned("t"), Superseded(nothing)
    ) == (nothing, [])


def test_a_refused_state_is_left_behind_and_a_good_one_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    files.leave_refused(store, 60_000)
    store.commit("parity", Manifest(60_000).dump())
    files.leave_refused(store, 60_000)
    assert store.load("parity")
    store.commit("parity", {"format": 1})
    files.leave_refused(store, 60_000)
    assert store.load("parity") == {}


def test_what_a_report_says_beside_its_rows_is_known_by_the_next_one(tmp_path: Path) -> None:
    """While a state is refused, reports have no rows: what they know goes from one to the next."""
    found = losses.lasting(MISSING, EAST, "refused")
    report = {"generated_at": "2026-11-01T00:00:00Z", "parity": [], "findings": [asdict(found)]}
    store = Store(tmp_path)
    store.write_report("latest.json", json.dumps(report))
    (known,) = losses.last_known(store, EAST, Baseline())
    assert (known.place, known.count) == (MISSING.place, 10)
    assert losses.last_known(store, EAST, Baseline(losses_since_ms=NOW)) == []


def test_what_the_rows_of_a_report_do_not_show_is_named() -> None:
    def shown(*rows: TopicParity, observed: tuple[str, ...] = ("east",)) -> list[str]:
        return [found.message for found in losses.unseen([MISSING], rows, [EAST], observed)]

    assert shown(reported(missing=10)) == []
    (said,) = shown(reported(missing=None))
    assert "10 records of the source are not on the target" in said
    assert "not compared now: not readable" in said
    (said,) = shown(replace(reported(missing=0), status="verified", reason="by hours"))
    assert "it came back since" in said
    assert "t is no longer on the source" in shown()[0]
    assert "could not be observed" in shown(observed=())[0]
