"""The manifest of baselines: what is read of it, and what is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_report.model import Baseline, TopicBaseline
from mirror_report.state import baselines
from mirror_report.state.store import StateError, Store

GOLDENS = Path(__file__).parent / "parity" / "compatibility" / "goldens"


@pytest.mark.parametrize(
    "path", sorted(GOLDENS.glob("*/state/baseline.json")), ids=lambda path: path.parts[-3]
)
def test_a_baseline_is_written_as_it_was_read(path: Path) -> None:
    plain = json.loads(path.read_text())["data"]
    read = {flow: baselines.of_flow(entry) for flow, entry in plain.items()}
    assert all(baseline.topics for baseline in read.values())
    assert {flow: baselines.dump(baseline) for flow, baseline in read.items()} == plain


def test_what_is_not_always_there_is_kept(tmp_path: Path) -> None:
    again = TopicBaseline(2, losses_since_ms=2)
    recorded = Baseline(1, 1, group_existed=True, topics={"t": again}, accepted={"gone": 3})
    store = Store(tmp_path)
    store.commit("baseline", {"f": baselines.dump(recorded)})
    assert baselines.load(store) == {"f": recorded}
    assert not baselines.of_flow({}).exists


def test_one_that_cut_by_time_is_refused_with_the_command() -> None:
    old = {"recorded_at_ms": 1, "topics": {"t": {"source": {"0": 1}, "target": {"0": 1}}}}
    with pytest.raises(StateError, match="was recorded by an earlier release") as error:
        baselines.refuse_cut_by_time("f", baselines.of_flow(old))
    assert "mirror-report baseline --flow f --renew" in str(error.value)
    baselines.refuse_cut_by_time(
        "f", replace(baselines.of_flow(old), topics={"t": TopicBaseline()})
    )
