"""What the gate counts as passed and as failed."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

GATE = Path(__file__).parent / "gate"
CASE = '<testcase classname="t" name="{}">{}</testcase>'


@pytest.fixture(scope="module")
def gate() -> ModuleType:
    loader = SourceFileLoader("gate", str(GATE))
    spec = importlib.util.spec_from_loader("gate", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gate"] = module
    loader.exec_module(module)
    return module


def write_results(file: Path, *outcomes: str) -> Path:
    cases = "".join(CASE.format(i, f"<{o}/>" if o else "") for i, o in enumerate(outcomes))
    file.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return file


@pytest.mark.parametrize("outcome", ["failure", "error", "skipped"])
def test_everything_but_a_passed_test_is_a_failure(
    gate: ModuleType, tmp_path: Path, outcome: str
) -> None:
    results = write_results(tmp_path / "r.xml", "", "", outcome)
    assert gate.count_results(results) == gate.Tally(passed=2, failed=1)


def test_results_cut_short_are_a_failure(gate: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text("<testsuites><testsu")
    assert gate.count_results(tmp_path / "r.xml") == gate.Tally(failed=1)


@pytest.mark.parametrize(
    ("status", "outcomes", "expected"),
    [
        (0, [""], (1, 0)),
        (0, [], (0, 1)),
        (1, [""], (1, 1)),
        (1, ["", "failure"], (1, 1)),
    ],
)
def test_a_stage_counts_by_its_results_and_its_exit_status(
    gate: ModuleType,
    tmp_path: Path,
    status: int,
    outcomes: list[str],
    expected: tuple[int, int],
) -> None:
    stage = gate.Stage("s", ["true"], results=write_results(tmp_path / "r.xml", *outcomes))
    assert gate.tally_of(stage, status) == gate.Tally(*expected)


@pytest.mark.parametrize(("status", "expected"), [(0, (1, 0)), (3, (0, 1))])
def test_a_command_without_results_counts_once(
    gate: ModuleType, status: int, expected: tuple[int, int]
) -> None:
    assert gate.tally_of(gate.Stage("s", ["true"]), status) == gate.Tally(*expected)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shards_together_are_every_stage_once(gate: ModuleType, count: int) -> None:
    stages = [*gate.unit_stages(everything=True), *gate.scenario_stages(everything=True)]
    dealt = [
        stage.name
        for number in range(count)
        for stage in gate.dealt(stages, *gate.shard(f"{number + 1}/{count}"))
    ]
    assert sorted(dealt) == sorted(stage.name for stage in stages)


def test_no_shard_has_the_longer_stage_of_every_turn(gate: ModuleType) -> None:
    stages = range(8)
    assert gate.dealt(stages, 1, 2) == [0, 3, 4, 7]
    assert gate.dealt(stages, 2, 2) == [1, 2, 5, 6]


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "one/2", "1/0", ""])
def test_what_is_no_shard_is_refused(gate: ModuleType, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 1/2 and 2/2"):
        gate.shard(text)


def test_stages_that_begin_first_exist(gate: ModuleType) -> None:
    stages = [*gate.unit_stages(everything=True), *gate.scenario_stages(everything=True)]
    assert set(gate.LONGEST) <= {stage.name for stage in stages}
